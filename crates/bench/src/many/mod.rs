//! Many sources in one process, beside one.

pub mod load;

use self::load::ManyLoadArgs;
use crate::common::Common;
use anyhow::{Context, bail};
use rig::process::Running;
use rig::statistics::{Percentiles, Table, median, with_spread};
use rig::status_client::StatusClient;
use rig::usage::{self, Memory, Usage};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Arguments of `binlogd-bench many`.
#[derive(Debug, Clone, clap::Args)]
pub struct ManyArgs {
    /// Common ones.
    #[command(flatten)]
    pub common: Common,
    /// Count of sources.
    #[arg(long, default_value_t = 200)]
    pub sources: usize,
    /// Transactions a second of each source.
    #[arg(long, default_value_t = 50)]
    pub per_second: u32,
    /// Bytes of a transaction.
    #[arg(long, default_value_t = 600)]
    pub bytes: usize,
    /// Seconds that are counted in each round.
    #[arg(long, default_value_t = 20)]
    pub seconds: u32,
    /// Seconds before those, that are not.
    #[arg(long, default_value_t = 2)]
    pub warm_up: u32,
    /// Of the phases in which the sources send; each round adds 1.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// One round with one count of sources.
#[derive(Debug)]
struct Round {
    /// Send to acknowledgement, by the sources' clock, all of them together.
    outside: Percentiles,
    /// The same from when the send was due.
    since_due: Percentiles,
    /// Arrival to leaving, by binlogd's own clock, one for each source.
    inside: Vec<Percentiles>,
    /// Timed sends that began late, and those that were due before the one before was acknowledged.
    late: u64,
    overtaken: u64,
    acknowledgements_per_second: f64,
    syncs_per_second: f64,
    cores: f64,
    load_cores: f64,
    memory: Memory,
    threads: u64,
}

impl Round {
    fn inside_p50(&self) -> f64 {
        median(self.inside.iter().map(|source| source.p50))
    }

    fn inside_p99(&self) -> f64 {
        median(self.inside.iter().map(|source| source.p99))
    }

    fn inside_worst_p99(&self) -> f64 {
        self.inside.iter().map(|source| source.p99).fold(0.0, f64::max)
    }
}

/// Longest wait for binlogd to say that it receives from all sources.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs it and prints a table.
///
/// # Errors
/// When a round is invalid: a transaction was not acknowledged, or semi-sync was not in force.
pub fn run(args: &ManyArgs) -> anyhow::Result<()> {
    raise_file_limit(args.sources)?;
    let counts = [1, args.sources];
    let rounds = args.common.in_turn(&counts, |number, count| {
        let round = measure(args, count, args.seed + number as u64)
            .with_context(|| format!("{count} sources, round {}: invalid", number + 1))?;
        eprintln!("round {}: {count} sources: p99 {:.0} µs", number + 1, round.outside.p99);
        Ok(round)
    })?;
    println!(
        "## {} sources in one process beside one, {} transactions of {} bytes a second each, {} rounds of {} s\n",
        args.sources, args.per_second, args.bytes, args.common.rounds, args.seconds
    );
    println!("fsync_mode 1, semi-sync; phases by --seed {}", args.seed);
    println!("times in µs: medians of the rounds, and their range\n");
    print_latencies(&counts, &rounds);
    print_costs(args, &counts, &rounds);
    Ok(())
}

/// Both programs need some open files for each source.
fn raise_file_limit(sources: usize) -> anyhow::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const FILES_A_SOURCE: u64 = 10;
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    let needed = 100 + FILES_A_SOURCE * sources as u64;
    if limit.maximum.is_some_and(|maximum| maximum < needed) {
        bail!(
            "{sources} sources need {needed} open files and the limit is {:?}: raise it with `ulimit -Hn`",
            limit.maximum
        );
    }
    Ok(())
}

