//! The acknowledgement path: from the arrival of the packet that wants it to its leaving.

use crate::common::Common;
use crate::floor::Floors;
use crate::load::Process;
use crate::load::{PingPong, Rallies};
use crate::receiver::{Kind, Receiver, Report};
use crate::stores::ArchiveStore;
use anyhow::{Context, bail};
use rig::bare::Acknowledge;
use rig::statistics::{Percentiles, Table, median, with_spread};
use scripted_source::{Script, ScriptedSource};
use std::sync::mpsc;
use std::time::Duration;
use wire::{MadeCertificate, ServerTls};

/// Arguments of `binlogd-bench ack`.
#[derive(Debug, Clone, clap::Args)]
pub struct AckArgs {
    /// Common ones.
    #[command(flatten)]
    pub common: Common,
    /// Bytes of a group. Each is one transaction.
    #[arg(long, value_delimiter = ',', default_values_t = [600, 4096, 16384])]
    pub bytes: Vec<usize>,
    /// Groups in a round.
    #[arg(long, default_value_t = 2000)]
    pub groups: usize,
    /// Only these values of `fsync_mode` of the binlogd binary, each beside the bare receiver.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 0])]
    pub fsync_modes: Vec<u8>,
    /// binlogd while it archives to these stores, too.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub archives: Vec<ArchiveStore>,
    /// How often it uploads then, in seconds, each beside the others.
    #[arg(long, value_delimiter = ',', default_values_t = [1])]
    pub archive_intervals: Vec<u32>,
    /// binlogd that receives over TLS, too.
    #[arg(long)]
    pub tls: bool,
}

impl AckArgs {
    /// Everything that is compared, in the order of the table: what syncs first.
    fn kinds(&self) -> Vec<Kind> {
        let modes = |wanted: u8| self.fsync_modes.iter().filter(move |mode| **mode == wanted);
        let compared = |fsync_mode| {
            let encrypted = self.tls.then_some(Kind::Encrypted { fsync_mode });
            pair(fsync_mode).into_iter().chain(encrypted)
        };
        let mut kinds: Vec<Kind> = modes(1).flat_map(|_| compared(1)).collect();
        for store in self.archives.iter().copied() {
            let each = self.archive_intervals.iter().copied();
            kinds.extend(each.map(|interval| Kind::Archiving { store, interval }));
        }
        kinds.extend(modes(0).flat_map(|_| compared(0)));
        kinds
    }
}

/// Most writes of a floor in a round.
const FLOOR_COUNT_MAX: usize = 3000;

/// Not counted at the beginning of each round.
const WARM_UP: usize = 200;

/// One program's result in one round.
struct Round {
    /// Arrival to leaving, by the receiver's own clock.
    inside: Percentiles,
    /// Durable writes of the receiver for each acknowledgement.
    syncs_a_group: f64,
    /// By the source's clock, and what the receiver used meanwhile.
    rallies: Rallies,
}

/// Picks one of the floors.
type FloorOf = fn(&Floors) -> Percentiles;

/// Runs it and prints a table for each size.
///
/// # Errors
/// When a program under test does not do its work, or not as its name says.
pub fn run(args: &AckArgs) -> anyhow::Result<()> {
    println!("## Acknowledgement, {} rounds of {} groups, one at a time\n", args.common.rounds, args.groups);
    let kinds = args.kinds();
    for bytes in &args.bytes {
        let mut floors = Vec::new();
        let rounds = args.common.in_turn(&kinds, |round, kind| {
            if floors.len() == round {
                floors.push(Floors::measure(&args.common.dir, *bytes, args.groups.min(FLOOR_COUNT_MAX))?);
            }
            measure(args, kind, *bytes)
        })?;
        print(args, *bytes, &kinds, &floors, &rounds);
    }
    Ok(())
}

/// The yardstick for binlogd, and binlogd.
fn pair(fsync_mode: u8) -> [Kind; 2] {
    let acknowledge = if fsync_mode == 0 { Acknowledge::Written } else { Acknowledge::Synced };
    [Kind::Bare { acknowledge }, Kind::Binlogd { fsync_mode }]
}

/// What the source follows. Its certificate is made anew, and nobody looks whose it is.
fn script(speaks_tls: bool) -> anyhow::Result<Script> {
    let mut script = Script::default();
    if speaks_tls {
        let made = MadeCertificate::make(&["127.0.0.1".to_owned()], (2000, 1, 1), (2100, 1, 1))?;
        script.tls = Some(ServerTls::from_pem(&made.cert, &made.key)?.config());
    }
    Ok(script)
}

