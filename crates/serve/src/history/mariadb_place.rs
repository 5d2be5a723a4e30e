//! Where a dump by GTID begins on a MariaDB source, as `check_slave_start_position` and `gtid_find_binlog_file` in
//! `sql/sql_repl.cc` find it.

use super::look::{Look, NoPlace};
use super::mariadb_choice::{MariadbChoice, Started, not_found};
use super::timeline_end::{parting, state_at_end};
use crate::dump::refusal::Refusal;
use crate::dump::request::{DumpRequest, MariadbStart};
use crate::history::FileId;
use codec::gtid::{GtidState, MariadbGtid, MariadbGtidState};

/// Finds the file, what of it and behind it is left out, and what the reader has that this history has not.
pub(crate) fn find(
    look: &Look<'_>,
    request: &DumpRequest,
    wanted: &MariadbStart,
) -> Result<(FileId, MariadbChoice, String), NoPlace> {
    let ours = match look.held()?.map(|held| held.history) {
        Some(GtidState::Mariadb(state)) => state,
        _ => MariadbGtidState::new(),
    };
    let mut until = wanted.until.clone();
    let (mut state, not_here) = check_start(&ours, wanted, &mut until)?;
    let errant = wanted.state.iter().filter(|gtid| !ours.contains(gtid)).map(ToString::to_string);
    let errant = errant.collect::<Vec<_>>().join(",");
    match newest_file(look, look.history.files().rev(), &mut state, &mut until, &not_here)? {
        Some(file) => Ok((file, MariadbChoice::by_gtid(request, wanted.strict, state, until), errant)),
        None => Err(Refusal::StateTooOld.into()),
    }
}

/// The first of the files, the newest first, that has nothing before it that the reader lacks and what the reader has last
/// in it or behind it. From the state is taken what stands just before the file.
pub(crate) fn newest_file(
    look: &Look<'_>,
    files: impl Iterator<Item = FileId>,
    state: &mut Vec<Started>,
    until: &mut Option<Vec<MariadbGtid>>,
    not_here: &[MariadbGtid],
) -> Result<Option<FileId>, NoPlace> {
    let mut end: Option<End> = None;
    for file in files {
        let list = match look.gtids_before(file)? {
            Some(GtidState::Mariadb(list)) => list,
            _ => MariadbGtidState::new(),
        };
        if !has_all_before(state, &list) {
            continue;
        }
        let last = look.history.last_of_timeline(file);
        let end = match &mut end {
            Some(end) if end.of == last => end,
            end => end.insert(End::of(look, file, last)?),
        };
        if end.file < file {
            continue; // The source has lost transactions that came before it.
        }
        // A server that does not log what it replicates never comes to what the reader has last, and would send nothing.
        let comes = |started: &Started| {
            started.on_empty_domain || not_here.contains(&started.gtid) || end.state.contains(&started.gtid)
        };
        if state.iter().all(comes) {
            pass(state, until, &list);
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// How far a timeline is history.
struct End {
    /// The timeline's last file.
    of: FileId,
    /// The last that readers get.
    file: FileId,
    /// What was executed there.
    state: MariadbGtidState,
}

impl End {
    fn of(look: &Look<'_>, file: FileId, last: FileId) -> Result<End, NoPlace> {
        Ok(match parting(look, file)? {
            Some(parting) => End { of: last, file: parting.file, state: parting.executed },
            None => End { of: last, file: last, state: state_at_end(look, file)? },
        })
    }
}

/// Whether the reader's transactions are ours, as far as that need be so; and those of them that need not come.
fn check_start(
    ours: &MariadbGtidState,
    wanted: &MariadbStart,
    until: &mut Option<Vec<MariadbGtid>>,
) -> Result<(Vec<Started>, Vec<MariadbGtid>), NoPlace> {
    let (mut state, mut not_here) = (Vec::new(), Vec::new());
    for gtid in &wanted.state {
        let newest = ours.positions().find(|newest| newest.domain == gtid.domain);
        let comes_later =
            wanted.ignore_duplicates && newest.is_some_and(|newest| newest.sequence < gtid.sequence);
        if !ours.contains(gtid) && newest.is_some() {
            if !comes_later && !ends_before(until, gtid, ours) {
                let is_behind = newest.is_some_and(|newest| newest.sequence < gtid.sequence);
                let refusal = not_found(*gtid, newest);
                return Err(if is_behind { NoPlace::Ahead(refusal) } else { NoPlace::Apart(refusal) });
            }
            not_here.push(*gtid);
        }
        state.push(Started { gtid: *gtid, on_empty_domain: newest.is_none() });
    }
    Ok((state, not_here))
}

/// The reader begins behind what it wants of the domain, so that it wants nothing of it.
fn ends_before(until: &mut Option<Vec<MariadbGtid>>, gtid: &MariadbGtid, ours: &MariadbGtidState) -> bool {
    let Some(until) = until else { return false };
    match until.iter().position(|last| last.domain == gtid.domain) {
        None => true,
        Some(at) if ours.contains(&until[at]) => {
            until.remove(at);
            true
        }
        Some(_) => false,
    }
}

/// Whether the reader has everything of which the list says that it came before a file.
fn has_all_before(state: &[Started], list: &MariadbGtidState) -> bool {
    list.list().all(|id| {
        let Some(started) = state.iter().find(|started| started.gtid.domain == id.domain) else {
            return false; // It begins with the first of that domain.
        };
        let is_last = || list.positions().any(|last| last == id);
        started.gtid.server_id != id.server_id
            || started.gtid.sequence > id.sequence
            || (started.gtid.sequence == id.sequence && is_last())
    })
}

/// Takes out the domains in which nothing is left out of the file with this list, and those of which nothing is wanted.
fn pass(state: &mut Vec<Started>, until: &mut Option<Vec<MariadbGtid>>, list: &MariadbGtidState) {
    for id in list.list() {
        state.retain(|started| started.gtid != id);
        if let Some(until) = until {
            let is_behind = |last: &MariadbGtid| {
                (last.domain, last.server_id) == (id.domain, id.server_id) && last.sequence <= id.sequence
            };
            until.retain(|last| !is_behind(last));
        }
    }
}
