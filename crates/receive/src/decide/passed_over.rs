//! Which files of the copy a session asks for once more, because the position at which a semi-sync replica begins acknowledges, to a
//! source, all that comes before it (`ReplSemiSyncMaster::dump_start` and `reportReplyBinlog`).
//!
//! So a session begins at no place up to which something is not to be acknowledged: while acknowledgements are withheld
//! (`on_fork`), and with `ack_after_replicas` behind what enough receivers have confirmed. What is held is passed over.

use super::fork_watch::ForkWatch;
use crate::attempt::ask::Attempt;
use crate::attempt::attempt_error::AttemptError;
use crate::attempt::copy::HeldCopy;
use crate::sink::downstream::ReplicaDemand;
use crate::watch::counters::may_wait;
use binlog::is_covered;
use config::OnFork;
use source::identify::SourceIdentity;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use wire::Connection;

/// Before a session begins, so long it is waited for what became of what forks took from the source.
const FORKS_READ_MAX: Duration = Duration::from_secs(2);

/// The same, for the other nodes of a quorum to confirm what is held.
const NODES_MAX: Duration = Duration::from_millis(500);

/// Pause between two looks at that.
const FORKS_LOOK: Duration = Duration::from_millis(10);

impl Attempt<'_> {
    /// The files of the copy that are asked for once more; the last is the one in which it ends. Empty where the session may begin
    /// at the end of the copy.
    pub(crate) fn passed_over(
        &self,
        connection: &mut Connection,
        copy: &HeldCopy,
        source: &SourceIdentity,
        forks: Option<&ForkWatch>,
        replicas: Option<&ReplicaDemand>,
    ) -> Result<Vec<Arc<str>>, AttemptError> {
        let files = copy.timeline().map(|timeline| timeline.log.files()).unwrap_or_default();
        if let Some(demand) = replicas.filter(|demand| demand.quorum.is_some()) {
            self.wait_for_nodes(copy, demand);
        }
        let withheld = forks.is_some_and(|forks| self.are_withheld(forks));
        let from =
            if withheld { Some(0) } else { replicas.and_then(|demand| self.unconfirmed(copy, demand)) };
        let (Some(from), Some(last)) = (from, files.last()) else { return Ok(Vec::new()) };
        let files = &files[from..];
        // What stands in an earlier file can only wait there since then, so it waits now.
        if files.len() == 1 || !may_wait(connection) {
            return Ok(vec![last.as_str().into()]);
        }
        let oldest = self.look(copy, source, "")?;
        Ok(oldest.not_purged(files)?.iter().map(|file| file.as_str().into()).collect())
    }

    /// The other nodes of a quorum tell how far they are all the time: where they have what is held, that is known in a moment.
    fn wait_for_nodes(&self, copy: &HeldCopy, demand: &ReplicaDemand) {
        let until = self.upstream.clock.now() + NODES_MAX;
        while self.unconfirmed(copy, demand).is_some()
            && self.upstream.clock.now() < until
            && !self.upstream.clock.pause(&self.upstream.stop, FORKS_LOOK)
        {}
    }

    /// Whether acknowledgements are withheld, once that is known.
    fn are_withheld(&self, forks: &ForkWatch) -> bool {
        let until = self.upstream.clock.now() + FORKS_READ_MAX;
        while self.upstream.config.on_fork == OnFork::Withhold
            && !forks.has_decided()
            && self.upstream.clock.now() < until
            && !self.upstream.clock.pause(&self.upstream.stop, FORKS_LOOK)
        {}
        forks.withholds()
    }

    /// The first of the copy's files of which enough receivers have not confirmed everything that the copy holds; `None` when they
    /// have, or where binlogd goes on without them.
    fn unconfirmed(&self, copy: &HeldCopy, demand: &ReplicaDemand) -> Option<usize> {
        let timeline = copy.timeline()?;
        let (files, end) = (timeline.log.files(), timeline.end()?);
        if demand.alone.load(Relaxed) {
            return None;
        }
        let Some(there) = self.upstream.published.confirmed(timeline.folder(), demand.wanted, files) else {
            return Some(0);
        };
        if is_covered(&end, there.position(), files) {
            return None;
        }
        files.iter().rposition(|file| **file == *there.position().file).or(Some(0))
    }
}
