//! A soak: real sources under load, and everything that can go wrong with the network, with binlogd and with the source,
//! at random, for as long as is asked. Whatever clients were told is in the copy at every look and at the end; then every
//! file equals the source's and `binlogd verify` finds nothing.
//!
//! `BINLOGD_SOAK_MINUTES` is how long (`make soak`: 2; without it a quarter of a minute). The time is cut into eras of at
//! most five minutes, each with a server, a copy and a seed of its own. Each prints its seed, and `BINLOGD_TEST_SEED`
//! plays the same events again, as far as time can be replayed.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::common::Server;
use crate::common::compare::{AfterCrash, assert_identical};
use crate::common::daemon::Daemon;
use crate::common::ledger::{self, Ledger, Manner, copied_entries};
use crate::common::proxy::{Direction, Ending, Fault, Proxy};
use crate::common::seed;
use crate::common::semi_sync::SemiSync;
use crate::common::torn::whole_events;
use crate::common::workload::Random;
use codec::ServerKind;

/// Longer than any era: a commit without acknowledgement hangs instead of passing for an acknowledged one.
const NEVER: Duration = Duration::from_secs(3_600);
const ERA_MAX: Duration = Duration::from_secs(300);
const SHORT: Duration = Duration::from_secs(15);
const WRITERS: usize = 5;
/// A load that lasts: some megabytes a minute.
const MANNER: Manner = Manner {
    pause: Duration::from_millis(20),
    bulk_pause: Duration::from_millis(1_500),
    endures: true,
    first: 0,
};
/// What was confirmed before a kill reaches its clients within this time.
const ANSWERS_ARRIVE_MAX: Duration = Duration::from_millis(300);
/// What was acknowledged stands in the journal at once, and in the file within this time however busy the machine is.
const WRITTEN_BEHIND_MAX: Duration = Duration::from_secs(20);
/// Longest wait for commits to be confirmed again after an event.
const PATIENCE: Duration = Duration::from_secs(60);
/// A source that hangs is killed; one that hangs so often in a row does not hang by chance.
const HANGS_MAX: u32 = 3;
/// What stands in a file of MariaDB's before its first transaction, in bytes, at most.
const FILE_BEGINNING_MAX: u64 = 1_000;
const SOURCE_OPTIONS: [&str; 1] = ["--max-binlog-size=1M"];
const FLAGS: [&str; 4] =
    ["--heartbeat-period=500ms", "--net-read-timeout=3s", "--backoff-min=50ms", "--backoff-max=500ms"];

/// How long to go on.
fn time() -> Duration {
    std::env::var("BINLOGD_SOAK_MINUTES").map_or(SHORT, |text| {
        Duration::from_secs_f64(60.0 * text.parse::<f64>().expect("BINLOGD_SOAK_MINUTES is a number"))
    })
}

/// What happens next.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// To the established connection.
    Break(Fault),
    /// Every attempt ends after so many bytes of the source, for so long.
    Refuse(u64, Ending, Duration),
    /// To every connection, for so long.
    Slow(Fault, Duration),
    /// SIGKILL for binlogd, and so long until it is started again.
    KillBinlogd(Duration),
    StopBinlogd,
    KillSource,
    StopSource,
    Rotate,
    /// Nothing happens.
    Quiet,
}

impl Event {
    fn any(random: &mut Random) -> Self {
        let ending = if random.below(2) == 0 { Ending::Close } else { Ending::Reset };
        let direction = if random.below(4) == 0 { Direction::ToSource } else { Direction::ToReceiver };
        let a_while = Duration::from_millis(200 + random.below(2_000));
        match random.below(20) {
            0..=4 => {
                let most = [4, 40, 5_000, 600_000][random.below(4) as usize];
                Event::Break(Fault::CutAfter { direction, bytes: random.below(most), ending })
            }
            5 | 6 => Event::Refuse(random.below(6_000), ending, a_while),
            7 => Event::Break(Fault::Silence(direction)),
            8 => Event::Break(Fault::Blackout),
            9 => Event::Slow(Fault::Latency(Duration::from_millis(5 + random.below(100))), a_while),
            10 => {
                let pause = Duration::from_millis(1 + random.below(20));
                Event::Slow(Fault::Drip { direction, bytes: 1 + random.below(500) as usize, pause }, a_while)
            }
            11 | 12 => Event::KillBinlogd(a_while / 2),
            13 => Event::StopBinlogd,
            14 => Event::KillSource,
            15 => Event::StopSource,
            16 | 17 => Event::Rotate,
            _ => Event::Quiet,
        }
    }
}

