//! The subcommands.

use crate::acknowledge::{self, AckArgs};
use crate::bare::{self, BareArgs};
use crate::bulk::{self, BulkArgs};
use crate::catchup::{self, CatchupArgs};
use crate::clients::{self, ClientsArgs};
use crate::groups::{self, GroupsArgs};
use crate::many::{self, ManyArgs};
use crate::many_load::{self, ManyLoadArgs};
use crate::memory::{self, MemoryArgs};
use crate::receive::{self, ReceiveArgs};
use crate::semisync::{self, SemisyncArgs};
use anyhow::bail;
use clap::{Parser, Subcommand};
use rig::machine;
use std::path::PathBuf;

/// Benchmarks of the binlogd binary against a scripted source on 127.0.0.1.
#[derive(Debug, Parser)]
#[command(name = "binlogd-bench")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Time from a request's arrival to its acknowledgement.
    Ack(AckArgs),
    /// Groups a second, and syncs a group, when many groups are in flight.
    Groups(GroupsArgs),
    /// Commits a second of clients that wait for their acknowledgements.
    Clients(ClientsArgs),
    /// Bytes a second of a backlog.
    Bulk(BulkArgs),
    /// Seconds for a backlog on a real source, beside other programs, and stalls on the way.
    #[command(mut_arg("rounds", |arg| arg.default_value("5")))]
    Catchup(CatchupArgs),
    /// Latency and memory with many sources in one process, beside one.
    #[command(mut_arg("rounds", |arg| arg.default_value("3")))]
    Many(ManyArgs),
    /// The sources of `many`, which starts it.
    #[command(hide = true)]
    ManyLoad(ManyLoadArgs),
    /// Resident memory in a steady stream.
    Memory(MemoryArgs),
    /// All of them, with their defaults.
    All(Common),
    /// The whole system: real servers, semi-sync, sysbench, and every receiver in turn.
    Semisync(Box<SemisyncArgs>),
    /// The simplest receiver that keeps semi-sync's promise: the yardstick, usable with any source.
    Bare(BareArgs),
    /// binlogd's receive loop with another storage behind it; `ack` and `groups` run it.
    #[command(hide = true)]
    Receive(ReceiveArgs),
}

/// What every benchmark needs.
#[derive(Debug, Clone, clap::Args)]
pub struct Common {
    /// The binary under test, built for release.
    #[arg(long, default_value = "target/release/binlogd")]
    pub binlogd: PathBuf,
    /// How often everything is measured.
    #[arg(long, default_value_t = 9)]
    pub rounds: usize,
    /// Folder on the disk to use; a temporary folder is made in it and removed.
    #[arg(long, default_value = "target")]
    pub dir: PathBuf,
}

/// Runs what the command line asks for.
///
/// # Errors
/// When a benchmark could not be made. No number is an error.
pub fn main() -> anyhow::Result<()> {
    match Cli::parse().verb {
        Verb::Bare(args) => bare::run(&args),
        Verb::Semisync(args) => {
            args.common().map_or(Ok(()), |common| begin(&common)).and_then(|()| semisync::run(&args))
        }
        Verb::Receive(args) => receive::run(&args),
        Verb::Groups(args) => begin(&args.common).and_then(|()| groups::run(&args)),
        Verb::All(common) => all(&common),
        Verb::Ack(args) => begin(&args.common).and_then(|()| acknowledge::run(&args)),
        Verb::Clients(args) => begin(&args.common).and_then(|()| clients::run(&args)),
        Verb::Bulk(args) => begin(&args.common).and_then(|()| bulk::run(&args)),
        Verb::Catchup(args) => begin(&args.common).and_then(|()| catchup::run(&args)),
        Verb::Many(args) => begin(&args.common).and_then(|()| many::run(&args)),
        Verb::ManyLoad(args) => many_load::run(&args),
        Verb::Memory(args) => begin(&args.common).and_then(|()| memory::run(&args)),
    }
}

fn all(common: &Common) -> anyhow::Result<()> {
    begin(common)?;
    acknowledge::run(&AckArgs::with(common.clone()))?;
    groups::run(&GroupsArgs::with(common.clone()))?;
    clients::run(&ClientsArgs::with(common.clone()))?;
    bulk::run(&BulkArgs::with(common.clone()))?;
    memory::run(&MemoryArgs::with(common.clone()))
}

fn begin(common: &Common) -> anyhow::Result<()> {
    if !common.binlogd.is_file() {
        bail!(
            "{} is not there: build it with `cargo build --release`, or name it with --binlogd",
            common.binlogd.display()
        );
    }
    if cfg!(debug_assertions) {
        eprintln!("this benchmark was built without --release: the source is then slower than it should be");
    }
    machine::print(&common.dir)
}
