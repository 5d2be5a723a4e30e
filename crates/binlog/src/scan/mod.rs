//! A walk over one binary log file: every length, checksum and position, and where the last boundary is.
//!
//! Recovery, verification and the status of a stopped daemon all read files through this one walk, so they cannot
//! disagree about what is sound.

pub mod damage;
mod window;

use super::storage::ReadAt;
use crate::scan::damage::{Damage, DamageKind};
use crate::writer::admission::{GTIDS_TOO_LONG, gtids_before, states_gtids};
use codec::event::boundary::BoundaryTracker;
use codec::event::{
    BINLOG_MAGIC, ChecksumAlgorithm, EventError, EventHeader, EventType, FormatDescription, HEADER_LEN,
    PEEK_BYTES_MAX, StreamChecksum,
};
use codec::gtid::{GtidState, TransactionId, Uuid};
use std::io;
use window::{BUFFER_LEN, Window};

/// Longest tail of a file, in bytes, that a session asks for again to compare it with the copy. See [`tail_start`].
pub const TAIL_BYTES_MAX: u64 = 256 * 1024;

/// Of more UUIDs than this in one file nobody is to know who committed here first.
const WRITERS_MAX: usize = 16;

/// What a walk found.
#[derive(Debug, Clone)]
pub struct FileScan {
    /// End of the last sound event (or of the magic, or 0).
    pub sound_end: u64,
    /// The last boundary: [`FileScan::sound_end`] unless a transaction is incomplete there.
    pub boundary: u64,
    /// The file's first event, when it is whole.
    pub format: Option<FormatDescription>,
    /// Where the tail begins that a session compares, see [`tail_start`]. Always <= [`FileScan::boundary`].
    pub tail_start: u64,
    /// GTIDs executed before this file by its own word (PREVIOUS_GTIDS or MariaDB's GTID_LIST).
    pub gtids_before: Option<GtidState>,
    /// GTIDs executed up to [`FileScan::boundary`]: those before and those in the file.
    pub gtids: GtidState,
    /// Sound events.
    pub events: u64,
    /// Complete transactions.
    pub transactions: u64,
    /// Transactions whose GTID was there before: a source never writes one twice into one history.
    pub repeated_gtids: u64,
    /// The first of them, and the end of its transaction in the file.
    pub first_repeated: Option<(TransactionId, u64)>,
    /// Time of the last event that has one, seconds since 1970.
    pub last_timestamp: u32,
    /// Name in the ROTATE event that ends the file, if one does.
    pub rotates_to: Option<String>,
    /// The type of the last sound event.
    pub last_event: Option<EventType>,
    /// The `server_id` in that one.
    pub last_server_id: u32,
    /// MySQL: under whose UUIDs transactions were committed that bear the file's own `server_id`, and so were no replica's: the
    /// first few.
    pub committed_here: Vec<Uuid>,
    /// Why the walk ended before the end of the file.
    pub damage: Option<Damage>,
}

/// Walks a file from its beginning to `limit` bytes or its end. `progress` is told the offset after each event.
///
/// # Errors
/// Only when reading fails; unsound bytes are a result, not an error.
pub fn scan_file(file: &dyn ReadAt, limit: u64, mut progress: impl FnMut(u64)) -> io::Result<FileScan> {
    scan_watched(file, limit, &mut |offset| {
        progress(offset);
        Ok(())
    })
}

/// What is known of the beginning of a file, so that a walk need not read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Everything before is sound. A boundary.
    pub offset: u64,
    /// As [`FileScan::tail_start`] there. Always <= `offset`.
    pub tail_start: u64,
    /// As [`FileScan::last_timestamp`] there.
    pub last_timestamp: u32,
    /// GTIDs of the transactions in the file before `offset`, without those that the file says were executed before it. For
    /// MariaDB, whose positions are no sets, with them.
    pub gtids: GtidState,
}

