//! Listings: the lines of LIST, NLST, MLSD and MLST, made where the files are and handed over as a sealed memfd.
//!
//! Reads from: the file system, whose names and link targets are other people's bytes. CR and LF in them are shown as `?`,
//! so that no name forges a line. Memory is bounded: names are kept (for sorting), lines are written out in pieces.
//! Not here: whether the account may list (rules.rs), walking paths (resolve.rs).

mod ahead;
mod date;
mod facts;
mod long;
mod meta;
mod names;
mod output;
mod text;

use std::os::fd::OwnedFd;

use ipc::{
    link::worker_broker::{Facts, Form, Why},
    types::VirtPath,
};
use rustix::fs::FileType;

pub(crate) use self::{ahead::Ahead, meta::Meta, output::Output};
use self::{facts::FactsLine, long::LongLine, names::Names};
use crate::{account::Account, why::why};

/// Lists an open directory; `path` is where it was found.
pub(crate) fn directory(
    account: &Account,
    directory: &OwnedFd,
    path: &VirtPath,
    form: Form,
    hidden: bool,
) -> Result<Output, Why> {
    // RFC 3659 knows no hidden files.
    let mut names = Names::read(account, directory, hidden || matches!(form, Form::Facts(_)))?;
    names.sort();
    let mut out = Output::new()?;
    match form {
        Form::Names => {
            for entry in names.iter() {
                text::push_name(out.line(), entry.name.to_bytes());
                out.end_line()?;
            }
        }
        Form::Long => {
            let mut line = LongLine::new(account);
            account.ahead.each(directory, names, |entry, meta| {
                line.write(out.line(), meta, directory, entry.name);
                out.end_line()
            })?;
        }
        Form::Facts(facts) => FactsLine::new(account, facts).directory(&mut out, directory, path, names)?,
    }
    Ok(out)
}

/// Lists one name that is no directory: a line about the name itself, links not followed.
pub(crate) fn single(account: &Account, path: &VirtPath, form: Form) -> Result<Output, Why> {
    let place = account.root.place(path)?;
    let name = std::ffi::CString::new(place.name).map_err(|_| Why::Invalid)?;
    let meta = Meta::of_name(&place.directory, &name).map_err(why)?;
    let mut out = Output::new()?;
    match form {
        Form::Long => LongLine::new(account).write(out.line(), &meta, &place.directory, &name),
        Form::Names | Form::Facts(_) => text::push_name(out.line(), place.name),
    }
    out.end_line()?;
    Ok(out)
}

/// The line of facts about a path, with the whole path as the name, without CR LF.
pub(crate) fn facts_of(account: &Account, path: &VirtPath, facts: Facts) -> Result<Vec<u8>, Why> {
    let mut line = Vec::with_capacity(256 + path.as_bytes().len());
    FactsLine::new(account, facts).path(&mut line, path)?;
    Ok(line)
}

/// The first letter of a mode in `ls -l`.
fn letter(kind: FileType) -> u8 {
    match kind {
        FileType::RegularFile => b'-',
        FileType::Directory => b'd',
        FileType::Symlink => b'l',
        FileType::Fifo => b'p',
        FileType::Socket => b's',
        FileType::CharacterDevice => b'c',
        FileType::BlockDevice => b'b',
        FileType::Unknown => b'?',
    }
}
