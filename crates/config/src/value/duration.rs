//! Durations as operators write them: `250ms`, `5s`, `1m30s`, `2h`, `30d`.

use std::time::Duration;

use thiserror::Error;

/// The units, longest first, with their length in milliseconds.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Why a text is not a duration. The message says how to write it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DurationError {
    /// Nothing there.
    #[error("is empty: write a duration such as 5s, 250ms, 1m30s or 2h")]
    Empty,
    /// `5`: seconds or milliseconds? The tools that binlogd replaces disagree, so it does not guess.
    #[error(
        "has no unit: write {0}s for seconds, {0}ms for milliseconds, {0}m for minutes or {0}h for hours"
    )]
    NoUnit(String),
    /// `1.5s`.
    #[error("has a fraction: write a whole number of a smaller unit, such as 1s500ms instead of 1.5s")]
    Fraction,
    /// `5sec`.
    #[error("has the unknown unit {0:?}: the units are d, h, m, s and ms")]
    UnknownUnit(String),
    /// `5s1m` or `1s2s`.
    #[error("names {0:?} out of order: write each unit at most once, the longest first, as in 1h30m")]
    Order(&'static str),
    /// Anything else.
    #[error("is not a duration: write a number and a unit, such as 5s, 250ms, 1m30s or 2h")]
    Malformed,
    /// More than 2^64 milliseconds.
    #[error("is too long")]
    TooLong,
}

/// Reads a duration: whole numbers, each with one of the units d, h, m, s, ms, the longest first, nothing in between.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    if text.is_empty() {
        return Err(DurationError::Empty);
    }
    let mut rest = text;
    let mut total_ms: u64 = 0;
    let mut units_left = &UNITS[..];
    while !rest.is_empty() {
        let (digits, after) = split_where(rest, |c| !c.is_ascii_digit());
        let (unit, next) = split_where(after, |c| !c.is_ascii_alphabetic());
        if digits.is_empty() {
            return Err(DurationError::Malformed);
        }
        if unit.is_empty() {
            return Err(match after.chars().next() {
                None => DurationError::NoUnit(digits.to_owned()),
                Some('.' | ',') => DurationError::Fraction,
                Some(_) => DurationError::Malformed,
            });
        }
        let known = UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(|| DurationError::UnknownUnit(unit.to_owned()))?;
        let at = units_left.iter().position(|left| left == known).ok_or(DurationError::Order(known.0))?;
        units_left = &units_left[at + 1..];
        let number: u64 = digits.parse().map_err(|_| DurationError::TooLong)?;
        total_ms = number
            .checked_mul(known.1)
            .and_then(|ms| total_ms.checked_add(ms))
            .ok_or(DurationError::TooLong)?;
        rest = next;
    }
    Ok(Duration::from_millis(total_ms))
}

/// Writes a duration as [`parse`] reads it. Anything finer than a millisecond is dropped.
pub fn format(duration: Duration) -> String {
    let mut left_ms = duration.as_millis();
    let mut text = String::new();
    for (unit, unit_ms) in UNITS {
        let count = left_ms / u128::from(unit_ms);
        left_ms %= u128::from(unit_ms);
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// Splits in front of the first character that `ends` accepts.
fn split_where(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_every_unit_and_their_combinations() {
        for (text, ms) in [
            ("250ms", 250),
            ("5s", 5_000),
            ("1m", 60_000),
            ("2h", 7_200_000),
            ("30d", 2_592_000_000),
            ("1d12h", 129_600_000),
            ("1m30s", 90_000),
            ("1h1ms", 3_600_001),
            ("1s500ms", 1_500),
            ("0s", 0),
            ("007s", 7_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong() {
        use DurationError::*;
        for (text, error) in [
            ("", Empty),
            ("5", NoUnit("5".to_owned())),
            ("1m30", NoUnit("30".to_owned())),
            ("1.5s", Fraction),
            ("1,5s", Fraction),
            ("5sec", UnknownUnit("sec".to_owned())),
            ("5S", UnknownUnit("S".to_owned())),
            ("3w", UnknownUnit("w".to_owned())),
            ("5s1m", Order("m")),
            ("1s2s", Order("s")),
            ("-5s", Malformed),
            ("5 s", Malformed),
            (" 5s", Malformed),
            ("s", Malformed),
            ("5s ", Malformed),
            ("18446744073709551615h", TooLong),
            ("18446744073709551615ms1ms", Order("ms")),
            ("99999999999999999999s", TooLong),
        ] {
            assert_eq!(parse(text), Err(error), "{text:?}");
        }
        assert_eq!(
            parse("5").unwrap_err().to_string(),
            "has no unit: write 5s for seconds, 5ms for milliseconds, 5m for minutes or 5h for hours"
        );
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(ms: u64) {
            let duration = Duration::from_millis(ms);
            prop_assert_eq!(parse(&format(duration)), Ok(duration));
        }

        #[test]
        fn never_panics(text: String) {
            let _ = parse(&text);
        }
    }
}
