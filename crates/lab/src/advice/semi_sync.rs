//! What semi-sync to binlogd costs, and what a real replica costs in its place.

use super::comparison::{Column, parts};
use crate::outline::Part;
use crate::point::semi_sync_cost::Configuration as Cost;
use crate::point::virtual_replica::{Configuration, FSYNC_MODE_0, FSYNC_MODE_1};
use crate::results::run::Run;
use crate::results::statistics::Figures;

/// A replica that promises what binlogd with `fsync_mode` 1 does.
const REPLICA_1: Configuration = Configuration::Replica { sync_relay_log: 1, applying: true };

/// From a run of `virtual-replica`.
pub(super) fn by_receiver(run: &Run) -> Vec<Part> {
    let figures = Figures::of(run);
    let alone = Configuration::Alone;
    let mut all = vec![Part::Text(
        "Against the same source with nobody attached, which is durable on one machine alone. fsync_mode 1 acknowledges \
         what is on binlogd's disk; fsync_mode 0 what it has written, so that a crash of binlogd's machine together with \
         the source's loses the last second."
            .to_owned(),
    )];
    for panel in figures.panels() {
        let columns = [
            Column::new("transactions a second with binlogd, fsync_mode 1", FSYNC_MODE_1, alone, "tps"),
            Column::new("99 % of them took", FSYNC_MODE_1, alone, "p99_ms"),
            Column::new("transactions a second with binlogd, fsync_mode 0", FSYNC_MODE_0, alone, "tps"),
            Column::new(
                "a replica that promises the same (sync_relay_log 1) against fsync_mode 1",
                REPLICA_1,
                FSYNC_MODE_1,
                "tps",
            ),
        ];
        all.extend(parts(&figures, panel, "With a receiver, against the source alone", &columns));
    }
    all
}

/// From a run of `semi-sync-cost`.
pub(super) fn in_place_of_a_replica(run: &Run) -> Vec<Part> {
    let figures = Figures::of(run);
    let mut all = vec![Part::Text(
        "A source with two replicas that apply, one of them semi-synchronous, against the same with binlogd in its place. \
         On one machine a replica less is also less work for the processors that all share."
            .to_owned(),
    )];
    for panel in figures.panels() {
        let columns = [
            Column::new("New-Orders a minute with binlogd instead", Cost::Binlogd, Cost::AfterSync, "tpmc"),
            Column::new("99 % of them took", Cost::Binlogd, Cost::AfterSync, "new_order_p99_ms"),
            Column::new(
                "the semi-sync replica itself, against none",
                Cost::AfterSync,
                Cost::Asynchronous,
                "tpmc",
            ),
        ];
        all.extend(parts(&figures, panel, "binlogd in the place of the semi-sync replica", &columns));
    }
    all
}
