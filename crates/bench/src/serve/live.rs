//! The live end: how long after its acknowledgement a transaction reaches a reader, and what readers cost the
//! acknowledgement.

use super::args::ServeArgs;
use super::null_reader::{self, NullReaders};
use super::serving::{PASSWORD, Serving};
use crate::load::{exchange, payload_for};
use anyhow::{Context, bail};
use codec::dump_stream::{DumpFramer, Frame};
use codec::event::{EventHeader, EventType};
use rig::statistics::{Percentiles, Samples, Table, with_spread};
use scripted_source::{Dump, Load, Script, ScriptedSource};
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};
use wire::DumpStream;

/// Bytes of a transaction.
const TRANSACTION_BYTES: usize = 600;

/// Groups that are not counted, at the beginning of a round.
const WARM_UP: usize = 200;

/// Between groups, where readers have long been served.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(120);

/// Bytes that the timed reader takes at once.
const BUFFER_LEN: usize = 1 << 20;

/// One group after the other, when it is told to begin.
struct Timed {
    groups: usize,
    /// Between an acknowledgement and the next group. Without it a group arrives while the readers of the one before are
    /// served.
    pause: Duration,
    begin: Receiver<()>,
    /// When each group was sent and when its acknowledgement arrived.
    result: Sender<Vec<(Instant, Instant)>>,
}

impl Load for Timed {
    fn run(&mut self, dump: &mut Dump) -> io::Result<()> {
        let payload = dump.append(|log| payload_for(log, TRANSACTION_BYTES));
        // The first makes the file that readers begin with.
        exchange(dump, 1, payload)?;
        self.begin.recv().map_err(io::Error::other)?;
        let mut times = Vec::with_capacity(self.groups);
        for _ in 0..self.groups {
            times.push(exchange(dump, 1, payload)?);
            std::thread::sleep(self.pause);
        }
        let _ = self.result.send(times);
        Ok(())
    }
}

/// What one round has shown.
struct Round {
    /// From the send of a group to its acknowledgement, at the source.
    acknowledged: Percentiles,
    /// From the arrival of an acknowledgement at the source to that of the transaction at the first reader; not below 0.
    lag: Percentiles,
    /// How often threads of binlogd have left a processor, a group.
    switches: f64,
    /// Microseconds of processor that binlogd has used, a group.
    processor: f64,
}

/// Measures and prints one table.
///
/// # Errors
/// When a transaction is not acknowledged, or does not reach the reader.
pub(super) fn run(args: &ServeArgs) -> anyhow::Result<()> {
    println!(
        "## The live end, {} groups of one transaction of {TRANSACTION_BYTES} bytes, a tenth where the pause is the longest, {} \
         rounds\n",
        args.groups, args.common.rounds
    );
    println!("times in µs: medians of the rounds, and their range; ratios to the rounds without readers\n");
    let mut table = Table::new(&[
        "pause between groups",
        "readers",
        "acknowledged p50",
        "ratio",
        "acknowledged p99",
        "ratio",
        "delivered after the acknowledgement p50",
        "p99",
        "context switches a reader and group",
        "processor µs a group",
    ]);
    for pause in [Duration::ZERO, Duration::from_millis(1), LONGEST_PAUSE] {
        let counts = [0, 1, args.readers, args.crowd];
        let groups = if pause == LONGEST_PAUSE { args.groups / 10 } else { args.groups };
        let rounds = args.common.in_turn(&counts, |round, readers| {
            let measured =
                measure(args, readers, groups, pause).with_context(|| format!("{readers} readers"))?;
            eprintln!(
                "round {}: pause {pause:?}, {readers} readers: {:.0} µs",
                round + 1,
                measured.acknowledged.p50
            );
            Ok(measured)
        })?;
        for (readers, measured) in counts.iter().zip(&rounds) {
            let column = |of: fn(&Round) -> f64| with_spread(&measured.iter().map(of).collect::<Vec<_>>(), 0);
            let ratio = |of: fn(&Round) -> f64| {
                let ratios = measured.iter().zip(&rounds[0]).map(|(one, none)| of(one) / of(none));
                with_spread(&ratios.collect::<Vec<_>>(), 2)
            };
            let delivered = |of: fn(&Round) -> f64| if *readers == 0 { String::new() } else { column(of) };
            table.row(vec![
                format!("{pause:?}"),
                readers.to_string(),
                column(|round| round.acknowledged.p50),
                ratio(|round| round.acknowledged.p50),
                column(|round| round.acknowledged.p99),
                ratio(|round| round.acknowledged.p99),
                delivered(|round| round.lag.p50),
                delivered(|round| round.lag.p99),
                match readers {
                    0 => String::new(),
                    _ => {
                        let pairs = measured.iter().zip(&rounds[0]);
                        let switches = pairs.map(|(with, without)| with.switches - without.switches);
                        let a_reader: Vec<f64> =
                            switches.map(|switches| switches / *readers as f64).collect();
                        with_spread(&a_reader, 1)
                    }
                },
                column(|round| round.processor),
            ]);
        }
    }
    table.print();
    Ok(())
}

