//! What an acknowledgement waits for beside our own disk: with `ack_after_replicas = N`, until N different receivers further down
//! have made the same bytes durable.
//!
//! ```text
//! durable here ─► published ─► readers confirm (binlog/writer/confirmations.rs) ─► this thread wakes up ─► acknowledged
//! ```
//!
//! The receiving thread waits for nobody: it goes on receiving while acknowledgements are held. What may be acknowledged is the
//! smaller of what is safe here and what is confirmed there, and is made here and nowhere else.

use binlog::writer::published::{Live, Published};
use binlog::{Position, Safe, SafeHere, is_covered};
use config::AckTimeoutAction;
use quorum::{Node, NodeError};
use source::clock::Clock;
use status::{SourceMonitor, SourceState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// After acknowledging alone, the receivers have caught up when they confirm what has just become durable within this time, or
/// within `ack_timeout` where that is shorter.
const CAUGHT_UP_WITHIN: Duration = Duration::from_secs(1);

/// What was held for longer is acknowledged by a new session, which compares the place with the source's log first: a reset tells a
/// replica nothing, and to a source whose logs began anew an old place acknowledges new transactions.
pub(crate) const HELD_MAX: Duration = Duration::from_secs(2);

/// The same, of what nobody but the disk here has held. More, so that a disk which is slow now and then does not end sessions; and
/// less than the ten seconds for which a source waits by its default.
pub(crate) const STALLED_MAX: Duration = Duration::from_secs(5);

/// What the operator demands of receivers further down.
#[derive(Debug, Clone)]
pub struct ReplicaDemand {
    /// How many different ones must have confirmed; not 0.
    pub wanted: u32,
    /// How long they are waited for.
    pub timeout: Duration,
    /// What happens then.
    pub action: AckTimeoutAction,
    /// They have not come in time, and binlogd goes on without them. Outlasts a session.
    pub alone: Arc<AtomicBool>,
    /// They are the other nodes of this quorum, which confirm in its epochs. `None`: receivers further down.
    pub quorum: Option<Quorum>,
}

/// This binlogd as a node of a quorum, for one session.
#[derive(Debug, Clone)]
pub struct Quorum {
    /// The node.
    pub node: Arc<Node>,
    /// It counted when the session was begun. Without that the session has no semi-sync.
    pub counted: bool,
}

/// Why the session of a node of a quorum ends.
pub(crate) enum NodeEnds {
    /// It counts in that epoch, and the session, which was begun before, has no semi-sync.
    Counts(u64),
    /// Another server is the source by now, in words.
    Left(String),
    /// What it must not forget cannot be written down.
    Unwritten(NodeError),
}

/// How the receivers below one timeline stand.
#[derive(Debug)]
pub(crate) struct Downstream {
    demand: ReplicaDemand,
    published: Arc<Published>,
    /// Folder of the timeline that the session writes.
    timeline: PathBuf,
    /// It was said that they do not come.
    is_told: bool,
    /// While it is gone on alone: a place that was durable then.
    mark: Option<(Position, Instant)>,
    /// Files of the timeline when the node was told of one last.
    files: usize,
    /// The node was not told yet that nothing is withheld from the source.
    may_withhold: bool,
    /// Changes of the node's memory when it was asked last whether another server is the source.
    changes: Option<u64>,
}

/// What may be acknowledged of what is safe here. `files` are the log's, in order. `None` while nothing may.
pub(crate) fn safe(
    downstream: Option<&mut Downstream>,
    here: SafeHere,
    files: &[String],
    clock: &dyn Clock,
    monitor: &SourceMonitor,
) -> Option<Safe> {
    let Some(downstream) = downstream else { return Some(here.alone()) };
    if !downstream.counts(&here) {
        return None;
    }
    let Downstream { demand, published, timeline, .. } = &downstream;
    let there = published.confirmed(timeline, demand.wanted, files);
    if demand.alone.load(Relaxed) {
        downstream.look_whether_caught_up(
            &here,
            there.as_ref().map(|there| there.position()),
            files,
            clock.now(),
            monitor,
        );
        return Some(here.alone());
    }
    there.map(|there| here.and_there(&there, files))
}

impl Downstream {
    /// For a session that writes `timeline`.
    pub(crate) fn new(demand: ReplicaDemand, published: Arc<Published>, timeline: &Path) -> Downstream {
        Downstream {
            demand,
            published,
            timeline: timeline.to_owned(),
            is_told: false,
            mark: None,
            files: 0,
            may_withhold: true,
            changes: None,
        }
    }

    /// Whether this node of a quorum may acknowledge: it counts, and so in an epoch whose source this session receives from.
    fn counts(&self, here: &SafeHere) -> bool {
        let Some(Quorum { node, .. }) = &self.demand.quorum else { return true };
        node.is_durable(here.position());
        node.epoch() > 0
    }

    /// Where the copy of a node of a quorum has come to: it may count from now on. `withholds`: the source lacks, or may lack, what
    /// the copy holds. A session without semi-sync learns the end of that here only.
    ///
    /// # Errors
    /// When the session is to end.
    pub(crate) fn tend(
        &mut self,
        files: &[String],
        durable: Option<&Position>,
        withholds: bool,
        monitor: &SourceMonitor,
    ) -> Result<(), NodeEnds> {
        let Some(Quorum { node, counted }) = self.demand.quorum.as_ref() else { return Ok(()) };
        // The word that ends a session is lost while it does not read: while it begins, and while it waits for the disk.
        let changes = Some(node.changes());
        if self.changes != changes {
            if let Some(words) = node.is_left_for() {
                return Err(NodeEnds::Left(words));
            }
            if *counted && node.memory().accepted().is_none() {
                return Err(NodeEnds::Left("this node counts in the quorum no more".to_owned()));
            }
            self.changes = changes;
        }
        let Some(durable) = durable else { return Ok(()) };
        let is_live = |live: &Arc<Live>| files.last().is_some_and(|last| *live.file == **last);
        if self.files != files.len() && self.published.live().as_ref().is_some_and(is_live) {
            self.files = files.len();
            node.file_begins();
        }
        if self.may_withhold && !withholds {
            node.released().map_err(NodeEnds::Unwritten)?;
            self.may_withhold = false;
        }
        let held = || (*monitor.gtids().durable).clone();
        node.tend(&self.timeline, files, durable, held).map_err(NodeEnds::Unwritten)?;
        match node.epoch() {
            epoch if epoch > 0 && !counted => Err(NodeEnds::Counts(epoch)),
            _ => Ok(()),
        }
    }

    /// Whether binlogd goes on without them.
    pub(crate) fn is_alone(&self) -> bool {
        self.demand.alone.load(Relaxed)
    }

    /// How long after its arrival a request is overdue; `None` when nobody waits for that.
    pub(crate) fn overdue_after(&self) -> Option<Duration> {
        let is_known = self.is_told || self.is_alone();
        (!is_known).then_some(self.demand.timeout)
    }

    /// Shows how many receivers have confirmed `at`.
    pub(crate) fn show(&self, at: &Position, files: &[String], waiting: bool, monitor: &SourceMonitor) {
        let confirmed = self.published.confirmed_by(&self.timeline, at, files);
        monitor.ack_replicas.publish(confirmed, waiting, self.is_alone());
    }

    /// The oldest request is older than `ack_timeout`, and nobody has said so yet. True when it is to be acknowledged alone.
    #[cold]
    pub(crate) fn does_not_come(&mut self, at: &Position, files: &[String], monitor: &SourceMonitor) -> bool {
        let ReplicaDemand { wanted, timeout, action, alone, .. } = &self.demand;
        let confirmed = self.published.confirmed_by(&self.timeline, at, files);
        let who = match self.demand.quorum {
            Some(_) => "other nodes (quorum)",
            None => "receivers (ack_after_replicas)",
        };
        let what =
            format!("{confirmed} of {wanted} {who} have confirmed {at} within {timeout:?} (ack_timeout)");
        let source = monitor.name();
        match action {
            AckTimeoutAction::GoOn => {
                alone.store(true, Relaxed);
                if *timeout >= HELD_MAX {
                    // By the place at which the next session begins.
                    monitor.counters.acknowledged_alone.fetch_add(1, Relaxed);
                }
                tracing::error!(
                    source,
                    "acknowledging alone from now on: {what}. What is acknowledged is durable here, and nowhere else as far as is \
                     known (ack_timeout_action = \"go_on\")"
                );
                monitor.set_error(format!("acknowledging alone: {what}"));
                true
            }
            AckTimeoutAction::Wait => {
                self.is_told = true;
                tracing::error!(
                    source,
                    "acknowledgements are held: {what}. Commits wait on the source, until they come or the source's own \
                     semi-sync timeout is over (ack_timeout_action = \"wait\")"
                );
                monitor.set_error(format!("acknowledgements are held: {what}"));
                if monitor.state() == SourceState::Receiving {
                    monitor.set_state(SourceState::WaitingForReplicas);
                }
                false
            }
        }
    }

    /// Everything that was asked for is acknowledged.
    pub(crate) fn has_come(&mut self, monitor: &SourceMonitor) {
        if std::mem::take(&mut self.is_told) {
            tracing::info!(
                source = monitor.name(),
                "the receivers have confirmed what was held: acknowledging again"
            );
            if monitor.state() == SourceState::WaitingForReplicas {
                monitor.set_state(SourceState::Receiving);
            }
        }
    }

    /// Demands the receivers again when they keep up.
    fn look_whether_caught_up(
        &mut self,
        here: &SafeHere,
        there: Option<&Position>,
        files: &[String],
        now: Instant,
        monitor: &SourceMonitor,
    ) {
        let Some((at, since)) = &self.mark else {
            self.mark = Some((here.position().clone(), now));
            return;
        };
        if !there.is_some_and(|there| is_covered(at, there, files)) {
            return;
        }
        if now.saturating_duration_since(*since) > CAUGHT_UP_WITHIN.min(self.demand.timeout)
            && !there.is_some_and(|there| is_covered(here.position(), there, files))
        {
            // They have come to a place of long ago.
            self.mark = Some((here.position().clone(), now));
            return;
        }
        self.mark = None;
        self.demand.alone.store(false, Relaxed);
        tracing::info!(
            source = monitor.name(),
            "{} receivers have caught up: acknowledgements wait for them again (ack_after_replicas)",
            self.demand.wanted
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::storage::posix::PosixStorage;
    use codec::ServerKind;
    use codec::gtid::{GtidState, Uuid};
    use quorum::{Accepted, Ballot, Kind, Request};

    const SOURCE: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    /// The watch may see between two looks of the session that nothing is lacking, and the session has no semi-sync to withhold.
    #[test]
    fn a_node_counts_once_nothing_is_withheld_whoever_saw_that() {
        let dir = tempfile::tempdir().unwrap();
        let timeline = dir.path().join("0001");
        std::fs::create_dir(&timeline).unwrap();
        let published = Arc::<Published>::default();
        let others = vec!["two".to_owned(), "three".to_owned()];
        let (storage, folder) = (Arc::new(PosixStorage), dir.path().to_owned());
        let node = Arc::new(Node::new(storage, folder, published.clone(), others, Box::new(drop)));
        node.open(Uuid::from_bytes([1; 16])).unwrap();
        let ballot = Ballot::above(0, [1; 16]);
        let place = quorum::Place { file: "b.000001".to_owned(), identity: 0, offset: 4 };
        let history = GtidState::empty(ServerKind::MySql);
        let members = [Uuid::from_bytes([1; 16])].into();
        let source = SOURCE.to_owned();
        let accepted = Accepted { ballot, founded: ballot, source, members, history, place };
        let empty = || GtidState::empty(ServerKind::MySql);
        for request in [
            Request::Promise(ballot, Kind::Founding),
            Request::Record(accepted.clone()),
            Request::Accept(accepted.clone()),
        ] {
            node.answer(&request, empty).unwrap();
        }
        node.attached(&timeline, SOURCE, Some(true)).unwrap();

        let demand = ReplicaDemand {
            wanted: 1,
            timeout: Duration::from_secs(1),
            action: AckTimeoutAction::Wait,
            alone: Arc::default(),
            quorum: Some(Quorum { node: node.clone(), counted: false }),
        };
        let mut downstream = Downstream::new(demand, published, &timeline);
        let (files, end) = (["b.000001".to_owned()], Position::new("b.000001", 120));
        let monitor = SourceMonitor::new("one");
        assert!(downstream.tend(&files, Some(&end), true, &monitor).is_ok());
        assert_eq!(node.epoch(), 0, "the source may lack something");
        let ends = downstream.tend(&files, Some(&end), false, &monitor);
        assert!(matches!(ends, Err(NodeEnds::Counts(1))), "a session with semi-sync is begun");
    }
}
