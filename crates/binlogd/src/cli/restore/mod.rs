//! `binlogd restore --into mysql://… --from DATA_DIR --until POINT`: brings a server from its backup to a point in the history.

mod compare;
mod release;
mod space;

use super::confirm::confirmed;
use super::exit::{EXIT_OK, EXIT_PROBLEM, usage_error};
use super::opened_history::{OpenedHistory, text};
use super::rescue_guard::Compare;
use super::server_flags::ServerFlags;
use super::store_args::StoreArgs;
use super::{style, time_range, units};
use clap::Args;
use codec::Position;
use codec::gtid::{GtidState, TransactionId};
use compare::compare;
use config::{HostPort, Point};
use indicatif::{ProgressBar, ProgressStyle};
use jiff::tz::TimeZone;
use release::other_release;
use repair::history::{Copied, Until};
use repair::rescue::Restore;
use repair::restore::{
    BackupAt, Begin, ByStatements, CarryOut, Course, Ended, Leg, NoCourse, Progress, Skip, Stream, Target,
    Telling, Way, legs, own_address, told,
};
use source::identify::SourceIdentity;
use std::io::{self, IsTerminal};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use wire::{ConnectOptions, Secret};

const WALK_BAR: &str = "walking the log {wide_bar} {bytes} of {total_bytes}, {eta} left";
const BAR: &str = "{wide_bar} {human_pos} of {human_len} transactions, {per_sec}, {eta} left";

/// From so many transactions on it matters how fast they are.
const SLOW_FROM: u64 = 2_000;

/// What a server without GTIDs needs.
const NO_GTIDS: &str = "the target has gtid_mode = OFF, so it does not know what it has. Where the source has GTIDs, switch them on here \
                        too: SET GLOBAL enforce_gtid_consistency = ON; SET GLOBAL gtid_mode = OFF_PERMISSIVE; = ON_PERMISSIVE; = ON, \
                        one after the other. Where the source has none either, say where the backup was made: --backup-at FILE:POSITION, or \
                        nothing";

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
    let copied = &from.copied;
    let host = HostPort { host: options.host.clone(), port: options.port };
    let of_host = |error: &dyn std::fmt::Display| format!("{host}: {error}");
    let mut target = Target::connect(options, copied.kind).map_err(|error| of_host(&error))?;
    let skip = skipped(args, copied, &target)?;
    let mut settings = Restore::open(&from.notes, &host.to_string(), &target.identity.uuid).map_err(text)?;
    let applied = applied_before(args, &mut target, &mut settings, &host)?;
    let known = known(args, copied, &mut target, applied).map_err(|error| match error {
        Unknown::Target(error) => of_host(&error),
        Unknown::Backup(error) => error,
    })?;
    let begin = match &known {
        Known::Position(at) => Begin::Position(at),
        _ => Begin::Gtids(&target.identity),
    };
    if args.statements && matches!(known, Known::Position(_)) {
        return Err(format!("{host}: --statements needs GTIDs, which the target has switched off"));
    }
    let course = find(copied, begin, until, &skip, &known)?;
    let parts = legs(copied, begin, until, course.clone()).map_err(text)?;
    if !args.allow_clients && course.transactions > 0 {
        target.is_unused().map_err(|error| of_host(&error))?;
    }
    let set_aside = if course.transactions == 0 {
        Vec::new()
    } else {
        target.applies_as_written(args.statements, &args.accept).map_err(|error| of_host(&error))?
    };
    match &known {
        Known::Itself => compare(from, &target, &host.to_string(), options, args.compare)?,
        Known::Told(_) => {}
        Known::Position(_) => {
            errln!("note: without GTIDs nobody can compare what the target has already with the copy");
        }
    }
    show(&host, &target, until, &course, &skip, &known);
    for one in set_aside {
        outln!("for the time of the restore {} = {}; {one}", one.name, one.harmless());
    }
    let own = own_address(options).map_err(|error| of_host(&error))?;
    if let Some(warning) = space::warning(&mut target, options, own, course.bytes) {
        outln!("{warning}");
    }
    // A server that has everything and does not know is told all the same, and one whose channel was left is detached.
    let backup = match &known {
        Known::Told(backup) => Some(backup),
        _ => None,
    };
    if course.transactions == 0 && backup.is_none() {
        if !args.plan {
            CarryOut::forget(&mut target).map_err(|error| of_host(&error))?;
        }
        outln!("nothing is to be done: the target has everything up to the point");
        return Ok(EXIT_OK);
    }
    let passed_over = passed_over(&skip);
    if args.statements {
        // What cannot be said in statements is told before anything is changed.
        ByStatements { copied, course: &course, skip: &passed_over }
            .check(&target)
            .map_err(|error| of_host(&error))?;
    }
    if args.plan {
        return Ok(EXIT_OK);
    }
    if !args.yes && !confirmed(&format!("Apply them on {host}?"), "--plan")? {
        outln!("nothing was applied");
        return Ok(EXIT_PROBLEM);
    }
    if args.statements && course.transactions > SLOW_FROM {
        errln!(
            "note: --statements applies one transaction after the other. Where the server can reach this machine, its own applier, which \
             has several threads, is faster"
        );
    }
    let telling = Telling { backup, skip: &passed_over };
    let after = apply(args, from, own, &parts, telling, (&mut target, &mut settings))?
        .map_err(|error| of_host(&error))?;
    tell_the_end(&host, &course, &after);
    Ok(EXIT_OK)
}

