//! What a TABLE_MAP event says of its columns beyond their types, where the server was told to (`binlog_row_metadata`).
//!
//! Layout (MySQL, `Table_map_event` in `libs/mysql/binlog/event/rows_event.h`, `Optional_metadata_field_type`): fields of a byte for what it
//! is, a packed length, and what belongs to it. Each is about the columns of one family only, in their order.

use crate::event::{counted, packed_integer};

/// The fields, as they stand there. What is not there is empty or `None`.
#[derive(Debug, Default)]
pub(super) struct Optional<'a> {
    /// A bit for each numeric column, the highest first: it is unsigned.
    pub(super) unsigned: Option<&'a [u8]>,
    /// Of columns of characters.
    pub(super) charsets: Charsets,
    /// Of ENUM and SET.
    pub(super) enum_charsets: Charsets,
    /// Of all columns.
    pub(super) names: Vec<&'a [u8]>,
    /// Of each SET.
    pub(super) sets: Vec<Vec<&'a [u8]>>,
    /// Of each ENUM.
    pub(super) enums: Vec<Vec<&'a [u8]>>,
    /// Of each geometry.
    pub(super) geometries: Vec<u64>,
    /// Numbers of the columns of the primary key.
    pub(super) primary_key: Vec<u64>,
}

/// Collations of the columns of one family.
#[derive(Debug, Default)]
pub(super) enum Charsets {
    /// Nothing is said.
    #[default]
    Unknown,
    /// One for all but some, which are named by their place.
    Default(u64, Vec<(u64, u64)>),
    /// One for each.
    Each(Vec<u64>),
}

impl Charsets {
    pub(super) fn get(&self, at: usize) -> Option<u64> {
        match self {
            Charsets::Unknown => None,
            Charsets::Default(all, some) => {
                Some(some.iter().find(|(place, _)| *place == at as u64).map_or(*all, |(_, own)| *own))
            }
            Charsets::Each(list) => list.get(at).copied(),
        }
    }
}

impl<'a> Optional<'a> {
    /// Reads the fields; `None` when they are damaged. Fields that are not known are passed over.
    pub(super) fn parse(mut rest: &'a [u8]) -> Option<Optional<'a>> {
        let mut found = Optional::default();
        while let Some((code, behind)) = rest.split_first() {
            rest = behind;
            let mut own = counted(&mut rest)?;
            match code {
                1 => found.unsigned = Some(own),
                2 => found.charsets = default(&mut own)?,
                3 => found.charsets = Charsets::Each(integers(&mut own)?),
                4 => {
                    while !own.is_empty() {
                        found.names.push(counted(&mut own)?);
                    }
                }
                5 => found.sets = values(&mut own)?,
                6 => found.enums = values(&mut own)?,
                7 => found.geometries = integers(&mut own)?,
                8 => found.primary_key = integers(&mut own)?,
                9 => found.primary_key = pairs(&mut own)?.into_iter().map(|(column, _)| column).collect(),
                10 => found.enum_charsets = default(&mut own)?,
                11 => found.enum_charsets = Charsets::Each(integers(&mut own)?),
                _ => {}
            }
        }
        Some(found)
    }
}

fn default(own: &mut &[u8]) -> Option<Charsets> {
    let all = packed_integer(own).ok()?;
    Some(Charsets::Default(all, pairs(own)?))
}

fn integers(own: &mut &[u8]) -> Option<Vec<u64>> {
    let mut list = Vec::new();
    while !own.is_empty() {
        list.push(packed_integer(own).ok()?);
    }
    Some(list)
}

fn pairs(own: &mut &[u8]) -> Option<Vec<(u64, u64)>> {
    let list = integers(own)?;
    list.len().is_multiple_of(2).then(|| list.chunks(2).map(|pair| (pair[0], pair[1])).collect())
}

fn values<'a>(own: &mut &'a [u8]) -> Option<Vec<Vec<&'a [u8]>>> {
    let mut all = Vec::new();
    while !own.is_empty() {
        let count = packed_integer(own).ok()?;
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(counted(own)?);
        }
        all.push(list);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_are_read_and_unknown_ones_passed_over() {
        let bytes = [
            &[1, 1, 0x80][..],
            &[99, 2, 0, 0],
            &[2, 3, 45, 1, 63],
            &[4, 5, 2, b'i', b'd', 1, b'v'],
            &[6, 6, 2, 1, b'a', 2, b'b', b'c'],
            &[8, 1, 0],
        ]
        .concat();
        let read = Optional::parse(&bytes).unwrap();
        assert_eq!(read.unsigned, Some(&[0x80][..]));
        assert_eq!((read.charsets.get(0), read.charsets.get(1)), (Some(45), Some(63)));
        assert_eq!(read.names, [&b"id"[..], b"v"]);
        assert_eq!(read.enums, [[&b"a"[..], b"bc"]]);
        assert_eq!(read.primary_key, [0]);
        assert!(Optional::parse(&bytes[..bytes.len() - 1]).is_none());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(0_u8..12, 0..60)) {
            let _ = Optional::parse(&bytes);
        }
    }
}
