//! The nodes of a quorum, as a promoter asks them.

use super::no_promotion::NoPromotion;
use codec::gtid::{GtidState, Uuid};
use config::HostPort;
use quorum::{Accepted, Agreed, Ballot, Kind, Promise, Promotion, Reply, Request, majority};
use receive::Upstream;
use receive::nodes::ask::{ask_enough, ballot_above};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The nodes of a quorum, as a promoter asks them.
#[derive(Clone)]
pub struct Group {
    pub(super) upstream: Upstream,
    /// The own one first.
    addresses: Vec<HostPort>,
}

/// What the nodes answer to one request.
#[derive(Debug, Clone, Default)]
pub(super) struct Answers {
    pub(super) replies: Vec<(String, Reply)>,
    /// What the others say.
    pub(super) failures: Vec<(String, String)>,
}

impl Group {
    /// Of the nodes that the configuration of `upstream` names, and the own one at `own`.
    pub fn new(upstream: Upstream, own: HostPort) -> Group {
        let addresses = std::iter::once(own).chain(upstream.config.quorum.iter().cloned()).collect();
        Group { upstream, addresses }
    }

    /// How many there are.
    pub fn nodes(&self) -> usize {
        self.addresses.len()
    }

    /// How many are a majority.
    pub fn majority(&self) -> usize {
        majority(self.nodes())
    }

    /// The nodes of these addresses, in the order in which a server at `host` should try them: the name of a machine for itself means
    /// nothing to another.
    pub(super) fn reached_from<'a>(
        &self,
        host: &str,
        addresses: impl Iterator<Item = &'a String>,
    ) -> Vec<HostPort> {
        let of =
            |address: &String| self.addresses.iter().find(|known| known.to_string() == *address).cloned();
        let mut nodes: Vec<HostPort> = addresses.filter_map(of).collect();
        nodes.sort_by_key(|node| is_loopback(&node.host) && !is_loopback(host));
        nodes
    }

    /// The address that is written so.
    pub(super) fn address(&self, name: &str) -> Option<&HostPort> {
        self.addresses.iter().find(|address| address.to_string() == name)
    }

    pub(super) fn ballot_above(&self, epoch: u64) -> quorum::Ballot {
        ballot_above(epoch, &*self.upstream.clock)
    }

    /// Asks them all at once, and waits for each.
    pub(super) fn ask(&self, request: &Request) -> Answers {
        self.ask_until(request, |_| false)
    }

    /// Asks them all at once. Once `is_enough` of the replies, nobody waits long for a node that hangs.
    pub(super) fn ask_until(&self, request: &Request, is_enough: impl Fn(&[&Reply]) -> bool) -> Answers {
        let mut answers = Answers { replies: Vec::new(), failures: Vec::new() };
        for (node, answer) in ask_enough(&self.upstream, &self.addresses, request, is_enough) {
            match answer {
                Ok(reply) => answers.replies.push((node.to_string(), reply)),
                Err(error) => answers.failures.push((node.to_string(), error)),
            }
        }
        answers
    }

    /// What they hold and have promised; fails when too few can promise. What is in force is known by a majority; a node that hangs
    /// is waited for only while there is none.
    pub(super) fn look(&self) -> Result<Answers, NoPromotion> {
        let is_majority = |replies: &[&Reply]| {
            let members = replies.iter().filter(|reply| is_member(reply)).map(|reply| reply.node);
            members.collect::<BTreeSet<Uuid>>().len() >= self.majority()
        };
        self.looked(self.ask_until(&Request::Look, is_majority))
    }

    /// The same of all, each waited for: by what one alone has promised, it may be kept out of the epoch.
    pub(super) fn look_at_all(&self) -> Result<Answers, NoPromotion> {
        self.looked(self.ask(&Request::Look))
    }

    fn looked(&self, mut answers: Answers) -> Result<Answers, NoPromotion> {
        let mut known: BTreeMap<Uuid, &String> = BTreeMap::new();
        for (address, reply) in &answers.replies {
            if let Some(other) = known.insert(reply.node, address) {
                return Err(NoPromotion::Twice(other.clone(), address.clone()));
            }
        }
        let (members, blank): (Vec<_>, Vec<_>) =
            std::mem::take(&mut answers.replies).into_iter().partition(|(_, reply)| is_member(reply));
        answers.replies = members;
        let why = "it has no memory of the quorum: it has not begun, or the node has not joined it yet";
        answers.failures.extend(blank.into_iter().map(|(address, _)| (address, why.to_owned())));
        if answers.replies.len() < self.majority() {
            return Err(NoPromotion::TooFew {
                answered: answers.replies.len(),
                nodes: self.nodes(),
                needed: self.majority(),
                why: answers.why(),
            });
        }
        Ok(answers)
    }
}

/// How this machine reaches a port of its own that listens at `address`.
pub fn reached_at(address: SocketAddr) -> HostPort {
    let host = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.to_string(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.to_string(),
        ip => ip.to_string(),
    };
    HostPort { host, port: address.port() }
}

