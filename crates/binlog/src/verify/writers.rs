//! Who wrote the files: all of a timeline are of its server.
//!
//! A file tells its writer by the `server_id` of its format description, and with MySQL's GTIDs by the transactions that were
//! committed there first: they alone bear that `server_id` too. A `server_id` can be changed, so one by itself is no proof: what
//! counts is that another timeline of the copy shows whose it is.

use super::super::scan::FileScan;
use super::continuity::Previous;
use super::report::{FileReport, TimelineReport};
use super::writer::Writer;
use codec::event::EventType;
use codec::gtid::Uuid;
use std::collections::{BTreeMap, BTreeSet};

/// What to do, in every message.
const WHAT_TO_DO: &str = "docs/runbook.md says what to do (The copy is damaged)";

/// Holds a file against the one before it in its timeline. The server that ends a file with ROTATE writes its own `server_id` into that
/// event, and at once begins the next one.
pub(super) fn compare_with_previous(previous: &Previous, scan: &FileScan, report: &mut FileReport) {
    let (Some(before), Some(format)) = (&previous.scan.format, &scan.format) else { return };
    let is_rotated = previous.scan.last_event == Some(EventType::ROTATE) && format.created == 0;
    if is_rotated && previous.scan.last_server_id != format.server_id {
        report.problem(
            None,
            format!(
                "another server wrote it: server_id {} is expected, as of the ROTATE event that ends {}, and its format \
                 description has {}. {WHAT_TO_DO}",
                previous.scan.last_server_id, previous.name, format.server_id
            ),
        );
    } else if format.timestamp < before.timestamp {
        let earlier = before.timestamp - format.timestamp;
        let made = format!("it was begun {earlier} s before {}, the file before it", previous.name);
        if before.server_id == format.server_id {
            report.notes.push(format!("{made}: the source's clock was set back"));
        } else {
            let (ours, theirs) = (before.server_id, format.server_id);
            report.problem(
                None,
                format!(
                    "another server wrote it: {made}, and its server_id is {theirs}, not {ours}. {WHAT_TO_DO}"
                ),
            );
        }
    }
}

/// Holds the timelines of one copy against each other: a file that another server wrote is a problem of its file.
pub fn compare_timelines(reports: &mut [TimelineReport]) {
    let own = own_server_ids(reports);
    for at in 0..reports.len() {
        let strange = strange_files(&reports[at], &own);
        for file in strange {
            let Some(why) = why_another(reports, at, file, &own) else { continue };
            let server = server(&reports[at].name).to_owned();
            let report = &mut reports[at].files[file];
            report.problem(None, format!("another server wrote it than {server}: {why}. {WHAT_TO_DO}"));
        }
    }
}

fn server(timeline: &str) -> &str {
    timeline.split_once('-').map_or("", |(_, server)| server)
}

/// The `server_id` in the name of a timeline of MariaDB.
fn named_server_id(timeline: &str) -> Option<u32> {
    server(timeline).strip_prefix("mariadb-")?.parse().ok()
}

/// The writers of a timeline's files, with the files' numbers in the report.
fn writers(report: &TimelineReport) -> impl Iterator<Item = (usize, &Writer)> {
    report.files.iter().enumerate().filter_map(|(number, file)| Some((number, file.writer.as_ref()?)))
}

/// Each server's own `server_id`s: those in its name, and in files in which clients of it committed, or that no other server's
/// timeline has.
fn own_server_ids(reports: &[TimelineReport]) -> BTreeMap<String, BTreeSet<u32>> {
    let mut own: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for (at, report) in reports.iter().enumerate() {
        let ids = own.entry(server(&report.name).to_owned()).or_default();
        ids.extend(named_server_id(&report.name));
        let uuid = server(&report.name).parse::<Uuid>().ok();
        for (number, writer) in writers(report) {
            let is_committed_here = uuid.is_some_and(|uuid| writer.committed.contains(&uuid));
            let is_of_others =
                writer.committed.iter().any(|of| Some(*of) != uuid && has_timeline(reports, *of));
            let is_known = named_server_id(&report.name).is_some() || is_of_others;
            if is_committed_here || !is_known && twin(reports, reports, at, number).is_none() {
                ids.insert(writer.format.server_id);
            }
        }
    }
    own
}

