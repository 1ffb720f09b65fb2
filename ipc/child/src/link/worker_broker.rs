//! worker <-> broker: one record a file operation, pipelined, answered in order.
//!
//! A broker serves each link on one thread, so answers come in the order of the questions; the tag is there so that
//! neither end has to trust that. Policy, resolution, open and stat happen in one round trip.

use std::{num::NonZeroU32, ops::RangeInclusive};

use serde::{Deserialize, Serialize};

use crate::{
    Channel,
    call::{NONE, ONE, Record, TWO},
    types::{Blob, VirtPath},
};

/// A question about a file or directory of the account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// Comes back with the answer; means nothing to the broker.
    pub tag: u32,
    /// What is asked.
    pub op: Op,
}

/// The operations. Each has its file in monitor/broker/src/op/.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Open a regular file for reading (RETR). Answer: [`Done::Opened`] and one descriptor, `O_RDONLY`.
    OpenRead(VirtPath),
    /// Open a regular file for writing. Answer: [`Done::Opened`] and one descriptor, `O_WRONLY`.
    OpenWrite {
        /// The file; for [`WriteMode::Unique`] the directory or the name to start from.
        path: VirtPath,
        /// What becomes of what is there.
        mode: WriteMode,
        /// Bits that a new file does not get, beside those of the account's umask (SITE UMASK).
        umask: u16,
    },
    /// Attributes of what the path leads to, links followed. Answer: [`Done::Stat`].
    Stat(VirtPath),
    /// Is this a directory one may change into? Answer: [`Done::Nothing`].
    ChangeDir(VirtPath),
    /// A listing. Answer: [`Done::Listing`] and one descriptor: a sealed memfd with CR LF lines.
    List {
        /// A directory; or a file, which gives one line (RFC 959 4.1.3), except in [`Form::Facts`], where it is
        /// [`Why::NotDirectory`] (RFC 3659 7.1).
        path: VirtPath,
        /// How lines look.
        form: Form,
        /// Names that begin with a dot as well (`-a`).
        hidden: bool,
        /// What the client wrote for `path`: names in [`Form::Names`] begin with it, so that they can be used as they are
        /// (RFC 1123 4.1.2.7). If nothing has that name, `*`, `?` and `[...]` in its last component are wildcards. Empty: it
        /// wrote nothing, or wants neither.
        written: Blob<{ VirtPath::MAX }>,
    },
    /// One line of [`Form::Facts`] about the path itself, without CR LF and leading space (MLST). Answer:
    /// [`Done::Line`].
    Facts {
        /// What to describe; the name in the line is the whole path.
        path: VirtPath,
        /// Which facts.
        facts: Facts,
    },
    /// MKD; the number is as `umask` above. Answer: [`Done::Nothing`].
    MakeDir(VirtPath, u16),
    /// RMD. Answer: [`Done::Nothing`].
    RemoveDir(VirtPath),
    /// DELE: unlink a file or a link, never a directory. Answer: [`Done::Nothing`].
    Remove(VirtPath),
    /// Rename, replacing a file at the destination only with permission to overwrite. Answer: [`Done::Nothing`].
    Rename {
        /// What is there.
        from: VirtPath,
        /// What it will be called.
        to: VirtPath,
    },
    /// MFMT: set the modification time, UTC seconds since 1970. Answer: [`Done::Stat`].
    SetModified(VirtPath, i64),
    /// SITE CHMOD: permission bits, 0 to 0o7777 (set-id bits are refused). Answer: [`Done::Nothing`].
    SetMode(VirtPath, u16),
    /// MFF: what is given is set, in one step. Answer: [`Done::Stat`].
    SetFacts {
        /// A file or directory.
        path: VirtPath,
        /// As in `SetModified`.
        modified: Option<i64>,
        /// As in `SetMode`.
        mode: Option<u16>,
    },
    /// SITE UTIME: both times, UTC seconds since 1970. Answer: [`Done::Stat`].
    SetTimes {
        /// A file or directory.
        path: VirtPath,
        /// When it was read last.
        accessed: i64,
        /// When it was changed last.
        modified: i64,
    },
    /// AVBL: bytes the account could still store in the file system of this path. Answer: [`Done::Space`].
    Space(VirtPath),
    /// SITE SYMLINK. The link is stored relative, so that it leads to the same place for programs of this machine.
    /// Answer: [`Done::Nothing`].
    Symlink {
        /// Where it leads; need not be there.
        target: VirtPath,
        /// The new name. Directories on the way must not be links: [`Why::Invalid`].
        link: VirtPath,
    },
    /// SITE CPFR + CPTO: open a file to read and another, made or emptied, to write. One and the same file is
    /// [`Why::Invalid`]. Answer: [`Done::Copying`] and two descriptors, `O_RDONLY` and `O_WRONLY`.
    Copy {
        /// The file that is there.
        from: VirtPath,
        /// The copy.
        to: VirtPath,
        /// As in `OpenWrite`.
        umask: u16,
    },
    /// An upload of this link has ended in order: it gets its name. Answer: [`Done::Nothing`].
    Publish {
        /// [`Opened::staged`]; good for one use.
        staged: NonZeroU32,
        /// The name is to be on the disk when this is answered (fsync(2) of the directory).
        sync: bool,
    },
    /// An upload of this link has not ended in order: it is removed. Answer: [`Done::Nothing`].
    Discard(NonZeroU32),
}

