//! What the receiver and the watch tell of semi-sync.

use super::SourceMonitor;
use crate::lock::lock;
use crate::semi_sync::{Counted, Looks, SemiSyncLook, SemiSyncStatus};
use crate::session::Session;
use jiff::Timestamp;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::Thread;

impl SourceMonitor {
    /// The session's first event has come: what was negotiated, whether the source took the offer, and whether
    /// acknowledgements are withheld. Call it before the state becomes [`Receiving`](crate::SourceState::Receiving) or
    /// [`Withholding`](crate::SourceState::Withholding); the step from this to that ends the withholding.
    pub fn semi_sync_begins(&self, status: SemiSyncStatus, negotiated: bool, withheld: bool) {
        let mut session = lock(&self.session);
        session.change_semi_sync(|Session { facts, semi_sync, .. }| {
            semi_sync.begins(facts, &self.semi_sync_signal, status, negotiated, withheld);
        });
    }

    /// Whether [`semi_sync_acknowledges`](Self::semi_sync_acknowledges) is to be called after an acknowledgement. Cheap.
    pub fn semi_sync_wants_word(&self) -> bool {
        self.semi_sync_signal.wants_word()
    }

    /// The source has asked for an acknowledgement and got it.
    pub fn semi_sync_acknowledges(&self) {
        self.semi_sync_signal.heard();
        let mut session = lock(&self.session);
        session.change_semi_sync(|Session { facts, semi_sync, .. }| {
            semi_sync.acknowledges(facts, &self.semi_sync_signal);
        });
    }

    /// Further transactions arrived for which nobody asked in time, the newest with this GTID.
    pub fn semi_sync_unasked(&self, transactions: u64, last_gtid: Option<String>) {
        self.counters.unasked_transactions.fetch_add(transactions, Relaxed);
        let mut session = lock(&self.session);
        session.change_semi_sync(|Session { facts, semi_sync, .. }| {
            semi_sync.unasked(facts, &self.semi_sync_signal, transactions, last_gtid);
        });
    }

    /// The source asks again, after [`semi_sync_unasked`](Self::semi_sync_unasked).
    pub fn semi_sync_asked_again(&self) {
        lock(&self.session).semi_sync.asked_again();
    }

    /// The thread that looks at the source; it is unparked when a look is wanted at once.
    pub fn set_semi_sync_watcher(&self, watcher: Option<Thread>) {
        self.semi_sync_signal.set_watcher(watcher);
    }

    /// A look at `server` (its UUID, or another name of it) succeeded while a session with it lasts. `None`: the server has
    /// no semi-sync. `started`: when the server began to run, if that is known.
    pub fn semi_sync_looked(&self, server: &str, look: Option<SemiSyncLook>, started: Option<Timestamp>) {
        let mut session = lock(&self.session);
        session.change_semi_sync(|Session { state, facts, semi_sync, .. }| {
            if state.is_session() {
                semi_sync.looked(facts, &self.semi_sync_signal, server, look, started);
            }
        });
    }

    /// What the looks at the source have found.
    pub fn semi_sync_look(&self) -> Looks {
        lock(&self.session).semi_sync.looks()
    }

    /// The last look failed, so that the stream alone tells from now on.
    pub fn semi_sync_not_looked(&self, error: String) {
        let mut session = lock(&self.session);
        let Session { facts, semi_sync, .. } = &mut *session;
        semi_sync.not_looked(facts, &self.semi_sync_signal, error);
    }

    /// Commits wait while nothing arrives, and the source could not be asked why (`Some`), or that is over.
    pub fn semi_sync_waits_in_vain(&self, error: Option<String>) {
        let mut session = lock(&self.session);
        session.change_semi_sync(|Session { state, facts, semi_sync, .. }| {
            semi_sync.waits_in_vain(facts, &self.semi_sync_signal, error.filter(|_| state.is_session()));
        });
    }

    /// What the daemon before had counted. Nothing when this one has looked already.
    pub fn semi_sync_was_counted(&self, counted: Counted) {
        lock(&self.session).semi_sync.was_counted(counted);
    }

