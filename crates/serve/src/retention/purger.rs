//! One source's copy, as it is purged: by a statement, by the rules.

use super::absence::Absence;
use super::slots::{self, Slot};
use binlog::is_full_disk;
use binlog::purge::lock::PurgeLock;
use binlog::purge::needs::{Need, NeedFrom};
use binlog::purge::order::{LogFile, list};
use binlog::purge::plan::{Plan, Rules, Wanted};
use binlog::purge::unfinished::finish;
use binlog::purge::{Indexes, record, reserve};
use binlog::storage::Storage;
use binlog::writer::published::Published;
use config::RetentionConfig;
use jiff::Timestamp;
use status::SlotStatus;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The place of a slot is written when its reader is in another file, and when so much time has passed: not with each event.
const SLOT_INTERVAL: Duration = Duration::from_secs(60);

/// Somebody who purges by hand waits so long for who keeps files only until something was looked at.
const LOOK_MAX: Duration = Duration::from_secs(5);

/// Pause between two looks whether that is done.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// Nothing is deleted, and slots have their usual limits.
pub const NO_RULES: RetentionConfig = RetentionConfig {
    max_age: None,
    max_bytes: None,
    max_files: None,
    slot_max_age: Duration::from_secs(7 * 86_400),
    slot_max_bytes: None,
    slot_margin: Duration::from_secs(3600),
};

/// The rules of a configuration.
pub fn rules(config: &RetentionConfig) -> Rules {
    let max_files = config.max_files.map(u64::from);
    Rules { max_age: config.max_age, max_bytes: config.max_bytes, max_files }
}

/// Who reads, or keeps the copy's files elsewhere, or has others to compare with them.
pub trait Readers: Send + Sync {
    /// What is needed of this source's files.
    fn needs(&self, source: &str) -> Vec<Need>;

    /// The readers of this source that have a slot.
    fn in_slots(&self, source: &str) -> Vec<InSlot>;

    /// These files, the oldest first, are wanted gone and stay for one of all alone: whoever keeps some of them only until something
    /// has been looked at may look now. True while that goes on.
    fn are_wanted_gone(&self, _source: &str, _files: &[&LogFile]) -> bool {
        false
    }
}

/// A connected reader with a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InSlot {
    /// Name of the slot.
    pub slot: String,
    /// Who it is, over connections; see [`Slot::reader`].
    pub reader: String,
    /// Folder name of the timeline that it reads.
    pub timeline: String,
    /// End of what was written to it.
    pub position: codec::Position,
    /// Time of the newest event that has passed, in seconds since 1970.
    pub event_time: Option<u32>,
}

/// What all have in common who purge one source in this process: what is started again after a reload, and what ends meanwhile.
#[derive(Debug, Default)]
pub struct Gate {
    /// Held while files are recorded as purged, and for a moment by a reader that begins: it is either seen, or finds only what
    /// stays.
    begins: Mutex<()>,
    /// Held by one who purges, while others wait. [`PurgeLock`] refuses those of other processes.
    purges: Mutex<()>,
}

impl InSlot {
    /// Whether the slot is its own, and not of another reader that is away.
    fn is_of(&self, slot: &Slot) -> bool {
        self.slot == slot.name && (slot.reader.is_empty() || slot.reader == self.reader)
    }
}

/// One source's copy, as it is purged.
pub struct Purger {
    source: String,
    folder: PathBuf,
    storage: Arc<dyn Storage>,
    published: Arc<Published>,
    gate: Arc<Gate>,
    /// The thread that received has ended, and the lock of the folder is free.
    has_ended: AtomicBool,
    /// A purge may be recorded and not carried out to its end: one of an earlier process, or one that has failed.
    may_be_unfinished: AtomicBool,
    readers: Mutex<Vec<Weak<dyn Readers>>>,
    limits: Mutex<RetentionConfig>,
    /// Slots, as of the last look: whoever shows them waits for no disk.
    slots: Mutex<Vec<SlotStatus>>,
    absence: Mutex<Absence>,
}

