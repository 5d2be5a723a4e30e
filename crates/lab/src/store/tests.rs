use super::*;
use crate::apart::Apart;
use crate::model::{Measured, Profile, Settings};
use crate::point::{CellKey, Configuration, Panel};

fn order() -> Order {
    Order {
        profile: Profile::Smoke,
        servers: vec![ServerChoice::Url("mysql://dba:secret@db.example:3306".to_owned())],
        settings: Settings::of([("threads", "2,8")]),
        apart: Apart::default(),
    }
}

fn cell(threads: u32, invalid: Option<&str>) -> Cell {
    let condition = "ext4, buffer pool 60/90".parse().unwrap();
    let panel = Panel { server: "mysql-9.7".to_owned(), condition };
    let point = panel.point("source alone".parse::<Configuration>().unwrap(), threads);
    let mut measured = Measured { invalid: invalid.map(str::to_owned), ..Measured::default() };
    measured.put("tps", 0.1 + 0.2);
    measured.put("p95_ms", f64::MAX);
    measured.series.insert("tps".to_owned(), vec![1.5, 0.0, 1e-300]);
    Cell { key: CellKey { point, round: 1 }, started: 1_700_000_000, took: 5.25, measured }
}

#[test]
fn a_run_is_read_back_as_it_was_kept_but_for_passwords() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("results.sqlite");
    let mut store = Store::open_or_create(&path).unwrap();
    let run = store.begin("virtual-replica", &order(), "binlogd-lab run").unwrap();
    let fact = Fact::new("disk", "device", "/dev/vda");
    store.keep_facts(run, &[fact.clone(), fact.clone()]).unwrap();
    let cells = [cell(8, None), cell(2, Some("semi-sync fell back"))];
    cells.iter().for_each(|cell| store.keep_cell(run, cell).unwrap());
    store.keep_skipped(run, "xfs", "no loop device").unwrap();
    store.keep_skipped(run, "ext4", "not root").unwrap();
    store.forget_skipped(run, "ext4").unwrap();
    drop(store);

    let mut store = Store::open(&path).unwrap();
    let read = store.run(run).unwrap();
    assert_eq!(read.cells, cells);
    assert_eq!(read.facts, [fact]);
    assert_eq!(read.skipped, [Skipped::new("xfs", "no loop device")]);
    assert_eq!((read.study.as_str(), read.finished), ("virtual-replica", None));
    assert_eq!(read.order, without_passwords(&order()));
    let bytes = std::fs::read(&path).unwrap();
    assert!(!bytes.windows(6).any(|window| window == b"secret"));

    store.finish(run).unwrap();
    let newest = store.newest("virtual-replica").unwrap().unwrap();
    assert!(newest.finished.is_some() && store.newest("another").unwrap().is_none());
    assert_eq!((newest.cells, newest.invalid, newest.skipped), (2, 1, 1));
    assert!(store.run(run + 1).unwrap_err().to_string().contains("no run 2"));
}

#[test]
fn a_cell_is_kept_once_and_whole() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open_or_create(&dir.path().join("results.sqlite")).unwrap();
    let run = store.begin("a", &order(), "").unwrap();
    let mut wrong = cell(2, None);
    wrong.measured.put("zz", f64::NAN);
    assert!(store.keep_cell(run, &wrong).is_err());
    assert!(store.run(run).unwrap().cells.is_empty());
    store.keep_cell(run, &cell(2, None)).unwrap();
    assert!(store.keep_cell(run, &cell(2, None)).is_err());
    assert_eq!(store.run(run).unwrap().cells.len(), 1);
}

#[test]
fn a_name_that_no_study_has_is_named_with_its_run() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open_or_create(&dir.path().join("results.sqlite")).unwrap();
    for (column, kept) in [("condition", "ext5, buffer pool 60/90"), ("configuration", "source in company")] {
        let run = store.begin("virtual-replica", &order(), "").unwrap();
        store.keep_cell(run, &cell(2, None)).unwrap();
        let change = format!("UPDATE cells SET {column} = ?1 WHERE run = ?2");
        store.connection.execute(&change, params![kept, run]).unwrap();
        let error = format!("{:#}", store.run(run).unwrap_err());
        assert!(error.contains(&format!("cannot read run {run} of ")) && error.contains(kept), "{error}");
    }
}

#[test]
fn one_process_measures_into_a_file_and_all_can_read_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("results.sqlite");
    let mut first = Store::open_or_create(&path).unwrap();
    let run = first.begin("a", &order(), "").unwrap();
    let lock = first.lock().unwrap();
    let second = Store::open_or_create(&path).unwrap();
    let error = second.lock().unwrap_err().to_string();
    assert!(error.contains(&std::process::id().to_string()) && error.contains("results.sqlite"), "{error}");
    first.keep_cell(run, &cell(2, None)).unwrap();
    assert_eq!(second.run(run).unwrap().cells.len(), 1);
    drop(lock);
    second.lock().unwrap();
}

