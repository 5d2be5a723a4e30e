//! What receives the source's binary log while a load runs.
//!
//! | file | noun |
//! |---|---|
//! | `attachment.rs` | a receiver while it is attached, or nothing in its place |
//! | `binlogd.rs` | binlogd, with its own status |
//! | `replica.rs` | a real replica |

pub mod attachment;
pub mod binlogd;
pub mod replica;

pub use attachment::Attachment;
pub use binlogd::Binlogd;
pub use replica::Replica;

use binlogd_bench::process;
use binlogd_bench::processor::ProcessorTime;
use std::time::Instant;

/// What a process has used until a moment.
#[derive(Debug, Clone)]
pub struct Usage {
    at: Instant,
    processor: ProcessorTime,
    /// Resident memory in KiB.
    pub resident_kib: u64,
}

impl Usage {
    /// Of the process `pid`, now.
    ///
    /// # Errors
    /// When it is gone.
    pub fn of(pid: u32) -> anyhow::Result<Usage> {
        let processor = ProcessorTime::of(pid)?;
        Ok(Usage { at: Instant::now(), processor, resident_kib: process::memory(pid)?.resident })
    }

    /// Processor time used since `before`, in seconds.
    pub fn processor_seconds_since(&self, before: &Usage) -> f64 {
        self.processor.seconds_since(&before.processor)
    }

    /// Wall clock between the two looks, in seconds.
    pub fn seconds_since(&self, before: &Usage) -> f64 {
        (self.at - before.at).as_secs_f64()
    }

    /// Resident memory in MiB.
    pub fn resident_mib(&self) -> f64 {
        self.resident_kib as f64 / 1024.0
    }
}
