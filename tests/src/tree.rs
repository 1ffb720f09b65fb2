//! A tree of 500 files such as people have: odd names, odd sizes; and the comparison of two trees byte by byte.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{BufReader, Read, Write},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

/// How many files the tree has.
pub const FILES: usize = 500;
/// The largest file in bytes.
pub const LARGEST: u64 = 200 << 20;

/// Directories of the tree, each below the ones before it or the top; raw bytes.
const DIRECTORIES: [&[u8]; 10] = [
    b"plain",
    b"with space",
    b"it's \"quoted\"",
    "gr\u{fc}n/\u{65e5}\u{672c}\u{8a9e}".as_bytes(),
    b"latin\xe4/\xfcber",
    b"[brackets]/{braces}",
    b"deep/er/and/deep/er",
    b"percent%20/#hash",
    b"semi;colon/&and",
    b"back\\slash/~tilde",
];

/// Names a file can have; `#` stands for its number.
const NAMES: [&[u8]; 14] = [
    b"file-#.bin",
    b"two words #",
    b"quote \"#\".txt",
    b"it's # o'clock",
    "\u{e9}t\u{e9}-#-\u{2603}".as_bytes(),
    b"latin-\xe4\xf6\xfc\xdf-#",
    b"[#].tar",
    b"{#}(copy)",
    b".hidden-#",
    b"a  b   #",
    b"#%+&;=,$!@",
    b"-dash #",
    b"back\\#",
    b"st*r?#",
];

/// Sizes of the small files in bytes, in turns: around the borders of buffers.
const SIZES: [u64; 12] = [0, 1, 2, 511, 512, 1459, 4096, 4097, 16_384, 65_535, 65_536, 100_001];

/// Makes the tree below `top`; with `leading_space`, some names begin with one.
pub fn make(top: &Path, leading_space: bool) {
    let large = [LARGEST, 40 << 20, (16 << 20) + 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1];
    for number in 0..FILES {
        let size = large.get(number).copied().unwrap_or(SIZES[number % SIZES.len()]);
        let file = top.join(OsStr::from_bytes(&name(number, leading_space)));
        fs::create_dir_all(file.parent().expect("below the top")).expect("make a directory");
        write(&file, size, number as u64);
    }
}

/// The path of a file, relative to the top.
fn name(number: usize, leading_space: bool) -> Vec<u8> {
    let pattern = NAMES[number % NAMES.len()];
    let mut path = DIRECTORIES[number / NAMES.len() % DIRECTORIES.len()].to_vec();
    path.push(b'/');
    if leading_space && number % 50 == 7 {
        path.push(b' ');
    }
    for &byte in pattern {
        match byte {
            b'#' => path.extend_from_slice(number.to_string().as_bytes()),
            _ => path.push(byte),
        }
    }
    path
}

/// Writes `size` bytes that depend on `seed`, every mebibyte marked with its number: what is lost, doubled or
/// moved shows.
pub fn write(file: &Path, size: u64, seed: u64) {
    const BLOCK: usize = 1 << 20;
    let mut out = File::create(file).expect("make a file");
    let mut block = content(usize::try_from(size).expect("64 bits").min(BLOCK), seed);
    let mut left = size;
    for number in 0_u64.. {
        if let Some(mark) = block.get_mut(..8).filter(|_| number > 0) {
            mark.copy_from_slice(&number.to_le_bytes());
        }
        let count = usize::try_from(left).expect("64 bits").min(BLOCK);
        out.write_all(&block[..count]).expect("write a file");
        left -= count as u64;
        if left == 0 {
            break;
        }
    }
}

/// `size` bytes that depend on `seed`.
#[must_use]
pub fn content(size: usize, seed: u64) -> Vec<u8> {
    let mut noise = Noise::new(seed);
    let mut bytes: Vec<u8> =
        std::iter::repeat_with(|| noise.next().to_le_bytes()).take(size / 8 + 1).flatten().collect();
    bytes.truncate(size);
    bytes
}

struct Noise(u64);

impl Noise {
    fn new(seed: u64) -> Self {
        Noise(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// xorshift64* (Vigna).
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Every file below `top` with its size, by relative path.
#[must_use]
pub fn files(top: &Path) -> BTreeMap<PathBuf, u64> {
    let mut found = BTreeMap::new();
    let mut open = vec![PathBuf::new()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(top.join(&dir)).expect("list a directory").flatten() {
            let path = dir.join(entry.file_name());
            let meta = fs::symlink_metadata(entry.path()).expect("stat");
            if meta.is_dir() {
                open.push(path);
            } else {
                found.insert(path, meta.len());
            }
        }
    }
    found
}

/// Compares two trees; panics, naming a few differences, unless both hold the same files with the same bytes.
pub fn assert_same(expected: &Path, got: &Path) {
    let (left, right) = (files(expected), files(got));
    let mut wrong: Vec<String> = Vec::new();
    wrong.extend(left.keys().filter(|p| !right.contains_key(*p)).map(|p| format!("missing: {p:?}")));
    wrong.extend(right.keys().filter(|p| !left.contains_key(*p)).map(|p| format!("not expected: {p:?}")));
    let both = left.keys().filter(|p| right.contains_key(*p));
    wrong.extend(both.filter(|p| !same_bytes(&expected.join(p), &got.join(p))).map(|p| format!("differs: {p:?}")));
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong[..wrong.len().min(12)].join("\n"));
}

/// Whether two files hold the same bytes.
#[must_use]
pub fn same_bytes(a: &Path, b: &Path) -> bool {
    let open = |p: &Path| BufReader::with_capacity(1 << 20, File::open(p).expect("open a file"));
    if fs::metadata(a).expect("stat").len() != fs::metadata(b).expect("stat").len() {
        return false;
    }
    let (mut a, mut b) = (open(a), open(b));
    let (mut x, mut y) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    loop {
        let count = a.read(&mut x).expect("read a file");
        if count == 0 {
            return b.read(&mut y).expect("read a file") == 0;
        }
        if b.read_exact(&mut y[..count]).is_err() || x[..count] != y[..count] {
            return false;
        }
    }
}

/// A name of raw bytes.
#[must_use]
pub fn raw(name: &[u8]) -> OsString {
    OsString::from_vec(name.to_vec())
}
