//! Which of the transactions that both the copy and a server have are compared.

use binlog::forks::Forks;
use binlog::timeline::held::HeldGtids;
use codec::gtid::{GtidSet, GtidState, MariadbGtid, Tag, TransactionId, Uuid};
use source::identify::SourceIdentity;
use std::collections::HashMap;
use std::fmt;

/// So many of the newest of each server, and so many before and behind what forks took.
pub(in crate::rescue) const PLENTY: u64 = 1000;

/// Numbers of one server, with MariaDB of one server in one domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Origin {
    Mysql(Uuid, Tag),
    Mariadb(u32, u32),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Mysql(uuid, tag) if tag.is_empty() => uuid.fmt(f),
            Origin::Mysql(uuid, tag) => write!(f, "{uuid}:{tag}"),
            Origin::Mariadb(domain, server_id) => write!(f, "{domain}-{server_id}"),
        }
    }
}

impl Origin {
    /// What is left of its numbers without what is `before`.
    fn left_of(self, ranges: &[(u64, u64)], before: &GtidState) -> Vec<(u64, u64)> {
        match (self, before) {
            (Origin::Mysql(uuid, tag), GtidState::Mysql(before)) => {
                let mut set = GtidSet::new();
                for (first, last) in ranges {
                    set.insert_interval(uuid, tag, *first, *last);
                }
                let left = set.subtract(before);
                left.iter().map(|(_, _, numbers)| (*numbers.start(), *numbers.end())).collect()
            }
            (Origin::Mariadb(domain, server_id), GtidState::Mariadb(before)) => {
                let is_its = |id: &MariadbGtid| (id.domain, id.server_id) == (domain, server_id);
                let gone = before.list().find(is_its).map_or(0, |id| id.sequence);
                let left = ranges.iter().map(|(first, last)| ((*first).max(gone + 1), *last));
                left.filter(|(first, last)| first <= last).collect()
            }
            _ => ranges.to_vec(),
        }
    }
}

/// A choice of transactions.
#[derive(Debug, Default)]
pub(in crate::rescue) struct Chosen {
    ranges: HashMap<Origin, Vec<(u64, u64)>>,
}

impl Chosen {
    /// Of what the copy holds and the server has executed: all, or the newest of each server and those around what forks took.
    pub(in crate::rescue) fn of(
        held: &HeldGtids,
        server: &SourceIdentity,
        forks: Option<&Forks>,
        all: bool,
    ) -> Chosen {
        match (held.all(), &server.executed) {
            (GtidState::Mysql(held_set), GtidState::Mysql(executed)) => {
                let both = held_set.intersect(executed);
                let lost =
                    if let GtidState::Mysql(lost) = &held.lost { lost.clone() } else { GtidSet::new() };
                Chosen::of_mysql(&if all { both } else { sample(&both, &lost) })
            }
            (GtidState::Mariadb(state), GtidState::Mariadb(executed)) => {
                let mut chosen = Chosen::default();
                for newest in state.list() {
                    let same_origin =
                        |id: &MariadbGtid| id.domain == newest.domain && id.server_id == newest.server_id;
                    let last = match executed.list().find(same_origin) {
                        Some(theirs) => theirs.sequence.min(newest.sequence),
                        None if server.has(&TransactionId::Mariadb(newest)) => newest.sequence,
                        None => continue,
                    };
                    let first = if all { 1 } else { last.saturating_sub(PLENTY - 1).max(1) };
                    chosen.add(Origin::Mariadb(newest.domain, newest.server_id), first, last);
                    let lost = forks.into_iter().flat_map(Forks::ids).filter_map(|id| match id {
                        TransactionId::Mariadb(id) if !all && same_origin(id) => Some(id.sequence),
                        _ => None,
                    });
                    let lost = lost.fold(None, |range: Option<(u64, u64)>, number| {
                        Some(
                            range.map_or((number, number), |(low, high)| (low.min(number), high.max(number))),
                        )
                    });
                    if let Some((low, high)) = lost {
                        let (begin, end) = (low.saturating_sub(PLENTY).max(1), high.saturating_add(PLENTY));
                        chosen.add(Origin::Mariadb(newest.domain, newest.server_id), begin, end.min(last));
                    }
                }
                chosen
            }
            _ => Chosen::default(),
        }
    }

