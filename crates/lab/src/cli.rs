//! The command line of `binlogd-lab`: one verb, one file.
//!
//! Exit codes: 0 all is well, 1 something did not work or is not sound, 2 the command line is wrong, 130 interrupted.

mod command;
mod list;
mod report;
mod run;
mod runs;

use crate::engine::BrokenOff;
use crate::interrupt::Interrupted;
use crate::study::{Study, catalogue};
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// The exit code of a run that was interrupted, as shells have it for SIGINT.
pub const EXIT_INTERRUPTED: u8 = 130;

const EXAMPLES: &str = "\
Examples:
  binlogd-lab list                                      what there is, and how long it takes here, about
  binlogd-lab run virtual-replica                       one study, in the quick profile
  binlogd-lab run all --profile smoke                   every study once: does everything work here?
  binlogd-lab run virtual-replica --set threads=2,16 --set rounds=5
  BINLOGD_LAB_PASSWORD=… binlogd-lab run all --server mysql://dba@db.example:3306
  binlogd-lab run all --resume                          go on where the last run was interrupted
  binlogd-lab report                                    the newest finished run of each study, as HTML, Markdown and CSV
  binlogd-lab advise                                    one page: what to set on this source, by what was measured
  binlogd-lab restore                                   set back what a killed run has left changed: your own servers, this machine";

/// Runs the published studies of what a durable binary log costs, and reports them beside the published figures.
#[derive(Debug, Parser)]
#[command(name = "binlogd-lab", version, arg_required_else_help = true, max_term_width = 110, after_help = EXAMPLES)]
struct Cli {
    /// File of results, SQLite
    #[arg(long, global = true, value_name = "FILE", default_value = "target/lab.sqlite")]
    db: PathBuf,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Show the studies: what each asks, its settings in each profile, and the time it takes
    List,
    /// Run studies and keep what they measure
    Run(Box<run::RunArgs>),
    /// Show the runs that the file of results holds
    Runs,
    /// Write a report of runs: HTML, Markdown, CSV
    Report(report::ReportArgs),
    /// Print one page of advice by what was measured: what semi-sync to binlogd would cost, what a relaxed source would gain
    /// and risk, which sync_binlog, whether to compress
    Advise(report::AdviseArgs),
    /// Show how two runs of a study differ
    Compare(report::CompareArgs),
    /// Take in the runs of a report that was written elsewhere, to report and compare them here
    Import(report::ImportArgs),
    /// Write the cells of a run for other programs
    Export(report::ExportArgs),
    /// Make a page of Markdown from what `export --jsonl` has written
    Page(report::PageArgs),
    /// Check runs: every planned cell was measured and is valid, every chart has a point and every table a number
    Check(report::CheckArgs),
    /// Set back what runs that were killed have left changed on your own servers and on this machine
    Restore(run::JournalArgs),
    /// The bare receiver, which a run of virtual-replica starts
    #[command(hide = true)]
    Bare(rig::bare::BareArgs),
}

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    main_with(catalogue::all(), std::env::args_os())
}

/// Runs a command line, the program's name first, with these studies. For tests, which bring a study of their own.
pub fn main_with(studies: &[&dyn Study], arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let Cli { db, verb } = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    let done = match verb {
        Verb::List => list::print(studies),
        Verb::Run(args) => run::run(studies, &args, &db, &command::shown(&arguments)),
        Verb::Runs => runs::print(&db),
        Verb::Report(args) => report::write(studies, &args, &db),
        Verb::Advise(args) => report::advise(studies, &args, &db),
        Verb::Compare(args) => report::compare(&args, &db),
        Verb::Import(args) => report::import(&args, &db),
        Verb::Export(args) => report::export(studies, &args, &db),
        Verb::Page(args) => report::page(&args),
        Verb::Check(args) => report::check(studies, &args, &db),
        Verb::Restore(args) => report::restore(&args),
        Verb::Bare(args) => rig::bare::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<Interrupted>() => {
            let resume = error.downcast_ref::<BrokenOff>().map(|broken_off| format!("; {broken_off}"));
            eprintln!("interrupted{}", resume.unwrap_or_default());
            ExitCode::from(EXIT_INTERRUPTED)
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
