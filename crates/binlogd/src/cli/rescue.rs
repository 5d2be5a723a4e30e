//! `binlogd rescue DATA_DIR --to mysql://…`: gives a server the transactions that it lacks and the copy holds.

use super::hide_password::URL_PASSWORD_VARIABLE;
use super::source_url::{SourceUrl, percent_decoded};
use super::{EXIT_OK, EXIT_PROBLEM, style, units, usage_error};
use crate::config::HostPort;
use crate::config::password::{PASSWORD_VARIABLE, process_environment, read_bounded};
use crate::config::value::parse_host_port;
use crate::log::folder::{source_folders, timelines};
use crate::log::held::HeldGtids;
use crate::log::storage::PosixStorage;
use crate::log::timeline::Timeline;
use crate::rescue::{Lacked, Plan, Target};
use crate::upstream::copy::HeldCopy;
use crate::wire::{ConnectOptions, Secret, TlsMode, TlsOptions};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Largest password file, in bytes.
const PASSWORD_FILE_BYTES_MAX: u64 = 4096;
/// So many transactions are listed before the question; --dry-run lists all.
const LISTED_MAX: usize = 20;
/// Time for connecting, and for each answer until transactions are sent.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const BAR: &str = "{msg} {wide_bar} {pos}/{len} {eta}";

/// The arguments of `binlogd rescue`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
A transaction goes over under its own GTID, in the order of the copy, as mysqlbinlog would send it; all of them are read and \
understood before the first is sent, and verified by GTID afterwards. It is safe to repeat: what is there already is not sent \
again. Let nothing else write to the target meanwhile.

Exit codes: 0 the target lacks nothing that the copy holds (with --dry-run: the list was made), 1 a problem, 2 the command \
line is wrong.")]
pub struct RescueArgs {
    /// Folder of the copies: the data_dir of the configuration. binlogd may run on it meanwhile
    data_dir: PathBuf,
    /// The server to complete: mysql://user@host:port
    ///
    /// The user needs the rights to do what the transactions did and to say under which GTID: SUPER; or on MySQL
    /// REPLICATION_APPLIER, BINLOG_ADMIN and SYSTEM_VARIABLES_ADMIN beside those to the tables.
    #[arg(long, value_name = "URL")]
    to: Secret,
    /// The source whose copy it is; needed when the folder holds several
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// List the transactions and send nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask before sending
    #[arg(long)]
    yes: bool,
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
                eprintln!("error: {}", style::clean(line));
            }
            ExitCode::from(EXIT_PROBLEM)
        }
    }
}

fn rescue(args: &RescueArgs, name: &str, folder: &Path, options: &ConnectOptions) -> Result<u8, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    // Held until the end, so that no daemon starts to write meanwhile; a running one has it and has put everything in place.
    let _copy = put_in_place(&args.data_dir, name)?;
    let newest = timelines(folder).map_err(|error| text(&error))?.pop();
    let Some(newest) = newest else { return Err(format!("the copy of {name} holds nothing yet")) };
    let kind = Timeline::read(&newest).map_err(|error| text(&error))?.server_kind;
    let host = HostPort { host: options.host.clone(), port: options.port };
    let mut target = Target::connect(options, kind).map_err(|error| format!("{host}: {error}"))?;
    let held =
        HeldGtids::read(folder, kind.flavour()).map_err(|error| text(&error))?.expect("there is a timeline");
    let plan = make_plan(folder, &held, &target, args.json)?;
    let version = target.identity.version.clone();
    let report = Report { name, host: &host, version: &version, plan: &plan };
    if !args.json {
        report.show(if args.dry_run { usize::MAX } else { LISTED_MAX });
    }
    if args.json && (args.dry_run || plan.transactions.is_empty() || !plan.refused.is_empty()) {
        report.json(false);
    }
    if !plan.refused.is_empty() {
        return Err(report.refusal());
    }
    if plan.transactions.is_empty() || args.dry_run {
        return Ok(EXIT_OK);
    }
    target.check(&plan).map_err(|error| format!("{host}: {error}"))?;
    if !args.yes && !confirmed(&host)? {
        println!("nothing was sent");
        return Ok(EXIT_PROBLEM);
    }
    hand_over(&mut target, &plan, args.json).map_err(|error| format!("{host}: {error}"))?;
    if args.json {
        report.json(true);
    } else {
        println!(
            "{host} now has all {} transactions, verified by GTID: {}",
            units::count(plan.transactions.len() as u64),
            plan.gtids.to_line()
        );
    }
    Ok(EXIT_OK)
}

