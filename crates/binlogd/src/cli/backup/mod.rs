//! `binlogd backup URL --from mysql://user@host`: a backup of the source's data beside its log.

pub(super) mod list;

use self::list::log_in_words;
use super::exit::{EXIT_OK, EXIT_PROBLEM, usage_error};
use super::prune::this_run;
use super::{style, units};
use crate::cli::args::server::ServerFlags;
use crate::cli::args::store::ReachArgs;
use ::backup::take::{NoBackup, Order, Place, take};
use anyhow::Context as _;
use archive::chain::Chain;
use archive::chain::backup::Tool;
use archive::chain::history::{ArchivedBackup, History};
use archive::chain::sources::sources;
use archive::chain::trust::Signing;
use archive::keys::Recipients;
use archive::keys::signing::SigningKey;
use archive::store::Store;
use archive::store::lazy::Lazy;
use archive::store::probe::refuses_to_overwrite;
use archive::store::remote::{Location, Options};
use archive::upkeep::catalogue;
use archive::writer::upload::{Permits, Uploader};
use clap::{Args, ValueEnum};
use config::{Config, DiskWarn};
use indicatif::{ProgressBar, ProgressStyle};
use source::clock::{Clock, SystemClock};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use wire::Secret;

const BAR: &str = "{msg} {spinner} {binary_bytes} {binary_bytes_per_sec} {elapsed}";

/// Pieces that are uploaded side by side.
const AT_ONCE: usize = 4;

/// By so much the tool, and what compresses, stand behind the server. The kernel derives the priority of reading a disk from it.
const NICE: i32 = 10;

/// The archive is behind the source by its `interval`: so long it is waited for, until the log reaches the backup's point.
const LOG_WAIT: Duration = Duration::from_secs(30);

/// Pause between two looks.
const LOG_LOOK: Duration = Duration::from_secs(1);

/// The arguments of `binlogd backup`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
The tool is run with the arguments that make a whole backup at one point of the log; it logs in with the account of --from, whose password is in \
no argument. What it writes goes in pieces into the archive, compressed, encrypted as the log is, on no disk of this machine. Its point (GTIDs, or a \
place in the log) is read from what the tool writes. Only when the tool has ended well, its own end mark was seen, and the store lists each piece, \
the backup is recorded, in one step: one that broke is never listed, and prune deletes what is left of it.

Refused by name: a server that has nothing to do with the archive's source, tables without snapshots, definitions that change while a dump runs, \
arguments that leave something out.

mysqldump and mariadb-dump work from anywhere; mariadb-backup and clone must run on the server's machine, and clone needs room there for all data \
once (--clone-dir), and the server's own program (--program /usr/sbin/mysqld), which recovers the clone and tells its point. A command (--tool command -- PROGRAM …) writes \
its backup to standard output; its point is read where it writes as a dump does, else give --point.

  binlogd backup s3://bucket/binlogs --from mysql://backup@db1
  binlogd backup --config /etc/binlogd/binlogd.toml --from mysql://backup@db1 --source shop -- --max-allowed-packet=1G
  binlogd backup file:///mnt/backup/binlogs --from mysql://root@127.0.0.1 --tool mariadb-backup --bandwidth 50MiB

