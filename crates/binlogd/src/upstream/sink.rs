//! From admitted events to the acknowledgement: write the batch, sync it, acknowledge it, publish.

use super::acknowledge::Acknowledger;
use super::copy::OpenTimeline;
use super::cursor::{Admission, Cursor};
use super::link::{End, Link};
use super::receive::{Begun, Outside, ReceiveOptions, SessionError};
use super::refusal::{NotNext, PeerError, Refusal};
use super::rungs::Rungs;
use super::unasked::{ASKED_WITHIN, Unasked};
use super::unproven::Unproven;
use crate::config::FsyncMode;
use crate::status::{SourceMonitor, SourceState};
use codec::event::boundary::Step;
use codec::event::{BINLOG_MAGIC, EventHeader, EventType, HEADER_LEN, PEEK_BYTES_MAX, StreamChecksum};
use codec::gtid::{GtidState, TransactionId};
use log::scan::{Known, gtids_before, states_gtids};
use log::{Position, Safe, Written};
use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use wire::{DumpStream, WireError};

/// How many pieces one write call takes.
const WRITE_PARTS_MAX: usize = 128;

/// A piece shorter than this is copied to the end of the one before it: that is quicker than a piece of its own.
const JOIN_BELOW: usize = 4096;

/// A sync in the background that covers so much is one of a bulk.
const BULK_BYTES: u64 = 1 << 20;

/// How long a background sync that has ended may go unnoticed while nothing arrives.
const BACKGROUND_SYNC_LOOK: Duration = Duration::from_millis(5);

/// How long it may go unnoticed, while nothing arrives, that acknowledgements are not withheld any more.
const FORKS_LOOK: Duration = Duration::from_millis(200);

/// The same, that the copy was read and a transaction can be compared.
const COMPARED_LOOK: Duration = Duration::from_millis(10);

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
    /// Transactions since the source last asked for an acknowledgement.
    unasked: Unasked,
    /// Pieces of the receive buffer that are to be written, in order.
    batch: Vec<Range<usize>>,
    /// The file that begins, until it is shown that it continues what is held. The log has not begun it.
    unproven: Option<Unproven>,
    large: Option<Large>,
    /// First bytes of the large event, as many as are [looked at](Large::looked_at); kept between events for its memory.
    prefix: Vec<u8>,
    /// What was executed before the file, by its own word, when that came since the last sync began.
    before: Option<GtidState>,
    /// GTIDs committed since the last sync began.
    unsynced: GtidState,
    /// GTIDs that the sync in the background will cover.
    syncing: GtidState,
    /// Among them is what a file counts to what came before it.
    syncing_says_before: bool,
    /// GTIDs committed since the source last asked for an acknowledgement.
    unflagged: GtidState,
    /// GTIDs that the acknowledgement which is owed will cover.
    flagged: GtidState,
    /// What was held when the session began, until its first acknowledgement, which covers all earlier positions.
    held: Option<Arc<GtidState>>,
    /// When the oldest byte was written that no sync covers, or will when it ends.
    unsynced_since: Option<Instant>,
    /// The last sync in the background covered much: the next one follows at once, so that what is durable advances
    /// steadily and the end of a backlog does not wait for the interval.
    in_bulk: bool,
    rungs: Rungs,
    events: u64,
    transactions: u64,
    /// Where the unit begins in the file whose events arrive: a transaction, or an event outside any.
    unit_begins: u64,
    /// Acknowledgements are withheld, but for what is handed back.
    withheld: Option<Withheld>,
}

/// What the source asked for while acknowledgements are withheld.
#[derive(Debug, Default)]
struct Withheld {
    /// Transactions that may be handed back: acknowledged when they were compared with what was lost.
    compared: Vec<(TransactionId, Wanted)>,
    /// When the newest of all others came.
    others: Option<Instant>,
}

/// An acknowledgement that the source wants.
#[derive(Debug, Clone)]
struct Wanted {
    /// The end of the transaction, which the copy may have held before the session began.
    at: Position,
    arrived: Instant,
}

