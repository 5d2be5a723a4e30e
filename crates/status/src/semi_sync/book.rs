//! Semi-sync as it is now: whether the source waits for our acknowledgements, and what it told its clients without one.
//!
//! Two witnesses are heard. The look at the source's own counters ([`SemiSyncLook`], every `watch_interval`) says whether
//! the source waits; while looks succeed they alone decide. Without them the stream does: an acknowledgement that was
//! asked for says that the source waits, transactions for which nobody asked say that it does not. While acknowledgements
//! are withheld semi-sync is not active, whatever they say. Each change is logged here, once.

use crate::facts::SourceFacts;
use crate::lock::lock;
use crate::past::LastError;
use crate::semi_sync::{
    Counted, Looks, SemiSyncLook, SemiSyncStatus, UnacknowledgedCommits, UnaskedTransactions,
};
use crate::units::time::{human_time, now_in_milliseconds};
use jiff::Timestamp;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::thread::Thread;

/// What the receiver must do when it has sent an acknowledgement.
const NOTHING: u8 = 0;
/// … say so: semi-sync does not count as active.
const TELL: u8 = 1;

/// Semi-sync of one session and what is remembered of earlier ones; part of what the monitor has under its lock.
#[derive(Default)]
pub(crate) struct SemiSyncBook {
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
    look: Option<SemiSyncLook>,
    /// What was counted at the last look.
    counted: Option<Counted>,
    /// That look was one of the daemon before.
    counted_before: bool,
    unacknowledged: UnacknowledgedCommits,
    unasked: UnaskedTransactions,
    /// Of `unacknowledged`, how many were not logged yet.
    unlogged: u64,
}

/// What is read and rung without the monitor's lock.
pub(crate) struct SemiSyncSignal {
    /// The source's name, for the log.
    source: String,
    on_acknowledgement: AtomicU8,
    watcher: Mutex<Option<Thread>>,
}

impl SemiSyncSignal {
    pub(crate) fn new(source: &str) -> SemiSyncSignal {
        let (on_acknowledgement, watcher) = (AtomicU8::new(NOTHING), Mutex::new(None));
        SemiSyncSignal { source: source.to_owned(), on_acknowledgement, watcher }
    }

    /// Wakes the watch, if there is one, for a look now.
    pub(crate) fn ring(&self) {
        if let Some(thread) = &*lock(&self.watcher) {
            thread.unpark();
        }
    }

    /// The thread to wake.
    pub(crate) fn set_watcher(&self, watcher: Option<Thread>) {
        *lock(&self.watcher) = watcher;
    }

    /// Whether the receiver must say that it has sent an acknowledgement. Cheap.
    pub(crate) fn wants_word(&self) -> bool {
        self.on_acknowledgement.load(Relaxed) == TELL
    }

    /// An acknowledgement was sent, and nothing more must be said of the next one.
    pub(crate) fn heard(&self) {
        self.set(NOTHING);
    }

    fn set(&self, word: u8) {
        self.on_acknowledgement.store(word, Relaxed);
    }
}

impl SemiSyncBook {
    /// What status shows of it.
    pub(crate) fn shown(&self) -> (Option<SemiSyncLook>, UnacknowledgedCommits, UnaskedTransactions) {
        (self.look.clone(), self.unacknowledged.clone(), self.unasked.clone())
    }

    /// When the newest episode of commits without an acknowledgement began.
    pub(crate) fn unacknowledged_since(&self) -> Option<Timestamp> {
        self.unacknowledged.since
    }

    /// What the looks at the source have found.
    pub(crate) fn looks(&self) -> Looks {
        let UnacknowledgedCommits { commits: unacknowledged, while_away, .. } = self.unacknowledged;
        Looks { succeed: self.looks_succeed, look: self.look.clone(), unacknowledged, while_away }
    }

