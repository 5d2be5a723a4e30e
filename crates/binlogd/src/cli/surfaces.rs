//! Each state of a source, made with what the threads of a daemon call, and asked over every surface that an operator has: all of them say
//! the level of the one judgement.

use super::health;
use super::status::rank::color;
use super::status::target::{Target, TargetArgs, get};
use super::style::paint;
use super::{status, top};
use ::status::{
    ArchiveFinding, ArchivePrune, ArchiveState, ArchiveStatus, ArchiveVerify, Counted, DaemonMonitor,
    Demanded, DiskHang, DiskSpace, DrillResult, DrillsStatus, Ladder, LastError, Level, Missing,
    NodeStanding, NodeStatus, PeerStatus, QuorumStatus, ReaderStatus, RecordedGap, SemiSyncLook,
    SemiSyncStatus, ServeStatus, Serving, SlotStatus, SourceFacts, SourceMonitor, SourceState, Stuck,
    TimelineStatus, Verified,
};
use admin::AdminServer;
use codec::Position;
use codec::gtid::{GtidSet, GtidState};
use config::{AckTimeoutAction, DiskWarn, FsyncMode};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use setup::doctor;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
const GIB: u64 = 1 << 30;

/// A daemon with one source of which all is well, before something happens to it.
struct Scene {
    daemon: Arc<DaemonMonitor>,
    source: Arc<SourceMonitor>,
    readers: Arc<Readers>,
}

#[derive(Default)]
struct Readers(Mutex<ServeStatus>);

impl Serving for Readers {
    fn status(&self, _: Timestamp) -> ServeStatus {
        self.0.lock().unwrap().clone()
    }
}

impl Scene {
    fn new() -> Scene {
        let daemon = Arc::new(DaemonMonitor::new(Path::new("/srv/binlogd-surfaces")));
        daemon.disk.set_warn(DiskWarn::Percent(10));
        let (source, readers) = (Arc::new(SourceMonitor::new("orders")), Arc::new(Readers::default()));
        daemon.add(source.clone());
        daemon.serves(readers.clone());
        let scene = Scene { daemon, source, readers };
        scene.disk(500, 0);
        scene.facts(|facts| {
            facts.semi_sync_wanted = true;
            facts.source_lacked = Some(gtids(""));
            facts.timelines = Arc::new([timeline(ago_days(1))]);
        });
        scene.to(SourceState::Connecting { host: "db1:3306".to_owned() });
        scene.to(SourceState::Receiving);
        scene.source.semi_sync_begins(semi_sync(true), true, false);
        let at = || Some(Position::new("mysql-bin.000042", 5_300));
        scene.source.publish_positions(&Ladder {
            received: at(),
            written: at(),
            durable: at(),
            acknowledged: at(),
        });
        scene.event(0);
        scene
    }

    fn to(&self, state: SourceState) {
        self.source.set_state(state);
    }

    fn facts(&self, change: impl FnOnce(&mut SourceFacts)) {
        self.source.update_facts(change);
    }

    /// So many GiB of 1000 are free, and so many are stored in ten minutes.
    fn disk(&self, free: u64, stored: u64) {
        for (seconds, stored) in [(0, 0), (600, stored)] {
            let space = DiskSpace { free: free * GIB, reserved: 0, size: 1000 * GIB };
            self.daemon.disk.observe(Duration::from_secs(seconds), space, stored * GIB);
        }
    }

    /// The newest event is so many seconds old.
    fn event(&self, seconds: i64) {
        self.source.publish_event_time(u32::try_from(Timestamp::now().as_second() - seconds).unwrap());
    }

    fn look(&self, change: impl FnOnce(&mut SemiSyncLook)) {
        let mut look = SemiSyncLook {
            at: Timestamp::now(),
            enabled: true,
            on: true,
            clients: 1,
            wait_sessions: Some(0),
            wait_for_replica_count: Some(1),
            ..SemiSyncLook::default()
        };
        change(&mut look);
        self.source.semi_sync_looked(UUID, Some(look), None);
    }

    fn archive(&self, change: impl FnOnce(&mut ArchiveStatus)) {
        self.source.archive.update(|archive| {
            archive.state = ArchiveState::Current;
            archive.complete_until = Some(Timestamp::now());
            change(archive);
        });
    }

