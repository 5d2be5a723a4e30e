//! `binlogd doctor`: looks at each source before anything is started.

mod archive;
mod archive_held;
mod logs;
mod peers;
mod serve;

use super::exit::{EXIT_OK, EXIT_PROBLEM, print_result, usage_error};
use super::style;
use crate::cli::run::args::RunArgs;
use binlog::folder::{read_identity, timelines};
use binlog::forks::{Fate, Forks};
use binlog::storage::posix::PosixStorage;
use binlog::timeline::gaps::{Gap, Gaps};
use binlog::timeline::held::HeldGtids;
use clap::builder::NonEmptyStringValueParser;
use clap::error::Error as ClapError;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use config::{ArchiveConfig, Config, HostPort, OnGap, SourceConfig, Start};
use setup::doctor::{Facts, Finding, Level, Running, Wanted, disk, examine, forks, gaps, held};
use source::identify::SourceIdentity;
use status::DiskSpace;
use std::net::IpAddr;
use std::path::Path;
use std::process::ExitCode;
use wire::{ConnectOptions, Connection, WireError};

/// The arguments of `binlogd doctor`: those of `run`, except that `--name` also chooses a source of `--config`.
#[derive(Debug)]
pub(super) struct DoctorArgs {
    run: RunArgs,
    name: Option<String>,
    /// Whether to look at the archive, and at nothing else.
    archive: bool,
}

