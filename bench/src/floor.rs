//! The floor: the least work with which a server can satisfy the bench's client. The bound to compare with.
//!
//! Threads that wait in accept, blocking sockets, replies from constants, one passive socket per session that is used
//! again, downloads by sendfile, uploads by splice through a pipe of the thread. No check of user or password, no
//! time limits, no listing: so it runs as the bench's user, on the loopback, for the time of the run, and takes
//! plain file names in its folder only.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::pipe::SpliceFlags;
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::error::{Call, Error, Result};

/// Bytes of the pipes of the first sessions that upload.
const PIPE: usize = 1 << 20;
/// How many the first ones are; further ones keep the kernel's 64 KiB, for without a privilege a user has 64 MiB in
/// pipes (proc(5), pipe-user-pages-soft).
const FIRST_PIPES: usize = 16;
/// Connections that may wait to be accepted; the kernel takes the lesser of this and somaxconn.
const BACKLOG: i32 = 4096;
const PIECE: usize = 64 << 10;
const STACK: usize = 64 << 10;

/// `bench floor PORT FOLDER`: serves until it is ended.
///
/// # Errors
/// The port is taken or the folder is not there.
pub fn main(words: &[OsString]) -> Result<()> {
    let [port, folder] = words else {
        return Err(Error::Other("usage: bench floor PORT FOLDER".into()));
    };
    let port: u16 = port.to_str().and_then(|p| p.parse().ok()).ok_or_else(|| Error::Other("floor: bad port".into()))?;
    set_parent_process_death_signal(Some(Signal::KILL)).call(|| "prctl".into())?;
    std::env::set_current_dir(folder).call(|| format!("chdir {}", Path::new(folder).display()))?;
    let listener =
        TcpListener::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).call(|| format!("bind port {port}"))?;
    // A second listen(2) only sets the backlog, which the standard library makes 128.
    rustix::net::listen(&listener, BACKLOG).call(|| "listen".into())?;
    serve(&Arc::new(Floor { listener, spare: AtomicUsize::new(0) }));
    Ok(())
}

/// Pipes there are; each stays with its thread.
static PIPES: AtomicUsize = AtomicUsize::new(0);

struct Floor {
    listener: TcpListener,
    /// Threads that wait in accept.
    spare: AtomicUsize,
}

/// One thread: takes session after session. The last one that waits starts another before it serves.
fn serve(floor: &Arc<Floor>) {
    floor.spare.fetch_add(1, Ordering::Relaxed);
    let mut pipe = None;
    while let Ok((control, _)) = floor.listener.accept() {
        if floor.spare.fetch_sub(1, Ordering::Relaxed) == 1 {
            let again = Arc::clone(floor);
            let _ = thread::Builder::new().stack_size(STACK).spawn(move || serve(&again));
        }
        // A client that went away ends its session, nothing else.
        let _ = session(control, &mut pipe);
        floor.spare.fetch_add(1, Ordering::Relaxed);
    }
}

fn session(mut control: TcpStream, pipe: &mut Option<(OwnedFd, OwnedFd)>) -> std::io::Result<()> {
    control.set_nodelay(true)?;
    control.write_all(b"220 floor\r\n")?;
    let mut passive = None;
    let mut inbox = [0_u8; 512];
    let mut held = 0;
    loop {
        let got = control.read(&mut inbox[held..])?;
        if got == 0 {
            return Ok(());
        }
        held += got;
        while let Some(end) = inbox[..held].iter().position(|&b| b == b'\n') {
            let line = String::from_utf8_lossy(&inbox[..end]).trim_end().to_owned();
            inbox.copy_within(end + 1..held, 0);
            held -= end + 1;
            let (verb, name) = line.split_once(' ').unwrap_or((&line, ""));
            match verb {
                "USER" => control.write_all(b"331 ok\r\n")?,
                "PASS" => control.write_all(b"230 ok\r\n")?,
                "EPSV" => control.write_all(epsv(&mut passive)?.as_bytes())?,
                "RETR" => retr(&mut control, passive.as_ref(), name)?,
                "STOR" => stor(&mut control, passive.as_ref(), name, pipe)?,
                "QUIT" => return control.write_all(b"221 bye\r\n"),
                _ => control.write_all(b"200 ok\r\n")?,
            }
        }
    }
}

fn epsv(passive: &mut Option<(TcpListener, String)>) -> std::io::Result<String> {
    if let Some((_, reply)) = passive {
        return Ok(reply.clone());
    }
    let listener = TcpListener::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
    let reply = format!("229 ok (|||{}|)\r\n", listener.local_addr()?.port());
    Ok(passive.insert((listener, reply)).1.clone())
}

fn retr(control: &mut TcpStream, passive: Option<&(TcpListener, String)>, name: &str) -> std::io::Result<()> {
    let Some((data, file)) = start(control, passive, name, OFlags::RDONLY)? else { return Ok(()) };
    // A short first piece is the whole file. What is longer goes corked, which saves segments (tcp(7), TCP_CORK).
    if rustix::fs::sendfile(&data, &file, None, PIECE)? == PIECE {
        rustix::net::sockopt::set_tcp_cork(&data, true)?;
        while rustix::fs::sendfile(&data, &file, None, 0x7fff_f000)? > 0 {}
    }
    drop(data);
    control.write_all(b"226 ok\r\n")
}

fn stor(
    control: &mut TcpStream,
    passive: Option<&(TcpListener, String)>,
    name: &str,
    pipe: &mut Option<(OwnedFd, OwnedFd)>,
) -> std::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    let Some((data, file)) = start(control, passive, name, flags)? else { return Ok(()) };
    if pipe.is_none() {
        let ends = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        if PIPES.fetch_add(1, Ordering::Relaxed) < FIRST_PIPES {
            rustix::pipe::fcntl_setpipe_size(&ends.1, PIPE)?;
        }
        *pipe = Some(ends);
    }
    let Some((out, into)) = pipe.as_ref() else { return Ok(()) };
    loop {
        let mut held = rustix::pipe::splice(&data, None, into, None, PIPE, SpliceFlags::MOVE)?;
        if held == 0 {
            break;
        }
        while held > 0 {
            held -= rustix::pipe::splice(out, None, &file, None, held, SpliceFlags::MOVE)?;
        }
    }
    drop((data, file));
    control.write_all(b"226 ok\r\n")
}

fn start(
    control: &mut TcpStream,
    passive: Option<&(TcpListener, String)>,
    name: &str,
    flags: OFlags,
) -> std::io::Result<Option<(TcpStream, OwnedFd)>> {
    let Some((listener, _)) = passive else {
        control.write_all(b"503 EPSV first\r\n")?;
        return Ok(None);
    };
    let (data, _) = listener.accept()?;
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let is_plain = !name.contains('/') && !name.starts_with('.');
    let opened = is_plain.then(|| rustix::fs::openat(CWD, name, flags, Mode::from_raw_mode(0o644)));
    let Some(Ok(file)) = opened else {
        control.write_all(b"550 no\r\n")?;
        return Ok(None);
    };
    control.write_all(b"150 ok\r\n")?;
    Ok(Some((data, file)))
}
