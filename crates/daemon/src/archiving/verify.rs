//! Verifies the archive on a schedule: a thread a source that nobody waits for, and that stands back behind the uploads.
//!
//! One source after the other is verified, one object at a time, with rests in between ([`archive::store::gentle`]). What was found, when
//! the next run is due and which sample it reads stands in a small file in the source's folder, so that restarts change nothing.
//! Samples in which an object was damaged are read again each time until they are sound: else the next sample would hide it.

use crate::keeper::{Chore, Keeper, Retry};
use archive::reader::Reader;
use archive::store::StoreError;
use archive::upkeep::scrub::{Depth, Report, scrub};
use binlog::format::read_toml;
use binlog::storage::Storage;
use binlog::timeline::index::replace_file;
use binlog::writer::published::Published;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use source::stop::StopSignal;
use status::{ArchiveFinding, ArchiveVerify, LastError, Level, SourceMonitor, units};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

/// Name of the file in a source's folder.
const REMEMBERED_FILE: &str = "archive_verify.toml";

const HEAD: &str =
    "# What the last verification of the archive found, and when the next is due; see docs/status.md.\n";

/// Longest pause between two looks whether a run is due; the shortest is a second.
const PAUSE_MAX: Duration = Duration::from_secs(30);
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// A run that could not be brought to its end is begun again after so long, or after the interval where that is shorter; each time
/// twice as long, up to the second: what came of one request must not be read again all the time.
const RETRY_MIN: Duration = Duration::from_secs(10);
const RETRY_MAX: Duration = Duration::from_secs(600);

/// So many findings are shown.
const FINDINGS_SHOWN: usize = 5;

/// So many damaged samples are read again each time.
const AGAIN_MAX: usize = 16;

/// How often what is verified, and how much of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schedule {
    pub(crate) interval: Duration,
    /// One of so many objects is read.
    pub(crate) every: u32,
}

/// What the thread works on.
pub(crate) struct Verifier {
    /// The source.
    pub(crate) source: String,
    /// The source's folder.
    pub(crate) folder: PathBuf,
    pub(crate) storage: Arc<dyn Storage>,
    /// The folder is this process's while something is published.
    pub(crate) published: Arc<Published>,
    pub(crate) monitor: Arc<SourceMonitor>,
    /// What reads the objects; it ends when it is asked to.
    pub(crate) reader: Reader,
    /// Whether objects are decrypted and unpacked as well.
    pub(crate) opens: bool,
    /// The archive's place in words.
    pub(crate) place: String,
    pub(crate) schedule: Schedule,
    /// Where new snapshots are asked for, in the place of damaged ones.
    pub(crate) snapshots_wanted: Arc<AtomicUsize>,
    /// Held by the source that is verified.
    pub(crate) turn: Arc<Mutex<()>>,
}

/// What a run leaves to the next, whichever process makes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Remembered {
    /// Of which archive.
    place: String,
    /// With which sample; see [`Schedule::every`].
    every: u32,
    /// Which comes next.
    next: usize,
    /// Which were damaged.
    again: Vec<usize>,
    last: ArchiveVerify,
}

struct Verifies {
    verifier: Verifier,
    /// `None` until the folder is this process's.
    remembered: Option<Remembered>,
    retry: Retry,
}

impl Chore for Verifies {
    const NICE: i32 = 19;

    fn round(&mut self, stop: &StopSignal) -> Duration {
        let (verifier, now) = (&self.verifier, Timestamp::now());
        let Some(remembered) = &mut self.remembered else {
            if verifier.published.live().is_none() {
                return PAUSE_MIN;
            }
            let remembered = self.remembered.insert(verifier.recall(now));
            verifier.publish(remembered);
            return verifier.pause(remembered, now);
        };
        if remembered.last.due.is_some_and(|due| now < due) {
            return verifier.pause(remembered, now);
        }
        let Some(_turn) = verifier.wait_for_turn(stop) else { return PAUSE_MIN };
        match verifier.run(remembered, stop) {
            Some(pause) => {
                self.retry.went_well();
                pause
            }
            None => verifier.short(self.retry.failed()),
        }
    }

    /// "Sound" must not stay.
    fn has_failed(&mut self) {
        let message = "an internal error of binlogd ended the verification; see its log, restart it, and please report it";
        let error = LastError { at: Timestamp::now(), message: message.to_owned() };
        let archive = &self.verifier.monitor.archive;
        archive.update(|status| status.verify.get_or_insert_default().error = Some(error));
    }
}