/// As [`scan_file`] to the file's end; an error of `watch` ends the walk. Of the bytes before what is `known` only the events at
/// the file's beginning are read: its format, and what was executed before it. `None` when those and what is known do not fit
/// together: then everything must be read.
///
/// # Errors
/// When reading fails, or as `watch` says.
pub fn scan_from(
    file: &dyn ReadAt,
    known: &Known,
    watch: &mut dyn FnMut(u64) -> io::Result<()>,
) -> io::Result<Option<FileScan>> {
    let mut walk = Walk::new(file, u64::MAX, watch);
    if !walk.skip(known)? {
        return Ok(None);
    }
    walk.scan.damage = walk.run()?;
    Ok(Some(walk.scan))
}

/// As [`scan_file`]; an error of `watch` ends the walk.
///
/// # Errors
/// When reading fails, or as `watch` says.
pub(crate) fn scan_watched(
    file: &dyn ReadAt,
    limit: u64,
    watch: &mut dyn FnMut(u64) -> io::Result<()>,
) -> io::Result<FileScan> {
    let mut walk = Walk::new(file, limit, watch);
    walk.scan.damage = match walk.magic()? {
        Some(kind) => Some(Damage { at: 0, kind }),
        None => walk.run()?,
    };
    Ok(walk.scan)
}

impl FileScan {
    /// GTIDs of the transactions in the file, as [`Known::gtids`] has them.
    pub fn gtids_in_file(&self) -> GtidState {
        match (&self.gtids, &self.gtids_before) {
            (GtidState::Mysql(_), Some(before)) => self.gtids.subtract(before),
            _ => self.gtids.clone(),
        }
    }
}

struct Walk<'a> {
    window: Window<'a>,
    /// Told how far the walk is, also inside a long event.
    watch: &'a mut dyn FnMut(u64) -> io::Result<()>,
    tracker: BoundaryTracker,
    checksum: ChecksumAlgorithm,
    scan: FileScan,
}

