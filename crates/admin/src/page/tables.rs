//! Readers, slots and events.

use super::deeds;
use super::parts::{moment, place, sign};
use crate::deed::Deed;
use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};
use status::units;
use status::view::{ReaderRow, Readers, SlotRow};
use status::{ArchiveStatus, BackupStatus, DrillResult, Event, ServeStatus};

/// More readers are in the JSON.
const READERS_MAX: usize = 100;

/// Readers and slots of one source, or (`None`) of all; for who may, with links to end and drop them.
pub(super) fn readers(
    serve: Option<&ServeStatus>,
    source: Option<&str>,
    may_write: bool,
    now: Timestamp,
) -> Markup {
    let Some(serve) = serve else {
        return html! { p class="dim" { "Nobody is served: [serve] listen is off." } };
    };
    let shown = Readers::of(serve, source, READERS_MAX);
    html! {
        @if shown.is_empty() { p class="dim" { "No reader is connected to " (serve.address) "." } }
        @if !shown.readers.is_empty() {
            div class="scroll" tabindex="0" role="group" aria-label="Readers" {
                table {
                    caption { "Readers" }
                    thead { tr {
                        th scope="col" { "Reader" }
                        @if source.is_none() { th scope="col" { "Source" } }
                        th scope="col" { "From" } th scope="col" { "Does" } th scope="col" { "Sent up to" }
                        th scope="col" class="number" { "Behind" } th scope="col" { "Since" }
                        @if may_write { (deeds_head()) }
                    } }
                    tbody { @for row in &shown.readers { (reader_row(row, source.is_none(), may_write, now)) } }
                }
            }
            @if shown.readers_left_out > 0 { p class="dim" { "and " (shown.readers_left_out) " more, in /status" } }
        }
        @if !shown.slots.is_empty() {
            div class="scroll" tabindex="0" role="group" aria-label="Slots" {
                table {
                    caption { "Slots: places that are remembered, and for which files are kept" }
                    thead { tr {
                        th scope="col" { "Slot" }
                        @if source.is_none() { th scope="col" { "Source" } }
                        th scope="col" { "Reader" } th scope="col" { "Read up to" } th scope="col" class="number" { "Behind" }
                        th scope="col" { "Keeps" }
                        @if may_write { (deeds_head()) }
                    } }
                    tbody { @for row in &shown.slots { (slot_row(row, source.is_none(), may_write)) } }
                }
            }
            @if shown.slots_left_out > 0 { p class="dim" { "and " (shown.slots_left_out) " slots more, in /status" } }
        }
    }
}

/// The backups in the archive, the newest first.
pub(super) fn backups(archive: Option<&ArchiveStatus>, now: Timestamp) -> Markup {
    let Some(archive) = archive else { return html! { p class="dim" { "The source is not archived." } } };
    let Some(backups) = &archive.backups else {
        return html! { p class="dim" { "The archive was not read yet." } };
    };
    html! {
        @if backups.list.is_empty() { p class="dim" { "The archive has no backup: binlogd backup makes one." } }
        @else {
            div class="scroll" tabindex="0" role="group" aria-label="Backups" {
                table {
                    thead { tr {
                        th scope="col" { "Finished" } th scope="col" { "By" } th scope="col" { "Of" }
                        th scope="col" class="number" { "Size" } th scope="col" class="number" { "Stored" }
                        th scope="col" { "Holds" } th scope="col" { "Its log is whole until" }
                    } }
                    tbody { @for backup in backups.list.iter() { (backup_row(backup, now)) } }
                }
            }
            @let more = backups.count.saturating_sub(backups.list.len() as u64);
            @if more > 0 { p class="dim" { "and " (more) " older ones, in binlogd backups" } }
        }
        @if let Some(prune) = &archive.prune {
            p class="dim" {
                "Kept: " (prune.keep)
                @if let Some(at) = prune.at { ", followed at " (moment(at, now)) }
                @if let Some(error) = &prune.error { ", not followed since " (moment(error.at, now)) ": " (error.message) }
            }
        }
    }
}

fn backup_row(backup: &BackupStatus, now: Timestamp) -> Markup {
    html! {
        tr {
            th scope="row" title=(backup.id) { (moment(backup.finished, now)) }
            td { (backup.tool) }
            td { (short(&backup.server_version)) }
            td class="number" { (units::bytes(backup.bytes)) }
            td class="number" { (units::bytes(backup.stored_bytes)) }
            td title=(backup.point) { (short(&backup.point)) }
            td {
                @match (&backup.log_until, backup.log_until_time) {
                    (Some(until), Some(at)) => { (moment(at, now)) " " span class="dim" { (until) } },
                    (Some(until), None) => (until),
                    (None, _) => span class="warning text" { "LACKING: " (backup.log_lacking.as_deref().unwrap_or_default()) },
                }
            }
        }
    }
}

