//! Event type codes of MySQL and MariaDB.

use std::fmt;

/// The type code of an event. Unknown codes are legal: they are stored as they are.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventType(pub u8);

macro_rules! event_types {
    ($($name:ident = $code:literal),* $(,)?) => {
        #[allow(missing_docs)] // The names are the documentation: they are those of the servers' sources.
        impl EventType {
            $(pub const $name: EventType = EventType($code);)*

            /// The server's own name of this type, or `UNKNOWN`.
            pub fn name(self) -> &'static str {
                match self.0 {
                    $($code => stringify!($name),)*
                    _ => "UNKNOWN",
                }
            }
        }
    };
}

// MySQL: libs/mysql/binlog/event/binlog_event.h, Log_event_type. MariaDB (160 and above): sql/log_event.h.
event_types! {
    QUERY = 2, STOP = 3, ROTATE = 4, INTVAR = 5, LOAD = 6, SLAVE = 7, CREATE_FILE = 8, APPEND_BLOCK = 9,
    EXEC_LOAD = 10, DELETE_FILE = 11, NEW_LOAD = 12, RAND = 13, USER_VAR = 14, FORMAT_DESCRIPTION = 15, XID = 16,
    BEGIN_LOAD_QUERY = 17, EXECUTE_LOAD_QUERY = 18, TABLE_MAP = 19, WRITE_ROWS_V1 = 23, UPDATE_ROWS_V1 = 24,
    DELETE_ROWS_V1 = 25, INCIDENT = 26, HEARTBEAT = 27, IGNORABLE = 28, ROWS_QUERY = 29, WRITE_ROWS = 30,
    UPDATE_ROWS = 31, DELETE_ROWS = 32, GTID = 33, ANONYMOUS_GTID = 34, PREVIOUS_GTIDS = 35,
    TRANSACTION_CONTEXT = 36, VIEW_CHANGE = 37, XA_PREPARE = 38, PARTIAL_UPDATE_ROWS = 39,
    TRANSACTION_PAYLOAD = 40, HEARTBEAT_V2 = 41, GTID_TAGGED = 42,
    MARIADB_ANNOTATE_ROWS = 160, MARIADB_BINLOG_CHECKPOINT = 161, MARIADB_GTID = 162, MARIADB_GTID_LIST = 163,
    MARIADB_START_ENCRYPTION = 164, MARIADB_QUERY_COMPRESSED = 165, MARIADB_WRITE_ROWS_COMPRESSED_V1 = 166,
    MARIADB_UPDATE_ROWS_COMPRESSED_V1 = 167, MARIADB_DELETE_ROWS_COMPRESSED_V1 = 168,
    MARIADB_WRITE_ROWS_COMPRESSED = 169, MARIADB_UPDATE_ROWS_COMPRESSED = 170, MARIADB_DELETE_ROWS_COMPRESSED = 171,
}

impl EventType {
    /// HEARTBEAT of either form: sent by an idle source, part of no file.
    pub fn is_heartbeat(self) -> bool {
        matches!(self, EventType::HEARTBEAT | EventType::HEARTBEAT_V2)
    }

    /// Rows that were written, updated or deleted, as they stand in the file. Those that MariaDB has compressed are none:
    /// [`is_compressed_rows`](Self::is_compressed_rows).
    pub fn is_rows(self) -> bool {
        matches!(
            self,
            EventType::WRITE_ROWS
                | EventType::UPDATE_ROWS
                | EventType::DELETE_ROWS
                | EventType::PARTIAL_UPDATE_ROWS
                | EventType::WRITE_ROWS_V1
                | EventType::UPDATE_ROWS_V1
                | EventType::DELETE_ROWS_V1
        )
    }

    /// Rows that MariaDB has compressed (`log_bin_compress`).
    pub fn is_compressed_rows(self) -> bool {
        matches!(
            self,
            EventType::MARIADB_WRITE_ROWS_COMPRESSED_V1
                | EventType::MARIADB_UPDATE_ROWS_COMPRESSED_V1
                | EventType::MARIADB_DELETE_ROWS_COMPRESSED_V1
                | EventType::MARIADB_WRITE_ROWS_COMPRESSED
                | EventType::MARIADB_UPDATE_ROWS_COMPRESSED
                | EventType::MARIADB_DELETE_ROWS_COMPRESSED
        )
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            "UNKNOWN" => write!(f, "UNKNOWN({})", self.0),
            name => f.write_str(name),
        }
    }
}

impl fmt::Debug for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