impl<'a> Walk<'a> {
    fn new(file: &'a dyn ReadAt, limit: u64, watch: &'a mut dyn FnMut(u64) -> io::Result<()>) -> Walk<'a> {
        Walk {
            window: Window::new(file, limit),
            tracker: BoundaryTracker::new(),
            checksum: ChecksumAlgorithm::None,
            watch,
            scan: FileScan {
                sound_end: 0,
                boundary: 0,
                tail_start: 0,
                format: None,
                gtids_before: None,
                gtids: GtidState::default(),
                events: 0,
                transactions: 0,
                repeated_gtids: 0,
                first_repeated: None,
                last_timestamp: 0,
                rotates_to: None,
                last_event: None,
                last_server_id: 0,
                committed_here: Vec::new(),
                damage: None,
            },
        }
    }

    /// Reads the file's beginning and goes on behind what is `known`. False when the two do not fit together.
    fn skip(&mut self, known: &Known) -> io::Result<bool> {
        if self.magic()?.is_some() {
            return Ok(false);
        }
        while self.scan.gtids_before.is_none() && self.scan.sound_end < known.offset {
            let at = self.scan.sound_end;
            let head = self.window.view(at, HEADER_LEN)?;
            let Ok(header) = EventHeader::parse(head) else { return Ok(false) };
            if !begins_file(header.event_type) {
                break;
            }
            if self.event(at, &header)?.is_some() {
                return Ok(false);
            }
        }
        // Both are of one source; if not, the mark is none of this file's.
        let fits = self.scan.sound_end <= known.offset && self.scan.gtids.append(&known.gtids).is_ok();
        if self.scan.format.is_none() || !fits {
            return Ok(false);
        }
        // A boundary, as where a session resumes.
        self.tracker = BoundaryTracker::new();
        (self.scan.sound_end, self.scan.boundary) = (known.offset, known.offset);
        (self.scan.tail_start, self.scan.last_timestamp) = (known.tail_start, known.last_timestamp);
        Ok(true)
    }

    fn run(&mut self) -> io::Result<Option<Damage>> {
        loop {
            let at = self.scan.sound_end;
            let head = self.window.view(at, HEADER_LEN)?;
            if head.is_empty() {
                return Ok(None);
            }
            if head.len() < HEADER_LEN {
                let available = head.len() as u64;
                return Ok(Some(Damage { at, kind: DamageKind::Truncated { event_size: 0, available } }));
            }
            let header = match EventHeader::parse(head) {
                Ok(header) => header,
                Err(error) => {
                    return Ok(Some(Damage { at, kind: DamageKind::Event(EventType(head[4]), error) }));
                }
            };
            if let Some(kind) = self.event(at, &header)? {
                return Ok(Some(Damage { at, kind }));
            }
            (self.watch)(self.scan.sound_end)?;
        }
    }

    fn magic(&mut self) -> io::Result<Option<DamageKind>> {
        let magic = self.window.view(0, BINLOG_MAGIC.len())?;
        if magic.len() < BINLOG_MAGIC.len() {
            return Ok(Some(DamageKind::NoMagic));
        }
        if magic != BINLOG_MAGIC {
            return Ok(Some(DamageKind::BadMagic));
        }
        (self.scan.sound_end, self.scan.boundary, self.scan.tail_start) = (4, 4, 4);
        Ok(None)
    }

    fn event(&mut self, at: u64, header: &EventHeader) -> io::Result<Option<DamageKind>> {
        let end = at + u64::from(header.event_size);
        let first = self.scan.format.is_none();
        if first && header.event_type != EventType::FORMAT_DESCRIPTION {
            return Ok(Some(DamageKind::NoFormatDescription(header.event_type)));
        }
        let available = self.window.available(at, end - at)?;
        if available < end - at {
            return Ok(Some(DamageKind::Truncated { event_size: header.event_size, available }));
        }
        let mut format = None;
        let result = if header.event_type == EventType::FORMAT_DESCRIPTION {
            self.format_description(at, header)?.map(|found| format = Some(found))
        } else {
            self.verify(at, header)?
        };
        if let Err(error) = result {
            return Ok(Some(DamageKind::Event(header.event_type, error)));
        }
        // MariaDB 11.4 and later leaves 0 inside transactions.
        if header.log_pos != 0 && header.log_pos != end as u32 {
            return Ok(Some(DamageKind::Position { actual: end as u32, stated: header.log_pos }));
        }
        // Only now: the format of a file that is cut before its format description would be compared with the source's.
        if let Some(format) = format {
            self.checksum = format.checksum;
            self.scan.format.get_or_insert(format);
        }
        let peek = self.peek_len(header);
        let whole;
        let event = if states_gtids(header.event_type) && peek == PEEK_BYTES_MAX {
            let len = (header.event_size as usize).saturating_sub(self.checksum.len());
            whole = match self.window.whole(at, len)? {
                Some(whole) => whole,
                None => return Ok(Some(DamageKind::Event(header.event_type, GTIDS_TOO_LONG))),
            };
            &whole[..]
        } else {
            self.window.view(at, peek)?
        };
        if let Err(error) = note(&mut self.scan, &mut self.tracker, header, event, at, end) {
            return Ok(Some(DamageKind::Event(header.event_type, error)));
        }
        Ok(None)
    }

    /// Bytes of an event that are looked at: all but its checksum, if it is not too long.
    fn peek_len(&self, header: &EventHeader) -> usize {
        (header.event_size as usize).saturating_sub(self.checksum.len()).min(PEEK_BYTES_MAX)
    }

    fn format_description(
        &mut self,
        at: u64,
        header: &EventHeader,
    ) -> io::Result<Result<FormatDescription, EventError>> {
        let event = self.window.view(at, header.event_size as usize)?;
        if event.len() < header.event_size as usize {
            return Ok(Err(EventError::Malformed("the format description is longer than 256 KiB")));
        }
        let format = match FormatDescription::parse(event) {
            Ok(format) => format,
            Err(error) => return Ok(Err(error)),
        };
        let verdict = format.checksum.verify_format_description(event);
        Ok(verdict.map(|()| format))
    }

    fn verify(&mut self, at: u64, header: &EventHeader) -> io::Result<Result<(), EventError>> {
        let mut stream = match StreamChecksum::new(self.checksum, header.event_size) {
            Ok(stream) => stream,
            Err(error) => return Ok(Err(error)),
        };
        if self.checksum == ChecksumAlgorithm::None {
            return Ok(Ok(()));
        }
        let mut offset = at;
        while stream.remaining() > 0 {
            let want = usize::try_from(stream.remaining()).unwrap_or(usize::MAX).min(BUFFER_LEN);
            let part = self.window.view(offset, want)?;
            if part.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            stream.update(part);
            offset += part.len() as u64;
            if stream.remaining() > 0 {
                (self.watch)(offset)?;
            }
        }
        Ok(stream.finish())
    }
}