/// What drills have shown, a line a night.
pub(super) fn drills(archive: Option<&ArchiveStatus>, now: Timestamp) -> Markup {
    let Some(drill) = archive.and_then(|archive| archive.drill.as_ref()) else {
        return html! { p class="dim" { "No drill is wanted: [drill] of the configuration." } };
    };
    html! {
        @if drill.list.is_empty() { p class="dim" { "No drill was made yet." } }
        @else {
            div class="scroll" tabindex="0" role="group" aria-label="Drills" {
                table {
                    thead { tr {
                        th scope="col" { "Began" } th scope="col" { "Result" } th scope="col" { "From backup" }
                        th scope="col" { "Brought to" } th scope="col" class="number" { "Tables" }
                        th scope="col" class="number" { "Size" } th scope="col" class="number" { "Took" }
                    } }
                    tbody { @for result in drill.list.iter() { (drill_row(result, now)) } }
                }
            }
        }
    }
}

fn drill_row(result: &DrillResult, now: Timestamp) -> Markup {
    let steps = result.steps.iter().map(|step| format!("{} {:.1} s", step.name, step.seconds));
    html! {
        tr {
            th scope="row" { (moment(result.started, now)) }
            td {
                @if result.passed { "passed" span class="dim" { ": " (result.proof_in_words) } }
                @else { span class="warning text" { "FAILED: " (result.fault) } }
            }
            td { (result.backup) }
            td title=(result.until) {
                @match result.until_time { Some(at) => (moment(at, now)), None => (short(&result.until)) }
            }
            td class="number" { (units::count(result.tables)) }
            td class="number" { (units::bytes(result.bytes)) }
            td class="number" title=(steps.collect::<Vec<_>>().join(", ")) { (units::duration(result.seconds as u64)) }
        }
    }
}

fn deeds_head() -> Markup {
    html! { th scope="col" { span class="unseen" { "To do" } } }
}

fn reader_row(row: &ReaderRow<'_>, with_source: bool, may_write: bool, now: Timestamp) -> Markup {
    let reader = row.is;
    let program =
        if reader.program.is_empty() { String::new() } else { format!(" · {}", short(&reader.program)) };
    let since = SignedDuration::from_secs(i64::try_from(reader.connected_seconds).unwrap_or(0));
    let since = now.checked_sub(since).ok().and_then(|at| at.round(jiff::Unit::Minute).ok());
    html! {
        tr {
            th scope="row" { (short(&reader.user)) span class="dim" { (program) } }
            @if with_source { td { a href=(format!("/source/{}", reader.source)) { (reader.source) } } }
            td { (reader.address) @if let Some(id) = reader.server_id { span class="dim" { " server_id " (id) } } }
            td { (reader.command) @if reader.semi_sync { span class="dim" { ", acknowledges" } }
                @for why in &row.held_back { span class="dim" { ", " (why) } } }
            td { (place(reader.position.as_ref())) }
            td class="number" { (behind(row.behind.as_deref())) }
            td { @if let Some(since) = since { (moment(since, now)) } }
            @if may_write { td { (deeds::link(&reader.source, &Deed::EndReader(reader.id), "End", &format!("reader {}", reader.id))) } }
        }
    }
}

fn slot_row(row: &SlotRow<'_>, with_source: bool, may_write: bool) -> Markup {
    let slot = row.is;
    html! {
        tr {
            th scope="row" { (slot.name) }
            @if with_source { td { a href=(format!("/source/{}", slot.source)) { (slot.source) } } }
            td {
                @if slot.connected { (row.here) } @else { span class="warning text" { (row.here) } }
            }
            td { (place(slot.position.as_ref())) }
            td class="number" { (behind(row.behind.as_deref())) }
            td { @match &row.keeps_nothing {
                Some(why) => span class="warning text" { (why) },
                None => "what its reader lacks",
            } }
            @if may_write { td {
                // That of a reader that is here would be made again.
                @if !slot.connected { (deeds::link(&slot.source, &Deed::DropSlot(slot.name.clone()), "Drop", &format!("slot {}", slot.name))) }
            } }
        }
    }
}

fn behind(words: Option<&str>) -> Markup {
    html! { @match words { Some(words) => (words), None => span class="dim" { "–" } } }
}

/// What others call themselves: one line, and not longer than a line.
fn short(text: &str) -> String {
    let shown: String = text.chars().filter(|c| !c.is_control()).take(60).collect();
    if text.chars().count() > 60 { shown + "…" } else { shown }
}

/// Events with the source that each is of, the newest first.
pub(super) fn events(events: &[(Option<&str>, &Event)], now: Timestamp) -> Markup {
    html! {
        @if events.is_empty() { p class="dim" { "Nothing has happened since the start." } }
        @else {
            ol class="events" {
                @for (source, event) in events {
                    li {
                        (moment(event.last_at, now))
                        (sign(event.level))
                        span {
                            @if let Some(source) = source { a href=(format!("/source/{source}")) { (source) } ": " }
                            (event.text)
                            @if event.times > 1 { span class="dim" { " (" (units::count(event.times)) " times since " (moment(event.at, now)) ")" } }
                        }
                    }
                }
            }
        }
    }
}
