//! The text form of a MySQL GTID set.
//!
//! Source: MySQL manual, "GTID Sets"; `Gtid_set::add_gtid_text` and `Gtid_set::to_string` in `sql/rpl_gtid_set.cc`;
//! checked against 9.7.4.

use super::error::GtidError;
use super::intervals::{Interval, IntervalList};
use super::mysql::{GNO_MAX, decimal};
use super::set::{Entry, GtidSet};
use super::tag::Tag;
use super::uuid::Uuid;
use std::{collections::BTreeMap, fmt, str::FromStr};

const EXPECTED_NUMBERS: &str =
    "a number or a range of a GTID set such as 7 or 1-5, each between 1 and 9223372036854775806";

impl GtidSet {
    /// The text form on one line, for logs and status.
    pub fn to_line(&self) -> String {
        let mut text = String::new();
        self.write_text(&mut text, ",").expect("writing to a string does not fail");
        text
    }

    fn write_text(&self, out: &mut impl fmt::Write, separator: &str) -> fmt::Result {
        let mut previous: Option<Uuid> = None;
        for entry in self.entries() {
            if previous != Some(entry.uuid) {
                out.write_str(if previous.is_some() { separator } else { "" })?;
                write!(out, "{}", entry.uuid)?;
                previous = Some(entry.uuid);
            }
            if !entry.tag.is_empty() {
                write!(out, ":{}", entry.tag)?;
            }
            for &Interval { start, end } in entry.intervals.as_slice() {
                write!(out, ":{start}")?;
                if end > start {
                    write!(out, "-{end}")?;
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for GtidSet {
    /// As `SELECT @@gtid_executed` prints it: lower case, sorted by UUID and tag, a comma and a line feed between
    /// UUIDs. [`GtidSet::to_line`] leaves the line feeds out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_text(f, ",\n")
    }
}

impl FromStr for GtidSet {
    type Err = GtidError;

    /// Reads `uuid:1-5:7:tag:1-3:9,…` in any order and case, with white space around every part.
    ///
    /// A tag holds for the intervals after it, up to the next tag or UUID. Like the server this accepts empty parts
    /// between commas, a UUID or tag without intervals, overlapping intervals, and a range whose end is below its start,
    /// which is empty. Numbers are decimal, without leading zeroes.
    ///
    /// # Errors
    /// [`GtidError::Text`] with the part that was refused.
    fn from_str(text: &str) -> Result<GtidSet, GtidError> {
        // Intervals are collected and sorted once for each name: text from a peer may hold them in the worst order.
        let mut names: BTreeMap<(Uuid, Tag), Vec<Interval>> = BTreeMap::new();
        for part in text.split(',').map(trim).filter(|part| !part.is_empty()) {
            let mut items = part.split(':').map(trim);
            let uuid: Uuid = items.next().unwrap_or_default().parse()?;
            let mut tag = Tag::EMPTY;
            for item in items {
                if item.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
                    tag = item.parse()?;
                } else if let Some(interval) = parse_interval(item)? {
                    names.entry((uuid, tag)).or_default().push(interval);
                }
            }
        }
        let entries = names.into_iter().map(|((uuid, tag), intervals)| {
            let intervals = IntervalList::from_unsorted(intervals);
            Entry { uuid, tag, intervals }
        });
        Ok(GtidSet::from_entries(entries.collect()))
    }
}

/// White space as the server's `my_isspace` knows it; `trim_ascii` leaves the vertical tab.
fn trim(text: &str) -> &str {
    text.trim_matches(|character: char| character.is_ascii_whitespace() || character == '\x0b')
}

/// Reads `7` or `1-5`; `None` for a range that holds nothing.
fn parse_interval(text: &str) -> Result<Option<Interval>, GtidError> {
    let refused = || GtidError::text(EXPECTED_NUMBERS, text);
    let (start, end) = text.split_once('-').unwrap_or((text, text));
    let start = decimal(trim(start)).filter(|gno| (1..=GNO_MAX).contains(gno)).ok_or_else(refused)?;
    let end = decimal(trim(end)).filter(|gno| *gno <= GNO_MAX).ok_or_else(refused)?;
    Ok((start <= end).then_some(Interval { start, end }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gtid::set::tests::any_model;
    use proptest::prelude::*;

    const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    const B: &str = "4e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn canonical(text: &str) -> String {
        text.parse::<GtidSet>().unwrap_or_else(|error| panic!("{error}")).to_line()
    }

    #[test]
    fn reads_what_the_server_reads() {
        for (text, expected) in [
            ("".into(), "".into()),
            (" ,\n, ,".into(), "".into()),
            (A.into(), "".into()),
            (format!("{A}:tag"), "".into()),
            (format!("{A}:5-3"), "".into()),
            (format!("{A}:5-0"), "".into()),
            (format!("{A}:1"), format!("{A}:1")),
            (format!("{A}:1-1"), format!("{A}:1")),
            (format!("{A}:3-5:1-2:7"), format!("{A}:1-5:7")),
            (format!("{A}:1-9:2-3:9-12"), format!("{A}:1-12")),
            (format!("{B}:1,\n{A}:2"), format!("{A}:2,{B}:1")),
            (format!("{A}:1,{A}:2,,"), format!("{A}:1-2")),
            (format!("\t{} : 1 - 2 :\x0b4\r\n, {B}:9", A.to_uppercase()), format!("{A}:1-2:4,{B}:9")),
            (format!("{A}:1:TAG:1-3:9:Other:4,{A}:2"), format!("{A}:1-2:other:4:tag:1-3:9")),
            (format!("{A}:b:1:a:2:b:2"), format!("{A}:a:2:b:1-2")),
            (format!("{A}:9223372036854775806"), format!("{A}:9223372036854775806")),
        ] {
            assert_eq!(canonical(&text), expected, "{text}");
        }
    }

    #[test]
    fn refuses_what_is_malformed() {
        for text in [
            "x".into(),
            ":1".into(),
            format!("{A}:"),
            format!("{A}::1"),
            format!("{A}:0"),
            format!("{A}:0-5"),
            format!("{A}:-5"),
            format!("{A}:1-"),
            format!("{A}:1-2-3"),
            format!("{A}:1 2"),
            format!("{A}:9223372036854775807"),
            format!("{A}:1-99999999999999999999"),
            format!("{A}:1x"),
            format!("{A}:010"),
            format!("{A}:tag-1:1"),
            format!("{A}:{}:1", "t".repeat(33)),
            format!("{A};1"),
            format!("{A}:1 {B}:1"),
            format!("+{A}:1"),
        ] {
            assert!(text.parse::<GtidSet>().is_err(), "{text}");
        }
    }

    #[test]
    fn prints_as_the_server_does() {
        let set: GtidSet = format!("{B}:7:1-5:t:2,{A}:1").parse().unwrap();
        assert_eq!(set.to_string(), format!("{A}:1,\n{B}:1-5:7:t:2"));
        assert_eq!(set.to_line(), format!("{A}:1,{B}:1-5:7:t:2"));
    }

    #[test]
    fn a_long_text_in_the_worst_order_is_read_quickly() {
        let mut text = A.to_owned();
        for gno in (1..100_000).rev() {
            text.push_str(&format!(":{}:t{}:{}", 4 * gno + 2, gno % 100, 4 * gno));
        }
        assert_eq!(text.parse::<GtidSet>().unwrap().len(), 2 * 99_999);
    }

    proptest! {
        #[test]
        fn round_trip(model in any_model()) {
            let set: GtidSet = model.into_iter().collect();
            prop_assert_eq!(&set.to_string().parse::<GtidSet>().unwrap(), &set);
            prop_assert_eq!(&set.to_line().to_uppercase().parse::<GtidSet>().unwrap(), &set);
        }

        #[test]
        fn any_text_is_answered(text in "[-:, a-f0-9\\PC]{0,60}", tail in "[-:,0-9 a]{0,20}") {
            let _ = text.parse::<GtidSet>();
            if let Ok(set) = format!("{A}:{tail}").parse::<GtidSet>() {
                prop_assert_eq!(set.to_string().parse::<GtidSet>().unwrap(), set);
            }
        }
    }
}
