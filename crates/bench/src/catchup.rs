//! Catching up: a backlog of gigabytes on a real source, pulled by each of several programs.

use crate::backlog::{Backlog, Mix, USER};
use crate::common::Common;
use crate::compare;
use crate::progress::{self, Progress};
use crate::receiver::{Kind, Receiver};
use anyhow::{Context, bail};
use clap::ValueEnum;
use rig::bare::Acknowledge;
use rig::process::Running;
use rig::statistics::{Samples, Table, median, with_spread};
use rig::usage::Usage;
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Arguments of `binlogd-bench catchup`.
#[derive(Debug, Clone, clap::Args)]
pub struct CatchupArgs {
    /// Common ones.
    #[command(flatten)]
    pub common: Common,
    /// GiB of binary log to make and to pull.
    #[arg(long, default_value_t = 2.1)]
    pub gib: f64,
    /// The source: a name of `scripts/servers list`, a MySQL.
    #[arg(long, default_value = "mysql-9.7")]
    pub server: String,
    /// The script that starts it.
    #[arg(long, default_value = "scripts/servers")]
    pub servers_script: PathBuf,
    /// Milliseconds between two looks at binlogd's status in the pull that is for durable progress.
    #[arg(long, default_value_t = 2)]
    pub look_ms: u64,
}

/// A program that pulls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Puller {
    /// The bare receiver.
    Bare(Acknowledge),
    /// mysqlbinlog --raw.
    Mysqlbinlog,
    /// binlogd, its status asked for at this interval.
    Binlogd { look: Duration, often: bool },
}

impl fmt::Display for Puller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Puller::Bare(Acknowledge::Discard) => f.write_str("bare reader, discards"),
            Puller::Bare(_) => f.write_str("bare copy to a file"),
            Puller::Mysqlbinlog => f.write_str("mysqlbinlog --raw"),
            Puller::Binlogd { often: false, .. } => f.write_str("binlogd, fsync_mode 1"),
            Puller::Binlogd { look, .. } => write!(f, "binlogd, looked at each {look:?}"),
        }
    }
}

/// One program's result in one round.
#[derive(Debug)]
struct Pull {
    /// Until the last byte was held: durable for binlogd, the end of the process for the others.
    seconds: f64,
    processor: f64,
    source_processor: f64,
    highest_mib: f64,
    /// Of binlogd only.
    progress: Option<Progress>,
}

/// Between looks at a process's memory, and at binlogd's status where only the end matters.
const LOOK_SELDOM: Duration = Duration::from_millis(20);

/// Between looks at whether a process has ended.
const LOOK_FOR_END: Duration = Duration::from_millis(1);

/// Longest time for one pull.
const PULL_TIME_MAX: Duration = Duration::from_secs(600);

/// Runs it and prints two tables: speed, and durable progress.
///
/// # Errors
/// When a program under test does not do its work, or a copy is not equal to the source's files.
pub fn run(args: &CatchupArgs) -> anyhow::Result<()> {
    let dir = tempfile::Builder::new().prefix("binlogd-catchup-").tempdir_in(&args.common.dir)?;
    let dir_path = dir.path().canonicalize()?;
    let bytes = (args.gib * f64::from(1 << 30)) as u64;
    eprintln!("making {:.2} GiB of binary log on {}", args.gib, args.server);
    let backlog =
        Backlog::make(&args.servers_script, &args.server, &dir_path.join("source"), bytes, Mix::Ordinary)?;
    let pullers = [
        Puller::Bare(Acknowledge::Discard),
        Puller::Bare(Acknowledge::Never),
        Puller::Mysqlbinlog,
        Puller::Binlogd { look: LOOK_SELDOM, often: false },
        Puller::Binlogd { look: Duration::from_millis(args.look_ms), often: true },
    ];
    let pulls = args.common.in_turn(&pullers, |round, puller| {
        let pull = pull(args, &backlog, &dir_path, puller)
            .with_context(|| format!("{puller}, round {}", round + 1))?;
        eprintln!("round {}: {puller}: {:.2} s", round + 1, pull.seconds);
        Ok(pull)
    })?;
    print_log(args, &backlog, &pulls)?;
    print_speeds(backlog.len(), &pullers, &pulls);
    print_progress(&pulls[pullers.len() - 1]);
    Ok(())
}

