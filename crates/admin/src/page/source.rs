//! One source.

use super::chart::{Series, chart};
use super::overview::per_second;
use super::parts::{View, moment, place, sign};
use super::{deeds, judgement, tables};
use jiff::Timestamp;
use maud::{Markup, html};
use status::units;
use status::view::{self, Piece, Row, SourceRows};
use status::{DaemonMonitor, HistoryStatus, Level, SourceMonitor, SourceStatus, TimelineStatus};

/// Longer sets of GTIDs are cut; all of them are in `/status`.
const GTIDS_CHARACTERS_MAX: usize = 1500;

/// Fills the parts; `None` when there is no such source.
pub(super) fn fill(
    view: &mut View,
    may_write: bool,
    monitor: &DaemonMonitor,
    name: &str,
    now: Timestamp,
) -> Option<()> {
    let status = monitor.glance(now);
    let source = status.sources.iter().find(|source| source.name == name)?;
    let own = monitor.sources().into_iter().find(|monitor| monitor.name() == name)?;
    let mark = if source.verdict.level >= Level::Warning { "! " } else { "" };
    view.title = format!("{mark}{name}: {}", source.verdict.headline);
    view.put("where", html! { (status.data_dir) "/" (name) });
    judgement::of_source(view, source);
    view.put(
        "deeds",
        if may_write {
            deeds::of_source(source)
        } else {
            html! {}
        },
    );
    let rows = SourceRows::of(source, now);
    view.put("facts", facts(source, &rows, now));
    view.put("ladder", ladder(source));
    view.put("charts", charts(&monitor.history(name, now)?, now));
    view.put("backups", tables::backups(source.archive.as_ref(), now));
    view.put("drills", tables::drills(source.archive.as_ref(), now));
    view.put("timelines", timelines(source, now));
    view.put("gtids", gtids(&own, source, &rows, now));
    view.put("peers", peers(&rows.peers, now));
    view.put("readers", tables::readers(status.serve.as_ref(), Some(name), may_write, now));
    let events: Vec<_> = source.events.iter().map(|event| (None, event)).collect();
    view.put("events", tables::events(&events, now));
    view.put("about", html! { "binlogd " (status.binlogd_version) });
    Some(())
}

/// The state, and the rows of what holds now.
fn facts(source: &SourceStatus, rows: &SourceRows, now: Timestamp) -> Markup {
    let shown = rows.connection.iter().chain(&rows.kept).chain(&rows.verified).chain(&rows.takes);
    html! {
        div { dt { "State" } dd { (source.state) @if let Some(detail) = &source.state_detail { span class="dim" { " " (since(detail, now)) } } } }
        @for row in shown { (fact(row, now)) }
    }
}

/// A row; what it says in the colour of its level where somebody is needed.
fn fact(row: &Row, now: Timestamp) -> Markup {
    let colored = (row.level >= Level::Warning).then(|| format!("{} text", row.level.word()));
    html! {
        div {
            dt { (capitalized(row.name)) }
            dd { span class=[colored] { @for (index, piece) in row.pieces.iter().enumerate() { (said(piece, index, now)) } } }
        }
    }
}

fn said(piece: &Piece, index: usize, now: Timestamp) -> Markup {
    html! {
        @match piece {
            Piece::Text(words) => (words),
            Piece::At(at) => (moment(*at, now)),
            Piece::Ago(_) => {},
            Piece::Gtids(gtids) => { @if index > 0 { br; } (set(gtids)) },
            Piece::Line => { @if index > 0 { br; } },
        }
    }
}

/// As a heading has it, but for names of keys.
fn capitalized(name: &str) -> String {
    let mut letters = name.chars();
    match letters.next().filter(|_| !name.contains('_')) {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => name.to_owned(),
    }
}

/// A detail that is a moment, as a moment.
fn since(detail: &str, now: Timestamp) -> Markup {
    match detail.strip_prefix("since ").and_then(|at| at.parse().ok()) {
        Some(at) => html! { "since " (moment(at, now)) },
        None => html! { (detail) },
    }
}

fn ladder(source: &SourceStatus) -> Markup {
    let words = [
        "arrived from the source, checksums right",
        "survives a crash of binlogd",
        "survives a crash of this machine",
        "the source was told that it is safe",
    ];
    html! {
        @for ((rung, at), meaning) in source.positions.rungs().into_iter().zip(words) {
            li { b { (rung) } (place(at)) span class="dim" { (meaning) } }
        }
        @if let Some(archive) = &source.archive {
            li { b { "archived" } (place(archive.archived.as_ref())) span class="dim" { "survives the loss of this machine" } }
        }
    }
}

