//! Whether a successor comes nearer to what it lacks: a replica that is far behind is waited for as long as it does.

use codec::gtid::{GtidState, MariadbGtidState};
use status::units;
use std::time::{Duration, Instant};

/// What is left is told so often.
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// How a successor comes nearer.
pub(super) struct Progress {
    wait: Duration,
    /// What was left when it came nearer last, in the form of [`left`], and when that was.
    left: Option<GtidState>,
    since: Instant,
    told: Instant,
}

impl Progress {
    /// Waits so long for the next step, from `now` on.
    pub(super) fn new(wait: Duration, now: Instant) -> Progress {
        Progress { wait, left: None, since: now, told: now }
    }

    /// The successor has `executed`, and lacks `lacks` still. Whether it is to be waited for.
    pub(super) fn goes_on(&mut self, executed: &GtidState, lacks: &GtidState, now: Instant) -> bool {
        let left = Some(left(executed, lacks));
        if self.left != left {
            (self.left, self.since) = (left, now);
        }
        now.saturating_duration_since(self.since) < self.wait
    }

    /// What is left, in words, where it is time to tell that.
    pub(super) fn words(&mut self, lacks: &GtidState, now: Instant) -> Option<String> {
        if now.saturating_duration_since(self.told) < TOLD_EVERY {
            return None;
        }
        self.told = now;
        Some(match lacks {
            GtidState::Mysql(set) => units::counted(set.len(), "transaction"),
            // How many there are between two numbers, nobody knows without the log.
            GtidState::Mariadb(state) => format!("what goes up to {}", state.position()),
        })
    }
}

/// What becomes another one with each transaction that brings the successor nearer. A replica of MariaDB applies each domain in order,
/// and what it lacks bears the last numbers alone: there it is how far the domains have come in which it lacks something.
fn left(executed: &GtidState, lacks: &GtidState) -> GtidState {
    let (GtidState::Mariadb(executed), GtidState::Mariadb(lacks)) = (executed, lacks) else {
        return lacks.clone();
    };
    let is_lacking = |domain| lacks.list().any(|gtid| gtid.domain == domain);
    let mut left = MariadbGtidState::new();
    executed.list().filter(|gtid| is_lacking(gtid.domain)).for_each(|gtid| left.insert(gtid));
    GtidState::Mariadb(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::ServerKind;

    /// At each of these seconds, whether it is still waited for, with a `wait` of 10 s.
    fn waited(kind: ServerKind, looks: &[(u64, &str)], wanted: &str) -> Vec<bool> {
        let begin = Instant::now();
        let state = |text: &str| GtidState::parse(kind, text).unwrap();
        let mut progress = Progress::new(Duration::from_secs(10), begin);
        let look = |(second, executed): &(u64, &str)| {
            let (now, executed) = (begin + Duration::from_secs(*second), state(executed));
            progress.goes_on(&executed, &state(wanted).subtract(&executed), now)
        };
        looks.iter().map(look).collect()
    }

    #[test]
    fn a_replica_is_waited_for_while_it_comes_nearer() {
        const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        let (one, two, three) = (format!("{UUID}:1"), format!("{UUID}:1-2"), format!("{UUID}:1-3"));
        let looks = [(0, one.as_str()), (9, &two), (18, &two), (19, &two)];
        assert_eq!(waited(ServerKind::MySql, &looks, &three), [true, true, true, false]);
        let looks = [(0, "0-1-5"), (9, "0-1-6"), (18, "0-1-6,7-1-9"), (19, "0-1-6,7-1-10")];
        assert_eq!(
            waited(ServerKind::MariaDb, &looks, "0-1-9"),
            [true, true, true, false],
            "another domain brings it no nearer"
        );
    }
}
