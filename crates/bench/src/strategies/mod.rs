//! Ways to make a group durable, each a [`Storage`] behind the product's own receive loop.
//!
//! | file | noun |
//! |---|---|
//! | `append.rs` | without a journal: the binary log itself is synced, as it grows or with space reserved ahead |
//! | `journal.rs` | with the product's journal, written in other ways than the product's |
//! | `dsync.rs` | a file each of whose writes is one call that returns when the bytes are durable |

pub mod append;
pub mod dsync;
pub mod journal;

use append::{AppendStorage, LogFile};
use clap::ValueEnum;
use journal::{JournalStorage, JournalWrite};
use log::posix::PosixStorage;
use log::storage::Storage;
use std::fmt;
use std::sync::Arc;

/// Where bytes become durable before the acknowledgement leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Strategy {
    /// At the end of the growing binary log, by fdatasync.
    Append,
    /// In the binary log, whose space and length are extended ahead, by fdatasync.
    AppendExtended,
    /// In the binary log, whose space is reserved ahead behind its end, by fdatasync.
    AppendReserved,
    /// At the end of the growing binary log, by one write with RWF_DSYNC.
    AppendDsync,
    /// In the journal, by a write through the page cache and fdatasync.
    JournalFdatasync,
    /// In the journal, by one write with RWF_DSYNC through the page cache.
    JournalDsync,
    /// In the journal, past the page cache: what binlogd does.
    Product,
}

impl Strategy {
    /// The disk, as this strategy uses it.
    pub fn storage(self) -> Arc<dyn Storage> {
        match self {
            Strategy::Append => Arc::new(AppendStorage(LogFile::Growing)),
            Strategy::AppendExtended => Arc::new(AppendStorage(LogFile::Extended)),
            Strategy::AppendReserved => Arc::new(AppendStorage(LogFile::Reserved)),
            Strategy::AppendDsync => Arc::new(AppendStorage(LogFile::Dsync)),
            Strategy::JournalFdatasync => Arc::new(JournalStorage(JournalWrite::ThenFdatasync)),
            Strategy::JournalDsync => Arc::new(JournalStorage(JournalWrite::Dsync)),
            Strategy::Product => Arc::new(PosixStorage),
        }
    }

    /// Which of O_DIRECT and O_DSYNC the journal is open with while groups arrive; `None` when there is no journal.
    pub fn journal(self) -> Option<JournalOpen> {
        match self {
            Strategy::Append
            | Strategy::AppendExtended
            | Strategy::AppendReserved
            | Strategy::AppendDsync => None,
            Strategy::JournalFdatasync | Strategy::JournalDsync => {
                Some(JournalOpen { direct: false, dsync: false })
            }
            Strategy::Product => Some(JournalOpen { direct: true, dsync: true }),
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Strategy::Append => "append, fdatasync",
            Strategy::AppendExtended => "append, space and length ahead, fdatasync",
            Strategy::AppendReserved => "append, space ahead, fdatasync",
            Strategy::AppendDsync => "append, RWF_DSYNC",
            Strategy::JournalFdatasync => "journal, page cache, fdatasync",
            Strategy::JournalDsync => "journal, page cache, RWF_DSYNC",
            Strategy::Product => "journal, O_DIRECT and O_DSYNC: the product",
        })
    }
}

/// With which flags a journal is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JournalOpen {
    /// O_DIRECT: past the page cache.
    pub direct: bool,
    /// O_DSYNC: each write is durable when it returns.
    pub dsync: bool,
}