impl Purger {
    /// Of the source in `folder`. `storage` is that of a thread beside the receiving one.
    pub fn new(
        source: &str,
        folder: PathBuf,
        storage: Arc<dyn Storage>,
        published: Arc<Published>,
        limits: RetentionConfig,
        gate: Arc<Gate>,
    ) -> Purger {
        Purger {
            source: source.to_owned(),
            folder,
            storage,
            published,
            gate,
            has_ended: AtomicBool::new(false),
            may_be_unfinished: AtomicBool::new(true),
            readers: Mutex::default(),
            limits: Mutex::new(limits),
            slots: Mutex::default(),
            absence: Mutex::default(),
        }
    }

    /// Name of the source.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// From now on what these need stays.
    pub fn heeds(&self, readers: Weak<dyn Readers>) {
        locked(&self.readers).push(readers);
    }

    /// From now on slots have these limits.
    pub fn set_limits(&self, limits: RetentionConfig) {
        *locked(&self.limits) = limits;
    }

    /// The thread that receives has ended: from now on the lock of the folder is whoever's.
    pub fn receiving_has_ended(&self) {
        self.has_ended.store(true, Ordering::Release);
    }

    /// Whether the copy is open here, so that its lock is this process's, and what is published was read from the disk. Nothing of
    /// another copy is deleted, nor while the disk fails.
    pub fn is_open(&self) -> bool {
        self.published.live().is_some() && !self.has_ended.load(Ordering::Acquire)
    }

