//! Tests of the cursor, with bytes alone.

use super::*;
use binlog::testing::FileBuilder;
use codec::event::flags;

/// Events of a file from `from` on.
fn events(file: &[u8], from: usize) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut at = from;
    while at < file.len() {
        let size = EventHeader::parse(&file[at..]).unwrap().event_size as usize;
        found.push(file[at..at + size].to_vec());
        at += size;
    }
    found
}

fn seal(mut event: Vec<u8>) -> Vec<u8> {
    let len = event.len();
    let crc = crc32fast::hash(&event[..len - 4]);
    event[len - 4..].copy_from_slice(&crc.to_le_bytes());
    event
}

fn made_up(code: u8, log_pos: u32, artificial: bool, body: &[u8]) -> Vec<u8> {
    let mut event = vec![0u8; 4];
    event.push(code);
    event.extend_from_slice(&1u32.to_le_bytes());
    event.extend_from_slice(&((19 + body.len() + 4) as u32).to_le_bytes());
    event.extend_from_slice(&log_pos.to_le_bytes());
    event.extend_from_slice(&if artificial { flags::ARTIFICIAL } else { 0 }.to_le_bytes());
    event.extend_from_slice(body);
    event.extend_from_slice(&[0; 4]);
    seal(event)
}

fn rotate_to(name: &str, position: u64) -> Vec<u8> {
    let mut body = position.to_le_bytes().to_vec();
    body.extend_from_slice(name.as_bytes());
    made_up(4, 0, true, &body)
}

fn from_oldest() -> Cursor {
    Cursor::new(None, 4, None, ChecksumAlgorithm::Crc32)
}

#[test]
fn a_file_from_its_beginning_is_stored_whole() {
    let file = FileBuilder::new().previous_gtids("").transaction(1, 50).rotate("b.2").finish();
    let mut cursor = from_oldest();
    assert_eq!(cursor.admit(&rotate_to("b.1", 4)), Ok(Admission::SwitchFile("b.1")));
    for event in events(&file, 4) {
        assert!(matches!(cursor.admit(&event), Ok(Admission::Store(_))));
    }
    assert_eq!(cursor.position(), Some(Position::new("b.1", file.len() as u64)));
    assert_eq!(cursor.admit(&rotate_to("b.2", 4)), Ok(Admission::SwitchFile("b.2")));
    assert_eq!(cursor.position(), Some(Position::new("b.2", 4)));
}

#[test]
fn a_resumed_file_ignores_what_is_sent_again() {
    let builder = FileBuilder::new().previous_gtids("").transaction(1, 50);
    let end = builder.len();
    let file = builder.transaction(2, 50).finish();
    let all = events(&file, 4);
    let format = FormatDescription::parse(&all[0]).unwrap();
    let asked = Position::new("b.1", end as u64);
    let mut cursor = Cursor::new(Some(asked.clone()), end as u64, Some(format), ChecksumAlgorithm::Crc32);
    assert_eq!(cursor.admit(&rotate_to("b.1", end as u64)), Ok(Admission::Ignore));
    let mut again = all[0].clone();
    again[13..17].fill(0);
    assert_eq!(cursor.admit(&seal(again)), Ok(Admission::Ignore));
    assert_eq!(cursor.position(), Some(asked));
    for event in events(&file, end) {
        assert!(matches!(cursor.admit(&event), Ok(Admission::Store(_))));
    }
    assert_eq!(cursor.boundary(), Some(&Position::new("b.1", file.len() as u64)));
}

#[test]
fn a_file_of_the_same_name_from_another_history_is_recognised() {
    let file = FileBuilder::new().previous_gtids("").transaction(1, 50).finish();
    let mut other = events(&file, 4)[0].clone();
    let held = FormatDescription::parse(&other).unwrap();
    other[0] ^= 1;
    let end = file.len() as u64;
    let mut cursor = Cursor::new(Some(Position::new("b.1", end)), end, Some(held), ChecksumAlgorithm::Crc32);
    cursor.admit(&rotate_to("b.1", end)).unwrap();
    assert_eq!(cursor.admit(&seal(other)), Err(OtherFile { file: "b.1".into() }.into()));
}

