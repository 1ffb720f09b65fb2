//! Times of files as lines show them: in UTC, for `ls -l` lines also in local time. The day is worked out once for files of the same day.

use jiff::{Span, civil};

use super::text::{push_right, two_digits};
use crate::zone::{Offset, Zone};

const DAY: i64 = 86_400;
const EPOCH: civil::Date = civil::date(1970, 1, 1);

/// Beyond half a Gregorian year in the past, and in the future, `ls` shows the year instead of the time.
const RECENT: i64 = 31_556_952 / 2;

/// 0000-01-01 and 9999-12-31: what four digits of a year can say. Times beyond are shown as the nearest of them.
const FIRST: i64 = -62_167_219_200;
const LAST: i64 = 253_402_300_799;

const MONTHS: [&[u8]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// Writes times, as seen from one moment and place.
#[derive(Debug)]
pub(super) struct Dates<'z> {
    now: i64,
    zone: Option<&'z Zone>,
    offset: Offset,
    day: i64,
    date: Date,
}

/// A day of the Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Date {
    /// 0 to 9999.
    year: u32,
    /// 1 to 12.
    month: u32,
    /// 1 to 31.
    day: u32,
}

impl<'z> Dates<'z> {
    /// As seen from `now`, UTC seconds since 1970, in this zone or in UTC.
    pub(super) fn new(now: i64, zone: Option<&'z Zone>) -> Self {
        let offset = zone.map_or_else(Offset::default, |zone| zone.at(now));
        Dates { now, zone, offset, day: 0, date: Date::of(0) }
    }

    /// `Mon DD HH:MM`, or `Mon DD  YYYY` for what is old or in the future; local time.
    pub(super) fn push_ls(&mut self, out: &mut Vec<u8>, time: i64) {
        let recent = time <= self.now && time > self.now.saturating_sub(RECENT);
        let local = self.local(time);
        let (date, second) = self.split(local);
        let month = usize::try_from(date.month).unwrap_or(1);
        out.extend_from_slice(MONTHS.get(month.wrapping_sub(1)).copied().unwrap_or(b"Jan"));
        out.push(b' ');
        push_right(out, date.day.into(), 2);
        if recent {
            let ([h, hh], [m, mm]) = (two_digits(second / 3600), two_digits(second / 60 % 60));
            out.extend_from_slice(&[b' ', h, hh, b':', m, mm]);
        } else {
            let ([y, yy], [yyy, yyyy]) = (two_digits(date.year / 100), two_digits(date.year % 100));
            out.extend_from_slice(&[b' ', b' ', y, yy, yyy, yyyy]);
        }
    }

    /// `YYYYMMDDHHMMSS` (RFC 3659 2.3), UTC.
    pub(super) fn push_time_val(&mut self, out: &mut Vec<u8>, time: i64) {
        let (Date { year, month, day }, second) = self.split(time);
        let pairs = [year / 100, year % 100, month, day, second / 3600, second / 60 % 60, second % 60];
        out.extend_from_slice(pairs.map(two_digits).as_flattened());
    }

    /// What UTC would have to be for its clocks to show what those of the zone do.
    fn local(&mut self, time: i64) -> i64 {
        if let Some(zone) = self.zone
            && !(self.offset.from..self.offset.until).contains(&time)
        {
            self.offset = zone.at(time);
        }
        time.saturating_add(self.offset.seconds)
    }

    fn split(&mut self, time: i64) -> (Date, u32) {
        let time = time.clamp(FIRST, LAST);
        let day = time.div_euclid(DAY);
        if day != self.day {
            (self.day, self.date) = (day, Date::of(day));
        }
        // Less than a day, so nothing is lost.
        (self.date, time.rem_euclid(DAY) as u32)
    }
}

impl Date {
    /// The date of a day counted from 1970-01-01, in the years from 0000 to 9999.
    fn of(day: i64) -> Self {
        let of_day = |days| EPOCH.checked_add(Span::new().try_days(days)?);
        let date = of_day(day).unwrap_or(EPOCH);
        // In their ranges, because `day` is.
        Date { year: date.year() as u32, month: date.month() as u32, day: date.day() as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The calendar as people count it: the oracle.
    fn next(date: Date) -> Date {
        let leap = date.year.is_multiple_of(4) && (!date.year.is_multiple_of(100) || date.year.is_multiple_of(400));
        let length = match date.month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        match date {
            Date { year, month: 12, day: 31 } => Date { year: year + 1, month: 1, day: 1 },
            Date { year, month, day } if day == length => Date { year, month: month + 1, day: 1 },
            Date { year, month, day } => Date { year, month, day: day + 1 },
        }
    }

    #[test]
    fn every_day_of_ten_thousand_years_follows_the_day_before() {
        let mut date = Date { year: 0, month: 1, day: 1 };
        for day in FIRST / DAY..=LAST / DAY {
            assert_eq!(Date::of(day), date, "day {day}");
            date = next(date);
        }
        assert_eq!(date, Date { year: 10_000, month: 1, day: 1 });
    }

    fn shown<'z>(push: impl Fn(&mut Dates<'z>, &mut Vec<u8>, i64), time: i64) -> String {
        let mut out = Vec::new();
        push(&mut Dates::new(1_800_000_000, None), &mut out, time);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn facts_have_the_time_in_utc() {
        assert_eq!(shown(Dates::push_time_val, 0), "19700101000000");
        assert_eq!(shown(Dates::push_time_val, 951_827_696), "20000229123456");
        assert_eq!(shown(Dates::push_time_val, -1), "19691231235959");
    }

    #[test]
    fn times_beyond_four_digits_of_a_year_do_not_break_a_line() {
        assert_eq!(shown(Dates::push_time_val, i64::MAX), "99991231235959");
        assert_eq!(shown(Dates::push_time_val, i64::MIN), "00000101000000");
        assert_eq!(shown(Dates::push_ls, i64::MAX), "Dec 31  9999");
    }

    #[test]
    fn the_year_stands_for_the_time_in_old_and_future_files() {
        assert_eq!(shown(Dates::push_ls, 1_800_000_000), "Jan 15 08:00");
        assert_eq!(shown(Dates::push_ls, 1_800_000_001), "Jan 15  2027");
        assert_eq!(shown(Dates::push_ls, 1_800_000_000 - RECENT), "Jul 16  2026");
        assert_eq!(shown(Dates::push_ls, 1_800_000_000 - RECENT + 1), "Jul 16 17:05");
        assert_eq!(shown(Dates::push_ls, 0), "Jan  1  1970");
    }
}
