//! A run of a study made for the test, in this process.

mod common;

use anyhow::bail;
use binlogd_lab::apart::Apart;
use binlogd_lab::engine::{self, Begin, BrokenOff, Job, MEASURED_AGAIN, Outcome};
use binlogd_lab::interrupt::{Interrupt, Interrupted};
use binlogd_lab::lab::Lab;
use binlogd_lab::model::{Fact, Order, Profile};
use binlogd_lab::progress::say;
use binlogd_lab::results::run::{Run, Skipped};
use binlogd_lab::store::Store;
use binlogd_lab::study::Study;
use common::{WriteAndSync, names};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

/// A folder to measure with the folders `a` and `b`, and a file of results.
struct Place {
    dir: TempDir,
    lab: Lab,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let measured = dir.path().join("measured");
        for folder in ["a", "b"] {
            std::fs::create_dir_all(measured.join(folder)).unwrap();
        }
        let lab = Lab {
            binlogd: PathBuf::new(),
            scripts: PathBuf::new(),
            dir: measured,
            apart: Apart::default(),
            link: None,
            journals: dir.path().join("journals"),
            interrupt: Interrupt::default(),
            unrestored: std::sync::Arc::default(),
            allowed_servers: Vec::new(),
            say,
        };
        Place { dir, lab }
    }

    fn store(&self) -> Store {
        Store::open_or_create(&self.dir.path().join("results.sqlite")).unwrap()
    }

    fn run(&self, study: &WriteAndSync, order: &Order, begin: Begin) -> anyhow::Result<Outcome> {
        self.run_on(study, order, begin, &[])
    }

    /// The same on a machine with these facts.
    fn run_on(
        &self,
        study: &WriteAndSync,
        order: &Order,
        begin: Begin,
        facts: &[Fact],
    ) -> anyhow::Result<Outcome> {
        let job = Job { study, order, command: "binlogd-lab run write-and-sync", facts, begin };
        engine::run(&job, &self.lab, &mut self.store())
    }

    fn read(&self, run: i64) -> Run {
        self.store().run(run).unwrap()
    }

    /// Nothing that a scene made is left.
    fn assert_left_as_it_was(&self) {
        for folder in ["a", "b"] {
            assert_eq!(std::fs::read_dir(self.lab.dir.join(folder)).unwrap().count(), 0);
        }
    }
}

fn order(settings: &[(&str, &str)]) -> Order {
    let mut order = Order::new(Profile::Smoke, WriteAndSync::default().settings(Profile::Smoke));
    for (name, value) in settings {
        order.settings.0.insert((*name).to_owned(), (*value).to_owned());
    }
    order
}

#[test]
fn all_cells_are_measured_in_their_order_and_kept() {
    let (place, study) = (Place::new(), WriteAndSync::default());
    let outcome = place.run(&study, &order(&[]), Begin::New).unwrap();
    assert_eq!(outcome, Outcome { run: 1, cells: 8, invalid: 0, skipped: 0 });
    let of_folder = |folder: &str| {
        let cells = ["written 0", "synced 0", "synced 1", "written 1"].map(|cell| format!("{folder} {cell}"));
        std::iter::once(format!("set up {folder}")).chain(cells)
    };
    assert!(study.take_log().into_iter().eq(of_folder("a").chain(of_folder("b"))));
    let run = place.read(1);
    assert!(run.finished.is_some());
    let planned = study.plan(&run.order).unwrap().scenes.into_iter().flat_map(|scene| scene.cells);
    assert!(run.cells.iter().map(|cell| cell.key.clone()).eq(planned));
    for cell in &run.cells {
        assert!(
            cell.measured.values["writes_per_second"] > 0.0 && cell.measured.series["write_ms"].len() == 5
        );
        assert!(cell.took > 0.0 && cell.started >= run.started);
    }
    // Both scenes told the same fact.
    assert_eq!(run.facts.len(), 1);
    place.assert_left_as_it_was();
}

