//! What binlogd tells about itself: the model that receivers publish and that readers see.
//!
//! One [`SourceMonitor`] a source is shared between its receiver thread, which publishes once a batch, and whoever
//! asks: the HTTP endpoints, the metrics and `binlogd status`. Publishing never allocates and never waits for more
//! than a reader's copy of four positions, because the receiver does it between a sync and an acknowledgement.
//!
//! | file | noun |
//! |---|---|
//! | `ladder.rs` | `Ladder`: the four positions received, written, durable, acknowledged |
//! | `latency.rs` | `LatencyHistogram`: durations in log-linear buckets |
//! | `counters.rs` | `Counters`: counts since the start |
//! | `state.rs`, `state_name.rs` | `SourceState`: what the receiver is doing, with facts; `StateName`: in a word |
//! | `facts.rs` | `SourceFacts`: what is known of the source and of the connection |
//! | `session.rs` | state and facts under one lock |
//! | `monitor.rs` | `SourceMonitor`: the live values of one source |
//! | `gtids.rs` | `GtidRungs`: GTID sets, which may be large, at two of the positions |
//! | `semi_sync.rs` | `SemiSyncLook` and what else is said of semi-sync, in values |
//! | `semi_sync_book.rs` | whether the source waits, and what it told clients without us: two witnesses and a verdict |
//! | `ack_replicas.rs` | `AckReplicas`: the receivers further down that acknowledgements wait for |
//! | `known_count.rs` | `KnownCount`: a count that may not be known yet |
//! | `archive.rs` | `ArchiveStatus`: up to where the object store has the history |
//! | `daemon.rs` | `DaemonMonitor`: the process and its sources |
//! | `events.rs` | `Events`: the last events in words |
//! | `history.rs` | `History`: the last hour, for charts |
//! | `timelines.rs` | `TimelineStatus`: the histories of a source |
//! | `verdict.rs` | `Verdict`: what all of it means to an operator, the one judgement that all surfaces show |
//! | `judge.rs`, `reason.rs`, `reason/` | how it is found: a reason for each thing that is not as it should be |
//! | `view/` | `SourceRows`: what every surface shows of a source, in rows |
//! | `units.rs` | numbers as a person reads them |
//! | `disk.rs` | `DiskMonitor`: the file system of the data folder |
//! | `past.rs` | `PreviousTimeline`, `Regained`, `Missing`, `LastError`: what was before |
//! | `peers.rs` | `PeerStatus`: other binlogds of the source |
//! | `pulse.rs` | `Pulse`: that the receiving thread comes round |
//! | `rate.rs` | how fast what is stored grows |
//! | `resources.rs` | what one source takes of the machine |
//! | `serving.rs` | `ServeStatus`: who reads from binlogd |
//! | `snapshot.rs` | `DaemonStatus`, `SourceStatus`: the JSON contract of `/status` and `binlogd status --json` |
//!
//! The module knows nothing of HTTP and nothing of the log, so that both may depend on it.

#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::panic, clippy::unwrap_used))]
#![allow(clippy::disallowed_methods, reason = "what is shown is in real time")]

mod ack_replicas;
mod archive;
mod counters;
mod daemon;
mod disk;
mod events;
mod facts;
mod gtids;
mod history;
mod judge;
mod known_count;
mod ladder;
mod latency;
mod lock;
mod monitor;
mod past;
mod peers;
mod place;
mod pulse;
mod rate;
mod reason;
mod resources;
mod semi_sync;
mod semi_sync_book;
mod serving;
mod session;
mod snapshot;
mod state;
mod state_name;
mod time;
mod timelines;
pub mod units;
mod verdict;
pub mod view;

pub use ack_replicas::{AckReplicasStatus, Demanded};
pub use archive::{ArchiveFinding, ArchiveState, ArchiveStatus, ArchiveVerify};
pub use counters::CounterValues;
pub use daemon::{DaemonMonitor, absolute};
pub use disk::{Crossing, DiskSpace};
pub use events::{Event, Level};
pub use facts::{SourceFacts, Watched};
pub use history::{HistoryStatus, Recent, SAMPLE_INTERVAL};
pub use ladder::Ladder;
pub use latency::{LatencyHistogram, LatencySummary};
pub use monitor::SourceMonitor;
pub use past::{LastError, Missing, PreviousTimeline, RecordedGap, Regained, Verified, count};
pub use peers::PeerStatus;
pub use pulse::{Place, Pulse};
pub use semi_sync::{Counted, SemiSyncLook, SemiSyncStatus};
pub use serving::{ReaderStatus, ServeCounters, ServeStatus, Serving, SlotStatus};
pub use snapshot::{DaemonStatus, DiskStatus, GtidTexts, Latencies, SourceStatus};
pub use state::{DiskHang, SourceState, StopCause, Stuck};
pub use state_name::StateName;
pub use time::human_time;
pub use timelines::TimelineStatus;
pub use verdict::{Topic, Verdict, Worry};
