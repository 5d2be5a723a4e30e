//! The JSON contract of `/status` and `binlogd status --json`, described in docs/reference/json.md.
//!
//! Other tools read it. Keys may be added; none is renamed, removed or given another meaning.

use super::archive::ArchiveStatus;
use super::events::{Event, Level};
use super::ladder::Ladder;
use super::notify::ReceiverStatus;
use super::past::{LastError, PreviousTimeline, RecordedGap, Regained, Verified};
use super::peers::PeerStatus;
use super::semi_sync::{SemiSyncLook, SemiSyncStatus, UnacknowledgedCommits, UnaskedTransactions};
use super::serving::ServeStatus;
use super::state::{RecoveryStatus, StopCause};
use super::timelines::TimelineStatus;
use super::units::counted;
use crate::figures::counters::CounterValues;
use crate::figures::history::Recent;
use crate::figures::latency::LatencySummary;
use crate::figures::resources::ResourcesStatus;
use crate::judge::verdict::{Verdict, Worry};
use crate::quorum::QuorumStatus;
use crate::semi_sync::ack_replicas::AckReplicasStatus;
use crate::state::name::StateName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The whole answer: one daemon, or one data folder when no daemon runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DaemonStatus {
    /// Version of the binlogd that made this status.
    pub binlogd_version: String,
    /// Process id of the daemon; null when it does not run.
    pub pid: Option<u32>,
    /// Whole seconds since the daemon started; null when it does not run.
    pub uptime_seconds: Option<u64>,
    /// Absolute path of the data folder.
    pub data_dir: String,
    /// The file system of the data folder; null when it cannot be measured.
    #[serde(default)]
    pub disk: Option<DiskStatus>,
    /// True when a daemon answered, false when the status was read from the files.
    pub running: bool,
    /// The port for readers; null when nobody is served, or no daemon runs.
    #[serde(default)]
    pub serve: Option<ServeStatus>,
    /// Who is told of changes (`[notify]`); empty for nobody, and when no daemon runs.
    #[serde(default)]
    pub notify: Vec<ReceiverStatus>,
    /// What all of it means to an operator.
    #[serde(default)]
    pub verdict: Verdict,
    /// The last events that concern no single source, the newest first.
    #[serde(default)]
    pub events: Vec<Event>,
    /// One entry a source, in the order of the configuration.
    pub sources: Vec<SourceStatus>,
}

impl DaemonStatus {
    /// Whether a daemon runs, and no source that is here is complained of by `binlogd health`. False when there is no source at all: a
    /// daemon that copies nothing keeps nobody's data safe.
    pub fn is_healthy(&self) -> bool {
        let is_well = |source: &SourceStatus| source.verdict.healthy == Some(true);
        self.running && !self.sources.is_empty() && self.sources.iter().all(is_well)
    }

    /// With the judgement of each source and of all: what a daemon says of itself, or what is made of files.
    pub fn judged(mut self, now: Timestamp) -> DaemonStatus {
        let data_dir = std::path::PathBuf::from(&self.data_dir);
        for source in &mut self.sources {
            source.verdict = Verdict::of_source(source, &data_dir, now);
        }
        self.verdict = Verdict::of_daemon(&self, now);
        self
    }

    /// An answer of a daemon as it is shown. One that is older does not say all of the judgement: it is made here, and that is told.
    pub fn understood(self, now: Timestamp) -> DaemonStatus {
        if self.verdict.healthy.is_some() {
            return self;
        }
        let mut status = self.judged(now);
        status.verdict.add(Worry {
            level: Level::Notice,
            kind: "older_daemon".to_owned(),
            text: format!(
                "The daemon is an older binlogd, {}, and this one judges what it says: some of it may be missing.",
                status.binlogd_version
            ),
            advice: "Restart the daemon with the binlogd that is installed, or use that of the daemon.".to_owned(),
            ..Worry::default()
        });
        status
    }
}

/// The file system of the data folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskStatus {
    /// Bytes that an ordinary user can still write.
    pub free_bytes: u64,
    /// Bytes in all.
    pub size_bytes: u64,
    /// Free bytes below which to warn (`disk_warn`); null when that is off, or no daemon runs.
    pub warn_below_bytes: Option<u64>,
    /// True from when less than that is free, until a tenth of it is free above the limit, so that a value that goes to and fro
    /// warns once.
    pub low: bool,
    /// Hours until nothing is free, at the rate at which all copies together grew over the last 10 minutes, or since the
    /// start; null while nothing is stored, or when no daemon runs. A first copy is no growth, and what others write is not
    /// in the rate.
    pub hours_left: Option<f64>,
}

