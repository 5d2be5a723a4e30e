//! The step from one timeline to the next, where it is provably what follows.
//!
//! A timeline begins with a whole file, of which the older ones have a part too. So a reader by GTID goes on in the newest
//! file before which it has everything, and what it has is left out there. What a fork took is left out of the older
//! timeline. MariaDB's positions do not tell what that is: there the older timeline is left before the first transaction of which
//! it may be so. Where no file of the next one goes on from there, the dump ends with an error.

use super::choice::Rule;
use super::look::{Look, NoPlace};
use super::mariadb_choice::Started;
use super::mariadb_place;
use super::place::Start;
use super::timeline_end::{executed_at_end, parting};
use crate::dump::refusal::Refusal;
use crate::history::FileId;
use codec::ServerKind;
use codec::gtid::{GtidSet, GtidState, MariadbGtid};

/// The file with which a reader goes on that has had everything of its timeline; `first` is the first of the next one. What
/// the reader has grows by what the timeline has.
///
/// # Errors
/// When it cannot go on.
pub(crate) fn step(look: &Look<'_>, start: &mut Start, first: FileId) -> Result<FileId, NoPlace> {
    let from = start.file;
    match &mut start.choice.rule {
        Rule::All => by_position(look, from, first),
        Rule::Mariadb(choice) if !choice.is_by_gtid() => by_position(look, from, first),
        Rule::Mysql(_) => by_set(look, from, first, start.has.get_or_insert_with(GtidSet::new)),
        Rule::Mariadb(choice) => by_state(look, from, first, &mut choice.state, &mut choice.until),
    }
}

fn by_position(look: &Look<'_>, from: FileId, first: FileId) -> Result<FileId, NoPlace> {
    look.history.goes_on_by_position(from, first).map_err(Refusal::NoNextFile)?;
    Ok(first)
}

fn by_set(look: &Look<'_>, from: FileId, first: FileId, has: &mut GtidSet) -> Result<FileId, NoPlace> {
    let had = match executed_at_end(look, from)? {
        GtidState::Mysql(executed) => executed,
        // A server of the other kind came before.
        GtidState::Mariadb(_) => GtidSet::new(),
    };
    match look.history.lost_after(from, ServerKind::MySql) {
        GtidState::Mysql(lost) => has.union_with(&had.subtract(&lost)),
        GtidState::Mariadb(_) => has.union_with(&had),
    }
    let mut needed = GtidSet::new();
    for file in look.history.files().rev().filter(|file| *file >= first) {
        let before = match look.gtids_before(file)? {
            Some(GtidState::Mysql(before)) => before,
            _ => continue,
        };
        if has.contains_set(&before) {
            return Ok(file);
        }
        needed = before;
    }
    Err(Refusal::Purged { sent: has.to_line(), missing: needed.subtract(has).to_line() }.into())
}

fn by_state(
    look: &Look<'_>,
    from: FileId,
    first: FileId,
    state: &mut Vec<Started>,
    until: &mut Option<Vec<MariadbGtid>>,
) -> Result<FileId, NoPlace> {
    let end = match parting(look, from)? {
        Some(parting) if parting.file == from => parting.executed,
        _ => match executed_at_end(look, from)? {
            GtidState::Mariadb(end) => end,
            GtidState::Mysql(_) => return Err(no_step().into()),
        },
    };
    for gtid in end.positions() {
        // One that has not passed yet is of a later timeline.
        if !state.iter().any(|started| started.gtid.domain == gtid.domain) {
            state.push(Started { gtid, on_empty_domain: false });
        }
    }
    let later = look.history.files().rev().filter(|file| *file >= first);
    match mariadb_place::newest_file(look, later, state, until, &[])? {
        Some(file) => Ok(file),
        // What the reader has last may still be on its way to the new timeline.
        None => Err(NoPlace::Ahead(no_step())),
    }
}

fn no_step() -> Refusal {
    let said = "could not find next log: what comes next was written by another server, and does not say where it goes on \
                from the last transaction of this one";
    Refusal::Text(said.to_owned())
}
