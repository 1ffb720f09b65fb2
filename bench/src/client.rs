//! The client that plays against every server: blocking sockets, no copy, as little work of its own as there can be.
//!
//! A download is received with MSG_TRUNC, which makes TCP drop the bytes inside the kernel (tcp(7)); an upload is a
//! sendfile from tmpfs. Data connections are passive (EPSV, RFC 2428 section 3).
//! Under TLS the file of an upload is one buffer, sealed again and again, and a download can be received unopened: then
//! the server's work is measured and not the client's.
//! Every wait is bounded: by the socket's time limit, and by the deadline of the timed section.
//! Not here: checking of contents; the rows compare sizes.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpStream};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustls::ClientConfig;

use crate::error::{Call, Error, Result};
use crate::tls::{self, Wire};

/// No single wait is longer than this, seconds.
const PATIENCE: Duration = Duration::from_secs(20);
/// A server that says nothing for so long waits for us.
const A_MOMENT: Duration = Duration::from_millis(20);
/// One receive takes at most so many bytes.
pub(crate) const PIECE: usize = 1 << 20;
/// Longest listing that is read, bytes.
pub const LONGEST_LISTING: usize = 4 << 20;
/// Longest reply that is read, bytes.
pub(crate) const LONGEST_REPLY: usize = 64 << 10;

/// One control connection.
#[derive(Debug)]
pub struct Session {
    control: TcpStream,
    deadline: Instant,
    /// What was received and not yet taken.
    inbox: Vec<u8>,
    /// Room that a receive may pretend to fill.
    room: Vec<u8>,
    secure: Option<Secure>,
}

/// A session under TLS.
#[derive(Debug)]
struct Secure {
    wire: Wire,
    config: Arc<ClientConfig>,
    /// Data connections so far, and those of them that were resumed.
    data: (u64, u64),
}

impl Session {
    /// Connects and reads the greeting.
    ///
    /// # Errors
    /// Nobody listens, or the greeting is not 220.
    pub fn connect(port: u16, deadline: Instant) -> Result<Self> {
        let control = dial(port)?;
        control.set_nodelay(true).call(|| "set TCP_NODELAY".into())?;
        let mut session = Self { control, deadline, inbox: Vec::with_capacity(512), room: Vec::new(), secure: None };
        session.expect("(connect)", &[220])?;
        Ok(session)
    }

    /// Connects, reads the greeting, and goes on under TLS (RFC 4217 section 4); data connections may resume that or not.
    ///
    /// # Errors
    /// As [`Session::connect`], or there is no TLS.
    pub fn connect_secured(port: u16, resumes: bool, deadline: Instant) -> Result<Self> {
        let mut session = Session::connect(port, deadline)?;
        session.command("AUTH TLS", &[234])?;
        let config = tls::config(resumes)?;
        let wire = Wire::shake(&session.control, &config)?;
        session.secure = Some(Secure { wire, config, data: (0, 0) });
        Ok(session)
    }

    /// PBSZ and PROT: data connections go under TLS as well.
    ///
    /// # Errors
    /// They are refused.
    pub fn protect(&mut self) -> Result<()> {
        self.command("PBSZ 0", &[200])?;
        self.command("PROT P", &[200]).map(drop)
    }

    /// Of a hundred data connections, so many were resumed.
    pub fn resumed(&self) -> f64 {
        let (all, resumed) = self.secure.as_ref().map_or((0, 0), |secure| secure.data);
        #[allow(clippy::cast_precision_loss, reason = "thousands at most")]
        let share = resumed as f64 / all.max(1) as f64;
        100.0 * share
    }

    /// USER and PASS, then TYPE I.
    ///
    /// # Errors
    /// The login is refused.
    pub fn login(&mut self, user: &str, password: &str) -> Result<()> {
        self.enter(user, password)?;
        self.command("TYPE I", &[200]).map(drop)
    }

