//! `--time A..B`: from when to when, either side open.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// A range of commit times, in microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) struct TimeRange {
    /// At or after this.
    pub(in crate::cli) from: Option<i64>,
    /// Before this.
    pub(in crate::cli) until: Option<i64>,
}

const FORMS: &str = "write 2026-03-01T15:00:00Z, 2026-03-01 15:00 for local time, or 2026-03-01 15:00+02:00";

/// Reads `A..B`. A time without a zone is one of `zone`, the local one.
///
/// # Errors
/// In words: which side is no time, and how times are written.
pub(in crate::cli) fn parse(text: &str, zone: &TimeZone) -> Result<TimeRange, String> {
    let Some((from, until)) = text.split_once("..") else {
        return Err(format!(
            "--time {text:?} is no range: write A..B, of which either may be left out; for a time {FORMS}"
        ));
    };
    let side = |side: &str| match side.trim() {
        "" => Ok(None),
        side => moment(side, zone)
            .map(|at| Some(at.as_microsecond()))
            .map_err(|what| format!("--time {text:?}: {what}")),
    };
    let range = TimeRange { from: side(from)?, until: side(until)? };
    match range {
        TimeRange { from: Some(from), until: Some(until) } if from >= until => {
            Err(format!("--time {text:?}: the range ends before it begins"))
        }
        TimeRange { from: None, until: None } => Err(format!(
            "--time {text:?} names no time: leave the flag out for all times; for a time {FORMS}"
        )),
        range => Ok(range),
    }
}

/// Reads one time. One without a zone is one of `zone`, the local one.
///
/// # Errors
/// In words, with how times are written.
pub(in crate::cli) fn moment(text: &str, zone: &TimeZone) -> Result<Timestamp, String> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    if text.contains('[') {
        return text.parse::<Zoned>().map(|at| at.timestamp()).map_err(|error| format!("{text:?}: {error}"));
    }
    let civil: DateTime = text.parse().map_err(|_| format!("{text:?} is no time: {FORMS}"))?;
    zone.to_ambiguous_zoned(civil).unambiguous().map(|at| at.timestamp()).map_err(|_| {
        format!("{text:?} is a time that the local clock had twice, or never, when it was changed: write it with its zone, as {text}Z")
    })
}

/// Reads a text of a point that may be a time, in microseconds since 1970; `None` when it has another form.
pub(in crate::cli) fn of_point(text: &str, zone: &TimeZone) -> Option<Result<i64, String>> {
    // Of a GTID of MariaDB and of a position no colon parts hours and minutes.
    let looks_so = text.len() >= 10 && text.as_bytes().get(4) == Some(&b'-') && text.contains(':');
    let is_time = looks_so && text.bytes().take(4).all(|digit| digit.is_ascii_digit());
    is_time.then(|| moment(text, zone).map(|at| at.as_microsecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn berlin() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    fn read(text: &str) -> (Option<String>, Option<String>) {
        let range = parse(text, &berlin()).unwrap();
        let shown = |micros: Option<i64>| {
            micros.map(|micros| Timestamp::from_microsecond(micros).unwrap().to_string())
        };
        (shown(range.from), shown(range.until))
    }

    #[test]
    fn times_with_and_without_a_zone_are_read() {
        let at = |text: &str| Some(text.to_owned());
        assert_eq!(read("2026-03-01T15:00:00Z.."), (at("2026-03-01T15:00:00Z"), None));
        assert_eq!(read("..2026-03-01 15:00"), (None, at("2026-03-01T14:00:00Z")), "local");
        assert_eq!(
            read("2026-07-01 15:00:01.25..2026-07-01 15:00:02"),
            (at("2026-07-01T13:00:01.25Z"), at("2026-07-01T13:00:02Z"))
        );
        assert_eq!(
            read("2026-03-01 15:00:00+02:00.. 2026-03-01 16:00+02:00 "),
            (at("2026-03-01T13:00:00Z"), at("2026-03-01T14:00:00Z"))
        );
        assert_eq!(read("2026-03-01.."), (at("2026-02-28T23:00:00Z"), None), "a day begins at midnight");
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for (text, why) in [
            ("2026-03-01", "is no range"),
            ("..", "names no time"),
            ("x..", "is no time"),
            ("2026-03-01 25:00..", "is no time"),
            ("2026-03-02..2026-03-01", "ends before it begins"),
            ("2026-10-25 02:30..", "twice, or never"),
        ] {
            let error = parse(text, &berlin()).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
