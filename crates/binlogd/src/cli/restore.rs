//! `binlogd restore --into mysql://… --from DATA_DIR --until POINT`: brings a server from its backup to a point in the history.

use super::compare::Compare;
use super::confirm::confirmed;
use super::exit::{EXIT_OK, EXIT_PROBLEM, usage_error};
use super::heard::Heard;
use super::opened_history::OpenedHistory;
use super::server_flags::ServerFlags;
use super::store_args::StoreArgs;
use super::{style, time_range, units};
use clap::Args;
use codec::gtid::GtidState;
use config::HostPort;
use jiff::tz::TimeZone;
use repair::history::Until;
use repair::restore::{By, Found, Known, Request, Restoring};
use source::identify::SourceIdentity;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use wire::{ConnectOptions, Secret};

/// So many XA transactions are named.
const PREPARED_SHOWN_MAX: usize = 10;

/// The arguments of `binlogd restore`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
The server is one that was restored from a backup, with its GTIDs (gtid_purged; on MariaDB gtid_slave_pos), or with what the backup \
tool noted (--backup-at), or is empty where the copy begins with the source's first transaction. Everything between its GTIDs and the point is walked first: it is known that \
nothing is missing before anything is changed. Then a port of this command sends it to the server's own replication, with its own \
parallel applier; the GTIDs are compared exactly, and the server is detached: no replication, its settings as they were.

A point is a GTID, FILE:POSITION, a time (local where it names no zone), or a statement. It is where the restore stops: 'before', \
which is meant where nothing is said, leaves the transaction out, 'after' takes it in.

  binlogd restore --into mysql://root@db2 --from /var/lib/binlogd --until 'before DROP TABLE shop.orders'
  binlogd restore --into mysql://root@db2 --from /var/lib/binlogd --until '2026-03-01 15:09' --plan
  binlogd restore --into mysql://root@db2 --from s3://bucket/binlogs --identity archive.key --work /var/tmp/restore --until end

Exit codes: 0 the server has what was asked for (with --plan: a real run would try), 1 a problem, 2 the command line is wrong.")]
pub(super) struct RestoreArgs {
    /// The server to restore: mysql://user@host:port
    ///
    /// The user needs on MySQL REPLICATION_SLAVE_ADMIN, SYSTEM_VARIABLES_ADMIN, REPLICATION CLIENT, RELOAD and PROCESS (with --skip
    /// REPLICATION_APPLIER too), on MariaDB REPLICATION SLAVE ADMIN, REPLICATION MASTER ADMIN, SLAVE MONITOR, RELOAD and PROCESS; and
    /// REPLICATION SLAVE, so that what is there already is compared. Where one is missing nothing is changed.
    #[arg(long, value_name = "URL")]
    into: Secret,
    /// Folder of the copies: the data_dir of the configuration, on which binlogd may run meanwhile; or an archive, as
    /// s3://bucket/prefix
    #[arg(long, value_name = "DATA_DIR|URL")]
    from: PathBuf,
    #[command(flatten)]
    store: StoreArgs,
    /// Folder for what is fetched of an archive: the newest binary log, and up to 1 GiB of others. It may be removed afterwards
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// Where to stop: 'before DROP TABLE shop.orders', a GTID, FILE:POSITION, a time, or end
    #[arg(long, value_name = "POINT")]
    until: String,
    /// Where the backup was made, when the server does not know: FILE:POSITION, GTIDs, or the line that xtrabackup or
    /// mariadb-backup wrote; or nothing
    ///
    /// A position is looked up in the copy, which has the source's files. The server must have executed nothing: it is told what it
    /// has (gtid_purged; on MariaDB gtid_slave_pos) before anything is applied.
    #[arg(long, value_name = "PLACE")]
    backup_at: Option<String>,
    /// Along the history that ends with this timeline: its number, or the name of its folder
    #[arg(long, value_name = "N")]
    timeline: Option<String>,
    /// Do not apply these transactions; they count as if they were. FILE:POSITION for a server without GTIDs
    #[arg(long, value_name = "GTID", value_delimiter = ',')]
    skip: Vec<String>,
    /// Say what would be done, and change nothing
    #[arg(long)]
    plan: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Go on although others use the server: whatever they write is in no backup and in no log
    #[arg(long)]
    allow_clients: bool,
    /// Leave these settings of the server as they are, although they change what is made of the log (docs/restore.md lists them)
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    accept: Vec<String>,
    /// Compare what the server has already with the copy, by the server's binary log
    ///
    /// Somebody may have written to it after its backup was restored. What its log does not have any more is not compared.
    #[arg(long, value_name = "SCOPE", value_enum, default_value = "sample")]
    compare: Compare,
    /// Threads of the server that apply; without it its own number, or 4 where that is 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    workers: Option<u32>,
    /// Address at which the server reads from this command; without it the one by which it is reached, with a free port
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Name or address of this machine as the server sees it, where that is not the one of --listen
    #[arg(long, value_name = "HOST")]
    advertise: Option<String>,
    /// Hand the transactions over as statements, by this command's own connection: where the server cannot reach this machine
    ///
    /// One after the other, as rescue does it: on two cores at 0.77 of the speed of the server's own applier, and at 0.57 where each commit is
    /// made durable; the more cores the server has, the less. The user needs the rights that binlogd rescue needs.
    #[arg(long, conflicts_with_all = ["workers", "listen", "advertise"])]
    statements: bool,
    #[command(flatten)]
    server: ServerFlags,
}

/// Runs `binlogd restore`.
pub(super) fn execute(args: &RestoreArgs) -> ExitCode {
    let zone = TimeZone::system();
    let chosen = Until::parse(&args.until, &|text| time_range::of_point(text, &zone))
        .map_err(|why| format!("--until: {why}"));
    let chosen = chosen.and_then(|until| {
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
    outln!("point: {until}");
    match &course.last {
        Some(last) => outln!("  last that is applied:    {}", style::clean(&last.to_string())),
        None => outln!("  nothing comes before the point"),
    }
    match &course.first_left_out {
        Some(first) => outln!("  first that is left out:  {}", style::clean(&first.to_string())),
        None => outln!("  nothing is left out: the copy ends there"),
    }
    let (count, bytes) = (units::counted(course.transactions, "transaction"), units::bytes(course.bytes));
    outln!("to apply: {count}, {bytes}; the copy holds all of them");
    if let Some(warning) = &found.other_release {
        outln!("warning: {}", style::clean(warning));
    }
    if !skip.is_empty() {
        let list: Vec<String> = skip.iter().map(ToString::to_string).collect();
        outln!("not applied, and counted as if they were: {}", list.join(", "));
    }
    if !course.prepared.is_empty() {
        let shown: Vec<&str> = course.prepared.iter().take(PREPARED_SHOWN_MAX).map(String::as_str).collect();
        outln!(
            "warning: at the point {} XA transactions are prepared, and neither committed nor rolled back: {}. They stay so on the \
             target and hold locks; XA COMMIT or XA ROLLBACK is yours to decide",
            course.prepared.len(),
            style::clean(&shown.join(", "))
        );
    }
    for one in &found.set_aside {
        outln!("for the time of the restore {} = {}; {one}", one.name, one.harmless());
    }
    if let Some(short) = &found.short {
        outln!("warning: {}", style::clean(&short.to_string()));
    }
}

/// A set of GTIDs in one line.
fn line(gtids: &GtidState) -> String {
    const CHARACTERS: usize = 300;
    let text = gtids.to_line();
    match text.char_indices().nth(CHARACTERS) {
        _ if text.is_empty() => "nothing".to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