    /// A reader begins: to be held while it becomes one of those whose needs are asked for. What it looks for behind that is
    /// either needed, or purged by the record.
    pub(crate) fn reader_begins(&self) -> MutexGuard<'_, ()> {
        locked(&self.gate.begins)
    }

    /// Purges what is wanted and nobody needs; gives what was judged. `why` is recorded.
    ///
    /// # Errors
    /// When the copy cannot be read or changed; `NotFound` for a file that is not there.
    pub fn purge(&self, wanted: &Wanted, why: &str, now: Timestamp) -> io::Result<Plan> {
        if !self.is_open() {
            let what = "the copy is not open: nothing of it is deleted. Of one that is stopped binlogd purge deletes";
            return Err(io::Error::other(what));
        }
        self.carry_out(wanted, why, now, Indexes::OfOlderTimelines)
    }

    /// As [`Purger::purge`], for who holds the lock of the source's folder.
    ///
    /// # Errors
    /// As [`Purger::purge`].
    pub fn purge_stopped(&self, wanted: &Wanted, why: &str, now: Timestamp) -> io::Result<Plan> {
        self.finish()?;
        self.carry_out(wanted, why, now, Indexes::Ours)
    }

    fn carry_out(&self, wanted: &Wanted, why: &str, now: Timestamp, indexes: Indexes) -> io::Result<Plan> {
        // Before the first plan, which looks at files that another purge may be removing.
        let _turn = locked(&self.gate.purges);
        let plan = self.plan_when_looked_at(wanted)?;
        if plan.goes().is_empty() {
            return Ok(plan);
        }
        let _lock = PurgeLock::take(&*self.storage, &self.folder)?;
        match self.carry_out_locked(wanted, why, now, indexes) {
            // The next time that there are rules to look after the space is kept again.
            Err(error) if is_full_disk(&error) && reserve::release(&*self.storage, &self.folder)? => {
                self.carry_out_locked(wanted, why, now, indexes)
            }
            other => other,
        }
    }

    /// A plan, of whose files those who keep them know that they are wanted gone. Who asks for files by name, or by time, waits a
    /// moment for what is looked at then; rules are followed again soon.
    #[allow(clippy::disallowed_methods, reason = "waits a moment for readers, in real time")]
    fn plan_when_looked_at(&self, wanted: &Wanted) -> io::Result<Plan> {
        let until = Instant::now() + LOOK_MAX;
        loop {
            let plan = self.plan(wanted)?;
            let stay: Vec<&LogFile> = plan.kept_by_one().collect();
            let readers = self.readers();
            let mut is_looked_at = false;
            for readers in &readers {
                is_looked_at |= readers.are_wanted_gone(&self.source, &stay);
            }
            if !is_looked_at || matches!(wanted, Wanted::Rules(..)) || Instant::now() >= until {
                return Ok(plan);
            }
            std::thread::sleep(LOOK_PAUSE);
        }
    }

    /// By another plan, now that nobody can begin: what forks took is read twice then, which is rare. What is recorded is none of
    /// the copy's any more, so that readers can begin while the files are removed, which takes long for large ones.
    fn carry_out_locked(
        &self,
        wanted: &Wanted,
        why: &str,
        now: Timestamp,
        indexes: Indexes,
    ) -> io::Result<Plan> {
        let gate = locked(&self.gate.begins);
        let _histories = self.published.histories_stay();
        let plan = self.plan(wanted)?;
        self.may_be_unfinished.store(true, Ordering::Release);
        record(&*self.storage, &plan.goes(), why, now, indexes)?;
        drop(gate);
        finish(&*self.storage, &self.folder)?;
        self.may_be_unfinished.store(false, Ordering::Release);
        Ok(plan)
    }

    /// Keeps some space, so that a purge can be recorded on a full disk.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn keep_reserve(&self) -> io::Result<()> {
        reserve::keep(&*self.storage, &self.folder)
    }

    /// Removes what an earlier purge has recorded and not removed.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub fn finish(&self) -> io::Result<usize> {
        if !self.may_be_unfinished.load(Ordering::Acquire) {
            return Ok(0);
        }
        let _turn = locked(&self.gate.purges);
        let _lock = PurgeLock::take(&*self.storage, &self.folder)?;
        let count = finish(&*self.storage, &self.folder)?;
        self.may_be_unfinished.store(false, Ordering::Release);
        Ok(count)
    }

    /// What would become of each file.
    ///
    /// # Errors
    /// As [`Purger::purge`].
    pub fn plan(&self, wanted: &Wanted) -> io::Result<Plan> {
        let mut needs: Vec<Need> =
            self.published.live().map(|live| read_now(&live.timeline, &live.file)).into_iter().collect();
        let here = self.readers();
        needs.extend(here.iter().flat_map(|readers| readers.needs(&self.source)));
        let connected: Vec<InSlot> = here.iter().flat_map(|readers| readers.in_slots(&self.source)).collect();
        let limits = *locked(&self.limits);
        let (slots, unreadable) = slots::read_all(&*self.storage, &self.folder)?;
        needs.extend(unreadable.into_iter().map(|who| Need { who, from: NeedFrom::Everything }));
        let files = list(&*self.storage, &self.folder)?;
        for slot in &slots {
            let is_connected = connected.iter().any(|reader| reader.is_of(slot));
            if self.why_released(slot, behind(&files, slot), is_connected, &limits).is_none() {
                let before = slots::files_before(&*self.storage, &files, slot, limits.slot_margin)?;
                needs.push(slot.need(before));
            }
        }
        Plan::make(&*self.storage, &self.folder, wanted, &needs)
    }

    /// See [`slots::why_released`]. Where readers can come, they have some time for that first.
    fn why_released(
        &self,
        slot: &Slot,
        behind: Option<u64>,
        is_connected: bool,
        limits: &RetentionConfig,
    ) -> Option<String> {
        let absence = locked(&self.absence);
        if behind.is_some() && !absence.has_settled() && !self.readers().is_empty() {
            return None;
        }
        slots::why_released(slot, behind, is_connected, absence.of(slot), limits)
    }

    fn readers(&self) -> Vec<Arc<dyn Readers>> {
        locked(&self.readers).iter().filter_map(Weak::upgrade).collect()
    }

    /// Writes down where a reader is, now: its connection begins or ends.
    ///
    /// # Errors
    /// When the slot cannot be read or written.
    pub fn remember(&self, reader: &InSlot, now: Timestamp) -> io::Result<()> {
        self.remember_if(reader, now, |_| true)
    }

    /// Whose a slot is; `None` where there is none of that name, or it is nobody's, or cannot be read, which is told elsewhere.
    pub fn owner_of(&self, slot: &str) -> Option<String> {
        let slot = slots::read(&*self.storage, &self.folder, slot).ok().flatten()?;
        Some(slot.reader).filter(|reader| !reader.is_empty())
    }

    fn remember_if(&self, reader: &InSlot, now: Timestamp, is_due: impl Fn(&Slot) -> bool) -> io::Result<()> {
        let _gate = locked(&self.gate.begins);
        let known = slots::read(&*self.storage, &self.folder, &reader.slot)?;
        // The slot of another one that is away keeps what that one has not read.
        if known.as_ref().is_some_and(|known| !reader.is_of(known) || !is_due(known)) {
            return Ok(());
        }
        let made_at = known.map_or_else(|| now.to_string(), |known| known.made_at);
        let slot = Slot {
            name: reader.slot.clone(),
            timeline: reader.timeline.clone(),
            file: reader.position.file.to_string(),
            offset: reader.position.offset,
            event_time: reader.event_time.unwrap_or(0),
            reader: reader.reader.clone(),
            seen_at: now.to_string(),
            absent_seconds: 0,
            made_at,
        };
        slots::write(&*self.storage, &self.folder, &slot)
    }

    /// Writes down where connected readers are that have a slot, where that is due, and looks at all slots.
    ///
    /// # Errors
    /// When a slot, or the copy, cannot be read or written: the first error, behind all that can be done. A place that was not
    /// written down is an older one, which keeps more.
    pub fn look_at_slots(&self, now: Timestamp, at: Instant) -> io::Result<()> {
        let connected: Vec<InSlot> =
            self.readers().iter().flat_map(|readers| readers.in_slots(&self.source)).collect();
        let mut written = Ok(());
        for reader in &connected {
            let is_due = |known: &Slot| {
                *known.file != *reader.position.file
                    || known.timeline != reader.timeline
                    || known.absent_seconds > 0
                    || slots::away(known, now) >= SLOT_INTERVAL
            };
            let result = self.remember_if(reader, now, is_due);
            written = written.and(result);
        }
        let (slots, _) = slots::read_all(&*self.storage, &self.folder)?;
        let is_of_reader = |slot: &Slot| connected.iter().any(|reader| reader.is_of(slot));
        if !self.readers().is_empty() {
            let looked_at = slots.iter().map(|slot| (slot, is_of_reader(slot)));
            let due = locked(&self.absence).look(looked_at, at);
            for slot in due {
                let result = self.write_absence(slot);
                written = written.and(result);
            }
        }
        let files = if slots.is_empty() { Vec::new() } else { list(&*self.storage, &self.folder)? };
        let limits = *locked(&self.limits);
        let shown = slots.iter().map(|slot| {
            let is_connected = is_of_reader(slot);
            let behind_bytes = behind(&files, slot);
            let away_seconds = locked(&self.absence).of(slot).as_secs();
            SlotStatus {
                name: slot.name.clone(),
                source: self.source.clone(),
                position: Some(codec::Position::new(slot.file.as_str(), slot.offset)),
                timeline: slot.timeline.clone(),
                connected: is_connected,
                away_seconds,
                behind_bytes,
                behind_seconds: slots::behind_seconds(slot, behind_bytes, now),
                released: self.why_released(slot, behind_bytes, is_connected, &limits),
            }
        });
        *locked(&self.slots) = shown.collect();
        written
    }

    /// Writes down how long the reader of a slot was away, unless it has come back or the slot is gone.
    fn write_absence(&self, slot: &Slot) -> io::Result<()> {
        let _gate = locked(&self.gate.begins);
        if slots::read(&*self.storage, &self.folder, &slot.name)?.as_ref() != Some(slot) {
            return Ok(());
        }
        let absent_seconds = locked(&self.absence).of(slot).as_secs();
        slots::write(&*self.storage, &self.folder, &Slot { absent_seconds, ..slot.clone() })
    }

    /// Forgets a slot; false when there is none of that name. Not that of a reader that reads now, which would be made again.
    ///
    /// # Errors
    /// When its reader is connected, or the slot cannot be removed.
    pub fn drop_slot(&self, name: &str) -> io::Result<bool> {
        if !slots::is_name(name) {
            return Ok(false);
        }
        let _gate = locked(&self.gate.begins);
        let readers = self.readers();
        if readers.iter().flat_map(|readers| readers.in_slots(&self.source)).any(|reader| reader.slot == name)
        {
            return Err(io::Error::other(
                "its reader is connected: end the reader first, or take its slot from it",
            ));
        }
        let removed = slots::remove(&*self.storage, &self.folder, name)?;
        locked(&self.slots).retain(|slot| slot.name != name);
        Ok(removed)
    }

    /// The slots, as of the last look.
    pub fn slots(&self) -> Vec<SlotStatus> {
        locked(&self.slots).clone()
    }
}