fn pull(args: &CatchupArgs, backlog: &Backlog, dir: &Path, puller: Puller) -> anyhow::Result<Pull> {
    let dir = tempfile::Builder::new().prefix("pull-").tempdir_in(dir)?;
    // What an earlier program has left unwritten is not to be written in this one's time.
    rustix::fs::sync();
    let source = Usage::of(backlog.server.pid())?;
    match puller {
        Puller::Bare(acknowledge) => bare(backlog, &source, dir.path(), acknowledge),
        Puller::Mysqlbinlog => mysqlbinlog(backlog, &source, dir.path()),
        Puller::Binlogd { look, .. } => binlogd(args, backlog, &source, dir.path(), look),
    }
}

fn bare(backlog: &Backlog, source: &Usage, dir: &Path, acknowledge: Acknowledge) -> anyhow::Result<Pull> {
    let name = acknowledge.to_possible_value().context("every value has a name")?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bare", "--to-the-end", "--port", &backlog.server.port().to_string()]);
    command.args(["--user", USER, "--file", &backlog.files[0].name]);
    command.args(["--acknowledge", name.get_name()]).arg("--out").arg(dir.join("received"));
    let (pull, printed) = run_to_its_end(command, backlog, source)?;
    let received: Value = serde_json::from_str(&printed).context("what the bare receiver printed")?;
    // Packets with a byte of status each, and no magic at the beginning of a file.
    let least = backlog.len() - 4 * backlog.files.len() as u64;
    if received["bytes"].as_u64() < Some(least) {
        bail!("{received} were received of at least {least}: the source has ended the dump early");
    }
    Ok(pull)
}

fn mysqlbinlog(backlog: &Backlog, source: &Usage, dir: &Path) -> anyhow::Result<Pull> {
    let mut command = Command::new(backlog.server.fact("MYSQLBINLOG")?);
    command.args(["--raw", "--read-from-remote-server", "--to-last-log", "--host=127.0.0.1"]);
    command.args([&format!("--port={}", backlog.server.port()), &format!("--user={USER}")]);
    // As the others do it: in clear.
    command.arg("--ssl-mode=DISABLED").arg(format!("--result-file={}/", dir.display()));
    command.arg(&backlog.files[0].name);
    let (pull, _) = run_to_its_end(command, backlog, source)?;
    compare::same_bytes(Path::new(backlog.server.fact("DATADIR")?), &backlog.files, |name| {
        Ok(dir.join(name))
    })?;
    Ok(pull)
}

/// Runs a program that ends when it has everything; `source` is what the source has used before. Returns what the
/// program has printed, too.
fn run_to_its_end(mut command: Command, backlog: &Backlog, source: &Usage) -> anyhow::Result<(Pull, String)> {
    let began = Instant::now();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = Running(child.with_context(|| format!("cannot start {command:?}"))?);
    let (mut looked, mut highest) = (began, 0);
    while !child.has_ended()? {
        if looked.elapsed() >= LOOK_SELDOM {
            looked = Instant::now();
            highest = Usage::of(child.0.id())?.memory.highest.max(highest);
        }
        if began.elapsed() > PULL_TIME_MAX {
            bail!("{command:?} has not ended within {PULL_TIME_MAX:?}");
        }
        std::thread::sleep(LOOK_FOR_END);
    }
    let seconds = began.elapsed().as_secs_f64();
    let pull = Pull {
        seconds,
        processor: Usage::of(child.0.id())?.processor_seconds(),
        source_processor: Usage::of(backlog.server.pid())?.since(source).processor_seconds,
        highest_mib: highest as f64 / 1024.0,
        progress: None,
    };
    let mut printed = String::new();
    if let Some(mut stdout) = child.0.stdout.take() {
        std::io::Read::read_to_string(&mut stdout, &mut printed)?;
    }
    let status = child.0.wait()?;
    if !status.success() {
        bail!("{command:?} failed: {status}");
    }
    Ok((pull, printed))
}

fn binlogd(
    args: &CatchupArgs,
    backlog: &Backlog,
    source: &Usage,
    dir: &Path,
    look: Duration,
) -> anyhow::Result<Pull> {
    let kind = Kind::Binlogd { fsync_mode: 1 };
    let (file, position) = backlog.end()?;
    let began = Instant::now();
    let receiver = Receiver::start(kind, &args.common.binlogd, dir, backlog.server.port())?;
    let progress = progress::follow(receiver.dir(), began, look, file, position)?;
    let pull = Pull {
        seconds: progress.durable_after.as_secs_f64(),
        processor: receiver.usage()?.processor_seconds(),
        source_processor: Usage::of(backlog.server.pid())?.since(source).processor_seconds,
        highest_mib: receiver.usage()?.memory.highest as f64 / 1024.0,
        progress: Some(progress),
    };
    compare::same_bytes(Path::new(backlog.server.fact("DATADIR")?), &backlog.files, |name| {
        compare::find(receiver.dir(), name).with_context(|| format!("binlogd has no file {name}"))
    })?;
    receiver.finish(|| {})?;
    Ok(pull)
}

