//! From admitted events to the acknowledgement: write the batch, sync it, acknowledge it, publish.
//!
//! | file | noun |
//! |---|---|
//! | `arrived.rs` | what becomes of an event |
//! | `batch.rs` | the pieces of the receive buffer that are written next |
//! | `large.rs` | an event that arrives in parts |
//! | `next_file.rs` | a file that the source goes on to |
//! | `gtids.rs` | how far the GTIDs have come |
//! | `acknowledgements.rs` | what the source asks for and is told, and what is withheld |
//! | `held.rs` | up to where everything is held |
//! | `tend.rs` | what is due while nothing arrives |
//! | `pace.rs` | when the next sync in the background is due |
//! | `readable.rs` | how far readers may read |
//! | `rungs.rs` | what is shown of the ladder and the file |

pub(crate) mod acknowledge;
mod acknowledgements;
mod arrived;
mod batch;
pub(crate) mod downstream;
mod gtids;
mod held;
mod large;
mod next_file;
mod pace;
pub(crate) mod publish;
mod readable;
mod rungs;
mod tend;

use super::session::{Begun, ReceiveOptions, SessionError};
use crate::attempt::open_timeline::OpenTimeline;
use crate::session::cursor::Cursor;
use crate::sink::downstream::Downstream;
use acknowledgements::Acknowledgements;
use batch::Batch;
use binlog::{SafeHere, Written};
use config::FsyncMode;
use gtids::GtidProgress;
use large::LargeEvent;
use next_file::NextFile;
use pace::SyncPace;
use readable::Readable;
use rungs::{Rungs, publish_format};
use status::{SourceMonitor, SourceState};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use wire::DumpStream;

