//! Why an attempt ended, and what helps.

use super::copy_error::CopyError;
use crate::peers::above_error::AboveError;
use crate::session::SessionError;
use binlog::Position;
use binlog::writer::LogError;
use codec::BadBinlogName;
use codec::gtid::GtidState;
use source::complaint::ER_FATAL_READING_BINLOG;
use std::time::Duration;
use thiserror::Error;
use wire::WireError;

/// After a session that lasted so long the log says why it ended.
const SESSION_IS_NEWS: Duration = Duration::from_secs(1);

/// What belongs to every statement about accounts that is suggested: semi-sync may be waiting for us just then.
const WHILE_IT_WAITS: &str = "while semi-sync waits for binlogd, SET SESSION sql_log_bin = 0 before it, or it waits too and keeps logins out";

/// Why an attempt ended.
#[derive(Debug, Error)]
pub enum AttemptError {
    /// Connecting, asking or negotiating failed.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// Receiving failed.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The copy's folder failed.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The host is a binlogd, which does not lead on now.
    #[error(transparent)]
    Above(#[from] AboveError),
    /// A name that should be that of a binary log is none.
    #[error(transparent)]
    FileName(#[from] BadBinlogName),
    /// The account may not replicate.
    #[error(
        "the account may not read the binary log: {0}; run on the source: GRANT REPLICATION SLAVE ON *.* TO '{1}'@'<this \
         host>'; {WHILE_IT_WAITS}"
    )]
    Privilege(String, String),
    /// The account may not ask for the newest file, as `start = "latest"` must.
    #[error(
        "the account may not ask which file the source writes, as start = \"latest\" must: {refusal}; run on the source: \
         GRANT {privilege} ON *.* TO '{user}'@'<this host>', or choose another start; {WHILE_IT_WAITS}"
    )]
    LatestPrivilege {
        /// By the server's own name for it.
        privilege: &'static str,
        /// Of the configuration.
        user: String,
        /// The source's words.
        refusal: String,
    },
    /// Our server id is the source's own.
    #[error(
        "server_id {0} is the source's own; give this source another server_id, one that no server of the topology has"
    )]
    ServerId(u32),
    /// The source purged what we still need and the operator wants to decide.
    #[error(
        "a gap: the source no longer has {needed}{missing}; its oldest file is {oldest}. Nothing was changed here. To go on \
         without it, set on_gap = \"record\": the copy so far is kept, a new timeline begins at the oldest file, and what is \
         missing is recorded"
    )]
    Gap {
        /// What we asked for.
        needed: String,
        /// What it has.
        oldest: String,
        /// Which transactions are between the two, as far as that is known.
        missing: String,
    },
    /// The source cannot read its own file, and has everything before that place as we do.
    #[error(
        "the source cannot read its own binary log behind {at}: {message} (error 1236). The copy has everything before that \
         place; no replica can read what stands behind it in that file. {advice}"
    )]
    Unreadable {
        /// Where it was asked to go on.
        at: Position,
        /// Its words.
        message: String,
        /// What happens next, and what an operator can do.
        advice: String,
    },
    /// Another client took our identity.
    #[error(
        "the source ended the dump because another client connected with the same server_id or replica UUID: {0}; give each \
         receiver its own server_id, and never copy a data folder that is in use"
    )]
    Evicted(String),
    /// The source sends transactions without a GTID to nobody any more, and has some that the copy lacks.
    #[error(
        "the source has transactions without a GTID from {0} on, which the copy lacks, and with gtid_mode = ON it sends them to \
         nobody; run on the source: SET GLOBAL gtid_mode = ON_PERMISSIVE, wait until binlogd has caught up, then SET GLOBAL \
         gtid_mode = ON"
    )]
    Anonymous(Position),
    /// The source sends the last transaction of the copy to nobody any more, but goes on behind it.
    #[error(
        "the copy ends with a transaction without a GTID at {0}, which the source, whose gtid_mode is ON by now, does not send \
         again to be compared; its file is the same one and reaches as far"
    )]
    NotComparable(Position),
    /// The source writes no binary log.
    #[error("the source writes no binary log (log_bin is OFF); start it with --log-bin")]
    NoBinlog,
    /// A setting of the server keeps it from being a source.
    #[error("{0}")]
    Refused(String),
    /// The server is read-only, as a replica is.
    #[error(
        "the server is read-only, or a node of Galera that is not ready (wsrep_ready), so it is not taken for the source before {0:?} have passed without a better one: switch \
         read_only off on the source, and leave it on where replicas and old sources are"
    )]
    ReadOnly(Duration),
    /// The server lacks transactions that the copy holds, and another host may not.
    #[error(
        "the server lacks transactions that the copy holds ({0}), so the other hosts are tried before it is taken for the source"
    )]
    Behind(String),
    /// The server has nothing in common with the copy.
    #[error(
        "the server ({uuid}) shares no history with the copy: it has executed {executed}, and the copy holds {held}, of \
         {copied}. So it is not taken for the source: is the address right, and where does the proxy lead? Nothing of it was \
         copied. If it is the new source all the same, give it a data folder or a name of its own; or set on_stranger = \
         \"follow\": the copy is kept, and a history of its own begins"
    )]
    Stranger {
        /// Its `server_uuid`.
        uuid: String,
        /// What it has executed, in short.
        executed: String,
        /// What the copy holds, in short.
        held: String,
        /// `server_uuid` of the newest timeline.
        copied: String,
    },
    /// Another server is the source of the quorum's epoch.
    #[error(
        "the server ({server}) is not the source of the quorum, which is {source_uuid} since epoch {epoch}: nothing is acknowledged to \
         it. Make it a replica of that source"
    )]
    OtherEpoch {
        /// Its `server_uuid`.
        server: String,
        /// The source's.
        source_uuid: String,
        /// Of the quorum.
        epoch: u64,
    },
    /// The source lacks what the copy holds and the operator wants to decide.
    #[error(
        "{0}. Nothing more is received (on_fork = \"stop\"). binlogd rescue hands over what is lacking; binlogd forks lists \
         what must be decided, and with --accept-loss or --settle records that it is. Then reload (SIGHUP) or restart binlogd"
    )]
    Forked(String),
    /// What the source has purged or cannot read came from a peer; the next attempt goes on behind it.
    #[error("what the source does not have any more, or some of it, was fetched from a peer")]
    Completed,
    /// A new timeline has begun; the next attempt receives into it.
    #[error("{0}: a new timeline begins, the old one is kept")]
    NewTimeline(&'static str),
}