fn print_log(args: &CatchupArgs, backlog: &Backlog, pulls: &[Vec<Pull>]) -> anyhow::Result<()> {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!("## Catching up, {:.2} GiB, {} rounds\n", mib(backlog.len()) / 1024.0, args.common.rounds);
    let (kind, version) = (backlog.server.fact("SERVER_KIND")?, backlog.server.fact("VERSION")?);
    println!("source       {kind} {version}, semi-sync off");
    let lens: Vec<String> = backlog.files.iter().map(|file| format!("{:.0}", mib(file.len))).collect();
    println!("files        {} of {} MiB", lens.len(), lens.join(", "));
    let progress = pulls.iter().flatten().find_map(|pull| pull.progress.as_ref());
    if let Some(Progress { events, transactions, .. }) = progress {
        let mean = |count: u64| backlog.len() as f64 / count.max(1) as f64;
        println!(
            "events       {events} of {:.0} bytes on average, in {transactions} transactions of {:.0} bytes",
            mean(*events),
            mean(*transactions)
        );
    }
    println!();
    Ok(())
}

fn print_speeds(bytes: u64, pullers: &[Puller], pulls: &[Vec<Pull>]) {
    let mut table = Table::new(&[
        "",
        "MiB/s",
        "against the discarding reader",
        "against mysqlbinlog --raw",
        "processor s",
        "processor s of the source",
        "VmHWM MiB",
    ]);
    let durable = |pull: &Pull| pull.seconds;
    let written = |pull: &Pull| {
        pull.progress.as_ref().map_or(pull.seconds, |progress| progress.written_after.as_secs_f64())
    };
    let seconds = |of: &[Pull], what: fn(&Pull) -> f64| of.iter().map(what).collect::<Vec<f64>>();
    let discard = seconds(&pulls[0], durable);
    let mysqlbinlog = seconds(&pulls[2], durable);
    let mut row = |name: String, of: &[Pull], what: fn(&Pull) -> f64| {
        let taken = seconds(of, what);
        let against = |others: &[f64]| {
            with_spread(&others.iter().zip(&taken).map(|(other, one)| other / one).collect::<Vec<_>>(), 2)
        };
        let speeds: Vec<f64> =
            taken.iter().map(|seconds| bytes as f64 / f64::from(1 << 20) / seconds).collect();
        table.row(vec![
            name,
            with_spread(&speeds, 0),
            against(&discard),
            against(&mysqlbinlog),
            format!("{:.2}", median(of.iter().map(|pull| pull.processor))),
            format!("{:.2}", median(of.iter().map(|pull| pull.source_processor))),
            format!("{:.1}", median(of.iter().map(|pull| pull.highest_mib))),
        ]);
    };
    for (puller, of) in pullers.iter().zip(pulls) {
        match puller {
            Puller::Binlogd { .. } => {
                row(format!("{puller}: durable"), of, durable);
                row(format!("{puller}: written"), of, written);
            }
            _ => row(puller.to_string(), of, durable),
        }
    }
    table.print();
}

/// Of the pulls in which binlogd was looked at often.
fn print_progress(pulls: &[Pull]) {
    let progress: Vec<&Progress> = pulls.iter().filter_map(|pull| pull.progress.as_ref()).collect();
    println!("Times between advances, in ms\n");
    let mut table = Table::new(&["", "advances a round", "p99", "longest of a round", "longest of all"]);
    let mut row = |name: &str, of: fn(&Progress) -> &Samples| {
        let mut all = Samples::default();
        progress.iter().for_each(|progress| all.extend(of(progress).clone()));
        let longest: Vec<f64> =
            progress.iter().map(|progress| of(progress).clone().percentiles().max / 1000.0).collect();
        let count = median(progress.iter().map(|progress| of(progress).len() as f64));
        let all = all.percentiles();
        table.row(vec![
            name.to_owned(),
            format!("{count:.0}"),
            format!("{:.1}", all.p99 / 1000.0),
            with_spread(&longest, 1),
            format!("{:.1}", all.max / 1000.0),
        ]);
    };
    row("received: bytes read from the socket", |progress| &progress.received);
    row("written position", |progress| &progress.written);
    row("durable position", |progress| &progress.durable);
    row("durable position, at least", |progress| &progress.durable_at_least);
    row("(between two looks)", |progress| &progress.looks);
    table.print();
}
