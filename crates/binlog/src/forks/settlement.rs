//! `forks.toml`: what an operator has decided about transactions that a fork took from a source.

use super::gtid_list::GtidList;
use crate::format::read_toml;
use crate::storage::Storage;
use crate::storage::lock;
use crate::timeline::index::replace_file;
use codec::ServerKind;
use codec::gtid::{GtidState, TransactionId};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// Name of the file in a source's folder.
pub const SETTLEMENTS_FILE: &str = "forks.toml";

const HEAD: &str = "# What was decided about transactions that the source had lost. Written by binlogd forks; see docs/rescue.md.\n";

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// GTIDs were given twice, and somebody has made the data right.
    Settled,
    /// The source may go on without the transactions.
    LossAccepted,
}

impl Decision {
    /// In words, for people.
    pub fn words(self) -> &'static str {
        match self {
            Decision::Settled => "settled",
            Decision::LossAccepted => "loss accepted",
        }
    }
}

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settlement {
    /// UTC, RFC 3339.
    pub at: String,
    /// Account of the operating system that decided.
    pub by: String,
    /// What.
    pub decision: Decision,
    /// About which transactions. For MariaDB, of each server and domain the newest.
    pub gtids: String,
    /// MariaDB: exactly which ones, as single GTIDs and ranges. Where it is empty, all up to `gtids`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transactions: Vec<String>,
    /// Number of the newest timeline by then. Another transaction that later ones bring under the GTID is not decided, nor is the loss
    /// of one that the source had got back.
    pub through: u32,
    /// Why, in the operator's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Content {
    #[serde(default, rename = "settlement")]
    settlements: Vec<Settlement>,
}

/// Everything that was decided for one source, the oldest first.
#[derive(Debug, Clone, Default)]
pub struct Settlements {
    list: Vec<Decided>,
}

#[derive(Debug, Clone)]
struct Decided {
    settlement: Settlement,
    gtids: GtidState,
    /// MariaDB: exactly these, if it says so.
    exactly: GtidList,
}

impl Decided {
    fn is_about(&self, id: &TransactionId) -> bool {
        if self.exactly.is_empty() { self.gtids.contains(id) } else { self.exactly.contains(id) }
    }
}

impl Settlements {
    /// Reads them from a source's folder; empty when nothing was decided.
    ///
    /// # Errors
    /// When the file cannot be read or understood; the message names it.
    pub fn read(storage: &dyn Storage, source_folder: &Path, kind: ServerKind) -> io::Result<Settlements> {
        let path = source_folder.join(SETTLEMENTS_FILE);
        let named = |kind, error: &dyn std::fmt::Display| {
            io::Error::new(kind, format!("{}: {error}", path.display()))
        };
        let list = read(storage, &path)?.settlements.into_iter().map(|settlement| {
            // Of the other kind of server, from before a migration: about none of ours.
            let other = GtidState::empty(kind);
            let gtids = GtidState::parse(kind, &settlement.gtids);
            let is_other = gtids.is_err() && GtidState::parse(kind.other(), &settlement.gtids).is_ok();
            let gtids = match gtids {
                Err(_) if is_other => {
                    return Ok(Decided { settlement, gtids: other, exactly: GtidList::default() });
                }
                Err(error) => return Err(named(io::ErrorKind::InvalidData, &error)),
                Ok(gtids) => gtids,
            };
            let exactly = GtidList::parse_mariadb(&settlement.transactions)
                .map_err(|error| named(io::ErrorKind::InvalidData, &error))?;
            Ok(Decided { settlement, gtids, exactly })
        });
        Ok(Settlements { list: list.collect::<io::Result<_>>()? })
    }

    /// The decision about a transaction whose versions and losses lie on timelines up to number `through`.
    pub fn of(&self, id: &TransactionId, through: u32) -> Option<&Settlement> {
        let about = |decided: &&Decided| decided.settlement.through >= through && decided.is_about(id);
        let newest_first = || self.list.iter().rev().filter(about);
        // One by position means all before it too, among them what was decided by name.
        let by_name = newest_first().find(|decided| !decided.exactly.is_empty());
        by_name.or_else(|| newest_first().next()).map(|decided| &decided.settlement)
    }

