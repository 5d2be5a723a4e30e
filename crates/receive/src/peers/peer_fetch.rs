//! Fetching the end of the newest timeline from a peer: a session as with the source, but for what only a source is owed.
//!
//! The peer sends the timeline as it stands, by file and position, up to where it ends there (`@binlogd_timeline`). The same
//! cursor and the same sink take it: each byte is verified, the end of the copy is compared first, and a file that follows is
//! proven. No semi-sync is offered, so nothing is acknowledged to the peer.

use super::peer::{PEER_ANSWER_MAX, PeerSays};
use crate::attempt::attempt_error::AttemptError;
use crate::attempt::context::Upstream;
use crate::attempt::copy::HeldCopy;
use crate::attempt::open_timeline::OpenTimeline;
use crate::session::cursor::Cursor;
use crate::session::receive::receive;
use crate::session::refusal::{OtherFile, OtherHistory, Refusal};
use crate::session::{Outside, ReceiveOptions, Sender, SessionError};
use binlog::Position;
use binlog::writer::LogError;
use codec::event::{EventHeader, EventType};
use config::HostPort;
use source::complaint::{Complaint, ER_FATAL_READING_BINLOG};
use source::link::{End, Link, link_with};
use source::look::{Compared, Ours, Patience, compare_with};
use source::negotiate::{ask_for_events_as_they_are, checksum_outside_files, choose_timeline, look_request};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use wire::{Connection, WireError};

/// One timeline of one peer.
pub(crate) struct Fetch<'a> {
    pub(crate) upstream: &'a Upstream,
    pub(crate) host: &'a HostPort,
    pub(crate) says: &'a PeerSays,
    /// By the peer's own name for it.
    pub(crate) timeline: &'a str,
    /// When to stop whatever is being done: no wait for the peer is longer.
    pub(crate) until: Instant,
}

