//! Another binlogd of the source that sends too little, too slowly, or what cannot be joined: a source is lost, and its successor is
//! followed.

use crate::common::archive::{source_lacks, transactions};
use crate::common::daemon::Daemon;
use crate::common::proxy::{Direction, Ending, Fault, Proxy};
use codec::ServerKind;
use codec::gtid::{GtidState, Uuid};
use scripted_source::{LogOptions, Script, ScriptedSource, SemiSync, SourceLog};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Longest wait for anything: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// What the source has sent.
const SENT: u64 = 5;

/// A receiver of a source that has a successor, and a peer behind a proxy.
struct Scene {
    source: ScriptedSource,
    successor: ScriptedSource,
    peer: ScriptedSource,
    way: Proxy,
    daemon: Daemon,
}

fn address(source: &ScriptedSource) -> SocketAddr {
    ([127, 0, 0, 1], source.port()).into()
}

fn scripted(log: SourceLog) -> Script {
    Script { semi_sync: SemiSync::Absent, ..Script::new(log) }
}

/// What a binlogd that holds this log as its first timeline says of that.
fn extent(log: &SourceLog) -> String {
    let made = |file: &[u8]| u32::from_le_bytes(file[4..8].try_into().expect("four bytes"));
    let (files, uuid) = (log.files(), Uuid::from_bytes(log.options().uuid));
    let (first, last) = (&files[0], &files[files.len() - 1]);
    let (first_made, last_made) = (made(&first.bytes), made(&last.bytes));
    format!("0001-{uuid}\t{}\t{first_made}\t{}\t{last_made}\t{}\n", first.name, last.name, last.bytes.len())
}

impl Scene {
    /// `more` is what the peer has beside what the source has sent.
    fn new(more: impl FnOnce(&mut SourceLog)) -> Scene {
        let mut log = SourceLog::default();
        for _ in 0..SENT {
            log.transaction(300);
        }
        let mut of_peer = log.clone();
        more(&mut of_peer);
        Scene::of(log, of_peer)
    }

    fn of(log: SourceLog, of_peer: SourceLog) -> Scene {
        Scene::with(log, scripted(of_peer))
    }

    fn with(log: SourceLog, mut peer: Script) -> Scene {
        peer.variables.insert("binlogd_timelines".to_owned(), extent(&peer.log));
        let options =
            LogOptions { uuid: [0xcd; 16], server_id: 2, base_name: "b".to_owned(), ..LogOptions::default() };
        let mut successor = SourceLog::copied(options, log.executed_set());
        successor.transaction(10);
        let start = |script| ScriptedSource::start(script).expect("a free port");
        let (source, successor, peer) = (start(scripted(log)), start(scripted(successor)), start(peer));
        let way = Proxy::start(address(&peer));
        let peers = way.address().to_string();
        let flags = [
            "--backoff-min=10ms",
            "--backoff-max=50ms",
            "--heartbeat-period=500ms",
            "--net-read-timeout=3s",
            "--tls=disabled",
            "--peers",
            &peers,
        ];
        let url = format!("mysql://any@{},{}", address(&source), address(&successor));
        let daemon = Daemon::start_on(&url, &flags);
        let end = source.log(SourceLog::end);
        let has_all = |status: &Value| status["positions"]["durable"]["position"] == end.position;
        daemon.wait_until(has_all, PATIENCE);
        Scene { source, successor, peer, way, daemon }
    }

    /// Loses the source, and waits for the successor.
    fn fail_over(self) -> (Daemon, Proxy, [ScriptedSource; 2]) {
        let successor = address(&self.successor).to_string();
        drop(self.source);
        let follows = |status: &Value| status["state"] == "receiving" && status["host"] == *successor;
        self.daemon.wait_until(follows, PATIENCE);
        (self.daemon, self.way, [self.successor, self.peer])
    }
}

