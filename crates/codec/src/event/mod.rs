//! Binary-log events: borrowed views of raw bytes.
//!
//! A binary log is a 4-byte magic followed by events. Each event is a 19-byte header, a post-header, a body and, when
//! the file's format description says so, a 4-byte CRC32. binlogd stores events as they arrive and looks only at what
//! it needs to place them: this module never rewrites a byte.
//!
//! Source of the layout: MySQL Source Code Documentation, "Binary Log Event"; `libs/mysql/binlog/event/`.

pub mod boundary;
mod checksum;
mod error;
mod fields;
mod format_description;
mod gtid_event;
mod header;
mod heartbeat;
mod payload;
mod query;
mod rotate;
mod rows;
mod types;
mod xa;

pub use crate::event::query::statement_values::{IntVar, Rand};
pub use crate::event::query::user_var::{UserVar, UserVarValue};
pub(crate) use crate::event::rows::old_temporal::{is_packed_datetime, is_plain_datetime, is_plain_time};
pub use crate::event::rows::row_images::RowImages;
pub use crate::event::rows::table_map::{TableColumns, TableMap};
pub use checksum::{CHECKSUM_LEN, ChecksumAlgorithm, StreamChecksum};
pub use error::EventError;
pub(crate) use fields::{big_endian, counted, is_set, little_endian, packed_integer};
pub use format_description::{BINLOG_MAGIC, FormatDescription};
pub use gtid_event::{GtidEvent, MARIADB_STANDALONE};
pub use header::{EventHeader, FLAGS_AT, HEADER_LEN, flags};
pub use heartbeat::Heartbeat;
pub use payload::{PayloadCompression, PayloadHead, TransactionPayload};
pub use query::{AlterPhase, PEEK_BYTES_MAX, Query, SessionSettings, query_text, session_of};
pub use rotate::Rotate;
pub use rows::{RowChange, RowsEvent};
pub use types::EventType;
pub use xa::{MariadbGtidDetails, XaPrepare, Xid};
