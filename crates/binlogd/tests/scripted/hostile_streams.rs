//! A source whose stream means harm: garbage, lengths that lie, compressed bombs, GTID sets without measure. What is sound
//! arrives all the same, and what is stored is what recovery accepts.

use super::peer::{
    FLAGS, PATIENCE, SMALL_MIB, assert_arrived, assert_unharmed, garbage, has_failed_twice, peak_memory_mib,
    scripted,
};
use crate::common::daemon::Daemon;
use crate::common::seed;
use crate::common::workload::Random;
use codec::event::EventType;
use scripted_source::{FaultKind, SourceLog};

/// A fault at the second event of the second dump's file, and the words that tell of it.
#[track_caller]
fn stream_withstands(what: &str, words: &str, fault: FaultKind) {
    const FILE: &str = "mysql-bin.000001";
    const INSIDE: usize = 4;
    let (source, daemon) = scripted(|script| {
        for dump in 0..3 {
            script.faults.push(scripted_source::Fault {
                dump,
                file: FILE.to_owned(),
                event: INSIDE,
                kind: fault.clone(),
            });
        }
    });
    daemon.wait_until(has_failed_twice, PATIENCE);
    // The fourth dump is sound.
    assert_arrived(what, &source, &daemon);
    assert_eq!(daemon.timeline_dirs().len(), 1, "{what}: the history is one");
    assert_unharmed(daemon, what, source.port(), words, SMALL_MIB);
}

/// An event's header with a length of the caller's.
fn event_header(event_type: u8, event_size: u32) -> Vec<u8> {
    let mut header = vec![1, 0, 0, 0, event_type, 1, 0, 0, 0];
    header.extend_from_slice(&event_size.to_le_bytes());
    header.extend_from_slice(&[0; 6]);
    header
}

#[test]
fn streams_of_garbage() {
    let mut random = Random::new(seed());
    let mut bytes = garbage(&mut random, 1 << 17);
    // A packet of at least 8 MiB, so that nobody waits for the rest of it before looking into it.
    bytes[2] |= 0x80;
    stream_withstands("garbage", "the source's stream cannot be understood", FaultKind::Raw(bytes));
    let empty = FaultKind::Flood { payloads: vec![Vec::new()], packets: 1 << 20 };
    stream_withstands("empty packets", "too short", empty);
    let other = FaultKind::Flood { payloads: vec![vec![0x7F; 100]], packets: 1 << 10 };
    stream_withstands("packets of another command", "starts with status 0x7f", other);
    let error = [b"\xFF\xD4\x04#HY000".to_vec(), vec![b'x'; 12 << 20]].concat();
    let error = FaultKind::Flood { payloads: vec![error], packets: 1 };
    stream_withstands("an error of 12 MiB", "the source ended the dump: xxx", error);
}

#[test]
fn events_whose_lengths_lie() {
    const WRITE_ROWS: u8 = 30;
    // 4 GiB are announced, 96 MiB come, in packets that fit the announcement; then the source hangs up.
    let mut first = [vec![0], event_header(WRITE_ROWS, u32::MAX)].concat();
    first.resize(0xFF_FFFF, b'x');
    let endless = FaultKind::Flood { payloads: vec![first, vec![b'x'; 0xFF_FFFF]], packets: 6 };
    stream_withstands("an event that never ends", "the source closed the connection", endless);
    let mut short = [vec![0], event_header(WRITE_ROWS, u32::MAX)].concat();
    short.resize(1_000, b'x');
    let short = FaultKind::Flood { payloads: vec![short], packets: 1 << 10 };
    stream_withstands("an event of 4 GiB in 1 KiB", "its packet holds", short);
    // A heartbeat, whose body is a name, of 3 MiB.
    const HEARTBEAT: u8 = 27;
    let heartbeat = [vec![0], event_header(HEARTBEAT, (3 << 20) - 1), vec![b'x'; (3 << 20) - 20]].concat();
    let heartbeat = FaultKind::Flood { payloads: vec![heartbeat], packets: 4 };
    stream_withstands("a heartbeat of 3 MiB", "longer than an event of its type can be", heartbeat);
}

