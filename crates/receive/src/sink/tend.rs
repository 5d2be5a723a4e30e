//! What is due while nothing arrives, and when.

use super::super::session::SessionError;
use super::Sink;
use super::pace::BACKGROUND_SYNC_LOOK;
use crate::session::unasked::ASKED_WITHIN;
use std::time::Duration;
use wire::DumpStream;

/// How long it may go unnoticed, while nothing arrives, that acknowledgements are not withheld any more.
const FORKS_LOOK: Duration = Duration::from_millis(200);

/// The same, that the copy was read and a transaction can be compared.
const COMPARED_LOOK: Duration = Duration::from_millis(10);

impl Sink<'_> {
    /// Nothing has arrived for a while: what would wait for the next batch is done now.
    pub(crate) fn tend(&mut self, stream: &mut DumpStream) -> Result<(), SessionError> {
        self.withhold(stream)?;
        self.heed_forks()?;
        self.sync_in_background()?;
        self.publish();
        self.heed_others(stream)
    }

    /// Longest time until [`Sink::tend`] must be called; `None` when nothing waits for it.
    pub(in super::super) fn tend_within(&self) -> Option<Duration> {
        let for_forks = match self.options.forks() {
            _ if self.acknowledgements.wait_for_comparison() => Some(COMPARED_LOOK),
            Some(forks) if forks.may_decide() => Some(FORKS_LOOK),
            _ => None,
        };
        let for_others = match self.acknowledgements.wait_for_others() {
            true => self.acknowledgements.look_at_others_within(self.now()),
            false => None,
        };
        [for_forks, self.tend_disk_within(), for_others].into_iter().flatten().min()
    }

    fn tend_disk_within(&self) -> Option<Duration> {
        if self.timeline.log.is_syncing() && self.timeline.log.is_unsynced() {
            Some(BACKGROUND_SYNC_LOOK)
        } else {
            // The same each time, so that it costs no system call: the time limit of reads stays as it is.
            let asked = self.acknowledgements.may_be_unasked().then_some(ASKED_WITHIN);
            asked.into_iter().chain(self.pace.look_within()).min()
        }
    }
}