/// What helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cure {
    /// Going on at once: the next step is known.
    Now,
    /// Trying again after the usual pause, which is short: commits wait.
    Soon,
    /// Trying again after somewhat longer pauses: the server has no room for us at present.
    Crowded,
    /// The peer told us to go away, and somebody must change something, on the source perhaps; trying again now and then
    /// does no harm.
    Later,
    /// Only the operator can decide.
    Operator,
}

impl AttemptError {
    /// What helps against it.
    pub fn cure(&self) -> Cure {
        match self {
            AttemptError::Wire(error) if error.is_permanent() => Cure::Later,
            AttemptError::Wire(error) if error.is_crowded() => Cure::Crowded,
            AttemptError::NewTimeline(_)
            | AttemptError::Completed
            | AttemptError::NotComparable(_)
            | AttemptError::Above(AboveError::Moved)
            | AttemptError::Session(
                SessionError::LeftBehind(_)
                | SessionError::HeldLong(_)
                | SessionError::SwitchedOver { .. }
                | SessionError::Epoch(_),
            ) => Cure::Now,
            // The source could not send what it was asked for, and looking at it has found no other way: asking again and
            // again would only fill its own log.
            AttemptError::Session(SessionError::Source(complaint))
                if complaint.code == ER_FATAL_READING_BINLOG =>
            {
                Cure::Later
            }
            AttemptError::Wire(_)
            | AttemptError::Session(_)
            | AttemptError::Copy(_)
            | AttemptError::Above(
                AboveError::Nothing
                | AboveError::Unreadable(_)
                | AboveError::PastNotKnown(_)
                | AboveError::Lacks(_),
            )
            | AttemptError::ReadOnly(_)
            | AttemptError::Behind(_)
            | AttemptError::OtherEpoch { .. }
            | AttemptError::Stranger { .. } => Cure::Soon,
            AttemptError::Above(AboveError::Old | AboveError::Senseless(_))
            | AttemptError::Privilege(..)
            | AttemptError::LatestPrivilege { .. }
            | AttemptError::ServerId(_)
            | AttemptError::Evicted(_)
            | AttemptError::Unreadable { .. }
            | AttemptError::Anonymous(_)
            | AttemptError::NoBinlog
            | AttemptError::Refused(_)
            | AttemptError::FileName(_) => Cure::Later,
            AttemptError::Gap { .. } | AttemptError::Forked(_) => Cure::Operator,
        }
    }

