//! Deletes what the rules want gone and nobody needs, and keeps the slots: every few seconds, on a thread that nobody waits for.

use super::keeper::Keeper;
use binlog::purge::plan::{Plan, Rules, Wanted};
use config::RetentionConfig;
use jiff::Timestamp;
use serve::retention::{Gate, Purger, SteadyClock, rules};
use source::stop::StopSignal;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Pause between two looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Following the rules takes at most about this share of the time: one part of work, so many of rest. Where forks took
/// something and files must stay for that, each look reads them.
const REST: u32 = 20;

/// The longest rest: rules that are followed late must not fill the disk.
const REST_MAX: Duration = Duration::from_secs(600);

/// The thread. It ends when this is dropped.
pub(super) struct Retention {
    shared: Arc<Shared>,
    _keeper: Keeper,
}

struct Shared {
    rules: Mutex<RetentionConfig>,
    purgers: Mutex<BTreeMap<String, Arc<Purger>>>,
    /// One a source that there was, so that a source that is started again has the same.
    gates: Mutex<BTreeMap<String, Arc<Gate>>>,
}

/// What the thread remembers from look to look.
#[derive(Default)]
struct Looks {
    /// What was said last of each source, so that nothing is said twice.
    told: BTreeMap<String, String>,
    /// When the rules are to be followed again, of each source.
    next: BTreeMap<String, Instant>,
    clock: SteadyClock,
}

impl Retention {
    /// Starts the thread, with nothing to do yet.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(super) fn start(rules: RetentionConfig) -> io::Result<Retention> {
        let shared =
            Arc::new(Shared { rules: Mutex::new(rules), purgers: Mutex::default(), gates: Mutex::default() });
        let (for_thread, mut looks) = (shared.clone(), Looks::default());
        let keeper = Keeper::start("retention", LOOK_INTERVAL, move |_: &StopSignal| {
            let purgers: Vec<Arc<Purger>> = locked(&for_thread.purgers).values().cloned().collect();
            purgers.iter().for_each(|purger| for_thread.look(purger, &mut looks));
            LOOK_INTERVAL
        })?;
        Ok(Retention { shared, _keeper: keeper })
    }

    /// The gate of a source.
    pub(super) fn gate(&self, source: &str) -> Arc<Gate> {
        locked(&self.shared.gates).entry(source.to_owned()).or_default().clone()
    }

    /// A source is received from now on, or again.
    pub(super) fn add(&self, purger: Arc<Purger>) {
        locked(&self.shared.purgers).insert(purger.source().to_owned(), purger);
    }

    /// A source is not received any more: nothing of it is deleted.
    pub(super) fn remove(&self, source: &str) {
        locked(&self.shared.purgers).remove(source);
    }

    /// Other rules, from now on.
    pub(super) fn set_rules(&self, rules: RetentionConfig) {
        *locked(&self.shared.rules) = rules;
        locked(&self.shared.purgers).values().for_each(|purger| purger.set_limits(rules));
    }
}

impl Shared {
    fn look(&self, purger: &Purger, looks: &mut Looks) {
        let source = purger.source();
        let result = self.look_at(purger, Timestamp::now(), Instant::now(), looks);
        let told = &mut looks.told;
        let news = match result {
            Ok(news) => news,
            Err(error) => Some((true, format!("old files cannot be looked after: {error}"))),
        };
        match news {
            Some((is_wrong, text)) if told.get(source) != Some(&text) => {
                if is_wrong {
                    tracing::warn!(source, "{text}");
                } else {
                    tracing::info!(source, "{text}");
                }
                told.insert(source.to_owned(), text);
            }
            Some(_) => {}
            None => drop(told.remove(source)),
        }
    }

