//! The server of a scene on its disk, and a cell.

use super::stall::{Course, Stall};
use crate::lab::Lab;
use crate::load::log_filler::{LogFiller, Outcome};
use crate::load::rotations::Rotations;
use crate::machine::dirty_pages::{self, DirtyPages};
use crate::machine::disk_limit::DiskLimit;
use crate::machine::file_system::{Kind, Volume};
use crate::machine::folders;
use crate::model::{Fact, Measured, Order};
use crate::point::disk::Disk;
use crate::point::rotation_stall::{Beside, Configuration};
use crate::point::{Condition, Point};
use crate::receiver::{Attachment, Binlogd, binlogd};
use crate::server::Target;
use crate::server::semi_sync::WaitPoint;
use crate::study::Scene;
use crate::window::{Place, Readings, Window, measure_window};
use anyhow::{Context, bail};
use rig::statistics::median;
use std::path::PathBuf;
use std::time::Duration;

/// Of the server. Hardly anything goes into it: the log is what is written.
const REDO_LOG_MIB: u32 = 512;
/// What an image has beside the log of a cell: data, redo log, the file system's own.
const ROOM: u64 = 2 << 30;
/// Longest answer of the server outside of loads: it syncs its log when a new one is begun.
const ANSWER_MAX: Duration = Duration::from_secs(600);
/// Of the load before the first cell, which is not counted.
const WARM_UP_SECONDS: u64 = 1;

/// What can be measured where no disk can be limited.
const WITHOUT_LIMIT: &str = "--set disks=here measures on the lab's own disk alone";

/// A scene that is set up. Dropped in this order: the limit is lifted when the server is gone, and before its disk goes.
#[derive(Debug)]
pub(super) struct Stage {
    source: Target,
    /// The server's data folder.
    data: PathBuf,
    limit: Option<DiskLimit>,
    filler: LogFiller,
    seconds: u64,
    interval: Duration,
    lab: Lab,
    volume: Volume,
    /// Of binlogd, where that has a folder of its own.
    receivers: Option<tempfile::TempDir>,
}

impl Stage {
    /// Makes the disk, starts the server of that name on it, and fills its tables.
    pub(super) fn set_up(order: &Order, scene: &Scene, name: &str, lab: &Lab) -> anyhow::Result<Stage> {
        let settings = &order.settings;
        let configurations: Vec<Configuration> = scene.configurations()?;
        if configurations.iter().any(|one| one.dirty_bytes().is_some()) {
            DirtyPages::may_be_limited()?;
        }
        let first = &scene.cells.first().context("a scene without cells")?.point.panel;
        let Condition::Disk(disk) = first.condition else { bail!("{first} names no disk") };
        let filler = LogFiller::of(settings)?;
        let seconds: u64 = settings.get("seconds")?;
        let (volume, limit) = match disk {
            Disk::Here => (Volume::mount(lab, Kind::Here, 0)?, None),
            Disk::Limited { mb_s } => {
                let volume = Volume::mount(lab, Kind::Ext4, filler.pace * seconds * 5 / 4 + ROOM);
                let volume = volume.context(WITHOUT_LIMIT)?;
                let limit =
                    DiskLimit::set(lab, &volume, u64::from(mb_s) * 1_000_000).context(WITHOUT_LIMIT)?;
                (volume, Some(limit))
            }
        };
        (lab.say)(&format!("starting {name} on {disk}"));
        let relaxed =
            ["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=256M"];
        let mut source =
            Target::start(lab, name, volume.path().join("source"), None, &relaxed.map(str::to_owned))?;
        let dialect = source.dialect();
        source.create_database()?;
        filler.prepare(&mut source)?;
        source.query(dialect.reset_logs())?;
        source.stop()?;
        let mut options = relaxed.map(str::to_owned).to_vec();
        options.extend([dialect.redo_log_option(REDO_LOG_MIB), "--binlog-row-image=FULL".to_owned()]);
        source.restart(&options)?;
        if let Some((limit, pid)) = limit.as_ref().zip(source.pid()) {
            limit.hold_for(pid)?;
        }
        source.session().set_timeout(ANSWER_MAX);
        source.make_room(filler.threads(), 0)?;
        if configurations.iter().any(|one| one.beside == Beside::Binlogd) {
            source.prepare_semi_sync(WaitPoint::AfterSync)?;
        }
        let data = source.data_dir().context("a user's server has no folder here")?;
        let interval = Duration::from_millis(settings.get("sample_ms")?);
        filler.load(lab, &mut source, &data, WARM_UP_SECONDS, interval)?;
        let receivers = folders::of_receivers(lab, "rotation-stall")?;
        Ok(Stage { source, data, limit, filler, seconds, interval, lab: lab.clone(), volume, receivers })
    }
}

