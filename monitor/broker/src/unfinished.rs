//! The hidden files that uploads are written to (staged.rs): what they are called.

use ipc::link::worker_broker::Why;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::why::why;

/// What the names end with, in front of eight hexadecimal digits.
const MARK: &[u8] = b".caisson-";
const DIGITS: usize = 8;
/// The longest name, by most file systems.
const LONGEST: usize = 255;

/// `.NAME.caisson-XXXXXXXX`, the name cut so that it fits.
pub(crate) fn new_name(name: &[u8]) -> Result<Vec<u8>, Why> {
    let mut random = [0; 4];
    getrandom(&mut random, GetRandomFlags::empty()).map_err(why)?;
    let kept = &name[..name.len().min(LONGEST - 1 - MARK.len() - DIGITS)];
    let digits = format!("{:08x}", u32::from_ne_bytes(random));
    Ok([b".", kept, MARK, digits.as_bytes()].concat())
}

/// Whether this is such a name.
pub(crate) fn is_name(name: &[u8]) -> bool {
    let Some(kept) = name.strip_prefix(b".").and_then(|rest| rest.len().checked_sub(MARK.len() + DIGITS)) else {
        return false;
    };
    let (mark, digits) = name[1 + kept..].split_at(MARK.len());
    kept > 0 && mark == MARK && digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_made_is_known_again_and_fits() {
        for length in [1, 10, 237, 238, 255] {
            let name = new_name(&vec![b'n'; length]).unwrap();
            assert!(is_name(&name) && name.len() <= LONGEST, "{length}");
        }
        for other in [
            &b""[..],
            b".",
            b".f",
            b".caisson-00000000",
            b"f.caisson-00000000",
            b".f.caisson-0000000",
            b".f.caisson-0000000G",
        ] {
            assert!(!is_name(other), "{}", other.escape_ascii());
        }
    }
}
