//! Whether another host of the list is the source now, although the session with this one goes on: a decision from looks at all
//! of them.
//!
//! In a planned switch-over nothing breaks. The old source becomes read-only, another server becomes writable, and the old one
//! goes on sending. The commits on the new one wait for acknowledgements, so binlogd must go there by itself. It goes where
//!
//! - the source is read-only, so that nobody is waiting there;
//! - exactly one other host is writable;
//! - that one *became* writable while the source was read-only, or a moment before: a replica that was left writable by mistake
//!   has everything too, and the source may be read-only for a backup;
//! - and it has executed everything that the read-only source has, and that the copy holds.
//!
//! Of a Galera cluster every node is writable: there it goes to any that has everything, when the source has lost the cluster. One that is
//! merely read-only is like any other source.
//!
//! Whatever else is found to be writable is not guessed about: it is said.

use source::identify::Access;
use std::time::{Duration, Instant};

/// For so long both may have been writable, which some do in the other order. It outlasts a look that is slow.
const OVERLAP_MAX: Duration = Duration::from_secs(5);

/// What a look has found counts for so long.
const LOOK_COUNTS: Duration = Duration::from_secs(3);

/// A doubt that lasts shorter is a step of a switch-over, and is not said.
const DOUBT_MIN: Duration = Duration::from_secs(5);

/// When clients could write to a host and when they could not, by the last look that found so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    read_only: Option<Instant>,
    writable: Option<Instant>,
    /// By the last look.
    is_closed: bool,
}

impl Seen {
    /// A look has found it so.
    pub(crate) fn look(&mut self, access: Access, at: Instant) {
        *if access == Access::Writable { &mut self.writable } else { &mut self.read_only } = Some(at);
        self.is_closed = access == Access::Closed;
    }

    /// Whether clients could write at the last look.
    pub(crate) fn is_writable(&self) -> bool {
        self.writable > self.read_only
    }

    fn is_writable_now(&self, now: Instant) -> bool {
        let counts = |at: Instant| now.saturating_duration_since(at) <= LOOK_COUNTS;
        self.is_writable() && self.writable.is_some_and(counts)
    }

    /// Whether it became writable when `source` was read-only, or a moment before.
    fn follows(&self, source: &Seen) -> bool {
        self.read_only.is_some_and(|then| source.writable.is_none_or(|last| then + OVERLAP_MAX >= last))
    }
}

/// Whether a host has executed all that the source has and the copy holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Has {
    /// It has.
    All,
    /// It does not, or not yet.
    NotAll,
    /// It was not asked yet, or there are no GTIDs to tell.
    Unknown,
}

/// Another host of the list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Other {
    /// Its number in the list.
    pub(crate) host: usize,
    /// Whether clients can write to it.
    pub(crate) seen: Seen,
    /// What it has.
    pub(crate) has: Has,
    /// It and the source are nodes of one Galera cluster.
    pub(crate) is_node: bool,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The session goes on.
    Stay,
    /// This host is the source now.
    GoTo(usize),
    /// The session goes on, and this is not as it should be.
    Doubt(Doubt),
}

/// Why nobody can tell which host is the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// Clients can write to these as well as to the source.
    Too(Vec<usize>),
    /// The source is read-only, and clients can write to several others.
    Several(Vec<usize>),
    /// The source is read-only, and clients could write to this one long before.
    Before(usize),
    /// The source is read-only, and this one lacks something.
    Lacks(usize),
    /// The source is read-only, and what this one has cannot be told.
    Unknown(usize),
}

