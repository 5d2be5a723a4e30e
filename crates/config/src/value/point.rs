//! A point at which the serving of a reader stops: GTIDs, a position, or a time.

use codec::gtid::{GtidSet, MariadbGtid};
use codec::{BinlogName, Position};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// What a text that is no point could have been.
pub(crate) const FORMS: &str = "a GTID set of MySQL (3e11fa47-71ca-11e1-9e33-c80aa9429562:1-50), GTIDs of MariaDB (0-1-100,7-1-5), a \
                     position (mysql-bin.000007:1234), or a time (2026-11-23T06:30:00Z, or '2026-11-23 06:30:00', which is UTC)";

/// A point in a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// As it was given.
    pub text: String,
    /// What that means.
    pub place: PointPlace,
}

/// What a point names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PointPlace {
    /// Transactions of MySQL; never empty.
    Gtids(GtidSet),
    /// Transactions of MariaDB, one a domain at most; never empty.
    Mariadb(Vec<MariadbGtid>),
    /// A place in a file.
    Position(Position),
    /// A moment, in microseconds since 1970 UTC.
    Time(i64),
}

/// Why a text is no point. Completes the sentence "`key` = `text`: …".
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoPoint {
    /// It has none of the forms.
    #[error("must be {FORMS}")]
    Unknown,
    /// A day, or a GTID.
    #[error(
        "can be a day and a GTID of MariaDB: write the time of day too, or, if the GTID is meant, name it without zeros in front"
    )]
    Day,
    /// Several GTIDs of one domain.
    #[error("names two GTIDs of domain {0}, and a history has one place in a domain")]
    Domain(u32),
    /// Digits behind a name that no binary log has.
    #[error("names a position in a file whose name is no binary log's, such as mysql-bin.000007")]
    File,
}

impl Point {
    /// A moment, in microseconds since 1970, that was written as `text`.
    pub fn at_time(text: &str, micros: i64) -> Point {
        Point { text: text.to_owned(), place: PointPlace::Time(micros) }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Point {
    type Err = NoPoint;

    fn from_str(text: &str) -> Result<Point, NoPoint> {
        let text = text.trim();
        Ok(Point { place: place(text)?, text: text.to_owned() })
    }
}

fn place(text: &str) -> Result<PointPlace, NoPoint> {
    if text.parse::<jiff::civil::Date>().is_ok() && !text.contains([':', 'T']) {
        return Err(NoPoint::Day);
    }
    if let Some(micros) = time(text) {
        return Ok(PointPlace::Time(micros));
    }
    if let Ok(set) = text.parse::<GtidSet>() {
        return if set.is_empty() { Err(NoPoint::Unknown) } else { Ok(PointPlace::Gtids(set)) };
    }
    if let Ok(gtids) =
        text.split(',').map(|gtid| gtid.trim().parse()).collect::<Result<Vec<MariadbGtid>, _>>()
    {
        let mut domains: Vec<u32> = gtids.iter().map(|gtid| gtid.domain).collect();
        domains.sort_unstable();
        return match domains.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(NoPoint::Domain(pair[0])),
            None => Ok(PointPlace::Mariadb(gtids)),
        };
    }
    let Some((file, offset)) = text.rsplit_once(':') else { return Err(NoPoint::Unknown) };
    let Ok(offset) = offset.parse() else { return Err(NoPoint::Unknown) };
    match BinlogName::parse(file) {
        Ok(_) => Ok(PointPlace::Position(Position::new(file, offset))),
        Err(_) => Err(NoPoint::File),
    }
}

/// With an offset as RFC 3339 has it, else in UTC; never a day alone.
fn time(text: &str) -> Option<i64> {
    if !text.contains(':') {
        return None;
    }
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Some(moment.as_microsecond());
    }
    let civil: DateTime = text.parse().ok()?;
    Some(civil.to_zoned(TimeZone::UTC).ok()?.timestamp().as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_understood() {
        let place = |text: &str| text.parse::<Point>().unwrap().place;
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        let PointPlace::Gtids(set) = place(&format!("{uuid}:1-50:tag:7")) else { panic!() };
        assert_eq!(set.len(), 51);
        let PointPlace::Mariadb(gtids) = place("0-1-100, 7-1-5") else { panic!() };
        assert_eq!(gtids[1].to_string(), "7-1-5");
        let PointPlace::Position(at) = place("mysql-bin.000007:1234") else { panic!() };
        assert_eq!((&*at.file, at.offset), ("mysql-bin.000007", 1234));
        let time = 1_795_415_400_000_000;
        for text in [
            "2026-11-23T06:30:00Z",
            "2026-11-23 06:30:00",
            " 2026-11-23T06:30:00 ",
            "2026-11-23T08:30:00+02:00",
        ] {
            assert_eq!(place(text), PointPlace::Time(time), "{text}");
        }
        assert_eq!(place("2026-11-23 06:30:00.25"), PointPlace::Time(time + 250_000));
        assert_eq!(" 0-1-2 ".parse::<Point>().unwrap().to_string(), "0-1-2");
    }

    #[test]
    fn what_is_ambiguous_is_refused() {
        let refused = |text: &str| text.parse::<Point>().unwrap_err();
        assert_eq!(refused("2026-11-23"), NoPoint::Day);
        assert_eq!(refused("0-1-7,0-2-8"), NoPoint::Domain(0));
        assert_eq!(refused("orders:1234"), NoPoint::File);
        for text in ["", "yesterday", "06:30:00", "mysql-bin.000007", "mysql-bin.000007:", "7", "1-2"] {
            assert!(matches!(refused(text), NoPoint::Unknown | NoPoint::File), "{text}");
        }
        assert!(refused("x").to_string().contains("2026-11-23T06:30:00Z"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*|[0-9:. TZ,-]{0,40}") {
            let _ = text.parse::<Point>();
        }
    }
}
