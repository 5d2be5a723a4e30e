//! Why others cannot be held off the target.

use super::writers::Writer;
use crate::rescue::send::RIGHTS;
use codec::gtid::TransactionId;
use source::own_session::NotSet;
use std::io;
use thiserror::Error;
use wire::WireError;

/// Why nothing is sent.
#[derive(Debug, Error)]
pub enum HoldError {
    /// Others can write and were not stopped.
    #[error(
        "nothing was sent: others can write to the target, and a transaction of theirs can take a GTID that is about to be handed \
         over, or be in its way:\n{}\nStop them and do this again. --allow-writers goes on in spite of them; what was handed over is \
         compared with the copy afterwards either way.", listed(.0)
    )]
    Writers(Vec<Writer>),
    /// Another rescue works on the target.
    #[error(
        "another binlogd rescue works on the target (session {0}): wait for its end. The server may not have noticed yet that one \
         was killed: KILL {0};"
    )]
    Busy(String),
    /// The plan is not true any more.
    #[error(
        "nothing was sent: the target has {0} by now, which it lacked when it was looked at; by another rescue, or by somebody who \
         writes to it. Do this again: it begins with what the target has now"
    )]
    Meanwhile(TransactionId),
    /// The account may not act as an applier of replicated transactions; nothing was sent.
    #[error("{0}\n{RIGHTS}")]
    MayNot(NotSet),
    /// Settings of it that are refused by name.
    #[error("nothing was sent: {0}")]
    Settings(String),
    /// The target.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The note of what is to be put back, or the copy.
    #[error("nothing was sent: {0}")]
    Io(#[from] io::Error),
}

fn listed(writers: &[Writer]) -> String {
    writers.iter().map(|writer| format!("  {writer}")).collect::<Vec<_>>().join("\n")
}
