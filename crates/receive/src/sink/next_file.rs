//! A file that the source goes on to: its first events, and whether it continues what is held.

use super::super::session::{Outside, SessionError};
use crate::attempt::open_timeline::OpenTimeline;
use crate::session::cursor::Cursor;
use crate::session::left_file::LeftFile;
use crate::session::refusal::{NotNext, Refusal};
use crate::session::unproven::Unproven;
use binlog::writer::admission::{gtids_before, states_gtids};
use codec::event::boundary::Step;
use codec::event::{EventError, EventType, HEADER_LEN};
use codec::gtid::GtidState;
use source::link::{End, Link};
use wire::WireError;

/// Most events that are kept of a file which nobody has proven yet. A server begins a file with two or three.
const HEADERS_MAX: usize = 16;

/// The file that begins, until it is shown that it continues what is held. The log has not begun it.
#[derive(Debug, Default)]
pub(super) struct NextFile {
    unproven: Option<Unproven>,
}

/// What an event at the beginning of a file is.
pub(super) enum First {
    /// It stands before the one that states GTIDs, and is kept.
    Kept,
    /// It is kept too, and says what came before the file.
    States(Option<GtidState>),
    /// It stands behind those, and is not kept.
    Behind,
}

impl NextFile {
    /// True while events of a file arrive that is not proven yet.
    pub(super) fn is_unproven(&self) -> bool {
        self.unproven.is_some()
    }

    /// The source goes on to the file `name`.
    pub(super) fn named(&mut self, name: &str, left: LeftFile) {
        self.unproven = Some(Unproven { name: name.to_owned(), left, events: Vec::new() });
    }

    /// The name of a file of which nothing has arrived, once.
    pub(super) fn take_unbegun(&mut self) -> Option<String> {
        Some(self.unproven.take_if(|unproven| unproven.events.is_empty())?.name)
    }

    /// Takes one of the first events of a file that is not proven yet.
    pub(super) fn take(&mut self, event: &[u8], step: Step, checksum_len: usize) -> First {
        let event_type = EventType(event[4]);
        let states = states_gtids(event_type);
        let is_full = self.unproven.as_ref().is_some_and(|unproven| unproven.events.len() >= HEADERS_MAX);
        if !states && (is_full || !Unproven::is_header(event_type)) {
            return First::Behind;
        }
        if let Some(unproven) = &mut self.unproven {
            unproven.events.push((event.to_vec(), step));
        }
        if !states {
            return First::Kept;
        }
        // That it can be read was checked when it was admitted (`check_body`).
        First::States(stated(event_type, event, checksum_len).ok())
    }

    /// Shows that the file continues what is held. The value is the file, once.
    ///
    /// # Errors
    /// When it does not, or nobody can say.
    pub(super) fn prove(
        &mut self,
        before: Option<&GtidState>,
        cursor: &Cursor,
        timeline: &OpenTimeline,
        source: &str,
        outside: &mut Outside<'_>,
    ) -> Result<Option<Unproven>, SessionError> {
        let Some(unproven) = self.unproven.take() else { return Ok(None) };
        let is_announced = cursor
            .format()
            .is_some_and(|format| unproven.is_announced(format, before, &timeline.gtids, &timeline.unspoken));
        if is_announced || is_next_on_source(&unproven, before, cursor, timeline, source, outside)? {
            return Ok(Some(unproven));
        }
        let Unproven { name, left, .. } = unproven;
        Err(Refusal::from(NotNext { after: left.end, file: name }).into())
    }
}

/// What an event says came before its file.
pub(super) fn stated(
    event_type: EventType,
    event: &[u8],
    checksum_len: usize,
) -> Result<GtidState, EventError> {
    gtids_before(event_type, &event[HEADER_LEN..event.len().saturating_sub(checksum_len).max(HEADER_LEN)])
}

/// Asks the source whether its own log goes from the end of what is held to the file that came.
#[cold]
fn is_next_on_source(
    unproven: &Unproven,
    before: Option<&GtidState>,
    cursor: &Cursor,
    timeline: &OpenTimeline,
    source: &str,
    outside: &mut Outside<'_>,
) -> Result<bool, SessionError> {
    let (after, file) = (&unproven.left.end, &unproven.name);
    tracing::info!(
        source,
        "asking the source whether {file} follows {after}: no event announces it, or its GTID set is not what is held"
    );
    let tail = timeline.tail()?;
    let end = End { at: after.clone(), format: timeline.format.as_ref(), tail: &tail, ahead: 0 };
    let link = match (outside.link)(&end) {
        Ok(link) => link,
        // It has no such file any more: what was received of it cannot be compared.
        Err(WireError::Server { .. }) => Link::OtherFile,
        Err(error) => return Err(SessionError::Unasked { file: file.clone(), error }),
    };
    let Link::Followed(next) = link else { return Ok(false) };
    let is_it = next.name == *file
        && cursor.format().is_some_and(|format| format.is_same_file(&next.format))
        && next.gtids_before.as_ref() == before;
    Ok(is_it)
}
