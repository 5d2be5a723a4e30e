//! Who carries out a promotion: at any moment it may stall for ever.

use crate::server::Entry;
use codec::gtid::Uuid;
use quorum::{Accepted, Promotion};
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
pub enum Step {
    /// Promises are asked for.
    Fence,
    /// They agree on what this node holds: the successor is to have it.
    Feed { log: Vec<Entry> },
    /// A blank node waits until its copy holds what was agreed on.
    CatchUp { accepted: Accepted },
    /// The nodes are asked to accept it.
    Accept { accepted: Accepted },
}

#[derive(Debug, Clone)]
pub struct Promoter {
    /// The node where it runs.
    pub at: usize,
    pub successor: usize,
    /// Somebody else has made the successor writable before.
    pub is_follower: bool,
    pub promotion: Promotion,
    pub step: Step,
    /// What the nodes hold that have promised, with its content: the product asks for the places of their ends.
    pub copies: BTreeMap<Uuid, Vec<Entry>>,
    /// The start of the successor that was fed.
    pub fed_start: u32,
}
