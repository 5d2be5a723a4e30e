//! A source that breaks the protocol in ways no real server can be made to: after each, the copy ends right, nothing
//! wrong was stored on the way, and only boundaries were acknowledged.

use crate::common::daemon::Daemon;
use codec::event::{EventHeader, EventType};
use scripted_source::{Fault, FaultKind, LogOptions, Script, ScriptedSource, SemiSync, SourceLog};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// Longest wait for anything: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reconnects soon, and notices silence soon.
const FLAGS: [&str; 6] = ["--backoff-min", "10ms", "--heartbeat-period", "500ms", "--net-read-timeout", "3s"];

/// Three files. Each group asks for an acknowledgement at its end.
fn sample() -> SourceLog {
    let mut log = SourceLog::default();
    for size in [100, 3_000, 70_000] {
        log.group(2, size);
        log.group(1, size);
        log.rotate();
    }
    log.group(2, 10);
    log
}

/// The second file, and an event in the middle of its first transaction.
const FILE: &str = "mysql-bin.000002";
const INSIDE: usize = 4;

fn start(script: Script) -> (ScriptedSource, Daemon) {
    let source = ScriptedSource::start(script).expect("a free port");
    let daemon = Daemon::start_on(&format!("mysql://any@127.0.0.1:{}", source.port()), &FLAGS);
    (source, daemon)
}

/// Waits until the source's log is durable here to its end, and compares every byte.
#[track_caller]
fn arrive(source: &ScriptedSource, daemon: &Daemon) -> Value {
    let end = source.log(SourceLog::end);
    let wanted = |status: &Value| {
        let durable = &status["positions"]["durable"];
        status["state"] == "receiving" && durable["file"] == *end.file && durable["position"] == end.position
    };
    let status = daemon.wait_until(wanted, PATIENCE);
    compare(&source.log(SourceLog::clone), &daemon.timeline_dir());
    for acknowledgement in source.acknowledgements() {
        let place = acknowledgement.place;
        let is_flagged = source.log(|log| {
            let file = log.file(&place.file)?;
            let index = file.event_at(place.position)?.checked_sub(1)?;
            let (event, flagged) = file.event(index)?;
            // A session that resumes at a file's end is sent the last group again: what it acknowledges then is the place
            // where the copy ends, which is behind the ROTATE.
            let is_rotate = EventHeader::parse(event).ok()?.event_type == EventType::ROTATE;
            Some(flagged || is_rotate && file.event(index.checked_sub(1)?)?.1)
        });
        assert_eq!(is_flagged, Some(true), "{place:?} was acknowledged, where no group ends");
    }
    status
}

#[track_caller]
fn compare(log: &SourceLog, timeline: &Path) {
    for file in log.files() {
        let copy = std::fs::read(timeline.join(&file.name)).expect("the copy has every file");
        assert!(copy == file.bytes, "the copy of {} differs", file.name);
    }
}

/// One fault in the first dump; the second is sound.
#[track_caller]
fn recovers_from(kind: FaultKind) -> (Value, Daemon) {
    let (source, daemon) = start(Script::new(sample()).fault(0, FILE, INSIDE, kind));
    let status = arrive(&source, &daemon);
    assert!(source.dumps() >= 2, "the fault must end the session");
    assert_eq!(daemon.timeline_dirs().len(), 1, "the history is one");
    (status, daemon)
}

#[test]
fn a_wrong_checksum_is_counted_and_fetched_again() {
    let (status, daemon) = recovers_from(FaultKind::BadChecksum);
    assert_eq!(status["counters"]["checksum_failures"], 1);
    assert!(daemon.log().contains("checksum"), "{}", daemon.log());
}

/// Such an event is stored in parts, before its checksum has arrived.
#[test]
fn faults_in_an_event_larger_than_the_receive_buffer_leave_nothing_of_it() {
    let mut log = SourceLog::default();
    for size in [100, 3_000_000, 10] {
        log.group(1, size);
    }
    let file = &log.files()[0];
    let large = (0..file.event_count())
        .find(|index| file.event(*index).is_some_and(|(event, _)| event.len() > 2 << 20));
    let large = large.expect("an event of three million bytes");
    let is_damage = |kind: &FaultKind| *kind == FaultKind::BadChecksum;
    for kind in [FaultKind::BadChecksum, FaultKind::Missing, FaultKind::CloseAfter(2 << 20)] {
        let (source, daemon) = start(Script::new(log.clone()).fault(0, &file.name, large, kind.clone()));
        let status = arrive(&source, &daemon);
        assert!(source.dumps() >= 2, "{kind:?} must end the session");
        assert_eq!(status["counters"]["checksum_failures"], u64::from(is_damage(&kind)), "{kind:?}");
        assert_eq!(daemon.timeline_dirs().len(), 1, "{kind:?}");
    }
}

#[test]
fn impossible_lengths_end_the_session() {
    recovers_from(FaultKind::EventLength(18));
    recovers_from(FaultKind::EventLength(u32::MAX));
}

#[test]
fn events_that_are_missing_or_doubled_are_noticed() {
    recovers_from(FaultKind::Missing);
    recovers_from(FaultKind::Twice);
}

#[test]
fn a_packet_out_of_sequence_is_noticed() {
    recovers_from(FaultKind::PacketLost);
}

#[test]
fn a_connection_lost_inside_a_header_or_a_body_is_resumed() {
    recovers_from(FaultKind::CloseAfter(0));
    recovers_from(FaultKind::CloseAfter(9));
    recovers_from(FaultKind::CloseAfter(40));
}

