//! `binlogd rescue DATA_DIR --to mysql://…`: gives a server the transactions that it lacks and the copy holds.

mod args;
mod choice;
mod peers;
mod report;

use super::exit::{EXIT_OK, EXIT_PROBLEM, print_result, usage_error};
use super::style;
use crate::cli::opened::held_copy::{choose, put_in_place};
use crate::cli::terminal::confirm::confirmed;
use crate::cli::terminal::heard::Heard;
pub(super) use args::RescueArgs;
use choice::options;
use config::HostPort;
use repair::rescue::{Next, Request, Rescue};
use report::{Report, warn};
use std::path::Path;
use std::process::ExitCode;
use wire::ConnectOptions;

/// So many transactions are listed before the question; --dry-run lists all.
const LISTED_MAX: usize = 20;

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
    let host = HostPort { host: options.host.clone(), port: options.port }.to_string();
    let request = Request {
        name,
        folder,
        to: options,
        scope: args.compare.scope(),
        allow_writers: args.allow_writers,
        leave_out: &args.leave_out,
        unrelated: args.unrelated,
        accept: &args.accept,
        dry_run: args.dry_run,
        yes: args.yes,
    };
    let mut heard = Heard::of(&host, args.json);
    let peers = |executed: &_| match args.without_peers {
        true => Ok(Vec::new()),
        false => peers::beyond(args, name, folder, executed),
    };
    let mut rescue =
        Rescue::look(request, peers, &mut |event| heard.hear(event)).map_err(|error| text(&error))?;
    heard.clear();
    let code = |rescue: &Rescue<'_>| if rescue.found().lacks().is_empty() { EXIT_OK } else { EXIT_PROBLEM };
    if args.print_sql {
        let statements = rescue.found().statements(folder, args.overwrite).map_err(|error| text(&error))?;
        let _ = print_result(&statements);
        return Ok(code(&rescue));
    }
    if !args.json {
        Report(rescue.found()).show(if args.dry_run { usize::MAX } else { LISTED_MAX });
    }
    let next = rescue.check(&mut |event| heard.hear(event));
    heard.clear();
    let report = Report(rescue.found());
    if args.json && (args.dry_run || !matches!(next, Ok(Next::Send))) {
        report.json(false);
    }
    let passed_over = rescue.found().compared.passed_over();
    if args.dry_run && !args.json && !passed_over.is_empty() && !matches!(next, Ok(Next::Nothing)) {
        warn(&passed_over);
    }
    if next.map_err(|error| text(&error))? == Next::Nothing {
        if !args.json {
            report.nothing_to_do();
        }
        return Ok(code(&rescue));
    }
    if args.dry_run {
        return Ok(code(&rescue));
    }
    if !args.yes && !confirmed(&format!("Send them to {host}?"), "--dry-run")? {
        outln!("nothing was sent");
        return Ok(EXIT_PROBLEM);
    }
    let verified = rescue.send(&mut |event| heard.hear(event)).map_err(|error| text(&error))?;
    heard.clear();
    let report = Report(rescue.found());
    if args.json {
        report.json(true);
    } else {
        report.done(&verified);
    }
    Ok(code(&rescue))
}
