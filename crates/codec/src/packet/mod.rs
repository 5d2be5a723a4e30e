//! Packets of the MySQL client/server protocol, as far as a replica needs them.
//!
//! ```text
//! bytes ── Assembler ──► message ──► Handshake · OkPacket · ErrPacket · QueryResponseReader
//! bytes ◄─ append_message ◄─ message ◄── command::{query, register_replica, binlog_dump, …}
//! bytes ◄─────────────────────────────── semi_sync_acknowledgement
//! ```
//!
//! A *packet* is a header and a payload on the wire; a *message* is what one or several packets carry. Everything here
//! maps bytes to values and back; sockets, TLS and authentication are the business of the program around it.

pub mod command;
mod cursor;
mod frame;
mod handshake;
mod response;
mod result_set;
mod semi_sync;

pub use cursor::MalformedPacket;
pub use frame::{
    Assembler, FrameError, HEADER_BYTES, Header, PAYLOAD_BYTES_MAX, Progress, RESPONSE_BYTES_MAX,
    append_message,
};
pub use handshake::{AuthSwitchRequest, Handshake, SERVER_VERSION_BYTES_MAX, release};
pub use response::{EOF, ERR, ERROR_MESSAGE_BYTES_MAX, ErrPacket, OK, OkPacket, is_eof, is_err, printable};
pub use result_set::{
    COLUMNS_MAX, QueryResponse, QueryResponseReader, RESULT_SET_BYTES_MAX, ResultSet, ResultSetError,
};
pub use semi_sync::{SEMI_SYNC_FILE_BYTES_MAX, SEMI_SYNC_MAGIC, semi_sync_acknowledgement};