#[test]
fn a_heartbeat_from_another_place_is_a_sign_of_missing_bytes() {
    recovers_from(FaultKind::Heartbeat(0x7fff_ffff));
}

#[test]
fn a_source_that_falls_silent_is_left() {
    let (status, _) = recovers_from(FaultKind::Silence);
    assert!(status["last_error"]["message"].as_str().is_some_and(|text| text.contains("net_read_timeout")));
}

#[test]
fn an_error_of_the_source_is_shown_and_tried_again() {
    let (status, _) = recovers_from(FaultKind::Error(1236, "log event entry exceeded its limit".to_owned()));
    assert!(status["last_error"]["message"].as_str().is_some_and(|text| text.contains("1236")));
}

#[test]
fn faults_at_the_edges_of_files_are_no_different() {
    let last = sample().file(FILE).expect("there are four").event_count() - 1;
    for kind in [FaultKind::BadChecksum, FaultKind::Missing, FaultKind::CloseAfter(30)] {
        let at = |dump, event| Fault { dump, file: FILE.to_owned(), event, kind: kind.clone() };
        // The format description, the event after it, and the ROTATE, one after the other.
        let mut faults = vec![at(0, 0), at(1, 1), at(2, last)];
        if kind == FaultKind::Missing {
            // A file without ROTATE is what a source that crashed leaves; no receiver can tell.
            faults.pop();
        }
        let (source, daemon) = start(Script { faults, ..Script::new(sample()) });
        arrive(&source, &daemon);
        assert_eq!(daemon.timeline_dirs().len(), 1, "{kind:?}");
    }
}

#[test]
fn a_request_inside_a_transaction_is_answered_at_its_end() {
    let (source, daemon) =
        start(Script::new(SourceLog::default()).fault(0, "mysql-bin.000001", INSIDE, FaultKind::Flag));
    assert!(source.wait_for_dumps(1, PATIENCE));
    let end = source.append(|log| {
        log.transaction(100);
        log.end()
    });
    assert!(source.wait_for_acknowledgement(&end, PATIENCE), "{}", daemon.log());
    assert_eq!(source.acknowledgements().iter().map(|a| a.place.clone()).collect::<Vec<_>>(), [end]);
    daemon.wait_until(|status| status["counters"]["unexpected_ack_requests"] == 1, PATIENCE);
}

/// Dropped in silence, the source would wait for it, or take the next one for its answer.
#[test]
fn a_request_before_any_file_is_named_is_an_error() {
    let script = Script::new(sample()).fault(0, "", 0, FaultKind::FlaggedArtificial);
    let (source, daemon) = start(script);
    let status = arrive(&source, &daemon);
    let error = status["last_error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(error.contains("asks for an acknowledgement before it has named the file"), "{error:?}");
    assert_eq!(status["counters"]["reconnects"], 1, "{status}");
}

#[test]
fn a_request_that_comes_with_an_artificial_event_is_answered_at_the_next_boundary() {
    let script = Script::new(sample()).fault(0, "mysql-bin.000001", INSIDE, FaultKind::FlaggedArtificial);
    let (source, daemon) = start(script);
    let status = arrive(&source, &daemon);
    assert_eq!(status["counters"]["reconnects"], 0, "{status}");
    assert_eq!(status["counters"]["unexpected_ack_requests"], 1, "{status}");
}

#[test]
fn a_source_whose_logs_began_anew_gets_another_timeline() {
    let old = sample();
    let (source, daemon) = start(Script::new(old.clone()));
    arrive(&source, &daemon);
    // The same server, the same names, and even the same bytes but for the time.
    let mut new = SourceLog::new(LogOptions { timestamp: 1_800_000_000, ..LogOptions::default() });
    for size in [100, 3_000, 70_000] {
        new.group(2, size);
        new.group(1, size);
        new.rotate();
    }
    new.group(2, 10);
    new.group(1, 10);
    source.replace_log(new.clone());
    daemon.wait_until(|_| daemon.timeline_dirs().len() == 2, PATIENCE);
    arrive(&source, &daemon);
    compare(&old, &daemon.timeline_dirs()[0]);
}

/// The first file that a purged source has is asked for, nothing of it arrives, and then the source begins its logs anew and
/// has come to a file of that name again: what stands before it is not left out. Found by the simulation.
#[test]
fn a_reset_before_anything_has_arrived_leaves_nothing_out() {
    let mut old = sample();
    old.purge(2);
    let first = old.files()[0].name.clone();
    let (source, daemon) = start(Script::new(old).fault(0, &first, 0, FaultKind::Silence));
    assert!(source.wait_for_dumps(1, PATIENCE));
    daemon.wait_until(|_| daemon.timeline_dirs().len() == 1, PATIENCE);
    let mut new = SourceLog::new(LogOptions { timestamp: 1_800_000_000, ..LogOptions::default() });
    for size in [100, 3_000, 70_000] {
        new.group(2, size);
        new.rotate();
    }
    new.group(1, 10);
    assert!(new.file(&first).is_some(), "{first}");
    source.replace_log(new);
    arrive(&source, &daemon);
}

#[test]
fn a_source_that_refuses_semi_sync_is_received_all_the_same() {
    for semi_sync in [SemiSync::Refused, SemiSync::Disabled, SemiSync::Absent] {
        let (source, daemon) = start(Script { semi_sync, ..Script::new(sample()) });
        let status = arrive(&source, &daemon);
        assert_eq!(status["semi_sync"]["active"], false, "{semi_sync:?}");
        assert!(source.acknowledgements().is_empty());
        assert_eq!(source.dumps(), 1);
    }
}
