//! What becomes of an event that has arrived: it joins the batch, or its file must first be proven.

use super::super::session::{Outside, Sender, SessionError};
use super::Sink;
use super::next_file::{First, stated};
use crate::session::cursor::Admission;
use crate::session::refusal::{PeerError, Refusal};
use binlog::Position;
use binlog::writer::admission::states_gtids;
use codec::event::boundary::Step;
use codec::event::{EventHeader, EventType, FLAGS_AT, HEADER_LEN, flags};
use codec::gtid::GtidState;
use std::io::IoSlice;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use wire::DumpStream;

impl Sink<'_> {
    /// Takes a whole event, which stands `at` in `buffer`.
    pub(crate) fn event(
        &mut self,
        buffer: &mut [u8],
        at: Range<usize>,
        stream: &mut DumpStream,
        outside: &mut Outside<'_>,
    ) -> Result<(), SessionError> {
        without_in_use(&mut buffer[at.clone()]);
        let event = &buffer[at.clone()];
        let admission = self.cursor.admit(event).inspect_err(|refusal| self.count_refusal(refusal))?;
        match admission {
            Admission::Store(step) if self.next_file.is_unproven() => {
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
                self.acknowledgements.caught_up();
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
    pub(crate) fn part(
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
            if self.next_file.is_unproven() && !states_gtids(header.event_type) {
                self.prove(None, outside)?;
            }
            self.large.begin(header, checksum, store);
        }
        // What states the GTIDs of a file that is not proven yet is collected whole.
        if self.large.add(bytes) && !self.next_file.is_unproven() {
            self.batch.push(at);
        }
        if !last {
            return Ok(());
        }
        let (header, checked) = self.large.end();
        if let Err(error) = checked {
            let at = self.cursor.position().unwrap_or_else(|| Position::new("(no file yet)", 0));
            let refusal = Refusal::from(PeerError::Event { event_type: header.event_type, at, error });
            self.count_refusal(&refusal);
            return Err(refusal.into());
        }
        let prefix = self.large.take_prefix();
        let admission = self.cursor.finish_large(&header, &prefix);
        let result = match admission? {
            Admission::Store(step) if self.next_file.is_unproven() => {
                self.first_of_file(&prefix, step, outside).map(drop)
            }
            Admission::Store(step) => self.stored(&prefix, step),
            _ => Ok(()),
        };
        self.large.give_back(prefix);
        result
    }

    /// The stream goes on in another file.
    fn switch_file(&mut self, name: &str) -> Result<(), SessionError> {
        self.sync()?;
        // All of the file that ends may be read, be the next one finished before a sync is due in it: readers, and the archive, would
        // stay behind where files follow each other faster than that.
        self.publish_readable();
        let Some(left) = self.cursor.left().cloned() else { return self.begin_file(name) };
        self.timeline.tail_start = left.tail_start;
        self.next_file.named(name, left);
        Ok(())
    }

    /// The sender has nothing more. Where a timeline of a binlogd has ended with the name of a file of which that one has nothing, that one
    /// has proven that the file follows, and the one before it is whole here, too, though it may end inside a transaction.
    pub(crate) fn dump_ends(&mut self) -> Result<(), SessionError> {
        let Sender::Source { is_ended: true, .. } = self.options.sender else { return Ok(()) };
        match self.next_file.take_unbegun() {
            Some(name) => self.begin_file(&name),
            None => Ok(()),
        }
    }

    /// Takes one of the first events of a file that is not proven yet. False when it stands behind those: then the file is
    /// proven, and the event is one as any other.
    fn first_of_file(
        &mut self,
        event: &[u8],
        step: Step,
        outside: &mut Outside<'_>,
    ) -> Result<bool, SessionError> {
        match self.next_file.take(event, step, self.checksum_len()) {
            First::Kept => Ok(true),
            First::States(before) => self.prove(before, outside).map(|()| true),
            First::Behind => self.prove(None, outside).map(|()| false),
        }
    }

    /// Shows that the file continues what is held, and begins to store it.
    fn prove(&mut self, before: Option<GtidState>, outside: &mut Outside<'_>) -> Result<(), SessionError> {
        let before = before.as_ref();
        let proven =
            self.next_file.prove(before, &self.cursor, self.timeline, self.monitor.name(), outside)?;
        let Some(file) = proven else { return Ok(()) };
        self.begin_file(&file.name)?;
        self.timeline.unspoken = match before {
            Some(before) => self.timeline.gtids.subtract(before),
            None => GtidState::empty(self.timeline.gtids.kind()),
        };
        for (event, step) in &file.events {
            self.timeline.log.append(&mut [IoSlice::new(event)])?;
            self.batch_is_written(event.len() as u64);
            self.stored(event, *step)?;
        }
        self.pace.written(self.now());
        Ok(())
    }

    fn begin_file(&mut self, name: &str) -> Result<(), SessionError> {
        self.timeline.log.begin_file(name)?;
        self.timeline.format = None;
        self.timeline.gtids_in_file.clear();
        self.unit_begins = 4;
        let end = self.timeline.end();
        self.readable.file_begins(self.timeline.folder(), end.as_ref());
        self.rungs.all_at(end);
        tracing::info!(source = self.monitor.name(), file = name, "receiving a new file");
        Ok(())
    }

    /// The source's word about what came before this file, so that the set is right from the first file on.
    fn file_begins_with(&mut self, event_type: EventType, event: &[u8]) {
        match stated(event_type, event, self.checksum_len()) {
            Ok(before) => self.gtids.said_before(before, &self.timeline.gtids),
            // It was refused before, when it was admitted (`check_body`).
            Err(error) => {
                tracing::warn!(source = self.monitor.name(), "{error}; the GTID set shown may be incomplete")
            }
        }
    }

    fn checksum_len(&self) -> usize {
        self.cursor.format().map_or(0, |format| format.checksum.len())
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
        if step.transaction {
            self.acknowledgements.transaction();
        }
        if step.transaction
            && let Some(id) = self.cursor.committed()
        {
            self.gtids.arrived(id, self.acknowledgements.is_semi_sync());
            if let Some(forks) = self.options.forks().filter(|forks| forks.concerns(&id))
                && let Some(boundary) = self.cursor.boundary()
            {
                forks.arrived(self.timeline.folder().join(&*boundary.file), self.unit_begins);
            }
        }
        if step.boundary
            && let Some(boundary) = self.cursor.boundary()
        {
            self.unit_begins = boundary.offset;
            self.acknowledgements.boundary_reached(boundary);
        }
        Ok(())
    }

    #[cold]
    fn count_refusal(&self, refusal: &Refusal) {
        if let Refusal::Peer(error) = refusal
            && error.is_checksum_failure()
        {
            self.monitor.counters.checksum_failures.fetch_add(1, Relaxed);
        }
    }
}

/// Takes [`flags::BINLOG_IN_USE`] out of a format description. Servers never send the flag, and the event's checksum is computed
/// without it (`Log_event_footer::event_checksum_test`), so that a wrong bit of the network in its place is noticed by nobody.
fn without_in_use(event: &mut [u8]) {
    if event.get(4) == Some(&EventType::FORMAT_DESCRIPTION.0)
        && let Some(low) = event.get_mut(FLAGS_AT)
    {
        *low &= !(flags::BINLOG_IN_USE as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_bit_in_the_place_of_the_flag_in_use_is_not_stored() {
        let event = |event_type: EventType, low: u8| {
            let mut event = vec![0; HEADER_LEN];
            (event[4], event[FLAGS_AT]) = (event_type.0, low);
            without_in_use(&mut event);
            event[FLAGS_AT]
        };
        assert_eq!(event(EventType::FORMAT_DESCRIPTION, 0x81), 0x80);
        assert_eq!(event(EventType::QUERY, 0x81), 0x81, "the checksum covers that of other events");
        without_in_use(&mut [0, 0, 0, 0, EventType::FORMAT_DESCRIPTION.0]);
    }
}
