//! A server in the same thread. What it says is the scripted peer's, which has no socket, no thread and no clock.

use crate::history::History;
use scripted_source::{SemiSync, Server, SourceLog};

/// The server.
#[derive(Debug, Clone)]
pub struct Source {
    pub history: History,
    /// `rpl_semi_sync_source_enabled`.
    pub semi_sync: bool,
    /// How often its logs have become others.
    pub generation: u64,
    /// `read_only`: it is a replica, or was taken out of service.
    pub is_read_only: bool,
    /// It runs, and can be reached.
    pub is_up: bool,
    /// Of a binlogd that presents the source: what it says of its timelines.
    pub timelines: Option<String>,
}

impl Source {
    /// A source that clients write to.
    pub fn new(history: History, semi_sync: bool) -> Source {
        Source { history, semi_sync, generation: 0, is_read_only: false, is_up: true, timelines: None }
    }

    pub fn log(&self) -> &SourceLog {
        &self.history.log
    }
}

impl Server for Source {
    fn log(&self) -> &SourceLog {
        &self.history.log
    }

    fn semi_sync(&self) -> SemiSync {
        if self.semi_sync { SemiSync::Enabled } else { SemiSync::Disabled }
    }

    fn generation(&self) -> u64 {
        self.generation
    }

    fn variable(&self, name: &str) -> Option<&str> {
        match name {
            "read_only" => Some(if self.is_read_only { "ON" } else { "OFF" }),
            "binlogd_timelines" => self.timelines.as_deref(),
            _ => None,
        }
    }
}