impl crate::study::Stage for Stage {
    fn facts(&mut self) -> anyhow::Result<Vec<Fact>> {
        let mut facts = self.source.facts()?;
        facts.push(self.filler.fact());
        facts.extend(self.volume.facts());
        facts.extend(self.limit.as_ref().map(DiskLimit::fact));
        facts.extend(dirty_pages::facts());
        Ok(facts)
    }

    fn measure(&mut self, point: &Point, _round: u32) -> anyhow::Result<Measured> {
        let configuration: Configuration = (&point.configuration).try_into()?;
        let interrupt = self.lab.interrupt.clone();
        let limits = configuration.dirty_bytes();
        let dirty = limits.map(|(from, most)| DirtyPages::limit(&self.lab, from, most)).transpose()?;
        let mut measured = measure_window(&mut Turn { stage: self, configuration }, &interrupt)?;
        let lifted = [
            dirty.as_ref().map(DirtyPages::not_in_force).transpose()?.flatten(),
            self.limit.as_ref().map(DiskLimit::not_in_force).transpose()?.flatten(),
        ];
        if let Some(why) = lifted.into_iter().flatten().next() {
            measured.refuse(why);
        }
        Ok(measured)
    }
}

/// A cell in its turn.
struct Turn<'a> {
    stage: &'a mut Stage,
    configuration: Configuration,
}

impl Window for Turn<'_> {
    type Source = Target;
    type Attached = Attachment;
    type Outcome = Outcome;

    fn source(&mut self) -> &mut Target {
        &mut self.stage.source
    }

    fn semi_sync(&self) -> bool {
        self.configuration.beside == Beside::Binlogd
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("sync_binlog", self.configuration.every.to_string()),
            ("innodb_flush_log_at_trx_commit", "2".to_owned()),
            ("max_binlog_size", self.configuration.file_bytes().to_string()),
            ("binlog_row_image", "FULL".to_owned()),
        ]
    }

    fn attach(&mut self, _: &Place) -> anyhow::Result<Attachment> {
        if !self.semi_sync() {
            return Ok(Attachment::Nothing);
        }
        let Stage { source, lab, volume, receivers, .. } = &mut *self.stage;
        let dir = receivers.as_ref().map_or(volume.beside(), tempfile::TempDir::path);
        let options = binlogd::Options { fsync_mode: 1, semi_sync: true, tls: false };
        Binlogd::attach(lab, source, options, dir).map(|one| Attachment::Binlogd(Box::new(one)))
    }

    fn not_in_force(&mut self, attachment: &mut Attachment) -> anyhow::Result<Option<String>> {
        let semi_sync = self.semi_sync();
        attachment.not_in_force(&mut self.stage.source, semi_sync)
    }

    fn complaint(&mut self, attachment: &mut Attachment) -> String {
        attachment.complaint()
    }

    fn load(&mut self, _: &mut Attachment) -> anyhow::Result<Outcome> {
        let Stage { source, data, filler, seconds, interval, lab, .. } = &mut *self.stage;
        filler.load(lab, source, data, *seconds, *interval)
    }

    fn read_back(
        &mut self,
        _: &mut Attachment,
        outcome: Outcome,
        readings: &Readings,
        measured: &mut Measured,
    ) -> anyhow::Result<()> {
        let Stage { data, seconds, interval, .. } = &*self.stage;
        measured.put("binlog_bytes", readings.log_bytes() as f64);
        let rotations = Rotations::since(outcome.began, data)?;
        put(&outcome, &rotations, *seconds as f64, interval.as_secs_f64(), measured);
        Ok(())
    }

    fn detach(&mut self, attachment: Attachment) -> anyhow::Result<()> {
        // Ended here, before the source is waited for.
        drop(attachment);
        let Stage { source, lab, .. } = &mut *self.stage;
        source.drop_dumps(&lab.interrupt)
    }
}

