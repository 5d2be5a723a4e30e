//! The tables of ratios: to no binary log, to `sync_binlog 1`, and of binlogd to the same without it.

use super::{Place, View, head, number};
use crate::outline::{Entry, Table};
use crate::parts::sweep::{RATIO_DIGITS, entry};
use crate::point::place::Files;
use crate::point::sync_binlog::Configuration;
use crate::reference::sync_binlog::{FileSystem, ratio_to_no_binlog, tps};

/// The baseline where the log is always written.
const ONE: Configuration = Configuration::Sync { every: 1, attached: false };

impl View<'_> {
    /// None where nothing was measured without a binary log.
    pub(super) fn ratios(&self) -> Option<Table> {
        let places: Vec<&Place> = self.panels.iter().filter(|place| place.files != Files::Users).collect();
        let mut columns = head(&["server", "file system", "buffer pool"]);
        let configurations: Vec<Configuration> = self
            .configurations()
            .into_iter()
            .filter(|one| *one != Configuration::NoBinaryLog && !one.attached())
            .collect();
        for configuration in &configurations {
            columns.extend([configuration.to_string(), format!("{configuration}, published")]);
        }
        let row = |place: &&Place| {
            let mut row = place.entries();
            for configuration in &configurations {
                let point = place.panel.point(*configuration, self.threads);
                row.push(entry(self.figures.ratio(&point, Configuration::NoBinaryLog, "tps"), RATIO_DIGITS));
                let published = place.published().and_then(|kind| {
                    ratio_to_no_binlog(&configuration.published(), place.pool.share()?, kind)
                });
                row.push(number(published, RATIO_DIGITS));
            }
            row
        };
        let rows = places.iter().map(row).collect();
        let notes = ["Made within each round. The published ratios are those of the study's second table."];
        (!places.is_empty()).then(|| self.table("Throughput, ratio to no binary log", columns, rows, &notes))
    }

    /// What takes the place of [`View::ratios`] for users' servers; none without these, nor where sync_binlog 1 was not
    /// among the settings that were asked for.
    pub(super) fn ratios_to_one(&self) -> Option<Table> {
        if !self.configurations().contains(&ONE) {
            return None;
        }
        let places: Vec<&Place> = self.panels.iter().filter(|place| place.files == Files::Users).collect();
        let configurations: Vec<Configuration> = self
            .configurations()
            .into_iter()
            .filter(|one| ![ONE, Configuration::NoBinaryLog].contains(one) && !one.attached())
            .collect();
        let mut columns = head(&["server", "file system", "buffer pool"]);
        for one in &configurations {
            columns.extend([
                one.to_string(),
                format!("{one}, published, ext4"),
                format!("{one}, published, XFS"),
            ]);
        }
        let row = |place: &&Place| {
            let mut row = place.entries();
            for configuration in &configurations {
                let point = place.panel.point(*configuration, self.threads);
                row.push(entry(self.figures.ratio(&point, ONE, "tps"), RATIO_DIGITS));
                for kind in [FileSystem::Ext4, FileSystem::Xfs] {
                    let published = |one: Configuration| tps(&one.published(), place.pool.share()?, kind);
                    let ratio =
                        published(*configuration).zip(published(ONE)).map(|(over, under)| over / under);
                    row.push(number(ratio, RATIO_DIGITS));
                }
            }
            row
        };
        let rows = places.iter().map(row).collect();
        let notes = [
            "Made within each round. A user's server is not measured without a binary log, which needs a restart: \
             what the log itself costs cannot be told there.",
            "Which of the published file systems comes nearest to the server's own is not known here.",
        ];
        (!places.is_empty() && !configurations.is_empty())
            .then(|| self.table("Throughput, ratio to sync_binlog 1", columns, rows, &notes))
    }

    /// What binlogd adds; none where it was not attached.
    pub(super) fn attached(&self) -> Option<Table> {
        let attached: Vec<Configuration> =
            self.configurations().into_iter().filter(|one| one.attached()).collect();
        let mut rows = Vec::new();
        for place in &self.panels {
            for configuration in &attached {
                let Configuration::Sync { every, .. } = *configuration else { continue };
                let alone = Configuration::Sync { every, attached: false };
                let point = place.panel.point(*configuration, self.threads);
                let ratio = |baseline: Configuration| {
                    entry(self.figures.ratio(&point, baseline, "tps"), RATIO_DIGITS)
                };
                let mut row = place.entries();
                row.push(Entry::Number(f64::from(every), 0));
                row.extend([
                    entry(self.figures.median(&point, "tps"), 0),
                    ratio(alone),
                    ratio(ONE),
                    place.unless_silent(Configuration::NoBinaryLog, ratio(Configuration::NoBinaryLog)),
                ]);
                rows.push(row);
            }
        }
        let columns = head(&[
            "server",
            "file system",
            "buffer pool",
            "sync_binlog",
            "transactions a second",
            "to the same without binlogd",
            "to sync_binlog 1 without binlogd",
            "to no binary log",
        ]);
        let notes =
            ["Not in the published study. The three last columns are ratios, made within each round."];
        (!rows.is_empty()).then(|| self.table("With binlogd attached by semi-sync", columns, rows, &notes))
    }
}
