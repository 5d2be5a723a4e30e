//! Why a host that is another binlogd does not lead on now.

use binlog::timeline::described::Described;
use thiserror::Error;

/// Why a binlogd above this one does not lead on now.
#[derive(Debug, Clone, Error)]
pub enum AboveError {
    /// It tells nothing of its timelines.
    #[error(
        "the host is a binlogd of an older version, which does not tell its timelines apart (it has no binlogd_timelines), so files \
         of several servers could come as those of one. Nothing is received from it: update that binlogd"
    )]
    Old,
    /// What it says makes no sense.
    #[error(
        "what the binlogd above says of its timelines makes no sense: {0}. Update this binlogd or that one"
    )]
    Senseless(String),
    /// Nothing of what is to come next can be read there.
    #[error("the binlogd above has nothing to read yet")]
    Nothing,
    /// It cannot read a timeline of which this copy may lack something: its name there, and why.
    #[error(
        "the binlogd above cannot read a timeline of which this copy may lack something. Repair that one there: {0}. Without it a copy          goes on after 10 s where it is empty or lacks no transaction of it, else only with on_gap = \"record\""
    )]
    Unreadable(String),
    /// What it has of a timeline it does not know before its archive answers.
    #[error(
        "the binlogd above does not know yet which files of its timeline {0} are there, for its archive has not answered. Without them a          copy goes on after 5 minutes where it is empty or lacks no transaction of them, else only with on_gap = \"record\""
    )]
    PastNotKnown(String),
    /// It does not have the timeline that this copy goes on with, nor a later one.
    #[error(
        "the binlogd above has no timeline that goes on with {0} of this copy: it was put back, or follows another source. Nothing was \
         changed here. This copy waits until that one has it; if it never will, give this copy another host"
    )]
    Lacks(String),
    /// It goes on with another timeline.
    #[error("the binlogd above has ended the session, as it does when it goes on with another timeline")]
    Moved,
}

impl AboveError {
    /// That this one cannot be read.
    pub(super) fn unreadable(their: &Described) -> AboveError {
        AboveError::Unreadable(their.why_unreadable().unwrap_or_default())
    }
}
