//! Semi-sync as it is now: whether the source waits for our acknowledgements, and what it told its clients without one.
//!
//! Two witnesses are heard. The look at the source's own counters ([`SemiSyncLook`], every `watch_interval`) says whether
//! the source waits; while looks succeed they alone decide. Without them the stream does: an acknowledgement that was
//! asked for says that the source waits, transactions for which nobody asked say that it does not. While acknowledgements
//! are withheld semi-sync is not active, whatever they say. Each change is logged here, once.

use super::monitor::{SourceMonitor, human_time, lock, now_in_milliseconds};
use super::{LastError, SemiSyncStatus, SourceFacts};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::thread::Thread;

/// The source's own word about semi-sync: its settings and counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SemiSyncLook {
    /// When it was asked.
    pub at: Timestamp,
    /// `rpl_semi_sync_source_enabled`, or `rpl_semi_sync_master_enabled`.
    pub enabled: bool,
    /// `Rpl_semi_sync_source_status`: whether commits wait. OFF after a wait that took longer than the timeout.
    pub on: bool,
    /// Semi-sync replicas that are attached.
    pub clients: u64,
    /// Commits that were acknowledged before their clients were told, as the source counts.
    pub yes_tx: u64,
    /// Commits of which clients were told without an acknowledgement, as the source counts. Not those made while
    /// `enabled` was OFF.
    pub no_tx: u64,
    /// How long a commit waits, in milliseconds.
    pub timeout_ms: u64,
    /// `AFTER_SYNC` or `AFTER_COMMIT`; null when the server has no such setting.
    pub wait_point: Option<String>,
    /// Whether commits wait though no replica is attached; null when the server has no such setting.
    pub wait_no_replica: Option<bool>,
    /// How many replicas must acknowledge; null when the server has no such setting (MariaDB: 1).
    pub wait_for_replica_count: Option<u64>,
}

/// Commits of which the source told clients without an acknowledgement, by its counter `no_tx`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnacknowledgedCommits {
    /// How many since the last look of the daemon before, or since the first look of all.
    pub commits: u64,
    /// The last look before the newest of these episodes; null when there was none.
    pub since: Option<Timestamp>,
    /// The first look that found no more of them; null while it goes on.
    pub until: Option<Timestamp>,
    /// How many of them were made before this daemon's first look; null when that is not known.
    pub while_away: Option<u64>,
}

/// What a server had counted at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// A name that no other server has.
    pub server: String,
    /// As [`SemiSyncLook::no_tx`].
    pub no_tx: u64,
    /// As [`SemiSyncLook::yes_tx`]: it tells, too, when the server has begun to count anew.
    pub yes_tx: u64,
    /// When.
    pub at: Timestamp,
}

impl Counted {
    /// Whether only time has passed.
    pub fn is_as_far_as(&self, other: &Counted) -> bool {
        (&self.server, self.no_tx) == (&other.server, other.no_tx)
    }

    /// By how much the server's counter has grown since, and whether it began anew: with the server, which began to run at
    /// `started`, or with RESET BINARY LOGS AND GTIDS. Another server's past is not ours.
    fn growth(&self, now: &Counted, started: Option<Timestamp>) -> (u64, bool) {
        if self.server != now.server {
            return (0, false);
        }
        // A server tells whole seconds.
        let has_restarted = started.is_some_and(|started| started.duration_since(self.at).as_secs() >= 1);
        let began_anew = has_restarted || now.no_tx < self.no_tx || now.yes_tx < self.yes_tx;
        (if began_anew { now.no_tx } else { now.no_tx - self.no_tx }, began_anew)
    }
}

/// The newest run of transactions that arrived live and for which nobody asked in time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnaskedTransactions {
    /// How many.
    pub transactions: u64,
    /// When it was noticed that nobody asks; null when that never happened.
    pub since: Option<Timestamp>,
    /// When the source asked again; null while it does not.
    pub until: Option<Timestamp>,
    /// The newest of them; null without GTIDs.
    pub last_gtid: Option<String>,
}

/// The looks at a source, for the metrics.
#[derive(Clone, Debug, Default)]
pub struct Looks {
    /// The last look of this session succeeded.
    pub succeed: bool,
    /// The newest look, however old.
    pub look: Option<SemiSyncLook>,
    /// As [`UnacknowledgedCommits::commits`].
    pub unacknowledged: u64,
    /// As [`UnacknowledgedCommits::while_away`].
    pub while_away: Option<u64>,
}

impl Looks {
    /// The newest look, if it tells how things are now.
    pub fn now(&self) -> Option<&SemiSyncLook> {
        self.look.as_ref().filter(|_| self.succeed)
    }
}

