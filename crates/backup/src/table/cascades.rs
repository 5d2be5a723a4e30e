//! Foreign keys that change rows where those of another table are deleted or updated: MySQL before 9.6 and MariaDB do that in the storage engine,
//! and the log has not a word of it. Where that may have happened the table cannot be made again of its own events.

use super::ddl::Statement;
use super::followed::Followed;
use super::rows::is_without_foreign_keys;
use super::scan::{EVENT_BYTES_MAX, Scan, touches};
use codec::event::{EventType, RowChange, RowsEvent, TableMap};
use points::statement::foreign_keys::Cascade;
use points::table::TableName;
use points::transaction::Transaction;
use points::walk::events::each_event;
use repair::history::{Copied, CopiedFile, Shown, Until};
use repair::restore::{Begin, Course};
use std::collections::HashMap;

/// Looks through the log for changes of a parent that a foreign key passed on.
///
/// # Errors
/// The first such change, in words.
pub(super) fn check(
    copied: &Copied,
    begin: Begin<'_>,
    until: &Until,
    scan: &Scan,
    cascades: &[Cascade],
) -> Result<(), String> {
    let doubtful: Vec<&Cascade> = cascades.iter().filter(|one| scan.may_cascade(one)).collect();
    if doubtful.is_empty() {
        return Ok(());
    }
    let parents = Followed::new("", doubtful.iter().map(|one| one.parent.clone()));
    let mut failed = None;
    let mut take = |file: &CopiedFile, transaction: &Transaction| {
        if failed.is_none() && touches(&parents, transaction) {
            let found = passed_on(copied, file, transaction, &doubtful);
            failed = found.map_err(|why| format!("{}: {why}", Shown::of(file, transaction))).err();
        }
    };
    let walked = Course::find_showing(copied, begin, until, &[], (&mut |_, _| (), &mut take));
    walked.map_err(|error| error.to_string())?;
    failed.map_or(Ok(()), Err)
}

/// Adds the foreign keys of the parents, and of theirs: what those change of a parent changes rows of the table, and nothing of it is logged.
/// `others` are definitions of any tables.
///
/// # Errors
/// In words, when one of a parent cannot be read.
pub(super) fn with_those_of_parents(
    mut all: Vec<Cascade>,
    others: &[Statement],
) -> Result<Vec<Cascade>, String> {
    let mut at = 0;
    while let Some(parent) = all.get(at).map(|one| one.parent.clone()) {
        for statement in others.iter().filter(|one| one.may_be_about(&parent)) {
            let more = statement.cascades().map_err(|why| format!("the foreign keys of {parent}: {why}"))?;
            for one in more {
                if !all.contains(&one) {
                    all.push(one);
                }
            }
        }
        at += 1;
    }
    Ok(all)
}

fn passed_on(
    copied: &Copied,
    file: &CopiedFile,
    transaction: &Transaction,
    cascades: &[&Cascade],
) -> Result<(), String> {
    let opened = copied.read(file).map_err(|error| error.to_string())?;
    let mut tables: HashMap<[u8; 6], TableName> = HashMap::new();
    let mut failed = None;
    each_event(&*opened, (transaction.at, transaction.end), EVENT_BYTES_MAX, &mut |header, event| {
        let Some(event) = event else {
            failed.get_or_insert_with(|| "an event is too long to be looked at".to_owned());
            return;
        };
        if header.event_type == EventType::TABLE_MAP {
            let id = event.get(codec::event::HEADER_LEN..).and_then(|body| body.first_chunk::<6>());
            if let (Some(id), Ok(names)) = (id, TableMap::parse(event)) {
                tables.insert(*id, TableName::new(names.schema, names.table));
            }
            return;
        }
        let Some(Ok(rows)) = RowsEvent::parse(header.event_type, event) else { return };
        let Some(table) = tables.get(&rows.table_id) else { return };
        let passes_on = |one: &&&Cascade| {
            one.parent == *table
                && (rows.change == RowChange::Deleted && one.on_delete || rows.change == RowChange::Updated && one.on_update)
        };
        if !rows.has_cascades && !is_without_foreign_keys(event) && cascades.iter().any(|one| passes_on(&one)) {
            failed.get_or_insert_with(|| {
                format!(
                    "it changes rows of {table}, to which a foreign key of the table points, or one of a parent of it (CASCADE, SET NULL): what that did to \
                     rows of the table is not in the log. Only a whole server can do it again: binlogd restore --new"
                )
            });
        }
    })
    .map_err(|error| error.to_string())?;
    failed.map_or(Ok(()), Err)
}
