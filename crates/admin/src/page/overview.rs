//! All sources on one page, the worst first.

use super::parts::{View, place, sign};
use super::{chart, judgement, tables};
use jiff::Timestamp;
use maud::{Markup, html};
use status::units;
use status::view::{if_this_site_burned, semi_sync, worst_first};
use status::{DaemonMonitor, DaemonStatus, Level, SourceStatus, Topic};
use std::cmp::Reverse;

/// Events of all sources that are shown.
const EVENTS_MAX: usize = 15;
/// Points of a chart within a row.
const SPARK_POINTS: usize = 60;

/// Fills the parts.
pub(super) fn fill(view: &mut View, monitor: &DaemonMonitor, now: Timestamp) {
    let status = monitor.glance(now);
    let mark = if status.verdict.level >= Level::Warning { "! " } else { "" };
    view.title = format!("{mark}binlogd: {}", status.verdict.headline);
    view.put("where", html! { (status.data_dir) });
    judgement::of_all(view, &status);
    view.put("burned", burned(&status, now));
    view.put("figures", figures(&status));
    let order = worst_first(&status.sources);
    view.list("sources", order.iter().map(|source| format!("s-{}", source.name)).collect());
    let monitors = monitor.sources();
    for source in order {
        let spark = monitors.iter().find(|monitor| monitor.name() == source.name);
        let spark = spark.map(|monitor| monitor.spark(SPARK_POINTS)).unwrap_or_default();
        view.put(format!("s-{}", source.name), row(source, &spark));
    }
    view.put("readers", tables::readers(status.serve.as_ref(), None, false, now));
    let mut events: Vec<_> = status.events.iter().map(|event| (None, event)).collect();
    for source in &status.sources {
        events.extend(source.events.iter().map(|event| (Some(source.name.as_str()), event)));
    }
    events.sort_by_key(|(_, event)| Reverse(event.last_at));
    events.truncate(EVENTS_MAX);
    view.put("events", tables::events(&events, now));
    let since = status.uptime_seconds.unwrap_or(0);
    view.put("about", html! { "binlogd " (status.binlogd_version) ", up for " (rough(since)) });
}

/// Minutes are enough: the text would change each second.
pub(super) fn rough(seconds: u64) -> String {
    if seconds < 60 {
        "less than a minute".to_owned()
    } else {
        units::duration(seconds / 60 * 60).replace(" 0 s", "")
    }
}

/// What would be left if all of this were lost.
fn burned(status: &DaemonStatus, now: Timestamp) -> Markup {
    html! { @for sentence in if_this_site_burned(status, now) { p { (sentence) } } }
}

fn figures(status: &DaemonStatus) -> Markup {
    let sources = &status.sources;
    let active = sources.iter().filter(|source| source.is_receiving() && source.semi_sync.active).count();
    let received = sources.iter().filter(|source| source.is_receiving()).count();
    let rate: f64 =
        sources.iter().flat_map(|source| &source.recent).map(|recent| recent.transactions_per_second).sum();
    let bytes: f64 =
        sources.iter().flat_map(|source| &source.recent).map(|recent| recent.bytes_per_second).sum();
    html! {
        div { dt { "Received" } dd { (received) " of " (sources.len()) } }
        div { dt { "Semi-sync on" } dd { (active) " of " (sources.len()) } }
        div { dt { "Transactions" } dd { (per_second(rate)) span class="dim" { " " (units::bytes(bytes as u64)) "/s" } } }
        div {
            dt { "Disk" }
            dd {
                @match &status.disk {
                    Some(disk) => {
                        @let used = 100.0 - 100.0 * disk.free_bytes as f64 / disk.size_bytes.max(1) as f64;
                        span class="value" { (units::bytes(disk.free_bytes)) } " "
                        span class="dim" {
                            @match disk.hours_left {
                                Some(hours) => { "free, lasts " (units::hours(hours)) },
                                None => { "free, " (format!("{used:.0}")) " % used" },
                            }
                        }
                        meter min="0" max="100" high="90" value=(format!("{used:.0}")) aria-label="Disk in use, in per cent" {}
                    },
                    None => "not known",
                }
            }
        }
        @if let Some(serve) = &status.serve {
            @let reading = serve.readers.iter().filter(|reader| reader.dumps()).count();
            div { dt { "Readers" } dd { (reading) @if !serve.slots.is_empty() { span class="dim" { " " (serve.slots.len()) " slots" } } } }
        }
    }
}

