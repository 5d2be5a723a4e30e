//! The subcommands.

use crate::acknowledge::{self, AckArgs};
use crate::archive::{self, ArchiveArgs};
use crate::catchup::{self, CatchupArgs};
use crate::find::{self, FindArgs};
use crate::groups::{self, GroupsArgs};
use crate::many::load::{self as many_load, ManyLoadArgs};
use crate::many::{self, ManyArgs};
use crate::quorum::{self, QuorumArgs};
use crate::restore::{self, RestoreArgs};
use crate::serve::null_reader::{self, NullReadersArgs};
use crate::serve::{self, ServeArgs};
use clap::{Parser, Subcommand};
use rig::bare::{self, BareArgs};

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
    /// Seconds for a backlog on a real source, beside other programs, and stalls on the way.
    #[command(mut_arg("rounds", |arg| arg.default_value("5")))]
    Catchup(CatchupArgs),
    /// Latency and memory with many sources in one process, beside one.
    #[command(mut_arg("rounds", |arg| arg.default_value("3")))]
    Many(ManyArgs),
    /// The sources of `many`, which starts it.
    #[command(hide = true)]
    ManyLoad(ManyLoadArgs),
    /// Sending a backlog to readers beside the real source; the live end; a replica that catches up.
    #[command(mut_arg("rounds", |arg| arg.default_value("3")))]
    Serve(ServeArgs),
    /// The readers of `serve`, which starts them.
    #[command(hide = true)]
    NullReaders(NullReadersArgs),
    /// Archiving a backlog beside `zstd | age | aws s3 cp`, and the memory that it takes.
    #[command(mut_arg("rounds", |arg| arg.default_value("5")))]
    Archive(ArchiveArgs),
    /// Bringing a server from a backup to the end of the log, beside `mysqlbinlog | mysql` and beside relay logs.
    #[command(mut_arg("rounds", |arg| arg.default_value("3")))]
    Restore(RestoreArgs),
    /// What a commit takes with a quorum of three, over several delays, beside one binlogd, a chain, and MySQL's count.
    #[command(mut_arg("rounds", |arg| arg.default_value("3")))]
    Quorum(QuorumArgs),
    /// Finding transactions: a walk without indexes, and a search over many files by their indexes.
    Find(FindArgs),
    /// The simplest receiver that keeps semi-sync's promise: the yardstick, usable with any source.
    Bare(BareArgs),
}

/// Runs what the command line asks for.
///
/// # Errors
/// When a benchmark could not be made. No number is an error.
pub fn main() -> anyhow::Result<()> {
    match Cli::parse().verb {
        Verb::Bare(args) => bare::run(&args),
        Verb::Find(args) => args.common.begin().and_then(|()| find::run(&args)),
        Verb::Quorum(args) => args.common.begin().and_then(|()| quorum::run(&args)),
        Verb::Restore(args) => args.common.begin().and_then(|()| restore::run(&args)),
        Verb::Groups(args) => args.common.begin().and_then(|()| groups::run(&args)),
        Verb::Ack(args) => args.common.begin().and_then(|()| acknowledge::run(&args)),
        Verb::Catchup(args) => args.common.begin().and_then(|()| catchup::run(&args)),
        Verb::Many(args) => args.common.begin().and_then(|()| many::run(&args)),
        Verb::ManyLoad(args) => many_load::run(&args),
        Verb::Serve(args) => args.common.begin().and_then(|()| serve::run(&args)),
        Verb::Archive(args) => args.common.begin().and_then(|()| archive::run(&args)),
        Verb::NullReaders(args) => null_reader::run(&args),
    }
}