    /// What was counted at the last look.
    pub fn semi_sync_counted(&self) -> Option<Counted> {
        lock(&self.session).semi_sync.counted()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::state::SourceState;
    use super::*;

    const SERVER: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn look(at: i64, no_tx: u64) -> SemiSyncLook {
        let at = Timestamp::from_second(at).unwrap();
        SemiSyncLook { at, enabled: true, on: true, clients: 1, no_tx, ..SemiSyncLook::default() }
    }

    /// Receiving, with semi-sync negotiated.
    fn attached() -> SourceMonitor {
        let monitor = SourceMonitor::new("db1");
        monitor.set_state(SourceState::Connecting { host: "db1:3306".to_owned() });
        begin(&monitor);
        monitor
    }

    fn begin(monitor: &SourceMonitor) {
        let status = SemiSyncStatus { active: true, reason: "negotiated".to_owned() };
        monitor.semi_sync_begins(status, true, false);
        monitor.set_state(SourceState::Receiving);
    }

    fn is_active(monitor: &SourceMonitor) -> bool {
        monitor.facts().semi_sync.active
    }

    #[test]
    fn looks_decide_while_they_succeed() {
        let monitor = attached();
        monitor.semi_sync_looked(SERVER, Some(look(10, 0)), None);
        monitor.semi_sync_unasked(3, None);
        assert!(is_active(&monitor), "another replica may have acknowledged them");
        for (lost, word) in [
            (SemiSyncLook { enabled: false, on: false, ..look(11, 0) }, "switched off on the source"),
            (SemiSyncLook { on: false, ..look(12, 0) }, "gave up waiting"),
            (SemiSyncLook { clients: 0, ..look(13, 0) }, "no semi-sync replica"),
        ] {
            monitor.semi_sync_looked(SERVER, Some(lost), None);
            let status = monitor.facts().semi_sync;
            assert!(!status.active && status.reason.contains(word), "{status:?}");
            assert!(monitor.semi_sync_wants_word());
            monitor.semi_sync_acknowledges();
            assert!(
                !is_active(&monitor) && !monitor.semi_sync_wants_word(),
                "one look is asked for, not many"
            );
        }
        monitor.semi_sync_looked(SERVER, Some(look(14, 0)), None);
        assert!(is_active(&monitor));
    }

    #[test]
    fn without_looks_the_stream_decides() {
        let monitor = attached();
        monitor.semi_sync_looked(SERVER, Some(SemiSyncLook { on: false, ..look(10, 0) }), None);
        monitor.semi_sync_not_looked("no answer".to_owned());
        assert!(!is_active(&monitor), "what the last look said holds until the stream says something else");
        assert!(monitor.semi_sync_wants_word());
        monitor.semi_sync_acknowledges();
        assert!(is_active(&monitor) && !monitor.semi_sync_wants_word());
        monitor.semi_sync_unasked(2, Some("a:1".to_owned()));
        monitor.semi_sync_unasked(1, Some("a:2".to_owned()));
        assert!(!is_active(&monitor));
        let unasked = || monitor.status(Timestamp::UNIX_EPOCH).unasked_transactions;
        assert_eq!((unasked().transactions, unasked().last_gtid.as_deref()), (3, Some("a:2")));
        assert!(unasked().since.is_some() && unasked().until.is_none());
        monitor.semi_sync_asked_again();
        assert!(unasked().until.is_some());
        monitor.semi_sync_unasked(1, None);
        assert_eq!((unasked().transactions, unasked().until), (1, None), "a new run");
        assert_eq!(monitor.counters.values().unasked_transactions, 4);
    }

    #[test]
    fn the_growth_of_no_tx_is_counted_over_sessions_restarts_and_resets() {
        let monitor = attached();
        let counted = || monitor.semi_sync_look().unacknowledged;
        monitor.semi_sync_looked(SERVER, Some(look(10, 1_000)), None);
        assert_eq!(counted(), 0, "what was before the first look is not of our time");
        monitor.semi_sync_looked(SERVER, Some(look(12, 1_007)), None);
        let commits = || monitor.status(Timestamp::UNIX_EPOCH).unacknowledged_commits;
        let second = |at: Option<Timestamp>| at.map(Timestamp::as_second);
        assert_eq!((counted(), second(commits().since), second(commits().until)), (7, Some(10), None));
        monitor.semi_sync_looked(SERVER, Some(look(14, 1_007)), None);
        assert_eq!(second(commits().until), Some(14));
        monitor.set_state(SourceState::Connecting { host: "db1:3306".to_owned() });
        assert!(!is_active(&monitor));
        begin(&monitor);
        monitor.semi_sync_looked(SERVER, Some(look(60, 1_010)), None);
        assert_eq!((counted(), second(commits().since)), (10, Some(14)), "while nobody looked");
        monitor.semi_sync_looked(SERVER, Some(look(62, 4)), None);
        assert_eq!(counted(), 14, "the server began to count anew");
        monitor.semi_sync_looked("another", Some(look(64, 500)), None);
        assert_eq!(counted(), 14, "another server's past");
        monitor.semi_sync_looked("another", Some(look(66, 501)), None);
        assert_eq!(counted(), 15);
    }

    #[test]
    fn what_the_daemon_before_had_counted_tells_what_was_made_meanwhile() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let first_look = |no_tx, yes_tx, started: Option<i64>| {
            let monitor = attached();
            monitor.semi_sync_was_counted(Counted {
                server: SERVER.to_owned(),
                no_tx: 1_384,
                yes_tx: 9,
                at: at(100),
            });
            monitor.semi_sync_looked(
                SERVER,
                Some(SemiSyncLook { yes_tx, ..look(200, no_tx) }),
                started.map(at),
            );
            let commits = monitor.status(Timestamp::UNIX_EPOCH).unacknowledged_commits;
            assert_eq!(commits.while_away, Some(commits.commits));
            assert_eq!(commits.since, (commits.commits > 0).then(|| at(100)));
            // From then on as ever, and a daemon that has looked knows better than the one before.
            monitor.semi_sync_was_counted(Counted {
                server: SERVER.to_owned(),
                no_tx: 0,
                yes_tx: 0,
                at: at(0),
            });
            monitor.semi_sync_looked(
                SERVER,
                Some(SemiSyncLook { yes_tx, ..look(201, no_tx + 2) }),
                started.map(at),
            );
            let now = monitor.status(Timestamp::UNIX_EPOCH).unacknowledged_commits;
            assert_eq!((now.commits, now.while_away), (commits.commits + 2, commits.while_away));
            commits.commits
        };
        assert_eq!(first_look(2_679, 9, None), 1_295);
        assert_eq!(first_look(2_679, 10, Some(50)), 1_295);
        assert_eq!(first_look(1_384, 9, Some(100)), 0, "whole seconds");
        assert_eq!(first_look(7, 9, None), 7, "the counter began anew");
        assert_eq!(first_look(2_679, 10, Some(150)), 2_679, "it did, and has come further");
        assert_eq!(first_look(2_679, 8, None), 2_679, "of the other counter this shows");
        let monitor = attached();
        monitor.semi_sync_was_counted(Counted {
            server: "another".to_owned(),
            no_tx: 3,
            yes_tx: 0,
            at: at(100),
        });
        monitor.semi_sync_looked(SERVER, Some(look(200, 1_000)), None);
        let commits = monitor.status(Timestamp::UNIX_EPOCH).unacknowledged_commits;
        assert_eq!((commits.commits, commits.while_away, commits.since), (0, None, None));
    }