/// Cuts the newest log file of a killed MariaDB behind its last whole event. MySQL does it when it recovers. MariaDB leaves
/// half an event there, for which it refuses the file to every replica (error 1236): binlogd then begins a timeline
/// (`unreadable.rs`), and here all of it is to be one.
fn cut_torn_event(server: &Server) {
    let logs =
        std::fs::read_dir(server.datadir()).expect("the data folder").flatten().map(|entry| entry.path());
    let is_log = |path: &std::path::PathBuf| {
        path.extension()
            .is_some_and(|number| number.to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
            && path.file_stem().is_some_and(|stem| stem == "mysql-bin")
    };
    let newest = logs.filter(is_log).max().expect("a binary log");
    let bytes = std::fs::read(&newest).expect("the binary log");
    let end = whole_events(&bytes);
    if end < bytes.len() {
        println!("{}: cut behind its last whole event, {} of {} bytes", newest.display(), end, bytes.len());
        std::fs::File::options()
            .write(true)
            .open(&newest)
            .expect("the log")
            .set_len(end as u64)
            .expect("it is cut");
    }
}

/// One source, one binlogd, one load.
struct Era {
    name: &'static str,
    server: Server,
    proxy: Proxy,
    daemon: Daemon,
    ledger: Ledger,
    flags: Vec<&'static str>,
    source_kills: usize,
    /// Acknowledgements have reached the source in pieces, and no commit was confirmed since.
    acknowledged_in_pieces: bool,
    /// How often the source has hung since a commit was last confirmed.
    hangs: u32,
}

impl Era {
    fn start(name: &'static str, random: &mut Random) -> Self {
        let tls = ["--tls=disabled", "--tls=required"][random.below(2) as usize];
        let flags = [&FLAGS[..], &[tls]].concat();
        println!("{name}: {}", flags.join(" "));
        let server = Server::start(name, &SOURCE_OPTIONS);
        ledger::create_table(&server);
        let proxy = Proxy::before(&server);
        let daemon = Daemon::start_on(&proxy.url(), &flags);
        SemiSync::enable(&server, NEVER).wait_attached();
        let ledger = Ledger::start_in(&server, WRITERS, MANNER);
        Self {
            name,
            server,
            proxy,
            daemon,
            ledger,
            flags,
            source_kills: 0,
            acknowledged_in_pieces: false,
            hangs: 0,
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Break(fault) => {
                self.proxy.fault_present(fault);
                self.proceed();
            }
            Event::Refuse(bytes, ending, a_while) => {
                self.proxy.fault(Fault::CutAfter { direction: Direction::ToReceiver, bytes, ending });
                self.proxy.cut(ending);
                std::thread::sleep(a_while);
                self.proxy.fault(Fault::None);
                self.proceed();
            }
            Event::Slow(fault, a_while) => {
                self.proxy.fault(fault);
                std::thread::sleep(a_while);
                self.proxy.fault(Fault::None);
                self.acknowledged_in_pieces =
                    matches!(fault, Fault::Drip { direction: Direction::ToSource, .. });
            }
            Event::KillBinlogd(pause) => {
                self.daemon.kill();
                std::thread::sleep(pause);
                self.daemon.restart(&self.flags);
                self.assert_held("after binlogd was killed");
            }
            Event::StopBinlogd => {
                self.daemon.terminate();
                self.daemon.restart(&self.flags);
            }
            Event::KillSource => {
                self.server.kill();
                std::thread::sleep(ANSWERS_ARRIVE_MAX);
                // The moment that binlogd is there for: the source is gone, and nobody else knows what clients were told.
                self.assert_held("with the source gone");
                self.source_kills += 1;
                if self.server.kind() == ServerKind::MariaDb {
                    cut_torn_event(&self.server);
                }
                self.start_source();
            }
            Event::StopSource => {
                self.server.stop();
                self.start_source();
            }
            Event::Rotate => drop(self.server.sql("FLUSH BINARY LOGS")),
            Event::Quiet => std::thread::sleep(Duration::from_millis(500)),
        }
    }

    /// Starts the source again, in semi-sync from its first commit on.
    fn start_source(&mut self) {
        let role = if self.server.kind() == ServerKind::MariaDb { "master" } else { "source" };
        let enabled = format!("--rpl-semi-sync-{role}-enabled=1");
        let timeout = format!("--rpl-semi-sync-{role}-timeout={}", NEVER.as_millis());
        self.server.restart(&[&SOURCE_OPTIONS[..], &[enabled.as_str(), timeout.as_str()]].concat());
        self.proceed();
    }

    /// Waits until another commit is confirmed, and so acknowledged. A silence that nothing but a lifted fault ends (the way
    /// to the source alone: events and heartbeats still arrive) is lifted after the time in which any other is noticed.
    ///
    /// MariaDB sometimes takes connections after a quick change of them and sends nothing for ever, not even the first event:
    /// the end of the old dump and the thread that reads acknowledgements wait for each other (see `receive/session/attached.rs`).
    /// Its operator would kill it, and that is what happens to it here. And it loses an acknowledgement that reaches it in
    /// pieces more than a millisecond apart (`read_timeout` in its semisync_master_ack_receiver.cc; of 12 that dripped in by
    /// 5 to 13 bytes 9 were lost, none by MySQL): then nothing but another connection helps, for which it is cut.
    fn proceed(&mut self) {
        let before = self.ledger.committed().len();
        let began = Instant::now();
        while self.ledger.committed().len() <= before + WRITERS {
            if began.elapsed() > Duration::from_secs(5) {
                self.proxy.fault(Fault::None);
            }
            let is_mariadb = self.server.kind() == ServerKind::MariaDb;
            if is_mariadb && began.elapsed() > PATIENCE / 2 && self.daemon.source()["state"] != "receiving" {
                self.hangs += 1;
                assert!(
                    self.hangs <= HANGS_MAX,
                    "{}: the source hangs again and again\n{}",
                    self.name,
                    self.daemon.log()
                );
                println!("{}: the source hangs, and is killed", self.name);
                return self.happen(Event::KillSource);
            }
            if is_mariadb
                && began.elapsed() > PATIENCE / 2
                && std::mem::take(&mut self.acknowledged_in_pieces)
            {
                let positions = self.daemon.source()["positions"].clone();
                // After a rotation the beginning of the new file is there, which asks for none.
                let owed = positions["acknowledged"] != positions["durable"]
                    && positions["durable"]["position"].as_u64() > Some(FILE_BEGINNING_MAX);
                assert!(!owed, "binlogd owes an acknowledgement: {positions}");
                println!("{}: the source has lost an acknowledgement that came in pieces", self.name);
                self.proxy.cut(Ending::Reset);
            }
            assert!(
                began.elapsed() < PATIENCE,
                "{}: no commit is acknowledged\n{}",
                self.name,
                self.daemon.log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        (self.acknowledged_in_pieces, self.hangs) = (false, 0);
    }

    /// Everything that was confirmed until now is in the copy.
    #[track_caller]
    fn assert_held(&self, when: &str) {
        let committed: BTreeSet<u64> = self.ledger.committed();
        let began = Instant::now();
        loop {
            let copied = copied_entries(&self.daemon.timeline_dir());
            if committed.is_subset(&copied.ids) || began.elapsed() > WRITTEN_BEHIND_MAX {
                return copied.assert_holds(&committed, &self.daemon, when);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Ends the load and holds everything against everything.
    fn finish(self) {
        self.proxy.fault(Fault::None);
        let Self { name, server, mut daemon, ledger, source_kills, .. } = self;
        let committed = ledger.finish();
        daemon.wait_caught_up(&server);
        copied_entries(&daemon.timeline_dir()).assert_holds(&committed, &daemon, "at the end");
        let in_use = if server.kind() == ServerKind::MariaDb { source_kills } else { 0 };
        let after_crash = if in_use == 0 { AfterCrash::Identical } else { AfterCrash::InUseIn(in_use) };
        let files = assert_identical(&server, &daemon, after_crash);
        assert_eq!(daemon.timeline_dirs().len(), 1, "none of this begins a timeline\n{}", daemon.log());
        daemon.terminate();
        crate::common::verbs::verifies(&daemon.data_dir());
        println!(
            "{name}: {} commits confirmed, all in the copy; {} files equal",
            committed.len(),
            files.len()
        );
    }
}

fn soak(name: &'static str) {
    let until = Instant::now() + time();
    let mut seed = seed();
    while Instant::now() < until {
        println!("{name}: an era with BINLOGD_TEST_SEED={seed}");
        let mut random = Random::new(seed);
        let mut era = Era::start(name, &mut random);
        let began = Instant::now();
        while Instant::now() < until && began.elapsed() < ERA_MAX {
            let event = Event::any(&mut random);
            println!(
                "{name}: {:6.1} s, {} commits: {event:?}",
                began.elapsed().as_secs_f64(),
                era.ledger.committed().len()
            );
            era.happen(event);
            std::thread::sleep(Duration::from_millis(random.below(800)));
        }
        era.finish();
        seed += 1;
    }
}

#[test]
fn mysql() {
    soak("mysql-9.7");
}

#[test]
fn mariadb() {
    soak("mariadb-11.8");
}
