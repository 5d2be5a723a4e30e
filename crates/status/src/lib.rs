//! What binlogd tells about itself: the model that receivers publish and that readers see.
//!
//! One [`SourceMonitor`] a source is shared between its receiver thread, which publishes once a batch, and whoever
//! asks: the HTTP endpoints, the metrics and `binlogd status`. Publishing never allocates and never waits for more
//! than a reader's copy of four positions, because the receiver does it between a sync and an acknowledgement.
//!
//! | file | noun |
//! |---|---|
//! | `ladder/` | `Ladder`: the four positions received, written, durable, acknowledged |
//! | `figures/` | numbers: `Counters`, `LatencyHistogram`, `History` (the last hour), `Resources`, how fast what is stored grows |
//! | `state/` | `SourceState`: what the receiver is doing, with facts; `StateName`: in a word; `Pulse`: that its thread comes round |
//! | `facts.rs` | `SourceFacts`: what is known of the source and of the connection |
//! | `session.rs` | state and facts under one lock |
//! | `monitor/` | `SourceMonitor`: the live values of one source |
//! | `gtids.rs` | `GtidRungs`: GTID sets, which may be large, at two of the positions |
//! | `semi_sync/` | `SemiSyncLook` and what else is said of semi-sync; `book.rs`: whether the source waits, and what it told clients without us; `AckReplicas` |
//! | `archive/` | `ArchiveStatus`: up to where the object store has the history; `BackupsStatus`: from when to when the backups there lead; `DrillsStatus`: whether that was tried |
//! | `quorum/` | `QuorumStatus`: how a quorum stands; `QuorumAnswer`, `DurableAnswer`: what tools ask of a quorum |
//! | `daemon.rs` | `DaemonMonitor`: the process and its sources |
//! | `events.rs` | `Events`: the last events in words |
//! | `timelines.rs` | `TimelineStatus`: the histories of a source |
//! | `judge/` | `Verdict`: what all of it means to an operator, the one judgement that all surfaces show; a reason for each thing that is not as it should be |
//! | `view/` | `SourceRows`: what every surface shows of a source, in rows |
//! | `units/` | numbers and times as a person reads them |
//! | `disk.rs` | `DiskMonitor`: the file system of the data folder |
//! | `past.rs` | `PreviousTimeline`, `Regained`, `Missing`, `LastError`: what was before |
//! | `notify.rs` | `NotifyMonitor`: who is told of changes, and what came of it |
//! | `peers.rs` | `PeerStatus`: other binlogds of the source |
//! | `serving.rs` | `ServeStatus`: who reads from binlogd |
//! | `snapshot.rs` | `DaemonStatus`, `SourceStatus`: the JSON contract of `/status` and `binlogd status --json` |
//!
//! The module knows nothing of HTTP and nothing of the log, so that both may depend on it.

#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::panic, clippy::unwrap_used))]
#![allow(clippy::disallowed_methods, reason = "what is shown is in real time")]

mod archive;
mod daemon;
mod disk;
mod events;
mod facts;
mod figures;
mod gtids;
mod judge;
mod ladder;
mod lock;
mod monitor;
mod notify;
mod past;
mod peers;
mod quorum;
mod semi_sync;
mod serving;
mod session;
mod snapshot;
mod state;
mod timelines;
pub mod units;
pub mod view;

pub use archive::backups::{ArchivePrune, BackupStatus, BackupsStatus};
pub use archive::drill::{DrillResult, DrillStep, DrillsStatus};
pub use archive::{ArchiveFinding, ArchiveState, ArchiveStatus, ArchiveVerify};
pub use daemon::{DaemonMonitor, absolute};
pub use disk::{Crossing, DiskSpace};
pub use events::{Event, Level};
pub use facts::{SourceFacts, Watched};
pub use figures::counters::CounterValues;
pub use figures::history::{HistoryStatus, Recent, SAMPLE_INTERVAL};
pub use figures::latency::{LatencyHistogram, LatencySummary};
pub use judge::verdict::{Topic, Verdict, Worry};
pub use ladder::Ladder;
pub use monitor::SourceMonitor;
pub use notify::{NotifyMonitor, ReceiverStatus};
pub use past::{LastError, Missing, PreviousTimeline, RecordedGap, Regained, Verified, count};
pub use peers::PeerStatus;
pub use quorum::asked::{DurableAnswer, HolderStatus, QuorumAnswer};
pub use quorum::{NodeStanding, NodeStatus, QuorumStatus};
pub use semi_sync::ack_replicas::{AckReplicasStatus, Demanded};
pub use semi_sync::{Counted, SemiSyncLook, SemiSyncStatus};
pub use serving::{ReaderStatus, ServeCounters, ServeStatus, Serving, SlotStatus};
pub use snapshot::{DaemonStatus, DiskStatus, GtidTexts, Latencies, SourceStatus};
pub use state::name::StateName;
pub use state::pulse::{Place, Pulse};
pub use state::{DiskHang, SourceState, StopCause, Stuck};
pub use timelines::TimelineStatus;
pub use units::time::human_time;
