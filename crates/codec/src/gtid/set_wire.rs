//! The wire form of a MySQL GTID set: the body of PREVIOUS_GTIDS_LOG_EVENT and the set in COM_BINLOG_DUMP_GTID.
//!
//! All integers are 8 bytes, little-endian:
//!
//! ```text
//! header       untagged: number of names in the low 7 bytes, 0 in the high byte
//!              tagged:   1 in the low byte, number of names in the middle 6 bytes, 1 in the high byte
//! each name    16 bytes UUID
//!              tagged only: length of the tag as a variable-length integer, the tag
//!              number of intervals
//!              each interval: first number, number after the last
//! ```
//!
//! A server before 8.3 refuses the tagged form: it reads an impossible count. Source: `Gtid_set::encode` and
//! `encode_nsids_format` in `sql/rpl_gtid_set.cc`, `Tsid::encode_tsid` in `libs/mysql/gtid/tsid.cpp`.

use super::cursor::Cursor;
use super::error::GtidError;
use super::intervals::{Interval, IntervalList};
use super::mysql::GNO_MAX;
use super::set::{Entry, GtidSet};
use super::tag::{TAG_LENGTH_MAX, Tag};
use super::uuid::Uuid;

/// Value of the high byte of the header, and of the low byte in the tagged form (`Gtid_format`).
const FORMAT_UNTAGGED: u8 = 0;
const FORMAT_TAGGED: u8 = 1;

/// Fewest bytes of one name in the wire form: UUID and number of intervals.
const NAME_BYTES_MIN: u64 = 16 + 8;
const INTERVAL_BYTES: u64 = 16;

impl GtidSet {
    /// Appends the wire form. Uses the tagged form only if the set holds a tag, as the server does, because older
    /// servers know the other one only.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let tagged = self.entries().iter().any(|entry| !entry.tag.is_empty());
        let names = self.entries().len() as u64;
        let format = u64::from(FORMAT_TAGGED);
        let header = if tagged { format << 56 | names << 8 | format } else { names };
        out.extend_from_slice(&header.to_le_bytes());
        for Entry { uuid, tag, intervals } in self.entries() {
            out.extend_from_slice(uuid.as_bytes());
            if tagged {
                // Below 64 a variable-length integer is one byte, its lowest bit zero.
                out.push((tag.as_str().len() as u8) << 1);
                out.extend_from_slice(tag.as_str().as_bytes());
            }
            out.extend_from_slice(&(intervals.as_slice().len() as u64).to_le_bytes());
            for Interval { start, end } in intervals.as_slice() {
                out.extend_from_slice(&start.to_le_bytes());
                out.extend_from_slice(&(end + 1).to_le_bytes());
            }
        }
    }

    /// Reads the wire form.
    ///
    /// Names may come in any order, for clients other than the server do not sort them; a name without intervals is
    /// dropped. Allocates at most a few times the length of `bytes`.
    ///
    /// # Errors
    /// [`GtidError::Bytes`] for an unknown form, a count that the remaining bytes cannot hold, a malformed tag, a name
    /// given twice, intervals that are empty, out of order, overlapping, touching or out of range, and bytes that follow.
    pub fn decode(bytes: &[u8]) -> Result<GtidSet, GtidError> {
        let mut cursor = Cursor::new("GTID set", bytes);
        let (tagged, names) = decode_header(&mut cursor)?;
        let mut entries = Vec::new();
        for _ in 0..names {
            let entry = decode_entry(&mut cursor, tagged)?;
            if !entry.intervals.is_empty() {
                entries.push(entry);
            }
        }
        let end = cursor.position();
        cursor.finish()?;
        entries.sort_by(|a, b| a.order(&b.uuid, &b.tag));
        if entries.windows(2).any(|pair| pair[0].order(&pair[1].uuid, &pair[1].tag).is_eq()) {
            return Err(GtidError::Bytes {
                what: "GTID set",
                at: end,
                problem: "a UUID and tag occur twice",
            });
        }
        Ok(GtidSet::from_entries(entries))
    }
}

