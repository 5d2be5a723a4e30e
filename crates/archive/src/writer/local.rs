//! The files of the copy on this machine, as far as they are to be archived: how far, at which boundary, and which bytes.
//!
//! Everything is walked before it is uploaded, every checksum and position, so that a disk that has changed a byte does not
//! hand the change on for good.

use crate::names;
use binlog::scan::{FileScan, Known, scan_file, scan_from};
use binlog::storage::{ReadAt, ReadFile, Storage};
use codec::event::{BINLOG_MAGIC, EventHeader, EventType, HEADER_LEN};
use codec::gtid::GtidState;
use std::io;
use std::path::Path;

/// Plain bytes of a segment, but for the last of a commit: what is left of less than half of it goes into the one before.
pub(crate) const SEGMENT_BYTES: u64 = 4 << 20;

/// About so many plain bytes are committed at a time, more where a transaction is longer. A process that is killed has uploaded
/// so many for nothing at most.
pub(crate) const COMMIT_PLAIN_BYTES: u64 = 64 << 20;

/// The longest format description event that is looked at, in bytes.
const FORMAT_BYTES_MAX: u64 = 1 << 20;

/// Part of a file that comes next: from where the archive ends to a boundary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Where its segments begin and end: one more than there are segments.
    pub cuts: Vec<Cut>,
    /// GTIDs executed before the file, by its own word.
    pub gtids_before: Option<GtidState>,
    /// GTIDs executed up to its end.
    pub gtids: GtidState,
    /// Time of the last event, in seconds since 1970.
    pub last_time: u32,
    /// What is known of the file up to its end, from where the next walk goes on.
    pub known: Known,
}

/// An edge between segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Its offset.
    pub at: u64,
    /// Where the first event begins at or behind it.
    pub event: u64,
}

impl Piece {
    /// Offset at which it begins.
    pub fn from(&self) -> u64 {
        self.cuts.first().map_or(0, |cut| cut.at)
    }

    /// Offset at which it ends.
    pub fn to(&self) -> u64 {
        self.cuts.last().map_or(0, |cut| cut.at)
    }
}

/// What a walk found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Nothing that ends at a boundary is there yet.
    Nothing,
    /// This is to be archived.
    Piece(Piece),
    /// The bytes on this disk are not sound, in words with the place.
    Damaged(String),
}

/// A file that ends earlier than it does.
#[derive(Debug)]
struct Until<'a> {
    file: &'a dyn ReadFile,
    limit: u64,
}

impl ReadAt for Until<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = usize::try_from(self.limit.saturating_sub(offset)).unwrap_or(usize::MAX);
        let len = buffer.len().min(left);
        self.file.read_at(&mut buffer[..len], offset)
    }
}

/// Finds what comes next of a file.
///
/// `end` is the end of what may be archived: the durable end of the live file, or the length of one that is written no more,
/// which `is_sealed` says. `known` is what the last walk found, if there was one.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn next_piece(
    file: &dyn ReadFile,
    from: u64,
    known: Option<&Known>,
    end: u64,
    is_sealed: bool,
) -> io::Result<Next> {
    let mut want = COMMIT_PLAIN_BYTES;
    loop {
        let limit = end.min(from.saturating_add(want));
        let is_all = limit == end;
        let (found, edges) = walk(&Until { file, limit }, from, known)?;
        let to = match &found.damage {
            // Of a file that is written no more, what a dead server left open counts as well: the copy has it.
            None if is_all && is_sealed => limit,
            None => found.boundary,
            // Cut by our limit, or by the end of what is durable.
            Some(_) if is_cut(&found, limit) && !(is_all && is_sealed) => found.boundary,
            Some(damage) => return Ok(Next::Damaged(damage.to_string())),
        };
        if to > from {
            return Ok(Next::Piece(piece(&found, edges, from, to)));
        }
        if is_all {
            return Ok(Next::Nothing);
        }
        want = want.saturating_mul(2);
    }
}

/// Walks from `from` on; the second is the beginnings of events at or behind each edge of segments.
fn walk(file: &dyn ReadAt, from: u64, known: Option<&Known>) -> io::Result<(FileScan, Vec<Cut>)> {
    if let Some(known) = known.filter(|known| known.offset == from) {
        let mut edges = Edges::new(from);
        let mut watch = |offset| {
            edges.event(offset);
            Ok(())
        };
        if let Some(found) = scan_from(file, known, &mut watch)? {
            return Ok((found, edges.found));
        }
    }
    let mut edges = Edges::new(from);
    let found = scan_file(file, u64::MAX, |offset| edges.event(offset))?;
    Ok((found, edges.found))
}

/// Collects edges while a file is walked.
struct Edges {
    next: u64,
    found: Vec<Cut>,
}

impl Edges {
    fn new(from: u64) -> Edges {
        // The walk tells ends of events, and the first begins where the piece does.
        Edges { next: from + SEGMENT_BYTES, found: vec![Cut { at: from, event: from }] }
    }

    /// An event ends at `offset`, so the next begins there; or a part of a long one ends there, which only makes the segment's
    /// compression worse.
    fn event(&mut self, offset: u64) {
        while self.next <= offset {
            self.found.push(Cut { at: self.next, event: offset });
            self.next += SEGMENT_BYTES;
        }
    }
}