/// Whether a node can promise.
fn is_member(reply: &Reply) -> bool {
    reply.promise.as_ref().is_some_and(|(held, _)| held.accepted.is_some())
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl Answers {
    /// What the nodes say that do not do it.
    pub(super) fn why(&self) -> String {
        let lines: Vec<String> =
            self.failures.iter().map(|(address, error)| format!("{address}: {error}")).collect();
        lines.join("; ")
    }

    fn held(&self) -> impl Iterator<Item = &Promise> {
        self.replies.iter().filter_map(|(_, reply)| reply.promise.as_ref().map(|(held, _)| held))
    }

    /// How many of them receive from a server.
    pub(super) fn attached_to(&self, server: &str) -> usize {
        let of = |reply: &Reply| Some(reply.promise.as_ref()?.1.as_ref()?.0.clone());
        self.replies.iter().filter(|(_, reply)| of(reply).is_some_and(|source| source == server)).count()
    }

    /// The highest epoch that was promised.
    pub(super) fn promised(&self) -> u64 {
        self.replies.iter().map(|(_, reply)| reply.promised).max().unwrap_or(0)
    }

    /// The newest source that was accepted.
    pub(super) fn accepted(&self) -> Option<&Accepted> {
        self.held().filter_map(|held| held.accepted.as_ref()).max_by_key(|accepted| accepted.ballot)
    }

    /// Whether a source is in force: so many nodes have accepted it, and have promised nothing else since.
    pub(super) fn is_in_force(&self, accepted: &Accepted, needed: usize) -> bool {
        let has = |reply: &&(String, Reply)| {
            reply.1.promised == accepted.ballot.epoch
                && reply.1.promise.as_ref().is_some_and(|(held, _)| held.accepted.as_ref() == Some(accepted))
        };
        self.replies.iter().filter(has).count() >= needed
    }

    /// What they would agree on as they are now.
    pub(super) fn agreed(&self, nodes: usize) -> Result<Agreed, NoPromotion> {
        let mut expected = Promotion::new(Ballot::above(self.promised(), [0; 16]), Kind::Ordinary, nodes);
        for (_, reply) in &self.replies {
            if let Some((promise, _)) = &reply.promise {
                expected.promised(reply.node, promise.clone());
            }
        }
        let why = "too few of them belong to one founding of the quorum";
        expected.agreed()?.ok_or_else(|| NoPromotion::OtherLogs(why.to_owned()))
    }

    /// All that any of them holds.
    pub(super) fn all_held(&self) -> GtidState {
        let mut held = self.held().map(|promise| &promise.held.gtids);
        let mut all = held.next().cloned().unwrap_or_default();
        for more in held {
            // All are of one kind of server, as its timelines are.
            let _ = all.union_with(more);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::ServerKind;
    use quorum::{Held, Place};

    fn accepted(epoch: u64, source: &str) -> Accepted {
        let ballot = |epoch| Ballot::above(epoch - 1, [1; 16]);
        Accepted {
            ballot: ballot(epoch),
            founded: ballot(1),
            source: source.to_owned(),
            members: (1..=9).map(|node| Uuid::from_bytes([node; 16])).collect(),
            history: GtidState::empty(ServerKind::MariaDb),
            place: Place { file: "b.000001".to_owned(), identity: 0, offset: 4 },
        }
    }

    fn reply(node: u8, promised: u64, of: &Accepted, gtids: &str) -> (String, Reply) {
        let gtids = GtidState::parse(ServerKind::MariaDb, gtids).unwrap();
        let promise = Promise { held: Held { entered: 1, gtids }, accepted: Some(of.clone()) };
        let node = Uuid::from_bytes([node; 16]);
        (format!("b{promised}"), Reply { node, promised, keeps: false, promise: Some((promise, None)) })
    }

    #[test]
    fn a_source_is_in_force_while_a_majority_has_promised_nothing_else() {
        let (old, new) = (accepted(1, "a"), accepted(3, "b"));
        let answers = |replies| Answers { replies, failures: Vec::new() };
        let one = answers(vec![reply(1, 1, &old, "0-1-5"), reply(2, 3, &new, "0-1-7,1-1-1")]);
        assert_eq!((one.accepted(), one.promised()), (Some(&new), 3));
        assert!(!one.is_in_force(&new, 2) && !one.is_in_force(&old, 2));
        assert_eq!(one.all_held(), GtidState::parse(ServerKind::MariaDb, "0-1-7,1-1-1").unwrap());
        let two = answers(vec![reply(1, 3, &new, ""), reply(2, 3, &new, "")]);
        assert!(two.is_in_force(&new, 2));
        let fenced = answers(vec![reply(1, 3, &new, ""), reply(2, 4, &new, "")]);
        assert!(!fenced.is_in_force(&new, 2));
    }
}