/// One zstd frame of `blocks` blocks that each stand for 128 KiB of zeros in four bytes (RFC 8878, "RLE_Block").
fn zstd_bomb(blocks: usize) -> Vec<u8> {
    const BLOCK_BYTES: u32 = 128 << 10;
    const RLE: u32 = 1;
    // Magic, frame header descriptor without a content size, and a window of 2 MiB.
    let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x58];
    for block in 1..=blocks {
        let last = u32::from(block == blocks);
        frame.extend_from_slice(&(last | RLE << 1 | BLOCK_BYTES << 3).to_le_bytes()[..3]);
        frame.push(0);
    }
    frame
}

/// binlogd does not look into compressed transactions: they are stored as they are, and so is a bomb.
#[test]
fn compressed_bombs_are_stored_as_they_are() {
    let (source, mut daemon) = scripted(|script| {
        script.log.compressed_transaction(&zstd_bomb(1 << 14), 2 << 30);
        script.log.compressed_transaction(b"no frame at all", u64::MAX);
        script.log.compressed_transaction(&[], 0);
        // A bomb inside a bomb.
        script.log.compressed_transaction(&[zstd_bomb(1 << 10), zstd_bomb(1 << 12)].concat(), 1);
        script.log.group(1, 10);
    });
    assert_arrived("bombs", &source, &daemon);
    assert_eq!(daemon.source()["counters"]["reconnects"], 0, "{}", daemon.log());
    let peak = peak_memory_mib(daemon.pid());
    assert!(peak <= SMALL_MIB, "{peak} MiB");
    daemon.terminate();
    // Recovery and verification read them again.
    daemon.restart(&FLAGS);
    assert_arrived("bombs, after a restart", &source, &daemon);
    daemon.terminate();
    verifies(&daemon);
}

/// The wire form of a GTID set of so many intervals, beside what the log holds, for a PREVIOUS_GTIDS event.
fn large_set(log: &SourceLog, intervals: u64) -> Vec<u8> {
    let numbers: Vec<String> = (0..intervals).map(|number| (1_000 + number * 2).to_string()).collect();
    let text = format!("{},3e11fa47-71ca-11e1-9e33-c80aa9429562:{}", log.executed(), numbers.join(":"));
    let set: codec::gtid::GtidSet = text.parse().expect("a GTID set");
    let mut encoded = Vec::new();
    set.encode(&mut encoded);
    encoded
}

/// A set that is larger than the receive buffer (1 MiB) counts like any other, before a restart and after it.
#[test]
fn a_large_set_at_the_beginning_of_a_file() {
    let (source, mut daemon) = scripted(|script| {
        let set = large_set(&script.log, 100_000);
        assert!(set.len() > 1 << 20);
        script.log.restart_saying(&set);
        script.log.purge(1);
        script.log.group(2, 100);
    });
    assert_arrived("a large set", &source, &daemon);
    let before = daemon.source()["gtid"]["durable"].clone();
    assert!(before.as_str().is_some_and(|text| text.contains(":200998")), "the set is not counted");
    daemon.terminate();
    daemon.restart(&FLAGS);
    assert_arrived("a large set, after a restart", &source, &daemon);
    assert_eq!(daemon.source()["gtid"]["durable"], before);
    daemon.terminate();
    verifies(&daemon);
}

/// What is stored must be what recovery accepts: it would cut off at the next start what was acknowledged behind a set
/// that it cannot read. That holds for a set that is larger than the receive buffer too.
#[test]
fn a_large_malformed_set_is_not_stored() {
    let (source, daemon) = scripted(|script| {
        let mut set = large_set(&script.log, 100_000);
        // The end of the last interval is past every number. The event's checksum is right all the same.
        *set.last_mut().expect("a byte") = 0xFF;
        script.log.event(EventType::PREVIOUS_GTIDS, &set);
        script.log.group(2, 100);
    });
    daemon.wait_until(has_failed_twice, PATIENCE);
    assert_unharmed(daemon, "a large malformed set", source.port(), "cannot be decoded", SMALL_MIB);
}

/// `binlogd verify` of what a stopped daemon holds.
#[track_caller]
fn verifies(daemon: &Daemon) {
    crate::common::verbs::verifies(&daemon.data_dir());
}
