//! Whether a timeline is what the source wrote: every file by itself, and each as the continuation of the one before.
//!
//! Nothing is locked and nothing is changed, so it may run while the daemon writes. What can then be half done is at the
//! end of the last file, the *live* one: an incomplete event or transaction there is no damage.
//!
//! | file | what it decides |
//! |---|---|
//! | `verify/names.rs` | the index against the folder: missing, unlisted, out of order, holes |
//! | `verify/kept.rs` | files that an operator moved away and said so |
//! | `verify/report.rs` | what was found |
//! | `verify/outcome.rs` | how much was found, kept for the daemon |
//! | `verify/continuity.rs` | one file against the next: how it ends, and GTIDs |
//! | `verify/writer.rs`, `verify/writers.rs` | what a file tells of its writer; whether that is the timeline's server |

mod continuity;
pub(super) mod kept;
pub use kept::kept_from;
mod names;
pub mod outcome;
pub mod report;
mod writer;
mod writers;
pub use writers::compare_timelines;

use super::scan::{FileScan, scan_file};
use super::search_index::SEARCH_INDEX_FOLDER;
use super::storage::{ReadAt, Storage};
use super::timeline::{TIMELINE_FILE, Timeline};
use crate::purge::purge_record;
use crate::purge::purged::{Purged, is_purged};
use crate::scan::damage::{Damage, DamageKind};
use crate::timeline::files::binlog_files;
use crate::timeline::index;
use crate::timeline::index::INDEX_FILE;
use codec::BinlogName;
use codec::ServerKind;
use codec::event::{EventHeader, EventType, FormatDescription, HEADER_LEN};
use codec::gtid::GtidState;
use report::{FileEnd, FileReport, Problem, TimelineReport, blank, whole};
use std::io;
use std::path::Path;
use std::time::Duration;

/// Time given to the daemon to finish cutting or rewriting the live file's tail, before damage in it is believed.
const LIVE_RETRY_AFTER: Duration = Duration::from_millis(500);

/// Told how far the walk is.
pub trait Progress {
    /// A timeline begins: what its description says, if it can be read, and the bytes of all its files.
    fn timeline(&mut self, name: &str, description: Option<&Timeline>, bytes: u64);
    /// The walk through the current file is at this offset. It can go back: see [`verify_timeline`].
    fn offset(&mut self, offset: u64);
    /// A file is done.
    fn file(&mut self, report: &FileReport);
}

/// Walks all files of the timeline in `folder`.
///
/// The live file is walked up to the length that it had at the beginning; if damage shows in it, once more after half a
/// second, because the daemon cuts its tail and writes it again when it reconnects.
pub fn verify_timeline(storage: &dyn Storage, folder: &Path, progress: &mut dyn Progress) -> TimelineReport {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut report = TimelineReport { name, files: Vec::new(), problems: Vec::new(), notes: Vec::new() };
    // The index before the folder: the daemon makes a file before it lists it, so that a file it begins meanwhile can
    // look unlisted, but none can look missing.
    let names = index::read(storage, folder).and_then(|listed| Ok((listed, binlog_files(storage, folder)?)));
    let (mut listed, mut present) = match names {
        Ok(names) => names,
        Err(error) => {
            report.problems.push(whole(format!("{} cannot be read: {error}", folder.display())));
            return report;
        }
    };
    // Behind the folder: what is purged meanwhile is recorded by now.
    let purged = purge_record::read(storage, folder);
    listed.retain(|name| !is_purged(&purged, name));
    let present_before = present.len();
    present.retain(|name| !is_purged(&purged, name));
    let kept_from = kept::kept_from(storage, folder);
    if let Some(kept_from) = &kept_from {
        kept::without_moved(&mut listed, &present, kept_from);
    }
    let order = names::compare(&listed, &present);
    report.problems.extend(order.problems);
    report.notes.extend(order.notes);
    let description = describe(storage, folder, &order.files, kept_from.as_deref(), &mut report);
    report.notes.extend(unknown_files(storage, folder, &present, &purged));
    match present_before - present.len() {
        0 => {}
        left if purged.iter().all(|line| line.removed) => report.notes.push(format!(
            "{left} files are here that were purged ([[purged]] in {TIMELINE_FILE}), put back by somebody; they are not looked at"
        )),
        left => report
            .notes
            .push(format!("{left} files that were purged are not removed yet; the next start does that")),
    }
    let bytes =
        present.iter().filter_map(|name| storage.look(&folder.join(name)).ok()).map(|file| file.len).sum();
    progress.timeline(&report.name, description.as_ref(), bytes);
    let uncounted = GtidState::empty(ServerKind::MySql);
    let mut walk = Walk { storage, folder, progress, previous: None, uncounted };
    for (index, name) in order.files.iter().enumerate() {
        let next = order.files.get(index + 1);
        let file = if present.contains(name) { walk.file(name, next) } else { missing(name) };
        walk.progress.file(&file);
        report.files.push(file);
    }
    report
}