    #[test]
    fn while_acknowledgements_are_withheld_semi_sync_is_not_active_and_looks_count() {
        let monitor = SourceMonitor::new("db1");
        let negotiated = SemiSyncStatus { active: true, reason: "negotiated".to_owned() };
        monitor.semi_sync_begins(negotiated, true, true);
        monitor.update_facts(|facts| facts.host = Some("db1:3306".to_owned()));
        monitor.set_state(SourceState::Withholding);
        assert!(monitor.watched().is_some());
        let is_withheld = |word: &str| {
            let status = monitor.facts().semi_sync;
            let says_so = status.reason.starts_with("acknowledgements are withheld");
            assert!(!status.active && says_so && status.reason.contains(word), "{status:?}");
        };
        is_withheld("commits wait");
        // What was handed back is acknowledged.
        monitor.semi_sync_acknowledges();
        is_withheld("commits wait");
        monitor.semi_sync_looked(SERVER, Some(look(10, 1_000)), None);
        is_withheld("commits wait");
        monitor.semi_sync_looked(SERVER, Some(SemiSyncLook { on: false, ..look(11, 1_001) }), None);
        is_withheld("gave up waiting");
        assert_eq!(monitor.status(Timestamp::UNIX_EPOCH).unacknowledged_commits.commits, 1);
        monitor.semi_sync_acknowledges();
        is_withheld("gave up waiting");
        monitor.semi_sync_looked(
            SERVER,
            Some(SemiSyncLook { enabled: false, on: false, ..look(12, 1_001) }),
            None,
        );
        is_withheld("switched off on the source");
        monitor.semi_sync_looked(SERVER, Some(look(13, 1_001)), None);
        is_withheld("commits wait");
        monitor.set_state(SourceState::Receiving);
        assert!(is_active(&monitor) && !monitor.facts().semi_sync.reason.contains("withheld"));
        assert_eq!(monitor.watched().map(|watched| watched.since.is_some()), Some(true), "one session");
    }

    #[test]
    fn a_session_that_negotiated_nothing_is_not_made_active_by_looks() {
        let monitor = SourceMonitor::new("db1");
        monitor.semi_sync_begins(
            SemiSyncStatus { active: false, reason: "switched off here".to_owned() },
            false,
            false,
        );
        monitor.set_state(SourceState::Receiving);
        monitor.semi_sync_looked(SERVER, Some(look(10, 0)), None);
        assert_eq!(monitor.facts().semi_sync.reason, "switched off here");
        assert_eq!(monitor.status(Timestamp::UNIX_EPOCH).semi_sync_source.map(|look| look.clients), Some(1));
    }
}