Exit codes: 0 it is in the archive, 1 it is not, 2 the command line is wrong.")]
pub(super) struct BackupArgs {
    /// The archive: url in [archive], as s3://bucket/prefix; not with --config
    #[arg(required_unless_present = "config", conflicts_with = "config")]
    url: Option<String>,
    /// Configuration of binlogd, whose [archive] says where to and for whom it is encrypted
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The server to back up: mysql://user@host:port. The source, or a replica of it
    ///
    /// The user needs what the tool needs: SELECT, SHOW VIEW, TRIGGER, EVENT, RELOAD, PROCESS, REPLICATION CLIENT (MySQL with procedures: SHOW_ROUTINE
    /// too) for a dump.
    #[arg(long, value_name = "URL")]
    from: Secret,
    #[command(flatten)]
    server: ServerFlags,
    /// One source of several in the archive
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// What makes the backup; mysqldump for MySQL and mariadb-dump for MariaDB where nothing is said
    #[arg(long, value_name = "TOOL")]
    tool: Option<ToolName>,
    /// The tool's program, where it is not on the path
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// For --tool clone: a folder on the server's machine that the server may write to, with room for all its data
    #[arg(long, value_name = "DIR")]
    clone_dir: Option<PathBuf>,
    /// The point that a command's backup holds, where its stream does not tell it: a set of GTIDs, or FILE:POS
    #[arg(long, value_name = "POINT")]
    point: Option<String>,
    /// Public key of age or SSH for which it is encrypted; several times for several
    #[arg(long, value_name = "KEY", conflicts_with = "config")]
    recipient: Vec<String>,
    /// File of such keys, one a line
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    recipients_file: Option<PathBuf>,
    /// File of the private key with which the record of the backup is signed, where the commits of the archive are
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    sign_key: Option<PathBuf>,
    /// Store it in clear though the log in that archive is encrypted
    #[arg(long)]
    unencrypted: bool,
    /// Most bytes a second that are uploaded, as 50MiB
    #[arg(long, value_name = "SIZE", value_parser = bytes_a_second)]
    bandwidth: Option<u64>,
    /// How hard zstd tries, 1 to 19: at 1 a dump hardly waits for it. Not the level in [archive], which is the log's
    #[arg(long, value_name = "LEVEL", default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..=19))]
    level: i32,
    #[command(flatten)]
    reach: ReachArgs,
    /// Added to the tool's arguments; with --tool command the command itself
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ToolName {
    Mysqldump,
    MariadbDump,
    MariadbBackup,
    Clone,
    Mydumper,
    Command,
}

/// Of 0.10.1, which Debian 12 and sid have (Debian 13 has none).
const NO_MYDUMPER: &str = "\
mydumper cannot be used: the one of Debian (0.10.1) knows no --stream, so it writes into a folder only; and it asks for its point by SHOW MASTER STATUS, \
which MySQL 8.4 and later do not know. Use mysqldump or mariadb-dump; for speed clone or mariadb-backup";

impl TryFrom<ToolName> for Tool {
    type Error = String;

    fn try_from(name: ToolName) -> Result<Tool, String> {
        Ok(match name {
            ToolName::Mysqldump => Tool::Mysqldump,
            ToolName::MariadbDump => Tool::MariadbDump,
            ToolName::MariadbBackup => Tool::MariadbBackup,
            ToolName::Clone => Tool::Clone,
            ToolName::Mydumper => return Err(NO_MYDUMPER.to_owned()),
            ToolName::Command => Tool::Command,
        })
    }
}

/// Reads `50MiB`.
fn bytes_a_second(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(DiskWarn::Bytes(bytes)) => Ok(bytes),
        _ => Err("write an amount of at least 1MiB, as 50MiB".to_owned()),
    }
}

/// Where it goes.
struct Target {
    location: Location,
    options: Options,
    recipients: Option<Arc<Recipients>>,
    bandwidth: Option<u64>,
    signing: Signing,
}

/// Runs `binlogd backup`.
pub(super) fn execute(args: &BackupArgs) -> ExitCode {
    // Before any thread is begun: threads and the tool inherit it. Where it is not allowed nothing is lost but that.
    let _ = rustix::process::nice(NICE);
    let order = match args.order() {
        Ok(order) => order,
        Err(error) => return usage_error(&error),
    };
    let target = match args.target() {
        Ok(target) => target,
        Err(error) => return usage_error(&format!("{error:#}")),
    };
    match backed_up(args, &order, &target) {
        Ok(()) => ExitCode::from(EXIT_OK),
        Err(error) => {
            errln!("error: {}", style::clean_lines(&format!("{error:#}")));
            ExitCode::from(EXIT_PROBLEM)
        }
    }
}

impl BackupArgs {
    fn order(&self) -> Result<Order, String> {
        Ok(Order {
            server: self.server.options("--from", "the one to back up", &self.from)?,
            tool: self.tool.map(Tool::try_from).transpose()?,
            program: self.program.clone(),
            arguments: self.arguments.clone(),
            clone_dir: self.clone_dir.clone(),
            point: self.point.clone(),
        })
    }

    fn target(&self) -> anyhow::Result<Target> {
        if let Some(path) = &self.config {
            let loaded = Config::load(path)?;
            let archive = loaded.config.archive.context("the configuration has no [archive]")?;
            let recipients = archive.readers()?;
            let signing = archive.signing().context("sign_key in [archive]")?;
            let bandwidth = self.bandwidth.or(archive.bandwidth);
            return Ok(Target {
                location: archive.location,
                options: archive.options,
                recipients,
                bandwidth,
                signing,
            });
        }
        let (location, options) = self.reach.checked(self.url.as_deref().unwrap_or_default())?;
        let mut recipients = Recipients::new();
        for key in &self.recipient {
            recipients.add(key, "--recipient")?;
        }
        if let Some(file) = &self.recipients_file {
            recipients.add_file(file)?;
        }
        let recipients = (!recipients.is_empty()).then(|| Arc::new(recipients));
        let key = self.sign_key.as_deref().map(SigningKey::read).transpose().context("--sign-key")?;
        // Whoever gives a key on the command line has not said whose commits are believed.
        let signing = Signing { key: key.map(Arc::new), ..Signing::default() };
        Ok(Target { location, options, recipients, bandwidth: self.bandwidth, signing })
    }