/// The events that stand at the beginning of a file, up to the one that states what was executed before it.
fn begins_file(event_type: EventType) -> bool {
    matches!(event_type, EventType::FORMAT_DESCRIPTION | EventType::MARIADB_START_ENCRYPTION)
        || states_gtids(event_type)
}

/// Takes a sound event into the result.
fn note(
    scan: &mut FileScan,
    tracker: &mut BoundaryTracker,
    header: &EventHeader,
    event: &[u8],
    at: u64,
    end: u64,
) -> Result<(), EventError> {
    match header.event_type {
        EventType::PREVIOUS_GTIDS | EventType::MARIADB_GTID_LIST => {
            let state = gtids_before(header.event_type, &event[HEADER_LEN..])?;
            scan.gtids = state.clone();
            scan.gtids_before = Some(state);
        }
        EventType::ROTATE => {
            scan.rotates_to = Some(codec::event::Rotate::parse(event)?.next_file.to_owned());
        }
        _ => {}
    }
    let step = tracker.advance(header, event, at, end)?;
    if step.transaction
        && let Some(id) = tracker.committed()
    {
        // MariaDB allows numbers out of order unless gtid_strict_mode is on, so only MySQL's can repeat wrongly.
        if matches!(id, TransactionId::Mysql(_)) && scan.gtids.contains(&id) {
            scan.repeated_gtids += 1;
            scan.first_repeated.get_or_insert((id, end));
        }
        if let TransactionId::Mysql(gtid) = id
            && scan.format.as_ref().is_some_and(|format| format.server_id == header.server_id)
            && scan.committed_here.len() < WRITERS_MAX
            && !scan.committed_here.contains(&gtid.uuid)
        {
            scan.committed_here.push(gtid.uuid);
        }
        // One source cannot mix the two kinds of GTID, and if it did the bytes would still be right.
        let _ = scan.gtids.insert(id);
    }
    if step.transaction {
        scan.tail_start = tail_start(scan.boundary, at, end);
    }
    if step.boundary {
        scan.boundary = end;
        scan.transactions += u64::from(step.transaction);
    }
    if header.timestamp != 0 {
        scan.last_timestamp = header.timestamp;
    }
    (scan.last_event, scan.last_server_id) = (Some(header.event_type), header.server_id);
    scan.sound_end = end;
    scan.events += 1;
    Ok(())
}