    /// The session's first event has come.
    pub(crate) fn begins(
        &mut self,
        facts: &mut SourceFacts,
        signal: &SemiSyncSignal,
        status: SemiSyncStatus,
        negotiated: bool,
        withheld: bool,
    ) {
        (self.negotiated, self.withheld, self.looks_succeed) = (negotiated, withheld, false);
        self.begun = status.clone();
        self.change(facts, signal, status);
    }

    /// Acknowledgements are withheld no more.
    pub(crate) fn withheld_no_more(&mut self, facts: &mut SourceFacts, signal: &SemiSyncSignal) {
        tracing::info!(source = signal.source, "acknowledgements are not withheld any more");
        (self.withheld, self.waits_in_vain) = (false, false);
        let status = match &self.look {
            Some(look) if self.looks_succeed && self.negotiated => judged(look, &self.begun),
            _ => self.begun.clone(),
        };
        self.change(facts, signal, status);
    }

    /// The session has ended.
    pub(crate) fn ends(&mut self, facts: &mut SourceFacts, signal: &SemiSyncSignal) {
        (self.negotiated, self.withheld, self.looks_succeed) = (false, false, false);
        self.waits_in_vain = false;
        self.asked_again();
        if facts.semi_sync.active {
            // Why the session ended is said elsewhere.
            tracing::info!(source = signal.source, "semi-sync is not active any more: the session has ended");
        }
        facts.semi_sync = SemiSyncStatus::default();
        signal.set(NOTHING);
        signal.ring();
    }

    /// The source has asked for an acknowledgement and got it.
    pub(crate) fn acknowledges(&self, facts: &mut SourceFacts, signal: &SemiSyncSignal) {
        if self.looks_succeed {
            // Asked for while it does not wait, as after a timeout: whether it waits again, the source itself knows.
            return signal.ring();
        }
        let reason = "the source asks for acknowledgements and gets them".to_owned();
        self.change(facts, signal, SemiSyncStatus { active: true, reason });
    }

    /// Further transactions arrived for which nobody asked in time, the newest with this GTID.
    pub(crate) fn unasked(
        &mut self,
        facts: &mut SourceFacts,
        signal: &SemiSyncSignal,
        transactions: u64,
        last_gtid: Option<String>,
    ) {
        let unasked = &mut self.unasked;
        if unasked.since.is_none() || unasked.until.is_some() {
            *unasked = UnaskedTransactions { since: Some(now_in_milliseconds()), ..Default::default() };
        }
        unasked.transactions += transactions;
        unasked.last_gtid = last_gtid;
        if self.looks_succeed {
            if facts.semi_sync.active {
                signal.ring();
            }
            return;
        }
        let reason = "transactions arrive for which the source asks for no acknowledgement".to_owned();
        self.change(facts, signal, SemiSyncStatus { active: false, reason });
    }

    /// The source asks again.
    pub(crate) fn asked_again(&mut self) {
        if self.unasked.since.is_some() {
            self.unasked.until.get_or_insert_with(now_in_milliseconds);
        }
    }

    /// A look at `server` succeeded while a session with it lasts.
    pub(crate) fn looked(
        &mut self,
        facts: &mut SourceFacts,
        signal: &SemiSyncSignal,
        server: &str,
        look: Option<SemiSyncLook>,
        started: Option<Timestamp>,
    ) {
        self.looks_succeed = true;
        self.waits_in_vain &= look.is_some();
        if !self.waits_in_vain {
            facts.look_error = None;
        }
        let Some(look) = look else {
            self.look = None;
            return;
        };
        let before = self.look.take();
        let look = look.after(before.as_ref());
        self.count_unacknowledged(&signal.source, server, &look, started);
        if self.negotiated {
            match self.waits_in_vain {
                // What was said then stays, until the next acknowledgement asks for a look.
                true => signal.set(TELL),
                false => {
                    let status = judged(&look, &facts.semi_sync);
                    let waits = look.waits_for_others();
                    if waits.is_some() && before.and_then(|before| before.waits_for_others()) != waits {
                        tracing::warn!(source = signal.source, "{}", status.reason);
                    }
                    self.change(facts, signal, status);
                }
            }
        }
        self.look = Some(look);
    }

