//! Packets of the MySQL client/server protocol, as far as a replica and who serves replicas need them.
//!
//! ```text
//! a client's side
//! bytes ── Assembler ──► message ──► Handshake · OkPacket · ErrPacket · QueryResponseReader
//! bytes ◄─ append_message ◄─ message ◄── command::{query, register_replica, binlog_dump, …}
//! bytes ◄─────────────────────────────── semi_sync_acknowledgement
//!
//! the server's side
//! bytes ── Assembler ──► message ──► FirstMessage · Request · SemiSyncAcknowledgement
//! bytes ◄─ append_message ◄─ message ◄── Greeting · auth_switch_request · auth_more_data
//! bytes ◄─────────────────────────────── reply::{ok, err, eof, result_set}
//! ```
//!
//! A *packet* is a header and a payload on the wire; a *message* is what one or several packets carry. Everything here
//! maps bytes to values and back; sockets, TLS and authentication are the business of the program around it.

pub mod capability;
pub mod command;
mod cursor;
mod frame;
mod greeting;
mod handshake;
mod login;
pub mod reply;
mod request;
mod response;
mod result_set;
mod semi_sync;
mod write;

pub use cursor::MalformedPacket;
pub use frame::{
    Assembler, FrameError, HEADER_BYTES, Header, PAYLOAD_BYTES_MAX, Progress, RESPONSE_BYTES_MAX,
    append_message,
};
pub use greeting::{AUTH_MORE_DATA, CHALLENGE_BYTES, Greeting, auth_more_data, auth_switch_request};
pub use handshake::{AuthSwitchRequest, Handshake, SERVER_VERSION_BYTES_MAX, release};
pub use login::{Attributes, ChangeUser, FirstMessage, LOGIN_BYTES_MAX, Login};
pub use request::{
    BinlogDump, BinlogDumpGtid, DUMP_HEARTBEAT_V2_OR_ANNOTATE, DUMP_NON_BLOCKING, RegisterReplica, Request,
};
pub use response::{EOF, ERR, ERROR_MESSAGE_BYTES_MAX, ErrPacket, OK, OkPacket, is_eof, is_err, printable};
pub use result_set::{
    COLUMNS_MAX, QueryResponse, QueryResponseReader, RESULT_SET_BYTES_MAX, ResultSet, ResultSetError,
};
pub use semi_sync::{
    SEMI_SYNC_ACKNOWLEDGEMENT_BYTES_MAX, SEMI_SYNC_FILE_BYTES_MAX, SEMI_SYNC_MAGIC, SemiSyncAcknowledgement,
    semi_sync_acknowledgement,
};