/// Where the tail of a file begins after a transaction that goes on from `boundary` and whose last event stands at `last`
/// to `end`: the whole transaction, or of a long one its last event. With it a session shows that the source still has the
/// history that the copy has.
pub fn tail_start(boundary: u64, last: u64, end: u64) -> u64 {
    if end - boundary <= TAIL_BYTES_MAX { boundary } else { last }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use crate::testing::FileBuilder;

    struct Bytes(Vec<u8>);
    impl ReadAt for Bytes {
        fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
            let from = (offset as usize).min(self.0.len());
            let n = buffer.len().min(self.0.len() - from);
            buffer[..n].copy_from_slice(&self.0[from..from + n]);
            Ok(n)
        }
    }

    fn scan(bytes: &[u8]) -> FileScan {
        scan_file(&Bytes(bytes.to_vec()), u64::MAX, |_| {}).unwrap()
    }

    #[test]
    fn a_sound_file_is_walked_to_its_end() {
        let file = FileBuilder::new().previous_gtids("").transaction(1, 100).transaction(2, 600_000).finish();
        let found = scan(&file);
        assert_eq!(found.damage, None);
        assert_eq!((found.sound_end, found.boundary), (file.len() as u64, file.len() as u64));
        assert_eq!((found.transactions, found.repeated_gtids), (2, 0));
        assert_eq!(found.gtids.to_string(), format!("{}:1-2", testing::SERVER_UUID));
    }

    #[test]
    fn the_tail_is_the_last_transaction_or_its_last_event() {
        let builder = FileBuilder::new().previous_gtids("");
        assert_eq!(scan(&builder.finish()).tail_start, 4);
        let builder = FileBuilder::new().previous_gtids("").transaction(1, 100);
        let last = builder.len() as u64;
        let builder = builder.transaction(2, 100);
        let end = builder.len() as u64;
        let file = builder.transaction(3, 300_000).rotate("b.000002").finish();
        assert_eq!(scan(&file[..end as usize]).tail_start, last);
        let rotate = 19 + 8 + 8 + 4;
        let xid = 19 + 8 + 4;
        assert_eq!(scan(&file).tail_start, (file.len() - rotate - xid) as u64);
    }

    #[test]
    fn every_cut_is_seen_and_the_boundary_is_right() {
        let builder = FileBuilder::new().previous_gtids("").transaction(1, 100);
        let boundary = builder.len();
        let file = builder.transaction(2, 50).finish();
        for cut in boundary..file.len() {
            let found = scan(&file[..cut]);
            assert_eq!(found.boundary, boundary as u64, "cut at {cut}");
            assert!(found.sound_end <= cut as u64);
            assert_eq!(found.damage.is_some(), found.sound_end < cut as u64, "cut at {cut}");
        }
        for cut in 0..4 {
            assert_eq!(scan(&file[..cut]).damage.unwrap().kind, DamageKind::NoMagic);
        }
    }

    /// A set with many holes is longer than what is looked at of other events, and than the read buffer.
    #[test]
    fn a_long_gtid_set_is_read_whole() {
        let holes: Vec<String> = (0..20_000).map(|n| (n * 2 + 1).to_string()).collect();
        let before = format!("{}:{}", testing::SERVER_UUID, holes.join(":"));
        let file = FileBuilder::new().previous_gtids(&before).transaction(2, 100).finish();
        assert!(file.len() > BUFFER_LEN);
        let found = scan(&file);
        assert_eq!((found.damage, found.boundary), (None, file.len() as u64));
        assert_eq!(found.gtids_before.unwrap().to_line(), before);
    }

    #[test]
    fn every_flipped_byte_is_seen() {
        let file = FileBuilder::new().previous_gtids("").transaction(1, 40).finish();
        for at in 0..file.len() {
            let mut bad = file.clone();
            bad[at] ^= 0x41;
            let found = scan(&bad);
            assert!(found.damage.is_some(), "byte {at}");
            assert!(
                found.boundary <= at as u64,
                "byte {at}: boundary {} lies past the damage",
                found.boundary
            );
        }
    }

    #[test]
    fn a_limit_hides_what_is_past_it() {
        let builder = FileBuilder::new().previous_gtids("").transaction(1, 100);
        let limit = builder.len() as u64;
        let mut file = builder.transaction(2, 50).finish();
        *file.last_mut().unwrap() ^= 1;
        let found = scan_file(&Bytes(file), limit, |_| {}).unwrap();
        assert_eq!((found.damage, found.boundary), (None, limit));
    }

    #[test]
    fn a_cut_large_event_says_how_much_is_there() {
        let file = FileBuilder::new().previous_gtids("").transaction(1, 700_000).finish();
        let found = scan(&file[..file.len() - 1000]);
        let Some(Damage { kind: DamageKind::Truncated { event_size, available }, .. }) = found.damage else {
            panic!("{:?}", found.damage)
        };
        assert!(u64::from(event_size) > available && available > 600_000);
    }
}