fn missing(name: &str) -> FileReport {
    let what = format!("it is in {INDEX_FILE}, but not in the folder");
    FileReport { problems: vec![Problem { file: Some(name.to_owned()), at: None, what }], ..blank(name) }
}

/// Reads `timeline.toml` and holds the first file against it.
fn describe(
    storage: &dyn Storage,
    folder: &Path,
    files: &[String],
    kept_from: Option<&str>,
    report: &mut TimelineReport,
) -> Option<Timeline> {
    let timeline = match Timeline::read(storage, folder) {
        Ok(timeline) => timeline,
        Err(error) => {
            report.problems.push(whole(format!("{TIMELINE_FILE} cannot be read: {error}")));
            return None;
        }
    };
    let text = storage.read_to_string(&folder.join(TIMELINE_FILE));
    if text.is_ok_and(|text| purge_record::is_kept_from_within(&text)) {
        report.problems.push(whole(format!("{TIMELINE_FILE}: {}", purge_record::KEPT_FROM_WITHIN)));
    }
    // Of what was moved away by hand and what was purged, that counts which came later.
    if let Some(kept_from) = kept_from.filter(|from| !kept::is_purged_behind(from, &timeline.purged)) {
        match kept::judge(files, kept_from) {
            Ok(note) => report.notes.push(note),
            Err(problem) => report.problems.push(problem),
        }
        return Some(timeline);
    }
    match kept::judge_purged(files, &timeline.purged) {
        Ok(None) => {}
        Ok(Some(note)) => {
            report.notes.push(note);
            return Some(timeline);
        }
        Err(problem) => {
            report.problems.push(problem);
            return Some(timeline);
        }
    }
    match files.first() {
        None => report.notes.push("no file yet".to_owned()),
        Some(first) if *first != timeline.first_file => report.problems.push(whole(format!(
            "{TIMELINE_FILE} says that it begins with {}, but {first} is the first file here: earlier files are missing",
            timeline.first_file
        ))),
        Some(_) => {}
    }
    Some(timeline)
}

/// A note for each file that binlogd did not make.
fn unknown_files(storage: &dyn Storage, folder: &Path, present: &[String], purged: &[Purged]) -> Vec<String> {
    // Notes only, of a folder that was just read.
    let Ok(entries) = storage.list(folder) else { return Vec::new() };
    let mut unknown: Vec<String> = entries
        .into_iter()
        .map(|entry| entry.name.to_string_lossy().into_owned())
        .filter(|name| !present.contains(name) && !is_ours(name) && !is_purged(purged, name))
        .map(|name| format!("{name} is not a file of binlogd; it was not looked at"))
        .collect();
    unknown.sort();
    unknown
}

fn is_ours(name: &str) -> bool {
    let name = name.strip_suffix(".tmp").unwrap_or(name);
    let name = name.strip_suffix(".purge").unwrap_or(name);
    [INDEX_FILE, TIMELINE_FILE, SEARCH_INDEX_FOLDER].contains(&name) || name.contains(".torn-")
}

struct Walk<'a> {
    storage: &'a dyn Storage,
    folder: &'a Path,
    progress: &'a mut dyn Progress,
    previous: Option<continuity::Previous>,
    /// See [`continuity::gtids`].
    uncounted: GtidState,
}