impl<'a> Sink<'a> {
    pub(super) fn new(
        cursor: Cursor,
        timeline: &'a mut OpenTimeline,
        options: &'a ReceiveOptions,
        monitor: &'a SourceMonitor,
    ) -> Sink<'a> {
        let flavour = timeline.gtids.flavour();
        let rungs = Rungs::new(monitor, timeline.end());
        let held = Arc::new(timeline.gaps.stored(timeline.gtids.clone()));
        // Large sets are copied no more than needed.
        let is_whole = timeline.shared_before.is_empty() && timeline.gaps.never_held().is_empty();
        let durable = if is_whole { held.clone() } else { Arc::new(timeline.stored()) };
        let unit_begins = timeline.end().map_or(4, |end| end.offset);
        rungs.publish(monitor);
        monitor.publish_gtids(|gtids| gtids.durable.replace(durable));
        timeline.log.leave_journal();
        publish_format(monitor, timeline);
        Sink {
            cursor,
            timeline,
            options,
            monitor,
            acknowledger: Acknowledger::default(),
            semi_sync: false,
            has_acknowledged: false,
            unasked: Unasked::default(),
            batch: Vec::with_capacity(1024),
            unproven: None,
            large: None,
            prefix: Vec::new(),
            before: None,
            unsynced: GtidState::empty(flavour),
            syncing: GtidState::empty(flavour),
            syncing_says_before: false,
            unflagged: GtidState::empty(flavour),
            flagged: GtidState::empty(flavour),
            held: Some(held),
            unsynced_since: None,
            in_bulk: false,
            rungs,
            events: 0,
            transactions: 0,
            unit_begins,
            withheld: None,
        }
    }

    /// Takes a whole event, which stands `at` in `buffer`.
    pub(super) fn event(
        &mut self,
        buffer: &mut [u8],
        at: Range<usize>,
        stream: &mut DumpStream,
        outside: &mut Outside<'_>,
    ) -> Result<(), SessionError> {
        let event = &buffer[at.clone()];
        let admission = self.cursor.admit(event).inspect_err(|refusal| self.count_refusal(refusal))?;
        match admission {
            Admission::Store(step) if self.unproven.is_some() => {
                if self.first_of_file(event, step, outside)? {
                    return Ok(());
                }
                self.batch.push(at);
                self.stored(event, step)
            }
            Admission::Store(step) => {
                self.batch.push(at);
                self.stored(event, step)
            }
            Admission::Ignore => Ok(()),
            Admission::CaughtUp => {
                self.monitor.publish_caught_up();
                self.unasked.caught_up();
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
        outside: &mut Outside<'_>,
    ) -> Result<(), SessionError> {
        let bytes = &buffer[at.clone()];
        if first {
            let header = EventHeader::parse(bytes).map_err(|error| {
                let at = self.cursor.position().unwrap_or_else(|| Position::new("(no file yet)", 0));
                Refusal::from(PeerError::Event { event_type: EventType(0), at, error })
            })?;
            let (checksum, store) = self.cursor.begin_large(&header)?;
            if self.unproven.is_some() && !states_gtids(header.event_type) {
                self.prove(None, outside)?;
            }
            self.large = Some(Large { header, checksum, store });
            self.prefix.clear();
        }
        let large = self.large.as_mut().expect("the framer gives a first part before any other");
        large.checksum.update(bytes);
        let looked_at = large.looked_at();
        let wanted = looked_at.saturating_sub(self.prefix.len()).min(bytes.len());
        self.prefix.extend_from_slice(&bytes[..wanted]);
        // What states the GTIDs of a file that is not proven yet is collected whole.
        if large.store && self.unproven.is_none() {
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
            Admission::Store(step) if self.unproven.is_some() => {
                self.first_of_file(&prefix, step, outside).map(drop)
            }
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
        if step.transaction && self.semi_sync {
            self.unasked.transaction();
        }
        if step.transaction
            && let Some(id) = self.cursor.committed()
        {
            // A stream of one source cannot mix the two kinds of GTID, and if it did the bytes would still be right.
            let _ = self.unsynced.insert(id);
            if self.semi_sync {
                let _ = self.unflagged.insert(id);
            }
            if let Some(forks) = self.options.forks.as_ref().filter(|forks| forks.concerns(&id))
                && let Some(boundary) = self.cursor.boundary()
            {
                forks.arrived(self.timeline.folder().join(&*boundary.file), self.unit_begins);
            }
        }
        if step.boundary
            && let Some(boundary) = self.cursor.boundary()
        {
            self.unit_begins = boundary.offset;
            self.acknowledger.boundary_reached(boundary);
        }
        Ok(())
    }

    /// The source's word about what came before this file, so that the set is right from the first file on.
    fn file_begins_with(&mut self, event_type: EventType, event: &[u8]) {
        let body = &event[HEADER_LEN..event.len().saturating_sub(self.checksum_len()).max(HEADER_LEN)];
        match gtids_before(event_type, body) {
            // Most often it is just what is held, and then nothing of it is new.
            Ok(before) => self.before = Some(before).filter(|before| *before != self.timeline.gtids),
            // It was refused before, when it was admitted (`check_body`).
            Err(error) => {
                tracing::warn!(source = self.monitor.name(), "{error}; the GTID set shown may be incomplete")
            }
        }
    }

    /// The stream goes on in another file.
    fn switch_file(&mut self, name: &str) -> Result<(), SessionError> {
        self.sync()?;
        let Some(left) = self.cursor.left().cloned() else { return self.begin_file(name) };
        self.timeline.tail_start = left.tail_start;
        self.unproven = Some(Unproven { name: name.to_owned(), left, events: Vec::new() });
        Ok(())
    }

    /// Takes one of the first events of a file that is not proven yet. False when it stands behind those: then the file is
    /// proven, and the event is one as any other.
    fn first_of_file(
        &mut self,
        event: &[u8],
        step: Step,
        outside: &mut Outside<'_>,
    ) -> Result<bool, SessionError> {
        let event_type = EventType(event[4]);
        let stated = states_gtids(event_type);
        if !stated && !Unproven::is_header(event_type) {
            self.prove(None, outside)?;
            return Ok(false);
        }
        if let Some(unproven) = &mut self.unproven {
            unproven.events.push((event.to_vec(), step));
        }
        if stated {
            let body = &event[HEADER_LEN..event.len().saturating_sub(self.checksum_len()).max(HEADER_LEN)];
            // That it can be read was checked when it was admitted (`check_body`).
            self.prove(gtids_before(event_type, body).ok(), outside)?;
        }
        Ok(true)
    }

    /// Shows that the file continues what is held, and begins to store it.
    fn prove(&mut self, before: Option<GtidState>, outside: &mut Outside<'_>) -> Result<(), SessionError> {
        let Some(unproven) = self.unproven.take() else { return Ok(()) };
        let format = self.cursor.format().cloned();
        let is_announced = format.as_ref().is_some_and(|format| {
            let (held, unspoken) = (&self.timeline.gtids, &self.timeline.unspoken);
            unproven.is_announced(format, before.as_ref(), held, unspoken)
        });
        if !is_announced && !self.is_next_on_source(&unproven, before.as_ref(), outside)? {
            let Unproven { name, left, .. } = unproven;
            return Err(Refusal::from(NotNext { after: left.end, file: name }).into());
        }
        self.begin_file(&unproven.name)?;
        self.timeline.unspoken = match &before {
            Some(before) => self.timeline.gtids.subtract(before),
            None => GtidState::empty(self.timeline.gtids.flavour()),
        };
        for (event, step) in &unproven.events {
            self.timeline.log.append(&mut [IoSlice::new(event)])?;
            self.batch_is_written(event.len() as u64);
            self.stored(event, *step)?;
        }
        let now = self.now();
        self.unsynced_since.get_or_insert(now);
        Ok(())
    }

    /// Asks the source whether its own log goes from the end of what is held to the file that came.
    #[cold]
    fn is_next_on_source(
        &self,
        unproven: &Unproven,
        before: Option<&GtidState>,
        outside: &mut Outside<'_>,
    ) -> Result<bool, SessionError> {
        let (after, file) = (&unproven.left.end, &unproven.name);
        tracing::info!(
            source = self.monitor.name(),
            "asking the source whether {file} follows {after}: no event announces it, or its GTID set is not what is held"
        );
        let tail = self.timeline.tail()?;
        let end = End { at: after.clone(), format: self.timeline.format.as_ref(), tail: &tail, ahead: 0 };
        let link = match (outside.link)(&end) {
            Ok(link) => link,
            // It has no such file any more: what was received of it cannot be compared.
            Err(WireError::Server { .. }) => Link::OtherFile,
            Err(error) => return Err(SessionError::Unasked { file: file.clone(), error }),
        };
        let Link::Followed(next) = link else { return Ok(false) };
        let is_it = next.name == *file
            && self.cursor.format().is_some_and(|format| format.is_same_file(&next.format))
            && next.gtids_before.as_ref() == before;
        Ok(is_it)
    }

    fn checksum_len(&self) -> usize {
        self.cursor.format().map_or(0, |format| format.checksum.len())
    }

    fn begin_file(&mut self, name: &str) -> Result<(), SessionError> {
        self.timeline.log.begin_file(name)?;
        self.timeline.format = None;
        self.timeline.gtids_in_file.clear();
        self.unit_begins = 4;
        self.rungs.all_at(self.timeline.end());
        tracing::info!(source = self.monitor.name(), file = name, "receiving a new file");
        Ok(())
    }

    /// The source asks for an acknowledgement of the event that was just taken.
    ///
    /// # Errors
    /// When nobody can say of which place: what the source waits for must not be forgotten.
    pub(super) fn acknowledgement_wanted(&mut self, arrived: Instant) -> Result<(), SessionError> {
        if self.unasked.asked() {
            self.monitor.semi_sync_asked_again();
        }
        if let Some(withheld) = &mut self.withheld {
            let at = self.cursor.reached().ok_or(SessionError::Unplaced)?;
            let concerned = self.options.forks.as_ref().zip(self.cursor.committed());
            match concerned.filter(|(forks, id)| self.cursor.is_at_boundary() && forks.concerns(id)) {
                Some((_, id)) => withheld.compared.push((id, Wanted { at, arrived })),
                None => withheld.others = Some(arrived),
            }
            return Ok(());
        }
        let boundary = self.cursor.boundary().ok_or(SessionError::Unplaced)?;
        if self.cursor.is_at_boundary() {
            self.acknowledger.request(boundary, arrived);
            let _ = self.flagged.append(&self.unflagged);
            self.unflagged.clear();
        } else {
            self.monitor.counters.unexpected_ack_requests.fetch_add(1, Relaxed);
            self.acknowledger.request_at_next_boundary(arrived);
        }
        Ok(())
    }

    /// The first packet has told whether semi-sync is in force.
    pub(super) fn begin(&mut self, semi_sync: bool) {
        self.semi_sync = semi_sync;
        if semi_sync && self.options.forks.as_ref().is_some_and(|forks| forks.withholds()) {
            self.withheld = Some(Withheld::default());
            return;
        }
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

    /// As it has begun; what was withheld at the first event.
    pub(super) fn begun(&self) -> Begun {
        Begun { semi_sync: self.semi_sync, withheld: self.withheld.is_some() }
    }

    /// Writes the batch, makes it durable and acknowledges it if somebody waits for that, publishes.
    pub(super) fn settle(&mut self, buffer: &mut [u8], stream: &mut DumpStream) -> Result<(), SessionError> {
        if self.withheld.is_some() {
            self.write_batch(buffer)?;
            self.withhold(stream)?;
        } else if !self.acknowledger.is_owed() {
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
        self.heed_forks()?;
        self.sync_in_background()?;
        self.publish();
        Ok(())
    }

    /// Ends the session where the operator wants to decide about a fork.
    fn heed_forks(&self) -> Result<(), SessionError> {
        match self.options.forks.as_ref().and_then(|forks| forks.stops()) {
            Some(reason) => Err(SessionError::Forked(reason)),
            None => Ok(()),
        }
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
            publish_format(self.monitor, self.timeline);
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
        self.written_is_syncing();
        self.synced_is_durable();
    }

    /// What was committed until now belongs to the sync that begins.
    fn written_is_syncing(&mut self) {
        if let Some(before) = self.before.take() {
            let _ = self.syncing.union_with(&before);
            self.syncing_says_before = true;
        }
        if !self.unsynced.is_empty() {
            let _ = self.syncing.append(&self.unsynced);
            let _ = self.timeline.gtids_in_file.append(&self.unsynced);
            self.unsynced.clear();
        }
    }

    /// What the last sync covered is durable.
    fn synced_is_durable(&mut self) {
        if let Some(durable) = self.timeline.log.durable() {
            self.rungs.durable(durable.position());
        }
        if !self.syncing.is_empty() {
            let _ = self.timeline.gtids.append(&self.syncing);
            let never_held = self.timeline.gaps.never_held();
            if std::mem::take(&mut self.syncing_says_before) && !never_held.is_empty() {
                // What a file counts to what came before it was not all copied.
                let stored = self.syncing.subtract(never_held);
                self.monitor.publish_gtids(|gtids| gtids.durable.append(&stored));
            } else {
                self.monitor.publish_gtids(|gtids| gtids.durable.append(&self.syncing));
            }
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
            self.written_is_syncing();
            if self.is_in_file_of_log() && self.timeline.log.wants_mark(self.boundary()) {
                self.timeline.log.mark_when_synced(self.known());
            }
        }
        Ok(())
    }

    /// False when the cursor has begun a file that the log has not.
    fn is_in_file_of_log(&self) -> bool {
        let written = self.timeline.log.written();
        written.is_some_and(|written| {
            self.cursor.position().is_none_or(|position| *position.file == *written.position().file)
        })
    }

    /// The last boundary as an offset in its file, the log's where [`is_in_file_of_log`](Self::is_in_file_of_log).
    fn boundary(&self) -> u64 {
        // Without a boundary there is no file of the log either, and nothing behind its magic.
        self.cursor.boundary().map_or(BINLOG_MAGIC.len() as u64, |boundary| boundary.offset)
    }

    /// What a start need not check again once a sync has covered it: everything to the last boundary, all of which is written.
    fn known(&self) -> Known {
        debug_assert!(self.batch.is_empty() && self.unsynced.is_empty());
        Known {
            offset: self.boundary(),
            tail_start: self.cursor.tail_start(),
            last_timestamp: self.timeline.last_timestamp,
            gtids: self.timeline.gtids_in_file.clone(),
        }
    }

    fn acknowledge(&mut self, safe: Option<Safe>, stream: &mut DumpStream) -> Result<(), SessionError> {
        let (acknowledger, files) = (&mut self.acknowledger, self.timeline.log.files());
        let Some((packet, position, arrived)) = safe.and_then(|safe| acknowledger.pay(&safe, files)) else {
            return Ok(());
        };
        stream.write_all_blocking(packet, self.options.net_read_timeout).map_err(SessionError::Network)?;
        self.monitor.acknowledge_latency.record(self.since(arrived));
        self.monitor.counters.acknowledgements.fetch_add(1, Relaxed);
        if !std::mem::replace(&mut self.has_acknowledged, true) || self.monitor.semi_sync_wants_word() {
            // The source may have switched semi-sync on after the session began.
            self.monitor.semi_sync_acknowledges();
        }
        self.rungs.acknowledged(&position);
        let held = self.held.take();
        self.monitor.publish_gtids(|gtids| {
            if let Some(held) = held {
                gtids.acknowledged.replace(held);
            }
            gtids.acknowledged.append(&self.flagged);
        });
        self.flagged.clear();
        Ok(())
    }

    /// Acknowledges what was handed back, and when that was all, everything. What was asked for must be written.
    fn withhold(&mut self, stream: &mut DumpStream) -> Result<(), SessionError> {
        let options = self.options;
        let (Some(forks), Some(withheld)) = (options.forks.as_ref(), self.withheld.as_mut()) else {
            return Ok(());
        };
        if !forks.withholds() {
            let compared = withheld.compared.drain(..).map(|(_, wanted)| wanted.arrived);
            let arrived = compared.chain(withheld.others.take()).min();
            if let Some((arrived, end)) = arrived.zip(self.held_to()) {
                // What was asked for may lie in an earlier file; an acknowledgement of a later place covers it.
                self.acknowledger.request(&end, arrived);
                let _ = self.flagged.append(&self.unflagged);
                self.unflagged.clear();
            }
            self.withheld = None;
            // The journal goes on from what is durable.
            self.sync()?;
            self.begin(true);
            if self.withheld.is_none() {
                self.monitor.set_state(SourceState::Receiving);
            }
        } else if !withheld.compared.is_empty() {
            forks.compare();
            let mut waiting = Vec::new();
            for (id, wanted) in withheld.compared.drain(..) {
                match forks.is_handed_back(&id) {
                    Some(true) => {
                        let _ = self.flagged.insert(id);
                        // Just there, be it in an earlier file: any later place may cover what is withheld.
                        self.acknowledger.request(&wanted.at, wanted.arrived);
                    }
                    Some(false) => withheld.others = Some(wanted.arrived),
                    None => waiting.push((id, wanted)),
                }
            }
            withheld.compared = waiting;
        }
        if self.acknowledger.is_owed() {
            self.sync()?;
            let safe = self.timeline.log.durable().map(Safe::from);
            self.acknowledge(safe, stream)?;
        }
        Ok(())
    }

    /// The last boundary that is written. The stream may have begun another file, or may stand before it.
    fn held_to(&self) -> Option<Position> {
        let file = self.timeline.log.written()?.position().file.clone();
        let offset = match self.cursor.left().filter(|_| !self.is_in_file_of_log()) {
            Some(left) => left.boundary,
            None => self.boundary(),
        };
        Some(Position { file, offset })
    }

    /// Nothing has arrived for a while: what would wait for the next batch is done now.
    pub(super) fn tend(&mut self, stream: &mut DumpStream) -> Result<(), SessionError> {
        self.withhold(stream)?;
        self.heed_forks()?;
        self.sync_in_background()?;
        self.publish();
        Ok(())
    }

    /// True when no transaction has arrived in part.
    pub(super) fn is_at_boundary(&self) -> bool {
        self.large.is_none() && self.cursor.is_at_boundary()
    }

    fn now(&self) -> Instant {
        self.options.clock.now()
    }

    fn since(&self, earlier: Instant) -> Duration {
        self.now().saturating_duration_since(earlier)
    }

    /// Longest time until [`Sink::tend`] must be called; `None` when nothing waits for it.
    pub(super) fn tend_within(&self) -> Option<Duration> {
        let for_forks = match (&self.withheld, &self.options.forks) {
            (Some(withheld), _) if !withheld.compared.is_empty() => Some(COMPARED_LOOK),
            (_, Some(forks)) if forks.may_decide() => Some(FORKS_LOOK),
            _ => None,
        };
        let for_disk = self.tend_disk_within();
        for_forks.zip(for_disk).map(|(forks, disk)| forks.min(disk)).or(for_forks).or(for_disk)
    }

    fn tend_disk_within(&self) -> Option<Duration> {
        if self.timeline.log.is_syncing() && self.timeline.log.is_unsynced() {
            Some(BACKGROUND_SYNC_LOOK)
        } else {
            // The same each time, so that it costs no system call: the time limit of reads stays as it is.
            let asked = self.unasked.waits().then_some(ASKED_WITHIN);
            let sync = self.unsynced_since.map(|_| self.sync_after());
            asked.into_iter().chain(sync).min()
        }
    }

    /// Age of written bytes at which a sync of them begins.
    fn sync_after(&self) -> Duration {
        // Half of the limit: the thread may sleep as long again.
        if self.in_bulk { BACKGROUND_SYNC_LOOK } else { self.options.fsync_interval / 2 }
    }

    fn publish(&mut self) {
        if let Some(received) = self.cursor.position() {
            let written = self.timeline.log.written();
            self.rungs.received(&received, written.as_ref().map(Written::position));
        }
        // Counted before the positions are seen, so that who sees a position sees everything up to it counted.
        if self.events > 0 {
            self.monitor.publish_event_time(self.timeline.last_timestamp);
        }
        self.monitor.counters.events.fetch_add(std::mem::take(&mut self.events), Relaxed);
        self.monitor.counters.transactions.fetch_add(std::mem::take(&mut self.transactions), Relaxed);
        self.rungs.publish(self.monitor);
        if self.unasked.waits() && self.cursor.is_at_boundary() {
            self.tell_unasked();
        }
    }

    /// Semi-sync is lost, or the source has what it waits for from another replica: nobody waits for us here.
    fn tell_unasked(&mut self) {
        if let Some(transactions) = self.unasked.found(self.now()) {
            let last_gtid = self.cursor.committed().map(|id| id.to_string());
            self.monitor.semi_sync_unasked(transactions, last_gtid);
        }
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
            let (boundary, tail_start) = match self.cursor.left().filter(|_| !self.is_in_file_of_log()) {
                Some(left) => (left.boundary.min(written.offset), left.tail_start),
                None => (self.boundary(), self.cursor.tail_start()),
            };
            self.timeline.tail_start = tail_start;
            self.timeline.cut_to_boundary(boundary)?;
        }
        self.sync()?;
        if self.is_in_file_of_log() {
            self.timeline.log.mark(self.known());
        }
        // None when the log failed between two files; it is opened again from disk.
        if let Some(end) = self.timeline.end() {
            self.rungs.all_at(Some(end));
            self.rungs.publish(self.monitor);
        }
        Ok(())
    }
}

/// What tells the live file from another of its name.
fn publish_format(monitor: &SourceMonitor, timeline: &OpenTimeline) {
    if let (Some(end), Some(format)) = (timeline.end(), &timeline.format) {
        monitor.publish_live_format(&end.file, format);
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
