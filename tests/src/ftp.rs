//! A raw FTP client: sends lines, reads replies strictly (RFC 959 4.2), opens data connections both ways.
//!
//! It panics, with what was said so far, when the server breaks the protocol; what the server answers is the
//! scenario's business. No path is quoted, no line is corrected.

use std::{
    fmt,
    io::{ErrorKind, Read, Write},
    net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    time::Duration,
};

use crate::wait::{LIMIT, within};

/// A reply.
#[derive(Clone, PartialEq, Eq)]
pub struct Reply {
    /// Its three digits.
    pub code: u16,
    /// Its lines as they came, without CR LF.
    pub lines: Vec<Vec<u8>>,
}

impl Reply {
    /// The text of the last line, behind code and space.
    #[must_use]
    pub fn text(&self) -> String {
        let last = self.lines.last().map_or(&b""[..], |l| l.get(4..).unwrap_or_default());
        String::from_utf8_lossy(last).into_owned()
    }

    /// The lines between the first and the last.
    #[must_use]
    pub fn inner(&self) -> Vec<String> {
        let inner = self.lines.len().saturating_sub(1).max(1);
        self.lines[1..inner].iter().map(|l| String::from_utf8_lossy(l).into_owned()).collect()
    }

    /// Whether the code begins with this digit: 2 is done, 4 not now, 5 no.
    #[must_use]
    pub fn is(&self, digit: u16) -> bool {
        self.code / 100 == digit
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.lines.iter().map(|l| l.escape_ascii().to_string()).collect();
        write!(f, "{}", lines.join(" / "))
    }
}

/// What a control connection speaks through when that is not the socket itself: TLS.
pub trait Wire: Read + Write + Send {}

impl<T: Read + Write + Send> Wire for T {}

/// A control connection.
pub struct Client {
    control: TcpStream,
    wire: Option<Box<dyn Wire>>,
    /// Received and not yet read.
    waiting: Vec<u8>,
    said: Vec<String>,
}

impl Client {
    /// Connects and reads the greeting, which must be 220.
    #[must_use]
    pub fn connect(address: SocketAddr) -> Self {
        let mut client = Self::connect_silently(address);
        client.expect_reply(&[220]);
        client
    }

