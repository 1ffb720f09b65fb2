//! The oracle.

/// Index of the first `needle` in `hay`.
pub(crate) fn find_byte(hay: &[u8], needle: u8) -> Option<usize> {
    hay.iter().position(|&byte| byte == needle)
}
