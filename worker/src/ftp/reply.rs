//! Replies to bytes (RFC 959 4.2), and the code of every refusal in one function.
//!
//! A name in a reply never brings a raw CR, LF or NUL along, and its IAC is doubled (RFC 854). Where it is only for people
//! to read, its other control bytes but tab are shown as `?` as well; where clients send it back, they must be kept.

use std::fmt::{self, Write as _};

use child_ipc::link::{log, worker_broker::Why};

use super::Order;

/// What a step emits: bytes for the control connection and orders for the loop.
#[derive(Debug, Default)]
pub struct Out {
    /// Replies, in order.
    pub bytes: Vec<u8>,
    /// Orders, in order.
    pub orders: Vec<Order>,
    /// Log lines below this level are not even made.
    pub log_level: log::Level,
}

/// A piece of a reply line.
#[derive(Debug, Clone, Copy)]
pub enum Part<'a> {
    /// Our own words.
    Text(&'a str),
    /// A name or path that is only shown.
    Shown(&'a [u8]),
    /// A path that clients send back (150 of STOU).
    Path(&'a [u8]),
    /// A path that clients send back (257), in quotes, quotes in it doubled (RFC 959 appendix II).
    Quoted(&'a [u8]),
}

impl Out {
    /// A reply of one line.
    pub fn reply(&mut self, code: u16, text: &str) {
        self.start(code, b' ');
        self.bytes.extend_from_slice(text.as_bytes());
        self.end();
    }

    /// A reply of one line, formatted.
    pub fn reply_fmt(&mut self, code: u16, text: fmt::Arguments<'_>) {
        self.start(code, b' ');
        let _ = write!(Ascii(&mut self.bytes), "{text}");
        self.end();
    }

    /// A reply of one line that holds names.
    pub fn reply_parts(&mut self, code: u16, parts: &[Part<'_>]) {
        self.start(code, b' ');
        for part in parts {
            match *part {
                Part::Text(text) => self.bytes.extend_from_slice(text.as_bytes()),
                Part::Shown(name) => self.shown(name),
                Part::Path(path) => self.path(path),
                Part::Quoted(name) => self.quoted(name),
            }
        }
        self.end();
    }

    /// The first line of a reply of several lines.
    pub fn first(&mut self, code: u16, text: &str) {
        self.start(code, b'-');
        self.bytes.extend_from_slice(text.as_bytes());
        self.end();
    }

    /// A line inside of a reply of several lines: begins with one space, so that it is never taken for the last one.
    pub fn inner(&mut self, text: &[u8]) {
        self.bytes.push(b' ');
        self.shown(text);
        self.end();
    }

    /// The same for facts about a path, which clients send back (MLST).
    pub fn inner_facts(&mut self, facts: &[u8]) {
        self.bytes.push(b' ');
        self.path(facts);
        self.end();
    }

    /// A text of several lines as one reply; a line inside is padded only if it begins with a digit (RFC 959 4.2).
    pub fn text(&mut self, code: u16, text: &[u8]) {
        let mut lines = text.split(|&b| b == b'\n').peekable();
        let mut first = true;
        while let Some(line) = lines.next() {
            match (first, lines.peek().is_some()) {
                (_, false) => self.start(code, b' '),
                (true, true) => self.start(code, b'-'),
                (false, true) if line.first().is_some_and(u8::is_ascii_digit) => self.bytes.push(b' '),
                (false, true) => {}
            }
            first = false;
            self.path(line);
            self.end();
        }
    }

    /// A banner, or a word if there is none (RFC 959 5.4).
    pub fn greeting(&mut self, banner: &[u8]) {
        match banner {
            b"" => self.reply(220, "Ready."),
            banner => self.text(220, banner),
        }
    }

    /// The broker's no.
    pub fn refused(&mut self, why: Why) {
        let (code, text) = refusal(why);
        match why {
            Why::Io(errno) => self.reply_fmt(code, format_args!("{text} (errno {errno}).")),
            _ => self.reply(code, text),
        }
    }

    /// Wants something done.
    pub fn order(&mut self, order: Order) {
        self.orders.push(order);
    }

    /// Wants a line in the log. Client bytes in `text` are to be escaped.
    pub fn log(&mut self, level: log::Level, event: log::Event, text: fmt::Arguments<'_>) {
        if level <= self.log_level {
            self.orders.push(Order::Log(level, event, text.to_string()));
        }
    }

    fn start(&mut self, code: u16, separator: u8) {
        let digit = |n: u16| b'0' + u8::try_from(n % 10).unwrap_or(0);
        self.bytes.extend_from_slice(&[digit(code / 100), digit(code / 10), digit(code), separator]);
    }

    fn end(&mut self) {
        self.bytes.extend_from_slice(b"\r\n");
    }

    fn shown(&mut self, name: &[u8]) {
        let start = self.bytes.len();
        self.path(name);
        for byte in self.bytes.iter_mut().skip(start).filter(|b| b.is_ascii_control() && **b != b'\t') {
            *byte = b'?';
        }
    }

    fn path(&mut self, path: &[u8]) {
        for &byte in path {
            match byte {
                b'\r' | b'\n' | 0 => self.bytes.push(b'?'),
                0xff => self.bytes.extend_from_slice(&[0xff, 0xff]),
                _ => self.bytes.push(byte),
            }
        }
    }

    fn quoted(&mut self, name: &[u8]) {
        self.bytes.push(b'"');
        for piece in name.split_inclusive(|&b| b == b'"') {
            self.path(piece);
            if piece.last() == Some(&b'"') {
                self.bytes.push(b'"');
            }
        }
        self.bytes.push(b'"');
    }
}

/// The code and text of a refusal: the only place that knows.
pub fn refusal(why: Why) -> (u16, &'static str) {
    match why {
        Why::NotFound => (550, "No such file or directory."),
        Why::Denied => (550, "Permission denied."),
        Why::Exists => (550, "Exists already."),
        Why::NotDirectory => (550, "Not a directory."),
        Why::IsDirectory => (550, "Is a directory."),
        Why::NotRegular => (550, "Not a plain file."),
        Why::NotEmpty => (550, "Directory not empty."),
        Why::NoSpace => (452, "No space left."),
        Why::Invalid => (553, "Not possible with this name."),
        Why::Busy => (450, "Busy; try again."),
        Why::Io(_) => (451, "Local error"),
    }
}

/// `fmt::Write` onto bytes.
struct Ascii<'a>(&'a mut Vec<u8>);

impl fmt::Write for Ascii<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_a_reply_cannot_end_its_line() {
        let mut out = Out::default();
        out.reply_parts(257, &[Part::Quoted(b"/a\"b\r\n230 hi\xff"), Part::Text(" created.")]);
        assert_eq!(out.bytes, b"257 \"/a\"\"b??230 hi\xff\xff\" created.\r\n");
    }

    #[test]
    fn control_bytes_are_kept_only_where_clients_send_them_back() {
        let mut out = Out::default();
        let name = b"\x1b[2Ja\x07\tb\x7f\r\0\xff\x9b";
        out.reply_parts(213, &[Part::Shown(name)]);
        out.inner(name);
        assert_eq!(out.bytes, b"213 ?[2Ja?\tb???\xff\xff\x9b\r\n ?[2Ja?\tb???\xff\xff\x9b\r\n");
        out.bytes.clear();
        out.reply_parts(150, &[Part::Path(name)]);
        out.inner_facts(name);
        let kept = b"\x1b[2Ja\x07\tb\x7f??\xff\xff\x9b\r\n";
        assert_eq!(out.bytes, [b"150 ", &kept[..], b" ", kept].concat());
    }

    #[test]
    fn a_text_of_several_lines_has_one_last_line() {
        let mut out = Out::default();
        out.text(220, b"Welcome\n220 not the end\nready");
        assert_eq!(out.bytes, b"220-Welcome\r\n 220 not the end\r\n220 ready\r\n");
    }
}