/// A rate with the digits that count.
pub(super) fn per_second(rate: f64) -> String {
    match rate {
        rate if rate >= 100.0 => format!("{}/s", units::count(rate.round() as u64)),
        rate if rate > 0.0 => format!("{rate:.1}/s"),
        _ => "0/s".to_owned(),
    }
}

fn row(source: &SourceStatus, spark: &[f32]) -> Markup {
    let recent = source.recent.as_ref();
    let latency = |value: Option<f64>| value.map_or("–".to_owned(), units::latency);
    let level = |topic| {
        let level = source.verdict.about(topic);
        (level >= Level::Warning).then(|| format!("{} text", level.word()))
    };
    html! {
        th scope="row" { (sign(source.verdict.level)) a href=(format!("/source/{}", source.name)) { (source.name) } }
        td { span class=[level(Topic::State)] { (source.state) } }
        td {
            @if source.semi_sync.active { (semi_sync(source)) }
            @else { span class=[level(Topic::SemiSync)] title=(source.semi_sync.reason) { (semi_sync(source)) } }
        }
        td class="number" {
            @match source.seconds_behind {
                Some(0) => "nothing",
                Some(behind) => span class=[level(Topic::Behind)] { (units::duration(behind)) },
                None => span class="dim" { "–" },
            }
        }
        td class="number" {
            (chart::spark(spark)) " "
            @match recent { Some(recent) => (per_second(recent.transactions_per_second)), None => span class="dim" { "–" } }
        }
        td class="number" {
            (latency(recent.and_then(|recent| recent.acknowledge_p50_us)))
            span class="dim" { " / " (latency(recent.and_then(|recent| recent.acknowledge_p99_us))) }
        }
        td {
            @let safe = source.positions.acknowledged.as_ref().or(source.positions.durable.as_ref());
            (match safe { Some(at) => html! { span class="place" { (at.file) } }, None => place(None) })
        }
    }
}

/// The page around the parts.
pub(super) fn body(view: &View) -> Markup {
    html! {
        h1 id="headline" aria-live="polite" { (view.part("headline")) }
        div id="problems" { (view.part("problems")) }
        div id="burned" { (view.part("burned")) }
        dl id="figures" class="figures" { (view.part("figures")) }
        section aria-labelledby="h-sources" {
            h2 id="h-sources" { "Sources" }
            div class="scroll" tabindex="0" role="group" aria-labelledby="h-sources" {
                table class="sources" {
                    caption class="unseen" { "Sources, the worst first" }
                    thead { tr {
                        th scope="col" { "Source" } th scope="col" { "State" } th scope="col" { "Semi-sync" }
                        th scope="col" class="number" { "Behind" } th scope="col" class="number" { "Transactions" }
                        th scope="col" class="number" { "Acknowledged in, median / p99" } th scope="col" { "Safe up to file" }
                    } }
                    tbody id="sources" data-child="tr" {
                        @for id in view.children("sources") { tr id=(id) { (view.part(id)) } }
                    }
                }
            }
        }
        section aria-labelledby="h-readers" { h2 id="h-readers" { "Readers" } div id="readers" { (view.part("readers")) } }
        section aria-labelledby="h-events" { h2 id="h-events" { "Last events" } div id="events" { (view.part("events")) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_the_digits_that_count() {
        assert_eq!([0.0, 0.25, 12.34, 1234.4].map(per_second), ["0/s", "0.2/s", "12.3/s", "1,234/s"]);
        assert_eq!([5, 61, 7260].map(rough), ["less than a minute", "1 min", "2 h 1 min"]);
    }
}