fn measure(args: &AckArgs, kind: Kind, bytes: usize) -> anyhow::Result<Round> {
    let (result, results) = mpsc::channel();
    let process = Process::new(&args.common.dir);
    let load = PingPong {
        transactions: 1,
        transaction_len: bytes,
        warm_up: WARM_UP,
        groups: args.groups,
        process: process.clone(),
        result,
    };
    let wants_tls = matches!(kind, Kind::Encrypted { .. });
    let source = ScriptedSource::start_with(script(wants_tls)?, load)?;
    let receiver = Receiver::start(kind, &args.common.binlogd, &args.common.dir, source.port())?;
    let _ = process.pid.set(receiver.pid());
    let rallies =
        results.recv_timeout(Duration::from_secs(120)).with_context(|| format!("{kind} did not finish"))?;
    if receiver.is_encrypted()? != wants_tls {
        bail!("{kind}: the connection is {}", if wants_tls { "in clear" } else { "encrypted" });
    }
    if !receiver.has_archived()? {
        bail!("{kind}: the round was over before the archive did anything; make it longer with --groups");
    }
    let Report { latency, syncs, acknowledgements } = receiver.finish(|| source.disconnect())?;
    let groups = (args.groups + WARM_UP) as u64;
    // The last one is counted when it has left: whoever got it may ask for the counts sooner.
    if acknowledgements > groups || acknowledgements + 1 < groups {
        bail!("{kind} counts {acknowledgements} acknowledgements, and {groups} were asked for one at a time");
    }
    let syncs_first = !matches!(
        kind,
        Kind::Binlogd { fsync_mode: 0 }
            | Kind::Encrypted { fsync_mode: 0 }
            | Kind::Bare { acknowledge: Acknowledge::Written, .. }
    );
    if syncs_first && syncs < groups {
        bail!("{kind} made {syncs} durable writes for {groups} groups, each of which needs one");
    }
    Ok(Round { inside: latency, syncs_a_group: syncs as f64 / groups as f64, rallies })
}

fn print(args: &AckArgs, bytes: usize, kinds: &[Kind], floors: &[Floors], rounds: &[Vec<Round>]) {
    println!("{bytes} bytes a group, times in µs: medians of the rounds, and their range\n");
    let mut table = Table::new(&[
        "",
        "p50",
        "p95",
        "p99",
        "p99.9",
        "p50 / (b)",
        "p99 / (b)",
        "syncs/s",
        "write_bytes a group",
        "disk's bytes a group",
        "µs of processor a group",
        "processor s a MB",
        "p50 at the source",
    ]);
    let named: [(&str, FloorOf); 3] = [
        ("floor (a): write at the end, fdatasync; loop", |floors| floors.append),
        ("floor (b): one write of a journal's record; loop", |floors| floors.record),
        ("floor (c): as (b), each after a wake-up", |floors| floors.woken),
    ];
    for (name, of) in named {
        let times: Vec<Percentiles> = floors.iter().map(of).collect();
        table.row([vec![name.to_owned()], latency_cells(&times, floors)].concat());
    }
    let (groups, megabytes) = (args.groups as f64, (args.groups * bytes) as f64 / 1e6);
    for (kind, rounds) in kinds.iter().zip(rounds) {
        let inside: Vec<Percentiles> = rounds.iter().map(|round| round.inside).collect();
        let middle = |what: &dyn Fn(&Round) -> f64| median(rounds.iter().map(what));
        let outside: Vec<f64> = rounds.iter().map(|round| round.rallies.latency.p50).collect();
        let mut cells = vec![kind.to_string()];
        cells.extend(latency_cells(&inside, floors));
        cells.extend([
            format!("{:.0}", middle(&|round| round.syncs_a_group * groups / round.rallies.used.seconds)),
            format!(
                "{:.0}",
                middle(
                    &|round| round.rallies.used.written_bytes.map_or(f64::NAN, |bytes| bytes as f64) / groups
                )
            ),
            format!("{:.0}", middle(&|round| round.rallies.disk_bytes as f64 / groups)),
            format!("{:.1}", middle(&|round| round.rallies.used.processor_seconds * 1e6 / groups)),
            format!("{:.4}", middle(&|round| round.rallies.used.processor_seconds / megabytes)),
            with_spread(&outside, 0),
        ]);
        table.row(cells);
    }
    table.print();
    print_ratios(&format!("{bytes} bytes a group, with an archive / without one"), kinds, rounds, |kind| {
        matches!(kind, Kind::Archiving { .. }).then_some(Kind::Binlogd { fsync_mode: 1 })
    });
    print_ratios(&format!("{bytes} bytes a group, with TLS / in clear"), kinds, rounds, |kind| match kind {
        Kind::Encrypted { fsync_mode } => Some(Kind::Binlogd { fsync_mode }),
        _ => None,
    });
}

