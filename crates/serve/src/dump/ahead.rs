//! A reader that has more than the copy.

use super::{Dump, Failure, history};
use crate::dump::packets::PacketOut;
use crate::dump::refusal::{ReadSoFar, Refusal, Words};
use crate::dump::request::From;
use crate::history::look::NoPlace;
use crate::history::place;
use crate::history::place::Start;
use codec::Position;
use codec::packet::printable;
use std::time::Duration;

/// How often, and how long after each other, the copy is looked at before a reader that has more is refused: what the source
/// has sent to both of us arrives within a moment. A replica stops at a refusal and must be started by hand.
const AHEAD_LOOKS_MAX: u32 = 30;
const AHEAD_PAUSE: Duration = Duration::from_millis(100);

/// A copy whose newest event is older than so many seconds, and whose source has not fallen silent, has not caught up. Headers
/// tell whole seconds.
const BEHIND_SECONDS_MAX: u64 = 2;

/// A source that was not there for so long has nothing that the copy is about to get: a reader that has more is refused as by a
/// server, so that its operator sees why. Its source may be back within that time, as after a restart.
const GONE_FOR: Duration = Duration::from_secs(10);

/// Bytes of a GTID set that the log shows.
const LOGGED_BYTES_MAX: usize = 4096;

impl Dump<'_> {
    /// Finds the place at which the dump begins. A reader that comes from the source may be ahead of the copy by what is under
    /// way: it is waited for that. `None` when the reader is to come again.
    pub(super) fn begin(&mut self, out: &mut dyn PacketOut) -> Result<Option<Start>, Failure> {
        let mut looks = 0;
        loop {
            match place::find(&self.look(), self.request) {
                Ok(start) => {
                    // Of a copy that is behind nobody knows what it will have.
                    if !start.errant.is_empty() && !self.is_behind() {
                        self.say_errant(&start.errant);
                    }
                    return Ok(Some(start));
                }
                Err(NoPlace::Ahead(_) | NoPlace::Apart(_))
                    if looks < AHEAD_LOOKS_MAX && !out.is_cancelled() => {}
                Err(none) => return Err(self.no_place(none)),
            }
            looks += 1;
            self.served.waits.pause(AHEAD_PAUSE);
            let published = &self.served.published;
            let Some(live) = published.live().filter(|live| live.generation == self.live.generation) else {
                return Ok(None);
            };
            self.live = live;
            let read = history(self.served, self.request, &self.live).map_err(Failure::Failed)?;
            let Some(history) = read else { return Ok(None) };
            self.history = history;
        }
    }

    fn say_errant(&self, errant: &str) {
        let shown = printable(errant.as_bytes(), LOGGED_BYTES_MAX);
        tracing::warn!(
            "a reader has transactions that are not in the history which is served; they were committed elsewhere, or the source \
             has lost them: {shown} ({})",
            self.request.reader
        );
    }

    fn is_gone(&self) -> bool {
        let monitor = self.served.monitor.as_ref();
        monitor.and_then(|monitor| monitor.source_gone_for()).is_some_and(|gone| gone >= GONE_FOR)
    }

    /// Whether the source may have what the reader has and the copy lacks: the copy is not connected, has not caught up, or has
    /// received what readers may not have yet. Of a source that is gone nothing is on its way. Another binlogd knows by itself what
    /// to make of the place that there is not.
    fn is_behind(&self) -> bool {
        let Some(monitor) = &self.served.monitor else { return false };
        if self.is_gone() && self.request.timeline.is_none() {
            return false;
        }
        let received = monitor.positions().received;
        let is_published = received
            .is_some_and(|received| received.file == self.live.file && received.offset <= self.live.end());
        !is_published
            || monitor
                .seconds_behind((self.served.wall_time)())
                .is_none_or(|behind| behind > BEHIND_SECONDS_MAX)
    }

    /// A replica stops at a refusal, and must be started by hand. One that has more than a copy which lags is not refused so, but
    /// sent away to come again. MariaDB names the place that there is not.
    pub(super) fn no_place(&mut self, mut none: NoPlace) -> Failure {
        if matches!(none, NoPlace::Ahead(_)) && self.is_behind() {
            let end = Position { file: self.live.file.clone(), offset: self.live.end() };
            return Refusal::Behind { end }.into();
        }
        if let NoPlace::Ahead(Refusal::HasMoreGtids { more, is_named }) = &mut none {
            self.say_errant(more);
            *is_named = self.is_gone();
        }
        let is_old = |refusal: &Refusal| {
            matches!(refusal, Refusal::NoSuchFile | Refusal::Purged { .. } | Refusal::StateTooOld)
        };
        if matches!(&none, NoPlace::Refused(refusal) if is_old(refusal))
            && self.served.storage.may_have_more()
        {
            return Refusal::PastNotKnown.into();
        }
        let refusal = match &none {
            NoPlace::Refused(refusal) | NoPlace::Ahead(refusal) | NoPlace::Apart(refusal) => Some(refusal),
            NoPlace::Failed(_) => None,
        };
        if let (Some(Refusal::PositionBefore4 | Refusal::PositionPastEnd), Words::Mariadb) =
            (refusal, self.words)
            && let From::Position { file, offset } = &self.request.from
        {
            let first = Position::new(file.as_str(), *offset);
            let event = Position::new(file.as_str(), 4);
            self.so_far = Some(ReadSoFar { first, byte: event.clone(), event });
        }
        none.into()
    }
}
