//! Client certificates (issue 4, 1): a second factor, or the login; with curl, and with a TLS client of our own.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::Arc,
    time::Duration,
};

use e2e::{Daemon, Site, root_or_skip, site, wait::within};
use nix::sys::signal::Signal;
use rcgen::{CertificateParams, KeyPair};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    version::{TLS12, TLS13},
};

/// A certificate and its key, as files.
struct Pair {
    certificate: PathBuf,
    key: PathBuf,
}

impl Pair {
    /// In a directory, under a name.
    fn make(dir: &Path, name: &str, algorithm: &'static rcgen::SignatureAlgorithm) -> Self {
        let key = KeyPair::generate_for(algorithm).expect("a key");
        let certificate = CertificateParams::new(vec!["localhost".to_owned()]).expect("names").self_signed(&key);
        let pair = Pair { certificate: dir.join(format!("{name}.pem")), key: dir.join(format!("{name}.key")) };
        site::write_private(&pair.certificate, &certificate.expect("a certificate").pem());
        site::write_private(&pair.key, &key.serialize_pem());
        pair
    }

    /// As caisson-users(5) has it made.
    fn fingerprint(&self) -> String {
        let mut openssl = Command::new("openssl");
        openssl.args(["x509", "-noout", "-fingerprint", "-sha256", "-in"]).arg(&self.certificate);
        let printed = openssl.output().expect("openssl").stdout;
        let printed = String::from_utf8(printed).expect("text");
        printed.trim().split_once('=').expect("a fingerprint").1.to_owned()
    }

    /// As the log has it.
    fn logged(&self) -> String {
        self.fingerprint().replace(':', "").to_lowercase()
    }
}

/// alice has a second factor, robot logs in by a certificate, bob by his password; and certificates: the server's, alice's,
/// robot's, and a stranger's.
struct Scene {
    daemon: Daemon,
    server: Pair,
    alice: Pair,
    robot: Pair,
    stranger: Pair,
}

impl Scene {
    fn set(scenario: &str) -> Option<Self> {
        if !root_or_skip(scenario) {
            return None;
        }
        let mut site = Site::new();
        let pair = |name, algorithm| Pair::make(&site.dir, name, algorithm);
        let server = pair("server", &rcgen::PKCS_ECDSA_P256_SHA256);
        let (alice, robot) = (pair("alice", &rcgen::PKCS_ECDSA_P384_SHA384), pair("robot", &rcgen::PKCS_RSA_SHA256));
        let stranger = pair("stranger", &rcgen::PKCS_ECDSA_P256_SHA256);
        let (certificate, key) = (server.certificate.display(), server.key.display());
        site.section("certificate", &format!("certificate = \"{certificate}\"\nkey = \"{key}\""));
        site.set("data_resumption = \"required\"");
        site.add_account("robot", 61_813);
        site.account_mut("alice").certificates = Some(("second-factor", vec![alice.fingerprint()]));
        site.account_mut("robot").certificates = Some(("login", vec![robot.fingerprint()]));
        site.write();
        let daemon = Daemon::start(site);
        for name in ["alice", "bob", "robot"] {
            daemon.put(name, "f", format!("{name}'s").as_bytes());
        }
        Some(Scene { daemon, server, alice, robot, stranger })
    }

    /// curl fetches `f`, with a certificate or without, all under TLS.
    fn curl(&self, user: &str, password: &str, shows: Option<&Pair>) -> Output {
        let mut curl = Command::new("curl");
        curl.args(["--disable", "--silent", "--show-error", "--verbose", "--ssl-reqd", "--max-time", "60"]);
        curl.arg("--cacert").arg(&self.server.certificate).args(["--user", &format!("{user}:{password}")]);
        if let Some(pair) = shows {
            curl.arg("--cert").arg(&pair.certificate).arg("--key").arg(&pair.key);
        }
        let address = self.daemon.address();
        curl.arg("--connect-to").arg(format!("localhost:{0}:{1}:{0}", address.port(), address.ip()));
        curl.arg(format!("ftp://localhost:{}/f", address.port()));
        curl.output().expect("curl")
    }

