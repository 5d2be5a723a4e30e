//! `binlogd forks DATA_DIR`: what sources lost and the copy holds, which GTIDs they gave twice, and what was decided.

use super::exit::{EXIT_PROBLEM, print_result, usage_error};
use super::show::connect;
use super::{style, units};
use crate::cli::args::server::ServerFlags;
use crate::cli::args::store::StoreArgs;
use crate::cli::opened::held_copy::choose;
use crate::cli::opened::searched::definitions;
use binlog::folder::source_folders;
use binlog::forks::gtid_list::GtidList;
use binlog::forks::settlement::{Decision, Settlement, record};
use binlog::forks::{Fate, Forks, Lost, Version};
use binlog::storage::posix::PosixStorage;
use clap::Args;
use codec::ServerKind;
use codec::gtid::{GtidState, TransactionId};
use repair::detail::Known;
use repair::rescue::print::Script;
use serde_json::{Value, json};
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use wire::Secret;

/// Of what is only lost, so many are listed one by one without --all.
const LISTED_MAX: usize = 20;

/// The arguments of `binlogd forks`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
A source that crashed and lost the end of its log, was put back to an earlier state, or was promoted without its predecessor's \
last transactions, lacks what the copy holds. binlogd rescue hands it over. If clients wrote to it before that, it may have \
given the same GTIDs to other transactions: both are kept, and no tool can know which one the data should show. Compare the \
rows, put right what must be, then record that it is settled.

