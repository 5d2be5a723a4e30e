//! What the report shows.

use crate::outline::{Entry, Part, Table};
use crate::parts::sweep::{self, Sweep};
use crate::parts::times;
use crate::point::semi_sync_cost::{Configuration, SYNC_RELAY_LOG};
use crate::reference::semi_sync_cost as published;
use crate::results::run::Run;
use crate::results::statistics::Figures;

pub(super) fn outline(run: &Run) -> Vec<Part> {
    let published = [
        published::asynchronous(Configuration::Asynchronous),
        published::semi_synchronous(Configuration::AfterSync),
    ];
    let setting = |name: &str| run.order.settings.0.get(name).cloned().unwrap_or_default();
    let mut parts = vec![Part::Text(format!(
        "One source with two replicas that apply, {} warehouses, {} s for each cell, no keying or thinking times. {} \
         share this machine{}, so each pays for what the others do; in the published study each had a \
         machine of its own. A replica syncs its relay log every {SYNC_RELAY_LOG} events, MySQL's default: \
         its acknowledgement means received, not durable. binlogd acknowledges what is durable (fsync_mode 1).",
        setting("warehouses"),
        setting("seconds"),
        if run.order.is_of_users_servers() {
            "The replicas, binlogd and the load, and the source where it is not elsewhere,"
        } else {
            "The source, the replicas, binlogd and the load"
        },
        if run.order.apart.is_nothing() { " and its disk" } else { ", but for what was set apart" }
    ))];
    parts.extend(sweep::parts(
        run,
        &Sweep {
            title: "TpmC",
            value: "tpmc",
            unit: "NEW_ORDER transactions/min",
            digits: 0,
            baseline: Some(&Configuration::Asynchronous.into()),
            published: &published,
        },
    ));
    parts.extend(times::NEW_ORDER.parts(run, Some(&Configuration::Asynchronous.into())));
    parts.extend(lag(run));
    parts
}

/// How far the replicas were behind, and what was done about it.
fn lag(run: &Run) -> Vec<Part> {
    let figures = Figures::of(run);
    let mut rows = Vec::new();
    for point in figures.points() {
        let mib = |value: &str| match figures.median(point, value) {
            Ok(spread) => Entry::Median {
                median: spread.median / f64::from(1 << 20),
                range: (spread.range.0 / f64::from(1 << 20), spread.range.1 / f64::from(1 << 20)),
                digits: 2,
            },
            Err(_) if point.configuration == Configuration::Binlogd.into() => {
                Entry::Missing("binlogd stands in its place".to_owned())
            }
            Err(reason) => Entry::Missing(reason.to_string()),
        };
        let anew =
            figures.cells(point).filter(|cell| cell.measured.values.get("began_anew") == Some(&1.0)).count();
        rows.push(vec![
            Entry::Text(point.panel.server.clone()),
            Entry::Number(f64::from(point.threads), 0),
            Entry::Text(point.configuration.to_string()),
            mib("first_behind_bytes"),
            mib("second_behind_bytes"),
            sweep::entry(figures.median(point, "level_after_s"), 1),
            sweep::entry(figures.median(point, "source_wait_us"), 0),
            Entry::Number(anew as f64, 0),
        ]);
    }
    let columns = [
        "server",
        "threads",
        "configuration",
        "first replica behind (MiB)",
        "second replica behind (MiB)",
        "level after (s)",
        "source's wait (µs)",
        "rounds begun anew",
    ];
    vec![Part::Table(Table::new(
        "How far the replicas were behind at the end of the load",
        &columns,
        rows,
        &[
            "After each cell both replicas apply what is left before the next begins; where they did not get there in \
             time they begin anew at the end of the log, and rows that they miss are passed over.",
            "The source's wait is its own average over the waits for an acknowledgement.",
        ],
    ))]
}