    /// USER and PASS alone.
    ///
    /// # Errors
    /// The login is refused.
    pub fn enter(&mut self, user: &str, password: &str) -> Result<()> {
        self.command(&format!("USER {user}"), &[331])?;
        self.send(&format!("PASS {password}"))?;
        self.expect("PASS", &[230]).map(drop)
    }

    /// Gives the next timed section its own deadline.
    pub fn until(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    /// Sends a command and takes its reply, which must have one of `codes`.
    ///
    /// # Errors
    /// Another code, a closed connection, the time limit.
    pub fn command(&mut self, line: &str, codes: &[u16]) -> Result<String> {
        self.send(line)?;
        self.expect(line, codes)
    }

    /// RETR; the number of bytes that came.
    ///
    /// # Errors
    /// A reply out of the ordinary, the time limit.
    pub fn download(&mut self, name: &str) -> Result<u64> {
        let data = self.passive()?;
        self.command(&format!("RETR {name}"), &[150, 125])?;
        let total = self.skim(name, &data, None)?;
        drop(data);
        self.expect("RETR", &[226, 250])?;
        Ok(total)
    }

    /// STOR of the first `len` bytes of `source`.
    ///
    /// # Errors
    /// A reply out of the ordinary, the time limit.
    pub fn upload(&mut self, name: &str, source: &File, len: u64) -> Result<()> {
        let data = self.passive()?;
        self.command(&format!("STOR {name}"), &[150, 125])?;
        let mut offset = 0;
        while offset < len {
            let piece = usize::try_from(len - offset).unwrap_or(usize::MAX).min(16 * PIECE);
            let sent = rustix::fs::sendfile(&data, source, Some(&mut offset), piece).call(|| format!("send {name}"))?;
            if sent == 0 {
                return Err(Error::Other(format!("the source of {name} is shorter than {len} bytes")));
            }
            self.in_time(name)?;
        }
        drop(data);
        self.expect("STOR", &[226, 250]).map(drop)
    }

    /// RETR under TLS, opened; the number of bytes that came.
    ///
    /// # Errors
    /// As [`Session::download`].
    pub fn download_secured(&mut self, name: &str) -> Result<u64> {
        let (data, mut wire) = self.retrieve(name)?;
        let mut total = 0;
        while wire.receive(&data, |plain| total += plain.len() as u64)? {
            self.in_time(name)?;
        }
        wire.close(&data)?;
        drop(data);
        self.expect("RETR", &[226, 250])?;
        Ok(total)
    }

    /// RETR of a file of `len` bytes under TLS, received unopened; the number of bytes of its records.
    ///
    /// # Errors
    /// As [`Session::download`].
    pub fn skim_secured(&mut self, name: &str, len: u64) -> Result<u64> {
        let (data, wire) = self.retrieve(name)?;
        let total = self.skim(name, &data, Some((wire, len)))?;
        drop(data);
        self.expect("RETR", &[226, 250])?;
        Ok(total)
    }

    /// Receives to the end, and looks at nothing; the number of bytes. Under TLS, all that is missing behind so many bytes may
    /// be the end, for which some servers want ours first.
    fn skim(&mut self, name: &str, data: &TcpStream, mut ending: Option<(Wire, u64)>) -> Result<u64> {
        self.room.resize(PIECE, 0);
        let mut total = 0;
        loop {
            let mut waits = ending.take_if(|(_, len)| total >= *len);
            if waits.is_some() {
                data.set_read_timeout(Some(A_MOMENT)).call(|| "set a time limit".into())?;
            }
            match rustix::net::recv(data, &mut self.room[..], RecvFlags::TRUNC) {
                Ok((_, 0)) => return Ok(total),
                Ok((_, got)) => {
                    total += got as u64;
                    ending = ending.or(waits);
                }
                Err(Errno::AGAIN) if waits.is_some() => {
                    data.set_read_timeout(Some(PATIENCE)).call(|| "set a time limit".into())?;
                    waits.as_mut().map_or(Ok(()), |(wire, _)| wire.close(data))?;
                }
                Err(errno) => return Err(errno).call(|| format!("receive {name}")),
            }
            self.in_time(name)?;
        }
    }

    fn retrieve(&mut self, name: &str) -> Result<(TcpStream, Wire)> {
        let data = self.passive()?;
        self.command(&format!("RETR {name}"), &[150, 125])?;
        let wire = self.shake(&data)?;
        Ok((data, wire))
    }

    /// STOR of `len` bytes under TLS, which are `block` again and again.
    ///
    /// # Errors
    /// As [`Session::upload`].
    pub fn upload_secured(&mut self, name: &str, block: &[u8], len: u64) -> Result<()> {
        let data = self.passive()?;
        self.command(&format!("STOR {name}"), &[150, 125])?;
        let mut wire = self.shake(&data)?;
        let mut left = len;
        while left > 0 {
            let piece = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
            wire.send(&data, &block[..piece])?;
            left -= piece as u64;
            self.in_time(name)?;
        }
        wire.close(&data)?;
        data.shutdown(Shutdown::Write).call(|| "shutdown".into())?;
        // The server's tickets and its close_notify.
        while wire.receive(&data, |_| {})? {
            self.in_time(name)?;
        }
        drop(data);
        self.expect("STOR", &[226, 250]).map(drop)
    }

    fn shake(&mut self, data: &TcpStream) -> Result<Wire> {
        let secure = self.secure.as_mut().ok_or_else(|| Error::Other("the session is not under TLS".into()))?;
        let wire = Wire::shake(data, &secure.config)?;
        secure.data.0 += 1;
        secure.data.1 += u64::from(wire.is_resumed());
        Ok(wire)
    }

    /// LIST or MLSD: the time from the command to its 226, with the data connection made before, and what came.
    ///
    /// # Errors
    /// A reply out of the ordinary, the time limit, more than [`LONGEST_LISTING`] bytes.
    pub fn listing(&mut self, line: &str) -> Result<(Duration, Vec<u8>)> {
        let mut data = self.passive()?;
        self.room.resize(PIECE, 0);
        let mut text = Vec::with_capacity(LONGEST_LISTING);
        let began = Instant::now();
        self.command(line, &[150, 125])?;
        loop {
            let got = data.read(&mut self.room).call(|| format!("receive {line}"))?;
            if got == 0 {
                break;
            }
            if text.len() + got > LONGEST_LISTING {
                return Err(Error::Other(format!("{line}: more than {LONGEST_LISTING} bytes")));
            }
            text.extend_from_slice(&self.room[..got]);
            self.in_time(line)?;
        }
        drop(data);
        self.expect(line, &[226, 250])?;
        Ok((began.elapsed(), text))
    }

    /// True while the server keeps the connection open; what it says meanwhile does not matter.
    pub fn is_open(&self) -> bool {
        let mut byte = [0];
        match rustix::net::recv(&self.control, &mut byte[..], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((_, got)) => got > 0,
            Err(cause) => cause == Errno::AGAIN,
        }
    }

    /// QUIT, and waits for the farewell.
    ///
    /// # Errors
    /// Another reply than 221.
    pub fn quit(mut self) -> Result<()> {
        self.command("QUIT", &[221]).map(drop)
    }

    fn passive(&mut self) -> Result<TcpStream> {
        let reply = self.command("EPSV", &[229])?;
        let port = epsv_port(&reply).ok_or_else(|| Error::Reply { sent: "EPSV".into(), got: reply })?;
        dial(port)
    }

    fn send(&mut self, line: &str) -> Result<()> {
        let verb = line.split(' ').next().unwrap_or_default();
        let bytes = format!("{line}\r\n");
        match &mut self.secure {
            Some(secure) => secure.wire.send(&self.control, bytes.as_bytes()),
            None => self.control.write_all(bytes.as_bytes()).call(|| format!("send {verb}")),
        }
    }

    fn expect(&mut self, sent: &str, codes: &[u16]) -> Result<String> {
        loop {
            if let Some(len) = reply_length(&self.inbox) {
                let reply: Vec<u8> = self.inbox.drain(..len).collect();
                let got = String::from_utf8_lossy(&reply).into_owned();
                return if code_of(&reply).is_some_and(|c| codes.contains(&c)) {
                    Ok(got)
                } else {
                    Err(Error::Reply { sent: sent.into(), got })
                };
            }
            let open = match &mut self.secure {
                Some(secure) => secure.wire.receive(&self.control, |plain| self.inbox.extend_from_slice(plain))?,
                None => {
                    let mut piece = [0_u8; 1024];
                    let got = self.control.read(&mut piece).call(|| format!("reply to {sent}"))?;
                    self.inbox.extend_from_slice(&piece[..got]);
                    got > 0
                }
            };
            if !open && reply_length(&self.inbox).is_none() || self.inbox.len() > LONGEST_REPLY {
                let got = format!("(closed or endless) {}", String::from_utf8_lossy(&self.inbox));
                return Err(Error::Reply { sent: sent.into(), got });
            }
            self.in_time(sent)?;
        }
    }

    fn in_time(&self, what: &str) -> Result<()> {
        if Instant::now() < self.deadline { Ok(()) } else { Err(Error::Late(what.to_owned())) }
    }
}

/// Opens a file that uploads are fed from, and checks that it can be read.
///
/// # Errors
/// It is not there.
pub fn source(path: &std::path::Path) -> Result<File> {
    let file = File::open(path).call(|| format!("open {}", path.display()))?;
    file.read_at(&mut [0], 0).call(|| format!("read {}", path.display()))?;
    Ok(file)
}

fn dial(port: u16) -> Result<TcpStream> {
    let what = || format!("connect to port {port}");
    let stream = TcpStream::connect(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).call(what)?;
    stream.set_read_timeout(Some(PATIENCE)).call(what)?;
    stream.set_write_timeout(Some(PATIENCE)).call(what)?;
    Ok(stream)
}

/// The port in `229 text (|||6446|)`.
pub(crate) fn epsv_port(reply: &str) -> Option<u16> {
    let (_, rest) = reply.split_once('(')?;
    let (inner, _) = rest.split_once(')')?;
    let mark = inner.chars().next()?;
    inner.split(mark).nth(3)?.parse().ok()
}

/// The length of the first whole reply, which may have several lines (RFC 959 section 4.2).
pub(crate) fn reply_length(inbox: &[u8]) -> Option<usize> {
    let code = inbox.get(..3)?;
    let mut start = 0;
    loop {
        let line = inbox.get(start..)?;
        let end = line.iter().position(|&b| b == b'\n')? + 1;
        let is_last = line.get(..3) == Some(code) && line.get(3) != Some(&b'-');
        start += end;
        if is_last {
            return Some(start);
        }
    }
}

/// The code a reply begins with.
pub(crate) fn code_of(reply: &[u8]) -> Option<u16> {
    std::str::from_utf8(reply.get(..3)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_of_many_lines_ends_at_its_code_and_a_space() {
        let inbox = b"220-Welcome\r\n 220 not yet\r\n220-still\r\n220 now\r\n331 next\r\n";
        assert_eq!(reply_length(inbox), Some(inbox.len() - 10));
        assert_eq!(reply_length(b"226 cut sh"), None);
    }

    #[test]
    fn the_port_of_an_epsv_reply_is_found_whatever_the_delimiter() {
        assert_eq!(epsv_port("229 Entering Extended Passive Mode (|||6446|)\r\n"), Some(6446));
        assert_eq!(epsv_port("229 ok (!!!21000!)\r\n"), Some(21000));
        assert_eq!(epsv_port("229 none\r\n"), None);
    }
}
