//! What can be changed on a source's page, and who carries it out.

pub(crate) mod act;
pub(crate) mod desk;
pub(crate) mod promotion;

use super::fields::Fields;
pub use promotion::{NotPromoted, PromoteAsked};
use quorum::Reply;
use serde_json::Value;

/// Something that an operator does to a source. None of them deletes a log file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// Nothing is received, and so nothing acknowledged, until [`Start`](Self::Start) or a restart.
    Stop,
    /// Receives again.
    Start,
    /// Ends the connection of a reader, by its number.
    EndReader(u32),
    /// Forgets the place of a reader, for which files are kept.
    DropSlot(String),
}

/// What carries deeds out, and asks other nodes.
pub trait Controls: Send + Sync {
    /// Does it, on behalf of `by`, which may take a while. Says in words what has happened, or why nothing has.
    ///
    /// # Errors
    /// When nothing has changed.
    fn carry_out(&self, source: &str, deed: &Deed, by: &str) -> Result<String, String>;

    /// What each node of a source's quorum holds, by its own word now: this one first, without an address. Takes seconds where one does
    /// not answer. Empty where the source has no quorum.
    fn ask_nodes(&self, source: &str) -> Vec<(Option<String>, Result<Reply, String>)>;

    /// Makes another server the source of that quorum, on behalf of `by`. Takes seconds, and goes on to its end whoever listens. One at a
    /// time. Gives what was found and done.
    ///
    /// # Errors
    /// Why there is no promotion, or none yet.
    fn promote(&self, source: &str, asked: &PromoteAsked, by: &str) -> Result<Value, NotPromoted>;
}

impl Deed {
    /// What a form or a link asks for; `None` for something else.
    pub(crate) fn of(fields: &Fields) -> Option<Deed> {
        Some(match fields.get("do")? {
            "stop" => Deed::Stop,
            "start" => Deed::Start,
            "end" => Deed::EndReader(fields.get("reader")?.parse().ok()?),
            "drop" => Deed::DropSlot(fields.get("slot").filter(|slot| !slot.is_empty())?.to_owned()),
            _ => return None,
        })
    }

    /// The same as fields, of a form or of a link.
    pub(crate) fn fields(&self) -> Vec<(&'static str, String)> {
        match self {
            Deed::Stop => vec![("do", "stop".to_owned())],
            Deed::Start => vec![("do", "start".to_owned())],
            Deed::EndReader(id) => vec![("do", "end".to_owned()), ("reader", id.to_string())],
            Deed::DropSlot(slot) => vec![("do", "drop".to_owned()), ("slot", slot.clone())],
        }
    }
}
