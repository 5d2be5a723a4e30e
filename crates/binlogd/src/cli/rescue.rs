//! `binlogd rescue DATA_DIR --to mysql://…`: gives a server the transactions that it lacks and the copy holds.

mod choice;
mod report;

use super::rescue_guard::{Compare, Guard};
use super::{EXIT_OK, EXIT_PROBLEM, print_result, style, usage_error};
use crate::config::HostPort;
use crate::rescue::{Compared, Kinship, LeftOut, Plan, Target};
use crate::upstream::clock::SystemClock;
use crate::upstream::copy::HeldCopy;
use choice::{choose, options};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use log::folder::timelines;
use log::held::HeldGtids;
use log::storage::PosixStorage;
use log::timeline::Timeline;
use report::Report;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use wire::{ConnectOptions, Secret, TlsMode};

/// So many transactions are listed before the question; --dry-run lists all.
const LISTED_MAX: usize = 20;
const BAR: &str = "{wide_bar} {human_pos} of {human_len} transactions, {per_sec}, {eta} left";
/// From so many transactions on it matters how fast they are.
const SLOW_FROM: usize = 2_000;
const SLOW: &str = "the target waits for its disk at each commit (sync_binlog, innodb_flush_log_at_trx_commit = 1), one after the \
                    other. A server that you would restore after a crash of its machine meanwhile can be told not to: SET GLOBAL \
                    sync_binlog = 0, innodb_flush_log_at_trx_commit = 2; and afterwards back to 1, then FLUSH BINARY LOGS; FLUSH \
                    ENGINE LOGS;";

/// The arguments of `binlogd rescue`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
A transaction goes over under its own GTID, in the order of the copy, as mysqlbinlog would send it; all of them are read and \
understood before the first is sent, and compared with the target's own binary log afterwards. It is safe to repeat: what is \
there already is not sent again, but compared too. Until all is handed over the target's event_scheduler is OFF and its read_only \
ON; whoever can write all the same is refused by name.

Exit codes: 0 the target lacks nothing that the copy knows of (with --dry-run: a real run would try to send it), 1 a problem, or \
something is still missing there or cannot be known (left out, not in the copy, without a GTID), 2 the command line is wrong.")]
pub struct RescueArgs {
    /// Folder of the copies: the data_dir of the configuration. binlogd may run on it meanwhile
    data_dir: PathBuf,
    /// The server to complete: mysql://user@host:port
    ///
    /// The user needs the rights to do what the transactions did and to say under which GTID: SUPER; or on MySQL
    /// REPLICATION_APPLIER, BINLOG_ADMIN and SYSTEM_VARIABLES_ADMIN beside those to the tables. To see who else writes and to read
    /// the target's log: PROCESS, REPLICATION SLAVE and REPLICATION CLIENT; on MySQL CONNECTION_ADMIN and XA_RECOVER_ADMIN.
    #[arg(long, value_name = "URL")]
    to: Secret,
    /// The source whose copy it is; needed when the folder holds several
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// List the transactions and send nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the statements of what is lacking and of GTIDs that were given twice, for a person, and send nothing
    ///
    /// They name no GTID. binlogd forks --print-sql prints those of what a fork took without asking a server.
    #[arg(long, conflicts_with_all = ["yes", "json", "dry_run"])]
    print_sql: bool,
    /// Do not ask before sending
    #[arg(long)]
    yes: bool,
    /// Compare what the target has already with the copy, by the target's binary log
    ///
    /// A GTID on both sides may name two transactions. What is handed over is always compared in the end, except with none.
    #[arg(long, value_name = "SCOPE", value_enum, default_value = "sample")]
    compare: Compare,
    /// Go on although others can write to the target, who could take the GTIDs that are to come
    #[arg(long)]
    allow_writers: bool,
    /// Do not hand over these transactions: GTIDs, as the list shows them
    ///
    /// For what cannot be handed over by statements and blocks the others. The target then lacks them, later ones may depend on
    /// them, and the exit code is 1.
    #[arg(long, value_name = "GTID", value_delimiter = ',')]
    leave_out: Vec<String>,
    /// Go on although the target shares no transaction with the copy, or is empty
    #[arg(long)]
    unrelated: bool,
    /// Print JSON; needs --dry-run or --yes
    #[arg(long)]
    json: bool,
    /// File with the password, alone on its line; else the variable BINLOGD_PASSWORD counts
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Encryption: disabled, preferred, required, verify-ca or verify-full
    #[arg(long, value_name = "MODE", default_value = "preferred")]
    tls: TlsMode,
    /// PEM file with the authorities that --tls verify-ca and verify-full trust
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
}