/// One source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SourceStatus {
    /// The name in the configuration.
    pub name: String,
    /// What the receiver is doing, in words; only `receiving` is healthy. `not running`: read from the files.
    pub state: StateName,
    /// What the state is about: the host, the reason, the time of the next attempt. Null when there is nothing to add.
    pub state_detail: Option<String>,
    /// Who stopped the receiving: `end`, the daemon ends or takes up another configuration; `operator`, a statement or the page; `fault`, an
    /// error that does not end by itself. Null but in the state `stopped`.
    pub stopped_by: Option<StopCause>,
    /// True while another attempt follows one that found the disk full.
    pub disk_was_full: bool,
    /// How far the check of the live file is; null but in the state `recovering`.
    pub recovery: Option<RecoveryStatus>,
    /// The last error, kept after the source recovered; null when there was none since the start.
    pub last_error: Option<LastError>,
    /// `host:port` connected to or tried last; null before the first attempt.
    pub host: Option<String>,
    /// The server's own version text.
    pub server_version: Option<String>,
    /// `server_uuid` of a MySQL source; null for MariaDB, which has none.
    pub server_uuid: Option<String>,
    /// `server_id` of the source.
    pub server_id: Option<u32>,
    /// Folder name of the timeline being written.
    pub timeline: Option<String>,
    /// Whether acknowledgements are wanted, and why or why not.
    pub semi_sync: SemiSyncStatus,
    /// Whether the operator wants semi-sync (`semi_sync`); null when no daemon runs.
    pub semi_sync_wanted: Option<bool>,
    /// The source's own word about semi-sync at the last look; null before the first, and without semi-sync.
    pub semi_sync_source: Option<SemiSyncLook>,
    /// Why the look at the source fails at present, and since when; null while it succeeds.
    pub look_error: Option<LastError>,
    /// Commits of which the source told clients without an acknowledgement.
    pub unacknowledged_commits: UnacknowledgedCommits,
    /// The newest run of transactions for which the source asked for no acknowledgement.
    pub unasked_transactions: UnaskedTransactions,
    /// The receivers further down that acknowledgements wait for; null without `ack_after_replicas`.
    pub ack_replicas: Option<AckReplicasStatus>,
    /// The quorum of which this binlogd is a node; null without `quorum`, and when no daemon runs.
    pub quorum: Option<QuorumStatus>,
    /// Up to where the archive has the history; null for a source that is not archived, and when no daemon runs.
    pub archive: Option<ArchiveStatus>,
    /// Sealed files that have no search index yet, which a search makes; null with `search_index = false`, before the first look, and
    /// when no daemon runs.
    pub search_index_missing: Option<u64>,
    /// Of these, those of which none could be made: they cannot be read, or are damaged. Null as before.
    pub search_index_failed: Option<u64>,
    /// When the oldest transaction that is held was committed: a backup that was made then or later can be brought to any point since.
    /// Null with `search_index = false`, before the first look, while nothing is held, and when no daemon runs.
    pub oldest_commit: Option<Timestamp>,
    /// TLS version of the connection; null when it is not encrypted or there is none.
    pub tls: Option<String>,
    /// Until when the server's certificate is valid, as of the last encrypted connection; null when not known.
    pub tls_certificate_expires: Option<Timestamp>,
    /// 1: acknowledged only when synced. 0: acknowledged when written. Null when not known.
    pub fsync_mode: Option<u8>,
    /// The four positions, of one moment and in order: received >= written >= durable >= acknowledged.
    pub positions: Ladder,
    /// GTID sets at two of the positions; an empty text is the empty set.
    pub gtid: GtidTexts,
    /// Transactions that the copy holds and the source lacks, which a crash or a failover lost; empty text for none, null when
    /// not known, as without GTIDs or before the first connection.
    pub source_lacks: Option<String>,
    /// What it lacked since the start and has again, after a rescue; null when it lacked nothing, or lacks some still.
    pub source_regained: Option<Regained>,
    /// What was never copied, by GTID: the source had purged it, and `on_gap = "record"` went on without. Empty text for none.
    pub missing: String,
    /// How many transactions those are; for MariaDB, whose numbers have holes, of how many servers.
    pub missing_transactions: u64,
    /// The same by place, which tells it where there are no GTIDs, too.
    pub gaps: Vec<RecordedGap>,
    /// The timeline before the present one, when that was begun since the start; otherwise null.
    pub previous_timeline: Option<PreviousTimeline>,
    /// Other binlogds of the source (`peers`), in the order of the configuration.
    pub peers: Vec<PeerStatus>,
    /// Another replica that is registered with the same `server_id`, in words; null when none was seen.
    pub server_id_rival: Option<String>,
    /// Why nobody can tell which host of the list is the source, in words: two are writable, for example. Null while there is no doubt.
    pub hosts_in_doubt: Option<String>,
    /// How many GTIDs the source gave twice: it lost the transaction that the copy holds and gave the GTID to another one,
    /// and nobody has decided about it yet.
    pub gtids_given_twice: u64,
    /// Those GTIDs; for MariaDB the newest of each server.
    pub given_twice: String,
    /// Now minus the timestamp of the newest event, in whole seconds; 0 when the source said that it has nothing newer, or
    /// sent nothing for a second between two transactions; null when not known or not receiving.
    pub seconds_behind: Option<u64>,
    /// What `binlogd verify` found last; null before its first run.
    pub verified: Option<Verified>,
    /// What it takes of the machine.
    pub resources: ResourcesStatus,
    /// Counts since the daemon started.
    pub counters: CounterValues,
    /// What a committing client waits for, since the daemon started.
    pub latency: Latencies,
    /// What it does now, of about ten seconds; null before the first sample, and without `[admin] listen`.
    pub recent: Option<Recent>,
    /// The timelines of the copy, the newest 50, the oldest first.
    pub timelines: Arc<[TimelineStatus]>,
    /// The last events, the newest first.
    pub events: Vec<Event>,
    /// What all of it means to an operator.
    pub verdict: Verdict,
}

