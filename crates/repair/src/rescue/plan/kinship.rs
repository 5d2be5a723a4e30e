//! Whether a server is one of those whose history the copy holds.

use codec::gtid::GtidState;
use source::identify::SourceIdentity;

/// What a server has in common with the copy, by its GTIDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kinship {
    /// They share transactions, or the copy knows none to share.
    Related,
    /// The server has executed nothing at all.
    Empty,
    /// The server has executed transactions, and none that the copy knows of.
    Stranger,
}

impl Kinship {
    /// Holds a server against the GTIDs of the copy, those before its files included.
    pub fn of(server: &SourceIdentity, held: &GtidState) -> Kinship {
        if held.is_empty() {
            return Kinship::Related;
        }
        let shares = match (held, &server.executed) {
            (GtidState::Mysql(held), GtidState::Mysql(executed)) => !held.intersect(executed).is_empty(),
            // The numbers of one server in one domain go up by one; and a replica knows a domain by its newest only.
            (GtidState::Mariadb(held), GtidState::Mariadb(executed)) => held.list().any(|id| {
                executed.list().any(|other| other.domain == id.domain && other.server_id == id.server_id)
                    || server.applied.positions().any(|at| at.domain == id.domain)
            }),
            _ => false,
        };
        if shares {
            Kinship::Related
        } else if server.executed.is_empty() {
            Kinship::Empty
        } else {
            Kinship::Stranger
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::ServerKind;
    use source::identify::SourceSemiSync;

    const A: &str = "aaaaaaaa-0000-0000-0000-000000000001";
    const B: &str = "bbbbbbbb-0000-0000-0000-000000000002";

    fn of(kind: ServerKind, executed: &str, applied: &str, held: &str) -> Kinship {
        let state = |text: &str| GtidState::parse(kind, text).unwrap();
        let server = SourceIdentity {
            version: String::new(),
            kind,
            server_id: 1,
            uuid: A.into(),
            has_gtids: true,
            executed: state(executed),
            applied: applied.parse().unwrap(),
            purged: GtidState::empty(kind),
            semi_sync: SourceSemiSync::Absent,
            is_read_only: false,
            galera: None,
            knows_checksums: true,
        };
        Kinship::of(&server, &state(held))
    }

    #[test]
    fn a_server_is_known_by_one_transaction() {
        let mysql = |executed: &str, held: &str| of(ServerKind::MySql, executed, "", held);
        assert_eq!(mysql(&format!("{A}:1-5"), &format!("{A}:5-9")), Kinship::Related);
        assert_eq!(mysql(&format!("{A}:1-4"), &format!("{A}:5-9")), Kinship::Stranger);
        assert_eq!(mysql(&format!("{B}:1-4"), &format!("{A}:1-9")), Kinship::Stranger);
        assert_eq!(mysql("", &format!("{A}:1-9")), Kinship::Empty);
        assert_eq!(mysql(&format!("{B}:1-4"), ""), Kinship::Related, "nothing to compare with");
    }

    #[test]
    fn mariadb_knows_a_history_by_domain_and_server() {
        let mariadb =
            |executed: &str, applied: &str, held: &str| of(ServerKind::MariaDb, executed, applied, held);
        assert_eq!(mariadb("0-1-400", "", "0-1-500"), Kinship::Related, "it lost its tail");
        assert_eq!(mariadb("0-2-9", "0-1-400", "0-1-500"), Kinship::Related, "a replica without a log");
        assert_eq!(mariadb("0-2-9", "", "0-1-500"), Kinship::Stranger);
        assert_eq!(mariadb("", "", "0-1-500"), Kinship::Empty);
    }
}
