use super::super::semi_sync::SemiSyncStatus;
use super::*;
use codec::Position;
use codec::gtid::GtidState;
use std::sync::{Arc, atomic::AtomicBool};

fn receiving(name: &str) -> SourceMonitor {
    let monitor = SourceMonitor::new(name);
    monitor.set_state(SourceState::Connecting { host: "db1:3306".to_owned() });
    monitor.update_facts(|facts| {
        facts.semi_sync = SemiSyncStatus { active: true, reason: "negotiated".to_owned() };
        facts.tls = Some("TLSv1.3".to_owned());
    });
    monitor.set_state(SourceState::Receiving);
    monitor
}

#[test]
fn a_first_copy_is_no_growth() {
    let monitor = receiving("db1");
    let now = Timestamp::from_second(1_000_000).unwrap();
    let written = |bytes: u64| {
        monitor.counters.bytes_written.store(bytes, Relaxed);
        monitor.bytes_grown(now)
    };
    assert_eq!(written(10), 0, "nothing is known");
    monitor.publish_event_time(900_000);
    assert_eq!(written(1_000), 0, "a day behind");
    monitor.publish_event_time(999_950);
    assert_eq!(written(5_000), 0, "just caught up");
    assert_eq!(written(5_300), 300);
    monitor.publish_event_time(900_000);
    assert_eq!(written(5_400), 400, "behind again: that is growth");
    monitor.discarded(70);
    assert_eq!(written(5_400), 330, "a part of a transaction, which will come again");
}

#[test]
fn another_epoch_is_an_event() {
    let monitor = receiving("db1");
    let epoch = Arc::new(AtomicU64::new(1));
    let shown = epoch.clone();
    monitor.is_node(move || {
        let epoch = shown.load(Relaxed);
        QuorumStatus { epoch, source: Some("u2".to_owned()), ..QuorumStatus::default() }
    });
    let now = Timestamp::UNIX_EPOCH;
    let noted = || {
        monitor.take_sample(Duration::ZERO, now);
        let events = monitor.glance(now).events.into_iter().filter(|event| event.kind == "quorum");
        events.map(|event| event.text).collect::<Vec<_>>()
    };
    assert_eq!(noted(), [""; 0], "that of the start is none");
    assert_eq!(noted(), [""; 0]);
    epoch.store(2, Relaxed);
    assert_eq!(noted(), ["u2 is the source of epoch 2"]);
    assert_eq!(noted().len(), 1);
    // A reload makes another node of it, or none.
    monitor.is_node(|| QuorumStatus { epoch: 7, ..QuorumStatus::default() });
    assert_eq!(monitor.quorum().map(|quorum| quorum.epoch), Some(7));
    monitor.is_no_node();
    assert!(monitor.quorum().is_none());
}

#[test]
fn readers_never_see_rungs_of_two_moments() {
    let monitor = SourceMonitor::new("db1");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0u64;
            while !done.load(Relaxed) || reads == 0 {
                let seen = monitor.positions();
                assert!(seen.is_ordered(FsyncMode::SyncThenAcknowledge), "{seen:?}");
                if let (Some(received), Some(acknowledged)) = (&seen.received, &seen.acknowledged) {
                    let names = (&acknowledged.file, &received.file);
                    assert!(names.0 <= names.1, "{seen:?}");
                    // The writer below keeps rungs exactly this far apart within a file.
                    assert!(names.0 != names.1 || received.offset - acknowledged.offset == 30, "{seen:?}");
                }
                reads += 1;
            }
        });
        publish_through_files(&monitor, 200, 500);
        done.store(true, Relaxed);
        reader.join().unwrap();
    });
}

fn publish_through_files(monitor: &SourceMonitor, files: u32, steps: u64) {
    let mut ladder = Ladder::default();
    for number in 1..=files {
        let file: Arc<str> = format!("bin.{number:06}").into();
        for step in 0..steps {
            let at = |below: u64| Some(Position::new(file.clone(), 100 + step - below));
            ladder.received = at(0);
            ladder.written = at(10);
            ladder.durable = at(20);
            // The first acknowledgement in a new file comes late.
            if step >= steps / 2 || number == 1 {
                ladder.acknowledged = at(30);
            }
            monitor.publish_positions(&ladder);
        }
    }
}

