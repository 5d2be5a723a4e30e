//! Why a rescue does not hand everything over.

use std::io;

/// Why. Nothing was sent, but where it is [`NoRescue::Unfinished`].
#[derive(Debug, thiserror::Error)]
pub enum NoRescue {
    /// The copy has no timeline.
    #[error("the copy of {0} holds nothing yet")]
    Empty(String),
    /// The copy cannot be read, or what is to be put back on the target cannot be noted beside it.
    #[error("{0}")]
    Copy(String),
    /// What is to be left out is named by no GTID.
    #[error("--leave-out: {0}")]
    LeaveOut(String),
    /// Nobody can say what peers hold.
    #[error("{0}")]
    Peers(String),
    /// The target cannot be reached or asked, or others can write to it.
    #[error("{host}: {error}")]
    Target {
        /// Which.
        host: String,
        /// Why, in words.
        error: String,
    },
    /// The target has executed nothing.
    #[error(
        "{host} is empty: it has executed no transaction. What the copy of {name} holds goes on from a state of the source that \
         an empty server does not have: restore a backup first (with its GTIDs: gtid_purged, on MariaDB gtid_slave_pos), then \
         rescue hands over what came after it. Where the copy begins with the very first transaction of the source, \
         --unrelated hands over everything from there"
    )]
    NothingThere {
        /// The target.
        host: String,
        /// The source.
        name: String,
    },
    /// The target shares no transaction with the copy.
    #[error(
        "{host} shares no history with the copy of {name}: none of the transactions that it has executed ({executed}) is one of the \
         copy's ({held}). It is another server, or one that was set up without a backup of the source: check the address and \
         --source. Nothing was sent. --unrelated hands over all of it knowingly"
    )]
    Stranger {
        /// The target.
        host: String,
        /// The source.
        name: String,
        /// What the target has executed, in short.
        executed: String,
        /// What the copy knows of, in short.
        held: String,
    },
    /// Some of what the target lacks cannot be handed over, and was not left out by name.
    #[error("{0}")]
    Refused(String),
    /// The target has other transactions than the copy under some GTIDs.
    #[error("{0}")]
    Different(String),
    /// It has ended in the midst of the sending, or what was sent is not verified, or settings of the target are not put back.
    #[error("{0}")]
    Unfinished(String),
}

impl From<io::Error> for NoRescue {
    fn from(error: io::Error) -> NoRescue {
        NoRescue::Copy(error.to_string())
    }
}
