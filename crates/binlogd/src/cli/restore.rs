//! `binlogd restore --into mysql://… --from DATA_DIR --until POINT`: brings a server from its backup to a point in the history.

use super::confirm::confirmed;
use super::exit::{EXIT_OK, EXIT_PROBLEM, usage_error};
use super::rescue_guard::{Compare, Guard};
use super::server_login::ServerLogin;
use super::{style, time_range, units};
use crate::config::{HostPort, Point};
use crate::rescue::{Compared, Restore};
use crate::restore::{CarryOut, Copied, Course, Progress, Stream, Target, Until, own_address};
use crate::upstream::clock::SystemClock;
use crate::upstream::copy::HeldCopy;
use clap::Args;
use codec::ServerKind;
use codec::gtid::{GtidState, TransactionId};
use indicatif::{ProgressBar, ProgressStyle};
use jiff::tz::TimeZone;
use log::folder::source_folders;
use log::held::HeldGtids;
use log::posix::PosixStorage;
use log::purge::lock::PurgeLock;
use std::io::{self, IsTerminal};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use wire::{ConnectOptions, Secret, TlsMode};

const WALK_BAR: &str = "walking the log {wide_bar} {bytes} of {total_bytes}, {eta} left";
const BAR: &str = "{wide_bar} {human_pos} of {human_len} transactions, {per_sec}, {eta} left";

/// What is done where the target has something else under a GTID of the source.
const WRITTEN_TO: &str = "Nothing was applied. The server was written to after its backup was restored, and gave the source's GTIDs, \
                          because it has the source's UUID. Restore the backup again, remove its auto.cnf, and let nobody write to it. Where it is only \
                          what an earlier restore was told to pass over (--skip), say --compare none";

/// So many XA transactions are named.
const PREPARED_SHOWN_MAX: usize = 10;

/// The arguments of `binlogd restore`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
The server is one that was restored from a backup, with its GTIDs (gtid_purged; on MariaDB gtid_slave_pos), or is empty where the \
copy begins with the source's first transaction. Everything between its GTIDs and the point is walked first: it is known that \
nothing is missing before anything is changed. Then a port of this command sends it to the server's own replication, with its own \
parallel applier; the GTIDs are compared exactly, and the server is detached: no replication, its settings as they were.

A point is a GTID, FILE:POSITION, a time (local where it names no zone), or a statement. It is where the restore stops: 'before', \
which is meant where nothing is said, leaves the transaction out, 'after' takes it in.

  binlogd restore --into mysql://root@db2 --from /var/lib/binlogd --until 'before DROP TABLE shop.orders'
  binlogd restore --into mysql://root@db2 --from /var/lib/binlogd --until '2026-03-01 15:09' --plan

Exit codes: 0 the server has what was asked for (with --plan: a real run would try), 1 a problem, 2 the command line is wrong.")]
pub(super) struct RestoreArgs {
    /// The server to restore: mysql://user@host:port
    ///
    /// The user needs SUPER; or on MySQL REPLICATION_SLAVE_ADMIN, SYSTEM_VARIABLES_ADMIN, REPLICATION CLIENT and PROCESS (with
    /// --skip REPLICATION_APPLIER too), on MariaDB REPLICATION SLAVE ADMIN, SLAVE MONITOR, BINLOG ADMIN and PROCESS.
    #[arg(long, value_name = "URL")]
    into: Secret,
    /// Folder of the copies: the data_dir of the configuration. binlogd may run on it meanwhile
    #[arg(long, value_name = "DATA_DIR")]
    from: PathBuf,
    /// Where to stop: 'before DROP TABLE shop.orders', a GTID, FILE:POSITION, a time, or end
    #[arg(long, value_name = "POINT")]
    until: String,
    /// The source whose copy it is; needed when the folder holds several
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Along the history that ends with this timeline: its number, or the name of its folder
    #[arg(long, value_name = "N")]
    timeline: Option<String>,
    /// Do not apply these transactions; they count as if they were. MySQL only
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
    /// File with the password, alone on its line; else the variable BINLOGD_PASSWORD counts
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Encryption of the command's own connection: disabled, preferred, required, verify-ca or verify-full
    #[arg(long, value_name = "MODE", default_value = "preferred")]
    tls: TlsMode,
    /// PEM file with the authorities that --tls verify-ca and verify-full trust
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
}

