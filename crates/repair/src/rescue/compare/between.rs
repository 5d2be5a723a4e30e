//! Transactions of a server held against those that a binlogd serves, where the copy itself is on another machine.

use super::CompareError;
use super::compared::{Compared, Difference, Version};
use super::target_log::{From, Logged, TargetLog};
use binlog::forks::fingerprint::{Seen, Verdict};
use codec::gtid::{GtidSet, GtidState, TransactionId};
use source::identify::SourceIdentity;
use std::collections::HashMap;
use std::ops::ControlFlow;
use wire::{ConnectOptions, Connection};

/// Most transactions that are compared: what is kept of each is small.
const TRANSACTIONS_MAX: usize = 100_000;

/// One of the two sides, and what it says of itself.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// How it is reached.
    pub options: &'a ConnectOptions,
    /// Who answers there.
    pub identity: &'a SourceIdentity,
}

/// Compares what stands in `all` and not in `known`, as a binlogd serves it and as a server has logged it. What one of them does not
/// hold any more is counted in [`Compared::not_in_its_log`].
///
/// # Errors
/// When one of them cannot be read.
pub fn between(
    binlogd: Side<'_>,
    server: Side<'_>,
    all: &GtidState,
    known: &GtidState,
) -> Result<Compared, CompareError> {
    let mut compared = Compared::default();
    let is_wanted = |id: &TransactionId| all.contains(id) && !known.contains(id);
    let mut ours: HashMap<TransactionId, Logged> = HashMap::new();
    read(binlogd, all, known, &is_wanted, &mut |logged| {
        // The copy of a later timeline begins with a whole file: what comes first is what a reader gets.
        ours.entry(logged.id).or_insert(logged);
        ours.len() < TRANSACTIONS_MAX
    })?;
    let mut open: HashMap<TransactionId, Logged> = ours;
    read(server, all, known, &is_wanted, &mut |theirs| {
        if let Some(ours) = open.remove(&theirs.id) {
            compare(&mut compared, &ours, &theirs);
        }
        !open.is_empty()
    })?;
    open.keys().for_each(|id| compared.absent(*id));
    Ok(compared)
}

/// Reads the log of one side until `goes_on` says no.
fn read(
    side: Side<'_>,
    all: &GtidState,
    known: &GtidState,
    is_wanted: &dyn Fn(&TransactionId) -> bool,
    goes_on: &mut dyn FnMut(Logged) -> bool,
) -> Result<(), CompareError> {
    let log = TargetLog::new(side.options, side.identity);
    let from = match (&side.identity.executed, all.subtract(known)) {
        (GtidState::Mysql(executed), GtidState::Mysql(wanted)) => {
            let nothing = GtidSet::new();
            // What was purged is refused when it is asked for.
            let purged = if let GtidState::Mysql(purged) = &side.identity.purged { purged } else { &nothing };
            From::Outside(executed.subtract(&wanted.subtract(purged)))
        }
        _ => {
            let mut connection = Connection::connect(side.options)?;
            let rows = connection.query("SHOW BINARY LOGS").map_err(CompareError::of)?;
            let name = |row| rows.get(row, "Log_name").map(str::to_owned);
            let files: Vec<String> = (0..rows.rows.len()).filter_map(name).collect();
            let is_before = |state: &GtidState| !known.contains_state(state);
            From::Place(log.file_before(&files, &is_before).map_err(CompareError::of)?, 4)
        }
    };
    let mut wanted = |id: &TransactionId| is_wanted(id);
    let mut found =
        |logged| Ok(if goes_on(logged) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) });
    log.read(&from, &mut wanted, &mut found).map_err(CompareError::of)
}

fn compare(compared: &mut Compared, ours: &Logged, theirs: &Logged) {
    let (own, other) = match (&ours.seen, &theirs.seen) {
        (Ok(own), Ok(other)) => (own, other),
        (Err(why), _) | (_, Err(why)) => return compared.unclear(why),
    };
    match own.fingerprint.compare(&other.fingerprint) {
        Verdict::Same => compared.same += 1,
        Verdict::OtherForm => {
            compared.same += 1;
            compared.other_form += 1;
        }
        Verdict::Different => {
            let (copy, target) = (version(ours, own), version(theirs, other));
            compared.differs(Difference { id: ours.id, copy, target });
        }
    }
}

fn version(logged: &Logged, seen: &Seen) -> Version {
    Version {
        began: seen.began,
        size: logged.size,
        changes: seen.changes.clone(),
        place: format!("{} at {}", logged.file, logged.at),
    }
}