    /// True when the log says it, whatever it has said before: it ends a session that lasted for `there`, or it comes from
    /// outside and seldom.
    pub fn is_news(&self, there: Duration) -> bool {
        match self {
            AttemptError::Session(SessionError::Log(LogError::Displaced(_))) => true,
            AttemptError::Session(_) => there >= SESSION_IS_NEWS,
            _ => false,
        }
    }

    /// True when nothing arrived any more, so that the source may not know yet that the connection is dead.
    pub fn is_silence(&self) -> bool {
        matches!(self, AttemptError::Session(SessionError::Silent(_) | SessionError::LeftBehind(_)))
    }

    /// The host to go to, where another one is the source now.
    pub(crate) fn switched_to(&self) -> Option<usize> {
        match self {
            AttemptError::Session(SessionError::SwitchedOver { to, .. }) => Some(*to),
            _ => None,
        }
    }

    /// For how much of an attempt that took `elapsed` the source was there. Waiting in vain, for a connection or for the
    /// next event, is no success that would make the next pause a short one.
    pub fn source_was_there(&self, elapsed: Duration) -> Duration {
        match self {
            // Two receivers with one identity must not end each other's sessions ever so often.
            AttemptError::Wire(_) | AttemptError::Evicted(_) => Duration::ZERO,
            AttemptError::Session(SessionError::Silent(timeout)) => elapsed.saturating_sub(*timeout),
            _ => elapsed,
        }
    }

    /// True when the host could not be reached, refused us or cannot be the source, so that another one of the list may be
    /// the source now.
    pub fn is_of_host(&self) -> bool {
        match self {
            AttemptError::Above(error) => !matches!(error, AboveError::Moved),
            AttemptError::Wire(_)
            | AttemptError::ReadOnly(_)
            | AttemptError::Behind(_)
            | AttemptError::OtherEpoch { .. }
            | AttemptError::Stranger { .. }
            | AttemptError::Privilege(..)
            | AttemptError::LatestPrivilege { .. }
            | AttemptError::ServerId(_)
            | AttemptError::NoBinlog
            | AttemptError::Refused(_) => true,
            AttemptError::Session(_)
            | AttemptError::Copy(_)
            | AttemptError::FileName(_)
            | AttemptError::Gap { .. }
            | AttemptError::Evicted(_)
            | AttemptError::Unreadable { .. }
            | AttemptError::Anonymous(_)
            | AttemptError::NotComparable(_)
            | AttemptError::Forked(_)
            | AttemptError::Completed
            | AttemptError::NewTimeline(_) => false,
        }
    }

    /// True when the disk is full.
    pub fn is_full_disk(&self) -> bool {
        match self {
            AttemptError::Session(SessionError::Log(error)) => error.is_full_disk(),
            AttemptError::Copy(error) => error.is_full_disk(),
            _ => false,
        }
    }

    /// True when the state in memory is worthless and the copy must be opened again from disk.
    pub fn log_failed(&self) -> bool {
        match self {
            AttemptError::Session(error) => error.log_failed(),
            AttemptError::Copy(_) => true,
            _ => false,
        }
    }
}

/// A set of GTIDs as far as a message has room for it.
pub(crate) fn in_short(gtids: &GtidState) -> String {
    const CHARACTERS: usize = 200;
    let mut text = gtids.to_line();
    if text.is_empty() {
        return "nothing".to_owned();
    }
    if let Some((end, _)) = text.char_indices().nth(CHARACTERS) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// What a gap holds by GTID, for a message; empty where that is not known.
pub(crate) fn told(missing: &GtidState) -> String {
    match missing.is_empty() {
        true => String::new(),
        false => format!(", and so not {}", in_short(missing)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_in_vain_is_no_success() {
        const LONG: Duration = Duration::from_secs(60);
        let timeout = WireError::Timeout { during: "connecting", after: LONG };
        assert_eq!(AttemptError::from(timeout).source_was_there(LONG), Duration::ZERO);
        let silent = AttemptError::from(SessionError::Silent(Duration::from_secs(55)));
        assert_eq!(silent.source_was_there(LONG), Duration::from_secs(5));
        assert_eq!(AttemptError::from(SessionError::Closed).source_was_there(LONG), LONG);
    }
}