/// What the receiver must do when it has sent an acknowledgement.
const NOTHING: u8 = 0;
/// … say so: semi-sync does not count as active.
const TELL: u8 = 1;

/// Semi-sync of one session and what is remembered of earlier ones; part of what the monitor has under its lock.
#[derive(Default)]
pub(super) struct SemiSyncBook {
    /// The source took the offer in this session.
    negotiated: bool,
    /// What was negotiated, in words.
    begun: SemiSyncStatus,
    /// We withhold acknowledgements in this session.
    withheld: bool,
    /// The last look of this session succeeded.
    looks_succeed: bool,
    /// Commits wait, and the source does not let itself be asked why.
    waits_in_vain: bool,
    /// The newest look, kept after its session.
    pub(super) look: Option<SemiSyncLook>,
    /// What was counted at the last look.
    counted: Option<Counted>,
    /// That look was one of the daemon before.
    counted_before: bool,
    pub(super) unacknowledged: UnacknowledgedCommits,
    pub(super) unasked: UnaskedTransactions,
    /// Of `unacknowledged`, how many were not logged yet.
    unlogged: u64,
}

impl SemiSyncBook {
    /// What status shows of it.
    pub(super) fn shown(&self) -> (Option<SemiSyncLook>, UnacknowledgedCommits, UnaskedTransactions) {
        (self.look.clone(), self.unacknowledged.clone(), self.unasked.clone())
    }
}

/// What is read and rung without the monitor's lock.
pub(super) struct SemiSyncSignal {
    on_acknowledgement: AtomicU8,
    watcher: Mutex<Option<Thread>>,
}

impl SemiSyncSignal {
    pub(super) fn new() -> SemiSyncSignal {
        SemiSyncSignal { on_acknowledgement: AtomicU8::new(NOTHING), watcher: Mutex::new(None) }
    }

    /// Wakes the watch, if there is one, for a look now.
    pub(super) fn ring(&self) {
        if let Some(thread) = &*lock(&self.watcher) {
            thread.unpark();
        }
    }
}

impl SourceMonitor {
    /// The session's first event has come: what was negotiated, whether the source took the offer, and whether
    /// acknowledgements are withheld. Call it before the state becomes [`Receiving`](super::SourceState::Receiving) or
    /// [`Withholding`](super::SourceState::Withholding); the step from this to that ends the withholding.
    pub fn semi_sync_begins(&self, status: SemiSyncStatus, negotiated: bool, withheld: bool) {
        let mut session = lock(&self.session);
        let session = &mut *session;
        let book = &mut session.semi_sync;
        (book.negotiated, book.withheld, book.looks_succeed) = (negotiated, withheld, false);
        book.begun = status.clone();
        self.change_semi_sync(&mut session.facts, book, status);
    }

    /// Acknowledgements are withheld no more. The caller has the lock.
    pub(super) fn semi_sync_withheld_no_more(&self, facts: &mut SourceFacts, book: &mut SemiSyncBook) {
        tracing::info!(source = self.name(), "acknowledgements are not withheld any more");
        (book.withheld, book.waits_in_vain) = (false, false);
        let status = match &book.look {
            Some(look) if book.looks_succeed && book.negotiated => judged(look, &book.begun),
            _ => book.begun.clone(),
        };
        self.change_semi_sync(facts, book, status);
    }

    /// The session has ended. The caller has the lock.
    pub(super) fn semi_sync_ends(&self, facts: &mut SourceFacts, book: &mut SemiSyncBook) {
        (book.negotiated, book.withheld, book.looks_succeed) = (false, false, false);
        book.waits_in_vain = false;
        if book.unasked.since.is_some() {
            book.unasked.until.get_or_insert_with(now_in_milliseconds);
        }
        if facts.semi_sync.active {
            // Why the session ended is said elsewhere.
            tracing::info!(source = self.name(), "semi-sync is not active any more: the session has ended");
        }
        facts.semi_sync = SemiSyncStatus::default();
        self.semi_sync_signal.on_acknowledgement.store(NOTHING, Relaxed);
        self.semi_sync_signal.ring();
    }

    /// Whether [`semi_sync_acknowledges`](Self::semi_sync_acknowledges) is to be called after an acknowledgement. Cheap.
    pub fn semi_sync_wants_word(&self) -> bool {
        self.semi_sync_signal.on_acknowledgement.load(Relaxed) == TELL
    }

    /// The source has asked for an acknowledgement and got it.
    pub fn semi_sync_acknowledges(&self) {
        self.semi_sync_signal.on_acknowledgement.store(NOTHING, Relaxed);
        let mut session = lock(&self.session);
        let session = &mut *session;
        if session.semi_sync.looks_succeed {
            // Asked for while it does not wait, as after a timeout: whether it waits again, the source itself knows.
            return self.semi_sync_signal.ring();
        }
        let reason = "the source asks for acknowledgements and gets them".to_owned();
        let status = SemiSyncStatus { active: true, reason };
        self.change_semi_sync(&mut session.facts, &session.semi_sync, status);
    }