impl Verifier {
    /// Verifies on a thread.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(crate) fn start(self) -> io::Result<Keeper> {
        self.monitor.archive.update(|status| status.verify = Some(ArchiveVerify::default()));
        let name = format!("verify-{}", self.source);
        let retry = Retry::new(RETRY_MIN, RETRY_MAX);
        Keeper::start(name, Duration::ZERO, Verifies { verifier: self, remembered: None, retry })
    }

    fn pause(&self, remembered: &Remembered, now: Timestamp) -> Duration {
        let left = remembered.last.due.map_or(SignedDuration::ZERO, |due| due.duration_since(now));
        Duration::try_from(left).unwrap_or_default().clamp(PAUSE_MIN, PAUSE_MAX)
    }

    /// `None` when it is to end.
    fn wait_for_turn(&self, stop: &StopSignal) -> Option<MutexGuard<'_, ()>> {
        loop {
            match self.turn.try_lock() {
                Ok(turn) => return Some(turn),
                Err(TryLockError::Poisoned(turn)) => return Some(turn.into_inner()),
                Err(TryLockError::WouldBlock) if stop.wait(PAUSE_MIN) => return None,
                Err(TryLockError::WouldBlock) => {}
            }
        }
    }

    /// No longer than the interval.
    fn short(&self, pause: Duration) -> Duration {
        self.schedule.interval.min(pause).max(PAUSE_MIN)
    }

    /// Verifies once; gives the pause before the next look, and `None` when the store did not let it.
    fn run(&self, remembered: &mut Remembered, stop: &StopSignal) -> Option<Duration> {
        let began = Timestamp::now();
        match self.verify(remembered) {
            Err(_) if stop.is_requested() => return Some(PAUSE_MIN),
            Err(error) => {
                self.failed(remembered, &error);
                return None;
            }
            // Nothing is archived yet.
            Ok(None) => return Some(self.short(PAUSE_MAX)),
            Ok(Some(found)) => {
                self.snapshots_wanted.store(found.report.snapshots_wanted, Ordering::Relaxed);
                self.tell(remembered, &found);
                note(remembered, &found, began, self.schedule);
                self.publish(remembered);
                self.keep(remembered);
            }
        }
        Some(self.pause(remembered, Timestamp::now()))
    }

    /// Everything that the store lists, the next sample, and the samples that were damaged; `None` for an archive in which
    /// nothing is.
    fn verify(&self, remembered: &Remembered) -> Result<Option<Found>, StoreError> {
        let every = self.schedule.every as usize;
        let mut found: Option<Found> = None;
        for from in std::iter::once(remembered.next)
            .chain(remembered.again.iter().copied().filter(|from| *from != remembered.next))
        {
            let depth = if every == 1 { Depth::All } else { Depth::Sample { every, from } };
            let report = scrub(&self.reader, &self.source, depth, self.opens, &|_| {})?;
            // What no key opens is as good as damaged, and the next sample must not hide it either.
            let is_damaged = report.damaged > 0 || !report.locked.is_empty();
            match &mut found {
                None if report.timelines == 0 && report.findings.is_empty() => return Ok(None),
                None => found = Some(Found { report, again: Vec::new() }),
                Some(found) => found.add(report),
            }
            if let Some(found) = found.as_mut().filter(|_| is_damaged) {
                found.again.push(from);
            }
        }
        Ok(found)
    }

    fn failed(&self, remembered: &mut Remembered, error: &StoreError) {
        let source = self.source.as_str();
        let message = error.to_string();
        let before = remembered.last.error.as_ref();
        if before.is_none_or(|before| before.message != message) {
            tracing::warn!(source, "the archive cannot be verified: {message}");
        }
        let at = before.map_or_else(Timestamp::now, |before| before.at);
        remembered.last.error = Some(LastError { at, message });
        self.publish(remembered);
    }

    /// Says what is news, before it is remembered.
    fn tell(&self, remembered: &Remembered, found: &Found) {
        let source = self.source.as_str();
        let damage = found.report.damage();
        let (read, objects) = (found.report.read, found.report.objects);
        match damage.len() {
            0 if remembered.last.findings > 0 => {
                tracing::info!(
                    source,
                    objects,
                    read,
                    "the archive was verified, and no damage is found any more"
                );
                self.monitor.note(Level::Ok, "archive", "the archive was verified: no damage any more");
            }
            0 => tracing::info!(source, objects, read, "the archive was verified: no damage"),
            count => {
                for finding in damage.iter().take(FINDINGS_SHOWN) {
                    tracing::error!(source, "the archive is damaged: {finding}");
                }
                let found = units::counted_were(count as u64, "problem");
                tracing::error!(
                    source,
                    objects,
                    read,
                    "the archive was verified, {found} found (docs/runbook.md, \"The archive is damaged\")"
                );
                if remembered.last.findings == 0 {
                    let text = format!("the archive is damaged, {count} found: {}", damage[0]);
                    self.monitor.note(Level::Critical, "archive", text);
                }
            }
        }
    }

    fn publish(&self, remembered: &Remembered) {
        let verify = remembered.last.clone();
        self.monitor.archive.update(|status| status.verify = Some(verify));
    }

    /// What the run before left. Without it everything begins anew.
    fn recall(&self, now: Timestamp) -> Remembered {
        let path = self.folder.join(REMEMBERED_FILE);
        let anew = || Remembered {
            place: self.place.clone(),
            every: self.schedule.every,
            next: 0,
            again: Vec::new(),
            last: ArchiveVerify { due: Some(now), ..ArchiveVerify::default() },
        };
        let read = read(&*self.storage, &path).unwrap_or_else(|error| {
            let source = self.source.as_str();
            let path = path.display();
            tracing::warn!(
                source,
                "cannot read {path}: {error}; the archive is verified as if for the first time"
            );
            None
        });
        let Some(mut remembered) = read.filter(|remembered| remembered.place == self.place) else {
            let remembered = anew();
            // From now on a run is due, however often binlogd is started before the first.
            self.keep(&remembered);
            return remembered;
        };
        if remembered.every != self.schedule.every {
            (remembered.every, remembered.next, remembered.again) = (self.schedule.every, 0, Vec::new());
        }
        remembered.last.error = None;
        // A shorter interval counts at once, and a clock that went wrong delays nothing for longer than one.
        let latest = later(now, self.schedule.interval);
        remembered.last.due = remembered.last.due.map(|due| due.min(latest)).or(Some(now));
        remembered
    }

    fn keep(&self, remembered: &Remembered) {
        let path = self.folder.join(REMEMBERED_FILE);
        let written = toml::to_string(remembered)
            .map_err(io::Error::other)
            .and_then(|text| replace_file(&*self.storage, &path, (HEAD.to_owned() + &text).as_bytes()));
        if let Err(error) = written {
            let source = self.source.as_str();
            let path = path.display();
            tracing::warn!(
                source,
                "cannot write {path}: {error}; after a restart the archive is verified anew"
            );
        }
    }
}

