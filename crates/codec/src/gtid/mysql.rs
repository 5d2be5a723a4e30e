//! One MySQL GTID.

use super::error::GtidError;
use super::tag::Tag;
use super::uuid::Uuid;
use std::{fmt, str::FromStr};

/// Largest transaction number of a GTID: 2^63 - 2 (`GNO_END` in `sql/rpl_gtid.h` is one more and is never used).
pub const GNO_MAX: u64 = i64::MAX as u64 - 1;

const EXPECTED: &str = "a GTID such as 3e11fa47-71ca-11e1-9e33-c80aa9429562:23 or 3e11fa47-…:tag:23, \
                        the number between 1 and 9223372036854775806";

/// The global transaction identifier of MySQL: `uuid:gno`, or `uuid:tag:gno` since 8.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gtid {
    /// UUID of the server on which the transaction was first committed.
    pub uuid: Uuid,
    /// The tag, or [`Tag::EMPTY`].
    pub tag: Tag,
    /// The transaction number, `1..=`[`GNO_MAX`]. Each UUID and tag counts its own.
    pub gno: u64,
}

impl Gtid {
    /// A GTID from its parts.
    ///
    /// # Errors
    /// [`GtidError::Text`] if `gno` is outside `1..=`[`GNO_MAX`].
    pub fn new(uuid: Uuid, tag: Tag, gno: u64) -> Result<Gtid, GtidError> {
        if (1..=GNO_MAX).contains(&gno) {
            Ok(Gtid { uuid, tag, gno })
        } else {
            Err(GtidError::text(EXPECTED, &gno.to_string()))
        }
    }
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.tag.is_empty() {
            write!(f, "{}:{}", self.uuid, self.gno)
        } else {
            write!(f, "{}:{}:{}", self.uuid, self.tag, self.gno)
        }
    }
}

impl FromStr for Gtid {
    type Err = GtidError;

    fn from_str(text: &str) -> Result<Gtid, GtidError> {
        parse(text).ok_or_else(|| GtidError::text(EXPECTED, text))
    }
}

fn parse(text: &str) -> Option<Gtid> {
    let (uuid, rest) = text.split_once(':')?;
    let (tag, gno) = match rest.split_once(':') {
        // "uuid::1" has no tag where one is announced.
        Some(("", _)) => return None,
        Some((tag, gno)) => (tag.trim().parse().ok()?, gno),
        None => (Tag::EMPTY, rest),
    };
    Gtid::new(uuid.trim().parse().ok()?, tag, decimal(gno.trim())?).ok()
}

/// Reads a decimal number.
///
/// A leading zero is refused: MySQL 8.0 reads GTID numbers like a C literal, so that `010` means eight (`parse_gno` in
/// `sql/rpl_gtid_set.cc`), and 9.7 reads ten. An error is better than either meaning without the other's notice.
pub(super) fn decimal(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|character| character.is_ascii_digit());
    if !plain || (text.len() > 1 && text.starts_with('0')) {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    #[test]
    fn text_round_trip() {
        for text in [format!("{UUID}:1"), format!("{UUID}:tag_1:9223372036854775806")] {
            assert_eq!(text.parse::<Gtid>().unwrap().to_string(), text);
        }
        assert_eq!(
            format!("{} : TAG : 5", UUID.to_uppercase()).parse::<Gtid>().unwrap().to_string(),
            format!("{UUID}:tag:5")
        );
    }

    #[test]
    fn refuses_numbers_out_of_range_and_strange_forms() {
        for tail in [
            "",
            ":",
            ":0",
            ":01",
            ":0x1",
            ":-1",
            ":+1",
            ":1-2",
            ":9223372036854775807",
            "::1",
            ":tag",
            ":tag:",
            ":1:tag",
            ":a:b:1",
        ] {
            assert!(format!("{UUID}{tail}").parse::<Gtid>().is_err(), "{tail}");
        }
        assert!(Gtid::new(Uuid::default(), Tag::EMPTY, 0).is_err());
        assert!(Gtid::new(Uuid::default(), Tag::EMPTY, GNO_MAX + 1).is_err());
    }
}