impl SourceStatus {
    /// Whether the source is connected and its stream is being stored.
    pub fn is_receiving(&self) -> bool {
        self.state == StateName::Receiving
    }

    /// Why commits wait at the source although this copy acknowledges, in words, as of the last look.
    pub fn waits_for_others(&self) -> Option<String> {
        let look =
            self.semi_sync_source.as_ref().filter(|_| self.semi_sync.active && self.look_error.is_none());
        look.and_then(SemiSyncLook::waits_for_others)
    }

    /// What a search of finished files is up against, in words.
    pub fn search_trouble(&self) -> Option<String> {
        let failed = self.search_index_failed.unwrap_or(0);
        let missing = self.search_index_missing.unwrap_or(0).saturating_sub(failed);
        let files = |count: u64| counted(count, "file");
        match (failed, missing) {
            (0, 0) => None,
            (0, missing) => Some(format!("{} without an index yet", files(missing))),
            (failed, _) => {
                Some(format!("no index can be made of {}: binlogd verify says why", files(failed)))
            }
        }
    }
}

/// GTID sets in the source's own notation; an empty text is the empty set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GtidTexts {
    /// Transactions whose end is at or below the durable position, with what was executed before the copy began and without
    /// what `missing` names; for MariaDB the newest of each server.
    pub durable: String,
    /// Transactions whose end is at or below the acknowledged position; empty when read from the files.
    pub acknowledged: String,
}

/// Percentiles of the two durations that a committing client waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latencies {
    /// One durable write of the journal, or one fdatasync of a binary log.
    pub sync: LatencySummary,
    /// From the arrival of a packet that wants an acknowledgement to the acknowledgement leaving.
    pub acknowledge: LatencySummary,
}

#[cfg(test)]
mod tests {
    use crate::{DaemonMonitor, DaemonStatus, DiskSpace, SourceMonitor, SourceStatus, StateName};
    use config::DiskWarn;
    use jiff::Timestamp;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    fn fresh() -> DaemonStatus {
        let daemon = DaemonMonitor::new(Path::new("/srv/binlogd-test"));
        let source = Arc::new(SourceMonitor::new("orders"));
        source.sync_latency.record(Duration::from_micros(1_000));
        daemon.add(source);
        daemon.disk.set_warn(DiskWarn::Percent(10));
        daemon.disk.observe(Duration::ZERO, DiskSpace { free: 8_000, reserved: 0, size: 100_000 }, 0);
        daemon.disk.observe(Duration::from_secs(1), DiskSpace { free: 7_200, reserved: 0, size: 100_000 }, 1);
        DaemonStatus { pid: Some(1), binlogd_version: "0".to_owned(), ..daemon.status(Timestamp::UNIX_EPOCH) }
    }

    /// A change of this snapshot changes docs/reference (`make reference`) and CHANGELOG.md; only new keys are allowed.
    #[test]
    fn the_json_contract() {
        insta::assert_snapshot!(serde_json::to_string_pretty(&fresh()).unwrap());
    }

    #[test]
    fn json_survives_a_round_trip() {
        let json = serde_json::to_string(&fresh()).unwrap();
        assert_eq!(serde_json::from_str::<DaemonStatus>(&json).unwrap(), fresh());
    }

    #[test]
    fn an_older_or_newer_daemon_is_understood() {
        let json = r#"{"name":"orders","state":"receiving","counters":{"events":1,"new":2},"invented":{}}"#;
        let status: SourceStatus = serde_json::from_str(json).unwrap();
        assert!(status.is_receiving());
        assert_eq!((status.counters.events, status.counters.syncs), (1, 0));
        let json = r#"{"binlogd_version":"0","pid":1,"uptime_seconds":1,"data_dir":"/d","running":true,"sources":[]}"#;
        assert_eq!(serde_json::from_str::<DaemonStatus>(json).unwrap().disk, None);
    }

    #[test]
    fn a_daemon_without_sources_and_a_folder_without_daemon_are_not_healthy() {
        let mut status = fresh();
        assert!(!status.is_healthy());
        status.sources[0].state = StateName::Receiving;
        let status = &mut status.judged(Timestamp::UNIX_EPOCH);
        assert!(status.is_healthy());
        assert!(!DaemonStatus { running: false, ..status.clone() }.is_healthy());
        status.sources.clear();
        assert!(!status.is_healthy());
    }
}