/// From admitted events to the acknowledgement.
pub(crate) struct Sink<'a> {
    cursor: Cursor,
    timeline: &'a mut OpenTimeline,
    pub(crate) options: &'a ReceiveOptions,
    pub(crate) monitor: &'a SourceMonitor,
    batch: Batch,
    large: LargeEvent,
    next_file: NextFile,
    gtids: GtidProgress,
    acknowledgements: Acknowledgements,
    pace: SyncPace,
    rungs: Rungs,
    readable: Readable,
    /// Events stored since the last were published.
    events: u64,
    /// The same, transactions.
    transactions: u64,
    /// Where the unit begins in the file whose events arrive: a transaction, or an event outside any.
    unit_begins: u64,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(
        cursor: Cursor,
        timeline: &'a mut OpenTimeline,
        options: &'a ReceiveOptions,
        monitor: &'a SourceMonitor,
    ) -> Sink<'a> {
        let kind = timeline.gtids.kind();
        let rungs = Rungs::new(monitor, timeline.end());
        let held = Arc::new(timeline.gaps.stored(timeline.gtids.clone()));
        // Large sets are copied no more than needed.
        let is_whole = timeline.shared_before.is_empty() && timeline.gaps.never_held().is_empty();
        let durable = if is_whole { held.clone() } else { Arc::new(timeline.stored()) };
        let downstream = options
            .replicas()
            .map(|demand| Downstream::new(demand.clone(), options.published.clone(), timeline.folder()));
        let unit_begins = timeline.end().map_or(4, |end| end.offset);
        rungs.publish(monitor);
        let readable = Readable::new(options.published.clone(), timeline.folder(), timeline.end().as_ref());
        monitor.publish_gtids(|gtids| gtids.durable.replace(durable));
        timeline.log.leave_journal();
        publish_format(monitor, timeline);
        Sink {
            cursor,
            timeline,
            options,
            monitor,
            batch: Batch::new(),
            large: LargeEvent::default(),
            next_file: NextFile::default(),
            gtids: GtidProgress::new(kind, held),
            acknowledgements: Acknowledgements::new(downstream),
            pace: SyncPace::new(options.fsync_interval),
            rungs,
            readable,
            events: 0,
            transactions: 0,
            unit_begins,
        }
    }

    /// The source asks for an acknowledgement of the event that was just taken.
    ///
    /// # Errors
    /// When nobody can say of which place: what the source waits for must not be forgotten.
    pub(crate) fn acknowledgement_wanted(&mut self, arrived: Instant) -> Result<(), SessionError> {
        let forks = self.options.forks().map(Arc::as_ref);
        self.acknowledgements.wanted(&self.cursor, &mut self.gtids, forks, self.monitor, arrived)
    }

    /// The first packet has told whether semi-sync is in force.
    pub(crate) fn begin(&mut self, semi_sync: bool) {
        self.acknowledgements.begin(semi_sync);
        if semi_sync && self.options.forks().is_some_and(|forks| forks.withholds()) {
            self.acknowledgements.withhold();
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
    pub(crate) fn begun(&self) -> Begun {
        match (self.acknowledgements.are_withheld(), self.acknowledgements.is_semi_sync()) {
            (true, _) => Begun::Withholding,
            (false, true) => Begun::Acknowledging,
            (false, false) => Begun::WithoutSemiSync,
        }
    }

    /// Writes the batch, makes it durable and acknowledges it if somebody waits for that, publishes.
    pub(crate) fn settle(&mut self, buffer: &mut [u8], stream: &mut DumpStream) -> Result<(), SessionError> {
        if self.acknowledgements.held_has_passed(&self.cursor) {
            let now = self.now();
            self.acknowledgements.held_is_wanted(&self.cursor, &mut self.gtids, now);
        }
        if self.acknowledgements.are_withheld() {
            self.write_batch(buffer)?;
            self.withhold(stream)?;
        } else if !self.acknowledgements.are_owed() || self.only_others_are_waited_for() {
            self.write_batch(buffer)?;
        } else if self.options.fsync_mode == FsyncMode::WriteThenAcknowledge {
            self.write_batch(buffer)?;
            let safe = self.safe_here();
            self.acknowledge(safe, stream)?;
        } else if self.commit_batch(buffer)? {
            let safe = self.safe_here();
            // Whether or not it could be sent, the file must get what the journal has.
            let sent = self.acknowledge(safe, stream);
            self.timeline.log.write_behind()?;
            sent?;
        } else {
            self.write_batch(buffer)?;
            self.sync()?;
            let safe = self.safe_here();
            self.acknowledge(safe, stream)?;
        }
        self.heed_forks()?;
        self.sync_in_background()?;
        self.publish();
        self.heed_others(stream)
    }

    /// What is as safe on this machine as the operator asked for.
    fn safe_here(&self) -> Option<SafeHere> {
        let log = &self.timeline.log;
        match self.options.fsync_mode {
            FsyncMode::WriteThenAcknowledge => log.written().map(|written| written.accepted_unsynced()),
            FsyncMode::SyncThenAcknowledge => log.durable().map(SafeHere::from),
        }
    }

    /// Whether all that the source waits for is durable here.
    fn only_others_are_waited_for(&self) -> bool {
        self.acknowledgements.wait_for_others()
            && self.acknowledgements.wait_for_others_only(&self.timeline.log)
    }

    /// Acknowledges what receivers further down have confirmed by now, and minds how long they take.
    fn heed_others(&mut self, stream: &mut DumpStream) -> Result<(), SessionError> {
        if !self.acknowledgements.wait_for_others() {
            return Ok(());
        }
        let durable = self.timeline.log.durable();
        let durable = durable.as_ref().map(|durable| durable.position());
        let forks = self.options.forks().map(Arc::as_ref);
        self.acknowledgements.tend_node(self.timeline.log.files(), durable, forks, self.monitor)?;
        loop {
            let safe = self.safe_here();
            let reached = safe.as_ref().map(|safe| safe.position().clone());
            self.acknowledge(safe, stream)?;
            let (now, files) = (self.now(), self.timeline.log.files());
            if !self.acknowledgements.look_at_others(reached.as_ref(), files, now, self.monitor) {
                self.rungs.publish(self.monitor);
                return Ok(());
            }
        }
    }

    /// What is readable when a receiver further down has confirmed something; `None` where none is waited for.
    ///
    /// # Errors
    /// When the process has no descriptors left.
    pub(crate) fn others(&self) -> io::Result<Option<BorrowedFd<'a>>> {
        let listen = || self.options.published.confirmations().listen();
        self.options.replicas().map(|_| listen()).transpose()
    }

    /// Ends the session where the operator wants to decide about a fork.
    fn heed_forks(&self) -> Result<(), SessionError> {
        match self.options.forks().and_then(|forks| forks.stops()) {
            Some(reason) => Err(SessionError::Forked(reason)),
            None => Ok(()),
        }
    }

    /// Makes the batch durable through the journal. False when it must be written and synced in the file instead.
    fn commit_batch(&mut self, buffer: &[u8]) -> Result<bool, SessionError> {
        let began = self.now();
        if !self.batch.commit(buffer, &mut self.timeline.log)? {
            return Ok(false);
        }
        if !self.batch.is_empty() {
            self.count_sync(self.since(began));
            self.batch_is_written(self.batch.bytes());
        }
        self.everything_is_durable();
        Ok(true)
    }

    fn write_batch(&mut self, buffer: &mut [u8]) -> Result<(), SessionError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let bytes = self.batch.write(buffer, &mut self.timeline.log)?;
        self.batch_is_written(bytes);
        self.pace.written(self.now());
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
        self.pace.everything_is_durable();
        self.gtids.written_is_syncing(self.timeline);
        self.synced_is_durable();
    }

    /// What the last sync covered is durable.
    fn synced_is_durable(&mut self) {
        if let Some(durable) = self.timeline.log.durable() {
            self.rungs.durable(durable.position());
        }
        self.gtids.synced_is_durable(self.timeline, self.monitor);
    }

    /// Notices the end of a sync in the background, and begins the next where one is due.
    fn sync_in_background(&mut self) -> Result<(), SessionError> {
        let log = &mut self.timeline.log;
        if let Some(took) = log.end_background_sync()? {
            self.count_sync(took);
            self.synced_is_durable();
            self.readable.synced(|end| self.timeline.has_begun(end));
        }
        let is_due = self.pace.is_due(&*self.options.clock);
        let log = &mut self.timeline.log;
        let begun = if is_due || log.wants_background_sync() { log.begin_background_sync()? } else { None };
        if let Some(bytes) = begun {
            self.pace.background_sync_began(bytes);
            self.readable.syncing(self.boundary_in_log());
            self.gtids.written_is_syncing(self.timeline);
            if self.is_in_file_of_log() && self.timeline.log.wants_mark(self.boundary()) {
                self.timeline.log.mark_when_synced(self.known());
            }
        }
        Ok(())
    }

    /// Acknowledges what of `here` may be.
    fn acknowledge(&mut self, here: Option<SafeHere>, stream: &mut DumpStream) -> Result<(), SessionError> {
        let log = &self.timeline.log;
        let sent = self.acknowledgements.send(here, log, stream, self.options, self.monitor)?;
        if let Some(position) = sent {
            self.rungs.acknowledged(&position);
            self.gtids.are_acknowledged(&position, log, self.monitor);
        }
        Ok(())
    }

    /// Acknowledges what was handed back, and when that was all, everything. What was asked for must be written.
    fn withhold(&mut self, stream: &mut DumpStream) -> Result<(), SessionError> {
        let options = self.options;
        let Some(forks) = options.forks().filter(|_| self.acknowledgements.are_withheld()) else {
            return Ok(());
        };
        if !forks.withholds() {
            let (end, now) = (self.held_to(), self.now());
            self.acknowledgements.let_go(end, &self.cursor, &mut self.gtids, now)?;
            // The journal goes on from what is durable.
            self.sync()?;
            self.begin(true);
            if !self.acknowledgements.are_withheld() {
                self.monitor.set_state(SourceState::Receiving);
            }
        } else {
            self.acknowledgements.compare(forks, &mut self.gtids);
        }
        if self.acknowledgements.are_owed() {
            self.sync()?;
            let safe = self.timeline.log.durable().map(SafeHere::from);
            self.acknowledge(safe, stream)?;
        }
        Ok(())
    }

    /// True when no transaction has arrived in part.
    pub(crate) fn is_at_boundary(&self) -> bool {
        !self.large.is_under_way() && self.cursor.is_at_boundary()
    }

    fn now(&self) -> Instant {
        self.options.clock.now()
    }

    fn since(&self, earlier: Instant) -> Duration {
        self.now().saturating_duration_since(earlier)
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
        self.publish_readable();
        if self.acknowledgements.may_be_unasked() && self.cursor.is_at_boundary() {
            self.acknowledgements.tell_unasked(self.now(), &self.cursor, self.monitor);
        }
    }

    /// Ends the session: the beginning of a transaction that did not arrive to its end is dropped, the rest is synced.
    ///
    /// What was admitted before an error is sound, so it is written first: the cursor's boundary may lie in it.
    pub(crate) fn close(&mut self, buffer: &mut [u8]) -> Result<(), SessionError> {
        self.write_batch(buffer)?;
        let written = self.timeline.log.written().map(|written| written.position().clone());
        if let Some(written) = written {
            let (boundary, tail_start) = match self.cursor.left().filter(|_| !self.is_in_file_of_log()) {
                Some(left) => (left.boundary.min(written.offset), left.tail_start),
                None => (self.boundary(), self.cursor.tail_start()),
            };
            self.timeline.tail_start = tail_start;
            self.timeline.cut_to_boundary(boundary)?;
            self.monitor.discarded(written.offset.saturating_sub(boundary));
        }
        self.sync()?;
        if self.is_in_file_of_log() {
            self.timeline.log.mark(self.known());
        }
        // None when the log failed between two files; it is opened again from disk.
        if let Some(end) = self.timeline.end() {
            let published = &self.options.published;
            published.is_at(self.timeline.folder(), self.timeline.shown_end(published).as_ref());
            self.rungs.all_at(Some(end));
            self.rungs.publish(self.monitor);
        }
        Ok(())
    }
}