/// Reads the form and the number of names, which is checked against the bytes that are left.
fn decode_header(cursor: &mut Cursor<'_>) -> Result<(bool, u64), GtidError> {
    let header: [u8; 8] = cursor.array()?;
    let number = u64::from_le_bytes(header);
    let (tagged, names) = match header {
        [.., FORMAT_UNTAGGED] => (false, number),
        [FORMAT_TAGGED, .., FORMAT_TAGGED] => (true, number << 8 >> 16),
        _ => return Err(cursor.error_at(0, "it has an unknown format")),
    };
    if names > cursor.remaining() as u64 / NAME_BYTES_MIN {
        return Err(cursor.error_at(0, "it counts more UUIDs than it has bytes for"));
    }
    Ok((tagged, names))
}

fn decode_entry(cursor: &mut Cursor<'_>, tagged: bool) -> Result<Entry, GtidError> {
    let uuid = Uuid::from_bytes(cursor.array()?);
    let tag = if tagged { decode_tag(cursor)? } else { Tag::EMPTY };
    let at = cursor.position();
    let count = cursor.u64()?;
    if count > cursor.remaining() as u64 / INTERVAL_BYTES {
        return Err(cursor.error_at(at, "it counts more intervals than it has bytes for"));
    }
    let mut intervals = Vec::with_capacity(count as usize);
    let mut previous_end = 0;
    for _ in 0..count {
        let at = cursor.position();
        let (start, end) = (cursor.u64()?, cursor.u64()?);
        // As the server does, refuse touching intervals too: the sender would have joined them. `end` is exclusive.
        if start <= previous_end || end <= start || end > GNO_MAX + 1 {
            return Err(cursor.error_at(at, "an interval is empty, out of order or out of range"));
        }
        intervals.push(Interval { start, end: end - 1 });
        previous_end = end;
    }
    Ok(Entry { uuid, tag, intervals: IntervalList::from_unsorted(intervals) })
}