fn measure(args: &ServeArgs, readers: usize, measured: usize, pause: Duration) -> anyhow::Result<Round> {
    let ((begin, begun), (result, results)) = (mpsc::channel(), mpsc::channel());
    let groups = WARM_UP + measured;
    let load = Timed { groups, pause, begin: begun, result };
    let source = ScriptedSource::start_with(Script::default(), load)?;
    let binlogd = Serving::start(&args.common.binlogd, &args.common.dir, source.port())?;
    let status = binlogd.wait("the first transaction is acknowledged", |status| {
        status["sources"][0]["counters"]["acknowledgements"].as_u64().is_some_and(|count| count >= 1)
    })?;
    let durable = &status["sources"][0]["positions"]["durable"];
    let file = durable["file"].as_str().context("no durable file")?.to_owned();
    let position = durable["position"].as_u64().context("no durable position")?;
    let others = match readers {
        0 | 1 => None,
        _ => Some(NullReaders::start((binlogd.port(), PASSWORD), (&file, position), readers - 1, false)?),
    };
    let timed = if readers == 0 {
        None
    } else {
        let place = (file.as_str(), u32::try_from(position)?);
        let stream = null_reader::open(binlogd.port(), PASSWORD, 4_099_999, place, false)?;
        Some(std::thread::spawn(move || arrivals(stream, groups)))
    };
    let before = binlogd.usage()?;
    begin.send(()).context("the source has ended")?;
    let times = results.recv_timeout(PATIENCE).context("not everything was acknowledged")?;
    let used = binlogd.usage()?.since(&before);
    let mut acknowledged = Samples::with_capacity(measured);
    times.iter().skip(WARM_UP).for_each(|(sent, arrived)| acknowledged.record(*arrived - *sent));
    let mut lag = Samples::with_capacity(measured);
    if let Some(timed) = timed {
        let arrivals = timed.join().ok().context("the reader panicked")??;
        let pairs = times.iter().zip(&arrivals).skip(WARM_UP);
        pairs.for_each(|((_, acknowledged), at)| lag.record(at.saturating_duration_since(*acknowledged)));
    }
    if let Some(others) = others {
        others.finish()?;
    }
    Ok(Round {
        acknowledged: acknowledged.percentiles(),
        lag: lag.percentiles(),
        switches: used.switches as f64 / groups as f64,
        processor: used.processor_seconds * 1e6 / groups as f64,
    })
}

/// When the last event of each transaction arrived.
fn arrivals(mut stream: DumpStream, groups: usize) -> anyhow::Result<Vec<Instant>> {
    stream.set_blocking(PATIENCE)?;
    stream.set_read_timeout(PATIENCE)?;
    let (mut buffer, mut held) = (vec![0; BUFFER_LEN], 0);
    let mut framer = DumpFramer::new(false);
    let mut arrivals = Vec::with_capacity(groups);
    while arrivals.len() < groups {
        let read = stream.read(&mut buffer[held..])?;
        let now = Instant::now();
        if read == 0 {
            bail!("the dump ended after {} transactions", arrivals.len());
        }
        held += read;
        let mut used = 0;
        while let Some((len, frame)) = framer.next(&buffer[used..held], BUFFER_LEN)? {
            used += len;
            if let Frame::Event { bytes, .. } = frame
                && EventHeader::parse(bytes)?.event_type == EventType::XID
            {
                arrivals.push(now);
            }
        }
        buffer.copy_within(used..held, 0);
        held -= used;
    }
    Ok(arrivals)
}
