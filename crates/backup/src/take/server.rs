//! What of a server makes a dump something else than its data at one point: looked for before, and behind.

use archive::chain::history::History;
use archive::chain::mapping::is_foreign;
use binlog::timeline::Timeline;
use codec::gtid::GtidState;
use source::identify::SourceIdentity;
use std::collections::{BTreeMap, BTreeSet};
use wire::{Connection, WireError};

/// So many things are named, and the others counted.
const NAMED_MAX: usize = 5;

/// Schemas of the server's own.
const OWN: &str = "('mysql', 'information_schema', 'performance_schema', 'sys')";

/// What is defined on a server, each by its name, with all that changes when somebody changes it. A snapshot of the rows does not hold
/// any of it: a dump has each as it is when its turn comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Definitions(BTreeMap<String, String>);

impl Definitions {
    /// Asks for them.
    ///
    /// # Errors
    /// When the server does not answer.
    pub(super) fn ask(connection: &mut Connection) -> Result<Definitions, WireError> {
        let questions = [
            ("SCHEMATA", "'schema', SCHEMA_NAME", "SCHEMA_NAME", "DEFAULT_COLLATION_NAME"),
            ("TABLES", "TABLE_SCHEMA, TABLE_NAME", "TABLE_SCHEMA", "TABLE_TYPE, ENGINE, CREATE_TIME"),
            (
                "VIEWS",
                "'view', TABLE_SCHEMA, TABLE_NAME",
                "TABLE_SCHEMA",
                "SHA2(VIEW_DEFINITION, 256), DEFINER",
            ),
            (
                "ROUTINES",
                "ROUTINE_TYPE, ROUTINE_SCHEMA, ROUTINE_NAME",
                "ROUTINE_SCHEMA",
                "CREATED, LAST_ALTERED",
            ),
            (
                "TRIGGERS",
                "'trigger', TRIGGER_SCHEMA, TRIGGER_NAME",
                "TRIGGER_SCHEMA",
                "SHA2(ACTION_STATEMENT, 256), DEFINER",
            ),
            ("EVENTS", "'event', EVENT_SCHEMA, EVENT_NAME", "EVENT_SCHEMA", "CREATED, LAST_ALTERED"),
        ];
        let mut all = BTreeMap::new();
        for (table, name, schema, values) in questions {
            let rows = connection.query(&format!(
                "SELECT CONCAT_WS('.', {name}), CONCAT_WS(' ', {values}) FROM information_schema.{table} WHERE {schema} NOT IN {OWN}"
            ))?;
            let text = |cell: &Option<Vec<u8>>| {
                String::from_utf8_lossy(cell.as_deref().unwrap_or_default()).into_owned()
            };
            all.extend(rows.rows.iter().filter_map(|row| Some((text(row.first()?), text(row.get(1)?)))));
        }
        Ok(Definitions(all))
    }

    /// What is another one now, in words; `None` where nothing is.
    pub(super) fn changed(&self, now: &Definitions) -> Option<String> {
        let all: BTreeSet<&String> = self.0.keys().chain(now.0.keys()).collect();
        named(all.into_iter().filter(|name| self.0.get(*name) != now.0.get(*name)).cloned())
    }
}

/// Tables whose engine has no snapshot, in words; `None` where there are none.
///
/// # Errors
/// When the server does not answer.
pub(super) fn without_snapshot(connection: &mut Connection) -> Result<Option<String>, WireError> {
    // BLACKHOLE has no rows at all.
    let rows = connection.query(&format!(
        "SELECT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME, ' (', ENGINE, ')') FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' AND \
         TABLE_SCHEMA NOT IN {OWN} AND ENGINE <> 'BLACKHOLE' AND ENGINE NOT IN (SELECT ENGINE FROM information_schema.ENGINES WHERE \
         TRANSACTIONS = 'YES') ORDER BY 1"
    ))?;
    Ok(named(
        rows.rows
            .iter()
            .filter_map(|row| Some(String::from_utf8_lossy(row.first()?.as_deref()?).into_owned())),
    ))
}

fn named(all: impl Iterator<Item = String>) -> Option<String> {
    let all: Vec<String> = all.collect();
    let shown = all.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    match all.len() {
        0 => None,
        count if count <= NAMED_MAX => Some(shown),
        count => Some(format!("{shown} and {} more", count - NAMED_MAX)),
    }
}

/// Whether a binary log of the archive is this server's.
pub(super) fn is_source(history: &History, server_uuid: &str) -> bool {
    let records = history.timelines.values().filter_map(|archived| Timeline::parse(&archived.record).ok());
    records.into_iter().any(|record| record.server_uuid == server_uuid)
}

/// Whether a server has nothing to do with what the archive has; in words, what the archive has. A server is known by its UUID, by those
/// in its GTIDs, and with MariaDB by servers whose transactions both have.
pub(super) fn stranger(history: &History, identity: &SourceIdentity) -> Option<String> {
    if history.timelines.is_empty() || is_source(history, &identity.uuid) {
        return None;
    }
    let newest = history.timelines.values().flat_map(|archived| archived.files.last());
    let gtids: Vec<&str> = newest.map(|file| &*file.gtids).filter(|gtids| !gtids.is_empty()).collect();
    match &identity.executed {
        GtidState::Mysql(executed) if executed.is_empty() => {
            Some(history.timelines.keys().cloned().collect::<Vec<_>>().join(", "))
        }
        GtidState::Mysql(_) => is_foreign(history, &identity.uuid, &identity.executed),
        GtidState::Mariadb(_) => {
            let servers = |state: &GtidState| match state {
                GtidState::Mariadb(state) => state.positions().map(|at| (at.domain, at.server_id)).collect(),
                GtidState::Mysql(_) => BTreeSet::new(),
            };
            let parse = |text: &&str| GtidState::parse(identity.kind, text).ok();
            let theirs: BTreeSet<(u32, u32)> =
                gtids.iter().filter_map(parse).flat_map(|state| servers(&state)).collect();
            let mut ours = servers(&identity.executed);
            ours.extend(identity.applied.positions().map(|at| (at.domain, at.server_id)));
            (ours.is_disjoint(&theirs)).then(|| gtids.join(", "))
        }
    }
}