    /// Connects and reads nothing.
    #[must_use]
    pub fn connect_silently(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).unwrap_or_else(|cause| panic!("connect to {address}: {cause}")))
    }

    /// Takes a connection.
    #[must_use]
    pub fn over(control: TcpStream) -> Self {
        control.set_read_timeout(Some(LIMIT)).expect("setsockopt");
        control.set_write_timeout(Some(LIMIT)).expect("setsockopt");
        control.set_nodelay(true).expect("setsockopt");
        Client { control, wire: None, waiting: Vec::new(), said: Vec::new() }
    }

    /// Goes on through what `wrap` makes of the socket. Nothing may have come in clear that is not read yet.
    pub fn over_wire(&mut self, wrap: impl FnOnce(TcpStream) -> Box<dyn Wire>) {
        if !self.waiting.is_empty() {
            self.fail("replies in clear are left over");
        }
        self.wire = Some(wrap(self.control.try_clone().expect("dup")));
    }

    /// USER and PASS, which must end in 230; then TYPE I.
    pub fn login(&mut self, name: &str, password: &str) {
        self.expect(format!("USER {name}"), &[331]);
        self.expect(format!("PASS {password}"), &[230]);
        self.expect("TYPE I", &[200]);
    }

    /// Our address.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.control.local_addr().expect("getsockname")
    }

    /// The server's address.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.control.peer_addr().expect("getpeername")
    }

    /// The connection itself.
    #[must_use]
    pub fn socket(&self) -> &TcpStream {
        &self.control
    }

    /// Sends a line; CR LF is added.
    pub fn send(&mut self, line: impl AsRef<[u8]>) {
        let mut bytes = line.as_ref().to_vec();
        bytes.extend_from_slice(b"\r\n");
        self.raw(&bytes);
    }

    /// Sends bytes.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.said.push(format!("> {}", bytes[..bytes.len().min(200)].escape_ascii()));
        let stream = self.stream();
        if let Err(cause) = stream.write_all(bytes).and_then(|()| stream.flush()) {
            self.fail(&format!("cannot send: {cause}"));
        }
    }

    /// Reads one whole reply.
    pub fn reply(&mut self) -> Reply {
        match self.reply_or_end() {
            Some(reply) => reply,
            None => self.fail("the server closed the connection where a reply was due"),
        }
    }

    /// Reads one whole reply; `None` when the connection ends (or is reset) in front of it.
    pub fn reply_or_end(&mut self) -> Option<Reply> {
        let first = self.line()?;
        let code = self.code_of(&first);
        let mut lines = vec![first];
        if lines[0].get(3) == Some(&b'-') {
            let end = format!("{code:03} ");
            while !lines.last().is_some_and(|l| l.starts_with(end.as_bytes())) {
                match self.line() {
                    Some(line) => lines.push(line),
                    None => self.fail("the connection ended inside a reply"),
                }
            }
        }
        let reply = Reply { code, lines };
        self.said.push(format!("< {reply:?}"));
        Some(reply)
    }

    /// Sends a line and reads its reply.
    pub fn ask(&mut self, line: impl AsRef<[u8]>) -> Reply {
        self.send(line);
        self.reply()
    }

    /// Sends a line; the reply must have one of these codes.
    pub fn expect(&mut self, line: impl AsRef<[u8]>, codes: &[u16]) -> Reply {
        self.send(line);
        self.expect_reply(codes)
    }

    /// Reads a reply, which must have one of these codes.
    pub fn expect_reply(&mut self, codes: &[u16]) -> Reply {
        let reply = self.reply();
        if !codes.contains(&reply.code) {
            self.fail(&format!("{codes:?} was expected"));
        }
        reply
    }

    /// Sends a line; the reply must be a refusal (4xx or 5xx).
    pub fn refused(&mut self, line: impl AsRef<[u8]>) -> Reply {
        let reply = self.ask(line);
        if !(reply.is(4) || reply.is(5)) {
            self.fail("a refusal was expected");
        }
        reply
    }

    /// Whether nothing comes for this long: neither a reply nor the end.
    #[must_use]
    pub fn is_silent_for(&mut self, time: Duration) -> bool {
        self.control.set_read_timeout(Some(time)).expect("setsockopt");
        let silent = self.waiting.is_empty() && matches!(self.fill(), Err(e) if would_block(e.kind()));
        self.control.set_read_timeout(Some(LIMIT)).expect("setsockopt");
        silent
    }

    /// Checks that replies and commands are in step: nothing is left over, and NOOP is answered.
    pub fn in_step(&mut self) {
        let mark = self.ask("NOOP");
        if mark.code != 200 || !self.waiting.is_empty() {
            self.fail("replies are out of step");
        }
    }

    /// Reads to the end of the connection; panics when it does not come.
    pub fn ends(&mut self) -> Vec<Reply> {
        let mut last = Vec::new();
        while let Some(reply) = self.reply_or_end() {
            last.push(reply);
        }
        last
    }

    /// EPSV, and the port of its answer.
    pub fn epsv(&mut self) -> SocketAddr {
        let reply = self.expect("EPSV", &[229]);
        let text = reply.text();
        let port = text.split_once("(|||").and_then(|(_, rest)| rest.split_once("|)")?.0.parse().ok());
        match port {
            Some(port) => SocketAddr::new(self.peer().ip(), port),
            None => self.fail("229 without (|||port|)"),
        }
    }

    /// PASV, and the address of its answer.
    pub fn pasv(&mut self) -> SocketAddr {
        let reply = self.expect("PASV", &[227]);
        let text = reply.text();
        let inner = text.split_once('(').and_then(|(_, rest)| Some(rest.split_once(')')?.0.to_owned()));
        let numbers: Vec<u8> = inner.unwrap_or_default().split(',').filter_map(|n| n.parse().ok()).collect();
        match numbers[..] {
            [a, b, c, d, high, low] => {
                SocketAddr::new(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), u16::from_be_bytes([high, low]))
            }
            _ => self.fail("227 without (h1,h2,h3,h4,p1,p2)"),
        }
    }

    /// EPSV, and a connection to its port.
    pub fn passive(&mut self) -> TcpStream {
        let address = self.epsv();
        data(TcpStream::connect(address).unwrap_or_else(|cause| panic!("data connection to {address}: {cause}")))
    }

    /// EPRT for a new listening socket.
    pub fn active(&mut self) -> TcpListener {
        let listener = TcpListener::bind((self.local().ip(), 0)).expect("bind");
        let own = listener.local_addr().expect("getsockname");
        let family = if own.is_ipv4() { 1 } else { 2 };
        self.expect(format!("EPRT |{family}|{}|{}|", own.ip(), own.port()), &[200]);
        listener
    }

    /// Downloads by a passive data connection: the line is RETR, LIST, and so on.
    pub fn fetch(&mut self, line: impl AsRef<[u8]>) -> Vec<u8> {
        match self.try_fetch(line) {
            Ok(bytes) => bytes,
            Err(_) => self.fail("the transfer was refused"),
        }
    }

    /// Downloads; a refusal, before or after 150, is an error.
    pub fn try_fetch(&mut self, line: impl AsRef<[u8]>) -> Result<Vec<u8>, Reply> {
        let connection = self.passive();
        let begun = self.ask(line);
        if !begun.is(1) {
            return Err(begun);
        }
        let bytes = drain(connection);
        let ended = self.reply();
        if ended.is(2) { Ok(bytes) } else { Err(ended) }
    }

    /// The lines of a listing.
    pub fn list(&mut self, line: impl AsRef<[u8]>) -> Vec<String> {
        lines_of(&self.fetch(line))
    }

    /// Uploads by a passive data connection: the line is STOR, APPE or STOU. The final reply.
    pub fn store(&mut self, line: impl AsRef<[u8]>, content: &[u8]) -> Reply {
        let mut connection = self.passive();
        let begun = self.ask(line);
        if !begun.is(1) {
            return begun;
        }
        if let Err(cause) = connection.write_all(content) {
            self.fail(&format!("cannot send data: {cause}"));
        }
        drop(connection);
        self.reply()
    }

    /// Uploads; must end in 226.
    pub fn stored(&mut self, line: impl AsRef<[u8]>, content: &[u8]) -> Reply {
        let reply = self.store(line, content);
        if reply.code != 226 {
            self.fail("226 was expected");
        }
        reply
    }

    /// The directory PWD answers, quotes undone.
    pub fn pwd(&mut self) -> Vec<u8> {
        let reply = self.expect("PWD", &[257]);
        match unquote(reply.lines.last().map_or(&b""[..], |l| l)) {
            Some(path) => path,
            None => self.fail("257 without a quoted path"),
        }
    }

    fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.waiting.windows(2).position(|w| w == b"\r\n") {
                let line = self.waiting[..end].to_vec();
                self.waiting.drain(..end + 2);
                return Some(line);
            }
            match self.fill() {
                Ok(0) if self.waiting.is_empty() => return None,
                Ok(0) => self.fail("the connection ended inside a line"),
                Ok(_) => {}
                Err(e) if matches!(e.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => return None,
                Err(cause) => self.fail(&format!("no reply: {cause}")),
            }
        }
    }

    fn fill(&mut self) -> std::io::Result<usize> {
        let mut part = [0; 4096];
        let count = self.stream().read(&mut part)?;
        self.waiting.extend_from_slice(&part[..count]);
        Ok(count)
    }

    fn stream(&mut self) -> &mut dyn Wire {
        match &mut self.wire {
            Some(wire) => wire,
            None => &mut self.control,
        }
    }

    fn code_of(&self, line: &[u8]) -> u16 {
        let digits = line.get(..3).filter(|d| d.iter().all(u8::is_ascii_digit) && (b'1'..=b'5').contains(&d[0]));
        let code = digits.and_then(|d| std::str::from_utf8(d).ok()?.parse().ok());
        match (code, line.get(3)) {
            (Some(code), Some(b' ' | b'-')) => code,
            _ => self.fail(&format!("not a reply: {}", line.escape_ascii())),
        }
    }

    fn fail(&self, why: &str) -> ! {
        let from = self.said.len().saturating_sub(30);
        panic!("{why}\n{}", self.said[from..].join("\n"))
    }
}

