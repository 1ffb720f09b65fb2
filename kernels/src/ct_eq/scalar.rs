//! The oracle.

use std::hint::black_box;

/// Whether `a` and `b` hold the same bytes.
pub(crate) fn ct_eq(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let differences = a.iter().zip(b).fold(0, |seen, (x, y)| black_box(seen | (x ^ y)));
    differences == 0
}