#[test]
fn an_invalid_cell_is_measured_once_more_and_no_more_than_that() {
    let place = Place::new();
    let attempts = AtomicU32::new(0);
    let study = WriteAndSync::with(move |key| {
        let (folder, how) = names(&key.point);
        Ok(match (folder, how, key.round) {
            ("a", "written", 0) if attempts.fetch_add(1, Ordering::Relaxed) == 0 => {
                Some("at first".to_owned())
            }
            ("b", "synced", 1) => Some("always".to_owned()),
            _ => None,
        })
    });
    let outcome = place.run(&study, &order(&[]), Begin::New).unwrap();
    assert_eq!(outcome, Outcome { run: 1, cells: 8, invalid: 1, skipped: 0 });
    let log = study.take_log();
    assert_eq!(log.iter().filter(|cell| *cell == "a written 0").count(), 2);
    assert_eq!(log.iter().filter(|cell| *cell == "b synced 1").count(), 2);
    assert_eq!(log.len(), 2 + 8 + 2);
    let run = place.read(1);
    assert_eq!(run.cells[0].measured.invalid, None);
    let invalid: Vec<_> = run.cells.iter().filter_map(|cell| cell.measured.invalid.clone()).collect();
    assert_eq!(invalid, ["always"]);
    let again: Vec<&Fact> = run.facts.iter().filter(|fact| fact.about == MEASURED_AGAIN).collect();
    assert_eq!(again.len(), 2);
    assert!(
        again[0].name.contains("written, 1 threads, round 1") && again[0].value == "at first",
        "{again:?}"
    );
}

#[test]
fn a_scene_that_something_is_missing_for_is_skipped_and_tried_again_when_resumed() {
    let place = Place::new();
    let interrupt = place.lab.interrupt.clone();
    let study = WriteAndSync::with(move |key| {
        if names(&key.point).0 == "b" && key.round == 1 {
            interrupt.request();
        }
        Ok(None)
    });
    let order = order(&[("folders", "a,missing,b")]);
    let error = place.run(&study, &order, Begin::New).unwrap_err();
    assert!(error.is::<Interrupted>());
    assert_eq!(error.downcast_ref::<BrokenOff>(), Some(&BrokenOff { run: 1 }));
    let run = place.read(1);
    assert_eq!(run.skipped, [Skipped::new("missing", "missing is not there")]);
    // The cell that ran when the run was interrupted does not count.
    assert_eq!((run.cells.len(), run.finished), (4 + 2, None));
    place.assert_left_as_it_was();

    std::fs::create_dir(place.lab.dir.join("missing")).unwrap();
    let lab = Lab { interrupt: Interrupt::default(), ..place.lab.clone() };
    let place = Place { lab, ..place };
    let study = WriteAndSync::default();
    let outcome = place.run(&study, &order, Begin::Resume(1)).unwrap();
    assert_eq!(outcome, Outcome { run: 1, cells: 12, invalid: 0, skipped: 0 });
    // `a` has no cell left, and is not set up again.
    let log = study.take_log();
    assert_eq!(log[0], "set up missing");
    assert_eq!(log[5..], ["set up b", "b synced 1", "b written 1"]);
}

#[test]
fn an_error_ends_the_run_which_then_goes_on_at_the_cell_that_failed() {
    let place = Place::new();
    let study = WriteAndSync::with(|key| match (names(&key.point).0, key.round) {
        ("a", 1) => bail!("the disk is gone"),
        _ => Ok(None),
    });
    let error = format!("{:#}", place.run(&study, &order(&[]), Begin::New).unwrap_err());
    assert!(error.contains("run 1 was broken off") && error.contains("--resume"), "{error}");
    let last = "none, nobody attached: bare receiver, synced, 1 threads, round 2";
    assert!(error.contains(last), "{error}");
    assert!(error.ends_with("the disk is gone"), "{error}");
    let kept = place.read(1).cells;
    assert_eq!(kept.len(), 2);

    let study = WriteAndSync::default();
    place.run(&study, &order(&[]), Begin::Resume(1)).unwrap();
    assert_eq!(study.take_log()[..3], ["set up a", "a synced 1", "a written 1"]);
    assert_eq!(place.read(1).cells[..2], kept);

    let error = place.run(&study, &order(&[]), Begin::Resume(1)).unwrap_err().to_string();
    assert!(error.contains("run 1 is finished"), "{error}");
}

/// What the report warns of.
fn warnings(run: &Run) -> Vec<&str> {
    let warnings = run.facts.iter().filter(|fact| fact.about == "lab" && fact.name == "warning");
    warnings.map(|fact| fact.value.as_str()).collect()
}