    fn of_mysql(set: &GtidSet) -> Chosen {
        let mut chosen = Chosen::default();
        for (uuid, tag, numbers) in set.iter() {
            chosen.add(Origin::Mysql(uuid, tag), *numbers.start(), *numbers.end());
        }
        chosen
    }

    fn add(&mut self, origin: Origin, first: u64, last: u64) {
        if first <= last {
            self.ranges.entry(origin).or_default().push((first, last));
        }
    }

    /// Leaves out what is `before`, and names the servers of which nothing is left.
    pub(in crate::rescue) fn leave_out(&mut self, before: &GtidState) -> Vec<String> {
        let mut none_left = Vec::new();
        self.ranges.retain(|origin, ranges| {
            *ranges = origin.left_of(ranges, before);
            if ranges.is_empty() {
                none_left.push(origin.to_string());
            }
            !ranges.is_empty()
        });
        none_left.sort();
        none_left
    }

    /// Whether a transaction is chosen.
    pub(in crate::rescue) fn has(&self, id: &TransactionId) -> bool {
        let (origin, number) = match id {
            TransactionId::Mysql(gtid) => (Origin::Mysql(gtid.uuid, gtid.tag), gtid.gno),
            TransactionId::Mariadb(id) => (Origin::Mariadb(id.domain, id.server_id), id.sequence),
        };
        let ranges = self.ranges.get(&origin).map_or(&[][..], Vec::as_slice);
        // Those of a set are in order; MariaDB has two at most.
        let beyond = ranges.partition_point(|(first, _)| *first <= number);
        let near = if matches!(id, TransactionId::Mysql(_)) { beyond.saturating_sub(1) } else { 0 };
        ranges[near..].iter().any(|(first, last)| (*first..=*last).contains(&number))
    }

    /// False when all that is chosen was there before a file, or is not there behind it either. What is not known rules out
    /// nothing.
    pub(in crate::rescue) fn may_be_between(
        &self,
        before: Option<&GtidState>,
        after: Option<&GtidState>,
    ) -> bool {
        self.ranges.iter().any(|(origin, ranges)| match origin {
            Origin::Mysql(uuid, tag) => {
                let mut left = GtidSet::new();
                for (first, last) in ranges {
                    left.insert_interval(*uuid, *tag, *first, *last);
                }
                if let Some(GtidState::Mysql(before)) = before {
                    left = left.subtract(before);
                }
                if let Some(GtidState::Mysql(after)) = after {
                    left = left.intersect(after);
                }
                !left.is_empty()
            }
            Origin::Mariadb(domain, server_id) => {
                let number = |state: Option<&GtidState>| match state {
                    Some(GtidState::Mariadb(state)) => Some(
                        state
                            .list()
                            .find(|id| id.domain == *domain && id.server_id == *server_id)
                            .map_or(0, |id| id.sequence),
                    ),
                    _ => None,
                };
                let (low, high) = (number(before).unwrap_or(0), number(after).unwrap_or(u64::MAX));
                ranges.iter().any(|(first, last)| (*first).max(low + 1) <= (*last).min(high))
            }
        })
    }
}

