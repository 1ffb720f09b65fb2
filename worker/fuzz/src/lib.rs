//! What the worker's targets assert of bytes a client may send.

use child_ipc::link::settings::{FtpSettings, Tls};
use worker::{
    ftp::line::{self, Line, Reader},
    proxy::{self, Header},
};

/// Splits `bytes` fed in pieces whose lengths `cuts` chooses; what comes out must not depend on the pieces.
pub fn lines(cuts: &[u8], bytes: &[u8]) {
    let whole = split([bytes].into_iter());
    let mut rest = bytes;
    let pieces = cuts.iter().cycle().map_while(|&cut| {
        let (piece, behind) = rest.split_at_checked(usize::from(cut).max(1)).unwrap_or((rest, &[]));
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    });
    if !cuts.is_empty() {
        assert_eq!(whole, split(pieces));
    }
}

fn split<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    let (mut reader, mut queue, mut out) = (Reader::default(), Vec::new(), Vec::new());
    for piece in pieces {
        let before = queue.len();
        reader.feed(piece, &mut queue);
        assert!(queue.len() <= before + piece.len() + 3);
        let mut rest = queue.as_slice();
        while let Some((line, behind)) = line::next(rest) {
            out.push(match line {
                Line::Command(command) => {
                    assert!(command.len() <= line::MAX);
                    assert!(!command.iter().any(|b| matches!(b, b'\r' | b'\n' | 0)));
                    command.to_vec()
                }
                Line::TooLong => b"\r".to_vec(),
                Line::Control => b"\n".to_vec(),
            });
            rest = behind;
        }
        queue = rest.to_vec();
    }
    out
}

/// A whole conversation: every line of every reply ends with CR LF, and each is a code or belongs to one.
pub fn session(bytes: &[u8]) {
    let settings = FtpSettings { tls: Some(Tls::default()), ..FtpSettings::default() };
    let said = worker::ftp::talk::rehearse(&settings, bytes);
    // Without a line, the greeting waits for one.
    assert!(said.is_empty() || said.ends_with(b"\r\n"));
    assert!(!said.contains(&0));
    let mut open = None;
    for line in said.split_inclusive(|&b| b == b'\n') {
        let line = line.strip_suffix(b"\r\n").expect("every line ends with CR LF");
        assert!(!line.contains(&b'\r'));
        let code = line.first_chunk::<3>().filter(|code| code.iter().all(u8::is_ascii_digit));
        match (open, code, line.get(3)) {
            (None, Some(code), Some(b'-')) => open = Some(code),
            (None, Some(_), Some(b' ')) => {}
            (Some(first), Some(code), Some(b' ')) if first == code => open = None,
            (Some(_), _, _) => {}
            _ => panic!("not a reply: {}", line.escape_ascii()),
        }
    }
    assert!(open.is_none());
}

/// The beginning of a proxy's connection: decided by its first bytes alone, and no earlier than they are there.
pub fn proxy_header(bytes: &[u8]) {
    let decided = (0..=bytes.len().min(proxy::LONGEST)).map(|end| proxy::parse(&bytes[..end])).find(|h| *h != Header::Part);
    assert_eq!(decided.unwrap_or(Header::Part), proxy::parse(bytes));
    match proxy::parse(bytes) {
        Header::Whole { length, .. } => assert!(length <= bytes.len().min(proxy::LONGEST)),
        Header::Part => assert!(bytes.len() < proxy::LONGEST),
        Header::Wrong(_) => {}
    }
}