impl Args for DoctorArgs {
    fn augment_args(command: Command) -> Command {
        let archive = Arg::new("archive")
            .long("archive")
            .action(ArgAction::SetTrue)
            .help("Try out the archive of [archive], and look at nothing else")
            .long_help(
                "Try out the archive of [archive], and look at nothing else: whether it can be reached, whether the credentials suffice, \
                 whether it refuses to overwrite, what it has of each source, and whether the keys of identity open that. One or two small objects are made below probe/ for that, and deleted again where \
                 that is allowed.",
            );
        RunArgs::augment_args(command).arg(archive).mut_arg("name", |_| {
            Arg::new("name")
                .long("name")
                .value_name("NAME")
                .value_parser(NonEmptyStringValueParser::new())
                .help("With --config: look at this source only. With --source: its name below data_dir [default: default]")
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for DoctorArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, ClapError> {
        let run = RunArgs::from_arg_matches(matches)?;
        // With --source the name is the source's own and chooses nothing.
        let name = run.config.as_ref().and_then(|_| matches.get_one::<String>("name").cloned());
        Ok(Self { run, name, archive: matches.get_flag("archive") })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), ClapError> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Runs `binlogd doctor`. Exit code 0 when no line is an error, 1 when one is, 2 when the command line or the
/// configuration is wrong.
pub(super) fn execute(args: &DoctorArgs) -> ExitCode {
    let loaded = match args.run.load() {
        Ok(loaded) => loaded,
        Err(error) => return usage_error(&error),
    };
    for warning in &loaded.warnings {
        errln!("warning: {warning}");
    }
    if args.archive {
        return match &loaded.config.archive {
            Some(archive) => try_archive(archive, &loaded.config),
            None => usage_error(&"there is no archive to try out: [archive] has no url"),
        };
    }
    let sources = match choose(&loaded.config, args.name.as_deref()) {
        Ok(sources) => sources,
        Err(error) => return usage_error(&error),
    };
    let colored = style::stdout_is_colored();
    let mut worst = Level::Ok;
    for source in sources {
        for host in &source.hosts {
            let findings = look(source, host, &loaded.config);
            worst = findings.iter().map(|finding| finding.level).fold(worst, Level::max);
            let printed = print_result(&render(&source.name, host, &findings, colored));
            if printed != ExitCode::from(EXIT_OK) {
                return printed;
            }
        }
        for peer in &source.peers {
            let findings = peers::look(source, peer, &loaded.config.data_dir.join(&source.name), &connect);
            worst = findings.iter().map(|finding| finding.level).fold(worst, Level::max);
            let host = format!("peer {peer}");
            let printed = print_result(&render(&source.name, &host, &findings, colored));
            if printed != ExitCode::from(EXIT_OK) {
                return printed;
            }
        }
    }
    if let Some((listen, findings)) = serve::look(&loaded.config) {
        worst = findings.iter().map(|finding| finding.level).fold(worst, Level::max);
        let printed = print_result(&render("readers", &listen, &findings, colored));
        if printed != ExitCode::from(EXIT_OK) {
            return printed;
        }
    }
    ExitCode::from(if worst == Level::Error { EXIT_PROBLEM } else { EXIT_OK })
}

/// Tries an archive out and prints what was found. Exit code 0 when no line is an error, else 1.
pub(super) fn try_archive(archive: &ArchiveConfig, config: &Config) -> ExitCode {
    let findings = archive::look(archive, config);
    let printed = print_result(&render("archive", &archive.location, &findings, style::stdout_is_colored()));
    let is_wrong = findings.iter().any(|finding| finding.level == Level::Error);
    if is_wrong && printed == ExitCode::from(EXIT_OK) { ExitCode::from(EXIT_PROBLEM) } else { printed }
}

fn choose<'a>(config: &'a Config, name: Option<&str>) -> Result<Vec<&'a SourceConfig>, String> {
    let all = || config.sources.iter();
    match name {
        None => Ok(all().collect()),
        Some(name) => match all().find(|source| source.name == name) {
            Some(source) => Ok(vec![source]),
            None => {
                let names: Vec<&str> = all().map(|source| source.name.as_str()).collect();
                Err(format!("there is no source {name:?}; there are: {}", names.join(", ")))
            }
        },
    }
}

/// Looks at one server.
fn look(source: &SourceConfig, host: &HostPort, config: &Config) -> Vec<Finding> {
    let data_dir = &*config.data_dir;
    let disk = disk(config);
    // Where nothing else can be told, only what is wrong is.
    let mut findings = Vec::from_iter(disk.clone().filter(|disk| disk.level != Level::Ok));
    let identity = read_identity(&PosixStorage, &data_dir.join(&source.name)).unwrap_or_else(|error| {
        findings.push(Finding::error(format!("data folder: {error}")));
        None
    });
    let wanted = Wanted {
        server_id: source.server_id.or(identity.as_ref().map(|identity| identity.server_id)),
        replica_uuid: identity.map(|identity| identity.replica_uuid),
        starts_at_latest: source.start == Start::Latest && has_no_timeline(&data_dir.join(&source.name)),
        semi_sync: source.semi_sync,
        tls: source.tls.mode,
        backoff_max: source.backoff_max,
        running: running(data_dir, &source.name),
    };
    match ask(source, host) {
        Ok((facts, server)) => {
            findings.push(Finding::ok(format!("connected to {host} as {}", facts.quoted_account())));
            findings.extend(disk.filter(|disk| disk.level == Level::Ok));
            findings.extend(examine(&facts, &wanted));
            findings.extend(compare(source, host, &data_dir.join(&source.name), &facts, &server));
            findings.extend(given_twice(&data_dir.join(&source.name)));
            findings.extend(recorded_gaps(&data_dir.join(&source.name)));
        }
        Err(error) => findings.push(Finding::error(format!("cannot look at {host}: {error}"))),
    }
    findings
}

/// The file system of the data folder, or of what is there of its path before the first start.
fn disk(config: &Config) -> Option<Finding> {
    let there = config.data_dir.ancestors().find(|folder| folder.is_dir())?;
    let space = DiskSpace::of(there).ok()?;
    let folder = there.display().to_string();
    Some(disk::examine(&folder, space.free, space.size, config.disk_warn.threshold(space.size)))
}

/// What the daemon of this data folder says of the source, if one runs.
fn running(data_dir: &Path, name: &str) -> Option<Running> {
    let status = super::status::of_folder(data_dir)?;
    let source = status.sources.into_iter().find(|source| source.name == name)?;
    Some(Running { is_receiving: source.is_receiving(), state: source.state.to_string() })
}

/// A folder that cannot be read is told elsewhere.
fn has_no_timeline(folder: &Path) -> bool {
    !folder.is_dir() || timelines(&PosixStorage, folder).is_ok_and(|timelines| timelines.is_empty())
}

/// Holds the copy against the server. Nothing to say where there is no copy yet.
fn compare(
    source: &SourceConfig,
    host: &HostPort,
    folder: &Path,
    facts: &Facts,
    server: &SourceIdentity,
) -> Vec<Finding> {
    if has_no_timeline(folder) {
        return Vec::new();
    }
    let unreadable = |error| vec![Finding::error(format!("the copy cannot be read: {error}"))];
    let held = match HeldGtids::read(&PosixStorage, folder, server.executed.kind()) {
        Ok(held) => held.filter(|_| server.has_gtids),
        Err(error) => return unreadable(error),
    };
    let mut findings = Vec::new();
    if let Some(held) = &held {
        // What was never copied is told by itself.
        let gaps = match Gaps::read(&PosixStorage, folder) {
            Ok(gaps) => gaps,
            Err(error) => return unreadable(error),
        };
        let lacked = server.lacks(&held.expected_of(&server.uuid)).subtract(gaps.never_held());
        let is_read_only = facts.is_on("read_only") || facts.is_on("super_read_only");
        findings.push(held::examine(&lacked, is_read_only && server.uuid != held.newest_uuid));
    }
    let server = logs::Server {
        host,
        identity: server,
        timeout: source.connect_timeout,
        connect: &|| connect(source, host),
    };
    match logs::continuation(folder, held.as_ref(), &server) {
        Ok(found) => {
            findings.extend(
                found.map(|found| setup::doctor::logs::examine(&found, source.on_gap == OnGap::Record)),
            );
        }
        Err(error) => findings.extend(unreadable(error)),
    }
    findings
}

/// What the copy itself tells: GTIDs under which it holds two transactions. Nothing to say where there are none.
fn given_twice(folder: &Path) -> Option<Finding> {
    if !folder.is_dir() {
        return None;
    }
    let found = match Forks::read(&PosixStorage, folder, || true) {
        Ok(found) => found?,
        Err(error) => return Some(Finding::error(format!("the copy cannot be read: {error}"))),
    };
    forks::examine(found.count(Fate::GivenTwice), &found.gtids(Fate::GivenTwice).to_line())
}

/// What the copy never had.
fn recorded_gaps(folder: &Path) -> Vec<Finding> {
    if has_no_timeline(folder) {
        return Vec::new();
    }
    let gaps = match Gaps::read(&PosixStorage, folder) {
        Ok(gaps) => gaps,
        Err(error) => return vec![Finding::error(format!("the copy cannot be read: {error}"))],
    };
    let judge = |gap: &Gap| {
        let after = gap.after.as_ref().map(ToString::to_string);
        let before = format!("{} of {}", gap.first_file, gap.timeline);
        gaps::examine(after.as_deref(), &before, &gap.missing.to_line())
    };
    gaps.open.iter().map(judge).collect()
}

fn connect(source: &SourceConfig, host: &HostPort) -> Result<Connection, WireError> {
    Connection::connect(&ConnectOptions {
        host: host.host.clone(),
        port: host.port,
        user: source.user.clone(),
        password: source.password_now().0,
        connect_timeout: source.connect_timeout,
        tls: source.tls.clone(),
    })
}

fn ask(source: &SourceConfig, host: &HostPort) -> Result<(Facts, SourceIdentity), WireError> {
    let mut connection = connect(source, host)?;
    let address = host.host.parse::<IpAddr>();
    let loopback = host.host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    let facts = Facts::collect(&mut connection, loopback)?;
    Ok((facts, SourceIdentity::ask(&mut connection)?))
}

/// One line a finding, its statements below it.
fn render(name: &str, host: &dyn std::fmt::Display, findings: &[Finding], colored: bool) -> String {
    let mut text = format!("{name}: {host}\n");
    for finding in findings {
        let color = match finding.level {
            Level::Ok => style::GREEN,
            Level::Warning => style::YELLOW,
            Level::Error => style::RED,
        };
        // Padded before it is coloured: the codes take no room on the screen.
        let word = style::paint(&format!("{:<8}", finding.level.word()), color, colored);
        let why = if finding.why.is_empty() { String::new() } else { format!(": {}", finding.why) };
        text.push_str(&format!("  {word} {}\n", style::clean(&format!("{}{why}", finding.what))));
        for line in finding.sql.iter().flat_map(|sql| sql.lines()) {
            text.push_str(&format!("             {}\n", style::clean(line)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<DoctorArgs, ClapError> {
        let command = DoctorArgs::augment_args(Command::new("doctor"));
        DoctorArgs::from_arg_matches(&command.try_get_matches_from(line.split(' '))?)
    }

    #[test]
    fn a_source_of_a_file_can_be_chosen() {
        DoctorArgs::augment_args(Command::new("doctor")).debug_assert();
        assert_eq!(parse("doctor --config b.toml --name orders").unwrap().name.as_deref(), Some("orders"));
        assert_eq!(parse("doctor --source mysql://u@h --name orders").unwrap().name, None);
        assert!(parse("doctor --config b.toml --archive").unwrap().archive);
        assert!(parse("doctor").is_err() && parse("doctor --config b.toml --source mysql://u@h").is_err());
    }

    #[test]
    fn statements_stand_below_their_line() {
        let mut finding = Finding::warning("binlog_format: MIXED\x1b[2J");
        finding.why = "less certain".to_owned();
        finding.sql = Some("SET PERSIST binlog_format = 'ROW';".to_owned());
        let host = HostPort { host: "db1".to_owned(), port: 3306 };
        let findings = [Finding::ok("log_bin: ON"), finding];
        assert_eq!(
            render("orders", &host, &findings, false),
            "orders: db1:3306\n  ok       log_bin: ON\n  warning  binlog_format: MIXED [2J: less certain\n             \
             SET PERSIST binlog_format = 'ROW';\n"
        );
        assert!(render("orders", &host, &findings, true).contains("\x1b[1;32mok      \x1b[0m log_bin"));
    }
}
