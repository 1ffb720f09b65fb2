//! Every variant of every kernel beside the scalar version: `cargo bench -p kernels`.
//!
//! One row a kernel and size; GB/s (10^9 bytes of input a second), the best of several rounds, and
//! in brackets how many times the scalar version that is. Searches look for what stands at the end.
//! Then the command lines of FTP: ns a call of the public function, lengths fixed and mixed.
//! `cargo bench -p kernels -- WORD` runs the kernels whose name contains WORD.

use std::hint::black_box;
use std::time::{Duration, Instant};

use kernels::dispatch::Variant;
use kernels::{adler32, crc32c, crlf_to_lf, find_byte, find_crlf, lf_to_crlf};

const SIZES: [(&str, usize); 3] = [("64 B", 64), ("4 KiB", 4 << 10), ("1 MiB", 1 << 20)];
const ROUNDS: usize = 50;
const ROUND: Duration = Duration::from_millis(1);

fn main() {
    let wanted = std::env::args().skip(1).find(|word| !word.starts_with('-')).unwrap_or_default();
    for (name, size) in SIZES {
        let zeros = vec![0; size];
        let noise = noise(size);
        let lf = text(size, b"\n");
        let crlf = text(size, b"\r\n");
        let mut room = vec![0; 2 * size + 1];
        let row = |kernel: &str| format!("{kernel:12} {name:>6}");
        let run = |kernel: &str| kernel.contains(&wanted);

        let mut line = zeros.clone();
        line[size - 2..].copy_from_slice(b"\r\n");
        if run("find_byte") {
            print(&row("find_byte"), size, find_byte::variants(), |f| f(black_box(&line), b'\n').unwrap());
        }
        if run("find_crlf") {
            print(&row("find_crlf"), size, find_crlf::variants(), |f| f(black_box(&line)).unwrap());
        }
        if run("crc32c") {
            print(&row("crc32c"), size, crc32c::variants(), |f| f(0, black_box(&noise)) as usize);
        }
        if run("adler32") {
            print(&row("adler32"), size, adler32::variants(), |f| f(1, black_box(&noise)) as usize);
        }
        if run("lf_to_crlf") {
            print(&row("lf_to_crlf"), size, lf_to_crlf::variants(), |f| {
                f(black_box(&lf), &mut room, &mut lf_to_crlf::State::default()).written
            });
        }
        if run("crlf_to_lf") {
            print(&row("crlf_to_lf"), size, crlf_to_lf::variants(), |f| {
                f(black_box(&crlf), &mut room, &mut crlf_to_lf::State::default()).written
            });
        }
    }
    if "find_newline".contains(&wanted) {
        command_lines();
    }
}

/// What one call costs on a command line, the public function beside the scalar one.
fn command_lines() {
    let scalar = find_byte::variants()[0].run;
    let lengths: Vec<usize> = noise(4096).iter().map(|byte| 10 + usize::from(*byte) % 51).collect();
    let mixed: Vec<Vec<u8>> = lengths.iter().map(|len| command(*len)).collect();
    let show = |label: &str, lines: &[Vec<u8>]| {
        let seconds = best(2, |which| {
            let find = |line| if which == 0 { scalar(line, b'\n') } else { kernels::find_newline(line) };
            lines.iter().map(|line| find(black_box(line)).unwrap()).sum()
        });
        let [plain, ours] = [0, 1].map(|which| seconds[which] * 1e9 / lines.len() as f64);
        println!("find_newline {label:>9}   scalar {plain:6.2} ns   find_newline {ours:6.2} ns");
    };
    for len in [10, 20, 30, 40, 60] {
        show(&format!("{len} B"), &vec![command(len); 64]);
    }
    show("10-60 B", &mixed);
}

fn print<F: Copy>(row: &str, size: usize, variants: Vec<Variant<F>>, mut call: impl FnMut(F) -> usize) {
    let seconds = best(variants.len(), |which| call(variants[which].run));
    let mut line = row.to_owned();
    for (variant, took) in variants.iter().zip(&seconds) {
        let (speed, times) = (size as f64 / took / 1e9, seconds[0] / took);
        line += &format!("   {:>6} {speed:7.2} ({times:5.1}x)", variant.name);
    }
    println!("{line}");
}

/// Seconds one call takes, for each of `variants`: the quickest of several rounds of many calls.
/// The variants take turns, so that what else the machine does falls on all of them.
fn best(variants: usize, mut call: impl FnMut(usize) -> usize) -> Vec<f64> {
    let calls: Vec<u32> = (0..variants).map(|which| enough(|| call(which))).collect();
    let mut quickest = vec![f64::INFINITY; variants];
    for _ in 0..ROUNDS {
        for which in 0..variants {
            let took = time(calls[which], || call(which)).as_secs_f64() / f64::from(calls[which]);
            quickest[which] = quickest[which].min(took);
        }
    }
    quickest
}

/// How many calls fill a round.
fn enough(mut call: impl FnMut() -> usize) -> u32 {
    let mut calls = 1_u32;
    while time(calls, &mut call) < ROUND {
        calls = calls.saturating_mul(2);
    }
    calls
}

fn time(calls: u32, mut call: impl FnMut() -> usize) -> Duration {
    let start = Instant::now();
    for _ in 0..calls {
        black_box(call());
    }
    start.elapsed()
}

/// The same bytes on every run (xorshift).
fn noise(len: usize) -> Vec<u8> {
    let mut x = 0x9e37_79b9_7f4a_7c15_u64;
    let step = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (x >> 32) as u8
    };
    std::iter::repeat_with(step).take(len).collect()
}

/// Lines of 0 to 79 letters, 40 on average: about what source code and logs have.
fn text(len: usize, end: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(len + 80);
    for byte in noise(len).iter().cycle() {
        if out.len() >= len {
            break;
        }
        out.resize(out.len() + usize::from(*byte) % 80, b'x');
        out.extend(end);
    }
    out.truncate(len);
    out
}

fn command(len: usize) -> Vec<u8> {
    let mut line = b"RETR ".to_vec();
    line.resize(len - 2, b'x');
    line.extend(b"\r\n");
    line
}
