//! `openssl s_client -starttls ftp`: what people look at a server with.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use e2e::{Daemon, Site, root_or_skip, wait::within};

/// What it says of a session in which these lines are sent.
fn session(daemon: &Daemon, options: &[&str], lines: &str) -> String {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-verify_return_error", "-CAfile"]).arg(daemon.site.certificate());
    command.arg("-verify_ip").arg(daemon.address().ip().to_string()).args(options);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("openssl");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(lines.as_bytes()).expect("write");
    // Its end would be the end of the session.
    if within(e2e::wait::LIMIT, || child.try_wait().expect("wait")).is_none() {
        child.kill().expect("kill");
    }
    let output = child.wait_with_output().expect("wait");
    drop(input);
    [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat()
}

pub fn asks() {
    if !root_or_skip("openssl s_client") {
        return;
    }
    let mut site = Site::new();
    site.certify();
    let (explicit, implicit) = (site.address.to_string(), site.listen_implicitly().to_string());
    let daemon = Daemon::start(site);
    for (option, version) in [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")] {
        for begin in [&["-starttls", "ftp", "-connect", &explicit][..], &["-connect", &implicit]] {
            let options = [begin, &[option, "-crlf", "-ign_eof", "-showcerts"]].concat();
            let said = session(&daemon, &options, "FEAT\nUSER alice\nPASS correct horse\nQUIT\n");
            let certificate = std::fs::read_to_string(daemon.site.certificate()).expect("read");
            for words in ["Verify return code: 0 (ok)", version, certificate.trim(), "211 End", "\n230 ", "\n221 "] {
                assert!(said.contains(words), "{begin:?} {option}: no {words:?} in\n{said}");
            }
        }
    }
    // A client that asks for another handshake (TLS 1.2) gets none, and nobody waits for it (RFC 5246 7.4.1.1).
    let mut other = daemon.login("alice");
    let said = session(&daemon, &["-starttls", "ftp", "-connect", &explicit, "-tls1_2"], &"R\n".repeat(100));
    assert!(said.contains("RENEGOTIATING") && said.contains("no renegotiation"), "{said}");
    other.in_step();
}
