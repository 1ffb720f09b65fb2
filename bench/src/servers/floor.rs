//! The floor: this program itself (src/floor.rs), as the bench's user.

use std::os::unix::process::CommandExt;
use std::process::Command;

use super::{Kind, Ports, Role};
use crate::error::Result;
use crate::site::Place;

pub(super) const KIND: Kind = Kind {
    name: "floor",
    role: Role::Floor,
    missing: |_| None,
    version: |_| concat!("bench ", env!("CARGO_PKG_VERSION"), ", accept + sendfile/splice").into(),
    command,
    speaks: (true, false),
    only: None,
    idle_most: 0,
    idle_reason: "the floor keeps no session worth weighing",
};

#[allow(clippy::unnecessary_wraps, reason = "one signature for all servers")]
fn command(place: &Place, ports: &Ports) -> Result<Command> {
    let mut command = Command::new("/proc/self/exe");
    command.arg("floor").arg(ports.control.to_string()).arg(&place.data).uid(place.uid).gid(place.gid);
    Ok(command)
}
