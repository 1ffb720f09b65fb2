//! The oracle.

/// Index of the CR of the first CR LF in `hay`.
pub(crate) fn find_crlf(hay: &[u8]) -> Option<usize> {
    hay.windows(2).position(|pair| pair == b"\r\n")
}