fn charts(history: &HistoryStatus, now: Timestamp) -> Markup {
    if history.at.is_empty() {
        return html! { p class="dim" { "The first sample comes within twenty seconds of the start." } };
    }
    let (at, now) = (&history.at[..], now.as_second());
    let some = |values: &[f64]| values.iter().map(|value| Some(*value)).collect::<Vec<_>>();
    let one = |values| [Series { name: "", values }];
    let pair = |p50: &[Option<f64>], p99: &[Option<f64>]| {
        [Series { name: "median", values: p50.to_vec() }, Series { name: "p99", values: p99.to_vec() }]
    };
    let behind = history.seconds_behind.iter().map(|behind| behind.map(|behind| behind as f64)).collect();
    html! {
        (chart("Transactions", at, now, &one(some(&history.transactions_per_second)), per_second))
        (chart("Stored", at, now, &one(some(&history.bytes_per_second)), |value| format!("{}/s", units::bytes(value as u64))))
        (chart("Acknowledged in", at, now, &pair(&history.acknowledge_p50_us, &history.acknowledge_p99_us), units::latency))
        (chart("Synced in", at, now, &pair(&history.sync_p50_us, &history.sync_p99_us), units::latency))
        (chart("Behind", at, now, &one(behind), |value| units::duration(value as u64)))
    }
}

/// The timelines as one line through time, and what is lost between them.
fn timelines(source: &SourceStatus, now: Timestamp) -> Markup {
    html! {
        @if source.timelines.is_empty() { p class="dim" { "Nothing has been copied yet." } }
        @else {
            ol class="timelines" { @for timeline in source.timelines.iter() { (timeline_row(source, timeline, now)) } }
        }
    }
}

fn timeline_row(source: &SourceStatus, timeline: &TimelineStatus, now: Timestamp) -> Markup {
    let is_present = source.timeline.as_deref() == Some(timeline.name.as_str());
    let sign_of = match timeline.reason.as_str() {
        "fork" => Level::Critical,
        "gap" => Level::Warning,
        "first" => Level::Ok,
        _ => Level::Notice,
    };
    html! {
        li aria-current=[is_present.then_some("true")] {
            (sign(sign_of))
            div {
                b { (timeline.name) } @if is_present { span class="dim" { " is written now" } }
                p {
                    "Began "
                    @match timeline.began_at.parse::<Timestamp>() { Ok(at) => (moment(at, now)), Err(_) => (timeline.began_at) }
                    " with " (timeline.first_file) ": " (timeline.why) "."
                }
                @if !timeline.source_lacked.is_empty() { p { "The source lacked then: " (set(&timeline.source_lacked)) } }
                @if !timeline.missing.is_empty() { p { "Never copied: " (set(&timeline.missing)) } }
            }
        }
    }
}

fn gtids(monitor: &SourceMonitor, source: &SourceStatus, rows: &SourceRows, now: Timestamp) -> Markup {
    let sets = view::gtids(&source.state, &monitor.gtid_texts());
    html! { dl class="facts" { @for row in sets.iter().chain(&rows.histories) { (fact(row, now)) } } }
}

fn set(text: &str) -> Markup {
    html! {
        @if text.is_empty() { span class="dim" { "none" } }
        @else {
            code class="gtids" {
                @match text.char_indices().nth(GTIDS_CHARACTERS_MAX) {
                    Some((at, _)) => { (text[..at]) "… (all of it is in /status)" },
                    None => (text),
                }
            }
        }
    }
}

fn peers(rows: &[Row], now: Timestamp) -> Markup {
    html! {
        @if rows.is_empty() { p class="dim" { "No other binlogd of this source is configured." } }
        @else { dl class="facts" { @for row in rows { (fact(row, now)) } } }
    }
}

/// The page around the parts.
pub(super) fn body(view: &View, name: &str) -> Markup {
    html! {
        nav aria-label="Way back" { a href="/" { "All sources" } " › " (name) }
        h1 { (name) }
        p id="headline" class="headline" aria-live="polite" { (view.part("headline")) }
        div id="problems" { (view.part("problems")) }
        div id="deeds" class="deeds" { (view.part("deeds")) }
        section aria-labelledby="h-facts" { h2 id="h-facts" { "Now" } dl id="facts" class="facts" { (view.part("facts")) } }
        section aria-labelledby="h-ladder" {
            h2 id="h-ladder" { "How far" }
            ol id="ladder" class="ladder" { (view.part("ladder")) }
        }
        section aria-labelledby="h-charts" { h2 id="h-charts" { "The last hour" } div id="charts" class="charts" { (view.part("charts")) } }
        section aria-labelledby="h-backups" { h2 id="h-backups" { "Backups" } div id="backups" { (view.part("backups")) } }
        section aria-labelledby="h-drills" { h2 id="h-drills" { "Drills" } div id="drills" { (view.part("drills")) } }
        section aria-labelledby="h-timelines" { h2 id="h-timelines" { "Timelines" } div id="timelines" { (view.part("timelines")) } }
        section aria-labelledby="h-readers" { h2 id="h-readers" { "Readers" } div id="readers" { (view.part("readers")) } }
        section aria-labelledby="h-peers" { h2 id="h-peers" { "Other binlogds of this source" } div id="peers" { (view.part("peers")) } }
        section aria-labelledby="h-gtids" { h2 id="h-gtids" { "GTIDs" } div id="gtids" { (view.part("gtids")) } }
        section aria-labelledby="h-events" { h2 id="h-events" { "Last events" } div id="events" { (view.part("events")) } }
    }
}
