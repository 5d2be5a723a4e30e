//! From admitted events to the acknowledgement: write the batch, sync it, acknowledge it, publish.

use super::acknowledge::Acknowledger;
use super::copy::OpenTimeline;
use super::cursor::{Admission, Cursor};
use super::receive::{ReceiveOptions, SessionError};
use super::refusal::{PeerError, Refusal};
use crate::config::FsyncMode;
use crate::log::scan::{gtids_before, states_gtids};
use crate::log::{Position, Safe};
use crate::status::{Ladder, LogPosition, SemiSyncStatus, SourceMonitor};
use crate::wire::DumpStream;
use codec::event::boundary::Step;
use codec::event::{EventHeader, EventType, HEADER_LEN, PEEK_BYTES_MAX, StreamChecksum};
use codec::gtid::GtidState;
use std::io::IoSlice;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How many pieces one write call takes.
const WRITE_PARTS_MAX: usize = 128;

/// A piece shorter than this is copied to the end of the one before it: that is quicker than a piece of its own.
const JOIN_BELOW: usize = 4096;

/// A sync in the background that covers so much is one of a bulk.
const BULK_BYTES: u64 = 1 << 20;

/// How long a background sync that has ended may go unnoticed while nothing arrives.
const BACKGROUND_SYNC_LOOK: Duration = Duration::from_millis(5);

/// An event that arrives in parts.
struct Large {
    header: EventHeader,
    checksum: StreamChecksum,
    store: bool,
}

impl Large {
    /// How many of its first bytes are kept until it is whole.
    fn looked_at(&self) -> usize {
        if states_gtids(self.header.event_type) { self.header.event_size as usize } else { PEEK_BYTES_MAX }
    }
}

/// From admitted events to the acknowledgement.
pub(super) struct Sink<'a> {
    cursor: Cursor,
    timeline: &'a mut OpenTimeline,
    pub(super) options: &'a ReceiveOptions,
    pub(super) monitor: &'a SourceMonitor,
    acknowledger: Acknowledger,
    /// The source took the offer of semi-sync.
    pub(super) semi_sync: bool,
    /// At least one acknowledgement was sent in this session.
    has_acknowledged: bool,
    /// Pieces of the receive buffer that are to be written, in order.
    batch: Vec<Range<usize>>,
    large: Option<Large>,
    /// First bytes of the large event, as many as are [looked at](Large::looked_at); kept between events for its memory.
    prefix: Vec<u8>,
    /// GTIDs committed since the last sync began.
    unsynced: GtidState,
    /// GTIDs that the sync in the background will cover.
    syncing: GtidState,
    /// GTIDs committed since the source last asked for an acknowledgement.
    unflagged: GtidState,
    /// GTIDs that the acknowledgement which is owed will cover.
    flagged: GtidState,
    /// When the oldest byte was written that no sync covers, or will when it ends.
    unsynced_since: Option<Instant>,
    /// The last sync in the background covered much: the next one follows at once, so that what is durable advances
    /// steadily and the end of a backlog does not wait for the interval.
    in_bulk: bool,
    ladder: Ladder,
    events: u64,
    transactions: u64,
}

