//! What each role has to be able to do after the seal, done once.

use std::io::{Error, IoSlice, IoSliceMut, Read, Result};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use child_sandbox::{Rights, Role};
use rustix::event::epoll;
use rustix::fs::{AtFlags, MemfdFlags, Mode, OFlags, ResolveFlags, SealFlags, Timestamps};
use rustix::io::Errno;
use rustix::net::{Shutdown, SocketFlags, sockopt};
use rustix::pipe::{PipeFlags, SpliceFlags};

/// A helper thread's question and answer.
pub type Ask = (SyncSender<u32>, std::cell::RefCell<Option<Receiver<()>>>);
pub type Answer = (Receiver<u32>, SyncSender<()>);

pub fn helper_thread_channels() -> (Ask, Answer) {
    let (out, answers) = sync_channel(1);
    let (ask, questions) = sync_channel(1);
    ((out, std::cell::RefCell::new(Some(questions))), (answers, ask))
}

/// Made between confine and seal, as real helper threads are. It answers once, then ends.
pub fn helper_thread((out, questions): &Ask) {
    let (out, questions) = (out.clone(), questions.borrow_mut().take().expect("one helper"));
    std::thread::Builder::new()
        .name("helper".into())
        .spawn(move || {
            if questions.recv().is_ok() {
                std::thread::sleep(Duration::from_millis(1));
                // Grows the thread's own arena.
                let work: Vec<Vec<u8>> = (0..100).map(|_| vec![1; 100_000]).collect();
                let _ = out.send(work.iter().map(|w| u32::from(w[0])).sum());
            }
        })
        .expect("a thread");
}

pub fn works(
    role: Option<Role>,
    rights: &Rights,
    link: &OwnedFd,
    directory: &OwnedFd,
    listener: &OwnedFd,
    helper: &Answer,
) -> Result<()> {
    helper.1.send(()).map_err(Error::other)?;
    assert_eq!(helper.0.recv().map_err(Error::other)?, 100);
    let Some(role) = role else { return Ok(()) };
    match role {
        Role::Config => config(),
        Role::Authd => authd(link),
        Role::WorkerFtp | Role::WorkerSsh => worker(link, listener),
        Role::Broker if rights.write => broker(directory),
        Role::Broker => broker_of_a_reader(directory),
    }
}

/// As caisson-config does before the seal.
pub fn load_name_service() {
    let _ = nix::unistd::User::from_name("caisson-nobody-has-this");
    let _ = nix::unistd::Group::from_name("caisson-nobody-has-this");
}

/// Looks names up, reads a file of the machine, and can write none.
fn config() -> Result<()> {
    assert_eq!(nix::unistd::User::from_name("root")?.map(|user| user.uid.as_raw()), Some(0));
    assert!(nix::unistd::Group::from_name("caisson-nobody-has-this")?.is_none());
    let mut text = String::new();
    std::fs::File::open("/etc/passwd")?.read_to_string(&mut text)?;
    assert!(text.contains("root:"));
    Ok(())
}

/// Waits on a link and reads a table out of a memfd that came over it.
fn authd(link: &OwnedFd) -> Result<()> {
    let table = super::receive(link, 1)?.remove(0);
    let mut text = [0; 5];
    rustix::io::pread(&table, &mut text, 0)?;
    assert_eq!(&text, b"table");
    rustix::fs::fcntl_get_seals(&table)?;
    Ok(())
}

/// Accepts a client on the monitor's listener, sends it a file, and stores what it sends.
fn worker(link: &OwnedFd, listener: &OwnedFd) -> Result<()> {
    let mut files = super::receive(link, 2)?;
    let (download, upload) = (files.remove(0), files.remove(0));
    let client = accept(listener)?;
    sockopt::set_tcp_nodelay(&client, true)?;
    sockopt::socket_error(&client)?.map_err(Error::from)?;
    rustix::net::getpeername(&client)?;
    let size = rustix::fs::fstat(&download)?.st_size;
    let mut sent = 0;
    while sent < size {
        sent += i64::try_from(rustix::fs::sendfile(&client, &download, None, 1 << 20)?).map_err(Error::other)?;
    }
    store(&client, &upload)?;
    rustix::net::shutdown(&client, Shutdown::Write)?;
    // A read that does not wait.
    let mut first = [0];
    rustix::io::preadv2(&upload, &mut [IoSliceMut::new(&mut first)], 0, rustix::io::ReadWriteFlags::NOWAIT)?;
    let mut rest = TcpStream::from(client);
    let _ = rest.read(&mut [0; 16])?;
    Ok(())
}

fn accept(listener: &OwnedFd) -> Result<OwnedFd> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let flags = epoll::EventFlags::IN | epoll::EventFlags::EXCLUSIVE;
    epoll::add(&epoll, listener, epoll::EventData::new_u64(1), flags)?;
    let mut events = [epoll::Event { flags, data: epoll::EventData::new_u64(0) }];
    epoll::wait(&epoll, &mut events[..], None)?;
    Ok(rustix::net::accept_with(listener, SocketFlags::CLOEXEC)?)
}