impl Doubt {
    /// In words. `name` gives those of the hosts; `source` is the one that the session is with.
    pub(crate) fn in_words(&self, source: &str, name: impl Fn(usize) -> String) -> String {
        let names = |hosts: &[usize]| hosts.iter().map(|host| name(*host)).collect::<Vec<_>>().join(" and ");
        let stays = format!("binlogd stays with {source}. Switch read_only on wherever the source is not");
        match self {
            Doubt::Too(hosts) => {
                format!("clients can write to {source}, the source, and to {}: {stays}", names(hosts))
            }
            Doubt::Several(hosts) => {
                format!(
                    "{source}, the source, is read-only, and clients can write to {}: {stays}",
                    names(hosts)
                )
            }
            Doubt::Before(host) => format!(
                "{source}, the source, is read-only, and clients can write to {0}, but they could before: {stays}. If {0} is \
                 the source, end the dump on {source}",
                name(*host)
            ),
            Doubt::Lacks(host) => format!(
                "{source}, the source, is read-only, and clients can write to {0}, which lacks transactions that the source has \
                 or the copy holds: {stays}. If {0} is the source, hand over to it what it lacks",
                name(*host)
            ),
            Doubt::Unknown(host) => format!(
                "{source}, the source, is read-only, and clients can write to {0}, but without GTIDs nobody can tell what that \
                 one has: {stays}. If {0} is the source, end the dump on {source}",
                name(*host)
            ),
        }
    }
}

/// Decides for the session with `source`.
pub(crate) fn decide(source: &Seen, others: &[Other], now: Instant) -> Verdict {
    let writable: Vec<&Other> = others.iter().filter(|other| other.seen.is_writable_now(now)).collect();
    let hosts = || writable.iter().map(|other| other.host).collect();
    let node = writable.iter().find(|other| other.is_node && other.has == Has::All);
    if let Some(node) = node
        && source.is_closed
    {
        return Verdict::GoTo(node.host);
    }
    match writable[..] {
        [] => Verdict::Stay,
        _ if source.is_writable() => Verdict::Doubt(Doubt::Too(hosts())),
        [other] if !other.seen.follows(source) => Verdict::Doubt(Doubt::Before(other.host)),
        [other] => match other.has {
            Has::All => Verdict::GoTo(other.host),
            Has::NotAll => Verdict::Doubt(Doubt::Lacks(other.host)),
            Has::Unknown => Verdict::Doubt(Doubt::Unknown(other.host)),
        },
        _ => Verdict::Doubt(Doubt::Several(hosts())),
    }
}

/// A doubt, and how long it lasts.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    current: Option<(Doubt, Instant)>,
}