/// The newest of each server, and what forks took with those around.
fn sample(both: &GtidSet, lost: &GtidSet) -> GtidSet {
    let mut wanted = GtidSet::new();
    let intervals: Vec<_> = both.iter().collect();
    let mut left: HashMap<(Uuid, Tag), u64> = HashMap::new();
    for (uuid, tag, numbers) in intervals.into_iter().rev() {
        let left = left.entry((uuid, tag)).or_insert(PLENTY);
        if *left > 0 {
            let first = (*numbers.start()).max(numbers.end().saturating_sub(*left - 1));
            wanted.insert_interval(uuid, tag, first, *numbers.end());
            *left -= numbers.end() - first + 1;
        }
    }
    for (uuid, tag, numbers) in lost.iter() {
        let (first, last) =
            (numbers.start().saturating_sub(PLENTY).max(1), numbers.end().saturating_add(PLENTY));
        wanted.insert_interval(uuid, tag, first, last.min(codec::gtid::GNO_MAX));
    }
    wanted.intersect(both)
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::gtid::Gtid;

    const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn set(text: &str) -> GtidSet {
        text.replace('U', UUID).parse().unwrap()
    }

    #[test]
    fn a_sample_is_the_newest_and_what_was_lost() {
        let both = set("U:1-10000:20001-20500");
        assert_eq!(sample(&both, &GtidSet::new()), set("U:9501-10000:20001-20500"));
        let lost = set("U:3000-3005:9900-12000");
        assert_eq!(sample(&both, &lost), set("U:2000-4005:8900-10000:20001-20500"));
        let chosen = Chosen::of_mysql(&sample(&both, &lost));
        let has = |number: u64| chosen.has(&format!("{UUID}:{number}").parse::<Gtid>().unwrap().into());
        assert!(has(2000) && has(4005) && has(20500) && !has(1999) && !has(4006) && !has(20501));
    }

    #[test]
    fn what_stands_too_far_back_is_left_out_and_its_servers_are_named() {
        const OTHER: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429563";
        let mut chosen = Chosen::of_mysql(&set(&format!("U:50-60,{OTHER}:7-9")));
        let before = GtidState::Mysql(set(&format!("U:1-55,{OTHER}:1-9")));
        assert_eq!(chosen.leave_out(&before), [OTHER]);
        assert_eq!(chosen.ranges.into_values().collect::<Vec<_>>(), [[(56, 60)]]);
        let mut chosen = Chosen::default();
        chosen.add(Origin::Mariadb(0, 1), 50, 60);
        chosen.add(Origin::Mariadb(0, 2), 50, 60);
        assert_eq!(chosen.leave_out(&GtidState::Mariadb("0-1-55,0-2-60".parse().unwrap())), ["0-2"]);
        assert_eq!(chosen.ranges[&Origin::Mariadb(0, 1)], [(56, 60)]);
    }

    #[test]
    fn files_without_what_is_chosen_are_passed_over() {
        let chosen = Chosen::of_mysql(&set("U:50-60"));
        let state = |text: &str| Some(GtidState::Mysql(set(text)));
        let between =
            |before: &str, after: &str| chosen.may_be_between(state(before).as_ref(), state(after).as_ref());
        assert!(!between("U:1-20", "U:1-49") && !between("U:1-60", "U:1-90"));
        assert!(between("U:1-20", "U:1-50") && between("U:1-59", "U:1-90"));
        assert!(chosen.may_be_between(state("U:1-59").as_ref(), None) && chosen.may_be_between(None, None));
        let mut mariadb = Chosen::default();
        mariadb.add(Origin::Mariadb(0, 1), 50, 60);
        let state = |text: &str| Some(GtidState::Mariadb(text.parse().unwrap()));
        let between =
            |before: &str, after: &str| mariadb.may_be_between(state(before).as_ref(), state(after).as_ref());
        assert!(
            !between("0-1-20", "0-1-49,0-2-55")
                && !between("0-1-60", "0-1-90")
                && between("0-1-20", "0-1-50")
        );
        assert!(mariadb.has(&TransactionId::Mariadb("0-1-60".parse().unwrap())));
        assert!(!mariadb.has(&TransactionId::Mariadb("0-2-60".parse().unwrap())));
    }
}
