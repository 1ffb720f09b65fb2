//! Pure-FTPd (Debian package, unpacked): a virtual user of its own database, in a chroot.

use std::process::Command;

use super::{Kind, Ports, Role, debian_version, missing_file, program};
use crate::error::Result;
use crate::site::{Place, USER, run};

pub(super) const KIND: Kind = Kind {
    name: "pure-ftpd",
    role: Role::Peer,
    missing: |place| missing_file(place.peers.join("pure-ftpd/usr/sbin/pure-ftpd"), "not fetched: bench/run does that"),
    version: |place| debian_version(place, "pure-ftpd"),
    command,
    speaks: (true, true),
    only: None,
    idle_most: 1000,
    idle_reason: "one process for each session: thousands of sessions would be thousands of processes",
};

fn command(place: &Place, ports: &Ports) -> Result<Command> {
    let folder = place.peers.join("pure-ftpd");
    // The fields of pure-pw(8): name, hash, uid, gid, comment, home, then limits, all of them empty.
    let user = format!("{USER}:{}:{}:{}::{}/./::::::::::::\n", place.hash, place.uid, place.gid, place.data.display());
    let users = place.write("pure-ftpd.passwd", &user)?;
    let database = place.conf.join("pure-ftpd.pdb");
    run(Command::new(folder.join("usr/bin/pure-pw")).arg("mkdb").arg(&database).arg("-f").arg(&users), "")?;
    let mut command = program(folder.join("usr/sbin/pure-ftpd"));
    command
        .arg("--ipv4only")
        .args(["--bind", &format!("127.0.0.1,{}", ports.control)])
        .args(["--login", &format!("puredb:{}", database.display())])
        .args(["--passiveportrange", &format!("{}:{}", ports.first, ports.last)])
        .args(["--maxclientsnumber", "20000", "--maxclientsperip", "20000", "--maxidletime", "60"])
        .args(["--limitrecursion", "20000:5"])
        .args(["--chrooteveryone", "--noanonymous", "--dontresolve", "--minuid", "1"])
        .args(["--syslogfacility", "none", "--tls", if ports.secured { "1" } else { "0" }])
        .args(["--certfile", &place.conf.join("pair.pem").display().to_string()])
        .args(["--pidfile", &place.conf.join("pure-ftpd.pid").display().to_string()]);
    Ok(command)
}
