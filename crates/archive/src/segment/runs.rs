//! Which bytes of a file the source has compressed already.
//!
//! MySQL compresses a transaction (`binlog_transaction_compression`), MariaDB an event (`log_bin_compress`). Who compresses them
//! again burns a core and gains nothing, so [`frames`](crate::frames) is told where they are. Nothing depends on the answer but
//! time and size: a [`Walker`] that is wrong makes an object larger or slower, never wrong.

use codec::event::{BINLOG_MAGIC, EventHeader, EventType, HEADER_LEN};
use std::ops::Range;

/// Goes through a file in pieces, which may cut events anywhere, and keeps no byte of them but the begin of a header.
#[derive(Debug, Clone)]
pub struct Walker {
    place: Place,
}

/// What comes next.
#[derive(Debug, Clone)]
enum Place {
    /// So many bytes of the magic are still to come.
    Magic { left: usize },
    /// A header, of which the first `have` bytes were seen.
    Header { bytes: [u8; HEADER_LEN], have: usize },
    /// The rest of an event, of `left` bytes.
    Body { left: usize, compressed: bool },
    /// A header made no sense, so nobody knows where the next event begins.
    Lost,
}

const HEADER: Place = Place::Header { bytes: [0; HEADER_LEN], have: 0 };

impl Walker {
    /// A walker whose first piece begins at `offset` of a file: 0, or the begin of an event.
    pub fn new(offset: u64) -> Walker {
        Walker { place: if offset == 0 { Place::Magic { left: BINLOG_MAGIC.len() } } else { HEADER } }
    }

    /// The ranges of the file's next piece that are compressed already, in order and apart from each other.
    ///
    /// A header that was cut is not in them, and of events behind a header that makes no sense nothing is.
    pub fn piece(&mut self, piece: &[u8]) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        let mut at = 0;
        while at < piece.len() {
            let (end, compressed) = self.step(&piece[at..]);
            let end = at + end;
            if compressed {
                match found.last_mut() {
                    Some(last) if last.end == at => last.end = end,
                    _ => found.push(at..end),
                }
            }
            at = end;
        }
        found
    }

    /// Takes a first part of `rest`, which is not empty: how many bytes, and whether they are compressed.
    fn step(&mut self, rest: &[u8]) -> (usize, bool) {
        match &mut self.place {
            Place::Magic { left } => {
                let len = rest.len().min(*left);
                let begin = BINLOG_MAGIC.len() - *left;
                if rest[..len] != BINLOG_MAGIC[begin..begin + len] {
                    self.place = Place::Lost;
                    return (rest.len(), false);
                }
                *left -= len;
                if *left == 0 {
                    self.place = HEADER;
                }
                (len, false)
            }
            Place::Header { bytes, have } => {
                let len = rest.len().min(HEADER_LEN - *have);
                bytes[*have..*have + len].copy_from_slice(&rest[..len]);
                *have += len;
                if *have < HEADER_LEN {
                    return (len, false);
                }
                let Ok(header) = EventHeader::parse(bytes) else {
                    self.place = Place::Lost;
                    return (rest.len(), false);
                };
                let compressed = is_compressed(header.event_type);
                self.body(header.event_size as usize - HEADER_LEN, compressed);
                // The header goes with its event, or an event would be torn from its neighbour by 19 bytes.
                (len, compressed && len == HEADER_LEN)
            }
            Place::Body { left, compressed } => {
                let (len, left, compressed) = (rest.len().min(*left), *left, *compressed);
                self.body(left - len, compressed);
                (len, compressed)
            }
            Place::Lost => (rest.len(), false),
        }
    }

    fn body(&mut self, left: usize, compressed: bool) {
        self.place = if left == 0 { HEADER } else { Place::Body { left, compressed } };
    }
}

