//! TIME, DATETIME and TIMESTAMP of MariaDB as they were before 10.1, and are with `mysql56_temporal_format = OFF`.
//!
//! With a fraction they have the types that they have without one, and other lengths, which no log tells (`Field_time_hires`,
//! `Field_datetime_hires` and `Field_timestamp_hires`, `sql/field.h`). So rows are told only where no other lengths fit them.

use crate::event::fields::big_endian;

/// Whether eight bytes may be a DATETIME(6) of this form: microseconds, with months of 32 days and years of 13 months.
pub(crate) fn is_packed_datetime(bytes: &[u8]) -> bool {
    big_endian(bytes) < 10_000 * 13 * 32 * 86_400 * 1_000_000
}

/// Whether eight bytes may be a DATETIME without a fraction: the number 2026_12_31_23_59_59.
pub(crate) fn is_plain_datetime(bytes: &[u8]) -> bool {
    let number = bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let (date, time) = (number / 1_000_000, number % 1_000_000);
    date / 10_000 <= 9999 && date / 100 % 100 <= 12 && date % 100 <= 31 && is_clock(time) && time < 240_000
}

/// Whether three bytes may be a TIME without a fraction: the number 838_59_59.
pub(crate) fn is_plain_time(bytes: &[u8]) -> bool {
    let raw = bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let number = if raw >= 1 << 23 { (1 << 24) - raw } else { raw };
    number <= 8_385_959 && is_clock(number)
}

fn is_clock(number: u64) -> bool {
    number / 100 % 100 < 60 && number % 100 < 60
}

const TIMESTAMP: u8 = 7;
const TIME: u8 = 11;
const DATETIME: u8 = 12;

/// How long the values of such a type are, without a fraction first; `None` of other types.
pub(in crate::event) fn lengths(code: u8) -> Option<&'static [usize]> {
    match code {
        TIMESTAMP => Some(&[4, 5, 6, 7]),
        TIME => Some(&[3, 4, 5, 6]),
        // Of six digits it is as long as without any.
        DATETIME => Some(&[8, 6, 7]),
        _ => None,
    }
}

/// Whether these may be a value of it.
pub(in crate::event) fn may_be(code: u8, bytes: &[u8]) -> bool {
    // The largest number of digits that so many bytes have.
    let end = |of_one_second: u64, digits: u32| big_endian(bytes) < of_one_second * 10_u64.pow(digits);
    match (code, bytes.len()) {
        (TIME, 3) => is_plain_time(bytes),
        (TIME, len) => end(2 * 3_020_400, [2, 5, 6][len - 4]),
        (DATETIME, 8) => is_plain_datetime(bytes) || is_packed_datetime(bytes),
        (DATETIME, len) => end(10_000 * 13 * 32 * 86_400, [2, 5][len - 6]),
        (_, len) => big_endian(&bytes[4..]) < 10_u64.pow(2 * (len as u32 - 4)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_cannot_be_are_none() {
        assert!(is_plain_datetime(&20_161_221_175_716_u64.to_le_bytes()) && is_plain_datetime(&[0; 8]));
        assert!(!is_plain_datetime(&20_161_321_175_716_u64.to_le_bytes()));
        assert!(is_plain_time(&[0x59, 0x0a, 0x80]) && !is_plain_time(&[61, 0, 0]));
    }
}
