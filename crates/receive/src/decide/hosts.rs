//! Which host of the list is the source: a decision from what has answered and for how long nothing better has.
//!
//! The list names servers of which one is the source at a time. A server that answers is not always that one: an old source
//! that was started again, or a replica. To receive from it would be worse than to receive from nobody: the real source
//! waits for acknowledgements that go elsewhere. So a server that is read-only, or that lacks transactions which the copy
//! holds, is taken only when the others of the list had their chance.

use std::time::{Duration, Instant};

/// How long nothing better must have been found before a read-only server is taken for the source. A promotion takes
/// seconds: its last step is to switch read_only off.
pub const STANDBY_PATIENCE: Duration = Duration::from_secs(10);

/// What a server that answers looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The source, as far as can be told.
    Source,
    /// Clients can write to it, but it lacks transactions that the copy holds: an old source that was started again, or the
    /// new one, promoted without its predecessor's last transactions.
    Behind,
    /// Clients cannot write to it (`read_only`): a replica, or a server before its promotion.
    ReadOnly,
}

impl Standing {
    /// Of a server that is read-only or not, and lacks transactions that the copy holds or not. `alone`: the list names no
    /// other, so that a server that has everything is what the operator means, read-only or not.
    pub fn of(is_read_only: bool, lacks_ours: bool, alone: bool) -> Standing {
        match (is_read_only, lacks_ours) {
            (true, true) => Standing::ReadOnly,
            (true, false) if !alone => Standing::ReadOnly,
            (false, true) => Standing::Behind,
            (_, false) => Standing::Source,
        }
    }
}

/// The hosts of one source, by their number in the list.
#[derive(Debug)]
pub struct Hosts {
    count: usize,
    current: usize,
    /// The host that was left for the current one, which may be the source again by now.
    left: Option<usize>,
    /// Hosts that were tried in vain since the last session.
    failures: usize,
    /// When the search for a source began.
    since: Instant,
}

impl Hosts {
    /// A list of `count` hosts, of which the first is tried first.
    ///
    /// # Panics
    /// When the list is empty, which no valid configuration has.
    pub fn new(count: usize, now: Instant) -> Hosts {
        assert!(count > 0, "a source has at least one host");
        Hosts { count, current: 0, left: None, failures: 0, since: now }
    }

    /// Number of the host to try.
    pub fn current(&self) -> usize {
        self.current
    }

    /// True when the list names no other.
    pub fn is_alone(&self) -> bool {
        self.count == 1
    }

    /// Whether a server of this standing is taken for the source now.
    pub fn accepts(&self, standing: Standing, now: Instant) -> bool {
        match standing {
            Standing::Source => true,
            Standing::Behind => self.is_alone() || self.failures >= self.count,
            Standing::ReadOnly => now.duration_since(self.since) >= STANDBY_PATIENCE,
        }
    }

    /// The current host is not the source now. The next one is tried; true when all were, so that it is time for a pause.
    pub fn failed(&mut self) -> bool {
        self.failures += 1;
        self.current = self.left.take().unwrap_or((self.current + 1) % self.count);
        self.failures.is_multiple_of(self.count)
    }

    /// This host is the source now, and no longer the current one.
    pub fn go_to(&mut self, host: usize) {
        self.left = Some(self.current);
        self.current = host % self.count;
    }

    /// The current host was the source until now, so it is tried first.
    pub fn session_ended(&mut self, now: Instant) {
        (self.left, self.failures, self.since) = (None, 0, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_looks_like() {
        let of = |is_read_only, lacks_ours| {
            [false, true].map(|alone| Standing::of(is_read_only, lacks_ours, alone))
        };
        assert_eq!(of(false, false), [Standing::Source; 2]);
        assert_eq!(of(false, true), [Standing::Behind; 2]);
        assert_eq!(of(true, true), [Standing::ReadOnly; 2]);
        assert_eq!(of(true, false), [Standing::ReadOnly, Standing::Source]);
    }

    #[test]
    fn a_server_that_lacks_something_is_taken_when_the_others_had_their_chance() {
        let now = Instant::now();
        let mut hosts = Hosts::new(2, now);
        assert!(!hosts.accepts(Standing::Behind, now));
        assert!(!hosts.failed());
        assert_eq!(hosts.current(), 1);
        assert!(!hosts.accepts(Standing::Behind, now));
        assert!(hosts.failed(), "all were tried");
        assert_eq!(hosts.current(), 0);
        assert!(hosts.accepts(Standing::Behind, now));
        hosts.session_ended(now);
        assert!(!hosts.accepts(Standing::Behind, now));
        assert!(Hosts::new(1, now).accepts(Standing::Behind, now), "where there is no other, at once");
    }

    #[test]
    fn who_was_left_for_another_one_is_tried_next() {
        let mut hosts = Hosts::new(4, Instant::now());
        hosts.failed();
        hosts.go_to(3);
        assert_eq!(hosts.current(), 3);
        assert!(!hosts.failed());
        assert_eq!(hosts.current(), 1);
        hosts.failed();
        assert_eq!(hosts.current(), 2, "and then one after the other");
    }

    #[test]
    fn a_read_only_server_is_taken_when_nothing_better_comes_for_long() {
        let begin = Instant::now();
        let hosts = Hosts::new(2, begin);
        assert!(!hosts.accepts(Standing::ReadOnly, begin + STANDBY_PATIENCE / 2));
        assert!(hosts.accepts(Standing::ReadOnly, begin + STANDBY_PATIENCE));
    }
}
