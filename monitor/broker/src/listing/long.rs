//! Lines like those of `ls -l`, for LIST: what every client's parser was written against. Times are those of `listing_time`.

use std::{ffi::CStr, mem::MaybeUninit, os::fd::OwnedFd, time::SystemTime};

use rustix::fs::{FileType, readlinkat_raw};

use super::{
    Meta,
    date::Dates,
    letter,
    text::{push_left, push_name, push_number_left, push_right},
};
use crate::account::{Account, Who};

/// Writes lines, as seen from one moment.
#[derive(Debug)]
pub(super) struct LongLine<'a> {
    who: &'a Who,
    dates: Dates<'a>,
    /// How the line begins, and of what that was made: most files are like the one before.
    begin: Vec<u8>,
    made_of: Option<(FileType, u16, u32, u32, u32)>,
}

impl<'a> LongLine<'a> {
    /// For the account, from now.
    pub(super) fn new(account: &'a Account) -> Self {
        let dates = Dates::new(now(), account.zone.as_ref());
        LongLine { who: &account.who, dates, begin: Vec::new(), made_of: None }
    }

    /// `-rw-r--r--   1 owner    group        size Mon DD HH:MM name`, with ` -> target` behind the name of a link.
    pub(super) fn write(&mut self, out: &mut Vec<u8>, meta: &Meta, directory: &OwnedFd, name: &CStr) {
        self.begin(meta);
        out.extend_from_slice(&self.begin);
        push_right(out, meta.size, 8);
        out.push(b' ');
        self.dates.push_ls(out, meta.modified);
        out.push(b' ');
        push_name(out, name.to_bytes());
        if meta.kind == FileType::Symlink {
            let mut space = [MaybeUninit::uninit(); 4096];
            // Gone by now: the name alone is still true.
            if let Ok((target, _)) = readlinkat_raw(directory, name, &mut space) {
                out.extend_from_slice(b" -> ");
                push_name(out, target);
            }
        }
    }

    /// Permissions, links, owner and group.
    fn begin(&mut self, meta: &Meta) {
        let made_of = Some((meta.kind, meta.mode, meta.links, meta.uid, meta.gid));
        if self.made_of == made_of {
            return;
        }
        self.made_of = made_of;
        let begin = &mut self.begin;
        begin.clear();
        begin.extend_from_slice(&permissions(meta));
        begin.push(b' ');
        push_right(begin, meta.links.into(), 3);
        begin.push(b' ');
        match self.who.name_of(meta.uid) {
            Some(name) => push_left(begin, name, 8),
            None => push_number_left(begin, meta.uid.into(), 8),
        }
        begin.push(b' ');
        push_number_left(begin, meta.gid.into(), 8);
        begin.push(b' ');
    }
}

/// UTC seconds since 1970.
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.ok().and_then(|since| i64::try_from(since.as_secs()).ok()).unwrap_or(0)
}

/// The kind and nine rights; a set-id or sticky bit is shown in the place of `x`, in capitals where there is no `x`.
fn permissions(meta: &Meta) -> [u8; 10] {
    let mut shown = *b"-rwxrwxrwx";
    for (bit, byte) in shown[1..].iter_mut().enumerate() {
        if meta.mode >> (8 - bit) & 1 == 0 {
            *byte = b'-';
        }
    }
    shown[0] = letter(meta.kind);
    for (bit, at, letter) in [(0o4000, 3, b's'), (0o2000, 6, b's'), (0o1000, 9, b't')] {
        if meta.mode & bit != 0 {
            shown[at] = if shown[at] == b'x' { letter } else { letter.to_ascii_uppercase() };
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_look_like_those_of_ls() {
        let directory = rustix::fs::open("/", rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
        let meta = Meta::of(&directory).unwrap();
        for (kind, mode, expected) in [
            (FileType::RegularFile, 0o644, "-rw-r--r--"),
            (FileType::Directory, 0o1777, "drwxrwxrwt"),
            (FileType::Directory, 0o2750, "drwxr-s---"),
            (FileType::RegularFile, 0o4644, "-rwSr--r--"),
            (FileType::Symlink, 0o777, "lrwxrwxrwx"),
            (FileType::Fifo, 0, "p---------"),
        ] {
            assert_eq!(permissions(&Meta { kind, mode, ..meta }), *expected.as_bytes());
        }
    }
}