    /// Further transactions arrived for which nobody asked in time, the newest with this GTID.
    pub fn semi_sync_unasked(&self, transactions: u64, last_gtid: Option<String>) {
        self.counters.unasked_transactions.fetch_add(transactions, Relaxed);
        let mut session = lock(&self.session);
        let session = &mut *session;
        let unasked = &mut session.semi_sync.unasked;
        if unasked.since.is_none() || unasked.until.is_some() {
            *unasked = UnaskedTransactions { since: Some(now_in_milliseconds()), ..Default::default() };
        }
        unasked.transactions += transactions;
        unasked.last_gtid = last_gtid;
        if session.semi_sync.looks_succeed {
            if session.facts.semi_sync.active {
                self.semi_sync_signal.ring();
            }
            return;
        }
        let reason = "transactions arrive for which the source asks for no acknowledgement".to_owned();
        let status = SemiSyncStatus { active: false, reason };
        self.change_semi_sync(&mut session.facts, &session.semi_sync, status);
    }

    /// The source asks again, after [`semi_sync_unasked`](Self::semi_sync_unasked).
    pub fn semi_sync_asked_again(&self) {
        let mut session = lock(&self.session);
        if session.semi_sync.unasked.since.is_some() {
            session.semi_sync.unasked.until.get_or_insert_with(now_in_milliseconds);
        }
    }

    /// The thread that looks at the source; it is unparked when a look is wanted at once.
    pub fn set_semi_sync_watcher(&self, watcher: Option<Thread>) {
        *lock(&self.semi_sync_signal.watcher) = watcher;
    }

    /// A look at `server` (its UUID, or another name of it) succeeded while a session with it lasts. `None`: the server has
    /// no semi-sync. `started`: when the server began to run, if that is known.
    pub fn semi_sync_looked(&self, server: &str, look: Option<SemiSyncLook>, started: Option<Timestamp>) {
        let mut session = lock(&self.session);
        let session = &mut *session;
        if !session.state.is_session() {
            return;
        }
        let book = &mut session.semi_sync;
        book.looks_succeed = true;
        book.waits_in_vain &= look.is_some();
        if !book.waits_in_vain {
            session.facts.look_error = None;
        }
        let Some(look) = look else {
            book.look = None;
            return;
        };
        self.count_unacknowledged(book, server, &look, started);
        if book.negotiated {
            match book.waits_in_vain {
                // What was said then stays, until the next acknowledgement asks for a look.
                true => self.semi_sync_signal.on_acknowledgement.store(TELL, Relaxed),
                false => {
                    let status = judged(&look, &session.facts.semi_sync);
                    self.change_semi_sync(&mut session.facts, book, status);
                }
            }
        }
        book.look = Some(look);
    }

    /// What the looks at the source have found.
    pub fn semi_sync_look(&self) -> Looks {
        let book = &lock(&self.session).semi_sync;
        let UnacknowledgedCommits { commits: unacknowledged, while_away, .. } = book.unacknowledged;
        Looks { succeed: book.looks_succeed, look: book.look.clone(), unacknowledged, while_away }
    }

    /// The last look failed, so that the stream alone tells from now on.
    pub fn semi_sync_not_looked(&self, error: String) {
        let mut session = lock(&self.session);
        session.semi_sync.looks_succeed = false;
        not_looked(&mut session.facts, error);
        let word =
            if session.semi_sync.negotiated && !session.facts.semi_sync.active { TELL } else { NOTHING };
        self.semi_sync_signal.on_acknowledgement.store(word, Relaxed);
    }

    /// Commits wait while nothing arrives, and the source could not be asked why (`Some`), or that is over.
    pub fn semi_sync_waits_in_vain(&self, error: Option<String>) {
        let mut session = lock(&self.session);
        let session = &mut *session;
        session.semi_sync.waits_in_vain = error.is_some() && session.state.is_session();
        let Some(error) = error.filter(|_| session.semi_sync.waits_in_vain) else { return };
        not_looked(&mut session.facts, error);
        if session.semi_sync.negotiated {
            let reason =
                "commits wait at the source while nothing arrives, and it cannot be asked why".to_owned();
            let status = SemiSyncStatus { active: false, reason };
            self.change_semi_sync(&mut session.facts, &session.semi_sync, status);
        }
    }

    /// What the daemon before had counted. Nothing when this one has looked already.
    pub fn semi_sync_was_counted(&self, counted: Counted) {
        let book = &mut lock(&self.session).semi_sync;
        if book.counted.is_none() {
            (book.counted, book.counted_before) = (Some(counted), true);
        }
    }

