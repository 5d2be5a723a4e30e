//! Every look that is taken at an event, and the boundaries of a sequence of them.
//!
//! First byte: bit 0 chooses between events cut from the bytes as they are, each as long as its header says, and a
//! [`script`] of events; bit 1 places them just below 4 GiB.
//!
//! Held true: no panic; what is accepted is within its documented range; the beginning of an event that recovery looks
//! at gives the same boundaries as the whole event; a checksum taken in parts agrees with that of the whole.

use crate::input::Input;
use crate::script;
use codec::event::boundary::BoundaryTracker;
use codec::event::{
    ChecksumAlgorithm, EventHeader, FormatDescription, GtidEvent, HEADER_LEN, Heartbeat, PEEK_BYTES_MAX,
    Rotate, StreamChecksum, query_text,
};
use codec::gtid::{Gtid, MariadbGtid, TransactionId};

/// Most events of one input: more only take time.
const EVENTS_MAX: usize = 256;

/// Looks at a sequence of events.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let flags = input.u8();
    let mut position = if flags & 2 != 0 { u64::from(u32::MAX) - 100 } else { 4 };
    let (mut whole, mut peeked) = (BoundaryTracker::new(), BoundaryTracker::new());
    for _ in 0..EVENTS_MAX {
        if input.is_empty() {
            return;
        }
        let event =
            if flags & 1 == 0 { cut(&mut input) } else { script::next_event(&mut input, position).bytes };
        checksums(&event);
        let Ok(header) = EventHeader::parse(&event) else {
            assert!(
                event.len() < HEADER_LEN
                    || u32::from_le_bytes([event[9], event[10], event[11], event[12]]) < 19
            );
            return;
        };
        assert!(header.event_size as usize >= HEADER_LEN);
        look(&header, &event);
        let end = position + u64::from(header.event_size);
        boundaries(&mut whole, &mut peeked, &header, &event, position, end);
        position = end;
    }
}

/// The next bytes as an event; shorter than its header says when the input ends.
fn cut(input: &mut Input<'_>) -> Vec<u8> {
    let size = EventHeader::parse(input.clone().bytes(HEADER_LEN))
        .map_or(HEADER_LEN, |header| header.event_size as usize);
    input.bytes(size).to_vec()
}

fn look(header: &EventHeader, event: &[u8]) {
    if let Ok(format) = FormatDescription::parse(event) {
        assert!(format.is_same_file(&format));
        assert!(format.post_header_lens.len() < event.len());
        assert!(!format.server_version.chars().any(char::is_control));
        let _ = format.server_kind();
    }
    if let Ok(rotate) = Rotate::parse(event) {
        assert_bare_name(rotate.next_file);
    }
    if let Ok(heartbeat) = Heartbeat::parse(header, event) {
        assert_bare_name(heartbeat.file);
        assert!(!heartbeat.wrapped || heartbeat.position <= u64::from(u32::MAX));
    }
    if let Some(text) = query_text(event) {
        assert!(event.ends_with(text));
    }
    if GtidEvent::is_gtid(header.event_type)
        && let Ok(gtid) = GtidEvent::parse(header, event)
    {
        assert_ne!(gtid.transaction_length, Some(0));
        match gtid.id {
            Some(TransactionId::Mysql(id)) => assert_eq!(id.to_string().parse::<Gtid>().as_ref(), Ok(&id)),
            Some(TransactionId::Mariadb(id)) => {
                assert_eq!(id.to_string().parse::<MariadbGtid>().as_ref(), Ok(&id))
            }
            None => {}
        }
    }
}

/// The name becomes one of ours, so it must not lead out of the folder nor be that of another of our files.
fn assert_bare_name(name: &str) {
    assert_eq!(std::path::Path::new(name).file_name(), Some(name.as_ref()), "{name:?}");
    assert!(name.ends_with(|last: char| last.is_ascii_digit()), "{name:?}");
    assert!(!name.starts_with('.') && !name.contains('\0') && name.len() <= 512, "{name:?}");
}

fn boundaries(
    whole: &mut BoundaryTracker,
    peeked: &mut BoundaryTracker,
    header: &EventHeader,
    event: &[u8],
    start: u64,
    end: u64,
) {
    let before = whole.is_outside();
    let step = whole.advance(header, event, start, end);
    assert_eq!(step, peeked.advance(header, &event[..event.len().min(PEEK_BYTES_MAX)], start, end));
    assert_eq!(whole.is_outside(), peeked.is_outside());
    let Ok(step) = step else {
        assert_eq!(whole.is_outside(), before, "a refused event changes nothing");
        return;
    };
    assert_eq!(step.boundary, whole.is_outside());
    assert!(step.boundary || !step.transaction);
    assert_eq!(whole.committed(), peeked.committed());
    assert!(!step.abandoned || !before);
}

fn checksums(event: &[u8]) {
    for algorithm in [ChecksumAlgorithm::None, ChecksumAlgorithm::Crc32] {
        let verdict = algorithm.verify(event);
        let _ = algorithm.verify_format_description(event);
        let Ok(mut stream) = StreamChecksum::new(algorithm, event.len() as u32) else {
            assert!(event.len() < HEADER_LEN + algorithm.len());
            continue;
        };
        // Uneven parts, so that the four bytes of the checksum are split in every way.
        for part in event.chunks(event.len() / 64 + usize::from(event[0]) % 61 + 1) {
            stream.update(part);
        }
        assert_eq!(stream.remaining(), 0);
        assert_eq!(stream.finish(), verdict);
    }
}
