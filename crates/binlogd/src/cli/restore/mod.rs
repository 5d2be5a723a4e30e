//! `binlogd restore --into mysql://… --from DATA_DIR --until POINT`: brings a server from its backup to a point in the history.

mod args;
mod new_server;
mod shown;
mod table;

use self::shown::{line, show_course, until};
use super::exit::{EXIT_OK, EXIT_PROBLEM, usage_error};
use super::opened::history::OpenedHistory;
use super::terminal::confirm::confirmed;
use super::terminal::heard::Heard;
use super::{style, units};
pub(super) use args::{RestoreArgs, bytes};
use config::HostPort;
use repair::history::Until;
use repair::restore::{By, Found, Known, Request, Restoring};
use source::identify::SourceIdentity;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use wire::ConnectOptions;

/// Runs `binlogd restore`.
pub(super) fn execute(args: &RestoreArgs) -> ExitCode {
    if let Some(folder) = &args.new {
        return new_server::execute(args, folder);
    }
    if !args.table.is_empty() {
        return table::execute(args);
    }
    let chosen = until(args).and_then(|until| {
        let options = args.server.options("--into", "the server to restore", &args.into)?;
        let from =
            OpenedHistory::open(&args.from, &args.store, args.work.as_deref(), args.timeline.as_deref())?;
        Ok((until, from, options))
    });
    let (until, from, options) = match chosen {
        Ok(chosen) => chosen,
        Err(error) => return usage_error(&error),
    };
    match restore(args, &until, &from, &options) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            for line in error.lines() {
                errln!("error: {}", style::clean(line));
            }
            ExitCode::from(EXIT_PROBLEM)
        }
    }
}

fn restore(
    args: &RestoreArgs,
    until: &Until,
    from: &OpenedHistory,
    options: &ConnectOptions,
) -> Result<u8, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let host = HostPort { host: options.host.clone(), port: options.port }.to_string();
    let (workers, listen, advertise) = (args.workers, args.listen, args.advertise.as_deref());
    let request = Request {
        copied: &from.copied,
        notes: &from.notes,
        data_dir: &from.data_dir,
        into: options,
        until,
        backup_at: args.backup_at.as_deref(),
        skip: &args.skip,
        accept: &args.accept,
        allow_clients: args.allow_clients,
        scope: args.compare.scope(),
        by: if args.statements { By::Statements } else { By::Channel { workers, listen, advertise } },
        plan: args.plan,
    };
    let mut heard = Heard::of(&host, false);
    let restoring = Restoring::look(request, &mut |event| heard.hear(event));
    heard.clear();
    let mut restoring = restoring.map_err(|error| text(&error))?;
    show(&host, until, restoring.found());
    restoring.check().map_err(|error| text(&error))?;
    if restoring.found().is_there() {
        outln!("nothing is to be done: the target has everything up to the point");
        return Ok(EXIT_OK);
    }
    if args.plan {
        return Ok(EXIT_OK);
    }
    if !args.yes && !confirmed(&format!("Apply them on {host}?"), "--plan")? {
        outln!("nothing was applied");
        return Ok(EXIT_PROBLEM);
    }
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, is_over.clone()).map_err(|error| text(&error))?;
    }
    let after = restoring.carry_out(&is_over, &mut |event| heard.hear(event));
    heard.clear();
    tell_the_end(&host, restoring.found(), &after.map_err(|error| text(&error))?);
    Ok(EXIT_OK)
}

fn tell_the_end(host: &str, found: &Found, after: &SourceIdentity) {
    let count = units::counted_were(found.applied(), "transaction");
    match &found.course.stretch {
        None => {
            outln!("restored: {count} applied, and {host} has executed exactly {}", line(&after.executed))
        }
        Some(stretch) => {
            outln!("restored: {count} applied, and {host} stands at {} of the source's log", stretch.end)
        }
    }
    outln!("it is detached: no replication is left on it, and its settings are as they were");
}

fn show(host: &str, until: &Until, found: &Found) {
    let Found { target, course, skip, .. } = found;
    let version = style::clean(&target.version);
    match &found.known {
        Known::Told(gtids) => {
            outln!(
                "target: {host}, {version}, does not know what it has; by --backup-at it has {}",
                line(gtids)
            )
        }
        Known::Itself => {
            outln!("target: {host}, {version}, has executed {}", line(&target.executed))
        }
        Known::Position(at) => {
            outln!("target: {host}, {version}, without GTIDs; it has everything up to {at}")
        }
    }
    show_course(until, course);
    if let Some(warning) = &found.other_release {
        outln!("warning: {}", style::clean(warning));
    }
    if !skip.is_empty() {
        let list: Vec<String> = skip.iter().map(ToString::to_string).collect();
        outln!("not applied, and counted as if they were: {}", list.join(", "));
    }
    for one in &found.set_aside {
        outln!("for the time of the restore {} = {}; {one}", one.name, one.harmless());
    }
    if let Some(short) = &found.short {
        outln!("warning: {}", style::clean(&short.to_string()));
    }
}
