//! A source with a backlog, a copy of it that several sources of one binlogd have, and a store.

use super::args::ArchiveArgs;
use crate::backlog::{Backlog, Mix, USER};
use crate::daemon::{Daemon, is_at, source_table};
use anyhow::{Context, bail};
use rig::object_store::{ObjectStore, program};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The bucket of everything.
pub(super) const BUCKET: &str = "bench";

/// See [the module](self).
pub(super) struct Scene {
    pub(super) backlog: Backlog,
    /// The data folder that has the copies. Archiving changes nothing in it.
    pub(super) data: PathBuf,
    pub(super) store: ObjectStore,
    pub(super) key: Key,
    pub(super) dir: PathBuf,
    pub(super) binlogd: PathBuf,
}

/// A key of age.
pub(super) struct Key {
    /// The file with the private one.
    pub(super) file: PathBuf,
    /// The public one.
    pub(super) public: String,
}

impl Key {
    /// Makes one in the folder `dir`.
    ///
    /// # Errors
    /// When `age-keygen` cannot be had.
    pub(super) fn make(stores_script: &Path, dir: &Path) -> anyhow::Result<Key> {
        let keygen = program(stores_script, "age-keygen")?;
        let file = dir.join("archive.key");
        run(Command::new(&keygen).arg("-o").arg(&file))?;
        let public = run(Command::new(&keygen).arg("-y").arg(&file))?;
        Ok(Key { file, public: public.trim().to_owned() })
    }
}

impl Scene {
    /// Makes everything in the folder `dir`; the copy is had by as many sources as the memory is measured with.
    ///
    /// # Errors
    /// When a program does not do its work.
    pub(super) fn make(args: &ArchiveArgs, dir: &Path) -> anyhow::Result<Scene> {
        let bytes = (args.gib * f64::from(1 << 30)) as u64;
        eprintln!("making {:.2} GiB of binary log on {}", args.gib, args.server);
        let mix = if args.noise { Mix::Noise } else { Mix::Ordinary };
        let backlog = Backlog::make(&args.servers_script, &args.server, &dir.join("source"), bytes, mix)?;
        let store = ObjectStore::versitygw(&args.stores_script, dir.join("store"))?;
        store.bucket(BUCKET)?;
        let key = Key::make(&args.stores_script, dir)?;
        let (data, binlogd) = (dir.join("data"), args.common.binlogd.clone());
        let scene = Scene { backlog, data, store, key, dir: dir.to_owned(), binlogd };
        scene.copy(args.sources())?;
        Ok(scene)
    }

    /// Lets binlogd copy the whole log, for each of its sources.
    fn copy(&self, sources: usize) -> anyhow::Result<()> {
        let (file, position) = self.backlog.end()?;
        let daemon = self.start("", sources, &[])?;
        daemon.wait("all copies are durable to the source's end", |status| {
            self.is_all(status, sources, |source| is_at(&source["positions"]["durable"], file, position))
        })?;
        daemon.end()
    }

    /// Whether something holds for each of so many sources.
    pub(super) fn is_all(
        &self,
        status: &serde_json::Value,
        sources: usize,
        is: impl Fn(&serde_json::Value) -> bool,
    ) -> bool {
        let all = status["sources"].as_array().map_or(&[][..], Vec::as_slice);
        all.len() == sources && all.iter().all(is)
    }

    /// Starts binlogd on the copies, with `archive`, the table of a configuration, or nothing.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start(
        &self,
        archive: &str,
        sources: usize,
        environment: &[(&str, &str)],
    ) -> anyhow::Result<Daemon> {
        self.start_on(&self.data, archive, sources, environment)
    }

    /// The same on the data folder `data`, with `tables` of a configuration.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start_on(
        &self,
        data: &Path,
        tables: &str,
        sources: usize,
        environment: &[(&str, &str)],
    ) -> anyhow::Result<Daemon> {
        let port = self.backlog.server.port();
        let named: String =
            (1..=sources).map(|number| source_table(&format!("s{number}"), port, USER)).collect();
        Daemon::start(&self.binlogd, &self.dir, data, &format!("{tables}{named}"), environment)
    }

    /// The environment of a program that is to write to the store.
    ///
    /// # Errors
    /// When the store has said nothing of that.
    pub(super) fn credentials(&self) -> anyhow::Result<[(&str, &str); 3]> {
        Ok([
            ("AWS_ACCESS_KEY_ID", self.store.access_key()?),
            ("AWS_SECRET_ACCESS_KEY", self.store.secret_key()?),
            ("AWS_DEFAULT_REGION", self.store.fact("REGION")?),
        ])
    }

    /// The process of the store.
    ///
    /// # Errors
    /// When the store has said nothing of that.
    pub(super) fn store_pid(&self) -> anyhow::Result<u32> {
        self.store.fact("PID")?.parse().context("the PID that scripts/stores named")
    }

    /// The folder in which the store keeps what is below `prefix`.
    pub(super) fn stored(&self, prefix: &str) -> PathBuf {
        self.store.file(BUCKET, prefix)
    }

    /// The source's own file.
    ///
    /// # Errors
    /// When the server has not said where its files are.
    pub(super) fn original(&self, name: &str) -> anyhow::Result<PathBuf> {
        Ok(Path::new(self.backlog.server.fact("DATADIR")?).join(name))
    }
}

/// Runs a program to its end; what it printed.
///
/// # Errors
/// When it fails; the error has its words.
pub(super) fn run(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?} failed, {}: {}", output.status, rig::process::last_lines(&words));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Bytes of all files below a folder.
///
/// # Errors
/// When it cannot be read.
pub(super) fn bytes_below(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        bytes += match entry.file_type()?.is_dir() {
            true => bytes_below(&entry.path())?,
            false => entry.metadata()?.len(),
        };
    }
    Ok(bytes)
}
