//! GTIDs that the target has by now, and not from us.

use crate::rescue::plan::lacked::Lacked;
use codec::ServerKind;
use codec::gtid::{GtidState, TransactionId};
use source::identify::gtids_in;
use wire::{Connection, WireError};

/// The first of these transactions, which are to be handed over, that the target has by now. MySQL would pass over it without a
/// word, MariaDB would do it twice. To be asked before each packet: what was taken between two questions shows when everything is
/// compared in the end.
///
/// # Errors
/// When the connection fails.
pub(in crate::rescue) fn taken(
    connection: &mut Connection,
    kind: ServerKind,
    coming: &[Lacked],
) -> Result<Option<TransactionId>, WireError> {
    let executed = match kind {
        ServerKind::MariaDb => {
            let state = connection.query("SELECT @@global.gtid_binlog_state")?;
            GtidState::Mariadb(gtids_in(&state, "@@gtid_binlog_state")?)
        }
        ServerKind::MySql => {
            let mut set = GtidState::empty(ServerKind::MySql);
            for lacked in coming {
                let _ = set.insert(lacked.id); // Of this kind, see Target::connect.
            }
            let left = connection
                .query(&format!("SELECT GTID_SUBTRACT('{}', @@global.gtid_executed)", set.to_line()))?;
            set.subtract(&GtidState::Mysql(gtids_in(&left, "GTID_SUBTRACT(…, @@gtid_executed)")?))
        }
    };
    Ok(coming.iter().map(|lacked| lacked.id).find(|id| executed.contains(id)))
}