impl Doubts {
    /// Takes down what was decided now. The doubt that is to be said, once it has lasted.
    pub(crate) fn hear(&mut self, verdict: &Verdict, now: Instant) -> Option<&Doubt> {
        match verdict {
            Verdict::Doubt(doubt) => match &self.current {
                Some((known, _)) if known == doubt => {}
                _ => self.current = Some((doubt.clone(), now)),
            },
            Verdict::Stay | Verdict::GoTo(_) => self.current = None,
        }
        let lasts = |(_, since): &&(Doubt, Instant)| now.saturating_duration_since(*since) >= DOUBT_MIN;
        self.current.as_ref().filter(lasts).map(|(doubt, _)| doubt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks of a second ago each, from the oldest to the newest, which is of now: true for read-only.
    fn seen(looks: &[bool], now: Instant) -> Seen {
        let mut seen = Seen::default();
        for (ago, is_read_only) in looks.iter().rev().enumerate().rev() {
            let access = if *is_read_only { Access::ReadOnly } else { Access::Writable };
            seen.look(access, now - Duration::from_secs(ago as u64));
        }
        seen
    }

    fn begin() -> Instant {
        Instant::now() + Duration::from_secs(3600)
    }

    #[test]
    fn a_switch_over_is_followed_in_whichever_order_it_is_done() {
        let now = begin();
        let other = |looks: &[bool]| Other { host: 1, seen: seen(looks, now), has: Has::All, is_node: false };
        let go = |source: &[bool], looks: &[bool]| decide(&seen(source, now), &[other(looks)], now);
        assert_eq!(go(&[false, true], &[true, false]), Verdict::GoTo(1));
        assert_eq!(go(&[false, true, true, true], &[true, true, true, false]), Verdict::GoTo(1));
        assert_eq!(go(&[false, false, true], &[true, false, false]), Verdict::GoTo(1), "first the new one");
        assert_eq!(go(&[true], &[true, false]), Verdict::GoTo(1), "read-only since the session began");
    }

    #[test]
    fn a_source_that_is_read_only_for_a_while_is_not_left() {
        let now = begin();
        let source = seen(&[false, true, true], now);
        let other = |looks: &[bool], has| Other { host: 1, seen: seen(looks, now), has, is_node: false };
        assert_eq!(decide(&source, &[other(&[true, true], Has::All)], now), Verdict::Stay);
        assert_eq!(decide(&source, &[other(&[], Has::All)], now), Verdict::Stay, "nobody could look");
        let misconfigured = other(&[false, false, false], Has::All);
        assert_eq!(decide(&source, &[misconfigured], now), Verdict::Doubt(Doubt::Before(1)));
        let long_ago = other(&[true, false, false, false, false, false, false, false, false], Has::All);
        assert_eq!(decide(&source, &[long_ago], now), Verdict::Doubt(Doubt::Before(1)));
        let lacks = other(&[true, false], Has::NotAll);
        assert_eq!(decide(&source, &[lacks], now), Verdict::Doubt(Doubt::Lacks(1)));
        let no_gtids = other(&[true, false], Has::Unknown);
        assert_eq!(decide(&source, &[no_gtids], now), Verdict::Doubt(Doubt::Unknown(1)));
        let gone = other(&[true, false], Has::All);
        assert_eq!(
            decide(&source, &[gone], now + 2 * LOOK_COUNTS),
            Verdict::Stay,
            "nobody can look any more"
        );
    }

    #[test]
    fn of_several_that_are_writable_none_is_guessed() {
        let now = begin();
        let other = |host| Other { host, seen: seen(&[true, false], now), has: Has::All, is_node: false };
        let writable = seen(&[false, false], now);
        assert_eq!(decide(&writable, &[other(1)], now), Verdict::Doubt(Doubt::Too(vec![1])));
        let read_only = seen(&[false, true], now);
        let both = [other(1), other(2)];
        assert_eq!(decide(&read_only, &both, now), Verdict::Doubt(Doubt::Several(vec![1, 2])));
        let replica = Other { seen: seen(&[true, true], now), ..other(1) };
        assert_eq!(decide(&read_only, &[replica, other(2)], now), Verdict::GoTo(2));
        let node = |host, has| Other { has, is_node: true, seen: seen(&[false; 9], now), ..other(host) };
        let nodes = [node(1, Has::NotAll), node(2, Has::All)];
        let mut closed = read_only;
        closed.look(Access::Closed, now);
        assert_eq!(decide(&closed, &nodes, now), Verdict::GoTo(2), "cut off from its cluster");
        let of_others = nodes.map(|node| Other { is_node: false, ..node });
        let several = Verdict::Doubt(Doubt::Several(vec![1, 2]));
        assert_eq!(decide(&closed, &of_others, now), several, "another cluster");
        assert_eq!(decide(&read_only, &nodes, now), several, "for a backup, perhaps");
        closed.look(Access::ReadOnly, now);
        assert_eq!(decide(&closed, &nodes, now), several, "back in its cluster");
        assert_eq!(decide(&writable, &nodes, now), Verdict::Doubt(Doubt::Too(vec![1, 2])));
    }

    #[test]
    fn a_doubt_is_said_when_it_lasts() {
        let (mut doubts, now) = (Doubts::default(), begin());
        let doubt = Verdict::Doubt(Doubt::Too(vec![1]));
        let other = Verdict::Doubt(Doubt::Before(1));
        assert_eq!(doubts.hear(&doubt, now), None);
        assert_eq!(doubts.hear(&doubt, now + DOUBT_MIN), Some(&Doubt::Too(vec![1])));
        assert_eq!(doubts.hear(&other, now + DOUBT_MIN), None, "another one");
        assert_eq!(doubts.hear(&other, now + 2 * DOUBT_MIN), Some(&Doubt::Before(1)));
        assert_eq!(doubts.hear(&Verdict::Stay, now + 2 * DOUBT_MIN), None);
        assert_eq!(doubts.hear(&other, now + 3 * DOUBT_MIN), None);
        let words = Doubt::Too(vec![1]).in_words("db1:3306", |host| format!("db{}:3306", host + 1));
        assert!(words.starts_with("clients can write to db1:3306, the source, and to db2:3306: "), "{words}");
    }
}
