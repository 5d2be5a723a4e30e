//! Chaos: three binlogds, three servers, clients that write all the time. In each round something goes wrong with a node, with the
//! source, with who promotes, or with all three, and another server becomes the source. Then nothing is lost that a client was told
//! of, no two servers were acknowledged at once, and all come together again.
//!
//! `BINLOGD_CHAOS_ROUNDS` is how many rounds on each server (`make chaos`). They are cut into eras, each with machines and a seed of its
//! own. Each prints its seed, and `BINLOGD_TEST_SEED` plays the same events again, as far as time can be replayed. Without it those
//! rounds are played that once found something ([`Event::found`]).

mod clients;
mod event;
mod fleet;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::common::seed;
use crate::common::semi_sync::SemiSync;
use crate::common::verbs::text;
use crate::common::workload::Random;
use serde_json::Value;

use event::{Event, NODES, OfPromoter, OfSource, SERVERS};
use fleet::{Fleet, PATIENCE};

const ERA_ROUNDS: usize = 15;
/// A source that comes back unaware is written to for so long.
const UNAWARE: Duration = Duration::from_millis(1_500);

/// Machines, and what was seen of them.
struct Era {
    fleet: Fleet,
    source: usize,
    /// The source of each epoch that was seen.
    epochs: BTreeMap<u64, String>,
    /// Ways on that were needed beyond the same promote again.
    rescues: usize,
    rebuilt: usize,
}

impl Era {
    fn round(&mut self, event: Event) {
        let (old, to) = (self.source, (self.source + event.step) % SERVERS);
        self.fleet.wait_told(old, Instant::now());
        self.fleet.harm_node(event.node, old, event.of_node);
        self.fleet.harm_source(old, event.of_source);
        std::thread::sleep(event.pause);
        let began = Instant::now();
        let (new, said) = self.another_source(event, to);
        let promoted = began.elapsed();
        // With what went wrong still in force.
        let acknowledged = self.fleet.wait_told(new, began);
        self.fleet.nodes.heal();
        self.fleet.heal_node(event.node, event.of_node);
        self.fleet.heal_source(old, event.of_source);
        if event.of_source == OfSource::Killed && event.unaware {
            self.fleet.comes_back(old);
            std::thread::sleep(UNAWARE);
        }
        self.source = new;
        self.assert_one_source(began);
        for server in (0..SERVERS).filter(|server| *server != new) {
            self.follows(server, server == old, event, said.as_deref());
        }
        self.fleet.wait_converged(new);
        self.assert_nothing_is_lost();
        self.fleet.assert_bytes_of(new);
        println!(
            "  server {new} after {:.2} s, a commit acknowledged after {:.2} s; {} commits told, epoch {}",
            promoted.as_secs_f64(),
            acknowledged.as_secs_f64(),
            self.fleet.clients.told().len(),
            self.epochs.keys().max().copied().unwrap_or(0)
        );
    }

    /// Promotes until that has succeeded, at one node and another. Returns the server that became the source, and what was said of the
    /// old one.
    #[track_caller]
    fn another_source(&mut self, event: Event, to: usize) -> (usize, Option<String>) {
        let mut at = event.at;
        let rival = match event.of_promoter {
            OfPromoter::Rivals => SERVERS - self.source - to,
            _ => to,
        };
        match event.of_promoter {
            OfPromoter::Nothing => {}
            OfPromoter::Killed(after) => {
                let said = self.fleet.promote_for(at, to, after);
                println!("  killed after {after:?}: {}", said.lines().last().unwrap_or("it said nothing"));
                at = (at + 1) % NODES;
            }
            OfPromoter::Two | OfPromoter::Rivals => {
                let fleet = &self.fleet;
                let next = (at + 1) % NODES;
                std::thread::scope(|scope| {
                    let first = scope.spawn(move || fleet.promote(at, to, &["--yes"]));
                    let second = scope.spawn(move || fleet.promote(next, rival, &["--yes"]));
                    for (server, ended) in [(to, first), (rival, second)] {
                        let output = ended.join().expect("it ends");
                        println!(
                            "  one of two, to {server}: {} {}",
                            output.status,
                            text(&output.stderr).trim()
                        );
                    }
                });
            }
        }
        let to = if rival == to { to } else { self.in_force().unwrap_or(to) };
        (to, self.promote_until_done(at, to))
    }

    /// The server that a majority of the nodes has accepted by now.
    fn in_force(&self) -> Option<usize> {
        let until = Instant::now() + Duration::from_secs(5);
        while Instant::now() < until {
            for server in (0..SERVERS).filter(|server| *server != self.source) {
                let dry = self.fleet.promote(0, server, &["--dry-run"]);
                if text(&dry.stdout).contains("is the source") {
                    return Some(server);
                }
            }
        }
        None
    }

    #[track_caller]
    fn promote_until_done(&mut self, mut at: usize, to: usize) -> Option<String> {
        let until = Instant::now() + PATIENCE;
        loop {
            let output = self.fleet.promote(at, to, &["--yes"]);
            let said = text(&output.stdout);
            if output.status.success() {
                return statements_in(&said);
            }
            let error = text(&output.stderr);
            println!("  not at node {at}: {}", error.trim());
            assert!(Instant::now() < until, "no promotion succeeds: {error}\n{}", self.fleet.logs());
            if error.contains("binlogd rescue") {
                let output = self.fleet.rescue(at, to);
                let end = text(&output.stdout) + &text(&output.stderr);
                println!("  rescue at node {at}: {} {}", output.status, end.lines().last().unwrap_or(""));
                self.rescues += 1;
            }
            at = (at + 1) % NODES;
        }
    }

