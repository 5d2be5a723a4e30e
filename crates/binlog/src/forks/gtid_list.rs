//! GTIDs, each for itself, in as few words as can be.

use codec::gtid::{GtidSet, MariadbGtid, TransactionId};
use std::collections::BTreeMap;
use std::fmt;

/// So many ranges of numbers are named.
const RANGES_SHOWN_MAX: usize = 20;

/// A list of GTIDs. MariaDB's own forms name the newest only, which stands for all before it too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GtidList {
    mysql: GtidSet,
    /// Of each domain and server, ranges of numbers.
    mariadb: BTreeMap<(u32, u32), Vec<(u64, u64)>>,
}

impl GtidList {
    /// Adds one. Those of one server that come in order make few ranges.
    pub fn insert(&mut self, id: TransactionId) {
        match id {
            TransactionId::Mysql(id) => drop(self.mysql.insert(id)),
            TransactionId::Mariadb(id) => {
                let ranges = self.mariadb.entry((id.domain, id.server_id)).or_default();
                match ranges.last_mut() {
                    Some((_, last)) if last.checked_add(1) == Some(id.sequence) => *last = id.sequence,
                    _ => ranges.push((id.sequence, id.sequence)),
                }
            }
        }
    }
}

impl GtidList {
    /// Whether it is one of them.
    pub fn contains(&self, id: &TransactionId) -> bool {
        match id {
            TransactionId::Mysql(id) => self.mysql.contains(id),
            TransactionId::Mariadb(id) => {
                let ranges = self.mariadb.get(&(id.domain, id.server_id)).map_or(&[][..], Vec::as_slice);
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&id.sequence))
            }
        }
    }

    /// True when none is in it.
    pub fn is_empty(&self) -> bool {
        self.mysql.is_empty() && self.mariadb.is_empty()
    }

    /// All of it, in the words that `parse_mariadb` reads back; of MySQL a set.
    pub fn parts(&self) -> Vec<String> {
        let mysql = self.mysql.to_line();
        let mut parts: Vec<String> =
            mysql.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        for ((domain, server), ranges) in &self.mariadb {
            parts.extend(ranges.iter().map(|(first, last)| match last - first {
                0 => format!("{domain}-{server}-{first}"),
                _ => format!("{domain}-{server}-{first} to {domain}-{server}-{last}"),
            }));
        }
        parts
    }

    /// Reads ranges of MariaDB's GTIDs: `0-1-5 to 0-1-7`, `0-2-8`.
    ///
    /// # Errors
    /// Which of them is none, in words.
    pub(crate) fn parse_mariadb(parts: &[String]) -> Result<GtidList, String> {
        let mut list = GtidList::default();
        for part in parts {
            let wrong = || format!("{part:?} is no range of GTIDs");
            let gtid = |text: &str| text.trim().parse::<MariadbGtid>().map_err(|_| wrong());
            let (first, last) = part.split_once(" to ").unwrap_or((part, part));
            let (first, last) = (gtid(first)?, gtid(last)?);
            if (first.domain, first.server_id) != (last.domain, last.server_id) {
                return Err(wrong());
            }
            let ranges = list.mariadb.entry((first.domain, first.server_id)).or_default();
            ranges.push((first.sequence, last.sequence));
        }
        Ok(list)
    }
}

impl fmt::Display for GtidList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = self.parts();
        let more = parts.len().saturating_sub(RANGES_SHOWN_MAX);
        parts.truncate(RANGES_SHOWN_MAX);
        f.write_str(&parts.join(", "))?;
        if more > 0 { write!(f, ", … and {more} more ranges") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_follow_each_other_are_one_range() {
        let mut list = GtidList::default();
        for id in ["0-1-5", "0-1-6", "0-1-7", "0-2-8", "0-1-10", "1-1-11"] {
            list.insert(TransactionId::Mariadb(id.parse().unwrap()));
        }
        assert_eq!(list.to_string(), "0-1-5 to 0-1-7, 0-1-10, 0-2-8, 1-1-11");
        assert_eq!(GtidList::parse_mariadb(&list.parts()), Ok(list.clone()));
        let has = |id: &str| list.contains(&TransactionId::Mariadb(id.parse().unwrap()));
        assert!(has("0-1-6") && has("0-2-8") && !has("0-1-4") && !has("0-1-9") && !has("0-3-5"));
        for wrong in ["0-1-5 to 0-2-7", "0-1", ""] {
            assert!(GtidList::parse_mariadb(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
        let mut list = GtidList::default();
        for number in [5, 6, 9] {
            let id: codec::gtid::Gtid =
                format!("3e11fa47-71ca-11e1-9e33-c80aa9429562:{number}").parse().unwrap();
            list.insert(id.into());
        }
        assert_eq!(list.to_string(), "3e11fa47-71ca-11e1-9e33-c80aa9429562:5-6:9");
        let mut list = GtidList::default();
        for number in 0..25 {
            list.insert(TransactionId::Mariadb(format!("0-1-{}", 2 * number).parse().unwrap()));
        }
        assert!(list.to_string().ends_with(", 0-1-38, … and 5 more ranges"), "{list}");
    }
}