/// What a run found, over its samples.
struct Found {
    report: Report,
    /// Samples in which an object is damaged.
    again: Vec<usize>,
}

impl Found {
    /// Another sample of the same archive.
    fn add(&mut self, other: Report) {
        self.report.read += other.read;
        self.report.opened += other.opened;
        self.report.damaged += other.damaged;
        for finding in other.findings {
            if !self.report.findings.contains(&finding) {
                self.report.findings.push(finding);
            }
        }
        for (keys, count) in other.locked {
            *self.report.locked.entry(keys).or_default() += count;
        }
    }
}

/// What is remembered of a run that has come to its end.
fn note(remembered: &mut Remembered, found: &Found, began: Timestamp, schedule: Schedule) {
    let report = &found.report;
    let damage = report.damage();
    let shown = damage.iter().take(FINDINGS_SHOWN).map(|finding| ArchiveFinding {
        object: finding.what.clone(),
        range: finding.range.clone(),
        text: finding.text.clone(),
    });
    remembered.next = (remembered.next + 1) % (schedule.every as usize).max(1);
    remembered.again = found.again.iter().copied().take(AGAIN_MAX).collect();
    remembered.last = ArchiveVerify {
        at: Some(began),
        // New snapshots are made now, and looked at soon.
        due: Some(later(
            began,
            if report.snapshots_wanted > 0 { schedule.interval.min(RETRY_MAX) } else { schedule.interval },
        )),
        objects: report.objects as u64,
        objects_read: report.read as u64,
        objects_opened: report.opened as u64,
        findings: damage.len() as u64,
        first_findings: shown.collect(),
        error: None,
    };
}