    fn fetches(&self, user: &str, password: &str, shows: Option<&Pair>) {
        let output = self.curl(user, password, shows);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.stdout, format!("{user}'s").as_bytes(), "{said}");
    }

    /// curl is told 530 at the end, and nothing before that tells why.
    fn is_refused(&self, user: &str, password: &str, shows: Option<&Pair>) {
        let output = self.curl(user, password, shows);
        let said = String::from_utf8_lossy(&output.stderr);
        // CURLE_LOGIN_DENIED
        assert_eq!(output.status.code(), Some(67), "{said}");
        assert!(said.contains("< 331 Password, please.") && said.contains("< 530 Login incorrect."), "{said}");
    }

    fn password(&self, user: &str) -> &'static str {
        self.daemon.site.account(user).password
    }

    /// A client of our own, greeted and under TLS.
    fn client(&self, shows: Option<&Pair>, version: &'static SupportedProtocolVersion) -> Client {
        let mut client = BufReader::new(TcpStream::connect(self.daemon.address()).expect("connect"));
        client.get_ref().set_read_timeout(Some(Duration::from_secs(60))).expect("setsockopt");
        let mut line = String::new();
        client.read_line(&mut line).expect("a greeting");
        client.get_ref().write_all(b"AUTH TLS\r\n").expect("sent");
        line.clear();
        client.read_line(&mut line).expect("a reply");
        assert!(line.starts_with("234 "), "{line}");
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&self.server.certificate).expect("PEM")).expect("a root");
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[version])
            .expect("a version")
            .with_root_certificates(roots);
        let config = match shows {
            None => config.with_no_client_auth(),
            Some(pair) => {
                let chain = vec![CertificateDer::from_pem_file(&pair.certificate).expect("PEM")];
                let key = PrivateKeyDer::from_pem_file(&pair.key).expect("PEM");
                config.with_client_auth_cert(chain, key).expect("a pair")
            }
        };
        let tls = ClientConnection::new(Arc::new(config), "localhost".try_into().expect("a name")).expect("a client");
        Client(BufReader::new(StreamOwned::new(tls, client.into_inner())))
    }
}

struct Client(BufReader<StreamOwned<ClientConnection, TcpStream>>);

impl Client {
    /// The reply to a line, which has one line itself.
    fn told(&mut self, line: &str) -> String {
        self.0.get_mut().write_all(format!("{line}\r\n").as_bytes()).expect("sent");
        let mut reply = String::new();
        self.0.read_line(&mut reply).expect("a reply");
        reply.trim_end().to_owned()
    }
}

#[test]
fn a_second_factor_is_the_right_certificate_beside_the_right_password() {
    let Some(scene) = Scene::set("second factor") else { return };
    let right = scene.password("alice");
    scene.fetches("alice", right, Some(&scene.alice));
    scene.daemon.logged(&["authd: login ", "user=\"alice\"", &format!("certificate={}", scene.alice.logged())]);
    scene.is_refused("alice", right, None);
    scene.daemon.logged(&["why=no-certificate", "user=\"alice\""]);
    scene.is_refused("alice", right, Some(&scene.robot));
    scene.daemon.logged(&["why=wrong-certificate", &format!("certificate={}", scene.robot.logged())]);
    scene.is_refused("alice", "wrong", Some(&scene.alice));
    scene.daemon.logged(&["why=wrong-password", &format!("certificate={}", scene.alice.logged())]);
    // Who has none, or one that nobody knows, logs in with a password as ever.
    let right = scene.password("bob");
    scene.fetches("bob", right, None);
    scene.fetches("bob", right, Some(&scene.stranger));
    scene.is_refused("bob", "wrong", Some(&scene.alice));
}

#[test]
fn a_certificate_that_is_the_login_is_answered_with_232_and_nothing_else_lets_in() {
    let Some(scene) = Scene::set("login by certificate") else { return };
    scene.fetches("robot", "none", Some(&scene.robot));
    scene.daemon.logged(&["authd: login ", "user=\"robot\"", &format!("certificate={}", scene.robot.logged())]);
    scene.is_refused("robot", "none", None);
    scene.is_refused("robot", "none", Some(&scene.stranger));
    scene.is_refused("nobody", "none", Some(&scene.robot));

    let mut client = scene.client(Some(&scene.robot), &TLS13);
    // A name that it is not for is asked for its password; what follows is not spoilt by that.
    assert_eq!(client.told("USER bob"), "331 Password, please.");
    assert_eq!(client.told("PASS wrong"), "530 Login incorrect.");
    assert_eq!(client.told("USER robot"), "232 Logged in by the certificate.");
    assert_eq!(client.told("TYPE I").get(..4), Some("200 "));
    assert_eq!(client.told("SIZE f"), "213 7");
    assert_eq!(client.told("PASS x"), "503 Logged in already.");
    // It is good for one login.
    assert_eq!(client.told("USER robot"), "331 Password, please.");
    assert_eq!(client.told("PASS x"), "530 Login incorrect.");

    // Two lines at once: the second one waits for the answer to the first.
    let mut client = scene.client(Some(&scene.robot), &TLS13);
    assert_eq!(client.told("USER robot\r\nPWD"), "232 Logged in by the certificate.");
    assert!(client.told("NOOP").starts_with("257 \"/\""));
}