    /// What was counted at the last look.
    pub fn semi_sync_counted(&self) -> Option<Counted> {
        lock(&self.session).semi_sync.counted.clone()
    }

    /// Adds what `no_tx` has grown by.
    fn count_unacknowledged(
        &self,
        book: &mut SemiSyncBook,
        server: &str,
        look: &SemiSyncLook,
        started: Option<Timestamp>,
    ) {
        let SemiSyncLook { no_tx, yes_tx, at, .. } = *look;
        let now = Counted { server: server.to_owned(), no_tx, yes_tx, at };
        // What it counted before the first look of all is not of our time.
        let before = book.counted.replace(now.clone()).unwrap_or_else(|| now.clone());
        let (growth, began_anew) = before.growth(&now, started);
        let was_away = std::mem::take(&mut book.counted_before) && before.server == now.server;
        let counted = &mut book.unacknowledged;
        let goes_on = counted.since.is_some() && counted.until.is_none();
        if was_away {
            counted.while_away = Some(growth);
        }
        if growth > 0 {
            if !goes_on {
                counted.since = Some(before.at);
                counted.until = None;
            }
            counted.commits += growth;
            if was_away {
                let since = human_time(before.at);
                let anew = match began_anew {
                    true => {
                        "; its counter began anew meanwhile, and what it counted before that is not known"
                    }
                    false => "",
                };
                tracing::warn!(
                    source = self.name(),
                    commits = growth,
                    "while binlogd was away, since {since}, the source told clients that commits were made without waiting for \
                     an acknowledgement{anew}"
                );
            } else {
                book.unlogged += growth;
            }
        } else if goes_on {
            counted.until = Some(look.at);
        }
        // At its beginning and, if it grew since, at its end.
        if book.unlogged > 0 && (!goes_on || growth == 0) {
            let since = counted.since.map(human_time).unwrap_or_default();
            tracing::warn!(
                source = self.name(),
                commits = std::mem::take(&mut book.unlogged),
                "the source told clients that commits were made without waiting for an acknowledgement, since {since}"
            );
        }
    }

    /// The one place in which `semi_sync` of the facts changes within a session.
    fn change_semi_sync(&self, facts: &mut SourceFacts, book: &SemiSyncBook, status: SemiSyncStatus) {
        let status = if book.withheld { beside_withholding(&status) } else { status };
        let was_active = facts.semi_sync.active;
        let word = if status.active { NOTHING } else { TELL };
        self.semi_sync_signal.on_acknowledgement.store(word, Relaxed);
        match (was_active, status.active) {
            (false, true) => tracing::info!(source = self.name(), "semi-sync is active: {}", status.reason),
            (true, false) => {
                tracing::warn!(source = self.name(), "semi-sync is not active any more: {}", status.reason)
            }
            // That they are withheld was said when the session began.
            _ if book.looks_succeed && book.withheld && facts.semi_sync.reason != status.reason => {
                tracing::warn!(source = self.name(), "{}", status.reason);
            }
            _ => {}
        }
        facts.semi_sync = status;
    }
}

/// The status of a session in which acknowledgements are withheld: what it would be without that stays to be seen.
fn beside_withholding(status: &SemiSyncStatus) -> SemiSyncStatus {
    let reason = match status.active {
        true => "acknowledgements are withheld, and the source's commits wait for them".to_owned(),
        false => format!("acknowledgements are withheld; {}", status.reason),
    };
    SemiSyncStatus { active: false, reason }
}

/// Since when it fails stays what it was at the first failure.
fn not_looked(facts: &mut SourceFacts, message: String) {
    let at = facts.look_error.as_ref().map_or_else(now_in_milliseconds, |error| error.at);
    facts.look_error = Some(LastError { at, message });
}

/// What a look says of a session in which semi-sync was negotiated.
fn judged(look: &SemiSyncLook, before: &SemiSyncStatus) -> SemiSyncStatus {
    let reason = if !look.enabled {
        "negotiated, but switched off on the source: it asks for no acknowledgement until rpl_semi_sync_source_enabled (or \
         rpl_semi_sync_master_enabled) is ON"
    } else if !look.on {
        "the source gave up waiting (Rpl_semi_sync_source_status or Rpl_semi_sync_master_status is OFF): it commits without \
         acknowledgements until one covers everything that it has committed"
    } else if look.clients == 0 {
        "the source knows of no semi-sync replica, not even of this one"
    } else if before.active {
        return before.clone();
    } else {
        let reason = "the source waits for acknowledgements and gets them".to_owned();
        return SemiSyncStatus { active: true, reason };
    };
    SemiSyncStatus { active: false, reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::SourceState;
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
