//! Semi-sync in values: what a look at the source says of it, what is counted by that, and what is shown.

pub(crate) mod ack_replicas;
pub(crate) mod book;

use crate::units::time::human_time;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// Commits that wait for so long wait for somebody who does not come.
const STALLED_FOR: SignedDuration = SignedDuration::from_secs(5);

/// Whether the source waits for acknowledgements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SemiSyncStatus {
    /// True while the source waits for our acknowledgements and gets them.
    pub active: bool,
    /// Why it is or is not active, in words.
    pub reason: String,
}

impl Default for SemiSyncStatus {
    fn default() -> SemiSyncStatus {
        SemiSyncStatus { active: false, reason: "not connected".to_owned() }
    }
}

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
    /// Sessions whose commit waits for an acknowledgement; null when the server does not say.
    pub wait_sessions: Option<u64>,
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
    /// Since when commits have waited and none was acknowledged, by the looks; null while none waits for so long.
    pub waiting_since: Option<Timestamp>,
}

impl SemiSyncLook {
    /// Adds what two looks tell and one does not: a commit waits at both, and none was told of between them.
    pub(crate) fn after(self, before: Option<&SemiSyncLook>) -> SemiSyncLook {
        let waits = |look: &SemiSyncLook| look.on && look.wait_sessions.is_some_and(|sessions| sessions > 0);
        let is_stalled = |before: &&SemiSyncLook| {
            waits(before) && waits(&self) && (before.yes_tx, before.no_tx) == (self.yes_tx, self.no_tx)
        };
        let waiting_since = before.filter(is_stalled).map(|before| before.waiting_since.unwrap_or(before.at));
        SemiSyncLook { waiting_since, ..self }
    }

    /// Why commits wait although this copy acknowledges, in words: the source wants more replicas than acknowledge.
    pub fn waits_for_others(&self) -> Option<String> {
        let wanted = self.wait_for_replica_count.filter(|wanted| self.enabled && self.on && *wanted > 1)?;
        let wants =
            format!("commits wait: the source wants the acknowledgements of {wanted} semi-sync replicas");
        if self.clients < wanted {
            let are = if self.clients == 1 {
                "1 is attached".to_owned()
            } else {
                format!("{} are attached", self.clients)
            };
            return Some(format!("{wants} (rpl_semi_sync_source_wait_for_replica_count), and {are}"));
        }
        let since = self.waiting_since.filter(|since| self.at.duration_since(*since) >= STALLED_FOR)?;
        Some(format!("{wants}, and has not had them for any commit since {}", human_time(since)))
    }
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
    pub(crate) fn growth(&self, now: &Counted, started: Option<Timestamp>) -> (u64, bool) {
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
