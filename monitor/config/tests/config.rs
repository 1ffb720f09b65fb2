//! Wrong configurations: each is refused as a whole, in one line that names file, line, column, keyword and what was expected.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
};

use child_ipc::link::settings::unpack;
use child_ipc::types::{Permission, Permissions};
use config::{Settings, Source, Users};

const HASH: &str = "$argon2id$v=19$m=65536,t=3,p=1$c2FsdHNhbHRzYWx0c2FsdA$YcUdS5tJ2lzQe4O2JcJ2s0wuyH9mKKUZFZvHBRoNQ0s";

#[path = "config/policies.rs"]
mod policies;

/// A directory with both files, gone when dropped.
struct Files(PathBuf);

impl Files {
    /// `config` stands in front of a listener, `users` is the whole file.
    fn new(config: &str, users: &str) -> Files {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let unique = format!("caisson-config-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let files = Files(std::env::temp_dir().join(unique));
        fs::create_dir(&files.0).unwrap();
        let users_file = files.users();
        let listen = "[[listen]]\naddress = \"127.0.0.1:2121\"\n";
        let head = format!("users_file = {users_file:?}\nworker_user = \"games\"\nauthd_user = \"irc\"\n");
        write(&files.config(), &format!("{head}{config}\n{listen}"));
        write(&files.users(), users);
        files
    }

    fn config(&self) -> PathBuf {
        self.0.join("caisson.toml")
    }

    fn users(&self) -> PathBuf {
        self.0.join("users.toml")
    }

    fn load(&self) -> Result<(Settings, Users), String> {
        let read = |path: PathBuf| {
            let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e} (users_file)", path.display()))?;
            Ok::<_, String>(Source { file: path.display().to_string(), text })
        };
        let config = read(self.config())?;
        let mut settings = config::settings(&config, uid() == 0)?;
        let users = config::accounts(&read(settings.users_file.clone())?, &config, &settings)?;
        config::ask_for_certificates(&mut settings, &users).expect("it fits");
        Ok((settings, users))
    }