#[test]
fn a_file_that_is_not_ours_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let refused = |wanted: &str| {
        for store in [Store::open_or_create(&path), Store::open(&path)] {
            let error = format!("{:#}", store.unwrap_err());
            assert!(error.contains(wanted) && error.contains(path.to_str().unwrap()), "{error}");
        }
    };
    assert!(Store::open(&path).unwrap_err().to_string().contains("is not there"));
    assert!(!path.exists());

    std::fs::write(&path, "notes of the day\n".repeat(100)).unwrap();
    refused("no SQLite file");
    assert_eq!(std::fs::read(&path).unwrap(), "notes of the day\n".repeat(100).as_bytes());
    std::fs::remove_file(&path).unwrap();

    let foreign = Connection::open(&path).unwrap();
    foreign.execute_batch("CREATE TABLE notes (day TEXT)").unwrap();
    drop(foreign);
    refused("holds other data");
    std::fs::remove_file(&path).unwrap();

    drop(Store::open_or_create(&path).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    refused("newer binlogd-lab");
}

#[test]
fn a_file_with_the_old_names_is_read_in_todays_words() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("results.sqlite");
    let mut store = Store::open_or_create(&path).unwrap();
    let old = [("pool_mb", "512"), ("redo_mb", "256"), ("rotation_kb", "auto"), ("threads", "\"pool_mb\":")];
    let order = Order::new(Profile::Smoke, Settings::of(old));
    let mut cell = cell(8, None);
    cell.measured.put("wait_us", 7.0);
    for study in ["semi-sync-cost", "virtual-replica"] {
        let run = store.begin(study, &order, "binlogd-lab run").unwrap();
        store.keep_cell(run, &cell).unwrap();
    }
    store.connection.execute_batch("ALTER TABLE runs DROP COLUMN imported").unwrap();
    store.connection.pragma_update(None, "user_version", 1).unwrap();
    drop(store);

    let lock = MeasuringLock::take(&path).unwrap();
    let refused = format!("{:#}", Store::open(&path).unwrap_err());
    assert!(refused.contains("of an older binlogd-lab") && refused.contains("measures into"), "{refused}");
    drop(lock);
    let store = Store::open(&path).unwrap();
    let run = store.run(1).unwrap();
    let renamed = [("buffer_pool_mib", "512"), ("redo_log_mib", "256"), ("rotation_kib", "auto")];
    let mut wanted = Settings::of(renamed);
    wanted.0.insert("threads".to_owned(), "\"pool_mb\":".to_owned());
    assert_eq!(run.order.settings, wanted);
    let values = &run.cells[0].measured.values;
    assert_eq!((values.get("source_wait_us"), values.get("wait_us")), (Some(&7.0), None));
    let other = store.run(2).unwrap();
    assert_eq!(other.cells[0].measured.values.get("wait_us"), Some(&7.0));
    assert_eq!(other.order.settings.get::<String>("workload").unwrap(), "oltp_read_write");
    assert_eq!(other.order.settings.get::<String>("yardsticks").unwrap(), "none");
    assert_eq!(other.order.settings.get::<String>("tls").unwrap(), "none");
    // And again, now that it was brought to them.
    assert_eq!(Store::open_or_create(&path).unwrap().run(1).unwrap(), run);
}

#[test]
fn a_run_from_elsewhere_is_kept_once_and_whole() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open_or_create(&dir.path().join("here.sqlite")).unwrap();
    store.begin("virtual-replica", &order(), "binlogd-lab run").unwrap();
    let mut run = Run {
        id: 9,
        study: "virtual-replica".to_owned(),
        order: without_passwords(&order()),
        command: "binlogd-lab run virtual-replica".to_owned(),
        started: 1_700_000_000,
        finished: Some(1_700_000_100),
        facts: vec![Fact::new("disk", "device", "/dev/vda")],
        cells: vec![cell(8, None), cell(2, Some("semi-sync fell back"))],
        skipped: vec![Skipped::new("xfs", "no loop device: none free")],
    };
    assert_eq!(store.keep_run(&run).unwrap(), 2);
    assert_eq!(store.run(2).unwrap(), Run { id: 2, ..run.clone() });
    assert_eq!(store.number_of(&run).unwrap(), Some(2));
    // What was measured here goes on, not what came from elsewhere after it.
    assert_eq!(store.newest("virtual-replica").unwrap().unwrap().id, 1);
    let imported: Vec<bool> = store.summaries().unwrap().iter().map(|held| held.imported).collect();
    assert_eq!(imported, [false, true]);
    let error = store.keep_run(&run).unwrap_err().to_string();
    assert!(error.contains("holds that run of virtual-replica already, as run 2"), "{error}");
    // Of one that cannot be kept nothing stays.
    run.started += 1;
    run.cells.push(run.cells[0].clone());
    store.keep_run(&run).unwrap_err();
    assert_eq!(store.summaries().unwrap().len(), 2);
}