fn has_timeline(reports: &[TimelineReport], uuid: Uuid) -> bool {
    reports.iter().any(|report| server(&report.name).parse() == Ok(uuid))
}

/// Whether the server may have begun with this file although another one wrote it. A node of Galera to which the state was transferred
/// has got the newest binary log of the node that gave it, which begins one for that: without transactions, and its own log behind it
/// (`next`, and whether the server wrote that).
fn is_of_a_donor(report: &TimelineReport, file: usize, next: Option<(&Writer, bool)>) -> bool {
    let goes_on = file == 0 && next.is_some_and(|(_, is_known)| is_known);
    goes_on && named_server_id(&report.name).is_some() && report.files[file].transactions == 0
}

/// Files of a timeline that neither bear a `server_id` of its server nor are followed, in the same run of that server's log, by one
/// that does.
fn strange_files(report: &TimelineReport, own: &BTreeMap<String, BTreeSet<u32>>) -> Vec<usize> {
    let is_own = |writer: &Writer| own[server(&report.name)].contains(&writer.format.server_id);
    let (mut strange, mut next): (Vec<usize>, Option<(&Writer, bool)>) = (Vec::new(), None);
    for (number, writer) in writers(report).collect::<Vec<_>>().into_iter().rev() {
        let goes_on = |(after, is_known): (&Writer, bool)| {
            let goes_on = match writer.end {
                // Behind a stop the server may have another server_id.
                (Some(EventType::STOP), _) => after.format.created != 0,
                (Some(EventType::ROTATE), id) => after.format.created == 0 && after.format.server_id == id,
                _ => false,
            };
            is_known && (goes_on || after.format.server_id == writer.format.server_id)
        };
        let is_known = is_own(writer) || next.is_some_and(goes_on);
        if !is_known && !is_of_a_donor(report, number, next) {
            strange.push(number);
        }
        next = Some((writer, is_known));
    }
    strange
}

/// Of these timelines one of another server that has the same file: one of the same name that was begun in the same second.
fn twin<'a>(
    timelines: &'a [TimelineReport],
    reports: &[TimelineReport],
    at: usize,
    file: usize,
) -> Option<&'a str> {
    let (name, writer) = (&reports[at].files[file].name, reports[at].files[file].writer.as_ref()?);
    let is_other = |report: &&TimelineReport| server(&report.name) != server(&reports[at].name);
    let has_it = |report: &&TimelineReport| {
        writers(report).any(|(number, other)| {
            report.files[number].name == *name && other.format.is_same_file(&writer.format)
        })
    };
    timelines.iter().filter(is_other).find(has_it).map(|report| report.name.as_str())
}

/// What shows that another server wrote a file; `None` where nothing does.
fn why_another(
    reports: &[TimelineReport],
    at: usize,
    file: usize,
    own: &BTreeMap<String, BTreeSet<u32>>,
) -> Option<String> {
    let (report, writer) = (&reports[at], reports[at].files[file].writer.as_ref()?);
    let (here, id) = (server(&report.name), writer.format.server_id);
    let expected = match &own[here] {
        ids if ids.is_empty() => String::new(),
        ids => {
            let ids: Vec<_> = ids.iter().map(u32::to_string).collect();
            format!(", and this one's server_id is {}", ids.join(" or "))
        }
    };
    // A file comes into a later timeline from an older one, never the other way.
    if let Some(twin) = twin(&reports[..at], reports, at, file) {
        return Some(format!("timeline {twin} has the same file, of server_id {id}{expected}"));
    }
    let is_known = |uuid: &&Uuid| own.get(&uuid.to_string()).is_some_and(|ids| ids.contains(&id));
    if let Some(other) = writer.committed.iter().find(is_known) {
        return Some(format!("clients of {other} committed here, whose server_id is {id}{expected}"));
    }
    let other = own.iter().find(|(other, ids)| *other != here && ids.contains(&id));
    let (other, _) = other.filter(|_| named_server_id(&report.name).is_some())?;
    Some(format!("its server_id {id} is that of {other}{expected}"))
}