impl Fetch<'_> {
    /// Whether the peer's timeline is another one: it holds other bytes in the place of ours, or has no such place.
    pub(crate) fn is_other_history(error: &AttemptError) -> bool {
        let is_no_place = |code: u16, message: &str| {
            code == ER_FATAL_READING_BINLOG
                && matches!(
                    Complaint::of(message),
                    Complaint::FileNotFound
                        | Complaint::Purged
                        | Complaint::PastTheEnd
                        | Complaint::AheadOfSource
                )
        };
        match error {
            AttemptError::Session(SessionError::Refused(
                Refusal::OtherFile(_) | Refusal::OtherHistory(_) | Refusal::NotNext(_),
            )) => true,
            AttemptError::Session(SessionError::Source(complaint)) => {
                is_no_place(complaint.code, &complaint.message)
            }
            AttemptError::Wire(WireError::Server { code, message, .. }) => is_no_place(*code, message),
            _ => false,
        }
    }

    /// Whether the connection ended without a word, as when the peer has begun another timeline meanwhile.
    pub(crate) fn is_broken_off(error: &AttemptError) -> bool {
        matches!(
            error,
            AttemptError::Session(SessionError::Closed | SessionError::Network(_))
                | AttemptError::Wire(WireError::Closed { .. })
        )
    }

    /// Appends what the peer has behind the end of the newest timeline; false when the time was over before all had arrived. What
    /// has arrived to a boundary is kept whatever ends it.
    ///
    /// # Errors
    /// Why not everything could be had; [`Fetch::is_other_history`] tells one reason, and [`AttemptError::log_failed`] that the
    /// copy must be opened again.
    pub(crate) fn run(&self, copy: &mut HeldCopy) -> Result<bool, AttemptError> {
        let counters = &self.upstream.monitor.counters;
        let count = || (counters.transactions.load(Relaxed), counters.bytes_written.load(Relaxed));
        let before = count();
        let result = self.receive(copy);
        let (transactions, bytes) = (count().0 - before.0, count().1 - before.1);
        // Where the log has failed, what is on disk is found out from the disk, and nothing may be said before.
        if bytes > 0 && !result.as_ref().is_err_and(AttemptError::log_failed) {
            self.fetched(copy, transactions, bytes);
        }
        let is_over = self.upstream.clock.now() >= self.until;
        match result {
            // Whichever wait it ended. Of what is left more can be had later.
            Err(error) if is_over && !error.log_failed() && !Self::is_other_history(&error) => Ok(false),
            result => result,
        }
    }

    /// Whether all arrived that the peer has.
    fn receive(&self, copy: &mut HeldCopy) -> Result<bool, AttemptError> {
        self.compare_before_untold(copy)?;
        let Some(timeline) = copy.timeline_mut() else { return Ok(false) };
        // Nothing could be compared.
        let (Some(at), Some(_)) = (timeline.end(), &timeline.format) else { return Ok(false) };
        let tail = timeline.tail().map_err(SessionError::from)?;
        if !is_whole_transaction(&tail) {
            self.compare_live(copy)?;
        }
        let Some(timeline) = copy.timeline_mut() else { return Ok(false) };
        let begin = at.offset - tail.len() as u64;
        // As the request says it, which has 32 bits for it.
        let requested = if u32::try_from(begin).is_ok() { begin } else { 4 };
        let connection = self.connect()?;
        let request = look_request(self.upstream.clock.jitter().max(1), &at.file, begin);
        let stream = connection.start_dump(&request)?;
        let checksum = checksum_outside_files(&self.says.identity);
        let cursor = Cursor::new(Some(at), requested, timeline.format.clone(), checksum)
            .comparing(timeline.tail_start, tail);
        let config = &self.upstream.config;
        let options = ReceiveOptions {
            clock: self.upstream.clock.clone(),
            fsync_mode: config.fsync_mode,
            fsync_interval: config.fsync_interval,
            net_read_timeout: PEER_ANSWER_MAX,
            published: self.upstream.published.clone(),
            sender: Sender::Peer { until: self.until },
        };
        let mut link = |end: &End<'_>| self.link(end);
        let mut outside = Outside { on_stream: &mut |_| {}, link: &mut link };
        let (monitor, stop) = (&self.upstream.monitor, &self.upstream.stop);
        match receive(stream, cursor, timeline, &options, monitor, stop, &mut outside) {
            Err(SessionError::EndOfDump) => Ok(true),
            Ok(()) => Ok(false), // A stop was requested.
            Err(error) => Err(error.into()),
        }
    }

    /// Where the live file has no transaction yet, it says little of itself: the peer must have the file before as the copy has
    /// it, and go on from there with a file of that name.
    fn compare_before_untold(&self, copy: &mut HeldCopy) -> Result<(), AttemptError> {
        let Some((at, format)) = copy.before_untold()? else { return Ok(()) };
        let end = End { at, format: Some(&format), tail: &[], ahead: 0 };
        let live = copy.timeline().and_then(OpenTimeline::end).map(|end| end.file);
        match (self.link(&end)?, live) {
            (Link::Followed(next), Some(live)) if next.name == *live => {
                copy.expect(next.format);
                Ok(())
            }
            _ => Err(SessionError::from(Refusal::from(OtherFile { file: end.at.file.clone() })).into()),
        }
    }

    /// Where the last transaction is too long to be asked for again as a whole, the whole live file is held against the peer's: its format
    /// description alone would not tell a fork of the server.
    fn compare_live(&self, copy: &HeldCopy) -> Result<(), AttemptError> {
        let Some(timeline) = copy.timeline() else { return Ok(()) };
        let Some(end) = timeline.end() else { return Ok(()) };
        let failed = |error| {
            let path = timeline.folder().join(&*end.file);
            SessionError::from(LogError::Io { action: "read", path, error })
        };
        let file = timeline.log.open_read(&end.file).map_err(failed)?;
        let ours = Ours { file: &*file, len: end.offset, sealed: false };
        let request = look_request(self.upstream.clock.jitter().max(1), &end.file, 4);
        let connection = self.connect()?;
        let patience = Patience::InAll(self.left()?);
        match compare_with(connection, &self.says.identity, &request, ours, patience, self.upstream.waits())?
        {
            Compared::Equal { .. } => Ok(()),
            Compared::Differs { at } => {
                let at = Position { offset: at, ..end.clone() };
                Err(SessionError::from(Refusal::from(OtherHistory { at, held: end.offset })).into())
            }
        }
    }

    /// The time that is left; an error when none is.
    fn left(&self) -> Result<Duration, WireError> {
        let left = self.until.saturating_duration_since(self.upstream.clock.now());
        match left.is_zero() {
            true => Err(WireError::Timeout { during: "asking a peer for what it has", after: left }),
            false => Ok(left),
        }
    }

    /// What the peer has at the end of what is held.
    pub(crate) fn link(&self, end: &End<'_>) -> Result<Link, WireError> {
        let request = look_request(self.upstream.clock.jitter().max(1), &end.at.file, end.tail_start());
        let connection = self.connect()?;
        let patience = Patience::InAll(self.left()?);
        link_with(connection, &self.says.identity, &request, end, patience, self.upstream.waits())
    }

    /// Connects, and chooses the timeline.
    pub(crate) fn connect(&self) -> Result<Connection, WireError> {
        let mut connection = self.upstream.connect_to(self.host, self.left()?.min(PEER_ANSWER_MAX))?;
        let shut_down = self.upstream.stop.shuts_down(connection.as_fd());
        let _shut_down =
            shut_down.map_err(|reason| WireError::Io { during: "preparing to question a peer", reason })?;
        connection.set_timeout(self.left()?);
        ask_for_events_as_they_are(&mut connection, &self.says.identity)?;
        connection.set_timeout(self.left()?);
        choose_timeline(&mut connection, self.timeline)?;
        Ok(connection)
    }

    fn fetched(&self, copy: &HeldCopy, transactions: u64, bytes: u64) {
        let config = &self.upstream.config;
        let at = self.upstream.clock.wall_time();
        let number = config.peers.iter().position(|peer| peer == self.host).unwrap_or(usize::MAX);
        self.upstream.update_peer(number, |peer| {
            peer.fetched_at = Some(at);
            peer.fetched_transactions += transactions;
            peer.fetched_bytes += bytes;
        });
        let timeline = copy.timeline();
        let end = timeline.and_then(OpenTimeline::end).map(|end| end.to_string()).unwrap_or_default();
        tracing::info!(
            source = config.name,
            peer = %self.host,
            timeline = timeline.map_or("", |timeline| timeline.name.as_str()),
            transactions,
            bytes,
            "fetched from the peer what it has and this copy lacked; the copy ends at {end}"
        );
    }
}

/// Whether a tail begins with what tells one transaction from all others, and not within it: the last event of a long one says
/// little.
fn is_whole_transaction(tail: &[u8]) -> bool {
    EventHeader::parse(tail).is_ok_and(|header| {
        [EventType::GTID, EventType::ANONYMOUS_GTID, EventType::GTID_TAGGED, EventType::MARIADB_GTID]
            .contains(&header.event_type)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::packet::ErrPacket;

    #[test]
    fn a_timeline_that_has_no_such_place_is_another_one() {
        let refused = |code, message: &str| {
            let complaint = ErrPacket { code, sqlstate: "HY000".to_owned(), message: message.to_owned() };
            let session = Fetch::is_other_history(&SessionError::Source(complaint.clone()).into());
            let ErrPacket { code, sqlstate, message } = complaint;
            let look = Fetch::is_other_history(&WireError::Server { code, sqlstate, message }.into());
            assert_eq!(session, look);
            session
        };
        assert!(refused(1236, "Client requested source to start replication from position > file size"));
        assert!(refused(1236, "Could not find first log file name in binary log index file"));
        assert!(!refused(1236, "I/O error reading log event"), "it may be the one");
        assert!(!refused(1045, "Access denied"));
    }
}