    /// The error, less the directory in front.
    fn error(&self) -> String {
        let error = self.load().expect_err("accepted");
        assert!(!error.contains('\n'), "more than a line: {error}");
        error.replace(&format!("{}/", self.0.display()), "")
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn write(path: &PathBuf, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// An account we may serve, root or not.
fn account(name: &str, more: &str) -> String {
    let own = if uid() == 0 { 4711 } else { uid() };
    format!("[[user]]\nname = \"{name}\"\npassword = \"{HASH}\"\nuid = {own}\ngid = 7\nhome = \"/srv\"\n{more}\n")
}

/// The configuration's error; its lines start at 4.
fn wrong(config: &str) -> String {
    Files::new(config, "").error()
}

fn wrong_users(users: &str) -> String {
    Files::new("", users).error()
}

#[test]
fn an_empty_user_table_and_the_defaults_are_enough() {
    let (Settings { config, ftp, brokers, anonymous, .. }, users) = Files::new("", "").load().unwrap();
    assert!(users.is_empty());
    assert_eq!((config.passive_ports.first, brokers.umask, ftp.idle_timeout_secs), (50_000, 0o022, 300));
    assert!(config.fixed.workers > 0 && config.active && !anonymous);
}

#[test]
fn what_is_written_arrives() {
    let text = "umask = 0o077\nactive = false\npassive_ports = \"2000-2009\"\nbanner = \"a\\nb\"\nworkers = 3\n[performance]\nbuffer_pool_bytes = 3_000_000";
    let (Settings { config, ftp, brokers, .. }, users) =
        Files::new(text, &account("bob", "permissions = [\"read\", \"list\"]\nlocked = true")).load().unwrap();
    assert_eq!((brokers.umask, config.active, config.passive_ports.last), (0o077, false, 2009));
    assert_eq!((unpack(&config.workers), unpack(&config.brokers)), (Ok(ftp.clone()), Ok(brokers)));
    assert_eq!((ftp.banner.as_bytes(), ftp.buffer_pool_bytes), (&b"a\nb"[..], 1_000_000));
    let bob = &users.values().next().unwrap().user;
    assert!(bob.locked);
    assert_eq!(bob.permissions, Permissions::NONE.with(Permission::Read).with(Permission::List).bits());
    assert_eq!(bob.ids.as_ref().unwrap().gid, 7);
}

#[test]
fn an_unknown_keyword_is_named_with_its_place_and_the_nearest_name() {
    assert_eq!(wrong("workres = 2"), "caisson.toml:4:1: workres: unknown keyword; did you mean workers?");
    assert_eq!(
        wrong("[performance]\nsend_file = true"),
        "caisson.toml:5:1: send_file: unknown keyword; did you mean sendfile?"
    );
    assert_eq!(wrong("xyzzy = 1"), "caisson.toml:4:1: xyzzy: unknown keyword");
    assert_eq!(
        wrong("[performence]\nsplice = true"),
        "caisson.toml:4:2: performence: unknown keyword; did you mean performance?"
    );
    assert!(wrong_users("[[users]]\nname = \"a\"").contains("did you mean user?"));
}

#[test]
fn a_keyword_in_the_wrong_section_is_sent_home() {
    assert!(wrong("sendfile = true").contains("4:1: sendfile: unknown keyword here; it belongs in [performance]"));
    assert!(wrong("[performance]\numask = 0").contains("5:1: umask: unknown keyword here; it belongs to the top"));
}

#[test]
fn a_value_of_the_wrong_type_or_range_is_named_with_what_was_expected() {
    for (line, error) in [
        ("workers = \"two\"", "4:11: workers: expected an integer from 0 to 128, found \"two\""),
        ("workers = 129", "4:11: workers: expected an integer from 0 to 128, found 129"),
        ("workers = -1", "4:11: workers: expected an integer from 0 to 128, found -1"),
        ("active = 1", "4:10: active: expected true or false, found 1"),
        ("sandbox = \"off\"", "4:11: sandbox: expected \"required\" or \"best-effort\", found \"off\""),
        ("users_file = 1", "duplicate key"),
        ("passive_address = \"::1\"", "4:19: passive_address: expected a string, an IPv4 address, found \"::1\""),
        ("passive_ports = \"9-1\"", "ports from 1024 to 65535, found \"9-1\""),
        (
            "control_socket = \"run\"",
            "4:18: control_socket: expected a string, an absolute path, or empty for none, found \"run\"",
        ),
        ("banner = \"\\u0007\"", "printable"),
        ("performance = 1", "4:1: performance: "),
        (
            "[anonymous]\npermissions = [\"fly\"]",
            "5:15: anonymous.permissions: expected an array of names of permissions",
        ),
        ("[[listen]]\naddress = \"127.0.0.1\"", "5:11: listen.address: expected a string ADDRESS:PORT"),
        ("[[listen]]\naddress = \"127.0.0.1:0\"", "5:11: listen.address: expected a string ADDRESS:PORT"),
        ("[[listen]]\naddress = \"127.0.0.1:1\"\nproxies = []", "6:11: listen.proxies: expected an array of 1 to 64"),
        ("[[listen]]\naddress = \"127.0.0.1:1\"\nproxies = [\"all\"]", "6:11: listen.proxies: expected an array of 1"),
        (
            "[[listen]]\naddress = \"127.0.0.1:1\"\nproxies = [\"10.0.0.1/8\"]",
            "6:11: listen.proxies: 10.0.0.1/8 has bits behind its prefix; did you mean 10.0.0.0/8?",
        ),
        ("proxies = []", "4:1: proxies: unknown keyword"),
        ("[[passive]]\naddress = \"10.0.0.5\"", "4:1: passive.clients: missing; expected an array of 1 to 64"),
        ("[[passive]]\naddress = \"::1\"", "5:11: passive.address: expected a string, an IPv4 address, found \"::1\""),
        ("[[listen]]", "4:1: listen.address: missing; expected a string ADDRESS:PORT"),
        ("[[listen]]\naddress = \"127.0.0.1:2121\"", "6:1: listen.address: listed twice"),
    ] {
        let got = wrong(line);
        assert!(got.starts_with("caisson.toml:") && got.contains(error), "{line}: {got}");
    }
}

#[test]
fn a_section_that_may_be_repeated_is_written_in_double_brackets() {
    for (text, place) in
        [("listen = 1", "1:1"), ("[listen]\naddress = \"127.0.0.1:1\"", "1:2"), ("listen = [1]", "1:11")]
    {
        let files = Files::new("", "");
        write(&files.config(), text);
        assert_eq!(files.error(), format!("caisson.toml:{place}: listen: expected a section [[listen]]"));
    }
}

#[test]
fn text_that_is_no_toml_is_named_with_its_place() {
    assert!(wrong("workers = = 2").starts_with("caisson.toml:4:11: "));
    assert!(wrong_users("[[user]\n").starts_with("users.toml:1:"));
}

#[test]
fn a_configuration_that_listens_nowhere_says_how_to() {
    let files = Files::new("", "");
    write(&files.config(), "umask = 0");
    assert!(files.error().contains("[[listen]] address = "));
}

#[test]
fn one_wrong_account_and_none_is_loaded() {
    let good = account("alice", "");
    for (bad, error) in [
        ("[[user]]\nname = \"bob\"\nuid = 5\n", "8:1: user.home: missing; expected a string, an absolute path"),
        ("[[user]]\nname = \"a/b\"\n", "9:8: user.name: expected a string of 1 to 64 bytes"),
        (&account("alice", ""), "8:1: user.name: \"alice\" is listed twice"),
        (
            &account("bob", "groups = [\"no-such-group\"]"),
            "14:10: user.groups: the system has no group \"no-such-group\"",
        ),
        (&account("bob", "uid = 4711"), "duplicate key"),
        (
            &account("bob", "").replace("m=65536", "m=8"),
            "10:12: user.password: expected an argon2id hash: m (memory in KiB) must be 19456 to 1048576; make one with",
        ),
        (&account("bob", "").replace("uid = ", "uid = \"no-such-user\" # "), "11:7: user.uid: the system has no user"),
    ] {
        let got = wrong_users(&format!("{good}{bad}"));
        assert!(got.starts_with("users.toml:") && got.contains(error), "{bad}: {got}");
    }
}

#[test]
fn an_account_belongs_to_hosts_there_are() {
    let hosts = "[[host]]\nname = \"a.test\"\n[[host]]\nname = \"B.test.\"";
    let of = |names: &str| Files::new(hosts, &account("alice", &format!("hosts = {names}")));
    let (settings, users) = of("[\"b.test\", \"A.TEST\"]").load().unwrap();
    assert_eq!(users.values().next().unwrap().hosts, [settings.hosts[1].clone(), settings.hosts[0].clone()]);
    let unknown = "users.toml:1:1: user.hosts: \"c.test\" is the name of no [[host]] in caisson.toml(5)";
    assert_eq!(of("[\"c.test\"]").error(), unknown);
    assert!(of("[\"no name\"]").error().contains("user.hosts: expected an array of at most 16 names of [[host]]"));
    assert!(wrong("[[host]]\nname = \"-\"").contains("5:8: host.name: expected a string, a host name"));
    assert!(wrong("[[host]]\nbanner = \"x\"").contains("4:1: host.name: missing"));
    assert!(wrong(&format!("{hosts}\n[[host]]\nname = \"A.test\"")).contains("8:1: host.name: listed twice"));
}

#[test]
fn more_sections_than_workers_can_be_told_of_are_refused() {
    let host = |n: usize| format!("[[host]]\nname = \"h{n}.test\"\nbanner = \"{}\"\n", "x".repeat(1024));
    let many = |count| (0..count).map(host).collect::<String>();
    assert!(Files::new(&many(15), "").load().is_ok());
    // The sixteenth section of three lines is one too many.
    assert!(wrong(&many(16)).contains(":49:1: host: expected less in repeated sections"), "{}", wrong(&many(16)));
}

#[test]
fn a_hash_that_authd_would_refuse_is_refused_here_with_its_place() {
    let salt = "c2FsdHNhbHRzYWx0c2FsdA";
    for (from, to, why) in [
        ("m=65536", "m=+65536", "m (memory in KiB)"),
        ("m=65536", "m=065536", "m (memory in KiB)"),
        ("m=65536", "m=19455", "m (memory in KiB)"),
        ("m=65536", "m=4294967296", "m (memory in KiB)"),
        ("t=3", "t=03", "t (passes)"),
        ("p=1", "p=1,keyid=AA", "p (lanes)"),
        ("v=19", "v=16", "v=19"),
        // One character more than whole bytes need; bits behind the last byte; padding; too long; too short.
        (salt, "c2FsdHNhbHRzYWx0c", "the salt is not unpadded base64"),
        (salt, "c2FsdHNhbHRzYWx0c2FsdB", "the salt is not unpadded base64"),
        (salt, "c2FsdHNhbHRzYWx0c2FsdA==", "the salt is not unpadded base64"),
        (salt, &"YWFh".repeat(17), "needs a salt of 8 to 48"),
        (salt, "YWFh", "needs a salt of 8 to 48"),
        ("password = \"", "password = \" ", "begins with $argon2id$"),
    ] {
        let user = account("alice", "");
        assert!(user.contains(from) && Files::new("", &user).load().is_ok());
        let got = wrong_users(&user.replace(from, to));
        assert!(got.starts_with("users.toml:3:12: user.password: expected an argon2id hash: "), "{to}: {got}");
        assert!(got.contains(why) && got.ends_with("; make one with caissonctl hash-password"), "{to}: {got}");
        assert!(!got.contains("YcUdS5"), "{got}");
    }
}

#[test]
fn what_stands_in_place_of_a_hash_is_not_shown() {
    for bad in ["password = \"hunter2\"", "password = [\"hunter2\"]"] {
        let got = wrong_users(&format!("[[user]]\n{bad}\n"));
        assert!(got.contains("user.password: expected") && !got.contains("hunter2"), "{got}");
    }
}

#[test]
fn root_is_no_account_unless_the_configuration_says_so() {
    let root = account("toor", "").replace("uid = 4711", "uid = 0").replace(&format!("uid = {}", uid()), "uid = 0");
    assert!(wrong_users(&root).contains("user.uid: 0 is root; refused unless allow_root_accounts = true"));
    if uid() == 0 {
        assert!(Files::new("allow_root_accounts = true", &root).load().is_ok());
    }
}

#[test]
fn an_account_is_not_one_of_our_own_users() {
    if uid() != 0 {
        return;
    }
    let games = account("bob", "").replace("uid = 4711", "uid = \"games\"");
    assert!(wrong_users(&games).contains("is worker_user or authd_user"));
    let same = Files::new("", "");
    let text = fs::read_to_string(same.config()).unwrap().replace("\"irc\"", "\"games\"");
    write(&same.config(), &text);
    assert!(same.error().contains("authd_user: "), "{}", same.error());
}

#[test]
fn without_root_only_the_own_uid_can_be_served() {
    if uid() == 0 {
        return;
    }
    let other = account("bob", "").replace(&format!("uid = {}", uid()), "uid = 1");
    assert!(wrong_users(&other).contains("can serve its own uid only"));
}

#[test]
fn anonymous_needs_a_home_and_a_uid_and_is_off_by_default() {
    assert!(wrong("[anonymous]\nenabled = true").contains("anonymous.uid: missing"));
    let own = if uid() == 0 { 65_534 } else { uid() };
    let text = format!("[anonymous]\nenabled = true\nhome = \"/srv\"\nuid = {own}\ngid = 7");
    let (_, users) = Files::new(&text, "").load().unwrap();
    let names: Vec<String> = users.keys().map(ToString::to_string).collect();
    assert_eq!(names, ["anonymous", "ftp"]);
    assert!(users.values().all(|user| user.any_password && user.hash.is_none()));
    let off = text.replace("true", "false");
    assert!(Files::new(&off, "").load().unwrap().1.is_empty());
}

#[test]
fn whatever_is_done_to_a_file_the_answer_is_one_line_with_its_place() {
    let files = Files::new(
        "umask = 0o077\nbanner = \"a\\nb\"\n[performance]\nsplice = false",
        &account("bob", "groups = [1, 2]"),
    );
    let (config, users) = (fs::read(files.config()).unwrap(), fs::read(files.users()).unwrap());
    let mut seed = 1_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below
    };
    for round in 0..2000 {
        let (path, mut text) = match round % 2 {
            0 => (files.config(), config.clone()),
            _ => (files.users(), users.clone()),
        };
        for _ in 0..=random(3) {
            let at = random(text.len());
            match random(4) {
                0 => text[at] = b"[]{}\"'=.,#\n\0\xff-90aZ"[random(18)],
                1 => drop(text.remove(at)),
                2 => text.insert(at, b"[]\"=\n\xc3_1"[random(8)]),
                _ => text.truncate(at.max(1)),
            }
        }
        fs::write(&path, &text).unwrap();
        if let Err(error) = files.load() {
            let named = ["caisson.toml", "users.toml", "users_file"].iter().any(|name| error.contains(name));
            assert!(named && !error.contains('\n'), "{}\n{error}", text.escape_ascii());
        }
        write(&files.config(), std::str::from_utf8(&config).unwrap());
        write(&files.users(), std::str::from_utf8(&users).unwrap());
    }
}

#[test]
fn tls_is_told_to_workers_where_there_is_a_certificate_and_asked_for_nowhere_else() {
    use child_ipc::link::settings::{Require, Resumption, Tls};
    let pair = "[[certificate]]\ncertificate = \"/c.pem\"\nkey = \"/k.pem\"\n";
    let implicit = "[[listen]]\naddress = \"127.0.0.1:990\"\ntls = \"implicit\"\n";
    let head = "tls_required = \"login\"\ndata_resumption = \"required\"\n";
    let (settings, _) = Files::new(&format!("{head}{implicit}{pair}"), "").load().unwrap();
    assert_eq!(settings.config.certificates, [PathBuf::from("/c.pem"), "/k.pem".into()]);
    let implicit_at = vec!["127.0.0.1:990".parse().unwrap()];
    let (require, resumption) = (Require::Login, Resumption::Required);
    let expected = Tls { implicit: implicit_at, require, resumption, ..Tls::default() };
    assert_eq!(settings.ftp.tls, Some(expected));
    let (settings, _) = Files::new("", "").load().unwrap();
    assert_eq!(settings.ftp.tls, None);
    for (config, place) in [(head, "caisson.toml:1:1: tls_required: "), (implicit, "caisson.toml:4:1: listen.tls: ")] {
        let error = Files::new(config, "").error();
        assert!(error.starts_with(place) && error.ends_with("make-certificate makes one to begin with"), "{error}");
    }
}

#[test]
fn a_certificate_has_a_key_and_there_are_sixteen_at_most() {
    let pair = "[[certificate]]\ncertificate = \"/c.pem\"\nkey = \"/k.pem\"\n";
    assert!(Files::new(&pair.repeat(16), "").load().is_ok());
    assert!(Files::new(&pair.repeat(17), "").error().contains("certificate.certificate: expected at most 16 sections"));
    let error = Files::new("[[certificate]]\ncertificate = \"/c.pem\"\n", "").error();
    assert!(error.contains("certificate.key: missing; expected a string, an absolute path"), "{error}");
    let long = format!("[[certificate]]\ncertificate = \"/{}\"\nkey = \"/k\"\n", "c".repeat(1024));
    assert!(Files::new(&long, "").error().contains("of less than 1024 bytes"));
}

#[test]
fn clients_are_asked_for_certificates_where_an_account_has_some() {
    use child_ipc::link::{settings::FtpSettings, user_record::CertificateLogin};
    let pair = "[[certificate]]\ncertificate = \"/c.pem\"\nkey = \"/k.pem\"\n";
    let more = format!("certificate_login = \"second-factor\"\ncertificates = [\"{}\"]", "ab".repeat(32));
    let (settings, users) = Files::new(pair, &account("alice", &more)).load().unwrap();
    let alice = users.values().next().unwrap();
    assert_eq!(alice.certificate_login, CertificateLogin::SecondFactor);
    assert_eq!(alice.certificates, [[0xab; 32]]);
    let told: FtpSettings = unpack(&settings.config.workers).unwrap();
    assert!(told.tls.unwrap().asks_certificates);
    let (settings, _) = Files::new(pair, &account("alice", "")).load().unwrap();
    let told: FtpSettings = unpack(&settings.config.workers).unwrap();
    assert!(!told.tls.unwrap().asks_certificates);
}

#[test]
fn what_looks_like_protection_by_a_certificate_and_is_none_is_refused() {
    let pair = "[[certificate]]\ncertificate = \"/c.pem\"\nkey = \"/k.pem\"\n";
    let listed = format!("certificates = [\"{}\"]", "ab".repeat(32));
    let with = |login: &str, more: &str| account("alice", &format!("certificate_login = \"{login}\"\n{more}"));
    let bare =
        |users: String| users.lines().filter(|line| !line.starts_with("password")).collect::<Vec<_>>().join("\n");
    for (users, error) in [
        (account("alice", &listed), "users.toml:1:1: user.certificate_login: certificates are listed; expected"),
        (with("login", ""), "users.toml:1:1: user.certificates: missing; certificate_login needs at least one"),
        (with("second-factor", ""), "users.toml:1:1: user.certificates: missing; certificate_login needs at least one"),
        (
            with("login", &listed),
            "users.toml:1:1: user.password: is never asked for with certificate_login = \"login\"",
        ),
        (bare(with("second-factor", &listed)), "users.toml:1:1: user.password: missing; certificate_login ="),
        (with("maybe", &listed), "users.toml:7:21: user.certificate_login: expected \"no\" or \"second-factor\" or"),
        (
            with("login", "certificates = [\"ab\"]"),
            "users.toml:8:16: user.certificates: \"ab\" is no SHA-256 fingerprint",
        ),
    ] {
        let got = Files::new(pair, &users).error();
        assert!(got.starts_with(error), "{got}");
    }
    assert!(Files::new(pair, &bare(with("login", &listed))).load().is_ok());
    let got = wrong_users(&with("second-factor", &listed));
    assert!(got.starts_with("users.toml:1:1: user.certificates: need TLS: a section [[certificate]]"), "{got}");
}
