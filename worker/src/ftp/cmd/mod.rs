//! The verbs: one file each, with the section of its RFC on top and its tests below.
//!
//! `run` takes what stands behind the verb and one space, and yields the next state; what the broker answers comes to
//! the file's `done`. Their rows are in table.rs.

pub(in crate::ftp) mod abor;
pub(in crate::ftp) mod acct;
pub(in crate::ftp) mod allo;
pub(in crate::ftp) mod appe;
pub(in crate::ftp) mod auth;
pub(in crate::ftp) mod avbl;
pub(in crate::ftp) mod ccc;
pub(in crate::ftp) mod cdup;
pub(in crate::ftp) mod clnt;
pub(in crate::ftp) mod cwd;
pub(in crate::ftp) mod dele;
pub mod eprt;
pub(in crate::ftp) mod epsv;
pub(in crate::ftp) mod feat;
pub(in crate::ftp) mod hash;
pub(in crate::ftp) mod help;
pub(in crate::ftp) mod host;
pub(in crate::ftp) mod lang;
pub(in crate::ftp) mod list;
pub(in crate::ftp) mod mdtm;
pub(in crate::ftp) mod mfct;
pub(in crate::ftp) mod mff;
pub(in crate::ftp) mod mfmt;
pub(in crate::ftp) mod mkd;
pub(in crate::ftp) mod mlsd;
pub(in crate::ftp) mod mlst;
pub(in crate::ftp) mod mode;
pub(in crate::ftp) mod nlst;
pub(in crate::ftp) mod noop;
pub(in crate::ftp) mod opts;
pub(in crate::ftp) mod pass;
pub(in crate::ftp) mod pasv;
pub(in crate::ftp) mod pbsz;
pub mod port;
pub(in crate::ftp) mod prot;
pub(in crate::ftp) mod pwd;
pub(in crate::ftp) mod quit;
pub(in crate::ftp) mod rang;
pub(in crate::ftp) mod rein;
pub mod rest;
pub(in crate::ftp) mod retr;
pub(in crate::ftp) mod rmd;
pub(in crate::ftp) mod rnfr;
pub(in crate::ftp) mod rnto;
pub(in crate::ftp) mod security;
pub(in crate::ftp) mod site;
pub(in crate::ftp) mod size;
pub(in crate::ftp) mod stat;
pub(in crate::ftp) mod stor;
pub(in crate::ftp) mod stou;
pub(in crate::ftp) mod stru;
pub(in crate::ftp) mod syst;
mod time;
pub(in crate::ftp) mod type_;
pub(in crate::ftp) mod user;
pub(in crate::ftp) mod xsum;

use child_ipc::link::{
    log::{Event as Happened, Level},
    worker_broker::{Done, Why},
};

use super::{
    Order, Out, State,
    state::{Asked, Ready, moving},
};

/// The first word, and what is behind the space.
fn word(arg: &[u8]) -> (&[u8], &[u8]) {
    let end = arg.iter().position(|&b| b == b' ').unwrap_or(arg.len());
    let (word, rest) = arg.split_at_checked(end).unwrap_or((arg, b""));
    (word, rest.get(1..).unwrap_or_default())
}

/// What becomes of an operation that changed something, or did not.
fn changed(
    ready: Ready,
    asked: &Asked,
    answer: Result<Done, Why>,
    out: &mut Out,
    say: impl FnOnce(&Asked, &mut Out),
) -> State {
    match answer {
        Ok(_) => {
            say(asked, out);
            out.log(Level::Info, Happened::Change, format_args!("op={} path=\"{}\"", asked.verb, asked.path));
        }
        Err(why) => moving::refused(asked, why, out),
    }
    State::Ready(ready)
}

/// The broker answered another question than it was asked: its fault, and no reason to fall over.
fn strange(ready: Ready, asked: &Asked, out: &mut Out) -> State {
    out.order(Order::Cut);
    out.reply(451, "Local error.");
    out.log(Level::Error, Happened::Breach, format_args!("op={} reason=\"answer to another question\"", asked.verb));
    State::Ready(ready.without_port())
}
