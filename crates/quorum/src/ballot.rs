//! What a promotion is known by, and what comes of one.

use codec::BinlogName;
use codec::gtid::{GtidState, Uuid};
use std::collections::BTreeSet;
use std::fmt;

/// How many of `nodes` are a majority.
pub fn majority(nodes: usize) -> usize {
    nodes / 2 + 1
}

/// Tells one promotion from all others. Ordered by its epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ballot {
    /// Counts up with each promotion, from 1 on.
    pub epoch: u64,
    /// A random name of this promotion, so that two which take the same epoch are told apart.
    pub promoter: Uuid,
}

impl Ballot {
    /// Of a promotion that begins: above `epoch`, the highest that is known to be promised. `random` tells it from all others.
    pub fn above(epoch: u64, random: [u8; 16]) -> Ballot {
        Ballot { epoch: epoch + 1, promoter: Uuid::from_bytes(random) }
    }
}

impl fmt::Display for Ballot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "epoch {} (promotion {})", self.epoch, self.promoter)
    }
}

/// A place in the log of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Name of the file.
    pub file: String,
    /// What tells the file from all others of its name: a digest of its beginning. Logs that begin anew give the same names.
    /// 0 where it is not known: no server tells it.
    pub identity: u64,
    /// Offset in it, a boundary.
    pub offset: u64,
}

impl Place {
    /// Whether it stands behind another one of the same log.
    ///
    /// # Errors
    /// In words, when the two are not of one log.
    pub fn comes_after(&self, other: &Place) -> Result<bool, String> {
        if self.file != other.file {
            return comes_later(&self.file, &other.file);
        }
        match self.identity == other.identity {
            true => Ok(self.offset > other.offset),
            false => Err(format!(
                "the nodes have different files of the name {}: the source began its logs anew",
                self.file
            )),
        }
    }
}

/// Whether a file of a log comes after another one, by their names.
fn comes_later(one: &str, other: &str) -> Result<bool, String> {
    let name = |name| BinlogName::parse(name).map_err(|error| error.to_string());
    let (one, other) = (name(one)?, name(other)?);
    Ok(one.base() == other.base() && one > other)
}

/// The source of an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The promotion that made it the source.
    pub ballot: Ballot,
    /// The promotion with which the quorum began: what tells it from all others.
    pub founded: Ballot,
    /// Its UUID, or what stands in its place where it has none, as timelines name it.
    pub source: String,
    /// The nodes of the epoch, by their names. Nobody else counts in it, and nobody else's promise counts after it.
    pub members: BTreeSet<Uuid>,
    /// The history of the epoch: what the promises agreed on, or more. The source had it when it was proposed.
    pub history: GtidState,
    /// The end of the source's own log then. A copy of the source that has this place holds the history: a source that
    /// crashed and lost a part of it since begins another file, though its GTIDs may say that it has everything.
    pub place: Place,
}

/// Whose promises a promotion needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The first of all: every node's, none of which belongs to a quorum. It is in force once every node has recorded it.
    Founding,
    /// A majority's.
    Ordinary,
    /// Of the present source, by a node that has no memory and is called so: of so many others that they share one with every
    /// majority to which the node may have belonged.
    Joining(Uuid),
}

impl Kind {
    /// How many of `nodes` must record the source before it is in force.
    pub fn acceptances_of(self, nodes: usize) -> usize {
        match self {
            Kind::Founding => nodes,
            Kind::Ordinary | Kind::Joining(_) => majority(nodes),
        }
    }

    /// How many of `nodes` must promise.
    pub fn promises_of(self, nodes: usize) -> usize {
        match self {
            Kind::Founding => nodes,
            Kind::Ordinary => majority(nodes),
            Kind::Joining(_) => nodes + 1 - majority(nodes),
        }
    }
}