impl<'a> Sink<'a> {
    pub(super) fn new(
        cursor: Cursor,
        timeline: &'a mut OpenTimeline,
        options: &'a ReceiveOptions,
        monitor: &'a SourceMonitor,
    ) -> Sink<'a> {
        let flavour = timeline.gtids.flavour();
        let mut ladder = monitor.positions();
        let end = timeline.end().map(at_rung);
        (ladder.received, ladder.written, ladder.durable) = (end.clone(), end.clone(), end);
        // An acknowledgement covers all earlier positions, so the first one of this session covers what is held.
        let flagged = timeline.gtids.clone();
        monitor.publish_positions(&ladder);
        monitor.publish_gtids(|gtids| gtids.durable.clone_from(&timeline.gtids));
        timeline.log.leave_journal();
        Sink {
            cursor,
            timeline,
            options,
            monitor,
            acknowledger: Acknowledger::default(),
            semi_sync: false,
            has_acknowledged: false,
            batch: Vec::with_capacity(1024),
            large: None,
            prefix: Vec::new(),
            unsynced: GtidState::empty(flavour),
            syncing: GtidState::empty(flavour),
            unflagged: GtidState::empty(flavour),
            flagged,
            unsynced_since: None,
            in_bulk: false,
            ladder,
            events: 0,
            transactions: 0,
        }
    }

    /// Takes a whole event, which stands `at` in `buffer`.
    pub(super) fn event(
        &mut self,
        buffer: &mut [u8],
        at: Range<usize>,
        stream: &mut DumpStream,
    ) -> Result<(), SessionError> {
        let event = &buffer[at.clone()];
        let admission = self.cursor.admit(event).inspect_err(|refusal| self.count_refusal(refusal))?;
        match admission {
            Admission::Store(step) => {
                self.batch.push(at);
                self.stored(event, step)
            }
            Admission::Ignore => Ok(()),
            Admission::CaughtUp => {
                self.monitor.publish_caught_up();
                Ok(())
            }
            Admission::SwitchFile(name) => {
                // Everything before belongs to the old file, and so does what is owed for it.
                let name = name.to_owned();
                self.settle(buffer, stream)?;
                self.switch_file(&name)
            }
        }
    }

    /// Takes a part of an event that is larger than the buffer.
    pub(super) fn part(
        &mut self,
        buffer: &[u8],
        at: Range<usize>,
        first: bool,
        last: bool,
    ) -> Result<(), SessionError> {
        let bytes = &buffer[at.clone()];
        if first {
            let header = EventHeader::parse(bytes).map_err(|error| {
                let at = self.cursor.position().unwrap_or_else(|| Position::new("(no file yet)", 0));
                Refusal::from(PeerError::Event { event_type: EventType(0), at, error })
            })?;
            let (checksum, store) = self.cursor.begin_large(&header)?;
            self.large = Some(Large { header, checksum, store });
            self.prefix.clear();
        }
        let large = self.large.as_mut().expect("the framer gives a first part before any other");
        large.checksum.update(bytes);
        let looked_at = large.looked_at();
        let wanted = looked_at.saturating_sub(self.prefix.len()).min(bytes.len());
        self.prefix.extend_from_slice(&bytes[..wanted]);
        if large.store {
            self.batch.push(at);
        }
        if !last {
            return Ok(());
        }
        let Large { header, checksum, .. } = self.large.take().expect("it was there a moment ago");
        if let Err(error) = checksum.finish() {
            let at = self.cursor.position().unwrap_or_else(|| Position::new("(no file yet)", 0));
            let refusal = Refusal::from(PeerError::Event { event_type: header.event_type, at, error });
            self.count_refusal(&refusal);
            return Err(refusal.into());
        }
        let prefix = std::mem::take(&mut self.prefix);
        let admission = self.cursor.finish_large(&header, &prefix);
        let result = match admission? {
            Admission::Store(step) => self.stored(&prefix, step),
            _ => Ok(()),
        };
        self.prefix = prefix;
        // It may have held a whole GTID set, which nobody needs again.
        self.prefix.clear();
        self.prefix.shrink_to(PEEK_BYTES_MAX);
        result
    }

    /// Follows what an event that will be stored means. `event` is its beginning at least.
    fn stored(&mut self, event: &[u8], step: Step) -> Result<(), SessionError> {
        self.events += 1;
        self.transactions += u64::from(step.transaction);
        if let Some(header) = event.first_chunk::<HEADER_LEN>() {
            let timestamp = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
            if timestamp != 0 {
                self.timeline.last_timestamp = timestamp;
            }
            let event_type = EventType(header[4]);
            if states_gtids(event_type) {
                self.file_begins_with(event_type, event);
            }
        }
        if step.transaction
            && let Some(id) = self.cursor.committed()
        {
            // A stream of one source cannot mix the two kinds of GTID, and if it did the bytes would still be right.
            let _ = self.unsynced.insert(id);
            if self.semi_sync {
                let _ = self.unflagged.insert(id);
            }
        }
        if step.boundary
            && let Some(rung) = &self.ladder.received
        {
            self.acknowledger.boundary_reached(&rung.file, self.cursor.boundary());
        }
        Ok(())
    }

    /// The source's word about what came before this file, so that the set is right from the first file on.
    fn file_begins_with(&mut self, event_type: EventType, event: &[u8]) {
        let checksum = self.cursor.format().map_or(0, |format| format.checksum.len());
        let body = &event[HEADER_LEN..event.len().saturating_sub(checksum).max(HEADER_LEN)];
        match gtids_before(event_type, body) {
            Ok(before) => {
                let _ = self.unsynced.union_with(&before);
            }
            Err(error) => {
                tracing::warn!(source = self.monitor.name(), "{error}; the GTID set shown may be incomplete")
            }
        }
    }

    fn switch_file(&mut self, name: &str) -> Result<(), SessionError> {
        self.sync()?;
        self.timeline.log.begin_file(name)?;
        self.timeline.format = None;
        let rung = self.timeline.end().map(at_rung);
        (self.ladder.received, self.ladder.written, self.ladder.durable) = (rung.clone(), rung.clone(), rung);
        tracing::info!(source = self.monitor.name(), file = name, "receiving a new file");
        Ok(())
    }

    /// The source asks for an acknowledgement of the event that was just taken.
    pub(super) fn acknowledgement_wanted(&mut self, arrived: Instant) {
        let Some(rung) = &self.ladder.received else { return };
        if self.cursor.is_at_boundary() {
            self.acknowledger.request(&rung.file, self.cursor.boundary(), arrived);
            let _ = self.flagged.append(&self.unflagged);
            self.unflagged.clear();
        } else {
            self.monitor.counters.unexpected_ack_requests.fetch_add(1, Relaxed);
            self.acknowledger.request_at_next_boundary(arrived);
        }
    }

    /// The first packet has told whether semi-sync is in force.
    pub(super) fn begin(&mut self, semi_sync: bool) {
        self.semi_sync = semi_sync;
        if semi_sync
            && self.options.fsync_mode == FsyncMode::SyncThenAcknowledge
            && let Err(error) = self.timeline.log.use_journal()
        {
            tracing::warn!(
                source = self.monitor.name(),
                "{error}; going on without it: each acknowledgement waits for a sync of the binary log, which is slower"
            );
        }
    }

    /// Writes the batch, makes it durable and acknowledges it if somebody waits for that, publishes.
    pub(super) fn settle(&mut self, buffer: &mut [u8], stream: &mut DumpStream) -> Result<(), SessionError> {
        if !self.acknowledger.is_owed() {
            self.write_batch(buffer)?;
        } else if self.options.fsync_mode == FsyncMode::WriteThenAcknowledge {
            self.write_batch(buffer)?;
            let safe = self.timeline.log.written().map(|written| written.accepted_unsynced());
            self.acknowledge(safe, stream)?;
        } else if self.commit_batch(buffer)? {
            let safe = self.timeline.log.durable().map(Safe::from);
            // Whether or not it could be sent, the file must get what the journal has.
            let sent = self.acknowledge(safe, stream);
            self.timeline.log.write_behind()?;
            sent?;
        } else {
            self.write_batch(buffer)?;
            self.sync()?;
            let safe = self.timeline.log.durable().map(Safe::from);
            self.acknowledge(safe, stream)?;
        }
        self.sync_in_background()?;
        self.publish();
        Ok(())
    }

    /// Makes the batch durable through the journal. False when it must be written and synced in the file instead.
    fn commit_batch(&mut self, buffer: &[u8]) -> Result<bool, SessionError> {
        let began = self.now();
        if !self.timeline.log.commit(self.batch.iter().map(|piece| &buffer[piece.clone()]))? {
            return Ok(false);
        }
        if !self.batch.is_empty() {
            self.count_sync(self.since(began));
            let bytes: usize = self.batch.iter().map(Range::len).sum();
            self.batch_is_written(bytes as u64);
        }
        self.everything_is_durable();
        Ok(true)
    }

    fn write_batch(&mut self, buffer: &mut [u8]) -> Result<(), SessionError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        join_small_pieces(buffer, &mut self.batch);
        let mut bytes = 0;
        for pieces in self.batch.chunks(WRITE_PARTS_MAX) {
            let mut parts = [IoSlice::new(&[]); WRITE_PARTS_MAX];
            for (part, piece) in parts.iter_mut().zip(pieces) {
                *part = IoSlice::new(&buffer[piece.clone()]);
                bytes += piece.len() as u64;
            }
            self.timeline.log.append(&mut parts[..pieces.len()])?;
        }
        self.batch_is_written(bytes);
        let now = self.now();
        self.unsynced_since.get_or_insert(now);
        Ok(())
    }

    fn batch_is_written(&mut self, bytes: u64) {
        self.batch.clear();
        self.monitor.counters.bytes_written.fetch_add(bytes, Relaxed);
        if self.timeline.format.is_none() {
            self.timeline.format = self.cursor.format().cloned();
        }
    }

    /// Makes everything written durable, now.
    fn sync(&mut self) -> Result<(), SessionError> {
        if self.timeline.log.is_unsynced() {
            let began = self.now();
            self.timeline.log.sync()?;
            self.count_sync(self.since(began));
        }
        self.everything_is_durable();
        Ok(())
    }

    fn count_sync(&self, took: Duration) {
        self.monitor.sync_latency.record(took);
        self.monitor.counters.syncs.fetch_add(1, Relaxed);
    }

    fn everything_is_durable(&mut self) {
        self.unsynced_since = None;
        if !self.unsynced.is_empty() {
            let _ = self.syncing.append(&self.unsynced);
            self.unsynced.clear();
        }
        self.synced_is_durable();
    }

    /// What the last sync covered is durable.
    fn synced_is_durable(&mut self) {
        if let Some(durable) = self.timeline.log.durable() {
            set_rung(&mut self.ladder.durable, durable.position());
        }
        if !self.syncing.is_empty() {
            let _ = self.timeline.gtids.append(&self.syncing);
            self.monitor.publish_gtids(|gtids| {
                let _ = gtids.durable.append(&self.syncing);
            });
            self.syncing.clear();
        }
    }

    /// Notices the end of a sync in the background, and begins the next where one is due.
    fn sync_in_background(&mut self) -> Result<(), SessionError> {
        let log = &mut self.timeline.log;
        if let Some(took) = log.end_background_sync()? {
            self.count_sync(took);
            self.synced_is_durable();
        }
        let sync_after = self.sync_after();
        let is_due = self.unsynced_since.is_some_and(|since| self.since(since) >= sync_after);
        let log = &mut self.timeline.log;
        let begun = if is_due || log.wants_background_sync() { log.begin_background_sync()? } else { None };
        if let Some(bytes) = begun {
            self.in_bulk = bytes >= BULK_BYTES;
            self.unsynced_since = None;
            let _ = self.syncing.append(&self.unsynced);
            self.unsynced.clear();
        }
        Ok(())
    }

    fn acknowledge(&mut self, safe: Option<Safe>, stream: &mut DumpStream) -> Result<(), SessionError> {
        let Some((packet, position, arrived)) = safe.and_then(|safe| self.acknowledger.pay(&safe)) else {
            return Ok(());
        };
        stream.write_all_blocking(packet, self.options.net_read_timeout).map_err(SessionError::Network)?;
        self.monitor.acknowledge_latency.record(self.since(arrived));
        self.monitor.counters.acknowledgements.fetch_add(1, Relaxed);
        if !std::mem::replace(&mut self.has_acknowledged, true) {
            // The source may have switched semi-sync on after the session began; that it asks is the proof.
            let reason = "the source asks for acknowledgements and gets them".to_owned();
            self.monitor.update_facts(|facts| facts.semi_sync = SemiSyncStatus { active: true, reason });
        }
        set_rung(&mut self.ladder.acknowledged, &position);
        self.monitor.publish_gtids(|gtids| {
            let _ = gtids.acknowledged.append(&self.flagged);
        });
        self.flagged.clear();
        Ok(())
    }

    /// Nothing has arrived for a while: what would wait for the next batch is done now.
    pub(super) fn tend(&mut self) -> Result<(), SessionError> {
        self.sync_in_background()?;
        self.publish();
        Ok(())
    }

    fn now(&self) -> Instant {
        self.options.clock.now()
    }

    fn since(&self, earlier: Instant) -> Duration {
        self.now().saturating_duration_since(earlier)
    }

    /// Longest time until [`Sink::tend`] must be called; `None` when nothing waits for it.
    pub(super) fn tend_within(&self) -> Option<Duration> {
        if self.timeline.log.is_syncing() && self.timeline.log.is_unsynced() {
            Some(BACKGROUND_SYNC_LOOK)
        } else {
            self.unsynced_since.map(|_| self.sync_after())
        }
    }

    /// Age of written bytes at which a sync of them begins.
    fn sync_after(&self) -> Duration {
        // Half of the limit: the thread may sleep as long again.
        if self.in_bulk { BACKGROUND_SYNC_LOOK } else { self.options.fsync_interval / 2 }
    }

    fn publish(&mut self) {
        if let Some(received) = self.cursor.position() {
            set_rung(&mut self.ladder.received, &received);
            if let Some(written) = self.timeline.log.written() {
                let mut written = written.position().clone();
                if *written.file == *received.file {
                    // Parts of an event that is not whole yet are on disk, but they are not part of the ladder.
                    written.offset = written.offset.min(received.offset);
                }
                set_rung(&mut self.ladder.written, &written);
                if let Some(durable) = self.ladder.durable.as_mut().filter(|rung| *rung.file == *written.file)
                {
                    durable.position = durable.position.min(written.offset);
                }
            }
        }
        // Counted before the positions are seen, so that who sees a position sees everything up to it counted.
        if self.events > 0 {
            self.monitor.publish_event_time(self.timeline.last_timestamp);
        }
        self.monitor.counters.events.fetch_add(std::mem::take(&mut self.events), Relaxed);
        self.monitor.counters.transactions.fetch_add(std::mem::take(&mut self.transactions), Relaxed);
        self.monitor.publish_positions(&self.ladder);
    }

    #[cold]
    fn count_refusal(&self, refusal: &Refusal) {
        if let Refusal::Peer(error) = refusal
            && error.is_checksum_failure()
        {
            self.monitor.counters.checksum_failures.fetch_add(1, Relaxed);
        }
    }

    /// Ends the session: the beginning of a transaction that did not arrive to its end is dropped, the rest is synced.
    ///
    /// What was admitted before an error is sound, so it is written first: the cursor's boundary may lie in it.
    pub(super) fn close(&mut self, buffer: &mut [u8]) -> Result<(), SessionError> {
        self.write_batch(buffer)?;
        let written = self.timeline.log.written().map(|written| written.position().clone());
        if let Some(written) = written {
            // The cursor may have begun a file that the log has not.
            let same_file = self.cursor.position().is_none_or(|position| *position.file == *written.file);
            let boundary = if same_file { self.cursor.boundary() } else { written.offset };
            // Of a file that the log has not begun, it is the beginning, which is that of every file.
            self.timeline.tail_start = self.cursor.tail_start();
            self.timeline.cut_to_boundary(boundary)?;
        }
        self.sync()?;
        let end = self.timeline.end().map(at_rung);
        (self.ladder.received, self.ladder.written, self.ladder.durable) = (end.clone(), end.clone(), end);
        self.monitor.publish_positions(&self.ladder);
        Ok(())
    }
}

