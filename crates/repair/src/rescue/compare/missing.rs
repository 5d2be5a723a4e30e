//! What MariaDB counts as there, and is not.
//!
//! Its GTIDs tell of each server the newest number only. What was passed over before it looks as if it was there, and no rescue
//! can hand it over any more; only the binary log shows the hole.

use codec::gtid::{GtidState, MariadbGtid, MariadbGtidState, TransactionId};
use source::identify::SourceIdentity;
use std::collections::HashMap;

/// What a part of a MariaDB server's binary log covers, from some file to its end.
#[derive(Debug, Default)]
pub(in crate::rescue) struct Coverage {
    /// What was logged before the first file.
    before: MariadbGtidState,
    /// The lowest number of each domain and server in the files.
    lowest: HashMap<(u32, u32), u64>,
    /// Whether it logs what it gets by replication.
    logs_replicated: bool,
}

impl Coverage {
    pub(in crate::rescue) fn new(before: Option<GtidState>, logs_replicated: bool) -> Coverage {
        let before = match before {
            Some(GtidState::Mariadb(before)) => before,
            _ => MariadbGtidState::new(),
        };
        Coverage { before, logs_replicated, ..Coverage::default() }
    }

    /// Takes a transaction of the log.
    pub(in crate::rescue) fn logged(&mut self, id: &TransactionId) {
        if let TransactionId::Mariadb(id) = id {
            let lowest = self.lowest.entry((id.domain, id.server_id)).or_insert(id.sequence);
            *lowest = id.sequence.min(*lowest);
        }
    }

    /// Whether a transaction, which the server counts as executed and the files do not hold, would have to stand in them.
    ///
    /// What stood in files that are gone, what came with a backup, and what was applied by a replica that logs nothing of it,
    /// would not.
    pub(in crate::rescue) fn would_hold(&self, id: &TransactionId, server: &SourceIdentity) -> bool {
        let TransactionId::Mariadb(id) = id else { return false };
        if self.before.contains(id) {
            return false;
        }
        let of_domain = |at: &MariadbGtid| at.domain == id.domain;
        let applied = server.applied.positions().find(of_domain).map(|at| at.sequence);
        let is_same_server = |at: MariadbGtid| (at.domain, at.server_id) == (id.domain, id.server_id);
        let logged_earlier_ones = self.before.list().any(is_same_server)
            || self.lowest.get(&(id.domain, id.server_id)).is_some_and(|lowest| *lowest < id.sequence);
        match applied {
            // It came by replication, or in a backup, and not behind.
            Some(applied) if id.sequence <= applied => logged_earlier_ones && self.logs_replicated,
            Some(_) => true,
            None => logged_earlier_ones,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::ServerKind;
    use source::identify::SourceSemiSync;

    fn would_hold(id: &str, before: &str, logged: &[&str], applied: &str, logs_replicated: bool) -> bool {
        let server = SourceIdentity {
            version: String::new(),
            kind: ServerKind::MariaDb,
            server_id: 2,
            uuid: "mariadb-2".into(),
            has_gtids: true,
            executed: GtidState::parse(ServerKind::MariaDb, "0-1-12").unwrap(),
            applied: applied.parse().unwrap(),
            purged: GtidState::empty(ServerKind::MariaDb),
            semi_sync: SourceSemiSync::Absent,
            is_read_only: false,
            galera: None,
            knows_checksums: true,
        };
        let before = GtidState::parse(ServerKind::MariaDb, before).unwrap();
        let mut coverage = Coverage::new(Some(before), logs_replicated);
        let parse = |id: &str| TransactionId::Mariadb(id.parse().unwrap());
        logged.iter().for_each(|id| coverage.logged(&parse(id)));
        coverage.would_hold(&parse(id), &server)
    }

    #[test]
    fn a_hole_in_what_was_logged_is_missing() {
        let later = ["0-1-8", "0-1-12"];
        assert!(would_hold("0-1-6", "0-1-5", &later, "", true));
        assert!(would_hold("0-1-6", "", &["0-1-5", "0-1-8"], "", true));
        assert!(would_hold("0-1-6", "0-1-5", &later, "0-1-20", true), "a replica by now");
        assert!(would_hold("0-1-6", "", &later, "0-1-5", true), "set up from a backup as of 5");
    }

    #[test]
    fn what_a_log_cannot_show_is_not_called_missing() {
        let later = ["0-1-8", "0-1-12"];
        assert!(!would_hold("0-1-6", "0-1-7", &later, "", true), "purged");
        assert!(!would_hold("0-1-6", "", &later, "", true), "nobody knows with what it began");
        assert!(!would_hold("0-1-6", "", &later, "0-1-7", true), "in the backup");
        assert!(!would_hold("0-1-6", "0-1-5", &later, "0-1-20", false), "applied and not logged");
        assert!(!would_hold("0-1-6", "0-2-5", &["0-2-8"], "", true), "of a server that it never logged");
    }
}
