//! Listings: the lines of LIST, NLST, MLSD and MLST, made where the files are and handed over as a sealed memfd.
//!
//! Reads from: the file system, whose names and link targets are other people's bytes. CR and LF in them are shown as `?`,
//! so that no name forges a line; all other bytes are kept, because clients send names back. Memory is bounded: names are kept (for sorting), lines are written out in pieces.
//! Not here: whether the account may list (rules.rs), walking paths (resolve.rs).

mod ahead;
mod date;
mod facts;
mod long;
mod meta;
mod names;
mod output;
mod pattern;
mod text;

use std::os::fd::OwnedFd;

use child_ipc::{
    link::worker_broker::{Facts, Form, Why},
    types::VirtPath,
};
use rustix::fs::{FileType, Mode, OFlags};

pub(crate) use self::{ahead::Ahead, meta::Meta, output::Output};
use self::{facts::FactsLine, long::LongLine, names::Names, pattern::Pattern};
use crate::{account::Account, why::why};

/// Lists an open directory; `path` is where it was found, and `written` how the client called it.
pub(crate) fn directory(
    account: &Account,
    directory: &OwnedFd,
    path: &VirtPath,
    form: Form,
    hidden: bool,
    written: &[u8],
) -> Result<Output, Why> {
    // RFC 3659 knows no hidden files.
    let mut names = Names::read(account, directory, hidden || matches!(form, Form::Facts(_)))?;
    names.sort();
    match form {
        Form::Names => match written {
            b"" => plain(&names, b""),
            written => plain(&names, &[written.strip_suffix(b"/").unwrap_or(written), b"/"].concat()),
        },
        Form::Long => long(account, directory, names),
        Form::Facts(facts) => FactsLine::new(account, facts).directory(directory, path, names),
    }
}

/// Lists the entries of the directory of `path` that its last component matches, themselves, links not followed.
pub(crate) fn matching(account: &Account, path: &VirtPath, form: Form, written: &[u8]) -> Result<Output, Why> {
    let (parent, last) = path.split().ok_or(Why::NotFound)?;
    let pattern = Pattern::new(last).ok_or(Why::NotFound)?;
    let directory = account.root.open(parent.as_bytes(), READ, Mode::empty()).map_err(why)?;
    let mut names = Names::read(account, &directory, true)?.matching(pattern);
    if names.is_empty() {
        return Err(Why::NotFound);
    }
    names.sort();
    match form {
        Form::Long => long(account, &directory, names),
        Form::Names | Form::Facts(_) => match written.strip_suffix(last) {
            Some(before) => plain(&names, before),
            // Written with something behind the name (`d/*/.`): as it comes to, then.
            None => plain(&names, &[parent.as_bytes().strip_suffix(b"/").unwrap_or(parent.as_bytes()), b"/"].concat()),
        },
    }
}

/// The names alone, each with what makes it a path of the client's.
fn plain(names: &Names, before: &[u8]) -> Result<Output, Why> {
    let mut out = Output::new()?;
    for entry in names.iter() {
        text::push_name(out.line(), before);
        text::push_name(out.line(), entry.name.to_bytes());
        out.end_line()?;
    }
    Ok(out)
}

/// Lines like those of `ls -l`.
fn long(account: &Account, directory: &OwnedFd, names: Names) -> Result<Output, Why> {
    let (mut out, mut line) = (Output::new()?, LongLine::new(account));
    account.ahead.each(directory, names, |entry, meta| {
        line.write(out.line(), meta, directory, entry.name);
        out.end_line()
    })?;
    Ok(out)
}

/// Lists one name that is no directory: a line about the name itself, links not followed.
pub(crate) fn single(account: &Account, path: &VirtPath, form: Form, written: &[u8]) -> Result<Output, Why> {
    let place = account.root.place(path)?;
    let name = std::ffi::CString::new(place.name).map_err(|_| Why::Invalid)?;
    let meta = Meta::of_name(&place.directory, &name).map_err(why)?;
    let mut out = Output::new()?;
    match form {
        Form::Long => LongLine::new(account).write(out.line(), &meta, &place.directory, &name),
        Form::Names | Form::Facts(_) if written.is_empty() => text::push_name(out.line(), place.name),
        Form::Names | Form::Facts(_) => text::push_name(out.line(), written),
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

/// How a directory is opened to be listed.
pub(crate) const READ: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NONBLOCK);

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