impl Walk<'_> {
    /// Walks one file; it is the live one when there is no `next`.
    fn file(&mut self, name: &str, next: Option<&String>) -> FileReport {
        let path = self.folder.join(name);
        let (scan, bytes) = match self.scan(&path, next.is_none()) {
            Ok(scanned) => scanned,
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    && is_purged(&purge_record::read(self.storage, self.folder), name) =>
            {
                self.previous = None;
                return FileReport { notes: vec!["it was purged meanwhile".to_owned()], ..blank(name) };
            }
            Err(error) => {
                self.previous = None;
                let what = format!("it cannot be read: {error}");
                let problem = Problem { file: Some(name.to_owned()), at: None, what };
                return FileReport { problems: vec![problem], ..blank(name) };
            }
        };
        let mut report =
            FileReport { bytes, events: scan.events, transactions: scan.transactions, ..blank(name) };
        if next.is_none() {
            self.live_end(&scan, &mut report);
        } else {
            self.sealed_end(&scan, next.map(String::as_str), &mut report);
        }
        if let Some((id, at)) = scan.first_repeated {
            let more = match scan.repeated_gtids {
                0 | 1 => String::new(),
                count => format!(", the first of {count} such transactions"),
            };
            report.problem(
                Some(at),
                format!("the transaction that ends here, {id}, is in the log already{more}"),
            );
        }
        if let Some(previous) = &self.previous {
            continuity::gtids(previous, &scan, &mut self.uncounted, &mut report);
            writers::compare_with_previous(previous, &scan, &mut report);
        }
        report.writer = writer::Writer::of(&scan);
        self.previous = Some(continuity::Previous { name: name.to_owned(), scan });
        report
    }

    fn scan(&mut self, path: &Path, live: bool) -> io::Result<(FileScan, u64)> {
        let file = self.storage.open_read(path)?;
        let mut bytes = file.size()?;
        let mut scan = scan_file(&*file, bytes, |offset| self.progress.offset(offset))?;
        if live && (live_damage(&scan, &*file).is_some() || scan.repeated_gtids > 0) {
            self.wait_for_daemon();
            bytes = file.size()?;
            scan = scan_file(&*file, bytes, |offset| self.progress.offset(offset))?;
        }
        if live && let Some(damage) = live_damage(&scan, &*file) {
            scan.damage = Some(damage);
        } else if live {
            scan.damage = None;
        }
        Ok((scan, bytes))
    }

    #[allow(clippy::disallowed_methods, reason = "the daemon is another process, in real time")]
    fn wait_for_daemon(&self) {
        std::thread::sleep(LIVE_RETRY_AFTER);
    }

    fn live_end(&self, scan: &FileScan, report: &mut FileReport) {
        if let Some(damage) = &scan.damage {
            report.damage(damage);
            report.notes.push(format!(
                "its last boundary is {}: unless the daemon runs, its next start cuts the file there and fetches the rest again",
                scan.boundary
            ));
            return;
        }
        match (&scan.rotates_to, scan.last_event) {
            (Some(next), Some(EventType::ROTATE)) => {
                let successor = BinlogName::parse(&report.name).ok().and_then(|name| name.successor());
                if successor.as_ref() != Some(next) {
                    report.problem(
                        None,
                        format!("its ROTATE event names {next:?}, which is not the next file"),
                    );
                }
                report.end = FileEnd::Rotate { next: next.clone() };
            }
            (_, Some(EventType::STOP)) => report.end = FileEnd::Stop,
            _ => report.end = FileEnd::Live { after_boundary: report.bytes.saturating_sub(scan.boundary) },
        }
    }

    fn sealed_end(&self, scan: &FileScan, next: Option<&str>, report: &mut FileReport) {
        if let Some(damage) = &scan.damage {
            report.damage(damage);
            return;
        }
        let next = next.map(|name| continuity::Next { name, format: self.format_of(name) });
        continuity::sealed_end(scan, next.as_ref(), report);
    }

    /// The format description of a file that has not been walked yet. The walk over that file tells why it has none.
    fn format_of(&self, name: &str) -> Option<FormatDescription> {
        let file = self.storage.open_read(&self.folder.join(name)).ok()?;
        scan_file(&*file, FormatDescription::END_MAX, |_| {}).ok()?.format
    }
}

/// What is wrong with a file that may be written at this moment. That its last event is not whole yet is not.
fn live_damage(scan: &FileScan, file: &dyn ReadAt) -> Option<Damage> {
    let damage = scan.damage.clone()?;
    match damage.kind {
        DamageKind::NoMagic => None,
        DamageKind::Truncated { event_size: 0, .. } => None,
        DamageKind::Truncated { event_size, .. } => {
            // A wrong length looks like an event that is still being written, but the event also says where it ends.
            let mut head = [0u8; HEADER_LEN];
            match file.read_full_at(&mut head, damage.at) {
                Ok(HEADER_LEN) => {}
                Ok(_) => return None, // Cut by the daemon since.
                Err(_) => return Some(damage),
            }
            let Ok(header) = EventHeader::parse(&head) else { return Some(damage) };
            let end = damage.at.wrapping_add(u64::from(event_size)) as u32;
            if header.log_pos == 0 || header.log_pos == end || header.event_size != event_size {
                return None;
            }
            let kind = DamageKind::Position { actual: end, stated: header.log_pos };
            Some(Damage { at: damage.at, kind })
        }
        _ => Some(damage),
    }
}

#[cfg(test)]
mod tests;