    /// A drill so many days ago.
    fn drilled(&self, days: i64, passed: bool) {
        let at = ago_days(days);
        let result = DrillResult { started: at, finished: at, passed, ..DrillResult::default() };
        let last_passed = passed.then(|| result.clone());
        let drill =
            DrillsStatus { since: at, last_passed, list: Arc::new([result]), ..DrillsStatus::default() };
        self.archive(|archive| archive.drill = Some(drill));
    }

    fn peer(&self, change: impl FnOnce(&mut PeerStatus)) {
        let mut peer = PeerStatus { peer: "b:3307".to_owned(), ..PeerStatus::default() };
        change(&mut peer);
        self.facts(|facts| facts.peers = vec![peer]);
    }

    fn serve(&self, change: impl FnOnce(&mut ServeStatus)) {
        change(&mut self.readers.0.lock().unwrap());
    }

    fn slot(&self, change: impl FnOnce(&mut SlotStatus)) {
        let mut slot = SlotStatus {
            name: "etl".to_owned(),
            source: "orders".to_owned(),
            connected: true,
            ..SlotStatus::default()
        };
        change(&mut slot);
        self.serve(|serve| serve.slots = vec![slot]);
    }

    fn replicas(&self, alone: bool) {
        let (timeout, action) = (Duration::from_secs(10), AckTimeoutAction::GoOn);
        self.source.ack_replicas.demand(Demanded { wanted: 1, timeout, action });
        self.source.ack_replicas.publish(0, false, alone);
    }

    /// A node of three: what it may do itself, and what the others may.
    fn quorum(&self, own: NodeStanding, others: [NodeStanding; 2]) {
        let other = |(number, standing): (usize, &NodeStanding)| NodeStatus {
            address: format!("binlogd{}:3307", number + 2),
            heard: *standing != NodeStanding::Absent,
            counts: *standing == NodeStanding::Counting,
            standing: *standing,
            ..NodeStatus::default()
        };
        let status = QuorumStatus {
            nodes: 3,
            majority: 2,
            counts: own == NodeStanding::Counting,
            standing: own,
            epoch: 1,
            promised: 1,
            others: others.iter().enumerate().map(other).collect(),
            ..QuorumStatus::default()
        };
        self.source.is_node(move || status.clone());
    }

    fn lost(&self) {
        self.facts(|facts| facts.source_lacked = Some(gtids("4-9")));
    }
}

fn gtids(numbers: &str) -> GtidState {
    let set = if numbers.is_empty() { String::new() } else { format!("{UUID}:{numbers}") };
    GtidState::Mysql(set.parse::<GtidSet>().unwrap())
}

fn semi_sync(active: bool) -> SemiSyncStatus {
    SemiSyncStatus { active, reason: "negotiated".to_owned() }
}

fn ago_days(days: i64) -> Timestamp {
    Timestamp::now() - SignedDuration::from_hours(24 * days)
}

fn timeline(began: Timestamp) -> TimelineStatus {
    TimelineStatus { name: format!("0001-{UUID}"), began_at: began.to_string(), ..TimelineStatus::default() }
}

fn failed(days: i64) -> LastError {
    LastError { at: ago_days(days), message: "refused".to_owned() }
}

fn gap() -> Missing {
    let gap = RecordedGap {
        timeline: format!("0002-{UUID}"),
        began_at: String::new(),
        after: None,
        first_file: "mysql-bin.000007".to_owned(),
        missing: String::new(),
    };
    Missing { gtids: gtids("5-6"), gaps: vec![gap] }
}

fn verified(days: i64, findings: u64) -> Option<Verified> {
    Some(Verified { at: ago_days(days), findings })
}

fn backing_off(scene: &Scene, error: &str) {
    scene.to(SourceState::BackingOff { until: Timestamp::now(), error: error.to_owned() });
}