fn later(at: Timestamp, interval: Duration) -> Timestamp {
    at.checked_add(interval).unwrap_or(Timestamp::MAX)
}

/// `None` where no run has come to its end yet.
fn read(storage: &dyn Storage, path: &Path) -> io::Result<Option<Remembered>> {
    match storage.read_to_string(path) {
        Ok(text) => read_toml(&text).map(Some).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archive::keys::Identities;
    use archive::segment::Opener;
    use archive::store::remote::Folder;
    use binlog::storage::posix::PosixStorage;

    const DAY: Duration = Duration::from_secs(86_400);

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// Of the source in `dir`, whose archive is empty.
    fn verifier(dir: &Path, place: &str, every: u32) -> Verifier {
        let store = Arc::new(Folder::open(&dir.join("store")).unwrap());
        Verifier {
            source: "a".to_owned(),
            folder: dir.to_owned(),
            storage: Arc::new(PosixStorage),
            published: Arc::default(),
            monitor: Arc::new(SourceMonitor::new("a")),
            reader: Reader { store, opener: Arc::new(Opener::new(Identities::new())) },
            opens: false,
            place: place.to_owned(),
            schedule: Schedule { interval: DAY, every },
            snapshots_wanted: Arc::default(),
            turn: Arc::default(),
        }
    }

    fn report(damaged: usize) -> Report {
        let finding = |number| archive::upkeep::scrub::Finding {
            what: format!("object {number}"),
            range: None,
            text: "damaged".to_owned(),
        };
        let findings = (0..damaged).map(finding).collect();
        Report { findings, timelines: 1, objects: 9, read: 3, damaged, ..Report::default() }
    }

    #[test]
    fn a_restart_goes_on_with_the_next_sample_when_it_is_due() {
        let dir = tempfile::tempdir().unwrap();
        let verifier = verifier(dir.path(), "s3://b", 3);
        let mut remembered = verifier.recall(at(1000));
        assert_eq!((remembered.next, remembered.last.due), (0, Some(at(1000))), "at once");
        assert_eq!(verifier.recall(at(5000)).last.due, Some(at(1000)), "a run is due since the first start");

        let found = Found { report: report(7), again: vec![0] };
        note(&mut remembered, &found, at(6000), verifier.schedule);
        verifier.keep(&remembered);
        let again = verifier.recall(at(7000));
        assert_eq!(again, remembered);
        assert_eq!((again.next, &again.again[..], again.last.due), (1, &[0][..], Some(at(6000 + 86_400))));
        assert_eq!((again.last.findings, again.last.first_findings.len()), (7, FINDINGS_SHOWN));

        // The last sample is followed by the first.
        for from in [2, 0] {
            note(
                &mut remembered,
                &Found { report: report(0), again: Vec::new() },
                at(8000),
                verifier.schedule,
            );
            assert_eq!((remembered.next, remembered.last.findings), (from, 0));
        }
    }

    #[test]
    fn what_another_archive_had_or_a_wrong_clock_wrote_counts_for_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let one = verifier(dir.path(), "s3://b", 3);
        let mut remembered = one.recall(at(0));
        note(&mut remembered, &Found { report: report(1), again: vec![0] }, at(900_000_000), one.schedule);
        one.keep(&remembered);
        assert_eq!(one.recall(at(1000)).last.due, Some(at(1000 + 86_400)), "the clock was years ahead");
        let other_sample = verifier(dir.path(), "s3://b", 4).recall(at(1000));
        assert_eq!((other_sample.next, other_sample.last.findings), (0, 1));
        let elsewhere = verifier(dir.path(), "s3://other", 3).recall(at(1000));
        assert_eq!((elsewhere.next, elsewhere.last.findings, elsewhere.last.due), (0, 0, Some(at(1000))));
        std::fs::write(dir.path().join(REMEMBERED_FILE), "nonsense").unwrap();
        assert_eq!(one.recall(at(1000)).last.due, Some(at(1000)), "begun anew");
    }

    #[test]
    fn an_empty_archive_is_not_called_sound() {
        let dir = tempfile::tempdir().unwrap();
        let verifier = verifier(dir.path(), "s3://b", 3);
        assert!(verifier.verify(&verifier.recall(at(0))).unwrap().is_none());
    }
}
