//! The GTIDs of a file, by where they come from.

use super::bytes::{Bytes, Writing};
use super::error::IndexError;
use crate::wanted_gtids::WantedGtids;
use codec::gtid::{Tag, TransactionId, Uuid};
use std::collections::{BTreeMap, HashMap};

/// Who counts GTIDs: each origin has numbers of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A MySQL server, and a tag.
    Mysql(Uuid, Tag),
    /// A domain of MariaDB, and the server in it.
    Mariadb(u32, u32),
}

impl Origin {
    /// Who gave that identifier, and its number.
    pub fn of(id: &TransactionId) -> (Origin, u64) {
        match id {
            TransactionId::Mysql(gtid) => (Origin::Mysql(gtid.uuid, gtid.tag), gtid.gno),
            TransactionId::Mariadb(gtid) => (Origin::Mariadb(gtid.domain, gtid.server_id), gtid.sequence),
        }
    }

    /// Whether one of its numbers from `first` to `last` is wanted.
    pub fn is_wanted(&self, wanted: &WantedGtids, first: u64, last: u64) -> bool {
        match (self, wanted) {
            (Origin::Mysql(uuid, tag), WantedGtids::Mysql(set)) => set.iter().any(|(of, with, numbers)| {
                of == *uuid && with == *tag && *numbers.start() <= last && *numbers.end() >= first
            }),
            (Origin::Mariadb(domain, server), WantedGtids::Mariadb(list)) => list.iter().any(|gtid| {
                gtid.domain == *domain && gtid.server_id == *server && (first..=last).contains(&gtid.sequence)
            }),
            _ => false,
        }
    }
}

/// The numbers of each origin. Exact, unless there are too many pieces: then the gaps between them count in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GtidRanges {
    origins: Vec<(Origin, Vec<(u64, u64)>)>,
}

/// So many pieces of one origin are kept.
const PIECES_MAX: usize = 64;

impl GtidRanges {
    /// The origin of that number.
    pub fn origin(&self, number: u32) -> Option<&Origin> {
        self.origins.get(number as usize).map(|(origin, _)| origin)
    }

    /// Each origin with its pieces, first and last number of each.
    pub fn iter(&self) -> impl Iterator<Item = (&Origin, &[(u64, u64)])> {
        self.origins.iter().map(|(origin, pieces)| (origin, pieces.as_slice()))
    }

    /// False when none of the wanted is in the file.
    pub fn may_hold(&self, wanted: &WantedGtids) -> bool {
        self.origins.iter().any(|(origin, pieces)| {
            pieces.iter().any(|(first, last)| origin.is_wanted(wanted, *first, *last))
        })
    }

    pub(super) fn write(&self, out: &mut Writing) {
        out.number(self.origins.len() as u64);
        for (origin, pieces) in &self.origins {
            match origin {
                Origin::Mysql(uuid, tag) => {
                    out.number(0);
                    out.raw(uuid.as_bytes());
                    out.text(tag.as_str());
                }
                Origin::Mariadb(domain, server) => {
                    out.number(1);
                    out.number(u64::from(*domain));
                    out.number(u64::from(*server));
                }
            }
            out.number(pieces.len() as u64);
            for (first, last) in pieces {
                out.number(*first);
                out.number(last - first);
            }
        }
    }

    pub(super) fn read(bytes: &mut Bytes<'_>) -> Result<GtidRanges, IndexError> {
        let mut origins = Vec::new();
        for _ in 0..bytes.count()? {
            let origin = match bytes.number()? {
                0 => {
                    let mut uuid = [0; 16];
                    uuid.copy_from_slice(bytes.raw(16)?);
                    let tag = Tag::from_bytes(bytes.text()?.as_bytes())
                        .ok_or(IndexError::Damaged("a tag is none"))?;
                    Origin::Mysql(Uuid::from_bytes(uuid), tag)
                }
                1 => Origin::Mariadb(bytes.small()?, bytes.small()?),
                _ => return Err(IndexError::Damaged("an origin of GTIDs is none")),
            };
            let mut pieces = Vec::new();
            for _ in 0..bytes.count()? {
                let first = bytes.number()?;
                let last =
                    first.checked_add(bytes.number()?).ok_or(IndexError::Damaged("a GTID is too large"))?;
                pieces.push((first, last));
            }
            origins.push((origin, pieces));
        }
        Ok(GtidRanges { origins })
    }
}