/// What the doctor says of the same, where it looks at it.
type Doctor = Option<fn() -> doctor::Finding>;
/// A state by its name, the level that all of it has, whether `binlogd health` is content, and how it comes to be.
type State = (&'static str, Level, bool, fn(&Scene), Doctor);

use Level::{Critical, Notice, Ok as Fine, Warning};
use NodeStanding::Counting as COUNTS;

const STATES: &[State] = &[
    ("as it should be", Fine, true, |_| {}, None),
    ("a little behind", Fine, true, |it| it.event(50), None),
    ("behind", Warning, true, |it| it.event(7_200), None),
    (
        "a mirror of a binlogd, behind",
        Warning,
        true,
        |it| {
            it.facts(|facts| facts.server_version = Some("9.7.0-binlogd".to_owned()));
            it.event(600);
        },
        None,
    ),
    ("the source's clock is ahead", Fine, true, |it| it.event(-3_600), None),
    ("our clock was set back", Fine, true, |it| it.facts(|facts| facts.verified = verified(-3, 0)), None),
    (
        "a gap",
        Warning,
        true,
        |it| it.facts(|facts| facts.missing = gap()),
        Some(|| doctor::gaps::examine(None, "b.7", "")),
    ),
    (
        "a fork: the source lacks something",
        Critical,
        true,
        Scene::lost,
        Some(|| doctor::held::examine(&gtids("4-9"), false)),
    ),
    (
        "it has again what it lacked",
        Fine,
        true,
        |it| {
            it.lost();
            it.facts(|facts| facts.source_lacked = Some(gtids("")));
        },
        None,
    ),
    (
        "GTIDs given twice",
        Critical,
        true,
        |it| it.facts(|facts| facts.given_twice = Some((1, gtids("4")))),
        Some(|| doctor::forks::examine(1, "u:4").unwrap()),
    ),
    (
        "a peer alone holds something",
        Critical,
        true,
        |it| it.peer(|peer| peer.only_there = "u:1".to_owned()),
        None,
    ),
    (
        "a peer cannot be used",
        Warning,
        true,
        |it| it.peer(|peer| peer.error = Some(failed(0))),
        Some(|| doctor::peers::examine(&doctor::peers::Peer::Unusable("refused".to_owned())).remove(0)),
    ),
    ("peers that were not asked", Fine, true, |it| it.peer(|_| {}), None),
    ("the source gave up waiting", Critical, true, |it| it.look(|look| look.on = false), None),
    ("semi-sync was lost", Critical, true, |it| it.look(|look| look.enabled = false), None),
    (
        "no semi-sync, as configured",
        Notice,
        true,
        |it| {
            it.facts(|facts| facts.semi_sync_wanted = false);
            it.source.semi_sync_begins(semi_sync(false), false, false);
        },
        None,
    ),
    (
        "wait count 2 and one receiver",
        Critical,
        false,
        |it| it.look(|look| look.wait_for_replica_count = Some(2)),
        None,
    ),
    (
        "commits untold",
        Critical,
        true,
        |it| {
            it.source.semi_sync_was_counted(Counted {
                server: UUID.to_owned(),
                no_tx: 2,
                yes_tx: 9,
                at: ago_days(0),
            });
            it.look(|look| look.yes_tx = 9);
            it.look(|look| (look.yes_tx, look.no_tx) = (9, 5));
        },
        None,
    ),
    (
        "commits untold while away",
        Warning,
        true,
        |it| {
            it.source.semi_sync_was_counted(Counted {
                server: UUID.to_owned(),
                no_tx: 2,
                yes_tx: 9,
                at: ago_days(1),
            });
            it.look(|look| (look.yes_tx, look.no_tx) = (9, 5));
            it.look(|look| (look.yes_tx, look.no_tx) = (9, 5));
        },
        None,
    ),
    ("unasked transactions", Critical, true, |it| it.source.semi_sync_unasked(3, None), None),
    ("a quorum", Fine, true, |it| it.quorum(COUNTS, [COUNTS, COUNTS]), None),
    (
        "a node is absent",
        Warning,
        true,
        |it| it.quorum(COUNTS, [COUNTS, NodeStanding::Absent]),
        Some(|| {
            let away = doctor::nodes::Node::Away("refused".to_owned());
            doctor::nodes::examine(None, &[("b:3307".to_owned(), away)]).remove(0)
        }),
    ),
    ("this node is fenced", Warning, true, |it| it.quorum(NodeStanding::Fenced, [COUNTS, COUNTS]), None),
    (
        "the quorum is lost",
        Critical,
        true,
        |it| it.quorum(COUNTS, [NodeStanding::Absent, NodeStanding::Blank]),
        None,
    ),
    (
        "the quorum has not begun",
        Critical,
        true,
        |it| it.quorum(NodeStanding::Blank, [NodeStanding::Blank, NodeStanding::Absent]),
        None,
    ),
    ("receivers that confirm", Fine, true, |it| it.replicas(false), None),
    ("alone", Warning, true, |it| it.replicas(true), None),
    (
        "not synced, as configured",
        Notice,
        true,
        |it| it.source.set_fsync_mode(FsyncMode::WriteThenAcknowledge),
        None,
    ),
    (
        "the source cannot be asked",
        Notice,
        true,
        |it| it.facts(|facts| facts.look_error = Some(failed(0))),
        None,
    ),
    (
        "the source cannot be asked for a day",
        Warning,
        true,
        |it| it.facts(|facts| facts.look_error = Some(failed(1))),
        None,
    ),
    ("damage found by verify", Critical, true, |it| it.facts(|facts| facts.verified = verified(1, 2)), None),
    ("a young copy, never verified", Fine, true, |_| {}, None),
    (
        "a copy that was never verified",
        Warning,
        true,
        |it| it.facts(|facts| facts.timelines = Arc::new([timeline(ago_days(20))])),
        None,
    ),
    ("verified long ago", Warning, true, |it| it.facts(|facts| facts.verified = verified(16, 0)), None),
    ("a rival", Warning, true, |it| it.facts(|facts| facts.rival = Some("another".to_owned())), None),
    (
        "two hosts are writable",
        Warning,
        true,
        |it| it.facts(|facts| facts.hosts_in_doubt = Some("clients can write to both".to_owned())),
        None,
    ),
    ("no index can be made", Warning, true, |it| it.source.search_index_failed.set(1), None),
    ("an index is missing", Fine, true, |it| it.source.search_index_missing.set(1), None),
    (
        "the certificate ends in a week",
        Warning,
        true,
        |it| it.facts(|facts| facts.certificate_expires = Some(ago_days(-7))),
        None,
    ),
    (
        "the certificate has ended",
        Critical,
        true,
        |it| it.facts(|facts| facts.certificate_expires = Some(ago_days(1))),
        None,
    ),
    (
        "the certificate of the port ends",
        Warning,
        true,
        |it| it.serve(|serve| serve.tls_certificate_expires = Some(ago_days(-7))),
        None,
    ),
    ("the archive is kept up", Fine, true, |it| it.archive(|_| {}), None),
    (
        "the archive is late",
        Warning,
        true,
        |it| it.archive(|archive| archive.complete_until = Some(ago_days(1))),
        None,
    ),
    (
        "the archive fails",
        Warning,
        true,
        |it| {
            it.archive(|archive| {
                (archive.state, archive.error) = (ArchiveState::Failing, Some(failed(0)));
            })
        },
        None,
    ),
    (
        "the archive begins and fails",
        Warning,
        true,
        |it| {
            it.archive(|archive| {
                (archive.complete_until, archive.error) = (None, Some(failed(0)));
            })
        },
        None,
    ),
    (
        "the archive was put back",
        Critical,
        false,
        |it| {
            it.archive(|archive| {
                (archive.state, archive.error) = (ArchiveState::Older, Some(failed(0)));
            })
        },
        None,
    ),
    (
        "the archive is damaged",
        Critical,
        true,
        |it| {
            it.archive(|archive| {
                let finding = ArchiveFinding { text: "missing".to_owned(), ..ArchiveFinding::default() };
                archive.verify = Some(ArchiveVerify {
                    findings: 1,
                    first_findings: vec![finding],
                    ..ArchiveVerify::default()
                });
            })
        },
        None,
    ),
    (
        "the archive cannot be verified",
        Notice,
        true,
        |it| {
            it.archive(|archive| {
                archive.verify = Some(ArchiveVerify { error: Some(failed(0)), ..ArchiveVerify::default() });
            })
        },
        None,
    ),
    (
        "backups are not pruned",
        Notice,
        true,
        |it| {
            it.archive(|archive| {
                archive.prune = Some(ArchivePrune { error: Some(failed(0)), ..ArchivePrune::default() });
            })
        },
        None,
    ),
    ("a drill has passed", Fine, true, |it| it.drilled(0, true), None),
    ("a drill has failed", Warning, true, |it| it.drilled(0, false), None),
    ("no drill has passed for long", Warning, true, |it| it.drilled(3, true), None),
    (
        "no verification of the archive comes to its end",
        Warning,
        true,
        |it| {
            it.archive(|archive| {
                archive.verify = Some(ArchiveVerify { due: Some(ago_days(4)), ..ArchiveVerify::default() });
            })
        },
        None,
    ),
    ("old files stay", Notice, true, |it| it.archive(|archive| archive.kept = Some(failed(0))), None),
    (
        "the disk is low",
        Warning,
        true,
        |it| it.disk(90, 0),
        Some(|| doctor::disk::examine("/d", 90 * GIB, 1000 * GIB, Some(100 * GIB))),
    ),
    ("the disk lasts a day", Warning, true, |it| it.disk(500, 4), None),
    ("the disk lasts for hours", Critical, true, |it| it.disk(500, 40), None),
    ("the disk is not measured", Warning, true, |it| it.daemon.disk.forget(), None),
    (
        "the disk is full",
        Critical,
        false,
        |it| it.to(SourceState::WaitingForSpace { error: "no space".to_owned() }),
        Some(|| doctor::disk::examine("/d", 0, 1000 * GIB, None)),
    ),
    (
        "another attempt on a full disk",
        Critical,
        false,
        |it| {
            it.to(SourceState::WaitingForSpace { error: "no space".to_owned() });
            it.to(SourceState::Recovering);
        },
        None,
    ),
    (
        "the disk hangs",
        Critical,
        false,
        |it| {
            it.source
                .set_disk_hang(Some(DiskHang { operation: "fdatasync".to_owned(), since: Instant::now() }));
        },
        None,
    ),
    (
        "stuck",
        Critical,
        false,
        |it| it.source.set_stuck(Some(Stuck { what: "recv".to_owned(), is_for_good: false })),
        None,
    ),
    ("starting", Notice, false, |it| it.to(SourceState::Starting), None),
    ("recovering", Notice, false, |it| it.to(SourceState::Recovering), None),
    (
        "the first connection",
        Notice,
        false,
        |it| it.to(SourceState::Connecting { host: "db1:3306".to_owned() }),
        None,
    ),
    ("not reached", Critical, false, |it| backing_off(it, "refused"), None),
    (
        "not reached, tried again",
        Critical,
        false,
        |it| {
            backing_off(it, "refused");
            it.to(SourceState::Connecting { host: "db1:3306".to_owned() });
        },
        None,
    ),
    ("a successor that is read-only", Critical, false, |it| backing_off(it, "the server is read-only"), None),
    (
        "withheld",
        Critical,
        false,
        |it| {
            it.lost();
            it.to(SourceState::Withholding);
        },
        None,
    ),
    (
        "waiting for receivers",
        Critical,
        false,
        |it| {
            it.replicas(false);
            it.to(SourceState::WaitingForReplicas);
        },
        None,
    ),
    (
        "the copy begins from the archive",
        Notice,
        false,
        |it| it.to(SourceState::BeginningFromArchive { what: "asks".to_owned() }),
        None,
    ),
    (
        "the archive cannot be read at the beginning",
        Critical,
        false,
        |it| it.to(SourceState::WaitingForArchive { error: "503".to_owned() }),
        None,
    ),
    (
        "paused by an operator",
        Critical,
        false,
        |it| it.to(SourceState::stopped_by_operator("by root; START REPLICA starts it again".to_owned())),
        None,
    ),
    ("stopped by an error", Critical, false, |it| it.to(SourceState::stopped("a gap".to_owned())), None),
    ("the daemon ends", Notice, false, |it| it.to(SourceState::ended()), None),
    ("a reader that reads", Fine, true, |it| it.slot(|_| {}), None),
    (
        "a reader is gone",
        Warning,
        true,
        |it| it.slot(|slot| (slot.connected, slot.away_seconds) = (false, 70)),
        None,
    ),
    (
        "a slot was released",
        Warning,
        true,
        |it| it.slot(|slot| slot.released = Some("slot_max_bytes".to_owned())),
        None,
    ),
    ("a slot is behind", Warning, true, |it| it.slot(|slot| slot.behind_seconds = Some(4_000)), None),
    (
        "a reader is behind",
        Warning,
        true,
        |it| {
            it.serve(|serve| {
                serve.readers = vec![ReaderStatus { behind_seconds: Some(301), ..ReaderStatus::default() }];
            })
        },
        None,
    ),
];

/// What a page has at an element: the class of the first sign of a level in it.
fn sign_at(page: &str, id: &str) -> String {
    let from = page.split_once(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("no {id} in {page}")).1;
    let sign = from.split_once("class=\"sign ").unwrap_or_else(|| panic!("no sign in {from}")).1;
    sign.split('"').next().unwrap().to_owned()
}

fn metric(text: &str, series: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in {text}")).parse().unwrap()
}

fn page(address: &str, path: &str) -> String {
    let agent = ureq::Agent::new_with_defaults();
    let mut answer =
        agent.get(format!("http://{address}{path}")).header("Accept", "text/html").call().unwrap();
    answer.body_mut().read_to_string().unwrap()
}

#[test]
fn every_surface_says_the_level_of_the_one_judgement() {
    assert!(STATES.len() >= 40);
    for (name, level, healthy, happens, doctor) in STATES {
        let scene = Scene::new();
        happens(&scene);
        let server = AdminServer::start("127.0.0.1:0".parse().unwrap(), scene.daemon.clone()).unwrap();
        let address = server.local_addr().to_string();
        let target =
            Target::of(&TargetArgs { admin: Some(address.clone()), ..TargetArgs::default() }).unwrap();
        let text = |path: &str| get(&address, path, None).unwrap().body_mut().read_to_string().unwrap();
        let json: Value = serde_json::from_str(&text("/status")).unwrap();
        let own = &json["sources"][0]["verdict"];
        assert_eq!(json["verdict"]["level"], level.word(), "{name}: {:#} {own:#}", json["verdict"]);
        let of_source = own["level"].as_str().unwrap();
        // The page, with all sources and with one.
        let overview = page(&address, "/");
        assert_eq!(sign_at(&overview, "headline"), level.word(), "{name}");
        assert_eq!(sign_at(&overview, "s-orders"), of_source, "{name}");
        assert_eq!(sign_at(&page(&address, "/source/orders"), "headline"), of_source, "{name}");
        // What the clients make of the same answer.
        let all = target.ask().unwrap();
        let source = all.sources[0].verdict.level;
        assert_eq!(source.word(), of_source, "{name}");
        let (full, summary) = (status::shown(all.clone(), true), status::shown(all.clone(), false));
        let state = |text: &str| paint(text, color(source), true);
        let word = all.sources[0].state.word();
        assert!(full.contains(&state(word)), "{name}: {full}");
        assert!(summary.contains(&state(word)), "{name}: {summary}");
        let shown = top::verdict_of(&all);
        let expected = match level {
            Level::Ok => "SAFE",
            Level::Notice | Level::Warning => "LOOK",
            Level::Critical => "ACT",
        };
        assert_eq!(shown.0, expected, "{name}: {}", shown.1);
        for problem in all.sources[0].verdict.problems.iter().chain(&all.verdict.problems) {
            assert!(shown.1.contains(&problem.text), "{name}: {} is not in {}", problem.text, shown.1);
            assert!(!problem.kind.is_empty(), "{name}: {problem:?}");
        }
        // What is asked by programs.
        assert_eq!(json["verdict"]["healthy"], *healthy, "{name}");
        assert_eq!(all.is_healthy(), *healthy, "{name}");
        match health::ask(&target) {
            Ok(said) => assert!(*healthy && said == level.word(), "{name}: {said}"),
            Err(why) => assert!(!healthy && why.starts_with("orders: "), "{name}: {why}"),
        }
        let metrics = text("/metrics");
        assert_eq!(metric(&metrics, "binlogd_level"), *level as u64, "{name}");
        assert_eq!(metric(&metrics, "binlogd_source_level{source=\"orders\"}"), source as u64, "{name}");
        if let Some(doctor) = doctor {
            let found = doctor();
            let expected = match level {
                Level::Ok | Level::Notice => doctor::Level::Ok,
                Level::Warning => doctor::Level::Warning,
                Level::Critical => doctor::Level::Error,
            };
            assert_eq!(found.level, expected, "{name}: {found:?}");
        }
    }
}