fn is_cut(found: &FileScan, limit: u64) -> bool {
    use binlog::scan::damage::DamageKind::{NoMagic, Truncated};
    found.damage.as_ref().is_some_and(|damage| match damage.kind {
        Truncated { available, .. } => damage.at + available >= limit,
        NoMagic => true,
        _ => false,
    })
}

fn piece(found: &FileScan, mut cuts: Vec<Cut>, from: u64, to: u64) -> Piece {
    cuts.retain(|cut| cut.at == from || cut.at + SEGMENT_BYTES / 2 <= to);
    cuts.push(Cut { at: to, event: to });
    let known = Known {
        offset: to,
        tail_start: found.tail_start.min(to),
        last_timestamp: found.last_timestamp,
        gtids: found.gtids_in_file(),
    };
    Piece {
        cuts,
        gtids_before: found.gtids_before.clone(),
        gtids: found.gtids.clone(),
        last_time: found.last_timestamp,
        known,
    }
}

/// Hexadecimal SHA-256 of a file's format description event, checksum included; `None` while that is not whole, or where the
/// file begins with something else.
///
/// # Errors
/// When the file cannot be read.
pub fn head(storage: &dyn Storage, path: &Path, end: u64) -> io::Result<Option<String>> {
    let file = storage.open_read(path)?;
    let file = Until { file: &*file, limit: end };
    let mut start = [0; BINLOG_MAGIC.len() + HEADER_LEN];
    if file.read_full_at(&mut start, 0)? < start.len() || !start.starts_with(&BINLOG_MAGIC) {
        return Ok(None);
    }
    let Ok(header) = EventHeader::parse(&start[BINLOG_MAGIC.len()..]) else { return Ok(None) };
    let len = u64::from(header.event_size);
    if header.event_type != EventType::FORMAT_DESCRIPTION || len > FORMAT_BYTES_MAX {
        return Ok(None);
    }
    let mut event = vec![0; len as usize];
    let read = file.read_full_at(&mut event, BINLOG_MAGIC.len() as u64)?;
    Ok((read == event.len()).then(|| names::sha256(&event)))
}

/// Reads `[from, to)` of a file into `buffer`.
///
/// # Errors
/// When it cannot be read, or is shorter.
pub(crate) fn read_range(file: &dyn ReadFile, from: u64, to: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
    // What it held before is overwritten, or there is an error.
    buffer.resize((to - from) as usize, 0);
    if file.read_full_at(buffer, from)? < buffer.len() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file has become shorter"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::storage::posix::PosixStorage;
    use binlog::testing::FileBuilder;
    use std::fs;

    fn next(bytes: &[u8], from: u64, known: Option<&Known>, end: u64, sealed: bool) -> Next {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), bytes).unwrap();
        next_piece(&*PosixStorage.open_read(file.path()).unwrap(), from, known, end, sealed).unwrap()
    }

    fn found(next: Next) -> Piece {
        let Next::Piece(piece) = next else { panic!("{next:?}") };
        piece
    }

    #[test]
    fn a_piece_ends_at_a_boundary_whatever_the_end_is() {
        let first = FileBuilder::new().previous_gtids("").transaction(1, 100);
        let boundary = first.len() as u64;
        let whole = first.transaction(2, 500).finish();
        for end in boundary..whole.len() as u64 {
            let piece = found(next(&whole, 0, None, end, false));
            assert_eq!((piece.from(), piece.to()), (0, boundary), "durable up to {end}");
            assert_eq!(next(&whole, boundary, Some(&piece.known), end, false), Next::Nothing);
        }
        let piece = found(next(&whole, 0, None, boundary, false));
        let rest = found(next(&whole, boundary, Some(&piece.known), whole.len() as u64, false));
        assert_eq!((rest.from(), rest.to()), (boundary, whole.len() as u64));
        assert_eq!(rest.gtids.to_string(), format!("{}:1-2", binlog::testing::SERVER_UUID));
        assert_eq!(
            found(next(&whole, boundary, None, whole.len() as u64, false)),
            rest,
            "without what is known"
        );
    }

    #[test]
    fn segments_are_neither_small_nor_larger_than_one_and_a_half() {
        let builder =
            (0..30).fold(FileBuilder::new().previous_gtids(""), |b, n| b.transaction(n + 1, 700_000));
        let whole = builder.finish();
        let piece = found(next(&whole, 0, None, whole.len() as u64, true));
        assert_eq!(piece.to(), whole.len() as u64);
        for pair in piece.cuts.windows(2) {
            let len = pair[1].at - pair[0].at;
            assert!((SEGMENT_BYTES / 2..SEGMENT_BYTES * 3 / 2).contains(&len), "{len}");
            assert!(pair[0].event >= pair[0].at);
        }
    }

    #[test]
    fn a_damaged_byte_is_not_archived() {
        let mut whole =
            FileBuilder::new().previous_gtids("").transaction(1, 100).transaction(2, 100).finish();
        let len = whole.len();
        whole[len - 20] ^= 1;
        assert!(matches!(next(&whole, 0, None, len as u64, true), Next::Damaged(_)));
        let cut = &whole[..len - 60];
        assert!(
            matches!(next(cut, 0, None, cut.len() as u64, true), Next::Damaged(_)),
            "a sealed file without its end"
        );
    }
}
