//! The transactions that are asked for by their GTIDs.

use codec::gtid::{GtidSet, MariadbGtid, TransactionId};
use std::fmt;

/// Which GTIDs are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WantedGtids {
    /// A set of MySQL.
    Mysql(GtidSet),
    /// GTIDs of MariaDB, each for itself.
    Mariadb(Vec<MariadbGtid>),
}

/// A text names no GTIDs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadGtids(String);

impl fmt::Display for BadGtids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} names no GTIDs: write a set of MySQL, as 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7, or GTIDs of MariaDB, as 0-1-100,0-1-101",
            self.0
        )
    }
}

impl std::error::Error for BadGtids {}

impl WantedGtids {
    /// Reads GTIDs of either kind of server.
    ///
    /// # Errors
    /// When the text is of neither, or names none.
    pub fn parse(text: &str) -> Result<WantedGtids, BadGtids> {
        if let Ok(gtids) = text.split(',').map(|one| one.trim().parse::<MariadbGtid>()).collect() {
            return Ok(WantedGtids::Mariadb(gtids));
        }
        match text.parse::<GtidSet>() {
            Ok(set) if !set.is_empty() => Ok(WantedGtids::Mysql(set)),
            _ => Err(BadGtids(text.to_owned())),
        }
    }

    /// Whether that transaction is wanted.
    pub fn contains(&self, id: &TransactionId) -> bool {
        match (self, id) {
            (WantedGtids::Mysql(set), TransactionId::Mysql(gtid)) => set.contains(gtid),
            (WantedGtids::Mariadb(list), TransactionId::Mariadb(gtid)) => list.contains(gtid),
            _ => false,
        }
    }

    /// Those that are wanted and not among these, in words; `None` when there are none.
    pub fn not_among<'a>(&self, found: impl Iterator<Item = &'a TransactionId>) -> Option<String> {
        let rest = match self {
            WantedGtids::Mysql(set) => {
                let mut there = GtidSet::default();
                found.for_each(|id| {
                    if let TransactionId::Mysql(gtid) = id {
                        there.insert(*gtid);
                    }
                });
                set.subtract(&there).to_line()
            }
            WantedGtids::Mariadb(list) => {
                let found: Vec<_> = found.collect();
                let is_there = |gtid: &&MariadbGtid| found.contains(&&TransactionId::Mariadb(**gtid));
                let rest: Vec<String> =
                    list.iter().filter(|gtid| !is_there(gtid)).map(ToString::to_string).collect();
                rest.join(",")
            }
        };
        (!rest.is_empty()).then_some(rest)
    }

    /// How many are wanted.
    pub fn count(&self) -> u64 {
        match self {
            WantedGtids::Mysql(set) => set.len(),
            WantedGtids::Mariadb(list) => list.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_are_read_and_others_refused() {
        let wanted = WantedGtids::parse("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7").unwrap();
        let id = |gno| {
            TransactionId::Mysql(format!("3e11fa47-71ca-11e1-9e33-c80aa9429562:{gno}").parse().unwrap())
        };
        assert!(wanted.contains(&id(5)) && !wanted.contains(&id(6)) && wanted.count() == 6);
        let rest = "3e11fa47-71ca-11e1-9e33-c80aa9429562:3-5:7";
        assert_eq!(wanted.not_among([id(1), id(2)].iter()).as_deref(), Some(rest));
        assert_eq!(wanted.not_among([1, 2, 3, 4, 5, 7].map(id).iter()), None);
        let maria = WantedGtids::parse("0-1-100, 0-2-101").unwrap();
        assert!(maria.contains(&TransactionId::Mariadb("0-2-101".parse().unwrap())));
        assert!(
            !maria.contains(&TransactionId::Mariadb("0-1-101".parse().unwrap())) && !maria.contains(&id(5))
        );
        let here = TransactionId::Mariadb("0-1-100".parse().unwrap());
        assert_eq!(maria.not_among([here].iter()).as_deref(), Some("0-2-101"));
        for text in ["", "x", "0-1", "0-1-1,x", "3e11fa47:1"] {
            assert!(WantedGtids::parse(text).unwrap_err().to_string().contains("names no GTIDs"), "{text}");
        }
    }
}
