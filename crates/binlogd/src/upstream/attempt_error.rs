//! Why an attempt ended, and what helps.

use super::copy::CopyError;
use super::receive::SessionError;
use crate::wire::WireError;
use std::time::Duration;
use thiserror::Error;

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
    /// The account may not replicate.
    #[error(
        "the account may not read the binary log: {0}; run on the source: GRANT REPLICATION SLAVE ON *.* TO '{1}'@'<this host>'"
    )]
    Privilege(String, String),
    /// Our server id is the source's own.
    #[error(
        "server_id {0} is the source's own; give this source another server_id, one that no server of the topology has"
    )]
    ServerId(u32),
    /// The source purged what we still need and the operator wants to decide.
    #[error(
        "a gap: the source no longer has {needed} (its oldest is {oldest}); what is missing can be seen by GTID or by file. \
         Nothing was changed here. To go on without it, set on_gap = \"record\": the copy so far is kept and a new timeline begins at the oldest file"
    )]
    Gap {
        /// What we asked for.
        needed: String,
        /// What it has.
        oldest: String,
    },
    /// Another client took our identity.
    #[error(
        "the source ended the dump because another client connected with the same server_id or replica UUID: {0}; give each \
         receiver its own server_id, and never copy a data folder that is in use"
    )]
    Evicted(String),
    /// The source writes no binary log.
    #[error("the source writes no binary log (log_bin is OFF); start it with --log-bin")]
    NoBinlog,
    /// The server is read-only, as a replica is.
    #[error(
        "the server is read-only, so it is not taken for the source before {0:?} have passed without a better one: switch \
         read_only off on the source, and leave it on where replicas and old sources are"
    )]
    ReadOnly(Duration),
    /// The server lacks transactions that the copy holds, and another host may not.
    #[error(
        "the server lacks transactions that the copy holds ({0}), so the other hosts are tried before it is taken for the source"
    )]
    Behind(String),
    /// A new timeline has begun; the next attempt receives into it.
    #[error("{0}: a new timeline begins, the old one is kept")]
    NewTimeline(&'static str),
}

/// What helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cure {
    /// Trying again after the usual pause.
    Soon,
    /// Somebody must change something, on the source perhaps; trying again now and then does no harm.
    Later,
    /// Only the operator can decide.
    Operator,
}

impl AttemptError {
    /// What helps against it.
    pub fn cure(&self) -> Cure {
        match self {
            AttemptError::Wire(error) if error.is_permanent() => Cure::Later,
            // A new timeline too: should beginning one ever repeat itself, it must not do so in a hot loop.
            AttemptError::Wire(_)
            | AttemptError::Session(_)
            | AttemptError::Copy(_)
            | AttemptError::ReadOnly(_)
            | AttemptError::Behind(_)
            | AttemptError::NewTimeline(_) => Cure::Soon,
            AttemptError::Privilege(..)
            | AttemptError::ServerId(_)
            | AttemptError::Evicted(_)
            | AttemptError::NoBinlog => Cure::Later,
            AttemptError::Gap { .. } => Cure::Operator,
        }
    }

    /// True when nothing arrived any more, so that the source may not know yet that the connection is dead.
    pub fn is_silence(&self) -> bool {
        matches!(self, AttemptError::Session(SessionError::Silent(_)))
    }

    /// For how much of an attempt that took `elapsed` the source was there. Waiting in vain, for a connection or for the
    /// next event, is no success that would make the next pause a short one.
    pub fn source_was_there(&self, elapsed: Duration) -> Duration {
        match self {
            AttemptError::Wire(_) => Duration::ZERO,
            AttemptError::Session(SessionError::Silent(timeout)) => elapsed.saturating_sub(*timeout),
            _ => elapsed,
        }
    }

    /// True when the host could not be reached, refused us or cannot be the source, so that another one of the list may be
    /// the source now.
    pub fn is_of_host(&self) -> bool {
        match self {
            AttemptError::Wire(_)
            | AttemptError::ReadOnly(_)
            | AttemptError::Behind(_)
            | AttemptError::Privilege(..)
            | AttemptError::ServerId(_)
            | AttemptError::NoBinlog => true,
            AttemptError::Session(_)
            | AttemptError::Copy(_)
            | AttemptError::Gap { .. }
            | AttemptError::Evicted(_)
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
