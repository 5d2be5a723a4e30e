//! The `binlogd` command: one verb, one file, or a folder of its name.
//!
//! Exit codes: 0 all is well, 1 a problem was found, 2 the command line or the configuration is wrong.

#![allow(clippy::disallowed_methods, reason = "commands of people, in real time, with their own files")]

#[macro_use]
mod output;

mod args;
mod backup;
mod cat;
mod config;
mod doctor;
mod drill;
mod exit;
mod fetch;
mod find;
mod forks;
mod health;
mod import;
mod leave_quorum;
mod opened;
mod promote;
mod prune;
mod purge;
mod rescue;
mod restore;
mod row;
mod run;
mod setup;
mod show;
mod slots;
mod stats;
mod status;
mod style;
#[cfg(test)]
mod surfaces;
mod table;
mod terminal;
mod top;
mod undo;
mod units;
mod verify;
mod version;

use std::ffi::OsString;
use std::process::ExitCode;

pub use args::source_url;
use clap::{CommandFactory, Parser, Subcommand};
use exit::usage_error;

/// A virtual MySQL and MariaDB replica: a durable, byte-identical copy of the binary log, acknowledged by semi-sync.
#[derive(Debug, Parser)]
#[command(name = "binlogd", version, long_version = version::LONG, arg_required_else_help = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

/// One line here and one in [`execute`] add a verb.
#[derive(Debug, Subcommand)]
enum Verb {
    /// Receive from one source (flags) or several (--config) until told to stop
    Run(run::args::RunArgs),
    /// Take a backup of a server into the archive, beside its log: by mysqldump, mariadb-dump, mariadb-backup, or a command
    Backup(backup::BackupArgs),
    /// List the backups of an archive, and what can be brought back: from when until when
    Backups(backup::list::BackupsArgs),
    /// Write a part of the history as one binary log that mysqlbinlog reads
    Cat(cat::CatArgs),
    /// Check a configuration file, or print a commented example
    Config(config::ConfigArgs),
    /// Look at a source before anything is started: what is missing, and the SQL that repairs it
    Doctor(doctor::DoctorArgs),
    /// Rehearse a recovery in a server that is thrown away: a backup and the log behind it, compared with the next backup
    Drill(drill::DrillArgs),
    /// Get files of an archive back, as a copy that every other verb reads
    Fetch(fetch::FetchArgs),
    /// Find transactions: by GTID, time, table, kind, size, connection or text
    Find(find::FindArgs),
    /// List the transactions that a source lost, and GTIDs that it gave twice; record what was decided about them
    Forks(forks::ForksArgs),
    /// Ask the daemon whether every source receives: one line, exit code 0 or 1
    Health(health::HealthArgs),
    /// Translate a virtual_slave.cnf into a configuration of binlogd
    Import(import::ImportArgs),
    /// Go on without the other nodes of a quorum, when a majority of them is lost for ever
    LeaveQuorum(leave_quorum::LeaveQuorumArgs),
    /// Make another server the source of a quorum of binlogds: nothing that was acknowledged is lost, and the old one is fenced
    Promote(promote::PromoteArgs),
    /// Delete old files of an archive, and objects that nothing names any more
    Prune(prune::PruneArgs),
    /// Delete old files of a stopped copy, or say which would go and why the others stay
    Purge(purge::PurgeArgs),
    /// Give a server the transactions that it lacks and the copy holds, after a failover or a crash of the source
    Rescue(rescue::RescueArgs),
    /// Bring a server that was restored from a backup to a point in the history: just before the mistake
    Restore(Box<restore::RestoreArgs>),
    /// Tell what a row was at a point in time, and who changed it, from the log alone
    Row(row::RowArgs),
    /// Prepare a source and this machine: account, semi-sync, configuration; shown first, done with --apply
    Setup(setup::SetupArgs),
    /// Print transactions for a person: their statements, and their rows value by value
    Show(show::ShowArgs),
    /// List the readers whose place is remembered, and for whom files are kept; remove one
    Slots(slots::SlotsArgs),
    /// Show the biggest and the longest transactions, the busiest tables, and writes a minute
    Stats(stats::StatsArgs),
    /// Show what the daemon does, or what the files hold when it does not run
    Status(status::StatusArgs),
    /// Print all rows of a small table as they were at a point in time, as CSV or SQL, from the log alone
    Table(table::TableArgs),
    /// Watch the daemon and its sources in the terminal: whether all is safe, and what is not
    Top(top::TopArgs),
    /// Take row transactions back: their inverse as a script of SQL, or applied to a server
    Undo(undo::UndoArgs),
    /// Walk every file of a copy, or every object of an archive, and say exactly where and what is wrong
    Verify(verify::VerifyArgs),
}

fn execute(verb: Verb) -> ExitCode {
    match verb {
        Verb::Run(args) => run::execute(&args),
        Verb::Backup(args) => backup::execute(&args),
        Verb::Backups(args) => backup::list::execute(&args),
        Verb::Cat(args) => cat::execute(&args),
        Verb::Config(args) => config::execute(args),
        Verb::Doctor(args) => doctor::execute(&args),
        Verb::Drill(args) => drill::execute(&args),
        Verb::Fetch(args) => fetch::execute(&args),
        Verb::Find(args) => find::execute(&args),
        Verb::Forks(args) => forks::execute(&args),
        Verb::Health(args) => health::execute(&args),
        Verb::Import(args) => import::execute(&args),
        Verb::LeaveQuorum(args) => leave_quorum::execute(&args),
        Verb::Promote(args) => promote::execute(&args),
        Verb::Prune(args) => prune::execute(&args),
        Verb::Purge(args) => purge::execute(&args),
        Verb::Rescue(args) => rescue::execute(&args),
        Verb::Restore(args) => restore::execute(&args),
        Verb::Row(args) => row::execute(&args),
        Verb::Setup(args) => setup::execute(&args),
        Verb::Show(args) => show::execute(&args),
        Verb::Slots(args) => slots::execute(&args),
        Verb::Stats(args) => stats::execute(&args),
        Verb::Status(args) => status::run(args, opened::offline::from_files)
            .unwrap_or_else(|error| usage_error(&format!("{error:#}"))),
        Verb::Table(args) => table::execute(&args),
        Verb::Top(args) => top::execute(args),
        Verb::Undo(args) => undo::execute(&args),
        Verb::Verify(args) => verify::execute(&args),
    }
}

/// The command line with all its verbs, for man pages, completions and the reference. It has the version alone, not the
/// build: what is written about a version is the same of every build.
pub fn command() -> clap::Command {
    Cli::command().long_version(None::<&'static str>)
}

/// The commented configuration that `binlogd config example` prints.
pub fn example() -> String {
    ::config::example::example()
}

/// Runs the command line of this process and returns its exit code.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // Before anything else: until then the password stands in the process list.
    if let Err(error) = args::hide_password::hide_password(&arguments) {
        return usage_error(&error);
    }
    execute(Cli::parse_from(arguments).verb)
}
