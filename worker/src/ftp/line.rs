//! Bytes of the control connection to command lines: Telnet (RFC 854, RFC 959 5.3), line ends, limits.
//!
//! Reads from: the client (hostile). Every byte sequence is taken; what is no line for us becomes [`Line::TooLong`] or
//! [`Line::Control`], one each, so that the client is never a reply behind and no part of a line runs as a command.
//! CR LF ends a line; a bare LF too (people with `nc`), but not right behind CR NUL.

/// Longest line in bytes, less its end: a path of PATH_MAX and a verb.
pub const MAX: usize = 4096 + 16;

/// One line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// A command: no CR, LF or NUL in it.
    Command(&'a [u8]),
    /// Longer than [`MAX`]; all of it was dropped.
    TooLong,
    /// CR, LF or NUL inside: no command, and no name we would make; all of it was dropped.
    Control,
}

// A queue holds lines, each ended by LF. Lines cannot hold NUL, so NULs mark those that were dropped.
const CONTROL: &[u8] = b"\0";
const TOO_LONG: &[u8] = b"\0\0";

const SE: u8 = 240;
const SB: u8 = 250;
const WILL: u8 = 251;
/// Begins a Telnet command (RFC 854).
const IAC: u8 = 255;

/// Where in a Telnet sequence the next byte falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Telnet {
    #[default]
    Data,
    /// Behind IAC.
    Command,
    /// Behind IAC WILL, WONT, DO, DONT: one byte, the option.
    Option,
    /// Behind IAC SB.
    Sub,
    /// Behind IAC inside of a subnegotiation.
    SubCommand,
}

/// What the byte before was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Before {
    #[default]
    Other,
    Cr,
    CrNul,
}

/// Splits a byte stream into lines, however it is cut into pieces.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reader {
    telnet: Telnet,
    before: Before,
    /// Bytes of the unfinished line at the end of the queue.
    partial: u16,
    too_long: bool,
    control: bool,
}

impl Reader {
    /// Takes bytes as they came and appends lines to `queue`, whose end is the unfinished line of the call before.
    ///
    /// Appends at most as many bytes as came, and 3 more.
    pub fn feed(&mut self, raw: &[u8], queue: &mut Vec<u8>) {
        for &byte in raw {
            match (self.telnet, byte) {
                (Telnet::Data, IAC) => self.telnet = Telnet::Command,
                (Telnet::Data, _) => self.data(byte, queue),
                (Telnet::Command, IAC) => {
                    self.telnet = Telnet::Data;
                    self.data(IAC, queue);
                }
                (Telnet::Command, WILL..) => self.telnet = Telnet::Option,
                (Telnet::Command, SB) => self.telnet = Telnet::Sub,
                (Telnet::Command, SE..) | (Telnet::Option, _) => self.telnet = Telnet::Data,
                // No Telnet command: a client that does not double its IAC. The byte behind it is data.
                (Telnet::Command, _) => {
                    self.telnet = Telnet::Data;
                    self.data(byte, queue);
                }
                (Telnet::Sub, IAC) => self.telnet = Telnet::SubCommand,
                (Telnet::Sub, _) => {}
                (Telnet::SubCommand, SE) => self.telnet = Telnet::Data,
                (Telnet::SubCommand, _) => self.telnet = Telnet::Sub,
            }
        }
    }

    fn data(&mut self, byte: u8, queue: &mut Vec<u8>) {
        let before = std::mem::take(&mut self.before);
        match (before, byte) {
            (Before::CrNul, b'\n') => self.control = true,
            // Of a line that is dropped nothing may run, whatever is in it: only CR LF ends it.
            (Before::Other, b'\n') if self.too_long => {}
            (_, b'\n') => self.end(queue),
            (Before::Cr, 0) => {
                self.control = true;
                self.before = Before::CrNul;
            }
            (_, b'\r') => {
                self.control |= before == Before::Cr;
                self.before = Before::Cr;
            }
            (_, 0) => self.control = true,
            (_, _) => {
                self.control |= before == Before::Cr;
                self.push(byte, queue);
            }
        }
    }

    fn push(&mut self, byte: u8, queue: &mut Vec<u8>) {
        if self.too_long {
            return;
        }
        if usize::from(self.partial) == MAX {
            self.too_long = true;
            self.drop_partial(queue);
            return;
        }
        queue.push(byte);
        self.partial += 1;
    }

    fn end(&mut self, queue: &mut Vec<u8>) {
        if self.too_long || self.control {
            self.drop_partial(queue);
            queue.extend_from_slice(if self.too_long { TOO_LONG } else { CONTROL });
        }
        queue.push(b'\n');
        (self.partial, self.too_long, self.control) = (0, false, false);
    }

