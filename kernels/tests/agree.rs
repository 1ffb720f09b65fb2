//! Every variant this CPU can run equals the scalar version, and reads and writes nothing outside.
//!
//! Each input is put at the end of mapped memory, at its start, and at all 64 alignments between
//! bytes chosen to mislead a kernel that looks at them.

mod guard;

use std::fmt::Debug;

use guard::Guarded;
use kernels::dispatch::Variant;
use kernels::{Converted, adler32, crc32c, crlf_to_lf, find_byte, find_crlf, lf_to_crlf};
use proptest::collection::vec;
use proptest::prelude::*;

const LONGEST: usize = 257;
/// Lengths around the borders of what the assembly takes at a time.
const BORDERS: [usize; 15] = [511, 512, 767, 768, 769, 1536, 5759, 5760, 5761, 5824, 6143, 6144, 6145, 13_064, 40_000];

/// The same bytes on every run (xorshift).
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut x = 0x9e37_79b9_7f4a_7c15 ^ seed;
    let step = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x >> 32) as u8
    };
    std::iter::repeat_with(step).take(len).collect()
}

/// Gives `data` to `check` between unmapped memory, and at each alignment between bytes of `around`.
fn everywhere(data: &[u8], around: u8, mut check: impl FnMut(&[u8])) {
    thread_local!(static GUARDED: std::cell::RefCell<Guarded> = Guarded::new().into());
    GUARDED.with_borrow_mut(|guarded| {
        for place in [Guarded::end, Guarded::start] {
            let place = place(guarded, data.len());
            place.copy_from_slice(data);
            check(place);
        }
    });
    let mut wide = vec![around; data.len() + 192];
    let aligned = 64 - wide.as_ptr() as usize % 64;
    for shift in 0..64 {
        let from = aligned + shift;
        wide[from..from + data.len()].copy_from_slice(data);
        check(&wide[from..from + data.len()]);
        wide[from..from + data.len()].fill(around);
    }
}

#[test]
fn find_byte_sees_the_first_needle_wherever_it_stands() {
    for needle in [b'\n', 0, 0xff] {
        for len in 0..=LONGEST {
            let clean = vec![needle ^ 0x80; len];
            everywhere(&clean, needle, |hay| {
                for f in find_byte::variants() {
                    assert_eq!((f.run)(hay, needle), None, "{} {len}", f.name);
                }
            });
        }
    }
    let mut guarded = Guarded::new();
    for len in 0..=LONGEST {
        let hay = guarded.end(len);
        hay.fill(b'\n' + 1);
        for at in (0..len).rev() {
            // Those behind it stay: only the first counts.
            hay[at] = b'\n';
            for f in find_byte::variants() {
                assert_eq!((f.run)(hay, b'\n'), Some(at), "{} {len}", f.name);
            }
            assert_eq!(kernels::find_newline(hay), Some(at));
        }
    }
}

#[test]
fn find_crlf_sees_the_first_pair_wherever_it_stands() {
    for len in 0..=LONGEST {
        // CRs without LF inside, LF before and behind the slice: the last CR is no pair.
        everywhere(&vec![b'\r'; len], b'\n', |hay| {
            for f in find_crlf::variants() {
                assert_eq!((f.run)(hay), None, "{} {len}", f.name);
            }
        });
    }
    let mut guarded = Guarded::new();
    for len in 2..=LONGEST {
        for at in 0..len - 1 {
            let hay = guarded.end(len);
            hay[..at].fill(b'\n');
            hay[at..].fill(b'\r');
            hay[at + 1] = b'\n';
            for f in find_crlf::variants() {
                assert_eq!((f.run)(hay), Some(at), "{} {len}", f.name);
            }
            assert_eq!(kernels::find_crlf(hay), Some(at));
        }
    }
}

/// CRC-32C as its definition has it, a bit at a time.
fn crc32c_by_definition(seed: u32, data: &[u8]) -> u32 {
    let mut crc = !seed;
    for byte in data {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0x82f6_3b78 * (crc & 1));
        }
    }
    !crc
}

#[test]
fn crc32c_gives_the_values_of_rfc_3720() {
    let rising: Vec<u8> = (0..32).collect();
    let falling: Vec<u8> = (0..32).rev().collect();
    for (data, crc) in [
        (b"123456789".as_slice(), 0xe306_9283), // Castagnoli's check value
        (&[0; 32], 0x8a91_36aa),                // B.4, here and below; the RFC prints bytes
        (&[0xff; 32], 0x62a8_ab43),
        (&rising, 0x46dd_794e),
        (&falling, 0x113f_db5c),
    ] {
        for f in crc32c::variants() {
            assert_eq!((f.run)(0, data), crc, "{}", f.name);
        }
    }
}

#[test]
fn adler32_gives_the_values_that_zlib_gives() {
    for (data, sum) in
        [(b"".as_slice(), 1), (b"Wikipedia", 0x11e6_0398), (&[0xff; 6000], 0xa497_59ea), (&[0; 65_536], 0x000f_0001)]
    {
        for f in adler32::variants() {
            assert_eq!((f.run)(1, data), sum, "{}", f.name);
        }
    }
}

type Checksum = fn(u32, &[u8]) -> u32;

fn checksums_agree(variants: &[Variant<Checksum>], definition: Checksum) {
    for len in (0..=LONGEST).chain(BORDERS) {
        for (data, seed) in [(noise(len, 2), 0), (noise(len, 3), 0xfff0_fff0), (vec![0xff; len], u32::MAX)] {
            let expected = definition(seed, &data);
            everywhere(&data, 0xaa, |data| {
                for f in variants {
                    assert_eq!((f.run)(seed, data), expected, "{} {len} {seed:#x}", f.name);
                }
            });
        }
    }
}

