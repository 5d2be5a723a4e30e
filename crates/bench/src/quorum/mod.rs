//! What a commit takes on a real source: with one binlogd, with a quorum of three, and with what else keeps it on two machines.

mod args;
mod relay;
mod scene;

pub use args::QuorumArgs;

use anyhow::Context;
use relay::Relays;
use rig::statistics::{Percentiles, Samples, Table, with_spread};
use scene::{INSERT, Scene, Way};
use std::time::{Duration, Instant};

/// Not counted at the beginning of each measurement.
const WARM_UP: Duration = Duration::from_millis(300);

/// Runs it and prints a table for each delay.
///
/// # Errors
/// When a program under test does not do its work: a commit without an acknowledgement is an error.
pub fn run(args: &QuorumArgs) -> anyhow::Result<()> {
    let scene = Scene::make(args)?;
    println!(
        "## Commits of one row on {}, {} rounds of {} s, times in µs: medians of the rounds, and their range\n",
        args.server, args.common.rounds, args.seconds
    );
    let ways: Vec<Way> = Way::ALL.into_iter().filter(|way| way.can_be_had_of(scene.kind())).collect();
    for delay in &args.delays {
        let relays = Relays::of(Duration::from_micros(*delay))?;
        println!("each message {delay} µs later: a round trip of {:.0} µs more\n", relays.round_trip_us());
        let rounds = args.common.in_turn(&ways, |round, way| {
            let measured =
                measure(args, &scene, &relays, way).with_context(|| format!("{way}, {delay} µs"))?;
            let p50: Vec<String> = measured.iter().map(|one| format!("{:.0}", one.p50)).collect();
            eprintln!("round {}: {delay} µs, {way}: {} µs", round + 1, p50.join(", "));
            Ok(measured)
        })?;
        print(args, &ways, &rounds);
    }
    Ok(())
}

/// The times of each number of clients.
fn measure(args: &QuorumArgs, scene: &Scene, relays: &Relays, way: Way) -> anyhow::Result<Vec<Percentiles>> {
    let attached = scene.attach(way, relays)?;
    let mut measured = Vec::new();
    for clients in &args.clients {
        let until = Instant::now() + WARM_UP + Duration::from_secs_f64(args.seconds);
        let from = Instant::now() + WARM_UP;
        let samples = std::thread::scope(|scope| {
            let clients: Vec<_> =
                (0..*clients).map(|_| scope.spawn(|| commits(scene, from, until))).collect();
            clients.into_iter().try_fold(Samples::default(), |mut all, client| {
                all.extend(client.join().ok().context("a client panicked")??);
                anyhow::Ok(all)
            })
        })?;
        measured.push(samples.percentiles());
    }
    attached.end()?;
    Ok(measured)
}

/// One client, which commits one row after the other.
fn commits(scene: &Scene, from: Instant, until: Instant) -> anyhow::Result<Samples> {
    let mut session = scene.session()?;
    let mut samples = Samples::with_capacity(1 << 16);
    while Instant::now() < until {
        let begun = Instant::now();
        session.query(INSERT)?;
        if begun >= from {
            samples.record(begun.elapsed());
        }
    }
    Ok(samples)
}

fn print(args: &QuorumArgs, ways: &[Way], rounds: &[Vec<Vec<Percentiles>>]) {
    for (place, clients) in args.clients.iter().enumerate() {
        let mut table = Table::new(&["", "p50", "p99", "p50 / one", "p99 / one", "commits/s"]);
        let one = ways.iter().position(|way| *way == Way::One).map(|one| &rounds[one]);
        for (way, rounds) in ways.iter().zip(rounds) {
            let column = |of: fn(&Percentiles) -> f64, digits| {
                with_spread(&rounds.iter().map(|round| of(&round[place])).collect::<Vec<_>>(), digits)
            };
            let ratio = |of: fn(&Percentiles) -> f64| {
                let pairs = rounds.iter().zip(one.into_iter().flatten());
                with_spread(&pairs.map(|(way, one)| of(&way[place]) / of(&one[place])).collect::<Vec<_>>(), 2)
            };
            let rates: Vec<f64> =
                rounds.iter().map(|round| round[place].count as f64 / args.seconds).collect();
            table.row(vec![
                way.to_string(),
                column(|times| times.p50, 0),
                column(|times| times.p99, 0),
                ratio(|times| times.p50),
                ratio(|times| times.p99),
                with_spread(&rates, 0),
            ]);
        }
        println!("{clients} clients\n");
        table.print();
    }
}
