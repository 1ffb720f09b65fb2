//! vsftpd (Debian package, unpacked): a system user, checked by PAM, in a chroot.
//!
//! Its own sandbox switches (seccomp_sandbox, isolate_network, isolate) keep their defaults.

use std::process::Command;

use super::{Kind, Ports, Role, debian_version, missing_file, program};
use crate::error::Result;
use crate::site::{PAM_SERVICE, Place, USER};

pub(super) const KIND: Kind = Kind {
    name: "vsftpd",
    role: Role::Peer,
    missing: |place| missing_file(place.peers.join("vsftpd/usr/sbin/vsftpd"), "not fetched: bench/run does that"),
    version: |place| debian_version(place, "vsftpd"),
    command,
    speaks: (true, true),
    only: None,
    idle_most: 1000,
    idle_reason: "two processes for each session: thousands of sessions would be thousands of processes",
};

fn command(place: &Place, ports: &Ports) -> Result<Command> {
    let text = format!(
        "listen=YES\nlisten_ipv6=NO\nlisten_address=127.0.0.1\nlisten_port={control}\nbackground=NO\n\
         max_clients=0\nmax_per_ip=0\n\
         anonymous_enable=NO\nlocal_enable=YES\nwrite_enable=YES\nlocal_umask=022\n\
         chroot_local_user=YES\nallow_writeable_chroot=YES\nlocal_root={data}\n\
         pam_service_name={PAM_SERVICE}\nnopriv_user={USER}\nsecure_chroot_dir={empty}\n\
         use_sendfile=YES\npasv_min_port={first}\npasv_max_port={last}\nconnect_from_port_20=NO\n\
         idle_session_timeout=3600\ndata_connection_timeout=3600\n\
         tcp_wrappers=NO\nxferlog_enable=NO\n",
        control = ports.control,
        first = ports.first,
        last = ports.last,
        data = place.data.display(),
        empty = place.empty.display(),
    );
    let tls = if ports.secured {
        format!(
            "ssl_enable=YES\nforce_local_logins_ssl=NO\nforce_local_data_ssl=NO\nrequire_ssl_reuse=NO\nssl_ciphers=HIGH\n\
             rsa_cert_file={conf}/certificate.pem\nrsa_private_key_file={conf}/key.pem\n",
            conf = place.conf.display()
        )
    } else {
        String::new()
    };
    let file = place.write("vsftpd.conf", &(text + &tls))?;
    let mut command = program(place.peers.join("vsftpd/usr/sbin/vsftpd"));
    command.arg(file);
    Ok(command)
}
