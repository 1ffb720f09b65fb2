//! The broker: one account's directory, walked with openat2(2) beneath its root. No socket, no program, no process.
//!
//! It is the only child whose calls take paths. What they can reach is the mount namespace's and Landlock's to say; the flags of
//! openat2 are out of a filter's sight. openat(2) is left out, so nothing is opened around monitor/broker/src/resolve.rs.

use libc::{
    F_ADD_SEALS, F_DUPFD_CLOEXEC, F_GET_SEALS, F_GETFD, F_GETFL, F_SETFD, F_SETFL, LOCK_EX, LOCK_NB, SOL_SOCKET,
};

use super::Test::OneOf;
use super::{Row, arg, call, when};

/// include/uapi/asm-generic/socket.h: SO_RCVTIMEO with a time that is 64 bits wide, which rustix uses.
const SO_RCVTIMEO_NEW: libc::c_int = 66;

/// Rows of the broker.
pub const CALLS: &[Row] = &[
    call!(SYS_fchmod, "monitor/broker/src/op/set_mode.rs; monitor/broker/src/op/open_staged.rs"),
    call!(SYS_fchmodat, "monitor/broker/src/op/set_mode.rs"),
    when!(
        SYS_fcntl,
        [arg(1, OneOf(&[F_ADD_SEALS, F_DUPFD_CLOEXEC, F_GETFD, F_GETFL, F_GET_SEALS, F_SETFD, F_SETFL]))],
        "monitor/broker/src/listing/output.rs seals a listing; monitor/broker/src/desk.rs keeps a link for the one who ends it"
    ),
    when!(
        SYS_flock,
        [arg(1, OneOf(&[LOCK_EX | LOCK_NB]))],
        "monitor/broker/src/unfinished.rs: an upload under way, and one left behind, which nobody locks"
    ),
    call!(SYS_fstatfs, "monitor/broker/src/op/space.rs; monitor/broker/src/storage.rs"),
    call!(SYS_fsync, "monitor/broker/src/staged.rs: the name of an upload, where that is set"),
    call!(SYS_ftruncate, "monitor/broker/src/op/open_write.rs; monitor/broker/src/op/copy.rs"),
    call!(SYS_getdents64, "monitor/broker/src/listing/names.rs"),
    when!(
        SYS_linkat,
        [arg(4, OneOf(&[0]))],
        "monitor/broker/src/staged.rs gives an upload its name where renames know no flags; never through a link or a descriptor"
    ),
    call!(SYS_memfd_create, "monitor/broker/src/listing/output.rs: a listing"),
    call!(SYS_mkdirat, "monitor/broker/src/op/make_dir.rs"),
    call!(SYS_newfstatat, "monitor/broker/src/op/stat.rs"),
    call!(SYS_openat2, "monitor/broker/src/resolve.rs"),
    call!(SYS_preadv2, "monitor/broker/src/storage.rs asks whether data is in the page cache"),
    call!(SYS_pwrite64, "monitor/broker/src/listing/output.rs"),
    call!(SYS_readlinkat, "monitor/broker/src/listing/long.rs shows where a link leads"),
    call!(SYS_renameat, "monitor/broker/src/op/rename.rs, replacing; monitor/broker/src/staged.rs"),
    call!(SYS_renameat2, "monitor/broker/src/op/rename.rs, not replacing; monitor/broker/src/staged.rs"),
    when!(
        SYS_setsockopt,
        [arg(1, OneOf(&[SOL_SOCKET])), arg(2, OneOf(&[SO_RCVTIMEO_NEW]))],
        "monitor/broker/src/serve.rs tells when a link rests"
    ),
    call!(SYS_shutdown, "monitor/broker/src/desk.rs ends a worker's link"),
    call!(SYS_statx, "monitor/broker/src/op/stat.rs"),
    call!(SYS_symlinkat, "monitor/broker/src/op/symlink.rs"),
    call!(
        SYS_unlinkat,
        "monitor/broker/src/op/remove.rs; monitor/broker/src/staged.rs; monitor/broker/src/unfinished.rs"
    ),
    call!(SYS_utimensat, "monitor/broker/src/op/set_times.rs"),
];
const _: () = assert!(!CALLS.is_empty());