/// What a load of `seconds` came to, looked at in intervals.
fn put(outcome: &Outcome, rotations: &Rotations, seconds: f64, interval: f64, measured: &mut Measured) {
    let Some(times) = outcome.times() else { return measured.refuse("no small row was committed") };
    times.put_into(measured, "small_");
    measured.put("small_count", outcome.small.len() as f64);
    measured.put("tps", outcome.small.len() as f64 / seconds);
    measured.put("large_tps", outcome.large.len() as f64 / seconds);
    let course = Course::of(outcome, seconds, interval);
    measured.put("log_mb_s", course.log_mb_s.iter().sum::<f64>() * interval / seconds);
    measured.put("slow_share", course.slow_share());
    // Seconds since the load began. Those after its end are its last commits'.
    let moments: Vec<f64> = rotations.times.iter().map(|time| time - outcome.began).collect();
    let moments: Vec<f64> = moments.into_iter().filter(|moment| *moment < seconds).collect();
    measured.put("rotations", moments.len() as f64);
    if let Some(period) = rotations.period() {
        measured.put("rotation_period_s", period);
    }
    put_stalls("stall", &course.stalls(&moments), measured);
    put_stalls("between", &course.between(&moments), measured);
    let ended = (1..=course.tps.len()).map(|index| index as f64 * interval).collect();
    for (name, series) in [
        ("sample_ended_s", ended),
        ("tps", course.tps),
        ("longest_ms", course.longest_ms),
        ("log_mb_s", course.log_mb_s),
        ("rotation_s", moments),
    ] {
        measured.series.insert(name.to_owned(), series);
    }
}

/// The median over moments, and the worst.
fn put_stalls(name: &str, stalls: &[Stall], measured: &mut Measured) {
    if stalls.is_empty() {
        return;
    }
    let mut put = |what: &str, value: fn(&Stall) -> f64, worst: fn(f64, f64) -> f64| {
        let values = || stalls.iter().map(value);
        measured.put(&format!("{name}_{what}"), median(values()));
        measured.put(&format!("{name}_{what}_worst"), values().reduce(worst).unwrap_or_default());
    };
    put("lowest", |stall| stall.lowest, f64::min);
    put("seconds", |stall| stall.seconds, f64::max);
    put("longest_ms", |stall| stall.longest_ms, f64::max);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::log_filler::Commit;

    #[test]
    fn a_load_is_told_by_its_rotations() {
        let commit = |index: u32| {
            let began = f64::from(index) / 100.0;
            // At 5 s a second of standstill.
            Commit { began, ended: if (5.0..6.0).contains(&began) { 6.0 } else { began + 0.001 } }
        };
        let small = (0..1000).map(commit).collect();
        let growth = vec![(0.0, 0), (10.0, 600_000_000)];
        let outcome = Outcome { began: 100.0, small, large: Vec::new(), growth };
        let rotations = Rotations { times: vec![105.0, 112.0], bytes: vec![3e8, 3e8] };
        let mut measured = Measured::default();
        put(&outcome, &rotations, 10.0, 0.1, &mut measured);
        let value = |name: &str| measured.values[name];
        assert_eq!((value("rotations"), value("stall_lowest"), value("between_seconds")), (1.0, 0.0, 0.0));
        assert!((value("stall_longest_ms") - 1000.0).abs() < 1.0 && value("between_longest_ms") < 2.0);
        assert!((value("log_mb_s") - 60.0).abs() < 1e-6 && value("stall_seconds_worst") > 0.8);
        assert_eq!(measured.series["tps"].len(), measured.series["sample_ended_s"].len());
        assert_eq!(measured.invalid, None);
        put(&Outcome::default(), &Rotations::default(), 1.0, 0.1, &mut measured);
        assert!(measured.invalid.is_some());
    }
}
