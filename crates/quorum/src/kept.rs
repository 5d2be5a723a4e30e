//! Whether something is kept by every promotion from now on, by what the nodes say of themselves.

use crate::ballot::majority;
use crate::words::Reply;
use codec::gtid::GtidState;

/// A node whose answer counts, and whether it holds all of a set.
///
/// Only what a node holds of the newest epoch that it has promised counts. A node that has promised a later one may have received
/// more since: that is in no promise.
pub fn counts(reply: &Reply, epoch: u64) -> bool {
    let entered = reply.promise.as_ref().map(|(promise, _)| promise.held.entered);
    epoch > 0 && entered == Some(epoch) && reply.promised == epoch
}

/// Whether a node has all of `set` on stable storage, of whatever epoch.
pub fn holds(reply: &Reply, set: &GtidState) -> bool {
    reply.promise.as_ref().is_some_and(|(promise, _)| promise.held.gtids.contains_state(set))
}

/// The epoch in which most of the nodes could acknowledge: the newest that any of them has promised.
pub fn epoch_of<'a>(replies: impl IntoIterator<Item = &'a Reply>) -> u64 {
    replies.into_iter().map(|reply| reply.promised).max().unwrap_or(0)
}

/// Whether a majority of `nodes` has all of `set` in one epoch, the newest. Then every majority that promises a later one has a
/// node that holds the set when it promises, and the history that it agrees on has the set. `replies` are of different nodes, and
/// may be of different moments: what a node holds of an epoch only grows until it promises the next one.
pub fn is_kept(nodes: usize, replies: &[&Reply], set: &GtidState) -> bool {
    let epoch = epoch_of(replies.iter().copied());
    let holders = replies.iter().filter(|reply| counts(reply, epoch) && holds(reply, set));
    holders.count() >= majority(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::promotion::{Held, Promise};
    use codec::ServerKind;
    use codec::gtid::Uuid;

    fn set(text: &str) -> GtidState {
        GtidState::parse(ServerKind::MariaDb, text).unwrap()
    }

    fn reply(promised: u64, entered: u64, gtids: &str) -> Reply {
        let promise = Promise { held: Held { entered, gtids: set(gtids) }, accepted: None };
        Reply { node: Uuid::default(), promised, keeps: false, promise: Some((promise, None)) }
    }

    #[test]
    fn a_majority_of_one_epoch_keeps_what_it_holds() {
        let kept =
            |replies: &[Reply], asked: &str| is_kept(3, &replies.iter().collect::<Vec<_>>(), &set(asked));
        let two = [reply(4, 4, "0-1-9"), reply(4, 4, "0-1-7")];
        assert!(kept(&two, "0-1-7") && !kept(&two, "0-1-8") && !kept(&two, "0-2-1"));
        assert!(!kept(&two[..1], "0-1-7"), "one of three");
        // One has promised the next epoch: what it received since is in no promise, and the other may be the only holder.
        assert!(!kept(&[reply(5, 4, "0-1-9"), reply(4, 4, "0-1-9")], "0-1-7"));
        assert!(!kept(&[reply(5, 4, "0-1-9"), reply(5, 4, "0-1-9")], "0-1-7"));
        // Accepted and not entered yet.
        assert!(!kept(&[reply(5, 4, "0-1-9"), reply(5, 5, "0-1-9")], "0-1-7"));
        let three = [reply(4, 3, "0-1-9"), reply(4, 4, "0-1-9"), reply(4, 4, "0-1-9")];
        assert!(kept(&three, "0-1-9"));
        let blank = Reply { node: Uuid::default(), promised: 0, keeps: false, promise: None };
        assert!(!kept(&[blank.clone(), blank], "0-1-1"));
    }
}