/// Runs `binlogd rescue`.
pub fn execute(args: &RescueArgs) -> ExitCode {
    if args.json && !args.dry_run && !args.yes {
        return usage_error(&"--json asks no questions: add --dry-run or --yes");
    }
    let (name, folder) = match choose(&args.data_dir, args.source.as_deref()) {
        Ok(chosen) => chosen,
        Err(error) => return usage_error(&error),
    };
    let options = match options(args) {
        Ok(options) => options,
        Err(error) => return usage_error(&error),
    };
    match rescue(args, &name, &folder, &options) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            for line in error.lines() {
                errln!("error: {}", style::clean(line));
            }
            ExitCode::from(EXIT_PROBLEM)
        }
    }
}

fn rescue(args: &RescueArgs, name: &str, folder: &Path, options: &ConnectOptions) -> Result<u8, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    // Held until the end, so that no daemon starts to write meanwhile; a running one has it and has put everything in place.
    let _copy = put_in_place(&args.data_dir, name)?;
    let newest = timelines(&PosixStorage, folder).map_err(|error| text(&error))?.pop();
    let Some(newest) = newest else { return Err(format!("the copy of {name} holds nothing yet")) };
    let kind = Timeline::read(&PosixStorage, &newest).map_err(|error| text(&error))?.server_kind;
    let host = HostPort { host: options.host.clone(), port: options.port };
    let mut target = Target::connect(options, kind).map_err(|error| format!("{host}: {error}"))?;
    let held = HeldGtids::read(&PosixStorage, folder, kind.flavour())
        .map_err(|error| text(&error))?
        .expect("there is a timeline");
    let guard = Guard {
        options,
        host: host.to_string(),
        compare: args.compare,
        allow_writers: args.allow_writers,
        quiet: args.json,
    };
    let left_out = LeftOut::parse(kind, &args.leave_out).map_err(|why| format!("--leave-out: {why}"))?;
    if !args.unrelated {
        look_at_kinship(name, &host, &held, &target)?;
    }
    if args.yes && !args.dry_run {
        target.take().map_err(|error| format!("{host}: {error}"))?;
    }
    let mut restore = guard.leftovers(folder, &target.identity)?;
    let plan = make_plan(folder, &held, &target, &left_out, args.json)?;
    let version = target.identity.version.clone();
    let mut report =
        Report { name, host: &host, version: &version, plan: &plan, compared: Compared::default() };
    if args.print_sql {
        let text = report.statements(folder).map_err(|error| text(&error))?;
        let _ = print_result(&text);
        return Ok(if report.missing().is_empty() { EXIT_OK } else { EXIT_PROBLEM });
    }
    if !args.json {
        report.show(if args.dry_run { usize::MAX } else { LISTED_MAX });
    }
    if !plan.refused.is_empty() {
        if args.json {
            report.json(false);
        }
        return Err(report.refusal());
    }
    let sends = !plan.transactions.is_empty();
    if sends {
        target.may_hand_over().map_err(|error| format!("{host}: {error}"))?;
    }
    if !args.yes {
        guard.warn_if_open(&mut target, &plan)?;
    }
    let same = guard.compare_before(folder, &held, &target.identity, sends, &mut report.compared);
    if args.json && (same.is_err() || args.dry_run || !sends) {
        report.json(false);
    }
    if let Err(error) = same {
        let close = sends && args.yes && !args.dry_run;
        return Err(if close { guard.close(&mut target, &mut restore, &plan, error) } else { error });
    }
    let code = if report.missing().is_empty() { EXIT_OK } else { EXIT_PROBLEM };
    if !sends {
        if !args.json {
            report.nothing_to_do();
        }
        if !args.dry_run {
            guard.put_back(&mut target, &mut restore)?;
        }
        return Ok(code);
    }
    target
        .check(&plan)
        .and_then(|()| target.is_acknowledged())
        .map_err(|error| format!("{host}: {error}"))?;
    if args.dry_run {
        let passed_over = report.passed_over();
        if !passed_over.is_empty() && !args.json {
            outln!("warning: {passed_over}");
        }
        // What the real run would be refused for is refused here.
        guard.look_for_writers(&mut target, &plan)?;
        return Ok(code);
    }
    if !args.yes && !confirmed(&host)? {
        outln!("nothing was sent");
        return Ok(EXIT_PROBLEM);
    }
    if plan.transactions.len() > SLOW_FROM && target.syncs_each_commit().unwrap_or(false) {
        errln!("note: {SLOW}");
    }
    let verified =
        guard.hand_over(&mut target, &mut restore, &plan, |target| hand_over(target, &plan, args.json))?;
    if args.json {
        report.json(true);
    } else {
        report.done(&verified);
    }
    Ok(code)
}