#[test]
fn what_came_before_a_peer_broke_off_is_missed_on_the_successor() {
    let scene = Scene::new(|log| (0..30).for_each(|_| log.transaction(100_000)));
    let cut = Fault::CutAfter { direction: Direction::ToReceiver, bytes: 500_000, ending: Ending::Reset };
    scene.way.fault(cut);
    let (daemon, _way, _servers) = scene.fail_over();
    let timelines = daemon.timeline_dirs();
    let held = transactions(&timelines[0]).len() as u64;
    assert!(held > SENT, "the scene is none: nothing was fetched\n{}", daemon.log());
    let uuid = Uuid::from_bytes(LogOptions::default().uuid);
    let lacked = GtidState::parse(ServerKind::MySql, &format!("{uuid}:{}-{held}", SENT + 1)).unwrap();
    assert_eq!(source_lacks(&timelines[1], ServerKind::MySql), lacked, "{}", daemon.log());
}

#[test]
fn a_slow_peer_does_not_hold_a_failover_up() {
    let scene = Scene::new(|log| log.transaction(3_000_000));
    let drip =
        Fault::Drip { direction: Direction::ToReceiver, bytes: 2_000, pause: Duration::from_millis(50) };
    scene.way.fault(drip);
    let began = Instant::now();
    let (daemon, _way, _servers) = scene.fail_over();
    let took = began.elapsed();
    assert!(took < Duration::from_secs(15), "{took:?}\n{}", daemon.log());
    daemon.wait_log("the timeline ends, and not everything could be had from", PATIENCE);
    assert_eq!(transactions(&daemon.timeline_dirs()[0]).len() as u64, SENT);
}

/// The same server, the same file, the same places: only the transactions differ.
#[test]
fn a_fork_is_told_where_the_last_transaction_is_long() {
    let log = |microseconds, count: u64| {
        let mut log = SourceLog::new(LogOptions { microseconds, ..LogOptions::default() });
        (0..count).for_each(|_| log.transaction(400_000));
        log
    };
    let (daemon, _way, _servers) = Scene::of(log(0, SENT), log(1, SENT + 2)).fail_over();
    assert_eq!(transactions(&daemon.timeline_dirs()[0]).len() as u64, SENT, "{}", daemon.log());
    daemon.wait_log("its logs are not those of this copy", PATIENCE);
}

#[test]
fn what_a_peer_holds_and_cannot_be_joined_is_told() {
    let scene = Scene::new(|log| {
        log.rotate();
        log.rotate();
        (0..3).for_each(|_| log.transaction(300));
        log.purge(2);
    });
    let (daemon, _way, _servers) = scene.fail_over();
    daemon.wait_log("the timeline ends, and not everything could be had from", PATIENCE);
    let only_there = |status: &Value| status["peers"][0]["only_there_transactions"] == 3;
    let status = daemon.wait_until(only_there, PATIENCE);
    let gtids = status["peers"][0]["only_there"].as_str().unwrap_or_default().to_owned();
    assert!(gtids.ends_with(&format!(":{}-{}", SENT + 1, SENT + 3)), "{gtids}");
}

/// It is no source, so that nothing is acknowledged to it: packets with the bytes of semi-sync, which nobody offered, are no events.
#[test]
fn a_peer_that_asks_for_acknowledgements_is_not_understood() {
    let mut log = SourceLog::default();
    (0..SENT).for_each(|_| log.transaction(300));
    let mut of_peer = log.clone();
    (0..3).for_each(|_| of_peer.transaction(300));
    let peer = Script { semi_sync: SemiSync::Unasked, ..Script::new(of_peer) };
    let (daemon, _way, _servers) = Scene::with(log, peer).fail_over();
    daemon.wait_log("the timeline ends, and not everything could be had from", PATIENCE);
    assert_eq!(transactions(&daemon.timeline_dirs()[0]).len() as u64, SENT, "{}", daemon.log());
}