#[test]
fn a_missing_event_is_noticed() {
    let file = FileBuilder::new().previous_gtids("").transaction(1, 50).finish();
    let mut all = events(&file, 4);
    all.remove(3);
    let mut cursor = from_oldest();
    cursor.admit(&rotate_to("b.1", 4)).unwrap();
    for event in &all[..3] {
        cursor.admit(event).unwrap();
    }
    assert!(
        matches!(cursor.admit(&all[3]), Err(Refusal::Peer(error)) if matches!(*error, PeerError::Discontinuity { .. }))
    );
}

#[test]
fn a_damaged_event_is_refused_wherever_the_damage_is() {
    let file = FileBuilder::new().previous_gtids("").transaction(1, 50).finish();
    let all = events(&file, 4);
    for (index, event) in all.iter().enumerate() {
        for at in 0..event.len() {
            let mut cursor = from_oldest();
            cursor.admit(&rotate_to("b.1", 4)).unwrap();
            for before in &all[..index] {
                cursor.admit(before).unwrap();
            }
            let mut bad = event.clone();
            bad[at] ^= 0x08;
            let before = cursor.position();
            assert!(!matches!(cursor.admit(&bad), Ok(Admission::Store(_))), "event {index}, byte {at}");
            assert_eq!(cursor.position(), before);
        }
    }
}

#[test]
fn heartbeats_must_stand_where_the_stream_does() {
    let file = FileBuilder::new().previous_gtids("").finish();
    let mut cursor = from_oldest();
    cursor.admit(&rotate_to("b.1", 4)).unwrap();
    for event in events(&file, 4) {
        cursor.admit(&event).unwrap();
    }
    let here = file.len() as u32;
    assert_eq!(cursor.admit(&made_up(27, here, false, b"b.1")), Ok(Admission::CaughtUp));
    let beat = made_up(27, here + 100, false, b"b.1");
    let ahead = cursor.admit(&beat);
    assert!(
        matches!(ahead, Err(Refusal::Peer(error)) if matches!(*error, PeerError::HeartbeatElsewhere { .. }))
    );
}

#[test]
fn heartbeats_past_4_gib_are_understood_in_mysqls_form_and_in_mariadbs() {
    let at = (1 << 32) + 777;
    let end = Position::new("b.1", at);
    let mut cursor = Cursor::new(Some(end), at, None, ChecksumAlgorithm::Crc32);
    cursor.admit(&rotate_to("b.1", at)).unwrap();
    let mariadb = |position: u64| made_up(27, 0, false, &[&position.to_le_bytes()[..], b"b.1"].concat());
    assert_eq!(cursor.admit(&mariadb(at)), Ok(Admission::CaughtUp));
    assert_eq!(cursor.admit(&made_up(27, 777, false, b"b.1")), Ok(Admission::CaughtUp));
    for elsewhere in [mariadb(at + 1), mariadb(at + (1 << 32)), made_up(27, 778, false, b"b.1")] {
        assert!(matches!(cursor.admit(&elsewhere), Err(Refusal::Peer(_))));
    }
}

#[test]
fn a_position_past_4_gib_is_reached_by_passing_over_what_is_held() {
    let builder = FileBuilder::new().previous_gtids("").transaction(1, 50);
    let held = builder.len() as u64;
    let file = builder.transaction(2, 50).finish();
    let format = FormatDescription::parse(&events(&file, 4)[0]).unwrap();
    let mut cursor = Cursor::new(Some(Position::new("b.1", held)), 4, Some(format), ChecksumAlgorithm::Crc32);
    assert_eq!(cursor.admit(&rotate_to("b.1", 4)), Ok(Admission::Ignore));
    let mut stored = Vec::new();
    for event in events(&file, 4) {
        if matches!(cursor.admit(&event).unwrap(), Admission::Store(_)) {
            stored.extend_from_slice(&event);
        }
    }
    assert_eq!(stored, file[held as usize..]);
}

