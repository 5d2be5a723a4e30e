//! What a run uses of this machine: binlogd's binary, scripts, folders.

use crate::apart::Apart;
use crate::interrupt::Interrupt;
use crate::lab::Lab;
use crate::machine::cpus::Cpus;
use crate::machine::network::Network;
use crate::progress::say;
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Arguments that say where things are.
#[derive(Debug, clap::Args)]
pub(super) struct PlaceArgs {
    /// Folder on the disk to measure; made when it is missing. What stays in it: TPC-C's tables and go-tpc, for later
    /// runs
    #[arg(long, value_name = "DIR", default_value = "target/lab")]
    dir: PathBuf,
    /// binlogd's binary, built for release; default: beside binlogd-lab, or target/release/binlogd
    #[arg(long, value_name = "FILE")]
    binlogd: Option<PathBuf>,
    /// The script that fetches and starts servers; default: scripts/servers here or above binlogd-lab
    #[arg(long, value_name = "FILE")]
    scripts: Option<PathBuf>,
    /// Folder for the source's files, on a disk of its own, or on tmpfs to have them in memory; made when it is missing;
    /// default: with everything else in --dir
    #[arg(long, value_name = "DIR")]
    source_dir: Option<PathBuf>,
    /// Folder for the files of binlogd and of real replicas, on a disk of their own; made when it is missing; default: with
    /// everything else in --dir
    #[arg(long, value_name = "DIR")]
    receiver_dir: Option<PathBuf>,
    /// Processors of source, receivers and load, such as source=0,receiver=1,load=0-1; whoever is not named may use all
    #[arg(long, value_name = "ROLE=LIST,…")]
    cpus: Option<Cpus>,
    /// Network between source and receivers, such as delay=0.5ms for each way; needs root, iproute2, and netem or
    /// TUN
    #[arg(long, value_name = "delay=TIME")]
    network: Option<Network>,
    #[command(flatten)]
    journals: JournalArgs,
    /// Server of yours that may be used although it holds other data, as host:port, may be repeated
    #[arg(long, value_name = "HOST:PORT")]
    use_server_with_data: Vec<String>,
}

/// Where it is kept what was changed on the user's servers and on this machine.
#[derive(Debug, clap::Args)]
pub(crate) struct JournalArgs {
    /// Folder of the journals of what was changed on your own servers and on this machine; default: binlogd-lab/journals
    /// in $XDG_STATE_HOME or ~/.local/state
    #[arg(long, value_name = "DIR")]
    journals: Option<PathBuf>,
}

impl JournalArgs {
    /// The folder, which need not be there.
    pub(crate) fn dir(&self) -> anyhow::Result<PathBuf> {
        if let Some(dir) = &self.journals {
            return Ok(dir.clone());
        }
        let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")));
        let state = state.context("neither XDG_STATE_HOME nor HOME is set: name a folder with --journals")?;
        Ok(state.join("binlogd-lab/journals"))
    }
}

impl PlaceArgs {
    /// Everything that scenes need; from now on signals do not end the process.
    ///
    /// # Errors
    /// When something is not there; the error says how to come by it.
    pub(super) fn lab(&self) -> anyhow::Result<Lab> {
        let program = std::env::current_exe().context("where this program is")?;
        let binlogd = match &self.binlogd {
            Some(binlogd) => binlogd.clone(),
            None => beside(&program),
        };
        if !binlogd.is_file() {
            bail!(
                "{} is not there: build it with `cargo build --release -p binlogd`, or name it with --binlogd",
                binlogd.display()
            );
        }
        let scripts = match &self.scripts {
            Some(scripts) => scripts.clone(),
            None => scripts_above(&program),
        };
        if !scripts.is_file() {
            bail!(
                "{} is not there: start binlogd-lab in binlogd's work tree, or name the script with --scripts",
                scripts.display()
            );
        }
        let cpus = self.cpus.clone().unwrap_or_default();
        cpus.check()?;
        Ok(Lab {
            // Whole paths: what is started may have another current folder.
            binlogd: whole(&binlogd)?,
            scripts: whole(&scripts)?,
            dir: made(&self.dir, "--dir")?,
            apart: Apart {
                source_dir: self.source_dir.as_ref().map(|dir| made(dir, "--source-dir")).transpose()?,
                receiver_dir: self
                    .receiver_dir
                    .as_ref()
                    .map(|dir| made(dir, "--receiver-dir"))
                    .transpose()?,
                cpus,
                network: self.network,
            },
            link: None,
            journals: std::path::absolute(self.journals.dir()?)?,
            interrupt: Interrupt::install()?,
            unrestored: Arc::default(),
            allowed_servers: self.use_server_with_data.clone(),
            say,
        })
    }
}

/// The folder that `option` names, made when it is missing.
fn made(dir: &Path, option: &str) -> anyhow::Result<PathBuf> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {} ({option})", dir.display()))?;
    whole(dir)
}

fn whole(path: &Path) -> anyhow::Result<PathBuf> {
    path.canonicalize().with_context(|| format!("cannot find {}", path.display()))
}

/// The release binary of binlogd where this program was built or installed.
fn beside(program: &Path) -> PathBuf {
    let folder = program.parent().unwrap_or(Path::new("."));
    let places = [
        // A debug binary of binlogd lies beside a debug binary of the lab, and is not what anyone wants measured.
        (!cfg!(debug_assertions)).then(|| folder.join("binlogd")),
        folder.parent().map(|target| target.join("release/binlogd")),
    ];
    let found = places.into_iter().flatten().find(|place| place.is_file());
    found.unwrap_or_else(|| PathBuf::from("target/release/binlogd"))
}

fn scripts_above(program: &Path) -> PathBuf {
    let here = PathBuf::from("scripts/servers");
    if here.is_file() {
        return here;
    }
    let mut places = program.ancestors().map(|folder| folder.join("scripts/servers"));
    places.find(|place| place.is_file()).unwrap_or(here)
}