/// Accepts one connection, within the time all waits have.
#[must_use]
pub fn accept(listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(true).expect("fcntl");
    let accepted = within(LIMIT, || listener.accept().ok()).expect("the server did not connect back");
    accepted.0.set_nonblocking(false).expect("fcntl");
    data(accepted.0)
}

/// Connects from a loopback address of choice.
#[must_use]
pub fn connect_from(source: &str, to: SocketAddr) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("socket");
    let source: IpAddr = source.parse().expect("an address");
    bind(&socket, &SocketAddr::new(source, 0)).expect("bind");
    connect(&socket, &to).expect("connect");
    data(TcpStream::from(socket))
}

/// Gives a data connection the time-outs all waits have.
#[must_use]
pub fn data(connection: TcpStream) -> TcpStream {
    connection.set_read_timeout(Some(LIMIT)).expect("setsockopt");
    connection.set_write_timeout(Some(LIMIT)).expect("setsockopt");
    connection
}

/// Reads a data connection to its end.
#[must_use]
pub fn drain(mut connection: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    connection.read_to_end(&mut bytes).expect("read the data connection");
    let _ = connection.shutdown(Shutdown::Both);
    bytes
}

/// Splits a listing; every line must end with CR LF.
#[must_use]
pub fn lines_of(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    assert!(text.is_empty() || text.ends_with("\r\n"), "a listing that does not end with CR LF: {text:?}");
    text.split_terminator("\r\n").map(str::to_owned).collect()
}

/// The path inside `257 "…"`; a doubled quote is one (RFC 959 appendix II).
fn unquote(line: &[u8]) -> Option<Vec<u8>> {
    let start = line.iter().position(|&b| b == b'"')? + 1;
    let mut path = Vec::new();
    let mut rest = line.get(start..)?.iter().peekable();
    while let Some(&byte) = rest.next() {
        if byte == b'"' && rest.next_if(|&&b| b == b'"').is_none() {
            return Some(path);
        }
        path.push(byte);
    }
    None
}

fn would_block(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