#[test]
fn crc32c_agrees_at_every_length_and_alignment() {
    checksums_agree(&crc32c::variants(), crc32c_by_definition);
}

#[test]
fn adler32_agrees_at_every_length_and_alignment() {
    checksums_agree(&adler32::variants(), |seed, data| {
        let (mut a, mut b) = (u64::from(seed & 0xffff), u64::from(seed >> 16));
        for byte in data {
            a = (a + u64::from(*byte)) % 65_521;
            b = (b + a) % 65_521;
        }
        (((b % 65_521) << 16) | (a % 65_521)) as u32
    });
}

type Convert<S> = fn(&[u8], &mut [u8], &mut S) -> Converted;

/// Gives each variant the text in the pieces and rooms of `cuts`, in step; all of `text` goes
/// through. Source and destination both end at unmapped memory.
fn converted<S>(variants: &[Variant<Convert<S>>], text: &[u8], cuts: &[(usize, usize)]) -> (Vec<u8>, S)
where
    S: Copy + Debug + Default + PartialEq,
{
    let (mut from, mut to) = (Guarded::new(), Guarded::new());
    let (mut out, mut state, mut at) = (Vec::new(), S::default(), 0);
    let mut cuts = cuts.iter().cycle();
    while at < text.len() {
        let (piece, room) = *cuts.next().expect("some cuts");
        let src = from.end(piece.min(text.len() - at));
        src.copy_from_slice(&text[at..at + src.len()]);
        let mut first = None;
        for f in variants {
            let dst = to.end(room);
            let mut after = state;
            let done = (f.run)(src, dst, &mut after);
            let this = (done, after, dst[..done.written].to_vec());
            assert_eq!(first.get_or_insert_with(|| this.clone()), &this, "{}", f.name);
        }
        let (done, after, bytes) = first.expect("some variants");
        at += done.read;
        out.extend(bytes);
        state = after;
    }
    (out, state)
}

/// What `lf_to_crlf` promises, said of a whole text.
fn sent(text: &[u8]) -> Vec<u8> {
    let bare = |at: usize| text[at] == b'\n' && (at == 0 || text[at - 1] != b'\r');
    (0..text.len()).flat_map(|at| bare(at).then_some(b'\r').into_iter().chain([text[at]])).collect()
}

/// What `crlf_to_lf` promises, said of a whole text.
fn received(text: &[u8]) -> Vec<u8> {
    let ends = |at: usize| text[at] == b'\r' && text.get(at + 1) == Some(&b'\n');
    (0..text.len()).filter(|at| !ends(*at)).map(|at| text[at]).collect()
}

fn convert_both_ways(text: &[u8], cuts: &[(usize, usize)]) {
    let (out, _) = converted(&lf_to_crlf::variants(), text, cuts);
    assert_eq!(out, sent(text));
    let (mut out, mut state) = converted(&crlf_to_lf::variants(), text, cuts);
    out.extend(crlf_to_lf::State::finish(&mut state));
    assert_eq!(out, received(text));
}

#[test]
fn conversions_agree_at_every_length_with_a_line_end_at_every_place() {
    for len in 0..=LONGEST {
        let cuts = [(len, 2 * len + 1)];
        for filler in [b'x', b'\r', b'\n'] {
            convert_both_ways(&vec![filler; len], &cuts);
        }
        convert_both_ways(&b"\r\n".repeat(len), &[(2 * len, 4 * len + 1)]);
    }
    for len in [31, 32, 33, 64, 65, 96, 130] {
        for at in 1..len {
            let mut text = vec![b'x'; len];
            text[at] = b'\n';
            convert_both_ways(&text, &[(len, 2 * len + 1)]);
            text[at - 1] = b'\r';
            convert_both_ways(&text, &[(len, 2 * len + 1)]);
            convert_both_ways(&text, &[(at, 2 * len + 1)]);
        }
    }
}

/// Texts in which what matters is frequent, rare, or in between.
fn texts() -> impl Strategy<Value = Vec<u8>> {
    let byte = |plain: u32| prop_oneof![1 => Just(b'\r'), 1 => Just(b'\n'), plain => any::<u8>()];
    prop_oneof![vec(byte(1), 0..600), vec(byte(10), 0..600), vec(byte(60), 0..3000)]
}

proptest! {
    #[test]
    fn conversions_agree_for_any_text_cut_anywhere(
        text in texts(),
        cuts in vec((1_usize..400, 2_usize..800), 1..8),
    ) {
        convert_both_ways(&text, &cuts);
    }

    #[test]
    fn a_text_with_lf_lines_comes_back_as_it_was(text in texts()) {
        let text = received(&text);
        prop_assume!(!text.windows(2).any(|pair| pair == b"\r\n"));
        prop_assert_eq!(received(&sent(&text)), text);
    }

    #[test]
    fn searches_agree_for_any_bytes(bytes in texts(), needle: u8) {
        for f in find_byte::variants() {
            prop_assert_eq!((f.run)(&bytes, needle), bytes.iter().position(|byte| *byte == needle));
        }
        for f in find_crlf::variants() {
            prop_assert_eq!((f.run)(&bytes), bytes.windows(2).position(|pair| pair == b"\r\n"));
        }
    }

    #[test]
    fn checksums_go_on_from_their_seed(bytes in vec(any::<u8>(), 0..20_000), cut: prop::sample::Index) {
        let (head, tail) = bytes.split_at(cut.index(bytes.len() + 1));
        prop_assert_eq!(kernels::crc32c(kernels::crc32c(0, head), tail), kernels::crc32c(0, &bytes));
        prop_assert_eq!(kernels::adler32(kernels::adler32(1, head), tail), kernels::adler32(1, &bytes));
    }
}
