//! What the target is told that it has: what a backup has, and what is passed over.

use super::ended::{Ended, during};
use crate::history::Shown;
use crate::restore::target::Target;
use codec::ServerKind;
use codec::gtid::{GtidState, TransactionId};
use source::identify::SourceIdentity;

/// See the module.
#[derive(Clone, Copy)]
pub(in crate::restore) struct Telling<'a> {
    /// What the target has and does not know, as it was said by hand; `None` where it knows.
    pub backup: Option<&'a GtidState>,
    /// What is to be passed over. MySQL is told that it has executed these. Else a part ends before each of them.
    pub skip: &'a [TransactionId],
}

impl Telling<'_> {
    /// Tells it, before anything comes.
    ///
    /// # Errors
    /// When the target does not take that.
    pub(in crate::restore) fn tell(self, target: &mut Target) -> Result<(), Ended> {
        let now = SourceIdentity::ask(&mut target.connection).map_err(during("asking what it has"))?;
        match self.backup {
            // Of several parts the first has told it.
            Some(backup) if now.executed.is_empty() && !backup.is_empty() => tell(target, backup)?,
            Some(_) => {}
            // What a server has in its own log and not as a replica, its replication does not go by.
            None => match &now.executed {
                GtidState::Mariadb(executed) if executed.position() != now.applied.position() => {
                    tell(target, &now.executed)?;
                }
                _ => {}
            },
        }
        if now.kind != ServerKind::MySql {
            return Ok(());
        }
        // A transaction that does nothing under that GTID: what counts as executed is passed over.
        for id in self.skip.iter().filter(|id| !now.has(id)) {
            for sql in [&format!("SET gtid_next = '{id}'"), "BEGIN", "COMMIT", "SET gtid_next = 'AUTOMATIC'"]
            {
                target.connection.query(sql).map_err(during("passing over a transaction"))?;
            }
        }
        Ok(())
    }
}

/// Tells MariaDB that a transaction counts as applied. A server without GTIDs goes on behind it, as its next part says.
///
/// # Errors
/// When it does not take that.
pub(in crate::restore) fn pass_over(target: &mut Target, shown: &Shown) -> Result<(), Ended> {
    let Some(TransactionId::Mariadb(id)) = shown.id else { return Ok(()) };
    let now = SourceIdentity::ask(&mut target.connection).map_err(during("asking what it has"))?;
    let mut executed = now.executed;
    // Both are MariaDB's.
    let _ = executed.insert(TransactionId::Mariadb(id));
    tell(target, &executed)
}

/// Tells the target what it has executed.
fn tell(target: &mut Target, executed: &GtidState) -> Result<(), Ended> {
    let (name, text) = match executed {
        GtidState::Mysql(set) => ("gtid_purged", set.to_string()),
        GtidState::Mariadb(state) => ("gtid_slave_pos", state.position()),
    };
    let sql = format!("SET GLOBAL {name} = '{text}'");
    target.connection.query(&sql).map(drop).map_err(during("telling it what it has executed"))
}