fn measure(args: &ManyArgs, sources: usize, seed: u64) -> anyhow::Result<Round> {
    let dir = tempfile::Builder::new().prefix("binlogd-many-").tempdir_in(&args.common.dir)?;
    // What an earlier round has left unwritten is not to be written in this one's time.
    rustix::fs::sync();
    let load_args = ManyLoadArgs {
        sources,
        per_second: args.per_second,
        bytes: args.bytes,
        warm_up: args.warm_up,
        seconds: args.seconds,
        seed,
    };
    let mut load = LoadProcess::start(&load_args)?;
    let ports: Vec<u16> = serde_json::from_value(load.line()?)?;
    let config = dir.path().join("binlogd.toml");
    std::fs::write(&config, configuration(&ports)?)?;
    let mut command = Command::new(&args.common.binlogd);
    command.args(["run", "--config"]).arg(&config).stdin(Stdio::null()).stdout(Stdio::null());
    let binlogd = Running(command.spawn().with_context(|| format!("cannot start {command:?}"))?);
    let (pid, load_pid) = (binlogd.0.id(), load.process.0.id());
    load.line().context("no load")?;
    let mut client = StatusClient::of(&dir.path().join("data"))?;
    wait_for_semi_sync(&mut client, sources)?;
    load.go()?;
    std::thread::sleep(Duration::from_secs(u64::from(args.warm_up)));
    let before = Counts::now(&mut client, pid, load_pid)?;
    std::thread::sleep(Duration::from_secs(u64::from(args.seconds)));
    let threads = usage::threads(pid)?;
    let after = Counts::now(&mut client, pid, load_pid)?;
    let memory = after.usage.memory;
    let seen = load.line().context("the load gave no result")?;
    let number = |key: &str| seen[key].as_u64().unwrap_or(0);
    let total = sources as u64 * u64::from(args.per_second) * u64::from(args.warm_up + args.seconds);
    let end = Counts::now(&mut client, pid, load_pid)?;
    if [number("sent"), number("acknowledged"), end.acknowledgements] != [total; 3] {
        bail!(
            "of {total} transactions {} were sent and {} acknowledged, and binlogd counts {} acknowledgements; {}",
            number("sent"),
            number("acknowledged"),
            end.acknowledgements,
            seen["error"]
        );
    }
    let seconds = (after.at - before.at).as_secs_f64();
    Ok(Round {
        outside: Percentiles::from_json(&seen["latency"]),
        since_due: Percentiles::from_json(&seen["since_due"]),
        inside: end.inside,
        late: number("late"),
        overtaken: number("overtaken"),
        acknowledgements_per_second: (after.acknowledgements - before.acknowledgements) as f64 / seconds,
        syncs_per_second: (after.syncs - before.syncs) as f64 / seconds,
        cores: after.usage.since(&before.usage).processor_seconds / seconds,
        load_cores: after.load_usage.since(&before.load_usage).processor_seconds / seconds,
        memory,
        threads,
    })
}

/// A configuration of one source for each port.
fn configuration(ports: &[u16]) -> anyhow::Result<String> {
    let mut text =
        "data_dir = \"data\"\n[admin]\nlisten = \"127.0.0.1:0\"\n[log]\nlevel = \"error\"\n".to_owned();
    for (number, port) in ports.iter().enumerate() {
        write!(
            text,
            "[[source]]\nname = \"s{:03}\"\nhosts = [\"127.0.0.1:{port}\"]\nuser = \"bench\"\ntls = \"disabled\"\n\
             fsync_mode = 1\n",
            number + 1
        )?;
    }
    Ok(text)
}