Exit codes: 0 nothing is open, 1 something is, or a problem, 2 the command line is wrong.")]
pub(super) struct ForksArgs {
    /// Folder of the copies: the data_dir of the configuration. binlogd may run on it meanwhile
    data_dir: PathBuf,
    /// This source only; needed with --settle, --accept-loss and --print-sql when the folder holds several
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Record that these GTIDs, given twice, are settled: the data is as it should be. "all" for all of them
    #[arg(long, value_name = "GTIDSET", conflicts_with = "accept_loss")]
    settle: Option<String>,
    /// Record that the source may go on without these transactions. "all" for all of them
    ///
    /// They are not handed over by a rescue any more, nor counted. The copy keeps them.
    #[arg(long, value_name = "GTIDSET")]
    accept_loss: Option<String>,
    /// Why, for the record
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    note: String,
    /// Print the statements of what was lost and whose GTID was given twice, for a person to run once on the source
    ///
    /// They get new GTIDs. What the source has now under those GTIDs, and what binlogd rescue hands over, are comments. Run rescue first.
    #[arg(long, conflicts_with_all = ["json", "settle", "accept_loss"])]
    print_sql: bool,
    /// With --print-sql: let what changes or deletes rows be run too, and not only what inserts
    ///
    /// Where the log has rows and not statements, each row is set to what it was then, whatever was written to it since.
    #[arg(long, requires = "print_sql")]
    overwrite: bool,
    /// With --print-sql: a server to ask for columns that the log does not name: mysql://user@host:port
    ///
    /// Rows are then statements that a person can read, and not BINLOG statements.
    #[arg(long, value_name = "URL", requires = "print_sql")]
    schema: Option<Secret>,
    /// With --schema: the columns of the tables were as they are on that server now: take their names without proof
    #[arg(long, requires = "schema")]
    columns_as_now: bool,
    /// With --schema: leave AUTO_INCREMENT columns out of new rows, so that the server gives new numbers
    ///
    /// The source has given the old ones to other rows. A comment has the old one; look for rows of other tables that name it.
    #[arg(long, requires = "schema", conflicts_with = "overwrite")]
    new_keys: bool,
    #[command(flatten)]
    server: ServerFlags,
    /// List every transaction, not only the first of those that are lost
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How long the beginning of a timeline that a running binlogd has just made is waited for.
const KNOWN_MAX: Duration = Duration::from_secs(3);
const KNOWN_INTERVAL: Duration = Duration::from_millis(100);
const NOT_KNOWN: &str = "MariaDB's GTIDs name the newest of what was lost, and the first file of the newest timeline, which says from \
                         where on, has not arrived yet. Try again when binlogd has received it";

impl ForksArgs {
    fn decision(&self) -> Option<(Decision, &str)> {
        let settle = self.settle.as_deref().map(|gtids| (Decision::Settled, gtids));
        settle.or_else(|| self.accept_loss.as_deref().map(|gtids| (Decision::LossAccepted, gtids)))
    }
}

/// Runs `binlogd forks`.
pub(super) fn execute(args: &ForksArgs) -> ExitCode {
    if !args.note.is_empty() && args.decision().is_none() {
        return usage_error(&"--note goes with --settle or --accept-loss");
    }
    // Statements are for one server.
    let is_of_one = args.print_sql || args.decision().is_some();
    let chosen = match (&args.source, is_of_one) {
        (None, false) => source_folders(&PosixStorage, &args.data_dir)
            .map_err(|error| format!("cannot read {}: {error}", args.data_dir.display())),
        (source, _) => choose(&args.data_dir, source.as_deref()).map(|chosen| vec![chosen]),
    };
    let sources = match chosen {
        Ok(sources) => sources,
        Err(error) => return usage_error(&error),
    };
    if let Some((decision, gtids)) = args.decision() {
        let (name, folder) = &sources[0];
        match decide(folder, decision, gtids, &args.note) {
            Ok(decided) => eprintln!("{}: {}: {decided}", style::clean(name), decision.words()),
            Err(error) => return usage_error(&format!("{name}: {error}")),
        }
    }
    if args.print_sql {
        let (name, folder) = &sources[0];
        let text = connect(args.schema.as_ref(), &args.server, "--schema").and_then(|server| {
            let known = match server {
                None => Known::default(),
                server => {
                    let of_log = definitions(&args.data_dir, &StoreArgs::of_copy(name))?;
                    Known::new(server, of_log, args.columns_as_now)
                }
            };
            let about = (name.as_str(), folder.as_path());
            statements(about, args.overwrite, known, args.new_keys).map_err(|error| error.to_string())
        });
        return match text {
            Ok(text) => print_result(&text),
            Err(error) => {
                errln!("error: {error}");
                ExitCode::from(EXIT_PROBLEM)
            }
        };
    }
    let mut report = Report { all: args.all, text: String::new(), json: Vec::new(), open: 0, failed: false };
    for (name, folder) in &sources {
        report.source(name, folder);
    }
    let text = if args.json {
        serde_json::to_string_pretty(&json!({ "open": report.open, "sources": report.json }))
            .expect("plain data")
            + "\n"
    } else {
        std::mem::take(&mut report.text)
    };
    let printed = print_result(&text);
    if report.open > 0 || report.failed { ExitCode::from(EXIT_PROBLEM) } else { printed }
}

/// The statements of everything that is open.
fn statements(
    (name, folder): (&str, &Path),
    overwrite: bool,
    known: Known,
    new_keys: bool,
) -> io::Result<Vec<u8>> {
    let Some(forks) = Forks::read(&PosixStorage, folder, || true)? else {
        return Ok(Script::new(name, false, false, known, new_keys).finish());
    };
    let lacking = forks.open(Fate::Lacking);
    if !lacking.is_empty() {
        errln!(
            "note: {} lost that binlogd rescue hands over. Run it first, and print this anew: the server would give their GTIDs to these \
             statements",
            units::counted_were(lacking.len() as u64, "transaction")
        );
    }
    let mut script = Script::new(name, !lacking.is_empty(), overwrite, known, new_keys);
    for (id, lost) in forks.open(Fate::GivenTwice) {
        script.versions(&id, lost, Fate::GivenTwice)?;
    }
    for (id, lost) in lacking {
        script.versions(&id, lost, Fate::Lacking)?;
    }
    Ok(script.finish())
}

/// Records a decision about transactions that are open; the answer is about which.
fn decide(folder: &Path, decision: Decision, text: &str, note: &str) -> Result<String, String> {
    let words = |error: &dyn std::fmt::Display| error.to_string();
    let deadline = Instant::now() + KNOWN_MAX;
    let forks = loop {
        let forks = Forks::read(&PosixStorage, folder, || true).map_err(|error| words(&error))?;
        let Some(forks) = forks else {
            return Err("nothing is open: no fork took anything from this source".to_owned());
        };
        // With on_fork = "stop" it does not come before something is decided.
        if forks.is_known() || Instant::now() >= deadline {
            break forks;
        }
        std::thread::sleep(KNOWN_INTERVAL);
    };
    let twice = forks.open(Fate::GivenTwice);
    let open = match decision {
        Decision::Settled => twice,
        Decision::LossAccepted => [twice, forks.open(Fate::Lacking)].concat(),
    };
    let what = match decision {
        Decision::Settled => "given twice and not settled yet",
        Decision::LossAccepted => "lost and not decided yet",
    };
    let gone = match decision {
        Decision::Settled => GtidState::empty(forks.kind()),
        Decision::LossAccepted => forks.gone(),
    };
    let mut gtids = gone.clone();
    if text == "all" {
        for (id, _) in &open {
            gtids.insert(*id).map_err(|error| words(&error))?;
        }
    } else {
        gtids = GtidState::parse(forks.kind(), text)
            .map_err(|error| format!("{text:?} is no GTID set: {error}"))?;
    }
    if gtids.is_empty() {
        return Err(format!("none is {what}"));
    }
    // Of what no file holds any more, those that are named.
    let mut named = gone.subtract(&gone.subtract(&gtids));
    let mut exactly = GtidList::default();
    if let GtidState::Mariadb(named) = &named {
        named.list().for_each(|id| exactly.insert(id.into()));
    }
    let is_all_held = named.is_empty();
    for (id, _) in open.iter().filter(|(id, _)| gtids.contains(id)) {
        exactly.insert(*id);
        // MariaDB's state is what was recorded last, and those given twice come first.
        if !named.contains(id) {
            named.insert(*id).map_err(|error| words(&error))?;
        }
    }
    let other = gtids.subtract(&named);
    if !other.is_empty() {
        return Err(format!("{} is not {what}; nothing was recorded", other.to_line()));
    }
    let is_exact = forks.is_known();
    let settlement = Settlement {
        at: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        by: who(),
        decision,
        gtids: named.to_record(),
        // Its sets of GTIDs mean all before them too, which were decided otherwise, or handed back.
        transactions: if is_exact && forks.kind() == ServerKind::MariaDb {
            exactly.parts()
        } else {
            Vec::new()
        },
        through: forks.newest_number(),
        note: note.to_owned(),
    };
    record(&PosixStorage, folder, settlement).map_err(|error| format!("cannot record it: {error}"))?;
    Ok(if is_exact && is_all_held { exactly.to_string() } else { named.to_line() })
}

/// The account that decides, and for whom if it was changed to.
pub(super) fn who() -> String {
    let name = |variable: &str| std::env::var(variable).ok().filter(|name| !name.is_empty());
    let account = name("USER").or_else(|| name("LOGNAME")).unwrap_or_else(|| "unknown".to_owned());
    let uid = rustix::process::getuid().as_raw();
    match name("SUDO_USER").filter(|person| *person != account) {
        Some(person) => format!("{person} as {account} (uid {uid})"),
        None => format!("{account} (uid {uid})"),
    }
}

fn time(seconds: u32) -> String {
    jiff::Timestamp::from_second(i64::from(seconds)).map_or_else(|_| "?".into(), |at| at.to_string())
}

/// What is found, for people and for programs.
struct Report {
    all: bool,
    text: String,
    json: Vec<Value>,
    /// Transactions about which nothing was decided.
    open: u64,
    failed: bool,
}

impl Report {
    fn source(&mut self, name: &str, folder: &Path) {
        match Forks::read(&PosixStorage, folder, || true) {
            Ok(Some(forks)) => self.forks(name, &forks),
            Ok(None) => {
                self.line(&format!("{}: no fork took anything from it", style::clean(name)));
                self.json.push(json!({ "name": name, "given_twice": [], "lacking": [], "decided": [] }));
            }
            Err(error) => {
                self.failed = true;
                self.line(&format!("{}: the copy cannot be read: {error}", style::clean(name)));
                self.json.push(json!({ "name": name, "error": error.to_string() }));
            }
        }
    }

