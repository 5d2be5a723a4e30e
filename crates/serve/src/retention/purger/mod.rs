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
mod tests;
