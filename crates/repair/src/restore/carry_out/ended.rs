//! Why a restore has ended early, in words that say how to go on.

use crate::history::shortened;
use crate::rescue::HandOverError;
use crate::restore::target::channel::CHANNEL;
use codec::Position;
use codec::gtid::{GtidState, TransactionId};
use std::fmt;
use wire::WireError;

/// How far it is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Transactions that the target has by now.
    pub done: u64,
    /// Of so many.
    pub all: u64,
}

/// Why a restore has ended early. The target is as it was, with what it has applied so far; to do it again goes on there.
#[expect(missing_docs, reason = "the words of each variant name its fields")]
#[derive(Debug)]
pub enum Ended {
    /// The target cannot be asked or changed.
    Wire(&'static str, WireError),
    /// Its settings could not be noted.
    Note(std::io::Error),
    /// The port at which it reads cannot be opened.
    Port(anyhow::Error),
    /// The copy cannot be read any more as it was walked.
    Copy(String),
    /// It does not reach us.
    NotReached { address: String, error: String },
    /// Filters that cannot be taken from our channel, each with its value.
    Filtered(Vec<(String, String)>),
    /// It does not receive.
    Receive(String),
    /// It could not apply a transaction.
    Apply { id: Option<TransactionId>, error: String },
    /// Without GTIDs: it could not apply the transaction that begins there or behind.
    ApplyAt { at: Option<Position>, error: String },
    /// It did not take a statement.
    HandOver(HandOverError),
    /// Somebody wanted it ended.
    Interrupted(Progress),
    /// The target could not be put back as it was. Before that it had ended early, for `first`, or had everything.
    Left { first: Option<Box<Ended>>, why: Box<Ended>, settings: String },
    /// It is not what was asked for.
    Differs { more: GtidState, lacking: GtidState },
    /// Without GTIDs: it stands elsewhere.
    Elsewhere { at: Option<Position>, wanted: Position },
}

impl std::error::Error for Ended {}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Wire(during, error) => write!(f, "{during}: {error}"),
            Ended::Note(error) => write!(
                f,
                "what is changed on the target for the time being cannot be noted, so nothing was: {error}"
            ),
            Ended::Port(error) => write!(f, "{error:#}"),
            Ended::Copy(why) => f.write_str(why),
            Ended::NotReached { address, error } => write!(
                f,
                "the target does not reach this machine at {address}: {error}. Let that port through, or name another address with \
                 --listen and --advertise. Where no way leads here, --statements hands everything over by this command's own \
                 connection, one transaction after the other, which is slower"
            ),
            Ended::Filtered(filters) => {
                f.write_str("nothing was applied: the target's own replication would pass over a part of it or rename it:")?;
                filters.iter().try_for_each(|(name, value)| write!(f, "\n  {name} is {value:?}"))?;
                f.write_str(
                    "\nTake that out of its option file, or on MySQL: CHANGE REPLICATION FILTER … = (); or hand everything over by \
                     --statements, which no filter concerns; or go on with a part of it, knowingly: --accept NAME",
                )
            }
            Ended::Receive(error) => write!(f, "the target cannot receive: {error}"),
            Ended::Apply { id: Some(id), error } => write!(
                f,
                "the target cannot apply {id}: {error}\nEverything before it is applied. Repair what is in its way, and \
                 do this again; or leave it out, knowingly: --skip {id}"
            ),
            Ended::Apply { id: None, error } => write!(f, "the target cannot apply a transaction: {error}"),
            Ended::ApplyAt { at: Some(at), error } => write!(
                f,
                "the target cannot apply the transaction behind {at}: {error}\nEverything before it is applied. Repair what is in its \
                 way, and do this again; or leave it out, knowingly: --skip {at}"
            ),
            Ended::ApplyAt { at: None, error } => write!(f, "the target cannot apply a transaction: {error}"),
            Ended::HandOver(HandOverError::Refused(refused)) => {
                write!(f, "{refused}\nOr leave it out, knowingly: --skip {}", refused.id)
            }
            Ended::HandOver(error) => error.fmt(f),
            Ended::Interrupted(progress) => write!(
                f,
                "ended after about {} of {} transactions; nothing is applied any more. The same command again goes on there",
                progress.done, progress.all
            ),
            Ended::Left { first, why, settings } => {
                match first {
                    Some(first) => writeln!(f, "{first}")?,
                    None => f.write_str("everything up to the point was applied.\n")?,
                }
                write!(
                    f,
                    "The target could not be put back as it was ({why}). The channel {CHANNEL} may be left on it"
                )?;
                if !settings.is_empty() {
                    write!(f, ", and settings: {settings}")?;
                }
                f.write_str(". The same command again takes that back")
            }
            Ended::Differs { more, lacking } => {
                f.write_str("the target has not what was asked for:")?;
                if !more.is_empty() {
                    write!(
                        f,
                        " it has executed {} beside it: somebody else writes to it",
                        shortened(&more.to_line())
                    )?;
                }
                if !lacking.is_empty() {
                    write!(f, " it lacks {}", shortened(&lacking.to_line()))?;
                }
                Ok(())
            }
            Ended::Elsewhere { at: Some(at), wanted } => write!(
                f,
                "the target stands at {at} of the source's log, and was to stand at {wanted}: somebody else changes its replication"
            ),
            Ended::Elsewhere { at: None, wanted } => write!(
                f,
                "the target does not say where it stands in the source's log; it was to be at {wanted}: somebody else changes its replication"
            ),
        }
    }
}

pub(in crate::restore) fn during(what: &'static str) -> impl FnOnce(WireError) -> Ended {
    move |error| Ended::Wire(what, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_is_not_as_it_was_is_said_behind_what_ended_it() {
        let why = || Box::new(Ended::Interrupted(Progress { done: 1, all: 2 }));
        let of = |first, settings: &str| {
            Ended::Left { first, why: why(), settings: settings.to_owned() }.to_string()
        };
        let lines = of(None, "SET GLOBAL x = 1");
        assert!(lines.starts_with("everything up to the point was applied.\n"), "{lines}");
        assert!(
            lines.contains("and settings: SET GLOBAL x = 1. The same command again takes that back"),
            "{lines}"
        );
        let lines = of(Some(Box::new(Ended::Receive("no".to_owned()))), "");
        assert!(lines.starts_with("the target cannot receive: no\n"), "{lines}");
        assert!(!lines.contains("settings:"), "{lines}");
    }
}
