//! The place of a scenario: a directory with accounts' homes, `users.toml` and `caisson.toml`; gone when dropped.
//!
//! This is the one place where scenarios' configuration is written. Uids are fixed high numbers nobody has.

use std::{
    fmt::Write as _,
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

use crate::programs;

/// Whom workers run as: users that every Debian has and nobody uses (base-passwd), so that no test adds one.
pub const WORKER_USER: &str = "games";
/// Whom authd runs as.
pub const AUTHD_USER: &str = "irc";
/// The uid and gid of the ordinary user who starts `caissond serve`.
pub const ORDINARY_UID: u32 = 61_803;

/// The control port of every daemon; each has an address of its own.
const PORT: u16 = 18_021;
/// The port of clients that begin with TLS.
const IMPLICIT: u16 = 18_990;
/// The passive range of every daemon.
const PASSIVE: (u16, u16) = (18_100, 18_499);

/// An account of `users.toml`.
#[derive(Debug, Clone)]
pub struct Account {
    /// Login name.
    pub name: String,
    /// Its password in clear.
    pub password: &'static str,
    /// The hash of that.
    pub hash: &'static str,
    /// Its uid and gid.
    pub uid: u32,
    /// Its root directory.
    pub home: PathBuf,
    /// What it may do; `None`: what the daemon gives by default.
    pub permissions: Option<Vec<&'static str>>,
    /// Whether nobody may log in to it.
    pub locked: bool,
    /// Virtual hosts it belongs to; none is everywhere.
    pub hosts: Vec<&'static str>,
    /// `certificate_login`, and `certificates`; with "login" it has no password.
    pub certificates: Option<(&'static str, Vec<String>)>,
    /// `tls_required`.
    pub tls_required: Option<&'static str>,
}

/// Passwords with their hashes at the lowest cost that is accepted (19 MiB, 2 passes).
const PASSWORDS: [(&str, &str); 2] = [
    (
        "correct horse",
        "$argon2id$v=19$m=19456,t=2,p=1$Y2Fpc3Nvbi1zYWx0LWFhYQ$yh5HnrwloIJBOKnlhqknqYBFCRpFiSj97l1B3X4gFhY",
    ),
    (
        "battery staple",
        "$argon2id$v=19$m=19456,t=2,p=1$Y2Fpc3Nvbi1zYWx0LWJiYg$37c79lLLlPcNQpcgNEGY1sGzeitXv+3Dhi1fC3wKqFw",
    ),
];

/// Every permission of caisson-users(5).
pub const EVERY_PERMISSION: [&str; 10] =
    ["read", "write", "overwrite", "list", "delete", "rename", "mkdir", "rmdir", "chmod", "times"];

/// The place of one daemon.
#[derive(Debug)]
pub struct Site {
    /// The directory that holds all of it.
    pub dir: PathBuf,
    /// Where the daemon listens.
    pub address: SocketAddr,
    /// Its passive ports, first and last.
    pub passive: (u16, u16),
    /// Its accounts: `alice` and `bob`, with all permissions, to begin with.
    pub accounts: Vec<Account>,
    /// Where its programs are.
    pub programs: PathBuf,
    /// Lines of `caisson.toml` in front of its tables.
    settings: Vec<String>,
    /// The line behind the address of its listener.
    listen: String,
    /// Repeated tables of `caisson.toml`, as they are written.
    sections: Vec<String>,
    /// Tables of `caisson.toml`: header without brackets, lines.
    tables: Vec<(String, Vec<String>)>,
}

impl Site {
    /// A place below the machine's directory for temporary files.
    #[must_use]
    pub fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// A place for hundreds of megabytes: in memory where there is plenty.
    #[must_use]
    pub fn roomy() -> Self {
        const PLENTY: u64 = 6 << 30;
        let shm = Path::new("/dev/shm");
        let free = rustix::fs::statvfs(shm).map_or(0, |s| s.f_bavail * s.f_frsize).min(available_memory());
        if free >= PLENTY { Self::below(shm) } else { Self::new() }
    }

    fn below(parent: &Path) -> Self {
        let (address, dir) = claim(parent);
        let mut site = Site {
            dir,
            address: SocketAddr::new(IpAddr::V4(address), PORT),
            passive: PASSIVE,
            accounts: Vec::new(),
            programs: programs::of_this_profile(),
            settings: Vec::new(),
            listen: String::new(),
            sections: Vec::new(),
            tables: Vec::new(),
        };
        site.set(&format!("worker_user = \"{WORKER_USER}\"")).set(&format!("authd_user = \"{AUTHD_USER}\""));
        let control = format!("control_socket = \"{}\"", site.control_socket().display());
        site.set("workers = 2").set(&control);
        site.add_account("alice", 61_811);
        site.add_account("bob", 61_812);
        site
    }

    /// Adds an account with all permissions and an empty home of its own uid.
    pub fn add_account(&mut self, name: &str, uid: u32) -> &mut Account {
        let home = self.dir.join("homes").join(name);
        fs::create_dir_all(&home).expect("make a home");
        give(&home, uid);
        let (password, hash) = PASSWORDS[self.accounts.len() % PASSWORDS.len()];
        let permissions = Some(EVERY_PERMISSION.to_vec());
        self.accounts.push(Account {
            name: name.to_owned(),
            password,
            hash,
            uid,
            home,
            permissions,
            locked: false,
            hosts: Vec::new(),
            certificates: None,
            tls_required: None,
        });
        self.accounts.last_mut().expect("just pushed")
    }

    /// The account called `name`.
    #[must_use]
    pub fn account(&self, name: &str) -> &Account {
        self.accounts.iter().find(|a| a.name == name).unwrap_or_else(|| panic!("no account {name}"))
    }

    /// The same, to change it before the daemon starts.
    pub fn account_mut(&mut self, name: &str) -> &mut Account {
        self.accounts.iter_mut().find(|a| a.name == name).unwrap_or_else(|| panic!("no account {name}"))
    }

    /// Gives it copies of the programs, which may be swapped and which an ordinary user may execute; where they are.
    pub fn copy_programs(&mut self) -> PathBuf {
        let copies = self.dir.join("programs");
        programs::copy(&self.programs, &copies);
        self.programs.clone_from(&copies);
        copies
    }

    /// Adds a line to the front of `caisson.toml`, in place of one for the same setting.
    pub fn set(&mut self, line: &str) -> &mut Self {
        let name = |l: &str| l.split('=').next().unwrap_or(l).trim().to_owned();
        self.settings.retain(|old| name(old) != name(line));
        self.settings.push(line.to_owned());
        self
    }

    /// Puts a line behind the address of its listener, in place of the one before.
    pub fn listen(&mut self, line: &str) -> &mut Self {
        line.clone_into(&mut self.listen);
        self
    }

    /// Adds a table `[[name]]` of these lines.
    pub fn section(&mut self, name: &str, lines: &str) -> &mut Self {
        self.sections.push(format!("[[{name}]]\n{lines}\n"));
        self
    }

    /// Adds a line to the table `[table]`.
    pub fn set_in(&mut self, table: &str, line: &str) -> &mut Self {
        match self.tables.iter_mut().find(|(name, _)| name == table) {
            Some((_, lines)) => lines.push(line.to_owned()),
            None => self.tables.push((table.to_owned(), vec![line.to_owned()])),
        }
        self
    }

    /// Gives it a certificate for `localhost` and its own address, by `caissonctl make-certificate`. Clients trust it when
    /// they are told to trust that very file.
    pub fn certify(&mut self) -> &mut Self {
        let mut command = Command::new(self.programs.join("caissonctl"));
        command.arg("make-certificate").arg(&self.dir).arg("localhost").arg(self.address.ip().to_string());
        let made = command.output().expect("run caissonctl");
        assert!(made.status.success(), "{made:?}");
        self.sections.push(String::from_utf8(made.stdout).expect("a section of caisson.toml"));
        self
    }

    /// Lets it listen at another port of its address too, for clients that begin with TLS.
    pub fn listen_implicitly(&mut self) -> SocketAddr {
        let address = SocketAddr::new(self.address.ip(), IMPLICIT);
        self.section("listen", &format!("address = \"{address}\"\ntls = \"implicit\""));
        address
    }

    /// Where the certificate of [`Site::certify`] is.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.dir.join("certificate.pem")
    }

    /// Where its key is.
    #[must_use]
    pub fn key(&self) -> PathBuf {
        self.dir.join("key.pem")
    }

    /// Where `caisson.toml` is.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.dir.join("caisson.toml")
    }

    /// Where `users.toml` is.
    #[must_use]
    pub fn users(&self) -> PathBuf {
        self.dir.join("users.toml")
    }

    /// Where the admin's socket is.
    #[must_use]
    pub fn control_socket(&self) -> PathBuf {
        self.dir.join("control.sock")
    }

    /// Writes both files.
    pub fn write(&self) {
        write_private(&self.config(), &self.config_text());
        write_private(&self.users(), &self.users_text());
    }

    fn config_text(&self) -> String {
        let (first, last) = self.passive;
        let mut text = format!("users_file = \"{}\"\npassive_ports = \"{first}-{last}\"\n", self.users().display());
        for line in &self.settings {
            let _ = writeln!(text, "{line}");
        }
        let _ = writeln!(text, "\n[[listen]]\naddress = \"{}\"\n{}", self.address, self.listen);
        text += &self.sections.concat();
        for (name, lines) in &self.tables {
            let _ = writeln!(text, "\n[{name}]\n{}", lines.join("\n"));
        }
        text
    }

    fn users_text(&self) -> String {
        let mut text = String::new();
        for a in &self.accounts {
            let (name, hash, uid, home) = (&a.name, a.hash, a.uid, a.home.display());
            let _ = writeln!(text, "[[user]]\nname = \"{name}\"\nuid = {uid}\ngid = {uid}\nhome = \"{home}\"");
            let certificate_login = a.certificates.as_ref().map_or("no", |(login, _)| login);
            if certificate_login != "login" {
                let _ = writeln!(text, "password = \"{hash}\"");
            }
            if let Some((_, list)) = &a.certificates {
                let _ = writeln!(text, "certificate_login = \"{certificate_login}\"\ncertificates = {list:?}");
            }
            if let Some(permissions) = &a.permissions {
                let _ = writeln!(text, "permissions = {permissions:?}");
            }
            if let Some(tls_required) = a.tls_required {
                let _ = writeln!(text, "tls_required = {tls_required:?}");
            }
            let _ = writeln!(text, "hosts = {:?}\nlocked = {}\n", a.hosts, a.locked);
        }
        text
    }
}

impl Default for Site {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Writes a file that only its owner may read.
pub fn write_private(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|cause| panic!("write {}: {cause}", path.display()));
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("chmod");
}

/// Gives a file or directory to `uid` and its group of the same number; without root it stays ours.
pub fn give(path: &Path, uid: u32) {
    if nix::unistd::Uid::effective().is_root() {
        chown(path, Some(uid), Some(uid)).unwrap_or_else(|cause| panic!("chown {}: {cause}", path.display()));
    }
}

/// A loopback address and a directory that no other scenario of this machine has.
fn claim(parent: &Path) -> (Ipv4Addr, PathBuf) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // 63 for each process; the first one is long gone when the 64th comes.
    let number = NEXT.fetch_add(1, Ordering::Relaxed) % 63;
    let unique = (std::process::id() * 64 + number + 1) & 0x00ff_ffff;
    let [_, a, b, c] = unique.to_be_bytes();
    let dir = parent.join(format!("caisson-e2e-{unique:06x}"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir(&dir).unwrap_or_else(|cause| panic!("make {}: {cause}", dir.display()));
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).expect("chmod");
    (Ipv4Addr::new(127, a, b, c), dir)
}

fn available_memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"));
    line.and_then(|l| l.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}
