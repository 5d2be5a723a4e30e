//! Which backups stay: the newest of each of so many days, weeks and months.

use crate::upkeep::catalogue::Listed;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The largest number of days, weeks, months or years.
const COUNT_MAX: u32 = 10_000;

/// How a rule is written.
const FORM: &str = "7d 4w 12m: the newest backup of each of the last 7 days, 4 weeks and 12 months that have one (d, w, m, y)";

/// A rule: of each of so many periods that have a backup the newest one stays. Periods are those of UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep(Vec<(u32, Period)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Period {
    Day,
    Week,
    Month,
    Year,
}

impl Period {
    const ALL: [(char, Period); 4] =
        [('d', Period::Day), ('w', Period::Week), ('m', Period::Month), ('y', Period::Year)];

    fn letter(self) -> char {
        Period::ALL.into_iter().find(|(_, period)| *period == self).map_or('d', |(letter, _)| letter)
    }

    /// In which one a moment lies.
    fn of(self, at: Timestamp) -> (i16, i16) {
        let date = at.to_zoned(TimeZone::UTC).date();
        match self {
            Period::Day => (date.year(), date.day_of_year()),
            Period::Week => (date.iso_week_date().year(), i16::from(date.iso_week_date().week())),
            Period::Month => (date.year(), i16::from(date.month())),
            Period::Year => (date.year(), 0),
        }
    }
}

impl FromStr for Keep {
    type Err = String;

    fn from_str(text: &str) -> Result<Keep, String> {
        let mut rules: Vec<(u32, Period)> = Vec::new();
        for word in text.split_whitespace() {
            let none = || format!("{word:?} is no rule for backups: write {FORM}");
            let letter = word.chars().last().ok_or_else(none)?;
            let (_, period) = Period::ALL.into_iter().find(|(of, _)| *of == letter).ok_or_else(none)?;
            let count = word[..word.len() - 1].parse().ok().filter(|count| (1..=COUNT_MAX).contains(count));
            if rules.iter().any(|(_, of)| *of == period) {
                return Err(format!("{text:?} says twice how many {letter}: write {FORM}"));
            }
            rules.push((count.ok_or_else(none)?, period));
        }
        if rules.is_empty() {
            Err(format!("no rule for backups is there: write {FORM}"))
        } else {
            Ok(Keep(rules))
        }
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules: Vec<String> =
            self.0.iter().map(|(count, period)| format!("{count}{}", period.letter())).collect();
        f.write_str(&rules.join(" "))
    }
}

impl Keep {
    /// The names of those that go. A backup without its log does not count, and goes once an older one than it is not wanted any more
    /// either; so the newest backup that has its log always stays.
    pub fn lets_go(&self, listed: &[Listed]) -> Vec<String> {
        let whole = || listed.iter().filter(|listed| listed.until().is_some());
        let mut stay: BTreeSet<&str> = BTreeSet::new();
        for (count, period) in &self.0 {
            let mut seen = BTreeSet::new();
            for one in whole().rev() {
                if seen.len() < *count as usize && seen.insert(period.of(one.backup.record.started)) {
                    stay.insert(&one.backup.record.id);
                }
            }
        }
        let Some(oldest) = stay.first().copied() else { return Vec::new() };
        let goes = |one: &&Listed| {
            let id = &*one.backup.record.id;
            !stay.contains(id) && (one.until().is_some() || id < oldest)
        };
        listed.iter().filter(goes).map(|one| one.backup.record.id.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::history::History;
    use crate::upkeep::catalogue::{list, tests::scene};

    /// Backups at these days and hours, all with their log but those whose hour is 23.
    fn listed(at: &[&str]) -> Vec<Listed> {
        let backups = at.iter().map(|at| {
            let point = if at.contains("T23") { "" } else { "1-25" };
            (*at, point)
        });
        let history: History = scene(backups);
        list(&history)
    }

    fn gone(rule: &str, at: &[&str]) -> Vec<String> {
        rule.parse::<Keep>().unwrap().lets_go(&listed(at))
    }

    #[test]
    fn the_newest_of_each_period_stays() {
        let days = [
            "20260101T030000Z",
            "20260102T030000Z",
            "20260102T120000Z",
            "20260104T030000Z",
            "20260105T030000Z",
        ];
        assert_eq!(gone("2d", &days), ["20260101T030000Z", "20260102T030000Z", "20260102T120000Z"]);
        assert_eq!(gone("3d", &days), ["20260101T030000Z", "20260102T030000Z"], "a day without one is none");
        // The week of Monday the 5th, and the one before.
        assert_eq!(gone("2w", &days), ["20260101T030000Z", "20260102T030000Z", "20260102T120000Z"]);
        assert_eq!(gone("1d 2w", &days).len(), 3);
        assert_eq!(gone("1m", &days).len(), 4);
        assert_eq!(gone("1y 9d", &days), ["20260102T030000Z"]);
    }

    #[test]
    fn a_backup_without_its_log_does_not_count() {
        let days = ["20260101T030000Z", "20260102T230000Z", "20260103T030000Z", "20260104T230000Z"];
        assert_eq!(gone("1d", &days), ["20260101T030000Z", "20260102T230000Z"]);
        assert_eq!(gone("2d", &days), [""; 0]);
        assert_eq!(gone("1d", &["20260104T230000Z"]), [""; 0], "the only one stays");
    }

    #[test]
    fn a_rule_is_read_and_others_are_refused() {
        assert_eq!("7d  4w 12m".parse::<Keep>().unwrap().to_string(), "7d 4w 12m");
        for (text, words) in [
            ("", "no rule"),
            ("7", "7d 4w"),
            ("0d", "no rule"),
            ("7x", "no rule"),
            ("d", "no rule"),
            ("1d 2d", "twice"),
            ("7ä", "no rule"),
        ] {
            let error = text.parse::<Keep>().unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