/// Takes back what an earlier restore has left; with --plan nothing is changed. Of a server without GTIDs: how far that one has come.
fn applied_before(
    args: &RestoreArgs,
    target: &mut Target,
    settings: &mut Restore,
    host: &HostPort,
) -> Result<Option<Position>, String> {
    let of_host = |error: &dyn std::fmt::Display| format!("{host}: {error}");
    if args.plan {
        let asks = !target.identity.has_gtids;
        return if asks { target.left_at().map_err(|error| of_host(&error)) } else { Ok(None) };
    }
    target.take().map_err(|error| of_host(&error))?;
    let left = CarryOut::take_back(target, settings).map_err(|error| of_host(&error))?;
    // Of a server without GTIDs the channel stays, and it is said where this one goes on.
    if left.is_some && left.applied.is_none() {
        errln!(
            "note: what an earlier restore had left on {host} was taken back; this one goes on with what the target has"
        );
    }
    Ok(left.applied)
}

/// Carries it out, until it is done or a signal comes.
fn apply(
    args: &RestoreArgs,
    from: &OpenedHistory,
    own: IpAddr,
    legs: &[Leg],
    telling: Telling<'_>,
    (target, settings): (&mut Target, &mut Restore),
) -> Result<Result<SourceIdentity, Ended>, String> {
    let copied = &from.copied;
    let listen = args.listen.unwrap_or(SocketAddr::new(own, 0));
    let open = |part: &Course| {
        // Where others may reach the port nobody gets anything in clear.
        let is_open = !own.is_loopback() || !listen.ip().is_loopback();
        let (encrypts, has_gtids) = (is_open, part.stretch.is_none());
        Stream::open(copied, stop_of(part), listen, &from.data_dir, encrypts, has_gtids)
    };
    let advertised = args.advertise.clone().unwrap_or_else(|| shown_address(listen.ip(), own).to_string());
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, is_over.clone()).map_err(text)?;
    }
    let way = match args.statements {
        true => Way::Statements,
        false => Way::Channel { open: &open, host: &advertised, workers: args.workers },
    };
    let carry_out = CarryOut { legs, copied, way, telling, is_over: &is_over };
    let bar = bar(BAR, carry_out.transactions());
    let outcome = carry_out.run(target, settings, &mut |now: Progress| bar.set_position(now.done));
    bar.finish_and_clear();
    Ok(outcome)
}

fn tell_the_end(host: &HostPort, course: &Course, after: &SourceIdentity) {
    let count = units::counted_were(course.transactions - course.skipped.len() as u64, "transaction");
    match &course.stretch {
        None => {
            outln!("restored: {count} applied, and {host} has executed exactly {}", line(&after.executed))
        }
        Some(stretch) => {
            outln!("restored: {count} applied, and {host} stands at {} of the source's log", stretch.end)
        }
    }
    outln!("it is detached: no replication is left on it, and its settings are as they were");
}

