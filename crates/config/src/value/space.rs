//! Amounts of disk space as operators write them: `500MiB`, `10GiB`, `10%`, `off`.

use std::fmt;
use thiserror::Error;

/// The units with their length in bytes, longest first.
const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// Smallest and largest amount, in bytes: 1 MiB and 1 PiB. Less is gone before anybody can read a warning.
const BYTES: std::ops::RangeInclusive<u64> = 1 << 20..=1 << 50;
/// Smallest and largest share of a file system, in percent.
const PERCENT: std::ops::RangeInclusive<u8> = 1..=99;

/// What is accepted, as a phrase after "must be".
pub(crate) const ALLOWED: &str = "an amount of free space from 1MiB to 1024TiB, such as 10GiB, a percentage of the file system from 1% to 99%, or off";

/// The same, where only an amount is meant.
pub(crate) const ALLOWED_BYTES: &str = "an amount from 1MiB to 1024TiB, such as 500GiB";

/// How little free space in the file system of `data_dir` is worth a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskWarn {
    /// None is: never warn.
    Off,
    /// Less than so many bytes, 1 MiB to 1 PiB.
    Bytes(u64),
    /// Less than this share of the file system's size, in percent, 1 to 99.
    Percent(u8),
}

impl DiskWarn {
    /// Free bytes below which to warn on a file system of `size` bytes; `None`: never.
    pub fn threshold(self, size: u64) -> Option<u64> {
        match self {
            Self::Off => None,
            Self::Bytes(bytes) => Some(bytes),
            // By parts of a hundred, so that nothing overflows.
            Self::Percent(percent) => Some(size / 100 * u64::from(percent)),
        }
    }
}

impl fmt::Display for DiskWarn {
    /// As the configuration has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format(*self))
    }
}

/// Why a text is not an amount of space. The message says how to write it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum SpaceError {
    /// `10`: percent or gibibytes?
    #[error("has no unit: write {0}GiB, {0}MiB or {0}%")]
    NoUnit(String),
    /// `1.5GiB`.
    #[error("has a fraction: write a whole number of a smaller unit, such as 1536MiB instead of 1.5GiB")]
    Fraction,
    /// `10GB`, `10G`: a thousand or 1024? Tools disagree, so binlogd does not guess.
    #[error("has the unknown unit {0:?}: the units are KiB, MiB, GiB, TiB and %")]
    UnknownUnit(String),
    /// Anything else, and what is too little or too much.
    #[error("must be {ALLOWED}")]
    Other,
}

/// Reads an amount: a whole number and one of the units KiB, MiB, GiB, TiB and %, nothing in between; or `off`.
pub(crate) fn parse(text: &str) -> Result<DiskWarn, SpaceError> {
    if text == "off" {
        return Ok(DiskWarn::Off);
    }
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    if digits.is_empty() {
        return Err(SpaceError::Other);
    }
    match unit {
        "" => return Err(SpaceError::NoUnit(digits.to_owned())),
        "%" => digits.parse().ok().filter(|n| PERCENT.contains(n)).map(DiskWarn::Percent),
        _ if unit.starts_with(['.', ',']) => return Err(SpaceError::Fraction),
        _ if !unit.bytes().all(|byte| byte.is_ascii_alphabetic()) => return Err(SpaceError::Other),
        _ => {
            let (_, bytes) = UNITS
                .iter()
                .find(|(name, _)| *name == unit)
                .ok_or_else(|| SpaceError::UnknownUnit(unit.to_owned()))?;
            let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(*bytes));
            bytes.filter(|bytes| BYTES.contains(bytes)).map(DiskWarn::Bytes)
        }
    }
    .ok_or(SpaceError::Other)
}

impl std::str::FromStr for DiskWarn {
    type Err = String;

    fn from_str(text: &str) -> Result<DiskWarn, String> {
        parse(text).map_err(|error| error.to_string())
    }
}

/// Writes an amount as [`parse`] reads it, with the largest unit that divides it.
pub(crate) fn format(warn: DiskWarn) -> String {
    match warn {
        DiskWarn::Off => "off".to_owned(),
        DiskWarn::Percent(percent) => format!("{percent}%"),
        DiskWarn::Bytes(bytes) => {
            let unit = UNITS.iter().find(|(_, length)| bytes.is_multiple_of(*length));
            unit.map_or_else(
                || format!("{bytes} bytes"),
                |(name, length)| format!("{}{name}", bytes / length),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_watermark_is_bytes_whatever_it_was_given_as() {
        for (warn, threshold) in [
            (DiskWarn::Off, None),
            (DiskWarn::Bytes(5), Some(5)),
            (DiskWarn::Percent(10), Some(100)),
            (DiskWarn::Percent(99), Some(990)),
        ] {
            assert_eq!(warn.threshold(1_000), threshold, "{warn}");
        }
        assert!(DiskWarn::Percent(99).threshold(u64::MAX).is_some_and(|bytes| bytes > u64::MAX / 100 * 98));
    }

    #[test]
    fn reads_every_unit() {
        for (text, warn) in [
            ("off", DiskWarn::Off),
            ("1%", DiskWarn::Percent(1)),
            ("99%", DiskWarn::Percent(99)),
            ("1024KiB", DiskWarn::Bytes(1 << 20)),
            ("1MiB", DiskWarn::Bytes(1 << 20)),
            ("010GiB", DiskWarn::Bytes(10 << 30)),
            ("1024TiB", DiskWarn::Bytes(1 << 50)),
        ] {
            assert_eq!(parse(text), Ok(warn), "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong() {
        use SpaceError::*;
        for (text, error) in [
            ("10", NoUnit("10".to_owned())),
            ("1.5GiB", Fraction),
            ("1,5GiB", Fraction),
            ("10GB", UnknownUnit("GB".to_owned())),
            ("10G", UnknownUnit("G".to_owned())),
            ("10gib", UnknownUnit("gib".to_owned())),
            ("", Other),
            ("GiB", Other),
            ("-1GiB", Other),
            ("10 GiB", Other),
            ("0%", Other),
            ("100%", Other),
            ("256%", Other),
            ("1023KiB", Other),
            ("1025TiB", Other),
            ("99999999999999999999TiB", Other),
        ] {
            assert_eq!(parse(text), Err(error), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(kib in 1024u64..=1 << 40, percent in 1u8..=99) {
            for warn in [DiskWarn::Off, DiskWarn::Percent(percent), DiskWarn::Bytes(kib << 10)] {
                prop_assert_eq!(parse(&format(warn)), Ok(warn));
            }
        }

        #[test]
        fn never_panics(text: String) {
            let _ = parse(&text);
        }
    }
}
