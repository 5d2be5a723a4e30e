//! What the receiver does, where that is not to receive.

use super::told::problem;
use crate::events::Level;
use crate::events::Level::{Critical, Notice};
use crate::judge::verdict::{Topic, Worry};
use crate::snapshot::SourceStatus;
use crate::state::StopCause;
use crate::state::name::StateName;

/// What helps against a full disk.
const FULL_DISK: &str = "Make room on the file system of the data folder. Delete no file of a copy by hand: PURGE BINARY LOGS and \
                         [retention] know what may go. Receiving goes on by itself.";

/// What the receiver does, where that is not to receive. The text is the detail of the state, or the error that is behind it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OfState<'a> {
    /// The status was read from the files.
    NotRunning(&'a str),
    /// The copy is opened and checked.
    Checked(&'a str),
    /// The first connection is made.
    Connecting,
    /// The copy begins from the archive.
    Begins(&'a str),
    /// Nothing is on this disk, and the archive cannot be read.
    ArchiveUnreadable(&'a str),
    /// The source lacks what the copy holds, and `on_fork = "withhold"`.
    Withheld(&'a str),
    /// Too few receivers further down have confirmed in time.
    ReceiversMissing(&'a str),
    /// Too few nodes of the quorum have confirmed in time.
    NodesMissing(&'a str),
    /// Nothing can be stored.
    DiskFull(&'a str),
    /// An operation of the disk does not end.
    DiskHangs(&'a str),
    /// The receiving thread does not come round.
    Stuck(&'a str),
    /// The daemon ends, or takes up another configuration.
    Ends(&'a str),
    /// An operator wants it, by a statement or on the page.
    StoppedByOperator(&'a str),
    /// An error that does not end by itself.
    Stopped(&'a str),
    /// The source is not reached, or does not answer as it should.
    NotReached(&'a str),
}

impl<'a> OfState<'a> {
    /// Of a source; `None` while it is received.
    pub(crate) fn of(source: &'a SourceStatus) -> Option<OfState<'a>> {
        let detail = source.state_detail.as_deref().unwrap_or_default();
        let error = source.last_error.as_ref().map(|error| error.message.as_str());
        Some(match source.state {
            StateName::Receiving => return None,
            // One attempt follows the other on a full disk, and the state is that of a moment.
            StateName::Connecting | StateName::Recovering if source.disk_was_full => {
                OfState::DiskFull(error.unwrap_or_default())
            }
            StateName::NotRunning => OfState::NotRunning(detail),
            StateName::Starting | StateName::Recovering => OfState::Checked(detail),
            StateName::Connecting if error.is_none() => OfState::Connecting,
            StateName::Withholding => OfState::Withheld(detail),
            StateName::WaitingForReplicas if source.quorum.is_some() => OfState::NodesMissing(detail),
            StateName::WaitingForReplicas => OfState::ReceiversMissing(detail),
            StateName::WaitingForSpace => OfState::DiskFull(detail),
            StateName::BeginningFromArchive => OfState::Begins(detail),
            StateName::WaitingForArchive => OfState::ArchiveUnreadable(detail),
            StateName::DiskHangs => OfState::DiskHangs(detail),
            StateName::Stuck => OfState::Stuck(detail),
            StateName::Stopped => match source.stopped_by {
                Some(StopCause::End) => OfState::Ends(detail),
                Some(StopCause::Operator) => OfState::StoppedByOperator(detail),
                Some(StopCause::Fault) | None => OfState::Stopped(detail),
            },
            StateName::BackingOff | StateName::Connecting | StateName::Other(_) => {
                OfState::NotReached(error.unwrap_or(detail))
            }
        })
    }

    /// What that means for what was acknowledged.
    pub(crate) fn headline(self) -> &'static str {
        match self {
            OfState::Withheld(_) | OfState::ReceiversMissing(_) => {
                "Commits wait: nothing new is acknowledged."
            }
            OfState::NodesMissing(_) => {
                "Commits wait: too few nodes of the quorum have them. What was acknowledged is safe."
            }
            OfState::DiskFull(_) => {
                "The disk is full: nothing new is acknowledged. What was acknowledged is safe here."
            }
            OfState::Begins(_) => "Nothing is on this disk yet: the copy goes on where the archive ends.",
            OfState::ArchiveUnreadable(_) => {
                "Nothing is on this disk, and the archive cannot be read: nothing is received or acknowledged."
            }
            OfState::DiskHangs(_) => "The disk does not answer: nothing new is acknowledged.",
            OfState::Stuck(_) => {
                "The receiving thread is stuck: nothing new is acknowledged. What was acknowledged is safe here."
            }
            OfState::NotReached(_) => "The source is not reached. What was acknowledged is safe here.",
            OfState::Ends(_) | OfState::StoppedByOperator(_) | OfState::Stopped(_) => {
                "Receiving has stopped. What was acknowledged is safe here."
            }
            OfState::NotRunning(_) => "No daemon answers. What was acknowledged is safe here.",
            OfState::Checked(_) | OfState::Connecting => "Being started. What was acknowledged is safe here.",
        }
    }

    pub(super) fn problem(&self) -> Worry {
        let (kind, level, text, advice): (_, Level, String, _) = match self {
            OfState::NotRunning(detail) => {
                let text = format!("No daemon answers: nothing is received. {detail}");
                ("not_running", Critical, text, "Start binlogd.")
            }
            OfState::Checked(detail) => {
                ("checked", Notice, format!("The copy is being checked. {detail}"), "")
            }
            OfState::Connecting => ("connecting", Notice, "The source is being connected to.".to_owned(), ""),
            OfState::Begins(what) => {
                ("begins", Notice, format!("The copy begins from the archive: {what}"), "")
            }
            OfState::ArchiveUnreadable(error) => (
                "archive_unreadable",
                Critical,
                format!("Nothing is received before the archive can be read: {error}"),
                "Look at the store and at the way to it: binlogd doctor --archive. binlogd tries again by itself.",
            ),
            OfState::Withheld(why) => {
                ("withheld", Critical, format!("Acknowledgements are withheld: {why}"), "")
            }
            OfState::ReceiversMissing(who) => (
                "receivers_missing",
                Critical,
                format!("Commits wait for receivers further down: {who}"),
                "Bring the receivers back, or choose another ack_after_replicas or ack_timeout_action and reload.",
            ),
            OfState::NodesMissing(who) => {
                ("quorum_lost", Critical, format!("Commits wait: {who}."), "Bring the nodes back.")
            }
            OfState::DiskFull(error) => {
                let text = format!("The disk is full, and commits at the source wait: {error}");
                ("disk_full", Critical, text, FULL_DISK)
            }
            OfState::DiskHangs(what) => (
                "disk_hangs",
                Critical,
                format!("The disk does not answer: {what}"),
                "Look at the machine's disk (dmesg). Receiving goes on by itself when the disk answers.",
            ),
            OfState::Stuck(what) => (
                "stuck",
                Critical,
                format!("Nothing is received: {what}"),
                "Restart binlogd if it does not come round: it goes on where the copy ends.",
            ),
            OfState::Ends(why) => ("ends", Notice, format!("Nothing is received: {why}."), ""),
            // What starts it again stands in the reason.
            OfState::StoppedByOperator(why) => {
                ("stopped_by_operator", Critical, format!("Receiving was stopped {why}"), "")
            }
            OfState::Stopped(why) => (
                "stopped",
                Critical,
                format!("Receiving has stopped: {why}"),
                "Put the cause right, then reload (SIGHUP) or restart.",
            ),
            OfState::NotReached(why) => (
                "not_reached",
                Critical,
                format!("The source is not received: {why}"),
                "Look at the source and at the network to it. binlogd tries again by itself.",
            ),
        };
        problem((kind, Topic::State, level), text, advice)
    }
}