/// Reads a tag with its length, as in the tagged form of a set and in GTID_TAGGED_LOG_EVENT.
pub(super) fn decode_tag(cursor: &mut Cursor<'_>) -> Result<Tag, GtidError> {
    let at = cursor.position();
    let length: usize = cursor.varint_as()?;
    if length > TAG_LENGTH_MAX {
        return Err(cursor.error_at(at, "a tag is longer than 32 bytes"));
    }
    let text = cursor.bytes(length)?;
    Tag::from_bytes(text).ok_or_else(|| cursor.error_at(at, "a tag has a character that tags cannot have"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gtid::set::tests::any_model;
    use proptest::prelude::*;

    const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn encoded(set: &GtidSet) -> Vec<u8> {
        let mut bytes = Vec::new();
        set.encode(&mut bytes);
        bytes
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// An untagged set of one name with these words after its UUID.
    fn one_name(after_uuid: &[u64]) -> Vec<u8> {
        [words(&[1]), vec![7; 16], words(after_uuid)].concat()
    }

    fn refusal(bytes: &[u8]) -> &'static str {
        match GtidSet::decode(bytes) {
            Err(GtidError::Bytes { problem, .. }) => problem,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_form_follows_from_the_tags() {
        assert_eq!(encoded(&GtidSet::new()), words(&[0]));
        let untagged: GtidSet = format!("{A}:1-3:9").parse().unwrap();
        let uuid = A.parse::<Uuid>().unwrap();
        assert_eq!(
            encoded(&untagged),
            [words(&[1]), uuid.as_bytes().to_vec(), words(&[2, 1, 4, 9, 10])].concat()
        );
        let tagged: GtidSet = format!("{A}:tag:5").parse().unwrap();
        let name = [uuid.as_bytes(), &b"\x06tag"[..]].concat();
        assert_eq!(encoded(&tagged), [words(&[0x0100_0000_0000_0101]), name, words(&[1, 5, 6])].concat());
    }

    #[test]
    fn refuses_what_the_server_refuses() {
        let order = "an interval is empty, out of order or out of range";
        for intervals in [
            &[1, 0, 5][..],
            &[1, 5, 5],
            &[1, 5, 4],
            &[1, 1, 1 << 63],
            &[1, u64::MAX, u64::MAX],
            &[2, 1, 5, 4, 8],
            &[2, 1, 5, 5, 8],
            &[2, 5, 8, 1, 2],
        ] {
            assert_eq!(refusal(&one_name(intervals)), order, "{intervals:?}");
        }
        assert_eq!(refusal(&one_name(&[1, 1, 5, 9])), "bytes follow its end");
        assert_eq!(refusal(&one_name(&[2, 1, 5])), "it counts more intervals than it has bytes for");
        assert_eq!(refusal(&one_name(&[u64::MAX, 1, 5])), "it counts more intervals than it has bytes for");
        assert_eq!(refusal(&words(&[1, 0, 0])), "it counts more UUIDs than it has bytes for");
        assert_eq!(
            refusal(&words(&[0x00ff_ffff_ffff_ffff, 0, 0, 0])),
            "it counts more UUIDs than it has bytes for"
        );
        assert_eq!(refusal(&words(&[0x0200_0000_0000_0000])), "it has an unknown format");
        assert_eq!(refusal(&words(&[0x0100_0000_0000_0000])), "it has an unknown format");
        assert_eq!(refusal(&[0; 7]), "it ends too early");
        let twice = [words(&[2]), vec![7; 16], words(&[1, 1, 2]), vec![7; 16], words(&[1, 3, 4])].concat();
        assert_eq!(refusal(&twice), "a UUID and tag occur twice");
        for (tag, problem) in [
            (&b"\x04T-"[..], "a tag has a character that tags cannot have"),
            (b"\x02\x00", "a tag has a character that tags cannot have"),
            (&[66; 34], "a tag is longer than 32 bytes"),
            (&[0xff; 10], "a tag is longer than 32 bytes"),
        ] {
            let bytes = [&words(&[0x0100_0000_0000_0101]), &[7; 16][..], tag, &words(&[1, 5, 6])].concat();
            assert_eq!(refusal(&bytes), problem);
        }
    }

    #[test]
    fn accepts_any_order_of_names_and_names_without_intervals() {
        let bytes = [
            words(&[3]),
            vec![9; 16],
            words(&[1, 1, 2]),
            vec![8; 16],
            words(&[0]),
            vec![7; 16],
            words(&[1, 3, 4]),
        ];
        let set = GtidSet::decode(&bytes.concat()).unwrap();
        let (low, high) = (Uuid::from_bytes([7; 16]), Uuid::from_bytes([9; 16]));
        assert_eq!(set, format!("{low}:3,{high}:1").parse().unwrap());
    }

    proptest! {
        #[test]
        fn round_trip(model in any_model()) {
            let set: GtidSet = model.into_iter().collect();
            prop_assert_eq!(GtidSet::decode(&encoded(&set)).unwrap(), set);
        }

        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = GtidSet::decode(&bytes);
        }

        #[test]
        fn damage_is_answered(
            model in any_model(), cut: prop::sample::Index, at: prop::sample::Index, byte: u8, more in 0..3usize,
        ) {
            let mut bytes = encoded(&model.into_iter().collect());
            bytes.resize(bytes.len() + more, 0);
            let index = at.index(bytes.len());
            bytes[index] = byte;
            let shorter = &bytes[..cut.index(bytes.len() + 1)];
            for damaged in [&bytes, shorter] {
                if let Ok(set) = GtidSet::decode(damaged) {
                    // What is accepted is a sound set: it survives its own wire form.
                    prop_assert_eq!(GtidSet::decode(&encoded(&set)).unwrap(), set);
                }
            }
        }
    }
}
