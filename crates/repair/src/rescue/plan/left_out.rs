//! Transactions that the operator leaves out by name.

use codec::ServerKind;
use codec::gtid::{GtidSet, MariadbGtid, TransactionId};

/// Their GTIDs. Of MariaDB each is named for itself: a position would mean all before it too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    mysql: GtidSet,
    mariadb: Vec<MariadbGtid>,
}

impl LeftOut {
    /// Reads GTIDs, of MySQL also sets of them (`uuid:5-7`).
    ///
    /// # Errors
    /// What is no GTID of this kind of server, in words.
    pub fn parse(kind: ServerKind, texts: &[String]) -> Result<LeftOut, String> {
        let mut left_out = LeftOut::default();
        for text in texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty()) {
            let wrong = |error: &dyn std::fmt::Display| format!("{text:?} is no GTID: {error}");
            match kind {
                ServerKind::MySql => {
                    left_out.mysql.union_with(&text.parse().map_err(|error| wrong(&error))?);
                }
                ServerKind::MariaDb => {
                    left_out.mariadb.push(text.parse().map_err(|error| wrong(&error))?);
                }
            }
        }
        Ok(left_out)
    }

    /// Whether this transaction is left out.
    pub fn contains(&self, id: &TransactionId) -> bool {
        match id {
            TransactionId::Mysql(id) => self.mysql.contains(id),
            TransactionId::Mariadb(id) => self.mariadb.contains(id),
        }
    }

    /// Those that are not among `found`, as text; empty when all are.
    pub(in crate::rescue) fn without<'a>(&self, found: impl Iterator<Item = &'a TransactionId>) -> String {
        let (mut mysql, mut mariadb) = (GtidSet::new(), self.mariadb.clone());
        for id in found {
            match id {
                TransactionId::Mysql(id) => drop(mysql.insert(*id)),
                TransactionId::Mariadb(id) => mariadb.retain(|left| left != id),
            }
        }
        let mut texts: Vec<String> = mariadb.iter().map(ToString::to_string).collect();
        let mysql = self.mysql.subtract(&mysql);
        if !mysql.is_empty() {
            texts.push(mysql.to_line());
        }
        texts.join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "aaaaaaaa-0000-0000-0000-000000000001";

    #[test]
    fn what_is_named_is_left_out_and_nothing_else() {
        let parse = |kind, text: &str| LeftOut::parse(kind, &[text.to_owned()]);
        let mysql = parse(ServerKind::MySql, &format!("{UUID}:5-6")).unwrap();
        let id = |number: u64| -> TransactionId {
            format!("{UUID}:{number}").parse::<codec::gtid::Gtid>().unwrap().into()
        };
        assert!(mysql.contains(&id(5)) && !mysql.contains(&id(4)));
        assert_eq!(mysql.without([id(5)].iter()), format!("{UUID}:6"));
        let mariadb = parse(ServerKind::MariaDb, "0-1-7").unwrap();
        let id = |text: &str| TransactionId::Mariadb(text.parse().unwrap());
        assert!(mariadb.contains(&id("0-1-7")) && !mariadb.contains(&id("0-1-6")), "no position");
        assert_eq!(mariadb.without([id("0-1-7")].iter()), "");
        assert!(parse(ServerKind::MySql, "nonsense").unwrap_err().contains("\"nonsense\" is no GTID"));
    }
}
