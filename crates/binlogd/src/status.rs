//! What binlogd tells about itself: the model that receivers publish and that readers see.
//!
//! One [`SourceMonitor`] a source is shared between its receiver thread, which publishes once a batch, and whoever
//! asks: the HTTP endpoints, the metrics and `binlogd status`. Publishing never allocates and never waits for more
//! than a reader's copy of four positions, because the receiver does it between a sync and an acknowledgement.
//!
//! | file | noun |
//! |---|---|
//! | `ladder.rs` | [`Ladder`]: the four positions received, written, durable, acknowledged |
//! | `latency.rs` | [`LatencyHistogram`]: durations in log-linear buckets |
//! | `monitor.rs` | [`SourceMonitor`]: the live values of one source |
//! | `gtids.rs` | [`GtidRungs`]: GTID sets, which may be large, at two of the positions |
//! | `semi_sync.rs` | [`SemiSyncLook`]: whether the source waits, and what it told clients without us |
//! | `daemon.rs` | [`DaemonMonitor`]: the process and its sources |
//! | `disk.rs` | [`DiskMonitor`]: the file system of the data folder |
//! | `past.rs` | [`PreviousTimeline`], [`Regained`], [`Missing`]: what was before |
//! | `snapshot.rs` | [`DaemonStatus`], [`SourceStatus`]: the JSON contract of `/status` and `binlogd status --json` |
//!
//! The module knows nothing of HTTP and nothing of the log, so that both may depend on it.

mod daemon;
mod disk;
mod gtids;
mod ladder;
mod latency;
mod monitor;
mod past;
mod place;
mod semi_sync;
mod snapshot;

pub use daemon::{DaemonMonitor, absolute};
pub use disk::{Crossing, DiskMonitor, DiskSpace, RATE_WINDOW};
pub use gtids::{GtidChange, GtidChanges, GtidRungs};
pub use ladder::Ladder;
pub use latency::{LatencyHistogram, LatencySummary};
pub use monitor::{
    CounterValues, Counters, DiskHang, SourceFacts, SourceMonitor, SourceState, Watched, human_time,
};
pub use past::{Missing, PreviousTimeline, RecordedGap, Regained, count};
pub use semi_sync::{Counted, Looks, SemiSyncLook, UnacknowledgedCommits, UnaskedTransactions};
pub use snapshot::{
    DaemonStatus, DiskStatus, GtidTexts, LastError, Latencies, NOT_RUNNING, RecoveryStatus, SemiSyncStatus,
    SourceStatus,
};