/// How a file is opened for writing. Without permission to overwrite, a file that exists is [`Why::Exists`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WriteMode {
    /// Create, or empty what is there (STOR). With `atomic_uploads`, another file is written instead, and replaces it later.
    Replace,
    /// Create, or write behind what is there (APPE); the descriptor stands at the end of the file, `O_APPEND` is
    /// not set (splice refuses it).
    Append,
    /// The file is cut at this offset and the descriptor stands there (REST + STOR); an offset behind the end, or
    /// other than 0 on a missing file, is [`Why::Invalid`].
    At(u64),
    /// Create under a name nobody has (STOU); the answer tells it.
    Unique,
    /// As [`WriteMode::At`], or [`WriteMode::Replace`] at 0, but nothing is cut: the worker cuts the file where the
    /// descriptor stands when the client has finished its TLS handshake. A client that is refused then has done no harm.
    Kept(u64),
}

/// How the lines of a listing look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    /// Like `ls -l` (LIST).
    Long,
    /// Names only (NLST).
    Names,
    /// RFC 3659 7 (MLSD).
    Facts(Facts),
}

/// Which facts of RFC 3659 7.5 a line has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts(pub u8);

impl Facts {
    /// The bit of `type`.
    pub const TYPE: u8 = 1 << 0;
    /// The bit of `size`.
    pub const SIZE: u8 = 1 << 1;
    /// The bit of `modify`.
    pub const MODIFY: u8 = 1 << 2;
    /// The bit of `perm`.
    pub const PERM: u8 = 1 << 3;
    /// The bit of `unique`.
    pub const UNIQUE: u8 = 1 << 4;
    /// The bit of `UNIX.mode`.
    pub const UNIX_MODE: u8 = 1 << 5;
    /// The bit of `UNIX.owner`.
    pub const UNIX_OWNER: u8 = 1 << 6;
    /// The bit of `UNIX.group`.
    pub const UNIX_GROUP: u8 = 1 << 7;
    /// Every fact with its bit and name, in the order of a line and of FEAT.
    pub const ALL: [(u8, &'static str); 8] = [
        (Self::TYPE, "type"),
        (Self::SIZE, "size"),
        (Self::MODIFY, "modify"),
        (Self::PERM, "perm"),
        (Self::UNIQUE, "unique"),
        (Self::UNIX_MODE, "UNIX.mode"),
        (Self::UNIX_OWNER, "UNIX.owner"),
        (Self::UNIX_GROUP, "UNIX.group"),
    ];
    /// All of them.
    pub const EVERY: Facts = Facts(0xff);

    /// Whether the fact of this bit is wanted.
    pub fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Of the question.
    pub tag: u32,
    /// How it ended.
    pub outcome: Result<Done, Why>,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Done {
    /// It is done.
    Nothing,
    /// One descriptor.
    Opened(Opened),
    /// Attributes.
    Stat(Attrs),
    /// One descriptor, a sealed memfd.
    Listing {
        /// Its length in bytes.
        bytes: u64,
        /// It is about what is in a directory, not about a single name.
        directory: bool,
    },
    /// One line.
    Line(Blob<5000>),
    /// So many bytes.
    Space(u64),
    /// Two descriptors: the source, and the copy, which is empty.
    Copying {
        /// Size of the source when it was opened.
        bytes: u64,
        /// What source and copy are on, as in [`Storage::device`].
        devices: (u64, u64),
    },
}

/// A regular file was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// Size in bytes when it was opened.
    pub size: u64,
    /// Whether it was made by this operation.
    pub created: bool,
    /// What it is called, for [`WriteMode::Unique`].
    pub chosen: Option<VirtPath>,
    /// What its bytes are kept on.
    pub storage: Storage,
    /// An upload under a hidden name, until [`Op::Publish`]: how it is called on this link.
    pub staged: Option<NonZeroU32>,
}

/// What the bytes of a file are kept on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// Which file system it is (`st_dev`, stat(2)): who waits for one does not wait for another.
    pub device: u64,
    /// Whether reading or writing can make anybody wait.
    pub medium: Medium,
}

