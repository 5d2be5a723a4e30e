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
        let file = FileBuilder::new().previous_gtids("").transaction(number, 50).rotate(&name(number + 1));
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
    let large: Vec<LogFile> = files.iter().map(|file| LogFile { bytes: 10 << 20, ..file.clone() }).collect();
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
