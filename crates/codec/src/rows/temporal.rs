//! Dates and times as they stand in a row, as the servers write them in text.
//!
//! Since MySQL 5.6.4 they are big-endian with a sign bit that is turned round, and as many bytes of fraction as their digits need, two
//! digits a byte (MySQL, `my_time.cc`: `my_datetime_packed_from_binary` and its neighbours). The older forms have none.

use crate::event::{big_endian, is_plain_datetime, is_plain_time, little_endian};

/// A fraction of so many digits: nothing, or a point and the digits.
fn fraction(value: u64, digits: u8) -> String {
    // Of an odd number of digits one more stands in the bytes.
    let stored = digits.div_ceil(2) * 2;
    let value = if stored > digits { value / 10 } else { value };
    if digits == 0 { String::new() } else { format!(".{value:0width$}", width = usize::from(digits)) }
}

/// DATE: five bits of the day, four of the month, the year.
pub(super) fn date(bytes: &[u8]) -> Option<String> {
    let packed = little_endian(bytes.first_chunk::<3>()?);
    Some(format!("{:04}-{:02}-{:02}", packed >> 9, packed >> 5 & 15, packed & 31))
}

/// TIME of old: the number 838_59_59.
pub(super) fn old_time(bytes: &[u8]) -> Option<String> {
    let raw = little_endian(bytes.first_chunk::<3>().filter(|bytes| is_plain_time(*bytes))?) as i64;
    let number = if raw >= 1 << 23 { raw - (1 << 24) } else { raw };
    let (sign, number) = (if number < 0 { "-" } else { "" }, number.unsigned_abs());
    Some(format!("{sign}{:02}:{:02}:{:02}", number / 10_000, number / 100 % 100, number % 100))
}

/// DATETIME of old: the number 2026_12_31_23_59_59.
pub(super) fn old_datetime(bytes: &[u8]) -> Option<String> {
    let number = u64::from_le_bytes(*bytes.first_chunk::<8>().filter(|bytes| is_plain_datetime(*bytes))?);
    let (date, time) = (number / 1_000_000, number % 1_000_000);
    Some(format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        date / 10_000,
        date / 100 % 100,
        date % 100,
        time / 10_000,
        time / 100 % 100,
        time % 100
    ))
}

/// TIME with so many digits of fraction.
pub(super) fn time(bytes: &[u8], digits: u8) -> Option<String> {
    let extra = usize::from(digits.div_ceil(2));
    if digits > 6 || bytes.len() != 3 + extra {
        return None;
    }
    let offset = 0x80_0000_i64 << (8 * extra);
    let packed = big_endian(bytes) as i64 - offset;
    let sign = if packed < 0 { "-" } else { "" };
    let packed = packed.unsigned_abs();
    let (whole, part) = (packed >> (8 * extra), packed & ((1 << (8 * extra)) - 1));
    let (hour, minute, second) = (whole >> 12 & 0x3ff, whole >> 6 & 63, whole & 63);
    Some(format!("{sign}{hour:02}:{minute:02}:{second:02}{}", fraction(part, digits)))
}

/// DATETIME with so many digits of fraction. Negative ones are none.
pub(super) fn datetime(bytes: &[u8], digits: u8) -> Option<String> {
    let (whole, part) = bytes.split_at_checked(5)?;
    if digits > 6 || part.len() != usize::from(digits.div_ceil(2)) {
        return None;
    }
    let packed = big_endian(whole).checked_sub(0x80_0000_0000)?;
    let (date, time) = (packed >> 17, packed & 0x1_ffff);
    let (months, day) = (date >> 5, date & 31);
    Some(format!(
        "{:04}-{:02}-{day:02} {:02}:{:02}:{:02}{}",
        months / 13,
        months % 13,
        time >> 12,
        time >> 6 & 63,
        time & 63,
        fraction(big_endian(part), digits)
    ))
}

/// TIMESTAMP with so many digits of fraction, in UTC.
pub(super) fn timestamp(bytes: &[u8], digits: u8) -> Option<String> {
    let (whole, part) = bytes.split_at_checked(4)?;
    if digits > 6 || part.len() != usize::from(digits.div_ceil(2)) {
        return None;
    }
    Some(format!("{}{}", utc(big_endian(whole)), fraction(big_endian(part), digits)))
}

/// TIMESTAMP of old, in UTC.
pub(super) fn old_timestamp(bytes: &[u8]) -> Option<String> {
    Some(utc(u64::from(u32::from_le_bytes(*bytes.first_chunk::<4>()?))))
}

/// Zero is the zero timestamp of the servers, not 1970.
fn utc(seconds: u64) -> String {
    if seconds == 0 {
        return "0000-00-00 00:00:00".to_owned();
    }
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", time / 3600, time / 60 % 60, time % 60)
}

/// Year, month and day of so many days after 1970-01-01, in years that begin in March.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, of_year - (153 * shifted + 2) / 5 + 1)
}

/// What JSON holds: the packed form in eight bytes, little-endian, with six digits (`TIME_from_longlong_datetime_packed`).
pub(super) fn json_datetime(packed: i64) -> Option<String> {
    let packed = u64::try_from(packed).ok()?;
    let (whole, micros) = (packed >> 24, packed & 0xff_ffff);
    let bytes = (whole.checked_add(0x80_0000_0000)?).to_be_bytes();
    datetime(&[&bytes[3..], &(micros as u32).to_be_bytes()[1..]].concat(), 6).filter(|_| bytes[..3] == [0; 3])
}

/// The same of a date.
pub(super) fn json_date(packed: i64) -> Option<String> {
    json_datetime(packed).map(|text| text[..text.len() - " 00:00:00.000000".len()].to_owned())
}

/// The same of a time.
pub(super) fn json_time(packed: i64) -> Option<String> {
    let raw = packed.checked_add(0x80_0000 << 24).and_then(|raw| u64::try_from(raw).ok())?;
    let bytes = raw.to_be_bytes();
    time(&bytes[2..], 6).filter(|_| bytes[..2] == [0; 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_told_as_the_calendar_has_them() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(19_723), (2024, 1, 1));
        assert_eq!(utc(i32::MAX as u64), "2038-01-19 03:14:07");
        assert_eq!(timestamp(&[0x65, 0x53, 0xf1, 0x00, 0x04, 0xce], 3).unwrap(), "2023-11-14 22:13:20.123");
        assert_eq!(old_timestamp(&[0; 4]).unwrap(), "0000-00-00 00:00:00");
    }

    #[test]
    fn times_have_a_sign_and_as_many_digits_as_their_column() {
        assert_eq!(time(&[0x80, 0, 1], 0).unwrap(), "00:00:01");
        assert_eq!(time(&[0x7f, 0xff, 0xff, 0xff], 2).unwrap(), "-00:00:00.01");
        assert_eq!(time(&[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff], 6).unwrap(), "-00:00:00.000001");
        assert_eq!(old_time(&[0xff, 0xff, 0xff]).unwrap(), "-00:00:01");
        assert_eq!(datetime(&[0x80, 0, 0, 0, 0], 0).unwrap(), "0000-00-00 00:00:00");
        assert_eq!(old_datetime(&20_261_231_235_958_u64.to_le_bytes()).unwrap(), "2026-12-31 23:59:58");
        assert_eq!((old_datetime(&[0x7f; 8]), old_time(&[61, 0, 0])), (None, None), "no day, no minute");
        assert_eq!(date(&[0x41, 0xec, 0x0f]).unwrap(), "2038-02-01");
        assert_eq!(time(&[0; 3], 7), None);
        assert_eq!(datetime(&[0; 5], 0), None, "negative");
    }
}
