//! Starts `examples/confined` on a link of its own and tells how it ended.

use std::fs::{self, File};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use child_sandbox::Role;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

/// Whom the tests run a process as that must not be root. Nobody owns files as this uid but the tests.
pub const NOBODY: u32 = 65534;

/// Which start is played: caissond as root, or as an ordinary user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    AsRoot,
    AsUser,
}

impl Start {
    /// Both where the tests run as root; otherwise the ordinary user's only.
    pub fn possible() -> Vec<Start> {
        if is_root() {
            vec![Start::AsRoot, Start::AsUser]
        } else {
            eprintln!("not root: the start as root is not tested");
            vec![Start::AsUser]
        }
    }
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// An account's directory with a file in it, a file outside of it, and a listener.
pub struct Place {
    pub dir: PathBuf,
    pub listener: TcpListener,
    program: Arc<Program>,
}

impl Place {
    pub fn new() -> Place {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("caisson-sandbox-{}-{number}", std::process::id()));
        fs::create_dir_all(dir.join("account")).expect("a directory");
        fs::write(dir.join("account/file"), "in the account").expect("a file");
        fs::write(dir.join("held"), "outside").expect("a file");
        if is_root() {
            for path in ["", "account", "account/file", "held"] {
                chown(dir.join(path), Some(NOBODY), Some(NOBODY)).expect("chown");
            }
        }
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        Place { dir, listener, program: Program::shared() }
    }

    /// `examples/confined`, where everybody can run it.
    pub fn program(&self) -> &Path {
        &self.program.0
    }

    fn descriptors(&self, role: Option<Role>) -> [OwnedFd; 3] {
        let path_only = if role == Some(Role::Broker) { libc::O_PATH } else { 0 };
        let directory = File::options()
            .read(true)
            .custom_flags(libc::O_DIRECTORY | path_only)
            .open(self.dir.join("account"))
            .expect("the account");
        let held = File::open(self.dir.join("held")).expect("the file");
        let listener = self.listener.try_clone().expect("the listener");
        [directory.into(), held.into(), listener.into()]
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// A started process and the test's end of its link.
pub struct Confined {
    pub child: Child,
    pub link: OwnedFd,
}

/// How a process ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// It died of `SIGSYS`.
    Killed,
    /// It said this and left in order.
    Said(String),
    /// Anything else.
    Other(String),
}

/// Starts `examples/confined HOW ROLE … RIGHTS ACT` and hands it its descriptors; the role `None` is the monitor's.
pub fn start(
    start: Start,
    how: &str,
    role: impl Into<Option<Role>>,
    rights: &str,
    act: &str,
    place: &Place,
) -> Confined {
    let role = role.into();
    let (ours, theirs) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .expect("a link");
    let becomes = match (start, role) {
        (Start::AsUser, _) | (_, None) => "-".to_owned(),
        (Start::AsRoot, _) => NOBODY.to_string(),
    };
    let mut command = Command::new(place.program());
    command.args([how, role.map_or("monitor", Role::as_str), &becomes, rights, act]).stdin(Stdio::from(theirs));
    if start == Start::AsUser && is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let child = command.spawn().expect("examples/confined, which cargo builds with the tests");
    drop(command);
    let held = place.descriptors(role);
    send(&ours, &held.each_ref().map(AsFd::as_fd));
    Confined { child, link: ours }
}

impl Confined {
    /// Its next record: first `ready` and what is weaker, or an error; empty when it is gone.
    pub fn hear(&self) -> String {
        let mut text = vec![0; 4096];
        let (got, _) = rustix::net::recv(&self.link, &mut text[..], RecvFlags::empty()).unwrap_or((0, 0));
        String::from_utf8_lossy(&text[..got]).into_owned()
    }

    pub fn end(mut self) -> End {
        let said = self.hear();
        let status = self.child.wait().expect("a child");
        let signal = status.signal().or(status.code().map(|c| c - 128));
        match (said.as_str(), status.success()) {
            ("", _) if signal == Some(libc::SIGSYS) => End::Killed,
            (_, true) => End::Said(said),
            _ => End::Other(format!("{status}, said {said:?}")),
        }
    }
}

/// Sends descriptors as one record.
pub fn send(link: &OwnedFd, descriptors: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(descriptors)));
    rustix::net::sendmsg(link, &[IoSlice::new(b"x")], &mut ancillary, SendFlags::empty()).expect("a record");
}

/// A copy of the example where an ordinary user can run it, also when the build directory is closed to others.
struct Program(PathBuf);

impl Program {
    /// One for all tests of the process, for as long as one of them has a [`Place`].
    fn shared() -> Arc<Program> {
        static SHARED: Mutex<Weak<Program>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let program = Arc::new(Program::copy());
            *shared = Arc::downgrade(&program);
            program
        })
    }

    fn copy() -> Program {
        let test = std::env::current_exe().expect("the test program");
        let built = test.ancestors().nth(2).expect("the profile's directory").join("examples/confined");
        // Never the name of one that is just being removed.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let copy = std::env::temp_dir().join(format!("caisson-confined-{}-{number}", std::process::id()));
        fs::copy(&built, &copy).expect("examples/confined, which cargo builds with the tests");
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).expect("chmod");
        Program(copy)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