fn skipped(args: &RestoreArgs, copied: &Copied, target: &Target) -> Result<Vec<Skip>, String> {
    args.skip.iter().map(|word| Skip::parse(word, copied.kind, target.identity.has_gtids)).collect()
}

fn passed_over(skip: &[Skip]) -> Vec<TransactionId> {
    let id = |skip: &Skip| match skip {
        Skip::Id(id) => Some(*id),
        Skip::At(_) => None,
    };
    skip.iter().filter_map(id).collect()
}

/// How it is known what the target has.
enum Known {
    /// It knows by its GTIDs.
    Itself,
    /// It is told these.
    Told(GtidState),
    /// It has no GTIDs, and has everything up to there.
    Position(Position),
}

/// Why it is not known.
enum Unknown {
    Target(String),
    Backup(String),
}

/// `applied`: how far an earlier restore of a server without GTIDs has come.
fn known(
    args: &RestoreArgs,
    copied: &Copied,
    target: &mut Target,
    applied: Option<Position>,
) -> Result<Known, Unknown> {
    let backup = |text: &String| {
        BackupAt::parse(text, copied.kind).map_err(|why| Unknown::Backup(format!("--backup-at: {why}")))
    };
    let in_words = |error: &dyn std::fmt::Display| Unknown::Backup(error.to_string());
    if target.identity.has_gtids {
        let Some(text) = &args.backup_at else {
            return target
                .is_told()
                .map(|()| Known::Itself)
                .map_err(|error| Unknown::Target(error.to_string()));
        };
        let gtids = backup(text)?.gtids(copied).map_err(|error| in_words(&error))?;
        // From here on it counts as told.
        let identity = told(&target.identity, &gtids).map_err(|error| in_words(&error))?;
        return Ok(match identity {
            None => Known::Itself,
            Some(identity) => {
                target.identity = identity;
                Known::Told(gtids)
            }
        });
    }
    let at = match (applied, &args.backup_at) {
        (Some(at), _) => {
            errln!("note: an earlier restore has brought the target to {at}; this one goes on there");
            BackupAt::Position(at)
        }
        (None, Some(text)) => backup(text)?,
        (None, None) => return Err(Unknown::Target(NO_GTIDS.to_owned())),
    };
    at.position(copied).map(Known::Position).map_err(|error| in_words(&error))
}

fn find(
    copied: &Copied,
    begin: Begin<'_>,
    until: &Until,
    skip: &[Skip],
    known: &Known,
) -> Result<Course, String> {
    let bar = bar(WALK_BAR, 0);
    let found = Course::find(copied, begin, until, skip, &mut |walked, all| {
        bar.set_length(all);
        bar.set_position(walked);
    });
    bar.finish_and_clear();
    found.map_err(|error| match (error, known) {
        (NoCourse::Foreign { gtids }, Known::Told(_)) => format!(
            "--backup-at: {} is in no file of the copy: the backup is another source's, or the copy is behind it",
            line(&gtids)
        ),
        (error, _) => error.to_string(),
    })
}

fn bar(template: &str, len: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    ProgressBar::new(len).with_style(ProgressStyle::with_template(template).expect("a valid template"))
}

fn show(host: &HostPort, target: &Target, until: &Until, course: &Course, skip: &[Skip], known: &Known) {
    let version = style::clean(&target.identity.version);
    match known {
        Known::Told(gtids) => {
            outln!(
                "target: {host}, {version}, does not know what it has; by --backup-at it has {}",
                line(gtids)
            )
        }
        Known::Itself => {
            outln!("target: {host}, {version}, has executed {}", line(&target.identity.executed))
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
    if let Some(warning) = other_release(&course.versions, target.identity.kind, &target.identity.version) {
        outln!("warning: {}", style::clean(&warning));
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
    let first = course.first_left_out.as_ref()?;
    let text = match (first.id, &course.stretch) {
        (Some(id), None) => id.to_string(),
        _ => format!("{}:{}", first.file, first.at),
    };
    Some(text.parse().expect("a GTID and a position are points"))
}

/// The address that the target is told: of a port on all addresses the one by which the target is reached.
fn shown_address(listen: IpAddr, own: IpAddr) -> IpAddr {
    if listen.is_unspecified() { own } else { listen }
}