/// A file of two transactions of which the second is compared: a cursor before it, where it begins, and where it ends.
fn comparing() -> (Cursor, usize, usize, Vec<u8>) {
    let builder = FileBuilder::new().previous_gtids("").transaction(1, 50);
    let tail_start = builder.len();
    let file = builder.transaction(2, 50).finish();
    let format = FormatDescription::parse(&events(&file, 4)[0]).unwrap();
    let asked = Position::new("b.1", file.len() as u64);
    let mut cursor = Cursor::new(Some(asked), tail_start as u64, Some(format), ChecksumAlgorithm::Crc32)
        .comparing(tail_start as u64, file[tail_start..].to_vec());
    assert_eq!(cursor.admit(&rotate_to("b.1", tail_start as u64)), Ok(Admission::Ignore));
    assert_eq!(cursor.admit(&events(&file, 4)[0]), Ok(Admission::Ignore));
    (cursor, tail_start, file.len(), file)
}

/// Sends a file of the source from where the comparison begins.
fn refused_in(theirs: &[u8]) -> Position {
    let (mut cursor, tail_start, held, _) = comparing();
    for event in events(theirs, tail_start) {
        match cursor.admit(&event) {
            Ok(admission) => assert_eq!(admission, Admission::Ignore),
            Err(Refusal::OtherHistory(found)) => {
                assert_eq!(found.held, held as u64);
                assert_eq!(cursor.boundary().unwrap().offset, held as u64, "nothing of ours is cut");
                return found.at;
            }
            Err(other) => panic!("{other}"),
        }
    }
    panic!("nothing was refused")
}

#[test]
fn a_source_with_our_history_goes_on_behind_it() {
    let (mut cursor, tail_start, held, file) = comparing();
    for event in events(&file, tail_start) {
        assert_eq!(cursor.admit(&event), Ok(Admission::Ignore));
    }
    assert_eq!((cursor.boundary().unwrap().offset, cursor.tail_start()), (held as u64, tail_start as u64));
    assert!(cursor.is_at_boundary());
    let longer =
        FileBuilder::new().previous_gtids("").transaction(1, 50).transaction(2, 50).transaction(3, 50);
    for event in events(&longer.finish(), held) {
        assert!(matches!(cursor.admit(&event), Ok(Admission::Store(_))));
    }
    assert_eq!(cursor.tail_start(), held as u64);
}

#[test]
fn a_source_with_another_history_is_refused_where_it_differs() {
    let builder = || FileBuilder::new().previous_gtids("").transaction(1, 50);
    let tail_start = builder().len() as u64;
    let another = builder().transaction(3, 50).finish();
    assert_eq!(refused_in(&another), Position::new("b.1", tail_start));
    // The GTID and the BEGIN are ours.
    let rows_at = tail_start + (19 + 25 + 4) + (19 + 19 + 4);
    for size in [49, 51, 500] {
        let another = builder().transaction(2, size).finish();
        assert_eq!(refused_in(&another), Position::new("b.1", rows_at), "{size}");
    }
}

#[test]
fn a_source_that_lost_its_end_is_refused_when_it_says_that_it_has_no_more() {
    let (mut cursor, tail_start, held, _) = comparing();
    let lost = OtherHistory { at: Position::new("b.1", tail_start as u64), held: held as u64 };
    let beat = made_up(27, tail_start as u32, false, b"b.1");
    assert_eq!(cursor.admit(&beat), Err(lost.clone().into()));
    let rotate = rotate_to("b.2", 4);
    assert_eq!(cursor.admit(&rotate), Err(lost.into()));
    assert_eq!(cursor.position(), Some(Position::new("b.1", held as u64)));
}