    /// Each node counts, and all in one epoch with one source, which was no other's.
    #[track_caller]
    fn assert_one_source(&mut self, began: Instant) {
        let uuid = self.fleet.uuid(self.source);
        for node in 0..NODES {
            // One that could not be asked may count in an epoch of before, for a moment.
            let is_there = |source: &Value| {
                let quorum = &source["quorum"];
                quorum["source"] == *uuid && quorum["counts"] == true && source["semi_sync"]["active"] == true
            };
            let quorum = self.fleet.nodes.daemon(node).wait_until(is_there, PATIENCE)["quorum"].clone();
            let epoch = quorum["epoch"].as_u64().expect("an epoch");
            let known = self.epochs.entry(epoch).or_insert_with(|| uuid.clone());
            assert_eq!(*known, uuid, "two sources in epoch {epoch}");
        }
        let counters = SemiSync::of(&self.fleet.servers[self.source]).counters();
        assert!(counters.on && counters.no_tx == 0, "{counters:?}");
        self.assert_no_two(began);
    }

    /// Whoever began to commit elsewhere after the first commit on the new source was told of nothing.
    #[track_caller]
    fn assert_no_two(&self, began: Instant) {
        let told = self.fleet.clients.told();
        let here = told.iter().filter(|told| told.server == self.source && told.began >= began);
        let Some(first) = here.map(|told| told.at).min() else { panic!("none is told") };
        let elsewhere: Vec<_> =
            told.iter().filter(|told| told.server != self.source && told.began > first).collect();
        assert!(elsewhere.is_empty(), "two sources at once: {elsewhere:?}\n{}", self.fleet.logs());
    }

    /// Everything that a client was told of is on the source.
    #[track_caller]
    fn assert_nothing_is_lost(&self) {
        let told = self.fleet.clients.told();
        let has = self.fleet.rows(self.source);
        let lost: Vec<_> = told.iter().filter(|told| !has.contains(&told.id)).collect();
        assert!(
            lost.is_empty(),
            "LOST, told to clients and not on server {}: {lost:?}\n{}",
            self.source,
            self.fleet.logs()
        );
    }

    /// A server becomes a replica of the source, or another one takes its place because it holds what nobody was told of.
    fn follows(&mut self, server: usize, is_old: bool, event: Event, said: Option<&str>) {
        let is_closed = is_old && event.of_source == OfSource::ReadOnly;
        let was_rival = !is_old && event.of_promoter == OfPromoter::Rivals;
        if is_old && !is_closed || was_rival {
            // It may have clients that wait for ever: they must not be told when semi-sync is switched off.
            if event.of_source != OfSource::Killed || event.unaware || was_rival {
                self.fleet.servers[server].kill();
            }
            self.fleet.comes_back_closed(server);
        }
        if !is_old {
            self.fleet.stop_replication(server);
        }
        let of_its_own = self.fleet.rows(server);
        let tail = of_its_own.difference(&self.fleet.rows(self.source)).count();
        if tail > 0 {
            println!("  server {server} has {tail} rows that nobody was told of: another takes its place");
            if is_old {
                let back = self.fleet.promote(event.at, server, &["--dry-run"]);
                assert!(!back.status.success(), "{}", text(&back.stdout));
            }
            self.fleet.rebuild(server, self.source);
            self.rebuilt += 1;
        } else if let Some(said) = said.filter(|_| is_old) {
            self.fleet.becomes_replica(server, said);
        } else {
            self.fleet.replicates(server, self.source);
        }
    }
}

/// The statements by which the old source becomes a replica, as promote says them.
fn statements_in(said: &str) -> Option<String> {
    let line = said.lines().find(|line| line.contains("CHANGE "))?;
    let (from, to) = (line.find("SET ")?, line.rfind("START ")?);
    let end = to + line[to..].find(';')?;
    Some(line[from..end].to_owned())
}

/// Rounds on machines of their own.
fn era(name: &'static str, events: impl IntoIterator<Item = Event>) {
    let Some(fleet) = Fleet::start(name) else { return };
    let mut era = Era { fleet, source: 0, epochs: BTreeMap::new(), rescues: 0, rebuilt: 0 };
    let mut rounds = 0;
    for event in events {
        rounds += 1;
        println!("{name}, round {rounds}, server {}: {event:?}", era.source);
        era.round(event);
    }
    let told = era.fleet.clients.told().len();
    println!(
        "{name}: {rounds} rounds, {told} commits told, none lost; {} epochs, {} servers rebuilt, {} rescues",
        era.epochs.len(),
        era.rebuilt,
        era.rescues
    );
    era.fleet.end();
}

fn chaos(name: &'static str) {
    let Ok(rounds) = std::env::var("BINLOGD_CHAOS_ROUNDS") else { return era(name, Event::found()) };
    let (mut seed, mut left) = (seed(), rounds.parse().expect("a number"));
    while left > 0 {
        let rounds = ERA_ROUNDS.min(left);
        println!("{name}: {rounds} rounds with BINLOGD_TEST_SEED={seed}");
        let mut random = Random::new(seed);
        era(name, (0..rounds).map(|_| Event::any(&mut random)));
        (seed, left) = (seed + 1, left - rounds);
    }
}

#[test]
fn mysql() {
    chaos("mysql-9.7");
}

#[test]
fn mariadb() {
    chaos("mariadb-11.8");
}