/// Waits until binlogd says of every source that it receives and acknowledges what is synced.
fn wait_for_semi_sync(client: &mut StatusClient, sources: usize) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let status = client.status()?;
        let all = status["sources"].as_array().context("a status without sources")?;
        let ready = |source: &&Value| {
            source["state"] == "receiving"
                && source["semi_sync"]["active"] == true
                && source["fsync_mode"] == 1
        };
        let count = all.iter().filter(ready).count();
        if count == sources {
            return Ok(());
        }
        if Instant::now() > deadline {
            let other = all.iter().find(|source| !ready(source)).cloned().unwrap_or_default();
            bail!("binlogd acknowledges for {count} of {sources} sources only; one of the others: {other}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Everything that is counted, at one moment.
struct Counts {
    at: Instant,
    acknowledgements: u64,
    syncs: u64,
    usage: Usage,
    load_usage: Usage,
    inside: Vec<Percentiles>,
}

impl Counts {
    fn now(client: &mut StatusClient, pid: u32, load_pid: u32) -> anyhow::Result<Counts> {
        let (usage, load_usage) = (Usage::of(pid)?, Usage::of(load_pid)?);
        let at = Instant::now();
        let status = client.status()?;
        let sources = status["sources"].as_array().context("a status without sources")?;
        let sum = |counter: &str| {
            sources.iter().map(|source| source["counters"][counter].as_u64().unwrap_or(0)).sum()
        };
        Ok(Counts {
            at,
            acknowledgements: sum("acknowledgements"),
            syncs: sum("syncs"),
            usage,
            load_usage,
            inside: sources
                .iter()
                .map(|source| Percentiles::from_json(&source["latency"]["acknowledge"]))
                .collect(),
        })
    }
}

/// The sources, in a process of their own; see [`load`].
struct LoadProcess {
    process: Running,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl LoadProcess {
    fn start(args: &ManyLoadArgs) -> anyhow::Result<LoadProcess> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("many-load");
        let mut option = |name: &str, value: u64| {
            command.arg(name).arg(value.to_string());
        };
        option("--sources", args.sources as u64);
        option("--per-second", u64::from(args.per_second));
        option("--bytes", args.bytes as u64);
        option("--warm-up", u64::from(args.warm_up));
        option("--seconds", u64::from(args.seconds));
        option("--seed", args.seed);
        let mut process = Running(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?);
        let pipes = process.0.stdin.take().zip(process.0.stdout.take());
        let (input, output) = pipes.context("no pipes to the load")?;
        Ok(LoadProcess { process, input, output: BufReader::new(output) })
    }

    /// The next line that it prints.
    fn line(&mut self) -> anyhow::Result<Value> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        serde_json::from_str(&line).context("the load has ended: see its message above")
    }

    fn go(&mut self) -> anyhow::Result<()> {
        Ok(self.input.write_all(b"go\n")?)
    }
}

fn print_latencies(counts: &[usize; 2], rounds: &[Vec<Round>]) {
    let mut table = Table::new(&["sources", "", "p50", "p95", "p99", "p99.9", "max"]);
    for (count, rounds) in counts.iter().zip(rounds) {
        let mut row = |name: &str, of: fn(&Round) -> &Percentiles| {
            let column = |what: fn(&Percentiles) -> f64| {
                with_spread(&rounds.iter().map(|round| what(of(round))).collect::<Vec<_>>(), 0)
            };
            table.row(vec![
                count.to_string(),
                name.to_owned(),
                column(|p| p.p50),
                column(|p| p.p95),
                column(|p| p.p99),
                column(|p| p.p999),
                column(|p| p.max),
            ]);
        };
        row("at the sources: send to acknowledgement", |round| &round.outside);
        row("the same from when the send was due", |round| &round.since_due);
        let column = |what: fn(&Round) -> f64| with_spread(&rounds.iter().map(what).collect::<Vec<_>>(), 0);
        let mut row = |name: &str, p50: String, p99: String| {
            let empty = String::new;
            table.row(vec![count.to_string(), name.to_owned(), p50, empty(), p99, empty(), empty()]);
        };
        row("inside binlogd: the median source", column(Round::inside_p50), column(Round::inside_p99));
        row("inside binlogd: the worst source", String::new(), column(Round::inside_worst_p99));
    }
    table.print();
    let ratio = |what: fn(&Round) -> f64| {
        let pairs = rounds[1].iter().zip(&rounds[0]);
        with_spread(&pairs.map(|(many, one)| what(many) / what(one)).collect::<Vec<_>>(), 2)
    };
    println!("p99 of {} sources / p99 of one", counts[1]);
    println!("    at the sources                   {}", ratio(|round| round.outside.p99));
    println!("    at the sources, since it was due {}", ratio(|round| round.since_due.p99));
    println!("    inside, the median source        {}", ratio(Round::inside_p99));
    println!("    inside, the worst source         {}", ratio(Round::inside_worst_p99));
    println!();
}

fn print_costs(args: &ManyArgs, counts: &[usize; 2], rounds: &[Vec<Round>]) {
    let mut table = Table::new(&[
        "sources",
        "acknowledgements/s",
        "syncs/s",
        "late sends",
        "due before the last was acknowledged",
        "cores",
        "cores of the load",
        "threads",
        "VmRSS MiB",
        "of it RssAnon MiB",
    ]);
    for (count, rounds) in counts.iter().zip(rounds) {
        let column = |digits: usize, what: &dyn Fn(&Round) -> f64| {
            with_spread(&rounds.iter().map(what).collect::<Vec<_>>(), digits)
        };
        let sends = *count as f64 * f64::from(args.per_second) * f64::from(args.seconds);
        let percent =
            |what: fn(&Round) -> u64| format!("{} %", column(2, &|round| what(round) as f64 / sends * 100.0));
        table.row(vec![
            count.to_string(),
            column(0, &|round| round.acknowledgements_per_second),
            column(0, &|round| round.syncs_per_second),
            percent(|round| round.late),
            percent(|round| round.overtaken),
            column(2, &|round| round.cores),
            column(2, &|round| round.load_cores),
            column(0, &|round| round.threads as f64),
            column(1, &|round| round.memory.resident as f64 / 1024.0),
            column(1, &|round| round.memory.anonymous as f64 / 1024.0),
        ]);
    }
    table.print();
    let more = (counts[1].max(2) - 1) as f64;
    let per_source: Vec<f64> = rounds[1]
        .iter()
        .zip(&rounds[0])
        .map(|(many, one)| (many.memory.resident as f64 - one.memory.resident as f64) / 1024.0 / more)
        .collect();
    println!("VmRSS of each further source, MiB: {}\n", with_spread(&per_source, 3));
}