/// What is served as the live file stays, whichever timeline it is of.
fn read_now(timeline: &Path, file: &str) -> Need {
    let timeline = timeline.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let from = NeedFrom::Place { timeline, file: file.to_owned(), before: 0 };
    Need { who: "it is the live file for readers".to_owned(), from }
}

/// Bytes from a slot's place to the end; `None` where its file is not there any more.
pub fn behind(files: &[LogFile], slot: &Slot) -> Option<u64> {
    let at = slots::file_of(files, slot)?;
    Some(files[at..].iter().map(|file| file.bytes).sum::<u64>().saturating_sub(slot.offset))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::folder::timelines;
    use binlog::purge::plan::NoSuchFile;
    use binlog::storage::posix::PosixStorage;
    use binlog::testing::{FileBuilder, SERVER_UUID, first_timeline};
    use binlog::timeline::files::timeline_files;

    const LIMITS: RetentionConfig =
        RetentionConfig { slot_max_age: Duration::from_secs(1000), slot_margin: Duration::ZERO, ..NO_RULES };

    fn name(number: u64) -> String {
        format!("b.{number:06}")
    }

    /// The files 1 to 6.
    fn copy() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let folder = first_timeline(SERVER_UUID).create(&PosixStorage, dir.path(), 1).unwrap();
        for number in 1..=6 {
            let file =
                FileBuilder::new().previous_gtids("").transaction(number, 50).rotate(&name(number + 1));
            std::fs::write(folder.join(name(number)), file.finish()).unwrap();
        }
        (dir, folder)
    }

    fn purger(dir: &Path, limits: RetentionConfig) -> Purger {
        Purger::new("a", dir.to_owned(), Arc::new(PosixStorage), Arc::default(), limits, Arc::default())
    }

    struct One(Mutex<Option<InSlot>>);

    impl Readers for One {
        fn needs(&self, _: &str) -> Vec<Need> {
            Vec::new()
        }

        fn in_slots(&self, _: &str) -> Vec<InSlot> {
            locked(&self.0).iter().cloned().collect()
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn in_slot(folder: &Path, server_id: u32, number: u64, offset: u64) -> InSlot {
        InSlot {
            slot: "warehouse".to_owned(),
            reader: format!("server_id {server_id}"),
            timeline: folder.file_name().unwrap().to_str().unwrap().to_owned(),
            position: codec::Position::new(name(number), offset),
            event_time: Some(900),
        }
    }

    /// A purger that heeds one reader, which can be another one, and a place to look from: the clock is `second` seconds on.
    struct Scene {
        purger: Purger,
        here: Arc<One>,
        began: Instant,
    }

    impl Scene {
        fn new(dir: &Path, limits: RetentionConfig) -> Scene {
            let here: Arc<One> = Arc::new(One(Mutex::new(None)));
            let scene = Scene { purger: purger(dir, limits), here, began: Instant::now() };
            let weak: Weak<dyn Readers> = Arc::downgrade(&(scene.here.clone() as Arc<dyn Readers>));
            scene.purger.heeds(weak);
            scene
        }

        fn is_here(&self, reader: Option<InSlot>) {
            *locked(&self.here.0) = reader;
        }

        fn look(&self, second: u64) {
            let at_second = at(i64::try_from(second).unwrap());
            self.purger.look_at_slots(at_second, self.began + Duration::from_secs(second)).unwrap();
        }

        /// Looks each minute.
        fn looks(&self, seconds: std::ops::RangeInclusive<u64>) {
            seconds.step_by(60).for_each(|second| self.look(second));
        }

        fn goes(&self) -> usize {
            self.purger.plan(&Wanted::To(name(6))).unwrap().goes().len()
        }
    }

    #[test]
    fn a_slot_is_dropped_unless_its_reader_is_here() {
        let (dir, folder) = copy();
        let scene = Scene::new(dir.path(), LIMITS);
        let reader = in_slot(&folder, 2, 4, 100);
        scene.purger.remember(&reader, at(1000)).unwrap();
        scene.is_here(Some(reader));
        scene.look(0);
        let refused = scene.purger.drop_slot("warehouse").unwrap_err().to_string();
        assert!(refused.contains("its reader is connected"), "{refused}");
        assert_eq!(scene.purger.slots().len(), 1);
        scene.is_here(None);
        for nothing in ["other", "../warehouse", ""] {
            assert!(!scene.purger.drop_slot(nothing).unwrap(), "{nothing}");
        }
        assert!(scene.purger.drop_slot("warehouse").unwrap());
        assert!(!scene.purger.drop_slot("warehouse").unwrap(), "it is gone");
        assert!(scene.purger.slots().is_empty(), "and is shown no more, before the next look");
    }

    #[test]
    fn a_slot_keeps_what_its_reader_has_not_read_until_a_limit_releases_it() {
        let (dir, folder) = copy();
        let scene = Scene::new(dir.path(), LIMITS);
        scene.is_here(Some(in_slot(&folder, 2, 4, 100)));
        scene.look(1000);
        assert_eq!(scene.goes(), 2, "what it reads, and the file before");
        // It goes on; within a file the place is written down now and then only.
        scene.is_here(Some(in_slot(&folder, 2, 4, 200)));
        scene.look(1010);
        let slot = || slots::read(&PosixStorage, dir.path(), "warehouse").unwrap().unwrap();
        assert_eq!(slot().offset, 100);
        scene.look(1060);
        assert_eq!(slot().offset, 200);
        // It is gone, and somebody else purges.
        scene.is_here(None);
        scene.look(1100);
        let shown = scene.purger.slots().remove(0);
        assert_eq!((shown.connected, shown.away_seconds, shown.released.as_deref()), (false, 40, None));
        assert_eq!((shown.behind_seconds, shown.behind_bytes > Some(0)), (Some(200), true));
        scene.looks(1160..=2060);
        assert_eq!(scene.goes(), 2);
        assert!(slot().absent_seconds >= 600, "it is written down");
        scene.look(2061);
        assert_eq!(scene.goes(), 4, "it has been away for longer than slot_max_age");
        assert!(scene.purger.slots()[0].released.as_deref().is_some_and(|why| why.contains("slot_max_age")));
        // While it is connected it is not away, however long nothing has changed.
        scene.is_here(Some(in_slot(&folder, 2, 4, 200)));
        scene.look(5000);
        assert_eq!((scene.goes(), slot().absent_seconds), (2, 0));
        scene.purger.set_limits(RetentionConfig { slot_max_bytes: Some(10), ..LIMITS });
        assert_eq!(scene.goes(), 4, "it is behind by more than slot_max_bytes");
        // A file that cannot be understood is no reason to delete anything.
        std::fs::write(dir.path().join("slots/warehouse.toml"), "x").unwrap();
        let plan = scene.purger.plan(&Wanted::To(name(6))).unwrap();
        assert!(
            plan.goes().is_empty() && plan.kept().unwrap().1.iter().any(|why| why.contains("warehouse.toml"))
        );
        let folder = timelines(&PosixStorage, dir.path()).unwrap().remove(0);
        assert_eq!(timeline_files(&PosixStorage, &folder).unwrap().len(), 6);
    }

    /// What a reader could not read because binlogd did not run, or what came before it could come back, is not its fault.
    #[test]
    fn time_in_which_nobody_serves_is_no_absence() {
        let (dir, folder) = copy();
        let before = Scene::new(dir.path(), LIMITS);
        before.is_here(Some(in_slot(&folder, 2, 4, 100)));
        before.look(1000);
        drop(before);
        // A year later, by the clock.
        let after = Scene::new(dir.path(), RetentionConfig { slot_max_bytes: Some(10), ..LIMITS });
        let far = 365 * 86_400;
        after.look(far);
        assert_eq!(after.goes(), 2, "readers have to come back first");
        after.looks(far + 60..=far + 540);
        assert_eq!(after.goes(), 2);
        after.purger.set_limits(LIMITS);
        after.looks(far + 600..=far + 960);
        assert_eq!(after.goes(), 2, "sixteen minutes are less than slot_max_age");
        after.purger.set_limits(RetentionConfig { slot_max_bytes: Some(10), ..LIMITS });
        assert_eq!(after.goes(), 4, "it has had its time");
        // Where no port is served nobody is away.
        let unserved = purger(dir.path(), LIMITS);
        assert_eq!(unserved.plan(&Wanted::To(name(6))).unwrap().goes().len(), 2);
    }

    /// Two readers with one user: what the one that is away has not read is not given up because the other one goes on.
    #[test]
    fn a_slot_is_moved_by_its_own_reader_alone() {
        let (dir, folder) = copy();
        let scene = Scene::new(dir.path(), LIMITS);
        scene.is_here(Some(in_slot(&folder, 2, 3, 100)));
        scene.look(1000);
        scene.is_here(None);
        scene.purger.remember(&in_slot(&folder, 3, 6, 100), at(1010)).unwrap();
        scene.is_here(Some(in_slot(&folder, 3, 6, 200)));
        scene.looks(1060..=1300);
        let slot = slots::read(&PosixStorage, dir.path(), "warehouse").unwrap().unwrap();
        assert_eq!((slot.file, slot.reader.as_str()), (name(3), "server_id 2"));
        assert_eq!(scene.purger.owner_of("warehouse").as_deref(), Some("server_id 2"));
        let shown = scene.purger.slots().remove(0);
        assert_eq!((shown.connected, shown.away_seconds >= 200, scene.goes()), (false, true, 1));
        scene.is_here(Some(in_slot(&folder, 2, 6, 200)));
        scene.look(1310);
        assert_eq!(scene.goes(), 4, "it is its own");
    }

    /// A replica with relay_log_recovery asks again for what it had not applied.
    #[test]
    fn a_slot_keeps_a_margin_of_time_and_bytes() {
        let (dir, folder) = copy();
        let files = list(&PosixStorage, dir.path()).unwrap();
        let mut slot = Slot {
            name: "warehouse".to_owned(),
            timeline: folder.file_name().unwrap().to_str().unwrap().to_owned(),
            file: name(5),
            offset: 100,
            event_time: 1_700_000_000 + 3600,
            reader: String::new(),
            seen_at: String::new(),
            absent_seconds: 0,
            made_at: String::new(),
        };
        let before = |slot: &Slot, files: &[LogFile], margin| {
            slots::files_before(&PosixStorage, files, slot, Duration::from_secs(margin)).unwrap()
        };
        assert_eq!(before(&slot, &files, 0), 1, "no margin is wanted");
        assert_eq!(before(&slot, &files, 60), 4, "all of them are less than the bytes");
        let large: Vec<LogFile> =
            files.iter().map(|file| LogFile { bytes: 10 << 20, ..file.clone() }).collect();
        assert_eq!(before(&slot, &large, 60), 2, "they were sealed long before, and two are enough bytes");
        assert_eq!(before(&slot, &large, 3601), 4, "they were sealed within the margin");
        slot.event_time = 0;
        assert_eq!(before(&slot, &large, 3601), 2);
        slot.file = name(1);
        assert_eq!(before(&slot, &large, 3601), 1, "there is none before");
    }

    #[test]
    fn what_is_published_as_live_stays() {
        let (dir, folder) = copy();
        let purger = purger(dir.path(), LIMITS);
        purger.published.is_at(&folder, Some(&codec::Position::new(name(3), 100)));
        let plan = purger.purge(&Wanted::To(name(6)), "a test", at(1)).unwrap();
        assert_eq!((plan.goes().len(), plan.files.len()), (2, 6));
        assert_eq!(timeline_files(&PosixStorage, &folder).unwrap()[0], name(3));
        assert_eq!(purger.finish().unwrap(), 0);
        // A copy that is not open may be another process's.
        purger.published.withdraw();
        let refused = purger.purge(&Wanted::To(name(6)), "a test", at(1)).unwrap_err();
        assert!(refused.to_string().contains("the copy is not open"), "{refused}");
    }

    /// A rescue, a purge by the command line, or what a reload has left.
    #[test]
    fn nothing_goes_while_another_holds_the_lock_or_the_receiver_has_ended() {
        let (dir, folder) = copy();
        let purger = purger(dir.path(), LIMITS);
        purger.published.is_at(&folder, Some(&codec::Position::new(name(6), 100)));
        let held = PurgeLock::take(&PosixStorage, dir.path()).unwrap();
        let refused = purger.purge(&Wanted::To(name(3)), "a test", at(1)).unwrap_err();
        assert!(refused.to_string().contains("purge.lock"), "{refused}");
        assert_eq!(timeline_files(&PosixStorage, &folder).unwrap().len(), 6);
        drop(held);
        assert_eq!(purger.purge(&Wanted::To(name(3)), "a test", at(1)).unwrap().goes().len(), 2);
        purger.receiving_has_ended();
        let refused = purger.purge(&Wanted::To(name(4)), "a test", at(1)).unwrap_err();
        assert!(refused.to_string().contains("the copy is not open"), "{refused}");
        assert_eq!(timeline_files(&PosixStorage, &folder).unwrap().len(), 4);
    }

    /// Two statements at the same time, or one and the rules: none fails because of the other.
    #[test]
    fn who_purges_waits_for_another_one_of_this_process() {
        let (dir, folder) = copy();
        let gate = Arc::new(Gate::default());
        let purger = || {
            let published: Arc<Published> = Arc::default();
            published.is_at(&folder, Some(&codec::Position::new(name(6), 100)));
            Purger::new("a", dir.path().to_owned(), Arc::new(PosixStorage), published, LIMITS, gate.clone())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (2..=5)
                .map(|number| {
                    let purger = purger();
                    scope.spawn(move || {
                        purger.finish().unwrap();
                        purger.purge(&Wanted::To(name(number)), "a test", at(1)).map(|_| ())
                    })
                })
                .collect();
            for thread in threads {
                match thread.join().unwrap() {
                    // Another one was further already.
                    Err(error) if error.get_ref().is_some_and(|inner| inner.is::<NoSuchFile>()) => {}
                    other => other.unwrap(),
                }
            }
        });
        assert_eq!(timeline_files(&PosixStorage, &folder).unwrap(), [name(5), name(6)]);
    }
}
