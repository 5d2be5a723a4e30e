//! One transaction's identifier and one stream's GTID state, whichever kind of server they come from.

use super::error::GtidError;
use super::mariadb::MariadbGtid;
use super::mariadb_state::MariadbGtidState;
use super::mysql::Gtid;
use super::set::GtidSet;
use crate::ServerKind;
use std::fmt;

/// The identifier of a transaction in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransactionId {
    /// From GTID_LOG_EVENT or GTID_TAGGED_LOG_EVENT.
    Mysql(Gtid),
    /// From MariaDB's GTID_EVENT.
    Mariadb(MariadbGtid),
}

impl TransactionId {
    /// The kind of server that it is of.
    pub const fn kind(&self) -> ServerKind {
        match self {
            TransactionId::Mysql(_) => ServerKind::MySql,
            TransactionId::Mariadb(_) => ServerKind::MariaDb,
        }
    }
}

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransactionId::Mysql(gtid) => gtid.fmt(f),
            TransactionId::Mariadb(gtid) => gtid.fmt(f),
        }
    }
}

impl From<Gtid> for TransactionId {
    fn from(gtid: Gtid) -> TransactionId {
        TransactionId::Mysql(gtid)
    }
}

impl From<MariadbGtid> for TransactionId {
    fn from(gtid: MariadbGtid) -> TransactionId {
        TransactionId::Mariadb(gtid)
    }
}

/// Which transactions a stream has delivered, or a server holds.
///
/// An empty state is empty for both kinds of server: it takes the kind of what is first added. The default is an empty
/// MySQL set.
#[derive(Clone, Debug)]
pub enum GtidState {
    /// An exact set.
    Mysql(GtidSet),
    /// The newest of each server in each domain.
    Mariadb(MariadbGtidState),
}

impl GtidState {
    /// Holds nothing yet, of a known kind.
    pub fn empty(kind: ServerKind) -> GtidState {
        match kind {
            ServerKind::MySql => GtidState::Mysql(GtidSet::new()),
            ServerKind::MariaDb => GtidState::Mariadb(MariadbGtidState::new()),
        }
    }

    /// Reads the text form of one kind of server.
    ///
    /// # Errors
    /// When the text is not of that form.
    pub fn parse(kind: ServerKind, text: &str) -> Result<GtidState, GtidError> {
        match kind {
            ServerKind::MySql => text.parse().map(GtidState::Mysql),
            ServerKind::MariaDb => text.parse().map(GtidState::Mariadb),
        }
    }

    /// The kind of server that it is of. Of no meaning while it is empty.
    pub const fn kind(&self) -> ServerKind {
        match self {
            GtidState::Mysql(_) => ServerKind::MySql,
            GtidState::Mariadb(_) => ServerKind::MariaDb,
        }
    }

    /// Whether it holds no transaction.
    pub fn is_empty(&self) -> bool {
        match self {
            GtidState::Mysql(set) => set.is_empty(),
            GtidState::Mariadb(state) => state.is_empty(),
        }
    }

    /// Empties it and keeps its memory and its kind.
    pub fn clear(&mut self) {
        match self {
            GtidState::Mysql(set) => set.clear(),
            GtidState::Mariadb(state) => state.clear(),
        }
    }

    /// Adds a transaction. Allocates nothing where a stream goes on; see [`GtidSet::insert`] and
    /// [`MariadbGtidState::insert`].
    ///
    /// # Errors
    /// [`GtidError::Kind`] if it holds transactions of the other kind of server; it is unchanged then.
    pub fn insert(&mut self, id: TransactionId) -> Result<(), GtidError> {
        self.take_kind(id.kind())?;
        match (self, id) {
            (GtidState::Mysql(set), TransactionId::Mysql(gtid)) => {
                set.insert(gtid);
            }
            (GtidState::Mariadb(state), TransactionId::Mariadb(gtid)) => state.insert(gtid),
            _ => unreachable!("the kinds were made equal"),
        }
        Ok(())
    }

    /// Adds the transactions of a later part of the same stream, as [`insert`](Self::insert)ing them one by one would. See
    /// [`MariadbGtidState::append`]; for MySQL this is the union.
    ///
    /// # Errors
    /// [`GtidError::Kind`] if both hold transactions, of different kinds of server; it is unchanged then.
    pub fn append(&mut self, later: &GtidState) -> Result<(), GtidError> {
        self.combine(later, GtidSet::union_with, MariadbGtidState::append)
    }

    /// Adds every transaction of `other`, of whatever origin.
    ///
    /// # Errors
    /// [`GtidError::Kind`] if both hold transactions, of different kinds of server; it is unchanged then.
    pub fn union_with(&mut self, other: &GtidState) -> Result<(), GtidError> {
        self.combine(other, GtidSet::union_with, MariadbGtidState::union_with)
    }

    fn combine(
        &mut self,
        other: &GtidState,
        mysql: fn(&mut GtidSet, &GtidSet),
        mariadb: fn(&mut MariadbGtidState, &MariadbGtidState),
    ) -> Result<(), GtidError> {
        if other.is_empty() {
            return Ok(());
        }
        self.take_kind(other.kind())?;
        match (self, other) {
            (GtidState::Mysql(set), GtidState::Mysql(other)) => mysql(set, other),
            (GtidState::Mariadb(state), GtidState::Mariadb(other)) => mariadb(state, other),
            _ => unreachable!("the kinds were made equal"),
        }
        Ok(())
    }

