//! SITE: what RFC 959 leaves to each server (4.1.3): one file a command, and their table.

pub(super) mod chmod;
mod copy;
mod help;
mod idle;
mod symlink;
mod umask;
mod utime;

use super::word;
use crate::ftp::{Context, Out, State, state::Ready};

/// What runs a SITE command.
type Run = fn(Ready, &[u8], &Context<'_>, &mut Out) -> State;

/// Name, arguments for SITE HELP, and what runs it.
pub(in crate::ftp) const TABLE: &[(&str, &str, Run)] = &[
    ("CHMOD", "mode path", chmod::run),
    ("CPFR", "path", copy::from),
    ("CPTO", "path", copy::to),
    ("HELP", "", help::run),
    ("IDLE", "[seconds]", idle::run),
    ("SYMLINK", "target link", symlink::run),
    ("UMASK", "[mask]", umask::run),
    ("UTIME", "YYYYMMDDhhmm[ss] path | path atime mtime ctime UTC", utime::run),
];

/// The lines in FEAT by which clients find them.
pub(in crate::ftp) const FEATURES: &[&str] = &["SITE COPY", "SITE SYMLINK", "SITE UTIME"];

pub(in crate::ftp) fn run(ready: Ready, arg: &[u8], cx: &Context<'_>, out: &mut Out) -> State {
    let (name, rest) = word(arg);
    match TABLE.iter().find(|(known, ..)| known.as_bytes().eq_ignore_ascii_case(name)) {
        Some((_, _, run)) => run(ready, rest, cx, out),
        None if name.is_empty() => {
            out.reply(501, "SITE needs a command; SITE HELP tells which there are.");
            State::Ready(ready)
        }
        None => {
            out.reply(504, "Unknown SITE command; SITE HELP tells which there are.");
            State::Ready(ready)
        }
    }
}
