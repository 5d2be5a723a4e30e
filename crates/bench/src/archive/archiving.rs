//! binlogd that archives a copy to its end.

use super::scene::{self, BUCKET, Scene, bytes_below};
use crate::compare;
use crate::daemon::is_at;
use anyhow::Context;
use rig::usage::Usage;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Where to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// versitygw on 127.0.0.1.
    S3,
    /// A folder on the same disk.
    Folder,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Place::S3 { "S3" } else { "a folder" })
    }
}

/// What became of one run.
#[derive(Debug)]
pub(super) struct Archived {
    /// From the start of the process until its status says that everything is archived.
    pub(super) seconds: f64,
    /// On a processor, of whoever archives.
    pub(super) processor: f64,
    /// The same of the store; 0 for a folder.
    pub(super) store_processor: f64,
    /// Bytes of all objects, commits included.
    pub(super) stored: u64,
    /// The most memory that was ever resident, in MiB; 0 where nobody looked.
    pub(super) highest_mib: f64,
}

/// An archive of one run. What is in it is removed when it is dropped, so that the disk does not fill.
pub(super) struct Archive<'a> {
    scene: &'a Scene,
    place: Place,
    level: u32,
    prefix: String,
}

impl Drop for Archive<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.stored());
    }
}

impl Archive<'_> {
    /// An empty one; `prefix` is to be new.
    pub(super) fn new(scene: &Scene, place: Place, level: u32, prefix: String) -> Archive<'_> {
        Archive { scene, place, level, prefix }
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    fn stored(&self) -> PathBuf {
        match self.place {
            Place::S3 => self.scene.stored(&self.prefix),
            Place::Folder => self.scene.dir.join(&self.prefix),
        }
    }

    fn url(&self) -> String {
        match self.place {
            Place::S3 => format!("s3://{BUCKET}/{}", self.prefix),
            Place::Folder => format!("file://{}", self.stored().display()),
        }
    }

    /// The table of a configuration.
    fn table(&self) -> anyhow::Result<String> {
        let (url, level, key) = (self.url(), self.level, &self.scene.key.public);
        let mut table = format!("[archive]\nurl = \"{url}\"\nlevel = {level}\nrecipients = [\"{key}\"]\n");
        if self.place == Place::S3 {
            let (endpoint, region) = (self.scene.store.endpoint()?, self.scene.store.fact("REGION")?);
            table += &format!("endpoint = \"{endpoint}\"\nregion = \"{region}\"\nallow_http = true\n");
        }
        Ok(table)
    }

    /// The same for who reads it, too.
    ///
    /// # Errors
    /// When the store has said nothing of itself.
    pub(super) fn table_to_read(&self) -> anyhow::Result<String> {
        Ok(format!("{}identity = [\"{}\"]\n", self.table()?, self.scene.key.file.display()))
    }

    /// Lets binlogd archive its copies of so many sources to their end.
    ///
    /// # Errors
    /// When it does not get there.
    pub(super) fn fill(&self, sources: usize) -> anyhow::Result<Archived> {
        let scene = self.scene;
        let (file, position) = scene.backlog.end()?;
        // What an earlier program has left unwritten is not to be written in this one's time.
        rustix::fs::sync();
        let store = Usage::of(scene.store_pid()?)?;
        let began = Instant::now();
        let daemon = scene.start(&self.table()?, sources, &scene.credentials()?)?;
        daemon.wait("everything is archived", |status| {
            scene.is_all(status, sources, |source| is_at(&source["archive"]["archived"], file, position))
        })?;
        let seconds = began.elapsed().as_secs_f64();
        let usage = daemon.usage()?;
        let store = Usage::of(scene.store_pid()?)?.since(&store).processor_seconds;
        let stored = bytes_below(&self.stored())?;
        daemon.end()?;
        Ok(Archived {
            seconds,
            processor: usage.processor_seconds(),
            store_processor: store,
            stored,
            highest_mib: usage.memory.highest as f64 / 1024.0,
        })
    }

    /// Fetches the first source's files back and compares them with the source's own, byte by byte.
    ///
    /// # Errors
    /// When they are not equal.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let scene = self.scene;
        let back = tempfile::Builder::new().prefix("back-").tempdir_in(&scene.dir)?;
        let mut command = Command::new(&scene.binlogd);
        command.arg("fetch").arg(self.url()).arg("--to").arg(back.path().join("data"));
        command.arg("--identity").arg(&scene.key.file).args(["--source", "s1"]);
        if self.place == Place::S3 {
            command.args(["--endpoint", scene.store.endpoint()?, "--region", scene.store.fact("REGION")?]);
            command.args(["--allow-http"]);
        }
        scene::run(command.envs(scene.credentials()?))?;
        let fetched = back.path().join("data");
        let originals = Path::new(scene.backlog.server.fact("DATADIR")?);
        compare::same_bytes(originals, &scene.backlog.files, |name| {
            compare::find(&fetched, name).with_context(|| format!("{name} was not fetched"))
        })
    }
}