fn is_compressed(event_type: EventType) -> bool {
    matches!(event_type, EventType::TRANSACTION_PAYLOAD | EventType::MARIADB_QUERY_COMPRESSED)
        || event_type.is_compressed_rows()
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "lists of ranges are what these tests are about")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event(event_type: EventType, len: usize) -> Vec<u8> {
        let mut bytes = vec![0xee; len];
        bytes[4] = event_type.0;
        bytes[9..13].copy_from_slice(&u32::try_from(len).unwrap().to_le_bytes());
        bytes
    }

    fn file(events: &[(EventType, usize)]) -> Vec<u8> {
        let events = events.iter().flat_map(|(event_type, len)| event(*event_type, *len));
        BINLOG_MAGIC.iter().copied().chain(events).collect()
    }

    #[test]
    fn compressed_events_are_found_with_their_headers() {
        let bytes = file(&[
            (EventType::FORMAT_DESCRIPTION, 100),
            (EventType::GTID, 50),
            (EventType::TRANSACTION_PAYLOAD, 300),
            (EventType::MARIADB_QUERY_COMPRESSED, 40),
            (EventType::WRITE_ROWS, 60),
            (EventType::MARIADB_DELETE_ROWS_COMPRESSED, 19),
            (EventType::XID, 31),
        ]);
        assert_eq!(Walker::new(0).piece(&bytes), [154..494, 554..573]);
        assert_eq!(Walker::new(154).piece(&bytes[154..]), [0..340, 400..419]);
    }

    #[test]
    fn all_that_servers_compress_is_known() {
        let compressed: Vec<u8> = (0..=255).filter(|code| is_compressed(EventType(*code))).collect();
        assert_eq!(compressed, [40, 165, 166, 167, 168, 169, 170, 171]);
    }

    #[test]
    fn what_makes_no_sense_ends_the_walk() {
        let mut bytes = file(&[(EventType::TRANSACTION_PAYLOAD, 30)]);
        bytes.extend([0; HEADER_LEN]);
        bytes.extend(event(EventType::TRANSACTION_PAYLOAD, 30));
        let mut walker = Walker::new(0);
        assert_eq!(walker.piece(&bytes), [4..34]);
        assert_eq!(walker.piece(&event(EventType::TRANSACTION_PAYLOAD, 30)), []);
        assert_eq!(Walker::new(0).piece(&bytes[1..]), [], "that is not a binary log");
    }

    proptest! {
        /// However a file is cut, the same bytes are found, but for headers that were cut.
        #[test]
        fn pieces_may_cut_events_anywhere(
            events in proptest::collection::vec((prop_oneof![Just(40u8), Just(33), Just(166), Just(30)], 19..400_usize), 1..20),
            cuts in proptest::collection::vec(0.0..1.0_f64, 0..6),
        ) {
            let events: Vec<_> = events.iter().map(|(code, len)| (EventType(*code), *len)).collect();
            let bytes = file(&events);
            let marked = |ranges: &[Range<usize>], at: usize, marks: &mut Vec<bool>| {
                for range in ranges {
                    marks[at + range.start..at + range.end].fill(true);
                }
            };
            let mut whole = vec![false; bytes.len()];
            marked(&Walker::new(0).piece(&bytes), 0, &mut whole);

            let mut cuts: Vec<usize> = cuts.iter().map(|cut| (bytes.len() as f64 * cut) as usize).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let mut walker = Walker::new(0);
            let mut pieces = vec![false; bytes.len()];
            for cut in cuts.windows(2) {
                let found = walker.piece(&bytes[cut[0]..cut[1]]);
                prop_assert!(found.windows(2).all(|two| two[0].end < two[1].start));
                marked(&found, cut[0], &mut pieces);
            }
            let mut begin = BINLOG_MAGIC.len();
            for (_, len) in events {
                let header = begin..begin + HEADER_LEN;
                let is_cut = cuts.iter().any(|cut| header.start < *cut && *cut < header.end);
                let compared = if is_cut { header.end..begin + len } else { begin..begin + len };
                prop_assert_eq!(&whole[compared.clone()], &pieces[compared]);
                begin += len;
            }
        }

        #[test]
        fn any_bytes_are_walked(bytes in proptest::collection::vec(any::<u8>(), 0..500), offset in 0..2_u64) {
            for range in Walker::new(offset).piece(&bytes) {
                prop_assert!(range.start < range.end && range.end <= bytes.len());
            }
        }
    }
}