/// Who shares nothing with the copy is another server, or one that needs a backup first.
fn look_at_kinship(name: &str, host: &HostPort, held: &HeldGtids, target: &Target) -> Result<(), String> {
    match Kinship::of(&target.identity, &held.all()) {
        Kinship::Related => Ok(()),
        Kinship::Empty => Err(format!(
            "{host} is empty: it has executed no transaction. What the copy of {name} holds goes on from a state of the source that \
             an empty server does not have: restore a backup first (with its GTIDs: gtid_purged, on MariaDB gtid_slave_pos), then \
             rescue hands over what came after it. Where the copy begins with the very first transaction of the source, \
             --unrelated hands over everything from there"
        )),
        Kinship::Stranger => Err(format!(
            "{host} shares no history with the copy of {name}: none of the transactions that it has executed ({}) is one of the \
             copy's ({}). It is another server, or one that was set up without a backup of the source: check the address and \
             --source. Nothing was sent. --unrelated hands over all of it knowingly",
            shortened(&target.identity.executed.to_line()),
            shortened(&held.all().to_line())
        )),
    }
}

/// A set of GTIDs may be long.
fn shortened(set: &str) -> String {
    const CHARACTERS: usize = 200;
    match set.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}…", &set[..end]),
        None => set.to_owned(),
    }
}

/// Opens the copy as the daemon would, so that what only the journal holds after a crash gets into the files first. `None` when
/// a running daemon holds it.
fn put_in_place(data_dir: &Path, name: &str) -> Result<Option<HeldCopy>, String> {
    match HeldCopy::open(Arc::new(PosixStorage), Arc::new(SystemClock), data_dir, name) {
        Ok((copy, remarks)) => {
            for remark in remarks {
                errln!("note: {}", style::clean(&remark));
            }
            Ok(Some(copy))
        }
        Err(error) if error.is_locked() => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

fn make_plan(
    folder: &Path,
    held: &HeldGtids,
    target: &Target,
    left_out: &LeftOut,
    quiet: bool,
) -> Result<Plan, String> {
    let bar =
        if quiet || !io::stderr().is_terminal() { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
    let plan = Plan::make(folder, held, &target.identity, left_out, |path| {
        bar.set_message(format!("reading {}", path.display()));
        bar.tick();
    });
    bar.finish_and_clear();
    plan.map_err(|error| error.to_string())
}

fn hand_over(target: &mut Target, plan: &Plan, quiet: bool) -> Result<(), crate::rescue::HandOverError> {
    let bar = if quiet || !io::stderr().is_terminal() {
        ProgressBar::hidden()
    } else {
        let style = ProgressStyle::with_template(BAR).expect("a valid template");
        ProgressBar::new(plan.transactions.len() as u64).with_style(style)
    };
    let result = target.hand_over(plan, |_| bar.inc(1));
    bar.finish_and_clear();
    result.map(drop)
}

/// The question, of which only "yes" is a yes.
fn confirmed(host: &HostPort) -> Result<bool, String> {
    if !io::stdin().is_terminal() {
        return Err("nobody is there to be asked: look at --dry-run, then give --yes".to_owned());
    }
    let _ =
        write!(io::stdout(), "Send them to {host}? Type yes to go on: ").and_then(|()| io::stdout().flush());
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(|error| error.to_string())?;
    Ok(answer.trim() == "yes")
}
