//! Numbers and names into the bytes of a line, without an allocation or a formatter in between.

/// A name, with CR and LF shown as `?`.
pub(super) fn push_name(out: &mut Vec<u8>, name: &[u8]) {
    let start = out.len();
    out.extend_from_slice(name);
    for byte in &mut out[start..] {
        if matches!(*byte, b'\r' | b'\n') {
            *byte = b'?';
        }
    }
}

/// A number in decimal.
pub(super) fn push_decimal(out: &mut Vec<u8>, number: u64) {
    push_right(out, number, 0);
}

/// A number in decimal with spaces before it, at least `width` bytes (of up to 20).
pub(super) fn push_right(out: &mut Vec<u8>, mut number: u64, width: usize) {
    let mut digits = [b' '; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = digit(number % 10);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at.min(digits.len().saturating_sub(width))..]);
}

/// Bytes with spaces behind them, at least `width` bytes.
pub(super) fn push_left(out: &mut Vec<u8>, text: &[u8], width: usize) {
    let end = out.len() + width;
    out.extend_from_slice(text);
    fill(out, end);
}

/// A number in decimal with spaces behind it, at least `width` bytes.
pub(super) fn push_number_left(out: &mut Vec<u8>, number: u64, width: usize) {
    let end = out.len() + width;
    push_decimal(out, number);
    fill(out, end);
}

/// Spaces up to a length.
fn fill(out: &mut Vec<u8>, end: usize) {
    if out.len() < end {
        out.resize(end, b' ');
    }
}

/// The last two decimal digits of a number.
pub(super) fn two_digits(number: u32) -> [u8; 2] {
    [digit(u64::from(number / 10 % 10)), digit(u64::from(number % 10))]
}

/// Permission bits as four octal digits.
pub(super) fn push_mode(out: &mut Vec<u8>, mode: u16) {
    out.extend_from_slice(&[9, 6, 3, 0].map(|shift| digit(u64::from(mode >> shift & 7))));
}

/// A number in hexadecimal.
pub(super) fn push_hex(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 16];
    for (place, byte) in digits.iter_mut().rev().enumerate() {
        *byte = b"0123456789abcdef"[(number >> (4 * place) & 15) as usize];
    }
    let zeros = (number | 1).leading_zeros() / 4;
    out.extend_from_slice(&digits[zeros as usize..]);
}

/// A digit, for 0 to 9.
fn digit(value: u64) -> u8 {
    // Less than ten, so nothing is lost.
    b'0' + value as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(push: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = b">".to_vec();
        push(&mut out);
        String::from_utf8(out[1..].to_vec()).unwrap()
    }

    #[test]
    fn numbers_look_as_the_standard_library_writes_them() {
        for number in [0, 1, 7, 9, 10, 99, 100, 4096, 739_159_296, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            assert_eq!(made(|out| push_decimal(out, number)), number.to_string());
            assert_eq!(made(|out| push_right(out, number, 8)), format!("{number:>8}"));
            assert_eq!(made(|out| push_hex(out, number)), format!("{number:x}"));
        }
        for (number, last) in [(7, b"07"), (94, b"94"), (1994, b"94")] {
            assert_eq!(&two_digits(number), last);
        }
        assert_eq!(made(|out| push_mode(out, 0o1644)), "1644");
        assert_eq!(made(|out| push_mode(out, 0o7)), "0007");
    }

    #[test]
    fn a_column_is_filled_and_never_cut() {
        assert_eq!(made(|out| push_left(out, b"bob", 8)), "bob     ");
        assert_eq!(made(|out| push_number_left(out, 1000, 8)), "1000    ");
        assert_eq!(made(|out| push_number_left(out, 123_456_789, 8)), "123456789");
        assert_eq!(made(|out| push_left(out, b"longer-than-that", 8)), "longer-than-that");
    }

    #[test]
    fn a_name_with_line_ends_stays_on_its_line() {
        assert_eq!(made(|out| push_name(out, b"a\r\n-rw-r--r-- 1 b\n")), "a??-rw-r--r-- 1 b?");
        assert_eq!(made(|out| push_name(out, b" lead  and trail ")), " lead  and trail ");
    }
}