    /// All decisions about a transaction, the newest first.
    pub(crate) fn about(&self, id: TransactionId) -> impl Iterator<Item = &Settlement> {
        self.list.iter().rev().filter(move |decided| decided.is_about(&id)).map(|decided| &decided.settlement)
    }

    /// Everything that was decided about losses up to timeline number `through`.
    pub fn decided(&self, through: u32, kind: ServerKind) -> GtidState {
        let mut decided = GtidState::empty(kind);
        for one in self.list.iter().filter(|one| one.settlement.through >= through) {
            // Of this kind, or empty.
            let _ = decided.union_with(&one.gtids);
        }
        decided
    }

    /// All of them, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Settlement> {
        self.list.iter().map(|decided| &decided.settlement)
    }
}

/// Adds a decision, durably. Two who do so at the same time come one after the other.
///
/// # Errors
/// When the file cannot be read, understood or written.
pub fn record(storage: &dyn Storage, source_folder: &Path, settlement: Settlement) -> io::Result<()> {
    let _lock = lock::wait_for_folder(source_folder)?;
    let path = source_folder.join(SETTLEMENTS_FILE);
    let mut content = read(storage, &path)?;
    content.settlements.push(settlement);
    let text = HEAD.to_owned() + &toml::to_string(&content).map_err(io::Error::other)?;
    replace_file(storage, &path, text.as_bytes())
}

fn read(storage: &dyn Storage, path: &Path) -> io::Result<Content> {
    let named =
        |kind, error: &dyn std::fmt::Display| io::Error::new(kind, format!("{}: {error}", path.display()));
    match storage.read_to_string(path) {
        Ok(text) => read_toml(&text).map_err(|error| named(io::ErrorKind::InvalidData, &error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Content::default()),
        Err(error) => Err(named(error.kind(), &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::posix::PosixStorage;

    const UUID: &str = "abababab-abab-abab-abab-abababababab";

    #[test]
    fn what_is_decided_is_kept_and_holds_for_what_was_there() {
        let dir = tempfile::tempdir().unwrap();
        let settlement = |gtids: &str, through, decision| Settlement {
            at: "2026-01-02T03:04:05Z".into(),
            by: "dba".into(),
            decision,
            gtids: gtids.into(),
            transactions: Vec::new(),
            through,
            note: "rows put in by hand".into(),
        };
        assert!(
            Settlements::read(&PosixStorage, dir.path(), ServerKind::MySql).unwrap().iter().next().is_none()
        );
        for (gtids, through, decision) in [("5-6", 2, Decision::Settled), ("7", 3, Decision::LossAccepted)] {
            let new = settlement(&format!("{UUID}:{gtids}"), through, decision);
            record(&PosixStorage, dir.path(), new).unwrap();
        }
        let settlements = Settlements::read(&PosixStorage, dir.path(), ServerKind::MySql).unwrap();
        let of = |number: u64, through| {
            let id = format!("{UUID}:{number}").parse::<codec::gtid::Gtid>().unwrap().into();
            settlements.of(&id, through).map(|settlement| settlement.decision)
        };
        assert_eq!((of(5, 2), of(6, 1)), (Some(Decision::Settled), Some(Decision::Settled)));
        assert_eq!(of(5, 3), None, "lost or given again since");
        assert_eq!((of(7, 3), of(8, 1)), (Some(Decision::LossAccepted), None));
        let other = Settlements::read(&PosixStorage, dir.path(), ServerKind::MariaDb).unwrap();
        assert_eq!(other.iter().count(), 2);
        std::fs::write(dir.path().join(SETTLEMENTS_FILE), "settlement = 1").unwrap();
        let error = Settlements::read(&PosixStorage, dir.path(), ServerKind::MySql).unwrap_err().to_string();
        assert!(error.contains(SETTLEMENTS_FILE), "{error}");
    }
}
