//! Serving readers: beside the real source that has the same files, and beside nobody.
//!
//! | file | noun |
//! |---|---|
//! | `serving.rs` | binlogd with its port for readers |
//! | `null_reader.rs` | readers that throw away what they read, in a process of their own |
//! | `pull.rs` | a backlog: bytes a second and processor time, from the source and from binlogd |
//! | `live.rs` | the live end: the way from durable to delivered, and what readers cost the acknowledgement |
//! | `idle.rs` | memory and processor time of readers that have everything |
//! | `replica.rs` | how soon a real replica catches up |

mod idle;
mod live;
pub mod null_reader;
mod pull;
mod replica;
mod serving;

use crate::backlog::{Backlog, Mix};
use crate::common::Common;
use serving::Serving;
use std::fmt;
use std::path::{Path, PathBuf};

/// Arguments of `binlogd-bench serve`.
#[derive(Debug, Clone, clap::Args)]
pub struct ServeArgs {
    /// Common ones.
    #[command(flatten)]
    pub common: Common,
    /// GiB of binary log to make and to send: ordinary transactions, as in `catchup`.
    #[arg(long, default_value_t = 1.0)]
    pub gib: f64,
    /// GiB of small transactions of about 400 bytes.
    #[arg(long, default_value_t = 0.1)]
    pub small_gib: f64,
    /// Readers at once, where it is many.
    #[arg(long, default_value_t = 20)]
    pub readers: usize,
    /// Readers that only wait.
    #[arg(long, default_value_t = 500)]
    pub idle: usize,
    /// Groups in a round at the live end, each of one transaction of 600 bytes.
    #[arg(long, default_value_t = 2000)]
    pub groups: usize,
    /// The source: a name of `scripts/servers list`, a MySQL.
    #[arg(long, default_value = "mysql-9.7")]
    pub server: String,
    /// The script that starts it.
    #[arg(long, default_value = "scripts/servers")]
    pub servers_script: PathBuf,
    /// Only these parts.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Part::Pull, Part::Replica, Part::Live, Part::Idle])]
    pub parts: Vec<Part>,
}

/// What can be measured alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// A backlog, beside the source.
    Pull,
    /// A replica that catches up, beside the source.
    Replica,
    /// The live end.
    Live,
    /// Readers that wait.
    Idle,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Pull => "pull",
            Part::Replica => "replica",
            Part::Live => "live",
            Part::Idle => "idle",
        })
    }
}

/// Who sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sender {
    Source,
    Binlogd,
}

const SENDERS: [Sender; 2] = [Sender::Source, Sender::Binlogd];

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Sender::Source { "the source" } else { "binlogd" })
    }
}

/// A real source with a backlog, and a binlogd that has all of it.
struct Scene {
    backlog: Backlog,
    binlogd: Serving,
}

impl Scene {
    fn make(args: &ServeArgs, dir: &Path, mix: Mix, gib: f64) -> anyhow::Result<Scene> {
        let bytes = (gib * f64::from(1 << 30)) as u64;
        eprintln!("making {gib:.2} GiB of binary log on {}", args.server);
        let backlog = Backlog::make(&args.servers_script, &args.server, dir, bytes, mix)?;
        let binlogd = Serving::start(&args.common.binlogd, &args.common.dir, backlog.server.port())?;
        let (file, position) = backlog.end()?;
        binlogd.wait_durable(file, position)?;
        Ok(Scene { backlog, binlogd })
    }

    /// Port, password and process of whoever sends.
    fn sender(&self, sender: Sender) -> (u16, &'static str, u32) {
        match sender {
            Sender::Source => (self.backlog.server.port(), "", self.backlog.server.pid()),
            Sender::Binlogd => (self.binlogd.port(), serving::PASSWORD, self.binlogd.pid()),
        }
    }
}

/// Runs it and prints its tables.
///
/// # Errors
/// When a program does not do its work. No number is an error.
pub fn run(args: &ServeArgs) -> anyhow::Result<()> {
    let dir = tempfile::Builder::new().prefix("binlogd-serve-").tempdir_in(&args.common.dir)?;
    let dir_path = dir.path().canonicalize()?;
    let has = |part| args.parts.contains(&part);
    if has(Part::Pull) || has(Part::Replica) {
        let scene = Scene::make(args, &dir_path.join("source"), Mix::Ordinary, args.gib)?;
        if has(Part::Pull) {
            pull::run(args, &scene, "ordinary transactions")?;
        }
        if has(Part::Replica) {
            replica::run(args, &scene, &dir_path)?;
        }
    }
    if has(Part::Pull) {
        let scene = Scene::make(args, &dir_path.join("small"), Mix::Small, args.small_gib)?;
        pull::run(args, &scene, "small transactions")?;
    }
    if has(Part::Live) {
        live::run(args)?;
    }
    if has(Part::Idle) {
        idle::run(args)?;
    }
    Ok(())
}
