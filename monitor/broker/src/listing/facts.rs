//! Lines of facts, for MLSD and MLST (RFC 3659 7.2, 7.5): `fact=value;fact=value; name`.
//!
//! Links are followed beneath the root, because clients take what a line says for what RETR and CWD will do; one that
//! leads nowhere is `OS.unix=symlink`. `perm` is what the permissions of the account and the mode bits together allow; it
//! is a hint (RFC 3659 7.5.5), access control lists may say otherwise. `size` is given for files only.

use std::os::fd::OwnedFd;

use child_ipc::{
    link::worker_broker::{Facts, Why},
    types::{Permission, VirtPath},
};
use rustix::fs::{FileType, Mode, OFlags};

use super::{
    Meta, Output,
    date::Dates,
    long::now,
    names::Names,
    text::{push_decimal, push_hex, push_mode, push_name},
};
use crate::{
    account::{Access, Account},
    why::why,
};

/// Writes lines about one directory, for one account.
#[derive(Debug)]
pub(super) struct FactsLine<'a> {
    account: &'a Account,
    facts: Facts,
    dates: Dates<'a>,
    alike: Alike,
}

/// What a line is about.
#[derive(Debug)]
struct Subject<'m> {
    /// The name itself.
    own: &'m Meta,
    /// What it leads to: itself, unless it is a link.
    shown: &'m Meta,
    /// The directory the name is in, where that is known.
    parent: Option<&'m Meta>,
    /// `cdir` or `pdir` instead of `dir`.
    role: Option<&'static [u8]>,
}

impl<'a> FactsLine<'a> {
    /// For the account, with these facts.
    pub(super) fn new(account: &'a Account, facts: Facts) -> Self {
        FactsLine { account, facts, dates: Dates::new(now(), None), alike: Alike::default() }
    }

    /// A directory: itself as `.`, its parent as `..` (but not above the root), then every name.
    pub(super) fn directory(mut self, directory: &OwnedFd, path: &VirtPath, names: Names) -> Result<Output, Why> {
        let mut out = Output::new()?;
        let here = Meta::of(directory).map_err(why)?;
        self.write(out.line(), &Subject { own: &here, shown: &here, parent: None, role: Some(b"cdir") }, b".");
        out.end_line()?;
        // Where CDUP leads, which for a path through a link is not where `..` of the directory does.
        if let Some((above, _)) = path.split()
            && let Ok(above) = self.account.root.look(&above).and_then(Meta::of)
        {
            self.write(out.line(), &Subject { own: &above, shown: &above, parent: None, role: Some(b"pdir") }, b"..");
            out.end_line()?;
        }
        let account = self.account;
        account.ahead.each(directory, names, |entry, own| {
            let name = entry.name.to_bytes();
            let target = self.target(own, path.as_bytes(), name);
            let shown = target.as_ref().unwrap_or(own);
            self.write(out.line(), &Subject { own, shown, parent: Some(&here), role: None }, name);
            out.end_line()
        })?;
        Ok(out)
    }

    /// One path, with all of it as the name.
    pub(super) fn path(mut self, out: &mut Vec<u8>, path: &VirtPath) -> Result<(), Why> {
        if path.is_root() {
            let root = self.account.root.look(path).and_then(Meta::of).map_err(why)?;
            self.write(out, &Subject { own: &root, shown: &root, parent: None, role: None }, path.as_bytes());
            return Ok(());
        }
        let place = self.account.root.place(path)?;
        let name = std::ffi::CString::new(place.name).map_err(|_| Why::Invalid)?;
        let own = Meta::of_name(&place.directory, &name).map_err(why)?;
        let parent = Meta::of(&place.directory).map_err(why)?;
        let target = self.target(&own, path.as_bytes(), b"");
        let shown = target.as_ref().unwrap_or(&own);
        self.write(out, &Subject { own: &own, shown, parent: Some(&parent), role: None }, path.as_bytes());
        Ok(())
    }

    /// What a link leads to beneath the root.
    fn target(&self, own: &Meta, directory: &[u8], name: &[u8]) -> Option<Meta> {
        if own.kind != FileType::Symlink {
            return None;
        }
        let path = if name.is_empty() { directory.to_vec() } else { [directory, b"/", name].concat() };
        self.account.root.open(&path, OFlags::PATH, Mode::empty()).and_then(Meta::of).ok()
    }