#[test]
fn seconds_behind_is_unknown_then_measured_then_zero_then_unknown_again() {
    let monitor = receiving("db1");
    let behind = |seconds| monitor.status(Timestamp::from_second(seconds).unwrap()).seconds_behind;
    assert_eq!(behind(1_000), None);
    monitor.publish_event_time(990);
    assert_eq!(behind(1_000), Some(10));
    assert_eq!(behind(980), Some(0), "a source whose clock is ahead");
    monitor.publish_caught_up();
    assert_eq!(behind(5_000), Some(0));
    monitor.publish_event_time(4_000);
    assert_eq!(behind(5_000), Some(1_000));
    monitor.set_state(SourceState::stopped("asked to".to_owned()));
    assert_eq!(behind(5_000), None);
}

#[test]
fn a_source_is_gone_while_none_can_be_received_from() {
    let monitor = SourceMonitor::new("db1");
    assert_eq!(monitor.source_gone_for(), None, "nobody has tried");
    monitor.set_state(SourceState::Connecting { host: "db1:3306".to_owned() });
    assert!(monitor.source_gone_for().is_some());
    let monitor = receiving("db1");
    assert_eq!(monitor.source_gone_for(), None);
    let until = Timestamp::from_second(1_800_000_000).unwrap();
    let ends = Instant::now();
    monitor.set_state(SourceState::BackingOff { until, error: "connection refused".to_owned() });
    let gone = monitor.source_gone_for().unwrap();
    assert!(gone <= ends.elapsed(), "since the session's end: {gone:?}");
    std::thread::sleep(Duration::from_millis(20));
    monitor.set_state(SourceState::Connecting { host: "db1:3306".to_owned() });
    assert!(monitor.source_gone_for().unwrap() >= Duration::from_millis(20), "one attempt follows the other");
    monitor.set_state(SourceState::WaitingForSpace { error: "full".to_owned() });
    assert_eq!(monitor.source_gone_for(), None, "the reason is here");
}

#[test]
fn ending_a_session_clears_what_belonged_to_it_and_keeps_the_error() {
    let monitor = receiving("db1");
    let until = Timestamp::from_second(1_800_000_000).unwrap();
    monitor.set_state(SourceState::BackingOff { until, error: "connection refused".to_owned() });
    let status = monitor.status(Timestamp::UNIX_EPOCH);
    assert_eq!(status.state, StateName::BackingOff);
    assert_eq!(
        status.state_detail.as_deref(),
        Some("connection refused; next attempt at 2027-01-15 08:00:00 UTC")
    );
    assert_eq!(status.tls, None);
    assert!(!status.semi_sync.active);
    assert_eq!(status.host.as_deref(), Some("db1:3306"));
    monitor.set_state(SourceState::Receiving);
    let status = monitor.status(Timestamp::UNIX_EPOCH);
    assert_eq!(status.last_error.map(|error| error.message).as_deref(), Some("connection refused"));
}

#[test]
fn another_host_is_not_shown_with_the_identity_of_the_one_before() {
    let monitor = receiving("db1");
    let identify = || monitor.update_facts(|facts| facts.server_id = Some(1));
    identify();
    monitor.set_state(SourceState::Connecting { host: "db1:3306".to_owned() });
    assert_eq!(monitor.facts().server_id, Some(1), "the same host");
    monitor.set_state(SourceState::Connecting { host: "db2:3306".to_owned() });
    assert_eq!((monitor.facts().host.as_deref(), monitor.facts().server_id), (Some("db2:3306"), None));
}

#[test]
fn gtid_texts_stand_on_one_line() {
    let monitor = SourceMonitor::new("db1");
    assert_eq!(monitor.status(Timestamp::UNIX_EPOCH).gtid, GtidTexts::default());
    let two = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7,4e11fa47-71ca-11e1-9e33-c80aa9429562:1";
    let set = |text: &str| GtidState::from(text.parse::<codec::gtid::GtidSet>().unwrap());
    monitor.publish_gtids(|gtids| gtids.durable.append(&set(two)));
    monitor.publish_gtids(|gtids| gtids.acknowledged.append(&set(&two[..40])));
    let texts = monitor.status(Timestamp::UNIX_EPOCH).gtid;
    assert_eq!((texts.durable.as_str(), texts.acknowledged.as_str()), (two, &two[..40]));
}

#[test]
fn a_panic_under_a_lock_does_not_end_the_receiver() {
    let monitor = SourceMonitor::new("db1");
    std::thread::scope(|scope| {
        let panicked = scope.spawn(|| monitor.update_facts(|_| panic!("expected by this test"))).join();
        assert!(panicked.is_err());
    });
    monitor.set_state(SourceState::Receiving);
    assert_eq!(monitor.state(), SourceState::Receiving);
}