    /// What is worth a line in the log, and whether it is a failure.
    fn look_at(
        &self,
        purger: &Purger,
        now: Timestamp,
        at: Instant,
        looks: &mut Looks,
    ) -> io::Result<Option<(bool, String)>> {
        let is_steady = looks.clock.is_steady(now, at);
        if !purger.is_open() {
            return Ok(None);
        }
        // A full disk takes no place of a slot any more. That must not keep the rules from making room.
        let slots = purger.look_at_slots(now, at);
        let source = purger.source().to_owned();
        if looks.next.get(&source).is_some_and(|next| at < *next) {
            slots?;
            // What was said stands.
            return Ok(looks.told.get(&source).map(|text| (false, text.clone())));
        }
        let began = Instant::now();
        let ruled = self.follow_rules(purger, now, is_steady);
        // Behind the end of the work, which `at` is not.
        let ended = Instant::now();
        looks.next.insert(source, ended + (ended.saturating_duration_since(began) * REST).min(REST_MAX));
        let ruled = ruled?;
        slots?;
        Ok(ruled)
    }

    /// As [`Shared::look_at`], of the rules.
    fn follow_rules(
        &self,
        purger: &Purger,
        now: Timestamp,
        is_steady: bool,
    ) -> io::Result<Option<(bool, String)>> {
        let config = *locked(&self.rules);
        let waits = config.max_age.is_some() && !is_steady;
        let jumped =
            "the clock has jumped: max_age of [retention] waits until it has gone evenly for an hour";
        let rules = Rules { max_age: config.max_age.filter(|_| is_steady), ..rules(&config) };
        if rules.are_none() {
            return Ok(waits.then(|| (true, jumped.to_owned())));
        }
        purger.finish()?;
        // Without it a purge still works, as long as the disk has some space.
        let reserved = purger.keep_reserve();
        let plan = purger.purge(&Wanted::Rules(rules, now), "[retention]", now)?;
        say_what_went(purger.source(), &plan);
        if let Some(error) = reserved.err().filter(|error| !binlog::is_full_disk(error)) {
            return Err(error);
        }
        if waits {
            return Ok(Some((true, jumped.to_owned())));
        }
        Ok(plan.kept().map(|(file, why)| {
            (
                false,
                format!("the rules of [retention] want {} gone, and it stays: {}", file.name, why.join("; ")),
            )
        }))
    }
}