impl Storage {
    /// A file that has no name (memfd_create(2)).
    pub const MEMORY: Storage = Storage { device: 0, medium: Medium::Memory };
}

/// Whether reading or writing the bytes of a file can make anybody wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Medium {
    /// Memory (tmpfs, ramfs): nobody waits.
    Memory,
    /// A disk of this machine, whose file system tells what is in the page cache (`RWF_NOWAIT`, preadv2(2)).
    Disk {
        /// So many bytes from the beginning were there when the file was opened for reading; more may have been.
        cached: u64,
    },
    /// Anything else (network file systems, FUSE): every call may wait.
    Remote,
}

/// Attributes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attrs {
    /// What it is.
    pub kind: Kind,
    /// Bytes.
    pub size: u64,
    /// Modification time, UTC seconds since 1970.
    pub modified: i64,
    /// Permission bits, 0 to 0o7777.
    pub mode: u16,
}

/// What a name leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link (only where links are not followed, or lead nowhere).
    Link,
    /// Anything else.
    Other,
}

/// A polite no. Becomes a reply code in worker/src/ftp/reply.rs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Why {
    /// ENOENT, or a link that leads nowhere.
    NotFound,
    /// The account's permissions or the file system's say no (EACCES, EPERM, EROFS).
    Denied,
    /// EEXIST, or no permission to overwrite.
    Exists,
    /// ENOTDIR.
    NotDirectory,
    /// EISDIR: a regular file is needed.
    IsDirectory,
    /// Neither file nor directory: a FIFO, a device, a socket.
    NotRegular,
    /// ENOTEMPTY.
    NotEmpty,
    /// ENOSPC, EDQUOT.
    NoSpace,
    /// ENAMETOOLONG, ELOOP, EINVAL, EXDEV, an offset out of range: the request cannot be done as written.
    Invalid,
    /// EBUSY, EMFILE, ENOMEM, EAGAIN: later perhaps.
    Busy,
    /// Any other errno.
    Io(i32),
}

impl Record for Ask {
    // Two paths of 4,095 bytes and their lengths.
    const CAP: usize = 8320;
    fn descriptors(&self) -> RangeInclusive<usize> {
        NONE
    }
}

impl Record for Answer {
    const CAP: usize = 5120;
    fn descriptors(&self) -> RangeInclusive<usize> {
        match self.outcome {
            Ok(Done::Opened(_) | Done::Listing { .. }) => ONE,
            Ok(Done::Copying { .. }) => TWO,
            Ok(Done::Nothing | Done::Stat(_) | Done::Line(_) | Done::Space(_)) | Err(_) => NONE,
        }
    }
}

/// The worker's end.
pub type WorkerEnd = Channel<Ask, Answer>;
/// The broker's end.
pub type BrokerEnd = Channel<Answer, Ask>;
