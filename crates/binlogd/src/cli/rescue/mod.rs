//! `binlogd rescue DATA_DIR --to mysql://…`: gives a server the transactions that it lacks and the copy holds.

mod args;
mod choice;
mod peers;
mod report;

use super::confirm::confirmed;
use super::exit::{EXIT_OK, EXIT_PROBLEM, print_result, usage_error};
use super::held_copy::{choose, put_in_place};
use super::rescue_guard::{BEFORE, Guard};
use super::style;
pub(super) use args::RescueArgs;
use binlog::folder::timelines;
use binlog::purge::lock::PurgeLock;
use binlog::storage::posix::PosixStorage;
use binlog::timeline::Timeline;
use binlog::timeline::held::HeldGtids;
use choice::options;
use config::HostPort;
use indicatif::{ProgressBar, ProgressStyle};
use repair::history::shortened;
use repair::rescue::{Compared, Kinship, LeftOut, Plan, Target};
use report::Report;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use wire::ConnectOptions;

/// So many transactions are listed before the question; --dry-run lists all.
const LISTED_MAX: usize = 20;
const BAR: &str = "{wide_bar} {human_pos} of {human_len} transactions, {per_sec}, {eta} left";
/// From so many transactions on it matters how fast they are.
const SLOW_FROM: usize = 2_000;
const SLOW: &str = "the target waits for its disk at each commit (sync_binlog, innodb_flush_log_at_trx_commit = 1), one after the \
                    other. A server that you would restore after a crash of its machine meanwhile can be told not to: SET GLOBAL \
                    sync_binlog = 0, innodb_flush_log_at_trx_commit = 2; and afterwards back to 1, then FLUSH BINARY LOGS; FLUSH \
                    ENGINE LOGS;";

/// Runs `binlogd rescue`.
pub(super) fn execute(args: &RescueArgs) -> ExitCode {
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
    // What is read for the plan is read again when it is sent.
    let _files_stay = PurgeLock::take(&PosixStorage, folder).map_err(|error| text(&error))?;
    let newest = timelines(&PosixStorage, folder).map_err(|error| text(&error))?.pop();
    let Some(newest) = newest else { return Err(format!("the copy of {name} holds nothing yet")) };
    let kind = Timeline::read(&PosixStorage, &newest).map_err(|error| text(&error))?.server_kind;
    let host = HostPort { host: options.host.clone(), port: options.port };
    let mut target = Target::connect(options, kind).map_err(|error| format!("{host}: {error}"))?;
    let held = HeldGtids::read(&PosixStorage, folder, kind)
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
    // Not before the copy was read: what arrives meanwhile is in it.
    let peers = match args.without_peers {
        true => Vec::new(),
        false => peers::beyond(args, name, folder, &target.identity.executed)?,
    };
    let mut report =
        Report { name, host: &host, version: &version, plan: &plan, peers, compared: Compared::default() };
    if args.print_sql {
        let text = report.statements(folder, args.overwrite).map_err(|error| text(&error))?;
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
        target
            .may_hand_over()
            .and_then(|()| target.applies_as_written(&args.accept))
            .map_err(|error| format!("{host}: {error}"))?;
    }
    if !args.yes {
        guard.warn_if_open(&mut target, &plan)?;
    }
    let same = guard.compare_before(
        (&PosixStorage, folder),
        &held,
        &target.identity,
        (sends, BEFORE),
        &mut report.compared,
    );
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
    if !args.yes && !confirmed(&format!("Send them to {host}?"), "--dry-run")? {
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

fn hand_over(target: &mut Target, plan: &Plan, quiet: bool) -> Result<(), repair::rescue::HandOverError> {
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