#[test]
fn a_run_that_goes_on_keeps_that_it_was_interrupted_and_what_changed() {
    let place = Place::new();
    let kernel = |value: &str| [Fact::new("machine", "kernel", value)];
    // Until then its cells are measured.
    let until = |scene: &'static str, version| WriteAndSync {
        version: Some(version),
        ..WriteAndSync::with(move |key| match (names(&key.point).0 == scene, key.round) {
            (true, 1) => bail!("the disk is gone"),
            _ => Ok(None),
        })
    };
    place.run_on(&until("a", "9.7.0"), &order(&[]), Begin::New, &kernel("6.1")).unwrap_err();
    assert_eq!(warnings(&place.read(1)), [""; 0]);
    let gap = |cells: &str| format!("the run was interrupted after {cells} and went on at 20");

    place.run_on(&until("b", "9.7.1"), &order(&[]), Begin::Resume(1), &kernel("6.2")).unwrap_err();
    let run = place.read(1);
    let kept = warnings(&run);
    // Both scenes have told of the new version; it is kept once.
    assert_eq!(kept.len(), 3, "{kept:?}");
    assert_eq!(kept[0], "run 1 goes on under other conditions: machine, kernel: was 6.1, now 6.2");
    assert_eq!(kept[1], "run 1 goes on under other conditions: server none, version: was 9.7.0, now 9.7.1");
    assert!(kept[2].starts_with(&gap("2 cells")), "{kept:?}");
    assert!(
        kept[2].ends_with(" UTC: ratios of the round that was being measured then are made across the gap")
    );

    // Nothing else is another now.
    let study = WriteAndSync { version: Some("9.7.1"), ..WriteAndSync::default() };
    place.run_on(&study, &order(&[]), Begin::Resume(1), &kernel("6.2")).unwrap();
    let run = place.read(1);
    let kept = warnings(&run);
    assert_eq!(kept.len(), 4, "{kept:?}");
    assert!(kept[3].starts_with(&gap("6 cells")), "{kept:?}");
    assert_eq!(run.cells.len(), 8);
}

#[test]
fn a_gap_is_told_when_there_are_cells_before_and_after_it() {
    let place = Place::new();
    let broken = WriteAndSync::with(|_| bail!("it ends here"));
    place.run(&broken, &order(&[]), Begin::New).unwrap_err();
    let later = WriteAndSync::with(|key| match (names(&key.point).0, key.round) {
        ("b", _) => bail!("it ends here"),
        _ => Ok(None),
    });
    // No cell was measured before.
    place.run(&later, &order(&[]), Begin::Resume(1)).unwrap_err();
    assert_eq!(warnings(&place.read(1)), [""; 0]);
    // Four cells were, and none is after them.
    place.run(&later, &order(&[]), Begin::Resume(1)).unwrap_err();
    assert_eq!(warnings(&place.read(1)), [""; 0]);
    place.run(&WriteAndSync::default(), &order(&[]), Begin::Resume(1)).unwrap();
    let run = place.read(1);
    let kept = warnings(&run);
    assert!(kept.len() == 1 && kept[0].starts_with("the run was interrupted after 4 cells and"), "{kept:?}");
}

#[test]
fn a_run_goes_on_with_its_own_order_only() {
    let place = Place::new();
    let broken = WriteAndSync::with(|_| bail!("it ends here"));
    place.run(&broken, &order(&[]), Begin::New).unwrap_err();
    let study = WriteAndSync::default();
    let other = Order { profile: Profile::Quick, ..order(&[("writes", "7")]) };
    let error = place.run(&study, &other, Begin::Resume(1)).unwrap_err().to_string();
    for wanted in
        ["--profile was smoke, now quick", "--set writes was 5, now 7", "binlogd-lab run write-and-sync"]
    {
        assert!(error.contains(wanted), "{error}");
    }
    assert!(!error.contains("rounds was"), "{error}");
    let apart = Apart {
        source_dir: Some(PathBuf::from("/memory")),
        cpus: "source=0,load=1".parse().unwrap(),
        ..Apart::default()
    };
    let error = place.run(&study, &Order { apart, ..order(&[]) }, Begin::Resume(1)).unwrap_err().to_string();
    for wanted in ["--source-dir was as --dir, now /memory", "--cpus was all for all, now source=0,load=1"] {
        assert!(error.contains(wanted), "{error}");
    }
    assert!(!error.contains("--receiver-dir"), "{error}");
    assert!(study.take_log().is_empty());
}

#[test]
fn a_plan_that_would_measure_a_cell_twice_is_refused_before_anything_is_kept() {
    let place = Place::new();
    let error = place.run(&WriteAndSync::default(), &order(&[("folders", "a,a")]), Begin::New).unwrap_err();
    assert!(error.to_string().contains("\"a\" twice"), "{error}");
    assert!(place.store().summaries().unwrap().is_empty());
}