fn say_what_went(source: &str, plan: &Plan) {
    let gone = plan.goes();
    let (Some(first), Some(last)) = (gone.first(), gone.last()) else { return };
    let (files, bytes, from, through) = (gone.len(), plan.bytes(), &first.name, &last.name);
    tracing::info!(source, files, bytes, "purged {from} to {through} by the rules of [retention]");
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::purge::needs::Need;
    use binlog::purge::reserve::RESERVE_FILE;
    use binlog::testing::{FaultyStorage, FileBuilder, SERVER_UUID, first_timeline};
    use binlog::timeline::files::timeline_files;
    use binlog::writer::published::Published;
    use serve::retention::{InSlot, NO_RULES, Readers};
    use std::sync::atomic::Ordering;

    struct InLastFile(InSlot);

    impl Readers for InLastFile {
        fn needs(&self, _: &str) -> Vec<Need> {
            Vec::new()
        }

        fn in_slots(&self, _: &str) -> Vec<InSlot> {
            vec![self.0.clone()]
        }
    }

    /// On a full disk the place of a slot cannot be written down, and the record of a purge only with what was kept for it.
    #[test]
    fn a_full_disk_does_not_keep_the_rules_from_making_room() {
        let dir = tempfile::tempdir().unwrap();
        let disk = FaultyStorage::sound();
        let folder = first_timeline(SERVER_UUID).create(&disk, dir.path(), 1).unwrap();
        let name = |number: u64| format!("b.{number:06}");
        for number in 1..=6 {
            let file =
                FileBuilder::new().previous_gtids("").transaction(number, 50).rotate(&name(number + 1));
            std::fs::write(folder.join(name(number)), file.finish()).unwrap();
        }
        let published = Arc::new(Published::default());
        let place = codec::Position::new(name(6), 100);
        published.is_at(&folder, Some(&place));
        let config = RetentionConfig { max_files: Some(5), slot_margin: Duration::ZERO, ..NO_RULES };
        let storage = Arc::new(disk.clone());
        let purger = Purger::new("a", dir.path().to_owned(), storage, published, config, Arc::default());
        let readers: Arc<dyn Readers> = Arc::new(InLastFile(InSlot {
            slot: "warehouse".to_owned(),
            reader: "server_id 2".to_owned(),
            timeline: folder.file_name().unwrap().to_str().unwrap().to_owned(),
            position: place,
            event_time: None,
        }));
        purger.heeds(Arc::downgrade(&readers));
        let shared = Shared { rules: Mutex::new(config), purgers: Mutex::default(), gates: Mutex::default() };
        let look = |shared: &Shared| {
            shared.look_at(&purger, Timestamp::UNIX_EPOCH, Instant::now(), &mut Looks::default())
        };
        let left = || timeline_files(&disk, &folder).unwrap().len();
        let fail_after = |writes| disk.writes_until_failure.store(writes, Ordering::Relaxed);

        fail_after(0);
        let told = look(&shared).unwrap_err();
        assert!(binlog::is_full_disk(&told), "{told}");
        assert_eq!(left(), 5, "the slot was not written, the rules were followed");
        assert!(!dir.path().join("slots/warehouse.toml").exists());

        look(&shared).unwrap();
        assert!(dir.path().join(RESERVE_FILE).exists());
        *locked(&shared.rules) = RetentionConfig { max_files: Some(4), ..NO_RULES };
        fail_after(0);
        look(&shared).unwrap();
        assert_eq!((left(), dir.path().join(RESERVE_FILE).exists()), (4, false));
        look(&shared).unwrap();
        assert!(dir.path().join(RESERVE_FILE).exists(), "for the next time");
    }

    /// A year by the clock in five seconds by the other one.
    #[test]
    fn a_clock_that_has_jumped_makes_no_file_old() {
        let dir = tempfile::tempdir().unwrap();
        let disk = FaultyStorage::sound();
        let folder = first_timeline(SERVER_UUID).create(&disk, dir.path(), 1).unwrap();
        for number in 1..=4_u64 {
            let file = FileBuilder::new().previous_gtids("").transaction(number, 50);
            std::fs::write(folder.join(format!("b.{number:06}")), file.finish()).unwrap();
        }
        let published = Arc::new(Published::default());
        published.is_at(&folder, Some(&codec::Position::new("b.000004", 100)));
        let config = RetentionConfig { max_age: Some(Duration::from_secs(86_400)), ..NO_RULES };
        let storage = Arc::new(disk.clone());
        let purger = Purger::new("a", dir.path().to_owned(), storage, published, config, Arc::default());
        let shared = Shared { rules: Mutex::new(config), purgers: Mutex::default(), gates: Mutex::default() };
        let (mut looks, began) = (Looks::default(), Instant::now());
        let mut look = |day: i64, seconds: u64| {
            // All files begin at 1,700,000,000.
            let now = Timestamp::from_second(1_700_000_000 + day * 86_400).unwrap();
            let at = began + Duration::from_secs(seconds);
            let told = shared.look_at(&purger, now, at, &mut looks).unwrap();
            (told.map(|(is_wrong, _)| is_wrong), timeline_files(&disk, &folder).unwrap().len())
        };
        assert_eq!(look(0, 0), (None, 4));
        assert_eq!(look(365, 1000), (Some(true), 4), "the clock is not believed");
        assert_eq!(look(365, 2000).1, 4);
        assert_eq!(look(365, 1000 + 2 * 3600).1, 4, "it has stood still meanwhile, which is no better");
        assert_eq!(look(366, 1000 + 2 * 3600 + 86_400).1, 2, "it has gone evenly");
    }

    /// A reload makes another purger while a reader, or a purge, may still be with the one before.
    #[test]
    fn a_source_that_is_started_again_has_the_same_gate() {
        let retention = Retention::start(NO_RULES).unwrap();
        let gate = retention.gate("a");
        retention.remove("a");
        assert!(Arc::ptr_eq(&gate, &retention.gate("a")) && !Arc::ptr_eq(&gate, &retention.gate("b")));
    }
}