/// Gathers the GTIDs of a file.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    numbers: HashMap<Origin, u32>,
    /// Of each origin its pieces, by their first number.
    origins: Vec<(Origin, BTreeMap<u64, u64>)>,
}

/// So many pieces of one origin are gathered before gaps are closed.
const GATHERED_MAX: usize = 100_000;

impl Gathered {
    /// Takes one; gives the number of its origin, and its own.
    pub(super) fn take(&mut self, id: &TransactionId) -> (u32, u64) {
        let (origin, number) = Origin::of(id);
        let at = *self.numbers.entry(origin).or_insert_with(|| {
            self.origins.push((origin, BTreeMap::new()));
            self.origins.len() as u32 - 1
        });
        let pieces = &mut self.origins[at as usize].1;
        insert(pieces, number);
        if pieces.len() > GATHERED_MAX {
            *pieces = joined(pieces, PIECES_MAX).into_iter().collect();
        }
        (at, number)
    }

    pub(super) fn finish(&self) -> GtidRanges {
        let origins =
            self.origins.iter().map(|(origin, pieces)| (*origin, joined(pieces, PIECES_MAX))).collect();
        GtidRanges { origins }
    }
}

fn insert(pieces: &mut BTreeMap<u64, u64>, number: u64) {
    let before = pieces.range_mut(..=number).next_back();
    if let Some((_, last)) = before {
        if *last >= number {
            return;
        }
        if *last + 1 == number {
            *last = number;
            let after = number.checked_add(1).and_then(|next| pieces.remove(&next));
            if let (Some(after), Some((_, last))) = (after, pieces.range_mut(..=number).next_back()) {
                *last = after;
            }
            return;
        }
    }
    let after = number.checked_add(1).and_then(|next| pieces.remove(&next));
    pieces.insert(number, after.unwrap_or(number));
}

/// At most `most` pieces: the smallest gaps are closed.
fn joined(pieces: &BTreeMap<u64, u64>, most: usize) -> Vec<(u64, u64)> {
    let all: Vec<(u64, u64)> = pieces.iter().map(|(first, last)| (*first, *last)).collect();
    if all.len() <= most {
        return all;
    }
    let mut gaps: Vec<u64> = all.windows(2).map(|two| two[1].0 - two[0].1).collect();
    gaps.sort_unstable_by(|one, other| other.cmp(one));
    // So many gaps may stay, of those above this.
    let smallest_kept = gaps[most - 1];
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (first, last) in all {
        match joined.last_mut() {
            Some(before) if first - before.1 <= smallest_kept => before.1 = last,
            _ => joined.push((first, last)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn too_many_pieces_close_the_smallest_gaps() {
        let pieces: BTreeMap<u64, u64> = [(1, 2), (4, 5), (100, 100), (102, 103)].into();
        assert_eq!(joined(&pieces, 2), [(1, 5), (100, 103)]);
        assert_eq!(joined(&pieces, 4).len(), 4);
    }

    proptest! {
        #[test]
        fn pieces_hold_what_was_taken(numbers in proptest::collection::vec(1_u64..40, 0..40)) {
            let mut pieces = BTreeMap::new();
            numbers.iter().for_each(|number| insert(&mut pieces, *number));
            let held: Vec<u64> = pieces.iter().flat_map(|(first, last)| *first..=*last).collect();
            let mut expected = numbers.clone();
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(&held, &expected);
            prop_assert!(pieces.iter().zip(pieces.iter().skip(1)).all(|(one, two)| *one.1 + 1 < *two.0), "joined");
            for most in 1..5 {
                let joined = joined(&pieces, most);
                prop_assert!(joined.len() <= most.max(1));
                prop_assert!(held.iter().all(|number| joined.iter().any(|(first, last)| first <= number && number <= last)));
            }
        }
    }
}