    fn drop_partial(&mut self, queue: &mut Vec<u8>) {
        queue.truncate(queue.len().saturating_sub(self.partial.into()));
        self.partial = 0;
    }
}

/// The first line of a queue and what is behind it; `None` when no line is finished.
pub fn next(queue: &[u8]) -> Option<(Line<'_>, &[u8])> {
    let end = kernels::find_newline(queue)?;
    let (line, rest) = queue.split_at(end);
    let line = match line {
        CONTROL => Line::Control,
        TOO_LONG => Line::TooLong,
        command => Line::Command(command),
    };
    Some((line, rest.get(1..).unwrap_or_default()))
}

/// Whether one of the finished lines is this verb and nothing else.
pub fn holds(queue: &[u8], verb: &[u8]) -> bool {
    let mut rest = queue;
    while let Some((line, behind)) = next(rest) {
        if is(line, verb) {
            return true;
        }
        rest = behind;
    }
    false
}

/// Whether a line is this verb and nothing else.
pub fn is(line: Line<'_>, verb: &[u8]) -> bool {
    matches!(line, Line::Command(command) if command.trim_ascii_end().eq_ignore_ascii_case(verb))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let (mut reader, mut queue) = (Reader::default(), Vec::new());
        for piece in pieces {
            reader.feed(piece, &mut queue);
        }
        let (mut rest, mut out) = (&queue[..], Vec::new());
        while let Some((line, behind)) = next(rest) {
            out.push(match line {
                Line::Command(bytes) => bytes.escape_ascii().to_string(),
                other => format!("{other:?}"),
            });
            rest = behind;
        }
        if !rest.is_empty() {
            out.push(format!("+{}", rest.escape_ascii()));
        }
        out
    }

    #[test]
    fn lines_end_in_cr_lf_or_lf() {
        assert_eq!(lines(&[b"NOOP\r\nPWD\n\r\nQU"]), ["NOOP", "PWD", "", "+QU"]);
    }

    #[test]
    fn cr_nul_and_what_follows_it_never_runs_as_a_command() {
        assert_eq!(lines(&[b"STOR a\r\0\nDELE victim\r\nNOOP\r\n"]), ["Control", "NOOP"]);
        assert_eq!(lines(&[b"MKD x\r\0y\r\n", b"MKD x\ry\r\n", b"MKD x\0y\r\n"]), ["Control"; 3]);
    }

    #[test]
    fn telnet_is_taken_out_and_a_doubled_ff_is_one() {
        assert_eq!(lines(&[b"SIZE caf\xff\xff\r\n"]), ["SIZE caf\\xff"]);
        assert_eq!(lines(&[b"\xff\xf4\xff\xf2NOOP\r\n"]), ["NOOP"]);
        assert_eq!(lines(&[b"\xff", b"\xfd", b"\x18NO", b"OP\r", b"\n"]), ["NOOP"]);
        assert_eq!(lines(&[b"\xff\xfa\x18\x00\xff\xffx\xff\xf0NOOP\r\n"]), ["NOOP"]);
        assert_eq!(lines(&[b"\xff\xf4\xffABOR\r\n"]), ["ABOR"]);
    }

    #[test]
    fn a_long_line_is_dropped_whole_and_counted_once() {
        let mut long = b"CWD ".to_vec();
        long.resize(MAX, b'x');
        let fits = format!("CWD {}", "x".repeat(MAX - 4));
        assert_eq!(lines(&[&long, b"\r\n"]), [fits]);
        assert_eq!(lines(&[&long, b"xDELE victim\r\nNOOP\r\n"]), ["TooLong", "NOOP"]);
        let endless = vec![b'x'; 100_000];
        assert_eq!(lines(&[b"NOOP\r\n", &endless, &endless, b"\nDELE victim\r\nNOOP\n"]), ["NOOP", "TooLong", "NOOP"]);
    }

    #[test]
    fn an_endless_line_takes_no_memory() {
        let (mut reader, mut queue) = (Reader::default(), Vec::new());
        for _ in 0..1000 {
            reader.feed(&[b'x'; 10_000], &mut queue);
            assert!(queue.len() <= MAX);
        }
    }

    #[test]
    fn an_abor_is_found_behind_other_lines() {
        let (mut reader, mut queue) = (Reader::default(), Vec::new());
        reader.feed(b"NOOP\r\n\xff\xf4\xff\xf2abor\r\nPWD", &mut queue);
        assert!(holds(&queue, b"ABOR"));
        assert!(!holds(&queue, b"PWD"));
    }
}