/// Opens the copy as the daemon would, so that what only the journal holds after a crash gets into the files first. `None` when
/// a running daemon holds it.
fn put_in_place(data_dir: &Path, name: &str) -> Result<Option<HeldCopy>, String> {
    match HeldCopy::open(Arc::new(PosixStorage), data_dir, name) {
        Ok((copy, remarks)) => {
            for remark in remarks {
                eprintln!("note: {}", style::clean(&remark));
            }
            Ok(Some(copy))
        }
        Err(error) if error.is_locked() => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

fn make_plan(folder: &Path, held: &HeldGtids, target: &Target, quiet: bool) -> Result<Plan, String> {
    let bar =
        if quiet || !io::stderr().is_terminal() { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
    let plan = Plan::make(folder, held, &target.identity, |path| {
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
    let result = target.hand_over(plan, |lacked| {
        bar.set_message(lacked.id.to_string());
        bar.inc(1);
    });
    bar.finish_and_clear();
    result.map(drop)
}

/// The question, of which only "yes" is a yes.
fn confirmed(host: &HostPort) -> Result<bool, String> {
    if !io::stdin().is_terminal() {
        return Err("nobody is there to be asked: look at --dry-run, then give --yes".to_owned());
    }
    print!("Send them to {host}? Type yes to go on: ");
    let _ = io::stdout().flush();
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(|error| error.to_string())?;
    Ok(answer.trim() == "yes")
}

/// What was found, for people and for programs.
struct Report<'a> {
    name: &'a str,
    host: &'a HostPort,
    version: &'a str,
    plan: &'a Plan,
}

impl Report<'_> {
    fn show(&self, listed_max: usize) {
        let Report { name, host, version, plan } = self;
        let (count, version) = (plan.transactions.len(), style::clean(version));
        if count == 0 && plan.refused.is_empty() {
            println!("{host} ({version}) has every transaction that the copy of {name} holds");
        } else {
            println!(
                "{host} ({version}) lacks {} transactions ({}) that the copy of {name} holds: {}",
                units::count(count as u64),
                units::bytes(plan.size()),
                plan.gtids.to_line()
            );
            for line in table(&plan.transactions[..count.min(listed_max)]) {
                println!("  {line}");
            }
            if count > listed_max {
                println!("  … and {} more; --dry-run lists all", units::count((count - listed_max) as u64));
            }
        }
        if !plan.not_held.is_empty() {
            println!(
                "warning: it also lacks {}, which were executed before the copy began and stand in none of its files",
                plan.not_held.to_line()
            );
        }
        if !plan.lost_once.is_empty() {
            println!(
                "note: it lost {} once and has these GTIDs now: handed back since, or given to other transactions after its \
                 crash; if clients wrote to it before a rescue, compare the rows",
                plan.lost_once.to_line()
            );
        }
        if plan.anonymous > 0 {
            println!(
                "warning: {} transactions of the copy have no GTID; nobody can say whether the target has them",
                units::count(plan.anonymous)
            );
        }
    }

    /// Why nothing is sent at all.
    fn refusal(&self) -> String {
        let refused: Vec<String> = self
            .plan
            .refused
            .iter()
            .map(|(lacked, why)| format!("  {} ({}): {why}", lacked.id, place(lacked)))
            .collect();
        format!(
            "nothing was sent, because these transactions cannot be handed over by statements:\n{}\na replica, or the \
             server's own mysqlbinlog, can take them from the files named",
            refused.join("\n")
        )
    }

    fn json(&self, handed_over: bool) {
        let Plan { refused, not_held, transactions: lacked, .. } = self.plan;
        let complete = refused.is_empty() && not_held.is_empty() && (handed_over || lacked.is_empty());
        let transactions: Vec<Value> = self
            .plan
            .transactions
            .iter()
            .map(|lacked| {
                json!({
                    "gtid": lacked.id.to_string(),
                    "began_at": time(lacked.timestamp),
                    "bytes": lacked.size(),
                    "changes": lacked.changes,
                    "timeline": lacked.timeline,
                    "file": file_name(&lacked.path),
                    "position": lacked.at,
                })
            })
            .collect();
        let refused: Vec<Value> = self
            .plan
            .refused
            .iter()
            .map(|(lacked, why)| json!({ "gtid": lacked.id.to_string(), "reason": why }))
            .collect();
        let report = json!({
            "source": self.name,
            "target": self.host.to_string(),
            "target_version": self.version,
            "gtids": self.plan.gtids.to_line(),
            "transactions": transactions,
            "cannot_be_handed_over": refused,
            "not_in_the_copy": self.plan.not_held.to_line(),
            "lost_once": self.plan.lost_once.to_line(),
            "without_gtid": self.plan.anonymous,
            "handed_over": handed_over,
            "complete": complete,
        });
        println!("{}", serde_json::to_string_pretty(&report).expect("plain data"));
    }
}

/// One line a transaction, in columns.
fn table(transactions: &[Lacked]) -> Vec<String> {
    let cells: Vec<[String; 4]> = transactions
        .iter()
        .map(|lacked| {
            let changes = style::clean(&lacked.changes.join(", "));
            [lacked.id.to_string(), time(lacked.timestamp), units::bytes(lacked.size()), changes]
        })
        .collect();
    let heads = ["GTID", "began (UTC)", "size", "changes"].map(str::to_owned);
    let width = |column: usize| {
        cells.iter().chain([&heads]).map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let (id, began, size) = (width(0), width(1), width(2));
    [&heads]
        .into_iter()
        .chain(&cells)
        .map(|row| format!("{:<id$}  {:<began$}  {:>size$}  {}", row[0], row[1], row[2], row[3]))
        .collect()
}

fn time(seconds: u32) -> String {
    jiff::Timestamp::from_second(i64::from(seconds)).map_or_else(|_| "?".into(), |at| at.to_string())
}

fn place(lacked: &Lacked) -> String {
    format!("{}/{} at {}", lacked.timeline, file_name(&lacked.path), lacked.at)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The source's folder, or what is wrong with the command line.
fn choose(data_dir: &Path, wanted: Option<&str>) -> Result<(String, PathBuf), String> {
    let shown = data_dir.display();
    let mut sources = source_folders(data_dir).map_err(|error| format!("cannot read {shown}: {error}"))?;
    let names = sources.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    if let Some(wanted) = wanted {
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

fn options(args: &RescueArgs) -> Result<ConnectOptions, String> {
    let url = SourceUrl::parse(args.to.expose()).map_err(|why| format!("--to: the URL {why}"))?;
    let [host] = &url.hosts[..] else {
        return Err("--to: the URL must name one host: the server to complete".to_owned());
    };
    let host = parse_host_port(host).map_err(|why| format!("--to: the host {why}"))?;
    let password = match (&args.password_file, url.password) {
        (Some(_), Some(_)) => {
            return Err("--to and --password-file both give a password: keep one".to_owned());
        }
        (Some(file), None) => password_of(file)?,
        (None, Some(password)) => password,
        (None, None) => password_of_environment()?,
    };
    Ok(ConnectOptions {
        host: host.host,
        port: host.port,
        user: url.user,
        password,
        connect_timeout: CONNECT_TIMEOUT,
        tls: TlsOptions { mode: args.tls, ca: args.tls_ca.clone(), ..TlsOptions::default() },
    })
}

fn password_of(file: &Path) -> Result<Secret, String> {
    let text = read_bounded(file, PASSWORD_FILE_BYTES_MAX)
        .map_err(|problem| format!("--password-file \"{}\" {problem}", file.display()))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(Secret::new(line.strip_suffix('\r').unwrap_or(line)))
}

/// The URL's password, which was moved there, or the one variable.
fn password_of_environment() -> Result<Secret, String> {
    if let Some(Ok(encoded)) = process_environment(URL_PASSWORD_VARIABLE) {
        return percent_decoded(&encoded).map(Secret::new).map_err(|why| format!("--to: the URL {why}"));
    }
    match process_environment(PASSWORD_VARIABLE) {
        None => Ok(Secret::default()),
        Some(Ok(password)) => Ok(Secret::new(password)),
        Some(Err(_)) => Err(format!("the environment variable {PASSWORD_VARIABLE} is not valid UTF-8")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::recover::test_files::first_timeline;
    use crate::log::storage::PosixStorage;
    use clap::{Command, FromArgMatches};

    fn parse(line: &str) -> RescueArgs {
        let command = RescueArgs::augment_args(Command::new("rescue"));
        RescueArgs::from_arg_matches(&command.try_get_matches_from(line.split(' ')).unwrap()).unwrap()
    }

    #[test]
    fn the_target_is_one_server() {
        let told = |line: &str| options(&parse(line));
        let one = told("rescue data --to mysql://root:pw@db2:3307 --tls required").unwrap();
        assert_eq!((one.host.as_str(), one.port, one.user.as_str()), ("db2", 3307, "root"));
        assert_eq!((one.password.expose(), one.tls.mode), ("pw", TlsMode::Required));
        assert!(told("rescue data --to mysql://root@a,b").unwrap_err().contains("one host"));
        assert!(told("rescue data --to root@a").unwrap_err().starts_with("--to: the URL must begin"));
        let missing = told("rescue data --to mysql://root@a --password-file none").unwrap_err();
        assert!(missing.starts_with("--password-file \"none\" cannot be read"), "{missing}");
        let twice = told("rescue data --to mysql://root:pw@a --password-file none").unwrap_err();
        assert!(twice.contains("keep one"));
    }

    #[test]
    fn one_source_needs_no_name() {
        let dir = tempfile::tempdir().unwrap();
        assert!(choose(dir.path(), None).unwrap_err().contains("holds no source"));
        let timeline = first_timeline("a");
        for name in ["orders", "stock"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
            timeline.create(&PosixStorage, &dir.path().join(name), 1).unwrap();
            if name == "orders" {
                assert_eq!(choose(dir.path(), None).unwrap().0, "orders");
            }
        }
        assert!(choose(dir.path(), None).unwrap_err().contains("orders, stock"));
        assert_eq!(choose(dir.path(), Some("stock")).unwrap().0, "stock");
        assert!(choose(dir.path(), Some("other")).unwrap_err().contains("orders, stock"));
    }

    #[test]
    fn transactions_stand_in_columns() {
        let lacked = |id: &str, changes: &[&str]| Lacked {
            id: id.parse::<codec::gtid::Gtid>().unwrap().into(),
            timeline: "0001-a".into(),
            path: "x/b.000001".into(),
            at: 100,
            end: 400,
            timestamp: 1_700_000_000,
            changes: changes.iter().map(|change| (*change).to_owned()).collect(),
        };
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        let lines = table(&[
            lacked(&format!("{uuid}:9"), &["shop.orders", "shop.lines"]),
            lacked(&format!("{uuid}:10"), &["CREATE TABLE x\x1b (id INT)"]),
        ]);
        assert_eq!(lines[0], format!("GTID{}began (UTC)            size  changes", " ".repeat(37)));
        assert_eq!(lines[1], format!("{uuid}:9   2023-11-14T22:13:20Z  300 B  shop.orders, shop.lines"));
        assert_eq!(lines[2], format!("{uuid}:10  2023-11-14T22:13:20Z  300 B  CREATE TABLE x  (id INT)"));
    }
}
