//! Caisson: the release build beside this program, started as root with real uids.
//!
//! This is the one place where the bench writes Caisson's configuration.

use std::process::Command;

use super::{Kind, Ports, Role, missing_file, program};
use crate::error::Result;
use crate::site::{AUTHD_USER, Place, USER, WORKER_USER, run};

pub(super) const KIND: Kind = Kind {
    name: "caisson",
    role: Role::Ours,
    missing: |place| missing_file(place.programs.join("caissond"), "not built"),
    version,
    command,
    speaks: (true, true),
    only: None,
    idle_most: 10_000,
    idle_reason: "",
};

fn version(place: &Place) -> String {
    run(Command::new(place.programs.join("caissond")).arg("--version"), "")
        .unwrap_or_else(|_| env!("CARGO_PKG_VERSION").into())
}

fn command(place: &Place, ports: &Ports) -> Result<Command> {
    let hash =
        run(Command::new(place.programs.join("caisson-authd")).arg("hash-password"), &format!("{}\n", place.password))?;
    let users = format!(
        "[[user]]\nname = \"{USER}\"\npassword = \"{hash}\"\nhome = \"{home}\"\nuid = {uid}\ngid = {gid}\n",
        home = place.data.display(),
        uid = place.uid,
        gid = place.gid,
    );
    let users = place.write("users.toml", &users)?;
    let [resumption, certificate] = if ports.secured {
        let (certificate, key) = (place.conf.join("certificate.pem"), place.conf.join("key.pem"));
        let pair =
            format!("[[certificate]]\ncertificate = \"{}\"\nkey = \"{}\"\n", certificate.display(), key.display());
        ["data_resumption = \"required\"\n".to_owned(), pair]
    } else {
        Default::default()
    };
    let text = format!(
        "users_file = \"{users}\"\nworker_user = \"{WORKER_USER}\"\nauthd_user = \"{AUTHD_USER}\"\n\
         control_socket = \"{conf}/control.sock\"\nprogram_dir = \"{programs}\"\nlog_level = \"warning\"\n\
         passive_ports = \"{first}-{last}\"\nlogin_timeout_secs = 3600\nidle_timeout_secs = 3600\n\
         max_sessions = 20000\nmax_sessions_per_address = 0\nmax_sessions_per_account = 20000\n{resumption}\n\
         [[listen]]\naddress = \"127.0.0.1:{control}\"\n\n{certificate}",
        users = users.display(),
        conf = place.conf.display(),
        programs = place.programs.display(),
        control = ports.control,
        first = ports.first,
        last = ports.last,
    );
    let file = place.write("caisson.toml", &text)?;
    let mut command = program(place.programs.join("caissond"));
    command.arg("-f").arg(file);
    Ok(command)
}