    fn forks(&mut self, name: &str, forks: &Forks) {
        let (twice, lacking, settled) =
            (forks.open(Fate::GivenTwice), forks.open(Fate::Lacking), forks.settled());
        let back = forks.count(Fate::HandedBack);
        let gone = forks.gone();
        self.open += (twice.len() + lacking.len()) as u64 + status::count(&gone);
        let count = |count: usize| units::count(count as u64);
        self.line(&format!(
            "{}: {} given twice, {} lost and not handed back, {} handed back, {} decided",
            style::clean(name),
            units::counted(twice.len() as u64, "GTID"),
            units::counted(lacking.len() as u64, "transaction"),
            units::count(back),
            count(settled.len())
        ));
        if !forks.is_known() {
            self.line(&format!("  more is listed than was lost: {NOT_KNOWN}"));
        }
        if !twice.is_empty() {
            self.line(&format!("\n  given twice: {}", forks.gtids(Fate::GivenTwice).to_line()));
            self.versions(&twice);
            self.line("  Both are kept. Compare the rows, put right what must be, then: binlogd forks --settle GTIDSET --note TEXT");
        }
        if !lacking.is_empty() {
            self.line(&format!("\n  lost: {}", forks.gtids(Fate::Lacking).to_line()));
            let shown = if self.all { lacking.len() } else { lacking.len().min(LISTED_MAX) };
            self.versions(&lacking[..shown]);
            if shown < lacking.len() {
                self.line(&format!("    … and {} more; --all lists them", count(lacking.len() - shown)));
            }
            self.line("  The copy holds these: binlogd rescue hands them over.");
        }
        if !gone.is_empty() {
            self.line(&format!("\n  lost, and purged here before that was known: {}", gone.to_line()));
            self.line("  Only a backup of the source has these. When they are made good, or given up: binlogd forks --accept-loss GTIDSET --note TEXT");
        }
        if !settled.is_empty() {
            self.line("");
            for settlement in decisions(&settled) {
                let note =
                    if settlement.note.is_empty() { String::new() } else { format!(": {}", settlement.note) };
                let (at, by) = (&settlement.at, &settlement.by);
                let gtids = if settlement.transactions.is_empty() {
                    settlement.gtids.replace('\n', "")
                } else {
                    settlement.transactions.join(", ")
                };
                self.line(&style::clean(&format!(
                    "  {} by {by} at {at}: {gtids}{note}",
                    settlement.decision.words()
                )));
            }
        }
        let list = |list: &[(TransactionId, &Lost)]| {
            list.iter().map(|(id, lost)| lost_json(id, lost)).collect::<Vec<_>>()
        };
        let decided = settled.iter().map(|(id, lost, settlement)| {
            let mut value = lost_json(id, lost);
            value["decision"] = json!(settlement);
            value
        });
        self.json.push(json!({
            "name": name,
            "given_twice": list(&twice),
            "lacking": list(&lacking),
            "purged_before": gone.to_line(),
            "handed_back": back,
            "decided": decided.collect::<Vec<_>>(),
        }));
    }