    /// In the order of [`Facts::ALL`]; a fact that does not apply is left out.
    fn write(&mut self, out: &mut Vec<u8>, subject: &Subject<'_>, name: &[u8]) {
        self.alike.of(self.account, self.facts, subject);
        let shown = subject.shown;
        out.extend_from_slice(&self.alike.kind);
        if self.facts.has(Facts::SIZE) && shown.kind == FileType::RegularFile {
            out.extend_from_slice(b"size=");
            push_decimal(out, shown.size);
            out.push(b';');
        }
        if self.facts.has(Facts::MODIFY) {
            out.extend_from_slice(b"modify=");
            self.dates.push_time_val(out, shown.modified);
            out.push(b';');
        }
        out.extend_from_slice(&self.alike.perm);
        if self.facts.has(Facts::UNIQUE) {
            out.extend_from_slice(b"unique=");
            push_hex(out, u64::from(shown.device.0) << 20 | u64::from(shown.device.1));
            out.push(b'g');
            push_hex(out, shown.inode);
            out.push(b';');
        }
        out.extend_from_slice(&self.alike.unix);
        out.push(b' ');
        push_name(out, name);
    }
}

/// The facts that files of one kind, mode and owner in one directory have in common, as they stand in a line. Most files
/// are like the one before, so these are seldom made anew.
#[derive(Debug, Default)]
struct Alike {
    made_of: Option<Trait>,
    kind: Vec<u8>,
    perm: Vec<u8>,
    unix: Vec<u8>,
}

/// What the facts of [`Alike`] are made of, beside the account and the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Trait {
    own: (FileType, u32),
    shown: (FileType, u16, u32, u32),
    role: Option<&'static [u8]>,
    placed: bool,
}

impl Alike {
    /// Makes them for this file, unless they are.
    fn of(&mut self, account: &Account, facts: Facts, subject: &Subject<'_>) {
        let Subject { own, shown, parent, role } = *subject;
        let made_of = Some(Trait {
            own: (own.kind, own.uid),
            shown: (shown.kind, shown.mode, shown.uid, shown.gid),
            role,
            placed: parent.is_some(),
        });
        if self.made_of == made_of {
            return;
        }
        self.made_of = made_of;
        let Alike { kind, perm, unix, .. } = self;
        for part in [&mut *kind, perm, unix] {
            part.clear();
        }
        if facts.has(Facts::TYPE) {
            kind.extend([b"type=", role.unwrap_or_else(|| type_of(shown.kind)), b";"].concat());
        }
        if facts.has(Facts::PERM) {
            perm.extend_from_slice(b"perm=");
            permitted(perm, account, subject);
            perm.push(b';');
        }
        if facts.has(Facts::UNIX_MODE) {
            unix.extend_from_slice(b"UNIX.mode=");
            push_mode(unix, shown.mode);
            unix.push(b';');
        }
        if facts.has(Facts::UNIX_OWNER) {
            unix.extend_from_slice(b"UNIX.owner=");
            match account.who.name_of(shown.uid) {
                Some(name) => unix.extend_from_slice(name),
                None => push_decimal(unix, shown.uid.into()),
            }
            unix.push(b';');
        }
        if facts.has(Facts::UNIX_GROUP) {
            unix.extend_from_slice(b"UNIX.group=");
            push_decimal(unix, shown.gid.into());
            unix.push(b';');
        }
    }
}

/// The letters of RFC 3659 7.5.5, in the order of the alphabet.
fn permitted(out: &mut Vec<u8>, account: &Account, Subject { own, shown, parent, .. }: &Subject<'_>) {
    let (who, held) = (&account.who, account.permissions);
    let has = |permission| held.has(permission);
    let file = shown.kind == FileType::RegularFile;
    let directory = shown.kind == FileType::Directory;
    let removable = parent.is_some_and(|parent| who.may_remove(parent, own));
    let remove = if own.kind == FileType::Directory { Permission::Rmdir } else { Permission::Delete };
    let changeable = directory && who.may(shown, Access::Change);
    let writable = file && has(Permission::Write) && has(Permission::Overwrite) && who.may(shown, Access::Write);
    for (letter, given) in [
        (b'a', writable),
        (b'c', changeable && has(Permission::Write)),
        (b'd', removable && has(remove)),
        (b'e', directory && who.may(shown, Access::Search)),
        (b'f', removable && has(Permission::Rename)),
        (b'l', directory && has(Permission::List) && who.may(shown, Access::Read)),
        (b'm', changeable && has(Permission::Mkdir)),
        (b'p', changeable && has(Permission::Delete)),
        (b'r', file && has(Permission::Read) && who.may(shown, Access::Read)),
        (b'w', writable),
    ] {
        if given {
            out.push(letter);
        }
    }
}

/// RFC 3659 7.5.1; what it does not know is an `OS.unix` type.
fn type_of(kind: FileType) -> &'static [u8] {
    match kind {
        FileType::RegularFile => b"file",
        FileType::Directory => b"dir",
        FileType::Symlink => b"OS.unix=symlink",
        FileType::Fifo => b"OS.unix=fifo",
        FileType::Socket => b"OS.unix=socket",
        FileType::CharacterDevice => b"OS.unix=chr",
        FileType::BlockDevice => b"OS.unix=blk",
        FileType::Unknown => b"OS.unix=unknown",
    }
}
