//! What a session shows of the ladder, and of the file that it writes. It is written to and published, and never asked: what is acknowledged comes from the
//! cursor and the log, not from what is shown.

use crate::attempt::open_timeline::OpenTimeline;
use binlog::Position;
use status::{Ladder, SourceMonitor};

/// The ladder of a session.
pub(super) struct Rungs(Ladder);

impl Rungs {
    /// For a session that begins at the end of what is held. What was acknowledged before stays shown.
    pub(super) fn new(monitor: &SourceMonitor, end: Option<Position>) -> Rungs {
        let mut rungs = Rungs(monitor.positions());
        rungs.all_at(end);
        rungs
    }

    /// Nothing is between what has arrived and what is durable.
    pub(super) fn all_at(&mut self, end: Option<Position>) {
        (self.0.received, self.0.written, self.0.durable) = (end.clone(), end.clone(), end);
    }

    /// What has arrived, and how far it is written.
    pub(super) fn received(&mut self, received: &Position, written: Option<&Position>) {
        set(&mut self.0.received, received);
        let Some(written) = written else { return };
        let mut written = written.clone();
        if *written.file == *received.file {
            // Parts of an event that is not whole yet are on disk, but they are not part of the ladder.
            written.offset = written.offset.min(received.offset);
        }
        set(&mut self.0.written, &written);
        if let Some(durable) = self.0.durable.as_mut().filter(|rung| *rung.file == *written.file) {
            durable.offset = durable.offset.min(written.offset);
        }
    }

    /// A sync has covered it.
    pub(super) fn durable(&mut self, at: &Position) {
        set(&mut self.0.durable, at);
    }

    /// The source was told.
    pub(super) fn acknowledged(&mut self, at: &Position) {
        set(&mut self.0.acknowledged, at);
    }

    /// Shows them, all of one moment.
    pub(super) fn publish(&self, monitor: &SourceMonitor) {
        monitor.publish_positions(&self.0);
    }
}

/// A rung that stays in its file keeps the name that readers have.
fn set(rung: &mut Option<Position>, at: &Position) {
    match rung {
        Some(rung) if *rung.file == *at.file => rung.offset = at.offset,
        rung => *rung = Some(at.clone()),
    }
}

/// What tells the live file from another of its name.
pub(super) fn publish_format(monitor: &SourceMonitor, timeline: &OpenTimeline) {
    if let (Some(end), Some(format)) = (timeline.end(), &timeline.format) {
        monitor.publish_live_format(&end.file, format);
    }
}