/// What a program prints; it must succeed.
fn prints(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|cause| panic!("{command:?}: {cause}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn lftp_and_python_log_in_by_a_certificate() {
    let Some(scene) = Scene::set("other clients") else { return };
    let (address, Pair { certificate, key }) = (scene.daemon.address(), &scene.robot);
    let mut lftp = Command::new("lftp");
    lftp.args(["--norc", "-u", "robot,none", "-e"]).arg(format!(
        "set ssl:cert-file {}; set ssl:key-file {}; set ssl:ca-file {}; set ssl:check-hostname no; \
         set ftp:ssl-force yes; set ftp:ssl-protect-data yes; set net:max-retries 1; cat f; bye",
        certificate.display(),
        key.display(),
        scene.server.certificate.display()
    ));
    assert_eq!(prints(lftp.arg(format!("ftp://{address}"))), "robot's");
    let mut python = Command::new("python3");
    python.arg("-c").arg(
        "import ftplib, ssl, sys\n\
         host, port, trusted, certificate, key = sys.argv[1:]\n\
         context = ssl.create_default_context(cafile=trusted)\n\
         context.check_hostname = False\n\
         context.load_cert_chain(certificate, key)\n\
         client = ftplib.FTP_TLS(context=context)\n\
         client.connect(host, int(port))\n\
         print(client.login('robot', 'none'), client.pwd())\n",
    );
    python.args([address.ip().to_string(), address.port().to_string()]);
    python.arg(&scene.server.certificate).arg(certificate).arg(key);
    assert_eq!(prints(&mut python).trim(), "232 Logged in by the certificate. /");
}

#[test]
fn under_tls_1_2_and_in_clear_a_certificate_counts_as_none() {
    let Some(scene) = Scene::set("TLS 1.2") else { return };
    let mut client = scene.client(Some(&scene.robot), &TLS12);
    assert_eq!(client.told("USER robot"), "331 Password, please.");
    assert_eq!(client.told("PASS x"), "530 Login incorrect.");
    scene.daemon.logged(&["why=no-certificate", "user=\"robot\""]);
    assert_eq!(client.told("USER alice"), "331 Password, please.");
    assert_eq!(client.told(&format!("PASS {}", scene.password("alice"))), "530 Login incorrect.");
    assert_eq!(client.told("USER bob"), "331 Password, please.");
    assert_eq!(client.told(&format!("PASS {}", scene.password("bob"))), "230 Logged in.");
    let mut client = scene.daemon.connect();
    client.expect("USER alice", &[331]);
    client.expect(format!("PASS {}", scene.password("alice")), &[530]);
}

#[test]
fn a_login_by_certificate_obeys_what_its_account_requires_of_data_connections() {
    let Some(mut scene) = Scene::set("login by certificate, data under TLS") else { return };
    scene.daemon.site.account_mut("robot").tls_required = Some("data");
    scene.daemon.site.write();
    scene.daemon.signal(Signal::SIGHUP);
    scene.daemon.logged(&["monitor: process reloaded"]);
    let mut client = scene.client(Some(&scene.robot), &TLS13);
    assert_eq!(client.told("USER robot"), "232 Logged in by the certificate.");
    assert_eq!(client.told("EPSV").get(..4), Some("229 "));
    assert_eq!(client.told("RETR f"), "521 Data connections have to be under TLS: use PROT P.");
    scene.fetches("robot", "none", Some(&scene.robot));
    // In clear it is what it would be with any other account.
    let mut clear = scene.daemon.connect();
    clear.expect("USER robot", &[331]);
    clear.expect("PASS none", &[530]);
    scene.daemon.logged(&["why=no-tls", "user=\"robot\""]);
}

#[test]
fn a_certificate_that_is_taken_out_lets_nobody_in_after_the_reload_and_then_nobody_is_asked() {
    let Some(mut scene) = Scene::set("reload") else { return };
    scene.fetches("robot", "none", Some(&scene.robot));
    let mut before = scene.client(Some(&scene.robot), &TLS13);
    let fingerprint = scene.stranger.fingerprint();
    scene.daemon.site.account_mut("robot").certificates = Some(("login", vec![fingerprint]));
    scene.daemon.site.write();
    scene.daemon.signal(Signal::SIGHUP);
    scene.daemon.logged(&["monitor: process reloaded"]);
    scene.is_refused("robot", "none", Some(&scene.robot));
    scene.fetches("robot", "none", Some(&scene.stranger));
    // Whoever had connected before has shown what counts no more.
    assert_eq!(before.told("USER robot"), "331 Password, please.");

    let asked = |scene: &Scene| {
        let said = scene.curl("bob", scene.password("bob"), Some(&scene.stranger)).stderr;
        String::from_utf8_lossy(&said).contains("TLS handshake, Request CERT")
    };
    assert!(asked(&scene));
    let without = |text: String| {
        let kept = |line: &&str| !line.starts_with("certificate");
        text.lines().filter(kept).collect::<Vec<_>>().join("\n")
    };
    let users = scene.daemon.site.users();
    site::write_private(&users, &without(fs::read_to_string(&users).expect("users.toml")));
    scene.daemon.signal(Signal::SIGHUP);
    let twice = || (scene.daemon.log().matches("monitor: process reloaded").count() == 2).then_some(());
    assert!(within(Duration::from_secs(20), twice).is_some(), "{}", scene.daemon.log());
    assert!(!asked(&scene));
}
