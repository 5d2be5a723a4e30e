//! What goes wrong in a round, by a seed.

use std::time::Duration;

use crate::common::nodes::CUT;
use crate::common::proxy::Fault;
use crate::common::workload::Random;

pub(super) const SERVERS: usize = 3;
pub(super) const NODES: usize = 3;

/// To one of the nodes, until another server is the source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum OfNode {
    Nothing,
    /// SIGKILL.
    Killed,
    /// SIGSTOP.
    Stopped,
    FullDisk,
    /// Its ways to the source, to the other nodes, to both.
    Cut {
        from_source: bool,
        from_others: bool,
        by: Fault,
    },
}

/// To the source, before another server becomes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum OfSource {
    /// It lives, and is written to.
    Nothing,
    /// It lives, and is read-only: a planned change.
    ReadOnly,
    /// SIGKILL.
    Killed,
    /// SIGSTOP; it goes on when another one is the source.
    Stopped,
    /// No node reaches it; its clients and its replicas do.
    CutOff(Fault),
}

/// To who promotes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum OfPromoter {
    Nothing,
    /// SIGKILL after so long; somebody else promotes then.
    Killed(Duration),
    /// Another one promotes the same server, at once.
    Two,
    /// Another one promotes the other server, at once.
    Rivals,
}

/// A round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    /// To whom [`OfNode`] happens.
    pub(super) node: usize,
    pub(super) of_node: OfNode,
    pub(super) of_source: OfSource,
    pub(super) of_promoter: OfPromoter,
    /// Time from the fault to the promotion.
    pub(super) pause: Duration,
    /// The node at which it is promoted.
    pub(super) at: usize,
    /// So many servers after the present source stands the one that is to be the source.
    pub(super) step: usize,
    /// A source that was killed comes back as a source, not knowing what has happened.
    pub(super) unaware: bool,
}

fn milliseconds(random: &mut Random, most: u64) -> Duration {
    Duration::from_millis(random.below(most))
}

fn way_to_cut(random: &mut Random) -> Fault {
    if random.below(2) == 0 { CUT } else { Fault::Blackout }
}

impl Event {
    /// Rounds that found something.
    pub(super) fn found() -> [Event; 3] {
        let quiet = Event {
            node: 0,
            of_node: OfNode::Nothing,
            of_source: OfSource::Nothing,
            of_promoter: OfPromoter::Nothing,
            pause: Duration::from_millis(500),
            at: 1,
            step: 1,
            unaware: false,
        };
        let from_others = OfNode::Cut { from_source: false, from_others: true, by: CUT };
        [
            // The node holds the end of the old source's log, which nobody acknowledged, and counts for the new source all the same.
            Event { of_node: from_others, ..quiet },
            // The node hears of the epoch when it cannot write that down, and follows when it can.
            Event { of_node: OfNode::FullDisk, of_promoter: OfPromoter::Two, ..quiet },
            // As a replica the old source waits for no acknowledgement.
            Event { of_source: OfSource::ReadOnly, ..quiet },
        ]
    }

    pub(super) fn any(random: &mut Random) -> Event {
        let of_node = match random.below(10) {
            0..=2 => OfNode::Nothing,
            3 => OfNode::Killed,
            4 | 5 => OfNode::Stopped,
            6 => OfNode::FullDisk,
            _ => {
                let which = random.below(3);
                OfNode::Cut { from_source: which != 1, from_others: which != 0, by: way_to_cut(random) }
            }
        };
        let of_source = match random.below(10) {
            0 | 1 => OfSource::Nothing,
            2 => OfSource::ReadOnly,
            3..=5 => OfSource::Killed,
            6 | 7 => OfSource::Stopped,
            _ => OfSource::CutOff(way_to_cut(random)),
        };
        let of_promoter = match random.below(8) {
            0..=2 => OfPromoter::Nothing,
            3..=5 => OfPromoter::Killed(milliseconds(random, 1_500)),
            6 => OfPromoter::Two,
            _ => OfPromoter::Rivals,
        };
        let number = |random: &mut Random, most: usize| random.below(most as u64) as usize;
        Event {
            node: number(random, NODES),
            of_node,
            of_source,
            of_promoter,
            pause: milliseconds(random, 1_500),
            at: number(random, NODES),
            step: 1 + number(random, SERVERS - 1),
            unaware: random.below(2) == 0,
        }
    }
}
