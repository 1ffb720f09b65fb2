//! Hashes the wire types, so that two builds never talk past each other.
//!
//! The hash (FNV-1a, 64 bits; not a secret, not a signature) covers every file under `src/` and `child/src/`: a link whose two
//! ends were built from different records refuses its first record instead of misreading a later one, and so do two children
//! whose first records came from one monitor.

use std::{env, fs, io, path::Path};

fn main() -> io::Result<()> {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for sources in ["src", "child/src"] {
        println!("cargo:rerun-if-changed={sources}");
        hash_tree(Path::new(sources), &mut hash)?;
    }
    let out = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    fs::write(Path::new(&out).join("build_hash.rs"), format!("{hash:#018x}_u64"))
}

fn hash_tree(dir: &Path, hash: &mut u64) -> io::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(dir)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            hash_tree(&path, hash)?;
        } else {
            for byte in fs::read(&path)? {
                *hash = (*hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
    }
    Ok(())
}