    /// The last look failed, so that the stream alone tells from now on.
    pub(crate) fn not_looked(&mut self, facts: &mut SourceFacts, signal: &SemiSyncSignal, error: String) {
        self.looks_succeed = false;
        not_looked(facts, error);
        signal.set(if self.negotiated && !facts.semi_sync.active { TELL } else { NOTHING });
    }

    /// Commits wait while nothing arrives, and the source could not be asked why (`Some`), or that is over.
    pub(crate) fn waits_in_vain(
        &mut self,
        facts: &mut SourceFacts,
        signal: &SemiSyncSignal,
        error: Option<String>,
    ) {
        self.waits_in_vain = error.is_some();
        let Some(error) = error else { return };
        not_looked(facts, error);
        if self.negotiated {
            let reason =
                "commits wait at the source while nothing arrives, and it cannot be asked why".to_owned();
            self.change(facts, signal, SemiSyncStatus { active: false, reason });
        }
    }

    /// What the daemon before had counted. Nothing when this one has looked already.
    pub(crate) fn was_counted(&mut self, counted: Counted) {
        if self.counted.is_none() {
            (self.counted, self.counted_before) = (Some(counted), true);
        }
    }

    /// What was counted at the last look.
    pub(crate) fn counted(&self) -> Option<Counted> {
        self.counted.clone()
    }

    /// Adds what `no_tx` has grown by.
    fn count_unacknowledged(
        &mut self,
        source: &str,
        server: &str,
        look: &SemiSyncLook,
        started: Option<Timestamp>,
    ) {
        let SemiSyncLook { no_tx, yes_tx, at, .. } = *look;
        let now = Counted { server: server.to_owned(), no_tx, yes_tx, at };
        // What it counted before the first look of all is not of our time.
        let before = self.counted.replace(now.clone()).unwrap_or_else(|| now.clone());
        let (growth, began_anew) = before.growth(&now, started);
        let was_away = std::mem::take(&mut self.counted_before) && before.server == now.server;
        let counted = &mut self.unacknowledged;
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
                    source,
                    commits = growth,
                    "while binlogd was away, since {since}, the source told clients that commits were made without waiting for \
                     an acknowledgement{anew}"
                );
            } else {
                self.unlogged += growth;
            }
        } else if goes_on {
            counted.until = Some(look.at);
        }
        // At its beginning and, if it grew since, at its end.
        if self.unlogged > 0 && (!goes_on || growth == 0) {
            let since = counted.since.map(human_time).unwrap_or_default();
            tracing::warn!(
                source,
                commits = std::mem::take(&mut self.unlogged),
                "the source told clients that commits were made without waiting for an acknowledgement, since {since}"
            );
        }
    }

    /// The one place in which `semi_sync` of the facts changes within a session.
    fn change(&self, facts: &mut SourceFacts, signal: &SemiSyncSignal, status: SemiSyncStatus) {
        let status = if self.withheld { beside_withholding(&status) } else { status };
        let source = &*signal.source;
        let was_active = facts.semi_sync.active;
        let word = if status.active { NOTHING } else { TELL };
        signal.set(word);
        match (was_active, status.active) {
            (false, true) => tracing::info!(source, "semi-sync is active: {}", status.reason),
            (true, false) => {
                tracing::warn!(source, "semi-sync is not active any more: {}", status.reason)
            }
            // That they are withheld was said when the session began.
            _ if self.looks_succeed && self.withheld && facts.semi_sync.reason != status.reason => {
                tracing::warn!(source, "{}", status.reason);
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
    } else if let Some(reason) = look.waits_for_others() {
        return SemiSyncStatus { active: true, reason };
    } else if before.active && !before.reason.starts_with("commits wait") {
        return before.clone();
    } else {
        let reason = "the source waits for acknowledgements and gets them".to_owned();
        return SemiSyncStatus { active: true, reason };
    };
    SemiSyncStatus { active: false, reason: reason.to_owned() }
}
