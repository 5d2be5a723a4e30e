//! A file that begins: what it says came before it, and whether it continues what is held.

use super::super::link::{End, Link};
use super::super::refusal::{NotNext, Refusal};
use super::super::session::{Outside, SessionError};
use super::super::unproven::Unproven;
use super::Sink;
use codec::event::boundary::Step;
use codec::event::{EventType, HEADER_LEN};
use codec::gtid::GtidState;
use log::admission::{gtids_before, states_gtids};
use std::io::IoSlice;
use wire::WireError;

impl Sink<'_> {
    /// The source's word about what came before this file, so that the set is right from the first file on.
    pub(super) fn file_begins_with(&mut self, event_type: EventType, event: &[u8]) {
        let body = &event[HEADER_LEN..event.len().saturating_sub(self.checksum_len()).max(HEADER_LEN)];
        match gtids_before(event_type, body) {
            Ok(before) => self.gtids.said_before(before, &self.timeline.gtids),
            // It was refused before, when it was admitted (`check_body`).
            Err(error) => {
                tracing::warn!(source = self.monitor.name(), "{error}; the GTID set shown may be incomplete")
            }
        }
    }

    /// The stream goes on in another file.
    pub(super) fn switch_file(&mut self, name: &str) -> Result<(), SessionError> {
        self.sync()?;
        let Some(left) = self.cursor.left().cloned() else { return self.begin_file(name) };
        self.timeline.tail_start = left.tail_start;
        self.unproven = Some(Unproven { name: name.to_owned(), left, events: Vec::new() });
        Ok(())
    }

    /// Takes one of the first events of a file that is not proven yet. False when it stands behind those: then the file is
    /// proven, and the event is one as any other.
    pub(super) fn first_of_file(
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
    pub(super) fn prove(
        &mut self,
        before: Option<GtidState>,
        outside: &mut Outside<'_>,
    ) -> Result<(), SessionError> {
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
        self.pace.written(self.now());
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
}
