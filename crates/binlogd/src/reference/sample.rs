//! A daemon in which everything is there that can be: a source that was through a failover and a gap, a peer, a receiver
//! further down, a reader and a slot. A metric or an object that is missing here is missing on the pages, and a test says so.

use admin;
use codec::Position;
use codec::gtid::{GtidSet, GtidState, Uuid};
use config::{AckTimeoutAction, DiskWarn};
use jiff::Timestamp;
use quorum::{Held, Promise, Reply};
use setup::promote::{AbsentNode, LostTail, PromoteAnswer, RepointedHost};
use status::{
    ArchiveFinding, ArchivePrune, ArchiveState, ArchiveVerify, BackupStatus, BackupsStatus, Counted,
    DaemonMonitor, Demanded, DiskSpace, DrillResult, DrillStep, DrillsStatus, DurableAnswer, Event, Ladder,
    LastError, Level, Missing, NodeStanding, NodeStatus, PeerStatus, PreviousTimeline, QuorumAnswer,
    QuorumStatus, ReaderStatus, Recent, RecordedGap, Regained, SemiSyncLook, SemiSyncStatus, ServeCounters,
    ServeStatus, Serving, SlotStatus, SourceMonitor, SourceState, TimelineStatus, Verified,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
const GIB: u64 = 1 << 30;

/// 2026-11-23 06:30:00 UTC and some seconds.
fn at(seconds: i64) -> Timestamp {
    Timestamp::constant(1_795_415_400, 0) + Duration::from_secs(seconds.unsigned_abs())
}

fn place(offset: u64) -> Option<Position> {
    Some(Position::new("mysql-bin.000042", offset))
}

fn gtids(numbers: &str) -> GtidState {
    GtidState::Mysql(format!("{UUID}:{numbers}").parse::<GtidSet>().expect("a GTID set"))
}

/// The metrics of the sample.
pub(super) fn metrics() -> String {
    admin::metrics_text(&daemon(), at(1)).expect("writing to a text does not fail")
}

/// The status of the sample.
pub(super) fn status() -> String {
    let mut status = daemon().status(at(1));
    // What differs from run to run.
    status.binlogd_version = "x.y.z".to_owned();
    (status.pid, status.uptime_seconds) = (Some(4711), Some(86_400));
    for receiver in &mut status.notify {
        receiver.reached_at = Some(at(0));
        receiver.last_error = receiver.last_error.take().map(|error| LastError { at: at(0), ..error });
    }
    for source in &mut status.sources {
        source.last_error = source.last_error.take().map(|error| LastError { at: at(0), ..error });
        source.unasked_transactions.since = Some(at(0));
        source.recent = Some(Recent {
            at: at(0),
            transactions_per_second: 1_200.0,
            bytes_per_second: 900_000.0,
            acknowledge_p50_us: Some(230.0),
            acknowledge_p99_us: Some(640.0),
            sync_p50_us: Some(180.0),
            sync_p99_us: Some(520.0),
        });
        if let Some(look) = &mut source.semi_sync_source {
            look.waiting_since = Some(at(0)); // Two looks tell it.
        }
        source.events = vec![event()];
    }
    status.events = vec![event()];
    serde_json::to_string_pretty(&status).expect("a status is plain data")
}

fn quorum() -> QuorumStatus {
    let other = |address: &str, standing| NodeStatus {
        address: address.to_owned(),
        heard: standing == NodeStanding::Counting,
        error: Some("nothing was heard for 3s".to_owned()),
        counts: standing == NodeStanding::Counting,
        standing,
        epoch: 3,
        promised: 3,
        durable: place(5_120),
        behind_bytes: Some(180),
    };
    QuorumStatus {
        node: Some(UUID.to_owned()),
        nodes: 3,
        majority: 2,
        counts: true,
        standing: NodeStanding::Counting,
        epoch: 3,
        promised: 3,
        source: Some(UUID.to_owned()),
        others: vec![
            other("binlogd2:3307", NodeStanding::Counting),
            other("binlogd3:3307", NodeStanding::Absent),
        ],
    }
}

/// An answer of `/v1/quorum`.
pub(super) fn quorum_answer() -> String {
    let answer = QuorumAnswer {
        source: "orders".to_owned(),
        host: Some("db1:3306".to_owned()),
        source_gone_seconds: Some(2.5),
        durable: place(5_120),
        quorum: quorum(),
    };
    serde_json::to_string_pretty(&answer).expect("an answer is plain data")
}

/// An answer of `/v1/durable`.
pub(super) fn durable_answer() -> String {
    let promise = Promise { held: Held { entered: 3, gtids: gtids("1-77") }, accepted: None };
    let reply =
        Reply { node: Uuid::from_bytes([7; 16]), promised: 3, keeps: false, promise: Some((promise, None)) };
    let answers = vec![
        (None, Ok(reply.clone())),
        (Some("binlogd2:3307".to_owned()), Ok(reply)),
        (Some("binlogd3:3307".to_owned()), Err("connection refused".to_owned())),
    ];
    let answer = DurableAnswer::of("orders", &gtids("5"), answers);
    serde_json::to_string_pretty(&answer).expect("an answer is plain data")
}

/// An answer of `POST /v1/promote`.
pub(super) fn promote_answer() -> String {
    let absent = AbsentNode { node: "binlogd3:3307".to_owned(), why: "connection refused".to_owned() };
    let tail = LostTail { host: "db1:3306".to_owned(), gtids: format!("{UUID}:78"), waiting: 1 };
    let answer = PromoteAnswer {
        to: "db2:3306".to_owned(),
        server: UUID.to_owned(),
        source_before: UUID.to_owned(),
        nodes: 3,
        nodes_answer: 2,
        is_source_already: false,
        lacks: String::new(),
        epoch: Some(4),
        done: true,
        accepted: vec!["binlogd1:3307".to_owned(), "binlogd2:3307".to_owned()],
        absent: vec![absent],
        statements: vec!["SET PERSIST super_read_only = OFF".to_owned()],
        tails: vec![tail],
        repointed: vec![RepointedHost { host: "db4:3306".to_owned(), refused: None }],
        notes: vec!["the old source gets no acknowledgement any more".to_owned()],
        hook_error: None,
    };
    serde_json::to_string_pretty(&answer).expect("an answer is plain data")
}

fn daemon() -> Arc<DaemonMonitor> {
    let daemon = Arc::new(DaemonMonitor::new(Path::new("/var/lib/binlogd-sample")));
    daemon.disk.set_warn(DiskWarn::Percent(10));
    for (seconds, stored) in [(0, 0), (600, 6 * GIB)] {
        let space = DiskSpace { free: 400 * GIB, reserved: 0, size: 1000 * GIB };
        daemon.disk.observe(Duration::from_secs(seconds), space, stored);
    }
    daemon.notify.configure(&["webhook"]);
    daemon.notify.reached("webhook");
    daemon.notify.failed("webhook", "it answers 503 Service Unavailable");
    daemon.add(Arc::new(source()));
    daemon.serves(Arc::new(Readers));
    daemon
}

fn source() -> SourceMonitor {
    let source = SourceMonitor::new("orders");
    source.is_node(quorum);
    source.update_facts(|facts| facts.timelines = Arc::new([timeline()]));
    source.set_state(SourceState::Connecting { host: "db1:3306".to_owned() });
    source.set_error("the server closed the connection");
    source.set_state(SourceState::Receiving);
    let action = AckTimeoutAction::Wait;
    source.ack_replicas.demand(Demanded { wanted: 1, timeout: Duration::from_secs(10), action });
    source.ack_replicas.publish(1, false, false);
    source.archive.update(|archive| {
        archive.state = ArchiveState::Failing;
        archive.url = "s3://backups/binlogs".to_owned();
        archive.encrypted = true;
        archive.timeline = Some(format!("0002-{UUID}"));
        archive.archived = place(5_120);
        archive.gtid = gtids("1-10239").to_line();
        archive.committed_at = Some(at(0));
        archive.complete_until = Some(at(0));
        archive.complete_timeline = Some(format!("0002-{UUID}"));
        archive.complete_position = place(5_120);
        archive.error = Some(error("the store answered 503 SlowDown"));
        (archive.commits, archive.plain_bytes) = (700, 6 * GIB);
        (archive.again_bytes, archive.stored_bytes) = (GIB, 2 * GIB);
        (archive.read_objects, archive.read_bytes, archive.cached_bytes) = (300, GIB / 2, GIB);
        archive.kept = Some(error("0001-…/mysql-bin.000007 was not looked for in the archive yet"));
        archive.verify = Some(ArchiveVerify {
            at: Some(at(0)),
            due: Some(at(86_400)),
            objects: 2_600,
            objects_read: 26,
            objects_opened: 26,
            findings: 1,
            first_findings: vec![ArchiveFinding {
                object: "orders/0002-…/mysql-bin.000007/00000000000000000000-….zst".to_owned(),
                range: Some("0002-…/mysql-bin.000007 0..4194304".to_owned()),
                text: "the object is missing".to_owned(),
            }],
            error: Some(error("the store answered 503 SlowDown")),
        });
        archive.backups = Some(backups());
        archive.drill = Some(drills());
        archive.prune = Some(ArchivePrune {
            keep: "7d 4w 12m".to_owned(),
            at: Some(at(0)),
            error: Some(error("the store answered 503 SlowDown")),
        });
    });
    let reason = "the source waits for our acknowledgements".to_owned();
    source.semi_sync_begins(SemiSyncStatus { active: true, reason }, true, false);
    source.semi_sync_was_counted(Counted { server: UUID.to_owned(), no_tx: 2, yes_tx: 900, at: at(0) });
    source.semi_sync_looked(UUID, Some(look()), None);
    source.semi_sync_unasked(1, Some(format!("{UUID}:4711")));
    source.publish_positions(&Ladder {
        received: place(5_300),
        written: place(5_300),
        durable: place(5_300),
        acknowledged: place(5_120),
    });
    source.publish_event_time(u32::try_from(at(0).as_second()).expect("before 2106"));
    source.counters.bytes_received.store(7 * GIB, Relaxed);
    source.search_index_missing.set(2);
    source.search_index_failed.set(1);
    source.oldest_commit.set(1_771_990_000_000_000);
    source.resources.received_by(1);
    for (seconds, stored) in [(0, 0), (600, 6 * GIB)] {
        let cpu = Some((1, Duration::from_secs(17)));
        source.resources.observe(Duration::from_secs(seconds), stored, Some(7 * GIB), cpu);
    }
    source.sync_latency.record(Duration::from_micros(180));
    source.acknowledge_latency.record(Duration::from_micros(230));
    source.update_facts(|facts| {
        facts.connected_since = Some(at(0));
        facts.server_version = Some("9.7.0".to_owned());
        facts.server_uuid = Some(UUID.to_owned());
        facts.server_id = Some(1);
        facts.timeline = Some(format!("0002-{UUID}"));
        facts.tls = Some("TLSv1.3".to_owned());
        facts.source_lacked = Some(gtids("10237-10240"));
        facts.regained = Some(Regained { at: at(0), gtids: gtids("9000-9003").to_line() });
        facts.given_twice = Some((1, gtids("10241")));
        facts.missing = Missing { gtids: gtids("1-20"), gaps: vec![gap()] };
        facts.previous_timeline = Some(PreviousTimeline { name: format!("0001-{UUID}"), end: place(4_096) });
        facts.peers = vec![peer()];
        facts.look_error = Some(error("the connection for looks was refused"));
        facts.certificate_expires = Some(at(86_400));
        facts.verified = Some(Verified { at: at(0), findings: 0 });
        facts.rival = Some("replica 2 at 10.0.0.9 has the same server_id".to_owned());
        facts.hosts_in_doubt = Some("clients can write to db1:3306, the source, and to db2:3306".to_owned());
    });
    source
}

fn backups() -> BackupsStatus {
    let backup = BackupStatus {
        id: "20260225T033000Z-0badcafe".to_owned(),
        tool: "mysqldump".to_owned(),
        server_version: "MySQL 9.7.0".to_owned(),
        finished: at(0),
        bytes: 5 * GIB,
        stored_bytes: GIB,
        point: gtids("1-9000").to_line(),
        log_until: Some("mysql-bin.000042:5120".to_owned()),
        log_until_time: Some(at(3_600)),
        log_lacking: Some("the log behind it is not in the archive any more".to_owned()),
    };
    BackupsStatus {
        count: 8,
        with_log: 7,
        newest: Some(at(0)),
        recoverable_from: Some(at(0)),
        recoverable_to: Some(at(3_600)),
        reaches_end: true,
        list: Arc::new([backup]),
    }
}

fn drills() -> DrillsStatus {
    let result = DrillResult {
        backup: "20260225T033000Z-0badcafe".to_owned(),
        started: at(0),
        finished: at(313),
        seconds: 312.4,
        until: "mysql-bin.000042:5120".to_owned(),
        until_time: Some(at(0)),
        proof: "next-backup".to_owned(),
        proof_in_words: "each of 123 tables equals the next backup's".to_owned(),
        tables: 123,
        bytes: 5 * GIB,
        passed: true,
        fault: "a table differs".to_owned(),
        steps: vec![DrillStep { name: "fetch and load".to_owned(), seconds: 200.1 }],
    };
    DrillsStatus {
        since: at(0),
        due: Some(at(86_400)),
        running_since: Some(at(0)),
        last_passed: Some(result.clone()),
        list: Arc::new([result]),
    }
}

fn timeline() -> TimelineStatus {
    TimelineStatus {
        name: format!("0002-{UUID}"),
        began_at: at(0).to_string(),
        reason: "source-changed".to_owned(),
        why: "another server is the source".to_owned(),
        first_file: "mysql-bin.000042".to_owned(),
        server_version: "9.7.0".to_owned(),
        previous: format!("0001-{UUID}"),
        source_lacked: gtids("10237-10240").to_line(),
        missing: gtids("1-20").to_line(),
    }
}

fn event() -> Event {
    let text = "receiving from db1:3306".to_owned();
    Event { at: at(0), last_at: at(0), times: 1, level: Level::Ok, kind: "state".to_owned(), text }
}

fn look() -> SemiSyncLook {
    SemiSyncLook {
        at: at(0),
        enabled: true,
        on: true,
        clients: 1,
        wait_sessions: Some(1),
        yes_tx: 1_000,
        no_tx: 3,
        timeout_ms: 10_000,
        wait_point: Some("AFTER_SYNC".to_owned()),
        wait_no_replica: Some(true),
        wait_for_replica_count: Some(1),
        waiting_since: Some(at(0)),
    }
}

fn gap() -> RecordedGap {
    RecordedGap {
        timeline: format!("0002-{UUID}"),
        began_at: at(0).to_string(),
        after: place(4_096),
        first_file: "mysql-bin.000045".to_owned(),
        missing: gtids("1-20").to_line(),
    }
}

fn error(message: &str) -> LastError {
    LastError { at: at(0), message: message.to_owned() }
}

fn peer() -> PeerStatus {
    PeerStatus {
        peer: "binlogd2:3307".to_owned(),
        asked_at: Some(at(0)),
        had_more: Some(true),
        fetched_at: Some(at(0)),
        fetched_transactions: 12,
        fetched_bytes: 34_567,
        only_there: gtids("8000").to_line(),
        only_there_transactions: 1,
        only_there_timeline: Some(format!("0001-{UUID}")),
        error: Some(error("connection refused")),
    }
}

struct Readers;

impl Serving for Readers {
    fn status(&self, _now: Timestamp) -> ServeStatus {
        let counters = ServeCounters {
            accepted: 3,
            refused: [("login".to_owned(), 1)].into(),
            failed_logins: 1,
            sent_bytes: 123_456,
        };
        ServeStatus {
            address: "10.0.0.5:3307".to_owned(),
            connections: 1,
            max_connections: 500,
            tls: Some("self-made".to_owned()),
            tls_certificate_expires: Some(at(86_400)),
            require_tls: true,
            counters,
            readers: vec![reader()],
            slots: vec![slot()],
        }
    }
}

fn reader() -> ReaderStatus {
    ReaderStatus {
        id: 7,
        source: "orders".to_owned(),
        user: "cdc".to_owned(),
        address: "10.0.0.9:51234".to_owned(),
        program: "mysqld".to_owned(),
        connected_seconds: 3_600,
        command: "Binlog Dump GTID".to_owned(),
        server_id: Some(3),
        uuid: "9a1b0c7e-71ca-11e1-9e33-c80aa9429562".to_owned(),
        position: place(5_120),
        caught_up: false,
        behind_bytes: Some(180),
        behind_seconds: Some(1),
        sent_bytes: 123_456,
        semi_sync: true,
        confirmed: place(5_120),
        stop: Some(format!("before {UUID}:20000")),
        stop_not_here: Some(format!("{UUID}:20000")),
        stopped: false,
        delay_seconds: 0,
    }
}

fn slot() -> SlotStatus {
    SlotStatus {
        name: "warehouse".to_owned(),
        source: "orders".to_owned(),
        timeline: format!("0002-{UUID}"),
        position: place(5_120),
        connected: false,
        away_seconds: 60,
        behind_bytes: Some(180),
        behind_seconds: Some(1),
        released: Some("its reader has been away for longer than slot_max_age".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use status::DaemonStatus;
    use std::collections::BTreeSet;

    /// Whether `byte` may stand in the name of a metric.
    fn in_name(c: char) -> bool {
        c.is_ascii_lowercase() || c == '_'
    }

    #[test]
    fn every_metric_that_the_program_names_is_in_the_sample() {
        let metrics = super::metrics();
        let families: BTreeSet<&str> =
            metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
        let mut named = BTreeSet::new();
        let admin = concat!(env!("CARGO_MANIFEST_DIR"), "/../admin/src");
        let entries = |folder: &str| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files = entries(admin).chain(entries(&format!("{admin}/metrics")));
        for path in files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")) {
            let text = std::fs::read_to_string(&path).unwrap();
            let product = text.split("#[cfg(test)]").next().unwrap();
            for (at, _) in product.match_indices("\"binlogd_") {
                let name = product[at + 1..].split(|c| !in_name(c)).next().unwrap();
                named.insert(name.to_owned());
            }
        }
        assert!(named.len() > 40, "{named:?}");
        // The unit stands behind the name that the program says.
        let missing: Vec<_> = named
            .iter()
            .filter(|name| {
                !families.iter().any(|family| {
                    family
                        .strip_prefix(name.as_str())
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
                })
            })
            .collect();
        assert!(missing.is_empty(), "not in the sample: {missing:?}");
    }

    #[test]
    fn every_family_of_the_sample_has_a_value() {
        let metrics = super::metrics();
        for line in metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
            let family = line.split(' ').next().unwrap();
            let has_value = metrics.lines().any(|line| !line.starts_with('#') && line.starts_with(family));
            assert!(has_value, "{family}");
        }
    }

    /// Paths of what is null, or an empty list, in JSON.
    fn holes(value: &serde_json::Value, path: &str, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Null => found.push(path.to_owned()),
            serde_json::Value::Array(items) if items.is_empty() => found.push(path.to_owned()),
            serde_json::Value::Array(items) => items.iter().for_each(|item| holes(item, path, found)),
            serde_json::Value::Object(keys) => {
                keys.iter().for_each(|(key, value)| holes(value, &format!("{path}.{key}"), found));
            }
            _ => {}
        }
    }

    #[test]
    fn everything_is_there_in_the_sample() {
        let status = super::status();
        let read: DaemonStatus = serde_json::from_str(&status).unwrap();
        assert_eq!(read.sources.len(), 1);
        let mut found = Vec::new();
        holes(&serde_json::from_str(&status).unwrap(), "", &mut found);
        // Only while a source recovers, or is stopped; and what has not ended yet.
        let may = [
            ".sources.recovery",
            ".sources.stopped_by",
            ".sources.unacknowledged_commits.until",
            ".sources.unasked_transactions.until",
        ];
        found.retain(|path| !may.contains(&path.as_str()));
        assert!(found.is_empty(), "nothing stands in the sample for {found:?}");
    }
}