    /// Whether the transaction is held. For MariaDB see [`MariadbGtidState::contains`].
    pub fn contains(&self, id: &TransactionId) -> bool {
        match (self, id) {
            (GtidState::Mysql(set), TransactionId::Mysql(gtid)) => set.contains(gtid),
            (GtidState::Mariadb(state), TransactionId::Mariadb(gtid)) => state.contains(gtid),
            _ => false,
        }
    }

    /// Whether everything that `other` holds is held here. Everything contains the empty state.
    pub fn contains_state(&self, other: &GtidState) -> bool {
        match (self, other) {
            (GtidState::Mysql(set), GtidState::Mysql(other)) => set.contains_set(other),
            (GtidState::Mariadb(state), GtidState::Mariadb(other)) => state.contains_state(other),
            _ => other.is_empty(),
        }
    }

    /// What is held here and not in `other`. For MariaDB see [`MariadbGtidState::subtract`].
    pub fn subtract(&self, other: &GtidState) -> GtidState {
        match (self, other) {
            (GtidState::Mysql(set), GtidState::Mysql(other)) => GtidState::Mysql(set.subtract(other)),
            (GtidState::Mariadb(state), GtidState::Mariadb(other)) => {
                GtidState::Mariadb(state.subtract(other))
            }
            _ => self.clone(),
        }
    }

    /// The text form on one line, for logs and status.
    pub fn to_line(&self) -> String {
        match self {
            GtidState::Mysql(set) => set.to_line(),
            GtidState::Mariadb(state) => state.position(),
        }
    }

    /// The text form on one line that [`parse`](Self::parse) reads back without loss. For MariaDB it names every server of
    /// each domain, which [`to_line`](Self::to_line) does not.
    pub fn to_record(&self) -> String {
        match self {
            GtidState::Mysql(set) => set.to_line(),
            GtidState::Mariadb(state) => state.binlog_state(),
        }
    }

    /// Changes the kind of an empty state.
    fn take_kind(&mut self, kind: ServerKind) -> Result<(), GtidError> {
        if self.kind() == kind {
            return Ok(());
        }
        if !self.is_empty() {
            return Err(GtidError::Kind { state: self.kind(), added: kind });
        }
        *self = match kind {
            ServerKind::MySql => GtidState::Mysql(GtidSet::new()),
            ServerKind::MariaDb => GtidState::Mariadb(MariadbGtidState::new()),
        };
        Ok(())
    }
}

impl Default for GtidState {
    fn default() -> GtidState {
        GtidState::Mysql(GtidSet::new())
    }
}

/// Two empty states are equal, whatever their kind.
impl PartialEq for GtidState {
    fn eq(&self, other: &GtidState) -> bool {
        match (self, other) {
            (GtidState::Mysql(set), GtidState::Mysql(other)) => set == other,
            (GtidState::Mariadb(state), GtidState::Mariadb(other)) => state == other,
            _ => self.is_empty() && other.is_empty(),
        }
    }
}

impl Eq for GtidState {}

impl fmt::Display for GtidState {
    /// As the server prints it; for MySQL with line feeds between UUIDs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GtidState::Mysql(set) => set.fmt(f),
            GtidState::Mariadb(state) => state.fmt(f),
        }
    }
}

impl From<GtidSet> for GtidState {
    fn from(set: GtidSet) -> GtidState {
        GtidState::Mysql(set)
    }
}

impl From<MariadbGtidState> for GtidState {
    fn from(state: MariadbGtidState) -> GtidState {
        GtidState::Mariadb(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mysql(gno: u64) -> TransactionId {
        format!("3e11fa47-71ca-11e1-9e33-c80aa9429562:{gno}").parse::<Gtid>().unwrap().into()
    }

    fn mariadb(sequence: u64) -> TransactionId {
        MariadbGtid { domain: 0, server_id: 1, sequence }.into()
    }

    #[test]
    fn an_empty_state_takes_either_kind() {
        let mut state = GtidState::default();
        state.insert(mariadb(5)).unwrap();
        assert_eq!(state.to_string(), "0-1-5");
        assert_eq!(
            state.insert(mysql(1)),
            Err(GtidError::Kind { state: ServerKind::MariaDb, added: ServerKind::MySql })
        );
        assert_eq!(state.to_string(), "0-1-5", "a refused GTID changes nothing");
        state.clear();
        state.insert(mysql(1)).unwrap();
        assert_eq!(state.to_line(), "3e11fa47-71ca-11e1-9e33-c80aa9429562:1");
        assert!(state.contains(&mysql(1)) && !state.contains(&mysql(2)) && !state.contains(&mariadb(5)));
    }

    #[test]
    fn a_record_keeps_every_server_of_a_domain() {
        for (kind, text) in [
            (ServerKind::MariaDb, "0-1-100,0-2-130,5-1-7"),
            (ServerKind::MySql, "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:7"),
        ] {
            let state = GtidState::parse(kind, text).unwrap();
            assert_eq!(state.to_record(), text);
            assert_eq!(GtidState::parse(kind, &state.to_record()).unwrap(), state);
        }
    }

    #[test]
    fn states_of_two_kinds_do_not_mix() {
        let (mut left, mut right, empty) = (GtidState::default(), GtidState::default(), GtidState::default());
        left.insert(mysql(1)).unwrap();
        right.insert(mariadb(1)).unwrap();
        assert!(left.union_with(&right).is_err());
        assert!(!left.contains_state(&right) && left.contains_state(&empty) && right.contains_state(&empty));
        assert_eq!(left.subtract(&right), left);
        assert!(left.subtract(&left).is_empty());
        right.union_with(&empty).unwrap();
        let mut other = empty.clone();
        other.union_with(&right).unwrap();
        assert_eq!(other, right);
        other.clear();
        assert_eq!(other, empty);
    }
}