/// Runs `binlogd restore`.
pub(super) fn execute(args: &RestoreArgs) -> ExitCode {
    let zone = TimeZone::system();
    let time = |text: &str| {
        // Of a GTID of MariaDB and of a position no colon parts hours and minutes.
        let looks_so = text.len() >= 10 && text.as_bytes().get(4) == Some(&b'-') && text.contains(':');
        let is_time = looks_so && text[..4].bytes().all(|digit| digit.is_ascii_digit());
        is_time.then(|| time_range::moment(text, &zone).map(|at| at.as_microsecond()))
    };
    let chosen = Until::parse(&args.until, &time).map_err(|why| format!("--until: {why}"));
    let chosen = chosen.and_then(|until| Ok((until, choose(args)?, options(args)?)));
    let (until, (name, folder), options) = match chosen {
        Ok(chosen) => chosen,
        Err(error) => return usage_error(&error),
    };
    match restore(args, &until, (&name, &folder), &options) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            for line in error.lines() {
                errln!("error: {}", style::clean(line));
            }
            ExitCode::from(EXIT_PROBLEM)
        }
    }
}

fn choose(args: &RestoreArgs) -> Result<(String, PathBuf), String> {
    let shown = args.from.display();
    let mut sources = source_folders(&PosixStorage, &args.from)
        .map_err(|error| format!("--from: cannot read {shown}: {error}"))?;
    let names = sources.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    if let Some(wanted) = &args.source {
        let found = sources.iter().position(|(name, _)| name == wanted);
        let found = found.ok_or_else(|| format!("{shown} holds no source {wanted:?}; there are: {names}"))?;
        return Ok(sources.swap_remove(found));
    }
    match sources.len() {
        0 => Err(format!("{shown} holds no source: name the data_dir of the configuration")),
        1 => Ok(sources.swap_remove(0)),
        _ => Err(format!("{shown} holds several sources: choose one with --source; there are: {names}")),
    }
}

