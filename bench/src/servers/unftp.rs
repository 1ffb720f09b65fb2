//! unFTP (from crates.io): one process, libunftp and rustls. Beside the others only under TLS, for its handshakes.

use std::path::PathBuf;
use std::process::Command;

use super::{Kind, Ports, Role, missing_file, program};
use crate::error::Result;
use crate::site::{Place, USER, run};

pub(super) const KIND: Kind = Kind {
    name: "unftp",
    role: Role::Peer,
    missing: |place| missing_file(unftp(place), "not built: bench/run does that, in a quarter of an hour"),
    version: |place| run(Command::new(unftp(place)).arg("--version"), "").unwrap_or_else(|_| "unknown".into()),
    command,
    speaks: (false, true),
    only: Some("tls-handshakes"),
    idle_most: 1000,
    idle_reason: "measured for its handshakes",
};

fn unftp(place: &Place) -> PathBuf {
    place.peers.join("unftp/bin/unftp")
}

fn command(place: &Place, ports: &Ports) -> Result<Command> {
    let users = format!("[{{\"username\": \"{USER}\", \"password\": \"{}\"}}]", place.password);
    let users = place.write("unftp.json", &users)?;
    let mut command = program(unftp(place));
    command
        .args(["--bind-address", &format!("127.0.0.1:{}", ports.control)])
        .args(["--passive-ports", &format!("{}-{}", ports.first, ports.last)])
        .args(["--auth-type", "json", "--auth-json-path", &users.display().to_string()])
        .args(["--root-dir", &place.data.display().to_string()])
        .args(["--ftps-certs-file", &place.conf.join("certificate.pem").display().to_string()])
        .args(["--ftps-key-file", &place.conf.join("key.pem").display().to_string()])
        .args(["--bind-address-http", "127.0.0.1:0", "--idle-session-timeout", "3600"]);
    Ok(command)
}