    /// The source in the archive.
    fn chosen(&self, store: &dyn Store, location: &Location) -> anyhow::Result<String> {
        let there = sources(store)?;
        let names = there.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        match (&self.source, there.len()) {
            (Some(source), _) if there.contains(source) => Ok(source.clone()),
            (Some(source), _) => anyhow::bail!("{location} has no source {source:?}; there are: {names}"),
            (None, 0) => {
                anyhow::bail!("{location} has no archive of binlogd: name what url in [archive] names")
            }
            (None, 1) => Ok(names),
            (None, _) => {
                anyhow::bail!("{location} has several sources: choose one with --source; there are: {names}")
            }
        }
    }
}

fn backed_up(args: &BackupArgs, order: &Order, target: &Target) -> anyhow::Result<()> {
    let store: Arc<dyn Store> =
        Arc::new(Lazy::new(target.location.clone(), target.options.clone(), target.bandwidth));
    let source = args.chosen(&*store, &target.location)?;
    let chain = Chain::open_trusting(&*store, &source, &target.signing.trust)?;
    let mut chain = chain.signing(target.signing.key.clone());
    chain.check_whole(&*store)?;
    anyhow::ensure!(
        target.recipients.is_some() || args.unencrypted || !is_encrypted(chain.history()),
        "the log in that archive is encrypted, and the backup would not be: give --recipient, --recipients-file or --config, or say --unencrypted"
    );
    anyhow::ensure!(
        refuses_to_overwrite(&*store)?,
        "{}: this store overwrites what is there, so two that write to it would destroy the archive; see single_writer in [archive]",
        target.location
    );
    let uploader = Uploader {
        store: store.clone(),
        permits: Arc::new(Permits::new(AT_ONCE)),
        level: args.level,
        recipients: target.recipients.clone(),
        stop: Arc::default(),
    };
    let bar = if io::stderr().is_terminal() { ProgressBar::no_length() } else { ProgressBar::hidden() };
    bar.set_style(ProgressStyle::with_template(BAR)?);
    bar.set_message(source.clone());
    let place = Place { uploader: &uploader, chain: &mut chain, writer: &this_run(), clock: &SystemClock };
    let tell = |text: &str| bar.suspend(|| errln!("note: {}", style::clean(text)));
    let done = take(order, place, &tell, &|bytes| bar.inc(bytes));
    bar.finish_and_clear();
    let backup = done.map_err(in_words)?;
    shown(&source, &backup);
    log_reaches(&*store, &mut chain, &source, &backup.record.id)
}

/// An error of a server says what to do in several lines.
fn in_words(error: NoBackup) -> anyhow::Error {
    anyhow::Error::new(error).context("no backup was recorded")
}

/// Whether who reads the newest binary log there needs a key.
fn is_encrypted(history: &History) -> bool {
    history
        .timelines
        .values()
        .rev()
        .find_map(|archived| archived.files.last())
        .is_some_and(|file| !file.keys().is_empty())
}

fn shown(source: &str, backup: &ArchivedBackup) {
    let record = &backup.record;
    let took = record.finished.duration_since(record.started).unsigned_abs();
    outln!(
        "{}: backup {} by {}: {}, stored as {}, in {}; it holds {}",
        style::clean(source),
        record.id,
        record.tool,
        units::bytes(backup.file.end()),
        units::bytes(backup.file.stored()),
        units::duration(took.as_secs()),
        style::clean(&record.point.to_string())
    );
    record.remarks.iter().for_each(|remark| errln!("note: {}", style::clean(remark)));
}

/// Waits until the archive has the log of the backup's point, and says what can be brought back then.
fn log_reaches(store: &dyn Store, chain: &mut Chain, source: &str, id: &str) -> anyhow::Result<()> {
    let clock = SystemClock;
    let until = clock.now() + LOG_WAIT;
    loop {
        let all = catalogue::list(chain.history());
        let this =
            all.iter().find(|listed| listed.backup.record.id == *id).context("it is not there any more")?;
        if this.until().is_some() || clock.now() >= until {
            outln!("{}: {}", style::clean(source), log_in_words(this));
            return Ok(());
        }
        clock.sleep(LOG_LOOK);
        chain.refresh(store)?;
    }
}
