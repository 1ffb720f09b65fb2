//! ProFTPD (Debian package, unpacked): a virtual user of an AuthUserFile, in a chroot.
//!
//! mod_delay is off: it would slow logins on purpose.

use std::process::Command;

use super::{Kind, Ports, Role, debian_version, missing_file, program};
use crate::error::Result;
use crate::site::{Place, USER};

pub(super) const KIND: Kind = Kind {
    name: "proftpd",
    role: Role::Peer,
    missing: |place| {
        missing_file(place.peers.join("proftpd-core/usr/sbin/proftpd"), "not fetched: bench/run does that")
    },
    version: |place| debian_version(place, "proftpd-core"),
    command,
    speaks: (true, true),
    only: None,
    idle_most: 1000,
    idle_reason: "one process for each session: thousands of sessions would be thousands of processes",
};

fn command(place: &Place, ports: &Ports) -> Result<Command> {
    let user = format!("{USER}:{}:{}:{}::{}:/bin/false\n", place.hash, place.uid, place.gid, place.data.display());
    let users = place.write("proftpd.passwd", &user)?;
    let group = place.write("proftpd.group", &format!("{USER}:x:{}:\n", place.gid))?;
    let text = format!(
        "ServerName bench\nServerType standalone\nUseIPv6 off\nDefaultAddress 127.0.0.1\nPort {control}\n\
         User {USER}\nGroup {USER}\nUmask 022\nMaxInstances none\nMaxClients none\n\
         AuthOrder mod_auth_file.c\nAuthUserFile {users}\nAuthGroupFile {group}\nRequireValidShell off\n\
         DefaultRoot ~\nAllowOverwrite on\nUseSendfile on\nPassivePorts {first} {last}\n\
         TimeoutIdle 3600\nTimeoutLogin 3600\nTimeoutNoTransfer 3600\nTimeoutStalled 3600\n\
         UseReverseDNS off\nWtmpLog off\nTransferLog none\nSystemLog none\n\
         PidFile {conf}/proftpd.pid\nScoreboardFile {conf}/proftpd.scoreboard\nDelayEngine off\n\
         <Limit LOGIN>\n  AllowAll\n</Limit>\n",
        control = ports.control,
        users = users.display(),
        group = group.display(),
        first = ports.first,
        last = ports.last,
        conf = place.conf.display(),
    );
    let tls = if ports.secured {
        format!(
            "ModulePath {modules}\nLoadModule mod_tls.c\nTLSEngine on\nTLSRequired off\nTLSVerifyClient off\nTLSOptions NoSessionReuseRequired\n\
             TLSProtocol TLSv1.2 TLSv1.3\nTLSLog none\n\
             TLSECCertificateFile {conf}/certificate.pem\nTLSECCertificateKeyFile {conf}/key.pem\n",
            modules = place.peers.join("proftpd-mod-crypto/usr/lib/proftpd").display(),
            conf = place.conf.display()
        )
    } else {
        String::new()
    };
    let file = place.write("proftpd.conf", &(text + &tls))?;
    let mut command = program(place.peers.join("proftpd-core/usr/sbin/proftpd"));
    command.arg("--nodaemon").arg("--config").arg(file);
    Ok(command)
}
