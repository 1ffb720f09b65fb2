//! Times as RFC 3659 2.3 writes them: YYYYMMDDHHMMSS, UTC, a fraction allowed when reading.

use jiff::{Timestamp, civil::DateTime, tz::Offset};

/// Seconds since 1970 as text; `None` beyond the years 0 to 9999.
pub fn write(seconds: i64) -> Option<String> {
    let time = Offset::UTC.to_datetime(Timestamp::from_second(seconds).ok()?);
    let (year, month, day) = (time.year(), time.month(), time.day());
    let (hour, minute, second) = (time.hour(), time.minute(), time.second());
    (year >= 0).then(|| format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}"))
}

/// Text as seconds since 1970; a fraction is dropped.
pub fn read(text: &[u8]) -> Option<i64> {
    let (digits, fraction) = text.split_at_checked(14)?;
    let fraction_is_one = match fraction {
        [] => true,
        [b'.', digits @ ..] => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !fraction_is_one || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let field = |from: usize, to: usize| std::str::from_utf8(digits.get(from..to)?).ok();
    let year: i16 = field(0, 4)?.parse().ok()?;
    let two = |from: usize| field(from, from + 2).and_then(|text| text.parse::<i8>().ok());
    let time = DateTime::new(year, two(4)?, two(6)?, two(8)?, two(10)?, two(12)?, 0).ok()?;
    Some(Offset::UTC.to_timestamp(time).ok()?.as_second())
}

/// The same without a fraction, and seconds may be left out (SITE UTIME).
pub fn read_short(text: &[u8]) -> Option<i64> {
    match text.len() {
        12 => read(&[text, b"00"].concat()),
        14 => read(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for seconds in [0, -1, 951_782_400, 4_102_444_799] {
            assert_eq!(write(seconds).and_then(|text| read(text.as_bytes())), Some(seconds));
        }
        assert_eq!(write(951_782_400).as_deref(), Some("20000229000000"));
        assert_eq!(read(b"20000229000000.123"), Some(951_782_400));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for bad in [
            "",
            "2000022900000",
            "20000230000000",
            "20001301000000",
            "2000022900000x",
            "20000229000000.",
            "20000229000000,5",
            "-0000229000000",
        ] {
            assert_eq!(read(bad.as_bytes()), None, "{bad}");
        }
    }
}
