//! A fingerprint, and how two of them compare.

/// A digest (SHA-256).
pub(super) type Hash = [u8; 32];

/// What a transaction does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// All of it.
    pub(super) exact: Hash,
    /// In which form it is told: statements or rows, and which columns of them.
    pub(super) form: Hash,
    /// The tables whose rows change, in order.
    pub(super) tables: Hash,
    pub(super) by_statements: bool,
    /// Seconds since 1970 of the first event behind the GTID.
    pub(super) began: u32,
    /// Microseconds since 1970 of its first commit, where the GTID event says so.
    pub(super) committed: Option<u64>,
    /// The session that did it, by its first statement or BEGIN.
    pub(super) thread_id: Option<u32>,
    /// Default schema of each statement; 0 where it does not matter or is not stated.
    pub(super) schemas: Vec<u64>,
}

/// How two logs of a GTID compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// They do the same.
    Same,
    /// They tell it in forms that cannot be compared byte by byte; time and tables are the same, and the session or the time of the first commit.
    OtherForm,
    /// They are two transactions.
    Different,
}

impl Fingerprint {
    /// How the transactions of one GTID compare.
    pub fn compare(&self, other: &Fingerprint) -> Verdict {
        let schemas = self.schemas.iter().zip(&other.schemas);
        if schemas.into_iter().any(|(a, b)| a != b && *a != 0 && *b != 0) {
            return Verdict::Different;
        }
        if self.exact == other.exact {
            return Verdict::Same;
        }
        // A parallel applier of MySQL 9.7 writes into BEGIN the session of the last statement that it applied itself, but keeps the time
        // of the first commit, to the microsecond.
        let is_that_commit = self.committed.zip(other.committed).is_some_and(|(a, b)| a == b);
        let is_that_session =
            is_that_commit || self.thread_id.zip(other.thread_id).is_none_or(|(a, b)| a == b);
        let tables = self.by_statements || other.by_statements || self.tables == other.tables;
        if self.form != other.form && self.began == other.began && is_that_session && tables {
            return Verdict::OtherForm;
        }
        Verdict::Different
    }
}