#[test]
fn a_source_that_starts_elsewhere_is_refused() {
    let mut cursor = Cursor::new(Some(Position::new("b.1", 500)), 500, None, ChecksumAlgorithm::Crc32);
    let elsewhere = rotate_to("b.2", 4);
    let answer = cursor.admit(&elsewhere);
    assert!(
        matches!(answer, Err(Refusal::Peer(error)) if matches!(*error, PeerError::StartsElsewhere { .. }))
    );
}

/// The session's end cuts the file to the cursor's boundary, so a false switch would cost the whole file.
#[test]
fn a_file_that_begins_a_second_time_is_refused_and_changes_nothing() {
    let file = FileBuilder::new().previous_gtids("").transaction(1, 50).finish();
    for position in [4, 100, 1 << 40] {
        let mut cursor = from_oldest();
        cursor.admit(&rotate_to("b.1", 4)).unwrap();
        for event in events(&file, 4) {
            cursor.admit(&event).unwrap();
        }
        assert_eq!(cursor.admit(&rotate_to("b.1", position)), Err(OtherFile { file: "b.1".into() }.into()));
        assert_eq!(cursor.position(), Some(Position::new("b.1", file.len() as u64)));
        assert_eq!(cursor.boundary(), Some(&Position::new("b.1", file.len() as u64)));
    }
}

#[test]
fn a_switch_into_the_middle_of_a_file_is_refused_and_changes_nothing() {
    let mut cursor = from_oldest();
    cursor.admit(&rotate_to("b.1", 4)).unwrap();
    let rotate = rotate_to("b.2", 500);
    let refused = cursor.admit(&rotate);
    assert!(
        matches!(refused, Err(Refusal::Peer(error)) if matches!(*error, PeerError::StartsElsewhere { .. }))
    );
    assert_eq!(cursor.position(), Some(Position::new("b.1", 4)));
}

#[test]
fn no_event_is_stored_before_the_format_description() {
    let file = FileBuilder::new().previous_gtids("").transaction(1, 50).finish();
    let mut cursor = from_oldest();
    cursor.admit(&rotate_to("b.1", 4)).unwrap();
    let without_position = made_up(30, 0, false, b"rows");
    assert!(cursor.admit(&without_position).is_err());
    let header = EventHeader::parse(&without_position).unwrap();
    assert!(cursor.begin_large(&header).is_err());
    cursor.admit(&events(&file, 4)[0]).unwrap();
    assert!(matches!(cursor.admit(&without_position), Ok(Admission::Store(_))));
}

/// Recovery sees the same: a file that ends with the stump would look unfinished to it.
#[test]
fn the_end_of_an_abandoned_transaction_is_no_place_to_cut() {
    let mut builder = FileBuilder::new();
    let boundary = builder.len() as u64;
    builder.event(34, &[0; 25]);
    builder.event(34, &[0; 25]);
    let mut cursor = from_oldest();
    cursor.admit(&rotate_to("b.1", 4)).unwrap();
    for event in events(&builder.finish(), 4) {
        cursor.admit(&event).unwrap();
    }
    assert_eq!(cursor.boundary(), Some(&Position::new("b.1", boundary)));
}

#[test]
fn events_that_must_be_read_whole_do_not_come_in_parts() {
    let file = FileBuilder::new().finish();
    let mut cursor = from_oldest();
    cursor.admit(&rotate_to("b.1", 4)).unwrap();
    cursor.admit(&events(&file, 4)[0]).unwrap();
    let header = |code, artificial| EventHeader::parse(&made_up(code, 0, artificial, &[0; 50])).unwrap();
    for code in [4, 15, 27, 41] {
        assert!(cursor.begin_large(&header(code, false)).is_err(), "type {code}");
    }
    assert!(cursor.begin_large(&header(30, true)).is_err(), "made up for the connection");
    assert!(cursor.begin_large(&header(30, false)).is_ok());
}

