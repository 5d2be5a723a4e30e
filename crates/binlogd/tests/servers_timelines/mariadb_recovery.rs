//! A MariaDB that recovers as a semi-sync replica (`init_rpl_role = SLAVE`) cuts from its own binary log what its engine had
//! not committed durably, also what was acknowledged and told to clients (MDEV-21117, MDEV-33465). Killed under load it loses such
//! transactions at its own start, and the copy has them: a fork as any, by name, handed back by rescue.
//!
//! `BINLOGD_KILL_ROUNDS` is the number of kills (3; `make kill-loop`: 20). `BINLOGD_TEST_SEED` replays their moments.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::common::daemon::Daemon;
use crate::common::fork_scene::{FLAGS, PATIENCE, rescue, semi_sync_options};
use crate::common::ledger::{self, Ledger, Manner, copied_entries};
use crate::common::semi_sync::SemiSync;
use crate::common::workload::Random;
use crate::common::{Server, seed};

const WRITERS: usize = 6;
const ROLE: [&str; 2] = ["--init-rpl-role=SLAVE", "--rpl-semi-sync-master-wait-point=AFTER_SYNC"];

/// What every timeline of the copy holds together.
fn held(daemon: &Daemon) -> BTreeSet<u64> {
    daemon.timeline_dirs().iter().flat_map(|timeline| copied_entries(timeline).ids).collect()
}

fn rows(server: &Server) -> BTreeSet<u64> {
    server.sql("SELECT id FROM ledger.entry").lines().map(|id| id.parse().expect("a number")).collect()
}

/// One kill and one start. How many transactions that clients were told of the server had cut off.
fn round(server: &mut Server, daemon: &Daemon, first: u64, uptime: Duration) -> usize {
    SemiSync::of(server).wait_attached();
    let ledger = Ledger::start_in(server, WRITERS, Manner { first, ..Manner::default() });
    ledger.wait_for(20);
    std::thread::sleep(uptime);
    let timelines = daemon.timeline_dirs().len();
    server.kill();
    let told = ledger.of_a_dead_server();
    let semi_sync = semi_sync_options("mariadb");
    let options = [&ROLE[..], &[&*semi_sync[0], &*semi_sync[1], "--read-only=1"]].concat();
    server.restart(&options);
    let lost: Vec<u64> = told.difference(&rows(server)).copied().collect();
    SemiSync::of(server).wait_attached();
    // Withheld where something is lacking, as configured; else received.
    let arrived = ["withholding acknowledgements", "receiving"];
    let source = daemon.wait_until(
        |source| {
            arrived.iter().any(|state| source["state"] == *state)
                && (lost.is_empty() || source["source_lacks"].as_str().is_some_and(|lacks| !lacks.is_empty()))
        },
        PATIENCE,
    );
    // Of these there may be some of which no client was told. Left lacking, the server would give their GTIDs to others.
    let lacks = source["source_lacks"] != "";
    let missing: Vec<_> = told.difference(&held(daemon)).copied().collect();
    assert!(missing.is_empty(), "LOST, acknowledged and not in the copy: {missing:?}\n{}", daemon.log());
    if lacks {
        assert_eq!(daemon.timeline_dirs().len(), timelines + 1, "{source:#}");
        assert_eq!(source["verdict"]["level"], "critical", "{source:#}");
        let (code, text) = rescue(daemon, server);
        assert_eq!(code, Some(0), "{text}\n{}", daemon.log());
        let left: Vec<_> = told.difference(&rows(server)).copied().collect();
        assert!(left.is_empty(), "not handed back: {left:?}\n{text}");
        daemon.wait_until(|source| source["state"] == "receiving" && source["source_lacks"] == "", PATIENCE);
    }
    server.sql("SET GLOBAL read_only = 0");
    println!("the server lacked {} of the copy at its start", if lacks { "transactions" } else { "nothing" });
    lost.len()
}

fn cuts_its_own_log(name: &str, on_fork: &str, rounds: u64) {
    let mut random = Random::new(seed());
    let mut server = Server::start(name, &ROLE);
    ledger::create_table(&server);
    let daemon = Daemon::start(&server, &[&FLAGS[..], &["--on-fork", on_fork]].concat());
    daemon.wait_caught_up(&server);
    SemiSync::enable(&server, Duration::from_secs(600));
    let mut lost = 0;
    for number in 0..rounds {
        let uptime = Duration::from_millis(random.below(700));
        let cut = round(&mut server, &daemon, number * 1_000_000, uptime);
        println!(
            "{name}, on_fork = {on_fork:?}, round {number}: killed after {uptime:?}, {cut} told and cut off"
        );
        lost += cut;
    }
    println!("{name}: {lost} transactions in {rounds} rounds were cut off and handed back");
}

#[test]
fn what_mariadb_cuts_off_at_its_own_start_is_kept_and_handed_back() {
    let rounds = std::env::var("BINLOGD_KILL_ROUNDS");
    let rounds: u64 = rounds.map_or(3, |text| text.parse().expect("BINLOGD_KILL_ROUNDS is a number"));
    cuts_its_own_log("mariadb-11.8", "follow", rounds.div_ceil(2));
    cuts_its_own_log("mariadb-10.11", "withhold", rounds / 2);
}
