//! A study for the tests: what a file's sync costs. It is small, needs no server, and measures something real.

#![allow(dead_code, reason = "each test uses a part")]

use anyhow::Context;
use binlogd_lab::lab::{Lab, Skip};
use binlogd_lab::model::{Fact, Measured, Order, Profile, Settings};
use binlogd_lab::outline::Part;
use binlogd_lab::point::virtual_replica::Configuration;
use binlogd_lab::point::{CellKey, Condition, Panel, Point};
use binlogd_lab::receiver::Yardstick;
use binlogd_lab::results::run::Run;
use binlogd_lab::study::{Plan, Scene, Stage, Study, interleaved};
use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// What goes wrong in a cell; asked before each attempt. `Ok(Some(reason))` makes it invalid.
pub(crate) type Fault = dyn Fn(&CellKey) -> anyhow::Result<Option<String>> + Send + Sync;

/// The conditions of the studies that stand for the folders here.
const FOLDERS: [(&str, Condition); 3] =
    [("a", Condition::NobodyAttached), ("b", Condition::BinlogdAttached), ("missing", Condition::Plain)];

/// What stands for a sync after each block.
const SYNCED: Configuration = Configuration::Yardstick(Yardstick::BareSynced);
/// What stands for none.
const WRITTEN: Configuration = Configuration::Yardstick(Yardstick::BareWritten);

/// The folder of a point, and whether it is `written` or `synced`.
pub(crate) fn names(point: &Point) -> (&'static str, &'static str) {
    let folder = FOLDERS.iter().find(|(_, condition)| *condition == point.panel.condition).unwrap().0;
    (folder, if point.configuration == SYNCED.into() { "synced" } else { "written" })
}

/// Writes blocks of 4 KiB into a file of each of some folders, with and without a sync after each.
#[derive(Clone, Default)]
pub(crate) struct WriteAndSync {
    /// What goes wrong.
    pub(crate) fault: Option<Arc<Fault>>,
    /// Scenes that were set up, and attempts at cells, in order.
    pub(crate) log: Arc<Mutex<Vec<String>>>,
    /// What the scenes tell of a server's version; nothing by default.
    pub(crate) version: Option<&'static str>,
}

impl WriteAndSync {
    /// One in which something goes wrong.
    pub(crate) fn with(
        fault: impl Fn(&CellKey) -> anyhow::Result<Option<String>> + Send + Sync + 'static,
    ) -> WriteAndSync {
        WriteAndSync { fault: Some(Arc::new(fault)), ..WriteAndSync::default() }
    }

    /// The log, which is empty then.
    pub(crate) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.log.lock().unwrap())
    }
}

impl Study for WriteAndSync {
    fn name(&self) -> &'static str {
        "write-and-sync"
    }

    fn title(&self) -> &'static str {
        "What the sync of a file costs"
    }

    fn summary(&self) -> &'static str {
        "Blocks of 4 KiB are appended to a file, with and without a sync after each."
    }

    fn settings(&self, profile: Profile) -> Settings {
        let writes = match profile {
            Profile::Smoke => "5",
            Profile::Quick | Profile::Grid => "50",
            Profile::Full => "500",
        };
        Settings::of([("writes", writes), ("rounds", "2"), ("folders", "a,b")])
    }

    fn plan(&self, order: &Order) -> anyhow::Result<Plan> {
        let rounds = order.settings.get("rounds")?;
        let scene = |folder: String| {
            let condition = FOLDERS.iter().find(|(name, _)| *name == folder).unwrap().1;
            let panel = Panel { server: "none".to_owned(), condition };
            let cells = interleaved(&[panel], &[1], &[WRITTEN, SYNCED], rounds);
            Scene { name: folder, servers: Vec::new(), cells }
        };
        let folders: Vec<String> = order.settings.list("folders")?;
        Ok(Plan { scenes: folders.into_iter().map(scene).collect(), cell_seconds: 0.1 })
    }

    fn set_up(&self, order: &Order, scene: &Scene, lab: &Lab) -> anyhow::Result<Box<dyn Stage>> {
        let parent = lab.dir.join(&scene.name);
        if !parent.is_dir() {
            return Err(Skip::by_nature(format!("{} is not there", scene.name)).into());
        }
        self.log.lock().unwrap().push(format!("set up {}", scene.name));
        let dir = tempfile::tempdir_in(&parent)?;
        Ok(Box::new(Folder { study: self.clone(), writes: order.settings.get("writes")?, dir }))
    }

    fn outline(&self, _run: &Run) -> Vec<Part> {
        Vec::new()
    }
}

struct Folder {
    study: WriteAndSync,
    writes: u32,
    dir: tempfile::TempDir,
}

impl Stage for Folder {
    fn facts(&mut self) -> anyhow::Result<Vec<Fact>> {
        let value = self.dir.path().exists().to_string();
        let version = self.study.version.map(|version| Fact::new("server none", "version", version));
        Ok([Fact::new("load", "folder is there", value)].into_iter().chain(version).collect())
    }

    fn measure(&mut self, point: &Point, round: u32) -> anyhow::Result<Measured> {
        let key = CellKey { point: point.clone(), round };
        let (folder, how) = names(point);
        let cell = format!("{folder} {how} {round}");
        self.study.log.lock().unwrap().push(cell);
        let mut measured = Measured::default();
        if let Some(fault) = &self.study.fault {
            fault(&key)?.into_iter().for_each(|reason| measured.refuse(reason));
        }
        let path = self.dir.path().join("file");
        let mut file = File::create(&path).context("the file of the load")?;
        let began = Instant::now();
        let mut slowest = Vec::new();
        for _ in 0..self.writes {
            let write = Instant::now();
            file.write_all(&[0x5a; 4096])?;
            if how == "synced" {
                file.sync_data()?;
            }
            slowest.push(write.elapsed().as_secs_f64() * 1e3);
        }
        let written = file.metadata()?.len();
        if written != u64::from(self.writes) * 4096 {
            measured.refuse(format!("the file holds {written} bytes"));
        }
        measured.put("writes_per_second", f64::from(self.writes) / began.elapsed().as_secs_f64());
        measured.series.insert("write_ms".to_owned(), slowest);
        Ok(measured)
    }
}