#[test]
fn another_format_in_the_middle_of_a_file_is_refused() {
    let file = FileBuilder::new().previous_gtids("").finish();
    let mut cursor = from_oldest();
    cursor.admit(&rotate_to("b.1", 4)).unwrap();
    for event in events(&file, 4) {
        cursor.admit(&event).unwrap();
    }
    let mut without_checksums = events(&file, 4)[0].clone();
    let algorithm = without_checksums.len() - 5;
    without_checksums[algorithm] = 0;
    assert_eq!(cursor.admit(&without_checksums), Err(OtherFile { file: "b.1".into() }.into()));
    assert!(cursor.admit(&made_up(30, 0, false, b"rows")).is_ok(), "checksums are still expected");
}

/// The walk of recovery would take such an event for damage and cut it off.
#[test]
fn what_recovery_cannot_read_is_not_stored() {
    let file = FileBuilder::new().finish();
    for (code, body) in [(4, &b"\x04\0\0\0\0\0\0\0no-number"[..]), (35, b"short"), (163, b"\xff\xff\xff\x0f")]
    {
        let mut cursor = from_oldest();
        cursor.admit(&rotate_to("b.1", 4)).unwrap();
        cursor.admit(&events(&file, 4)[0]).unwrap();
        assert!(cursor.admit(&made_up(code, 0, false, body)).is_err(), "type {code}");
    }
}

#[test]
fn events_before_any_file_are_refused() {
    let file = FileBuilder::new().finish();
    assert!(from_oldest().admit(&events(&file, 4)[0]).is_err());
}

/// A cursor at `held` bytes of the third file, for which the dump begins with the first.
fn passing_over(third: &[u8], held: usize) -> Cursor {
    let format = FormatDescription::parse(&events(third, 4)[0]).unwrap();
    Cursor::new(Some(Position::new("b.3", held as u64)), 4, Some(format), ChecksumAlgorithm::Crc32)
        .comparing(4, third[4..held].to_vec())
        .passing_over(["b.1", "b.2", "b.3"].map(Arc::from))
}

#[test]
fn files_that_are_held_are_passed_over() {
    let first = FileBuilder::new().previous_gtids("").transaction(1, 50).rotate("b.2").finish();
    let second = FileBuilder::new().previous_gtids("").transaction(2, 50).finish();
    let builder = FileBuilder::new().previous_gtids("").transaction(3, 50);
    let held = builder.len();
    let third = builder.transaction(4, 50).finish();
    let mut cursor = passing_over(&third, held);
    let end = Position::new("b.3", held as u64);
    for (name, file) in [("b.1", &first[..]), ("b.2", &second), ("b.3", &third[..held])] {
        assert_eq!(cursor.admit(&rotate_to(name, 4)), Ok(Admission::Ignore), "{name}");
        for event in events(file, 4) {
            assert_eq!(cursor.admit(&event), Ok(Admission::Ignore), "{name}");
            assert_eq!(cursor.boundary(), Some(&end), "what is held ends there");
        }
        assert_eq!(cursor.reached(), Some(Position::new(name, file.len() as u64)));
        assert!(cursor.committed().is_some() == (name != "b.1"), "of the transaction before this place");
    }
    assert_eq!(cursor.position(), Some(end));
    for event in events(&third, held) {
        assert!(matches!(cursor.admit(&event), Ok(Admission::Store(_))));
    }
    assert_eq!(cursor.boundary(), Some(&Position::new("b.3", third.len() as u64)));
}

#[test]
fn files_that_are_passed_over_are_those_that_are_held() {
    let file = FileBuilder::new().previous_gtids("").transaction(1, 50);
    let held = file.len();
    let file = file.finish();
    let other = Refusal::from(OtherFile { file: "b.4".into() });
    let mut cursor = passing_over(&file, held);
    cursor.admit(&rotate_to("b.1", 4)).unwrap();
    assert_eq!(cursor.admit(&rotate_to("b.4", 4)), Err(other));
    // The source comes to the end of what it has before the end of what is held.
    let mut cursor = passing_over(&file, held);
    cursor.admit(&rotate_to("b.1", 4)).unwrap();
    let heartbeat = made_up(27, 4, false, b"b.1");
    assert!(matches!(cursor.admit(&heartbeat), Err(Refusal::OtherFile(_))));
}
