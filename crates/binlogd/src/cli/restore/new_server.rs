//! `binlogd restore --new DIR --from URL --until POINT`: a server from nothing but the archive.

use super::args::RestoreArgs;
use super::shown::{line, show_course, until};
use crate::cli::args::store::{Opened, StoreArgs, is_url};
use crate::cli::exit::{EXIT_OK, EXIT_PROBLEM, usage_error};
use crate::cli::opened::history::OpenedHistory;
use crate::cli::terminal::heard::Heard;
use crate::cli::{style, units};
use ::backup::new_server::program::Programs;
use ::backup::new_server::{Chosen, Fetched, Folder, How, NewServer, NoServer, Order, choose};
use archive::upkeep::catalogue;
use repair::history::{Copied, Until};
use source::clock::{Clock, SystemClock};
use source::identify::SourceIdentity;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Runs it.
pub(super) fn execute(args: &RestoreArgs, folder: &Path) -> ExitCode {
    let opened = until(args).and_then(|until| Ok((until, archive(args)?)));
    let (until, opened) = match opened {
        Ok(opened) => opened,
        Err(error) => return usage_error(&error),
    };
    match restore(args, folder, &until, &opened) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            for line in format!("{error:#}").lines() {
                errln!("error: {}", style::clean(line));
            }
            ExitCode::from(EXIT_PROBLEM)
        }
    }
}

/// The archive that is named, with one source.
fn archive(args: &RestoreArgs) -> Result<Opened, String> {
    let url = args.from.to_str().filter(|from| is_url(from));
    let url = url.ok_or("--new needs the archive, as --from s3://bucket/prefix: backups lie there")?;
    let opened = args.store.open(url).map_err(|error| format!("{error:#}"))?;
    match opened.sources.len() {
        1 => Ok(opened),
        _ => Err(format!(
            "{url} has several sources: choose one with --source; there are: {}",
            opened.sources.join(", ")
        )),
    }
}

fn restore(args: &RestoreArgs, root: &Path, until: &Until, opened: &Opened) -> anyhow::Result<u8> {
    let (reader, source) = (&opened.reader, &opened.sources[0]);
    let mut chain = reader.chain(source)?;
    chain.check_whole(&*reader.store)?;
    let listed = catalogue::list(chain.history());
    // The end of the log may be in the copy alone.
    let of_copy = args
        .programs
        .log
        .as_deref()
        .map(|log| OpenedHistory::open(log, &StoreArgs::of_copy(source), None, None));
    let of_copy = of_copy.transpose().map_err(anyhow::Error::msg)?;
    // What is fetched of the log stands beside the server until that is whole.
    let work = Fetched::of(args.work.as_deref(), root);
    let mut heard = Heard::of("the new server", false);
    let (fetched, is_archived);
    let copied = match &of_copy {
        Some(opened) => {
            is_archived = false;
            &opened.copied
        }
        None => {
            (fetched, is_archived) = (Copied::from_archive(reader, source, work.folder(), None)?.0, true);
            &fetched
        }
    };
    let named = args.programs.backup.as_deref();
    let chosen = choose(&listed, named, (copied, is_archived), until, &mut |event| heard.hear(event));
    heard.clear();
    let chosen = chosen?;
    let programs = Programs {
        server: args.programs.server.clone(),
        client: args.programs.client.clone(),
        mariadb_backup: args.programs.mariadb_backup.clone(),
        options: args.programs.options.clone(),
        buffer_pool: args.programs.buffer_pool,
    };
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, is_over.clone())?;
    }
    let (backup, log_bytes) = (&*chosen.backup, chosen.course.bytes);
    let order =
        Order { reader, backup, programs: &programs, log_bytes, clock: &SystemClock, is_over: &is_over };
    // The log says so also where a backup of nothing has no GTIDs to tell.
    let has_gtids = chosen.course.stretch.is_none();
    let how = How { has_gtids, ..NewServer::may_be_made(&order, root)? };
    show(root, until, &chosen, &how);
    if !args.plan {
        carry_out(args, root, until, &order, how, copied, &mut heard)?;
    }
    Ok(EXIT_OK)
}

fn carry_out(
    args: &RestoreArgs,
    root: &Path,
    until: &Until,
    order: &Order<'_>,
    how: How,
    copied: &Copied,
    heard: &mut Heard,
) -> Result<(), NoServer> {
    let started = SystemClock.now();
    let folder = Folder::take(root)?;
    let server = NewServer::load(*order, how, folder, &mut |event| heard.hear(event));
    heard.clear();
    let mut server = server?;
    let loaded = SystemClock.now();
    outln!("the backup is in the new server: {}", took(loaded - started));
    let after = server.bring(copied, until, args.workers, &mut |event| heard.hear(event));
    heard.clear();
    let after = after?;
    let applied = SystemClock.now();
    outln!("the log is applied: {}", took(applied - loaded));
    let program = server.how().program.path.clone();
    let folder = server.finish()?;
    let ended = SystemClock.now();
    tell_the_end(&after, &folder, &program, ended - started);
    Ok(())
}

fn tell_the_end(after: &SourceIdentity, folder: &Folder, program: &Path, whole: Duration) {
    let data = folder.data();
    if after.has_gtids {
        outln!("restored: {} has executed exactly {}", data.display(), line(&after.executed));
    } else {
        outln!("restored: {} has everything up to the point", data.display());
    }
    outln!("the server is ended, {}; nothing else was left in it", took(whole));
    outln!("to start it, with your own settings: {} --datadir={}", program.display(), data.display());
}

fn show(root: &Path, until: &Until, chosen: &Chosen, how: &How) {
    let (record, file) = (&chosen.backup.record, &chosen.backup.file);
    outln!(
        "backup: {} by {} of {} {}, {}, stored as {}",
        record.id,
        record.tool,
        record.server_kind,
        style::clean(&record.server_version),
        units::bytes(file.end()),
        units::bytes(file.stored())
    );
    outln!("  holds {}", style::clean(&record.point.to_string()));
    show_course(until, &chosen.course);
    outln!(
        "server: {} {}, a buffer pool of {}, in {}",
        how.program.path.display(),
        style::clean(&how.program.version),
        units::bytes(how.buffer_pool),
        root.display()
    );
}

fn took(time: Duration) -> String {
    units::duration(time.as_secs())
}
