//! What a relaxed source gains and risks.

use super::comparison::{Column, parts};
use super::rotation;
use crate::outline::Part;
use crate::point::virtual_replica::{Configuration, FSYNC_MODE_1};
use crate::results::run::Run;
use crate::results::statistics::Figures;

const RISK: &str = "What it risks: after a crash of the source's machine its last transactions are in binlogd alone. Clients must \
                    not write to that server, or to a replica in its place, before it was completed from binlogd. And while \
                    commits need not wait for binlogd (a short timeout, semi-sync off, AFTER_COMMIT for readers) nothing keeps \
                    them. It is safe only with every setting of docs/durability.md, “A relaxed source” \
                    (docs/durability.md#a-relaxed-source): read that before you set it.";

/// What the study's cells of some seconds do not show.
fn rotations() -> String {
    format!(
        "And at each rotation of its log a relaxed source stands until the file is on its disk: 0.6 s with files of 1 GiB \
         where it was measured, 10.7 s on a disk of 100 MB/s (docs/measured/lab-findings.md#rotation-stall). binlogd does \
         not take that away. “{}” has what was measured of it here, or how to measure it.",
        rotation::QUESTION
    )
}

/// From a run of `virtual-replica`.
pub(super) fn advice(run: &Run) -> Vec<Part> {
    let figures = Figures::of(run);
    let column = |head, to: Configuration, value| Column::new(head, Configuration::Relaxed, to, value);
    let mut all = Vec::new();
    for panel in figures.panels() {
        let columns = [
            column("transactions a second, against a source that syncs, alone", Configuration::Alone, "tps"),
            column("against a source that syncs, with binlogd", FSYNC_MODE_1, "tps"),
            column("99 % took, against a source that syncs, with binlogd", FSYNC_MODE_1, "p99_ms"),
        ];
        all.extend(parts(
            &figures,
            panel,
            "sync_binlog 0 and innodb_flush_log_at_trx_commit 2, with binlogd at fsync_mode 1",
            &columns,
        ));
    }
    all.push(Part::Text(RISK.to_owned()));
    all.push(Part::Text(rotations()));
    all
}
