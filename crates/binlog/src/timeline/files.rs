//! The binary logs in a timeline's folder.

use super::index;
use crate::purge::purge_record;
use crate::purge::purged::{Purged, is_purged};
use crate::storage::{Entry, Kind, Storage};
use codec::BinlogName;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

/// The names of the binary logs in a folder, ordered by their numbers. `binlog.index`, saved tails and everything else that
/// is no [`BinlogName`] is left out.
///
/// # Errors
/// When the folder cannot be read.
pub fn binlog_files(storage: &dyn Storage, folder: &Path) -> io::Result<Vec<String>> {
    let mut found = BTreeSet::new();
    for Entry { name, kind } in storage.list(folder)? {
        let Ok(name) = name.into_string() else { continue };
        let number = BinlogName::parse(&name).map(|name| name.number());
        if let (Ok(number), Kind::File) = (number, kind) {
            found.insert((number, name));
        }
    }
    Ok(found.into_iter().map(|(_, name)| name).collect())
}

/// The files of the timeline in `folder`, the live one last, as recovery would take them: without those that are recorded as
/// purged, whether they are removed yet or not.
///
/// # Errors
/// When the folder or its index cannot be read.
pub fn timeline_files(storage: &dyn Storage, folder: &Path) -> io::Result<Vec<String>> {
    let mut files = files_in_order(storage, folder, &index::read(storage, folder)?, &[], &mut Vec::new())?;
    // Behind the list of names: what is purged meanwhile is in the record by the time that it is not in the folder.
    let purged = purge_record::read(storage, folder);
    files.retain(|name| !is_purged(&purged, name));
    Ok(files)
}

/// As [`timeline_files`], by an index that is given: those listed that are there, then the others by number, without those
/// that are `purged`. `remarks` gets what disagrees.
///
/// # Errors
/// When the folder cannot be read.
pub(crate) fn files_in_order(
    storage: &dyn Storage,
    folder: &Path,
    listed: &[String],
    purged: &[Purged],
    remarks: &mut Vec<String>,
) -> io::Result<Vec<String>> {
    let mut present = binlog_files(storage, folder)?;
    present.retain(|name| !is_purged(purged, name));
    let mut unlisted: BTreeSet<BinlogName<'_>> =
        present.iter().filter_map(|name| BinlogName::parse(name).ok()).collect();
    let mut files = Vec::new();
    for listed in listed {
        match BinlogName::parse(listed) {
            Ok(name) if unlisted.remove(&name) => files.push(name),
            _ => remarks
                .push(format!("{} is in binlog.index but not in the folder", folder.join(listed).display())),
        }
    }
    for name in unlisted {
        // The usual cause is a crash between making the file and listing it: it is the newest. One that a damaged index
        // lost from among the others must not become the live file, so numbers of one base name stay in order.
        remarks.push(format!("{} was not in binlog.index; added", folder.join(name.as_str()).display()));
        let before = files.iter().position(|listed| listed.base() == name.base() && *listed > name);
        files.insert(before.unwrap_or(files.len()), name);
    }
    Ok(files.iter().map(|name| name.as_str().to_owned()).collect())
}