    fn versions(&mut self, list: &[(TransactionId, &Lost)]) {
        for (id, lost) in list {
            self.line(&format!("    {id}"));
            for Version { place, timestamp, changes, .. } in &lost.versions {
                let line = format!(
                    "      {}  {:>9}  {}/{} at {}  {}",
                    time(*timestamp),
                    units::bytes(place.size()),
                    place.timeline(),
                    place.file(),
                    place.at,
                    changes.join(", ")
                );
                self.line(&style::clean(&line));
            }
        }
    }

    fn line(&mut self, line: &str) {
        // Writing to a String does not fail.
        let _ = writeln!(self.text, "{line}");
    }
}

/// Each decision once, in the order of the first transaction that it is about.
fn decisions<'a>(settled: &[(TransactionId, &Lost, &'a Settlement)]) -> Vec<&'a Settlement> {
    let mut found: Vec<&Settlement> = Vec::new();
    for (_, _, settlement) in settled {
        if !found.contains(settlement) {
            found.push(settlement);
        }
    }
    found
}

fn lost_json(id: &TransactionId, lost: &Lost) -> Value {
    let versions: Vec<Value> = lost
        .versions
        .iter()
        .map(|Version { place, timestamp, changes, .. }| {
            json!({
                "at": time(*timestamp),
                "changes": changes,
                "bytes": place.size(),
                "timeline": place.timeline(),
                "file": place.file(),
                "position": place.at,
            })
        })
        .collect();
    json!({ "gtid": id.to_string(), "versions": versions })
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::testing::{FileBuilder, SERVER_UUID, first_timeline};
    use binlog::timeline::{Reason, Timeline};

    fn report(folder: &Path) -> Report {
        let mut report = Report { all: false, text: String::new(), json: Vec::new(), open: 0, failed: false };
        report.source("orders", folder);
        report
    }

    #[test]
    fn what_is_open_is_listed_until_somebody_decides() {
        let dir = tempfile::tempdir().unwrap();
        assert!(report(dir.path()).text.contains("no fork took anything"));
        let make = |number, reason, lacks: &str| {
            let info = Timeline { reason, source_lacks: lacks.to_owned(), ..first_timeline(SERVER_UUID) };
            info.create(&PosixStorage, dir.path(), number).unwrap()
        };
        let lost = format!("{SERVER_UUID}:2-3");
        let (old, new) = (make(1, Reason::First, ""), make(2, Reason::Fork, &lost));
        let begun = || FileBuilder::new().previous_gtids("").transaction(1, 9);
        // The rows of the builder have no table, so that their lengths are all that differs: they cannot be compared.
        std::fs::write(old.join("b.000001"), begun().transaction(2, 9).transaction(3, 9).finish()).unwrap();
        std::fs::write(new.join("b.000001"), begun().transaction(2, 20).finish()).unwrap();
        let found = report(dir.path());
        assert_eq!(found.open, 2);
        assert!(found.text.contains("1 GTID given twice, 1 transaction lost"), "{}", found.text);
        assert!(found.text.contains(&format!("0002-{SERVER_UUID}/b.000001 at ")), "{}", found.text);
        assert_eq!(found.json[0]["given_twice"][0]["versions"].as_array().unwrap().len(), 2);

        let decide = |decision, gtids: &str| decide(dir.path(), decision, gtids, "looked at by hand");
        let error = decide(Decision::Settled, &lost).unwrap_err();
        assert!(error.contains(&format!("{SERVER_UUID}:3 is not given twice")), "{error}");
        assert!(decide(Decision::Settled, "nonsense").unwrap_err().contains("is no GTID set"));
        assert_eq!(decide(Decision::Settled, "all").unwrap(), format!("{SERVER_UUID}:2"));
        assert!(decide(Decision::Settled, "all").unwrap_err().contains("none is given twice"));
        assert_eq!(
            decide(Decision::LossAccepted, &format!("{SERVER_UUID}:3")).unwrap(),
            format!("{SERVER_UUID}:3")
        );
        let found = report(dir.path());
        assert_eq!(found.open, 0);
        assert!(
            found.text.contains("looked at by hand") && found.text.contains("loss accepted by"),
            "{}",
            found.text
        );
    }
}