fn options(args: &RestoreArgs) -> Result<ConnectOptions, String> {
    let login = ServerLogin {
        argument: "--into",
        purpose: "the server to restore",
        url: &args.into,
        password_file: args.password_file.as_deref(),
        tls: args.tls,
        tls_ca: args.tls_ca.as_ref(),
        asks: true,
    };
    login.options()
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn restore(
    args: &RestoreArgs,
    until: &Until,
    (name, folder): (&str, &Path),
    options: &ConnectOptions,
) -> Result<u8, String> {
    // Held until the end, so that no daemon starts to write meanwhile; a running one has it and has put everything in place.
    let _copy = put_in_place(&args.from, name)?;
    // What is walked is sent afterwards.
    let _files_stay = PurgeLock::take(&PosixStorage, folder).map_err(text)?;
    let copied =
        Copied::open(name, folder, Arc::new(PosixStorage), args.timeline.as_deref()).map_err(text)?;
    let skip = skipped(args, copied.kind)?;
    let host = HostPort { host: options.host.clone(), port: options.port };
    let of_host = |error: &dyn std::fmt::Display| format!("{host}: {error}");
    let mut target = Target::connect(options, copied.kind).map_err(|error| of_host(&error))?;
    let mut settings = Restore::open(folder, &host.to_string(), &target.identity.uuid).map_err(text)?;
    if !args.plan {
        target.take().map_err(|error| of_host(&error))?;
        if CarryOut::take_back(&mut target, &mut settings).map_err(|error| of_host(&error))? {
            errln!(
                "note: what an earlier restore had left on {host} was taken back; this one goes on with what the target has"
            );
        }
    }
    let course = find(&copied, &target, until)?;
    if !args.allow_clients && course.transactions > 0 {
        target.is_unused().map_err(|error| of_host(&error))?;
    }
    compare(args, &copied, &target, &host, options)?;
    show(&host, &target, until, &course, &skip);
    if course.transactions == 0 {
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
    let own = own_address(options).map_err(|error| of_host(&error))?;
    let listen = args.listen.unwrap_or(SocketAddr::new(own, 0));
    let stream = Stream::open(&copied, stop_of(&course), listen, &args.from, !own.is_loopback());
    let stream = stream.map_err(|error| format!("{error:#}"))?;
    let advertised = args.advertise.clone().unwrap_or_else(|| shown_address(listen.ip(), own).to_string());
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, is_over.clone()).map_err(text)?;
    }
    let carry_out = CarryOut {
        course: &course,
        stream: &stream,
        host: &advertised,
        skip: &skip,
        workers: args.workers,
        is_over: &is_over,
    };
    let bar = bar(BAR, course.transactions);
    let outcome = carry_out.run(&mut target, &mut settings, &mut |now: Progress| bar.set_position(now.done));
    bar.finish_and_clear();
    let after = outcome.map_err(|error| of_host(&error))?;
    let count = units::count(course.transactions);
    outln!(
        "restored: {count} transactions were applied, and {host} has executed exactly {}",
        line(&after.executed)
    );
    outln!("it is detached: no replication is left on it, and its settings are as they were");
    Ok(EXIT_OK)
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

/// A GTID that something else has got on the target, as happens to a physical backup that was written to: it has the source's UUID.
fn compare(
    args: &RestoreArgs,
    copied: &Copied,
    target: &Target,
    host: &HostPort,
    options: &ConnectOptions,
) -> Result<(), String> {
    if target.identity.executed.is_empty() {
        return Ok(());
    }
    let held = HeldGtids::read(&*copied.storage, &copied.folder, copied.kind).map_err(text)?;
    let Some(held) = held else { return Ok(()) };
    let guard =
        Guard { options, host: host.to_string(), compare: args.compare, allow_writers: true, quiet: true };
    guard.compare_before(
        &copied.folder,
        &held,
        &target.identity,
        (false, WRITTEN_TO),
        &mut Compared::default(),
    )
}

fn skipped(args: &RestoreArgs, kind: ServerKind) -> Result<Vec<TransactionId>, String> {
    let one = |word: &String| {
        let fail = |why: &dyn std::fmt::Display| format!("--skip {word}: {why}");
        match kind {
            ServerKind::MySql => {
                word.parse().map(TransactionId::Mysql).map_err(|error: codec::gtid::GtidError| fail(&error))
            }
            ServerKind::MariaDb => {
                word.parse().map(TransactionId::Mariadb).map_err(|error: codec::gtid::GtidError| fail(&error))
            }
        }
    };
    args.skip.iter().map(one).collect()
}

fn find(copied: &Copied, target: &Target, until: &Until) -> Result<Course, String> {
    let bar = bar(WALK_BAR, 0);
    let found = Course::find(copied, &target.identity, until, &mut |walked, all| {
        bar.set_length(all);
        bar.set_position(walked);
    });
    bar.finish_and_clear();
    found.map_err(text)
}

fn bar(template: &str, len: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    ProgressBar::new(len).with_style(ProgressStyle::with_template(template).expect("a valid template"))
}

fn show(host: &HostPort, target: &Target, until: &Until, course: &Course, skip: &[TransactionId]) {
    let version = style::clean(&target.identity.version);
    outln!("target: {host}, {version}, has executed {}", line(&target.identity.executed));
    outln!("point: {until}");
    match &course.last {
        Some(last) => outln!("  last that is applied:    {}", style::clean(&last.to_string())),
        None => outln!("  nothing comes before the point"),
    }
    match &course.first_left_out {
        Some(first) => outln!("  first that is left out:  {}", style::clean(&first.to_string())),
        None => outln!("  nothing is left out: the copy ends there"),
    }
    let (count, bytes) = (units::count(course.transactions), units::bytes(course.bytes));
    outln!("to apply: {count} transactions, {bytes}; the copy holds all of them");
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

/// Where the stream ends: before the first transaction that is left out.
fn stop_of(course: &Course) -> Option<Point> {
    let id = course.first_left_out.as_ref()?.id?;
    id.to_string().parse().ok()
}

/// The address that the target is told: of a port on all addresses the one by which the target is reached.
fn shown_address(listen: IpAddr, own: IpAddr) -> IpAddr {
    if listen.is_unspecified() { own } else { listen }
}
