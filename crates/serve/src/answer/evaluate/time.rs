//! Moments as text and back, in the time zone of a session.

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};

/// A session's time zone: seconds east of UTC. binlogd itself lives in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::answer) struct Zone(Offset);

impl Zone {
    pub(in crate::answer) const UTC: Zone = Zone(Offset::UTC);

    /// Reads `SYSTEM`, `UTC`, or an offset such as `+02:00`. `None` for anything else, also for names of zones: a
    /// server without tables of zones knows none either.
    pub(in crate::answer) fn parse(name: &str) -> Option<Zone> {
        if name.eq_ignore_ascii_case("SYSTEM") || name.eq_ignore_ascii_case("UTC") {
            return Some(Zone::UTC);
        }
        let (sign, rest) = match name.as_bytes().first()? {
            b'+' => (1, &name[1..]),
            b'-' => (-1, &name[1..]),
            _ => return None,
        };
        let (hours, minutes) = rest.split_once(':')?;
        let is_number =
            |text: &str| (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(hours) || !is_number(minutes) {
            return None;
        }
        let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
        // As MySQL: from -13:59 to +14:00.
        if minutes > 59 || hours * 60 + minutes > 14 * 60 {
            return None;
        }
        Offset::from_seconds(sign * (hours * 3_600 + minutes * 60)).ok().map(Zone)
    }

    fn zoned(self, micros: i64) -> Option<Zoned> {
        let moment = Timestamp::from_microsecond(micros).ok()?;
        Some(moment.to_zoned(TimeZone::fixed(self.0)))
    }

    /// `2026-01-31 23:59:59`, with `digits` digits of a fraction, at most 6. `None` outside of the calendar.
    pub(in crate::answer) fn datetime(self, micros: i64, digits: usize) -> Option<String> {
        let text = self.zoned(micros)?.strftime("%Y-%m-%d %H:%M:%S.%6f").to_string();
        let fraction = if digits == 0 { 0 } else { 1 + digits.min(6) };
        Some(text[..text.len() - 7 + fraction].to_owned())
    }

    /// Microseconds since 1970 UTC of a text such as `2026-01-31 23:59:59.5` or `2026-01-31`. `None` for anything else.
    pub(in crate::answer) fn parse_datetime(self, text: &str) -> Option<i64> {
        let text = text.trim();
        let civil: DateTime = match text.parse() {
            Ok(civil) => civil,
            Err(_) => text.parse::<jiff::civil::Date>().ok()?.to_datetime(jiff::civil::Time::midnight()),
        };
        Some(self.0.to_timestamp(civil).ok()?.as_microsecond())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: i64 = 1_700_000_000_123_456;

    #[test]
    fn moments_are_told_in_the_zone_and_read_back() {
        assert_eq!(Zone::UTC.datetime(MOMENT, 0).unwrap(), "2023-11-14 22:13:20");
        let east = Zone::parse("+02:00").unwrap();
        assert_eq!(east.datetime(MOMENT, 6).unwrap(), "2023-11-15 00:13:20.123456");
        assert_eq!(east.parse_datetime("2023-11-15 00:13:20.123456"), Some(MOMENT));
        assert_eq!(Zone::UTC.parse_datetime("2023-11-15"), Some(1_700_006_400_000_000));
        assert_eq!(Zone::UTC.parse_datetime("yesterday"), None);
        assert_eq!(Zone::UTC.datetime(i64::MAX, 0), None);
    }

    #[test]
    fn zones_are_offsets() {
        assert_eq!(Zone::parse("SYSTEM"), Some(Zone::UTC));
        assert_eq!(Zone::parse("+0:00"), Some(Zone::UTC));
        for wrong in ["", "Europe/Berlin", "+14:01", "+1", "2:00", "+1:60", "+\u{e9}:0"] {
            assert_eq!(Zone::parse(wrong), None, "{wrong}");
        }
    }
}