/// Closes the gaps that packet headers leave between small pieces, so that a write has few parts. Pieces only move
/// towards the front and keep their order, so nothing is written over that is still to come.
fn join_small_pieces(buffer: &mut [u8], pieces: &mut Vec<Range<usize>>) {
    let mut kept = 0;
    for index in 1..pieces.len() {
        let piece = pieces[index].clone();
        if piece.len() < JOIN_BELOW {
            let end = pieces[kept].end;
            pieces[kept].end += piece.len();
            buffer.copy_within(piece, end);
        } else {
            kept += 1;
            pieces[kept] = piece;
        }
    }
    pieces.truncate(kept + 1);
}

fn at_rung(position: Position) -> LogPosition {
    LogPosition::new(position.file, position.offset)
}

fn set_rung(rung: &mut Option<LogPosition>, position: &Position) {
    match rung {
        Some(rung) if *rung.file == *position.file => rung.position = position.offset,
        rung => *rung = Some(LogPosition::new(position.file.clone(), position.offset)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn joined_pieces_hold_the_same_bytes(
            lens in proptest::collection::vec((0usize..9, prop_oneof![1usize..80, 4000usize..5000]), 0..40),
        ) {
            let (mut pieces, mut end) = (Vec::new(), 0);
            for (gap, len) in lens {
                pieces.push(end + gap..end + gap + len);
                end += gap + len;
            }
            let mut buffer: Vec<u8> = (0..end + 10).map(|index| (index * 31 % 251) as u8).collect();
            let (after, expected) = (buffer[end..].to_vec(), pieces.iter().flat_map(|piece| buffer[piece.clone()].to_vec()));
            let expected: Vec<u8> = expected.collect();
            join_small_pieces(&mut buffer, &mut pieces);
            let joined: Vec<u8> = pieces.iter().flat_map(|piece| buffer[piece.clone()].to_vec()).collect();
            prop_assert_eq!(joined, expected);
            prop_assert_eq!(&buffer[end..], &after[..], "what has arrived behind the batch stays");
        }
    }
}