/// What something costs: times with it, beside those of the same round without, which `without` names. Nothing where
/// nobody has it.
fn print_ratios(title: &str, kinds: &[Kind], rounds: &[Vec<Round>], without: impl Fn(Kind) -> Option<Kind>) {
    let pairs: Vec<_> = kinds
        .iter()
        .zip(rounds)
        .filter_map(|(kind, with)| {
            let without = without(*kind)?;
            Some((kind, with, &rounds[kinds.iter().position(|one| *one == without)?]))
        })
        .collect();
    if pairs.is_empty() {
        return;
    }
    println!("{title}, in the same round\n");
    let mut table =
        Table::new(&["", "p50", "p99", "p50 at the source", "p99 at the source", "processor a group"]);
    for (kind, with, without) in pairs {
        let ratio = |what: fn(&Round) -> f64| {
            let ratios = with.iter().zip(without).map(|(with, without)| what(with) / what(without));
            with_spread(&ratios.collect::<Vec<_>>(), 2)
        };
        table.row(vec![
            kind.to_string(),
            ratio(|round| round.inside.p50),
            ratio(|round| round.inside.p99),
            ratio(|round| round.rallies.latency.p50),
            ratio(|round| round.rallies.latency.p99),
            ratio(|round| round.rallies.used.processor_seconds),
        ]);
    }
    table.print();
}

/// Percentiles, and what they are of floor (b) in the same round.
fn latency_cells(times: &[Percentiles], floors: &[Floors]) -> Vec<String> {
    let column = |what: fn(&Percentiles) -> f64| with_spread(&times.iter().map(what).collect::<Vec<_>>(), 0);
    let ratio = |what: fn(&Percentiles) -> f64| {
        let ratios = times.iter().zip(floors).map(|(time, floors)| what(time) / what(&floors.record));
        with_spread(&ratios.collect::<Vec<_>>(), 2)
    };
    vec![
        column(|p| p.p50),
        column(|p| p.p95),
        column(|p| p.p99),
        column(|p| p.p999),
        ratio(|p| p.p50),
        ratio(|p| p.p99),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::packet::{command, semi_sync_acknowledgement};
    use wire::{ConnectOptions, Connection, Secret, TlsMode, TlsOptions, WireError};

    fn connect(source: &ScriptedSource, mode: TlsMode) -> Result<Connection, WireError> {
        Connection::connect(&ConnectOptions {
            host: "127.0.0.1".to_owned(),
            port: source.port(),
            user: "any".to_owned(),
            password: Secret::new(String::new()),
            connect_timeout: Duration::from_secs(10),
            tls: TlsOptions { mode, ..TlsOptions::default() },
        })
    }

    #[test]
    fn an_encrypted_source_sends_and_is_acknowledged_and_lets_nobody_in_who_speaks_in_clear() {
        let mut script = script(true).unwrap();
        // More than a record of TLS holds.
        script.log.group(1, 100_000);
        let end = script.log.end();
        let source = ScriptedSource::start(script).unwrap();
        assert!(connect(&source, TlsMode::Disabled).is_err());
        let mut connection = connect(&source, TlsMode::Required).unwrap();
        assert_eq!(connection.tls_version(), Some("TLSv1.3"));
        connection.query("SET @rpl_semi_sync_replica = 1").unwrap();
        let dump = command::binlog_dump(4, 0, 7, end.file.as_bytes());
        let mut stream = connection.start_dump(&dump).unwrap();
        stream.set_blocking(Duration::from_secs(10)).unwrap();
        let (mut received, mut buffer) = (0, [0; 4096]);
        while received < 100_000 {
            match stream.read(&mut buffer) {
                Ok(read) => received += read,
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
            }
        }
        let mut acknowledgement = Vec::new();
        semi_sync_acknowledgement(&mut acknowledgement, end.position, end.file.as_bytes());
        stream.write_all_blocking(&acknowledgement, Duration::from_secs(10)).unwrap();
        assert!(source.wait_for_acknowledgement(&end, Duration::from_secs(10)));
    }
}