fn store(client: &OwnedFd, upload: &OwnedFd) -> Result<()> {
    let (pipe_out, pipe_in) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    rustix::pipe::fcntl_setpipe_size(&pipe_in, 1 << 20)?;
    loop {
        let got = rustix::pipe::splice(client, None, &pipe_in, None, 1 << 20, SpliceFlags::MOVE)?;
        if got == 0 {
            break;
        }
        let mut left = got;
        while left > 0 {
            left -= rustix::pipe::splice(&pipe_out, None, upload, None, left, SpliceFlags::MOVE)?;
        }
    }
    rustix::fs::fsync(upload)?;
    Ok(())
}

fn beneath(directory: &OwnedFd, path: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat2(
        directory,
        path,
        flags | OFlags::CLOEXEC,
        if flags.contains(OFlags::CREATE) { Mode::from(0o644) } else { Mode::empty() },
        ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS,
    )
}

/// Every operation of an account with all rights.
fn broker(directory: &OwnedFd) -> Result<()> {
    rustix::fs::mkdirat(directory, "d", Mode::from(0o755))?;
    let new = beneath(directory, "d/new", OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC)?;
    rustix::io::write(&new, b"hello")?;
    rustix::fs::ftruncate(&new, 4)?;
    rustix::fs::fchmod(&new, Mode::from(0o600))?;
    rustix::fs::utimensat(
        directory,
        "d/new",
        &Timestamps {
            last_access: rustix::fs::Timespec { tv_sec: 1, tv_nsec: 0 },
            last_modification: rustix::fs::Timespec { tv_sec: 2, tv_nsec: 0 },
        },
        AtFlags::SYMLINK_NOFOLLOW,
    )?;
    let stat = rustix::fs::statat(directory, "d/new", AtFlags::SYMLINK_NOFOLLOW)?;
    assert_eq!((stat.st_size, stat.st_mtime), (4, 2));
    rustix::fs::statx(directory, "d/new", AtFlags::empty(), rustix::fs::StatxFlags::ALL)?;
    rustix::fs::fstatvfs(directory)?;
    rustix::fs::renameat(directory, "d/new", directory, "moved")?;
    rustix::fs::renameat_with(directory, "moved", directory, "d/moved", rustix::fs::RenameFlags::NOREPLACE)?;
    rustix::fs::symlinkat("moved", directory, "d/link")?;
    assert_eq!(rustix::fs::readlinkat(directory, "d/link", Vec::new())?.as_bytes(), b"moved");
    listing(directory, 4)?;
    for name in ["d/moved", "d/link"] {
        rustix::fs::unlinkat(directory, name, AtFlags::empty())?;
    }
    rustix::fs::unlinkat(directory, "d", AtFlags::REMOVEDIR)?;
    // Beneath an escape there is only the root again.
    for path in ["../../../file", "/file"] {
        beneath(directory, path, OFlags::RDONLY)?;
    }
    Ok(())
}

/// Reads a directory and seals the result in a memfd.
fn listing(directory: &OwnedFd, expected: usize) -> Result<()> {
    let opened = beneath(directory, "d", OFlags::RDONLY | OFlags::DIRECTORY)?;
    let names = rustix::fs::Dir::new(opened)?.filter_map(|e| e.ok()).count();
    assert_eq!(names, expected);
    let memfd = rustix::fs::memfd_create("listing", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    rustix::io::writev(&memfd, &[IoSlice::new(b"a"), IoSlice::new(b"b")])?;
    rustix::fs::fcntl_add_seals(&memfd, SealFlags::SEAL | SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK)?;
    assert_eq!(rustix::io::write(&memfd, b"c"), Err(Errno::PERM));
    Ok(())
}

/// An account that may read and list, and nothing else.
fn broker_of_a_reader(directory: &OwnedFd) -> Result<()> {
    let refused = [Errno::ACCESS, Errno::ROFS];
    let file = beneath(directory, "file", OFlags::RDONLY)?;
    rustix::io::read(&file, &mut [0; 8][..])?;
    beneath(directory, "", OFlags::RDONLY | OFlags::DIRECTORY)
        .or_else(|_| beneath(directory, ".", OFlags::RDONLY | OFlags::DIRECTORY))?;
    for (what, got) in [
        ("write", beneath(directory, "file", OFlags::RDWR).map(drop)),
        ("truncate", beneath(directory, "file", OFlags::RDONLY | OFlags::TRUNC).map(drop)),
        ("create", beneath(directory, "new", OFlags::RDWR | OFlags::CREATE).map(drop)),
        ("mkdir", rustix::fs::mkdirat(directory, "new", Mode::from(0o755))),
        ("delete", rustix::fs::unlinkat(directory, "file", AtFlags::empty())),
        ("rename", rustix::fs::renameat(directory, "file", directory, "new")),
        ("symlink", rustix::fs::symlinkat("file", directory, "new")),
        ("escape", rustix::fs::mkdirat(directory, "../new", Mode::from(0o755))),
    ] {
        assert!(got.is_err_and(|e| refused.contains(&e)), "{what}: {got:?}");
    }
    Ok(())
}
