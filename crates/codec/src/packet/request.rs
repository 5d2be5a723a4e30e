//! What a client asks for: the reading side of commands.
//!
//! Sources: MySQL Source Code Documentation, "Command Phase"; `parse_packet` in sql/protocol_classic.cc and the functions
//! `com_binlog_dump`, `com_binlog_dump_gtid` and `register_replica` in sql/rpl_source.cc.

use super::command::{
    COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID, COM_CHANGE_USER, COM_FIELD_LIST, COM_INIT_DB, COM_PING,
    COM_PROCESS_KILL, COM_QUERY, COM_QUIT, COM_REGISTER_SLAVE, COM_RESET_CONNECTION, COM_SET_OPTION,
    COM_STATISTICS, COM_STMT_CLOSE, COM_STMT_SEND_LONG_DATA,
};
use super::cursor::{Cursor, MalformedPacket};
use super::login::ChangeUser;

/// Flag of a dump: it ends where the log does, instead of waiting for more (BINLOG_DUMP_NON_BLOCK).
pub const DUMP_NON_BLOCKING: u16 = 1;
/// Flag of a dump: heartbeats with 64-bit positions to MySQL (USE_HEARTBEAT_EVENT_V2), ANNOTATE_ROWS events to MariaDB
/// (BINLOG_SEND_ANNOTATE_ROWS_EVENT).
pub const DUMP_HEARTBEAT_V2_OR_ANNOTATE: u16 = 2;

/// One command of a client. Texts are as the client sent them, in whatever character set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request<'a> {
    /// The session ends; no answer is wanted.
    Quit,
    /// USE of a database.
    InitDb(&'a [u8]),
    /// One statement, or several parted by semicolons.
    Query(&'a [u8]),
    /// The columns of a table, which old clients ask for to complete words.
    FieldList,
    /// Is anybody there?
    Ping,
    /// A line of text with numbers, which is the whole answer.
    Statistics,
    /// KILL of a connection.
    ProcessKill(u32),
    /// 0 allows several statements in one packet, 1 forbids them. The answer is EOF.
    SetOption(u16),
    /// A fresh session of the same user.
    ResetConnection,
    /// A fresh session of another user.
    ChangeUser(ChangeUser<'a>),
    /// A replica says who it is.
    RegisterReplica(RegisterReplica<'a>),
    /// A dump from a file and position on.
    BinlogDump(BinlogDump<'a>),
    /// A dump of what a replica lacks, or from a file and position on.
    BinlogDumpGtid(BinlogDumpGtid<'a>),
    /// A command that no server answers: COM_STMT_CLOSE, COM_STMT_SEND_LONG_DATA.
    NoAnswer,
    /// Any other command, by its number.
    Unknown(u8),
}

/// COM_REGISTER_SLAVE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterReplica<'a> {
    /// The replica's server id.
    pub server_id: u32,
    /// `report_host` of the replica, often empty.
    pub host: &'a [u8],
    /// `report_user` of the replica, often empty.
    pub user: &'a [u8],
    /// `report_password` of the replica, often empty. Never shown.
    pub password: &'a [u8],
    /// `report_port` of the replica.
    pub port: u16,
    /// Unused since MySQL 5.0.
    pub rank: u32,
    /// The source's server id as far as the replica knows it, usually 0.
    pub source_id: u32,
}

/// COM_BINLOG_DUMP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BinlogDump<'a> {
    /// Offset of the first event wanted; 0 to 4 all mean the first one of the file.
    pub position: u32,
    /// [`DUMP_NON_BLOCKING`], [`DUMP_HEARTBEAT_V2_OR_ANNOTATE`]; servers ignore what they do not know.
    pub flags: u16,
    /// The replica's server id; 0 of mysqlbinlog.
    pub server_id: u32,
    /// Name of the file; empty for the oldest.
    pub file: &'a [u8],
}

/// COM_BINLOG_DUMP_GTID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BinlogDumpGtid<'a> {
    /// As of [`BinlogDump`].
    pub flags: u16,
    /// The replica's server id.
    pub server_id: u32,
    /// Name of the file; usually empty: the server finds the file by the set.
    pub file: &'a [u8],
    /// Offset in `file`, 4 where that is empty.
    pub position: u64,
    /// The encoded GTID set that the replica has.
    pub set: &'a [u8],
}

impl<'a> Request<'a> {
    /// Reads the message of a command in a session whose login had these `capabilities`. What stands behind the known
    /// fields is ignored, as servers do.
    pub fn parse(payload: &'a [u8], capabilities: u32) -> Result<Self, MalformedPacket> {
        let mut cursor = Cursor::new(payload);
        let command = cursor.u8("the command")?;
        Ok(match command {
            COM_QUIT => Self::Quit,
            COM_INIT_DB => Self::InitDb(cursor.remaining()),
            COM_QUERY => Self::Query(cursor.remaining()),
            COM_FIELD_LIST => Self::FieldList,
            COM_PING => Self::Ping,
            COM_STATISTICS => Self::Statistics,
            COM_PROCESS_KILL => Self::ProcessKill(cursor.u32("the connection")?),
            COM_SET_OPTION => Self::SetOption(cursor.u16("the option")?),
            COM_RESET_CONNECTION => Self::ResetConnection,
            COM_CHANGE_USER => Self::ChangeUser(ChangeUser::parse(&mut cursor, capabilities)?),
            COM_REGISTER_SLAVE => Self::RegisterReplica(register_replica(&mut cursor)?),
            COM_BINLOG_DUMP => Self::BinlogDump(binlog_dump(&mut cursor)?),
            COM_BINLOG_DUMP_GTID => Self::BinlogDumpGtid(binlog_dump_gtid(&mut cursor)?),
            COM_STMT_CLOSE | COM_STMT_SEND_LONG_DATA => Self::NoAnswer,
            other => Self::Unknown(other),
        })
    }
}

fn register_replica<'a>(cursor: &mut Cursor<'a>) -> Result<RegisterReplica<'a>, MalformedPacket> {
    let server_id = cursor.u32("the server id")?;
    let mut text = |field| {
        let length = cursor.u8(field)?;
        cursor.bytes(length.into(), field)
    };
    Ok(RegisterReplica {
        server_id,
        host: text("the replica's host")?,
        user: text("the replica's user")?,
        password: text("the replica's password")?,
        port: cursor.u16("the replica's port")?,
        rank: cursor.u32("the replica's rank")?,
        source_id: cursor.u32("the source's server id")?,
    })
}

fn binlog_dump<'a>(cursor: &mut Cursor<'a>) -> Result<BinlogDump<'a>, MalformedPacket> {
    Ok(BinlogDump {
        position: cursor.u32("the position")?,
        flags: cursor.u16("the flags")?,
        server_id: cursor.u32("the server id")?,
        // Servers take the name for a text of C; some clients send its terminator.
        file: cursor.null_terminated_or_rest(),
    })
}

fn binlog_dump_gtid<'a>(cursor: &mut Cursor<'a>) -> Result<BinlogDumpGtid<'a>, MalformedPacket> {
    let flags = cursor.u16("the flags")?;
    let server_id = cursor.u32("the server id")?;
    let file_len = cursor.u32("the length of the file name")?;
    let file = Cursor::new(cursor.bytes(file_len.into(), "the file name")?).null_terminated_or_rest();
    let position = cursor.u64("the position")?;
    let set_len = cursor.u32("the length of the GTID set")?;
    let set = cursor.bytes(set_len.into(), "the GTID set")?;
    Ok(BinlogDumpGtid { flags, server_id, file, position, set })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{capability, command};
    use super::*;

    fn parse(payload: &[u8]) -> Request<'_> {
        Request::parse(payload, 0).unwrap()
    }

    #[test]
    fn what_the_client_side_writes() {
        assert_eq!(parse(&command::quit()), Request::Quit);
        assert_eq!(parse(&command::query("SELECT 1")), Request::Query(b"SELECT 1"));
        assert_eq!(parse(&command::allow_several_statements()), Request::SetOption(0));
        let registered = command::register_replica(7, "host", 3306);
        let Request::RegisterReplica(replica) = parse(&registered) else { panic!("{registered:?}") };
        assert_eq!((replica.server_id, replica.host, replica.port), (7, &b"host"[..], 3306));
        assert_eq!((replica.user, replica.password, replica.source_id), (&b""[..], &b""[..], 0));
        let dump = command::binlog_dump(4, 2, 7, b"b.000001");
        let expected =
            BinlogDump { position: 4, flags: DUMP_HEARTBEAT_V2_OR_ANNOTATE, server_id: 7, file: b"b.000001" };
        assert_eq!(parse(&dump), Request::BinlogDump(expected));
        let dump = command::binlog_dump_gtid(DUMP_NON_BLOCKING, 7, b"f", 1 << 33, b"set");
        let expected = BinlogDumpGtid {
            flags: DUMP_NON_BLOCKING,
            server_id: 7,
            file: b"f",
            position: 1 << 33,
            set: b"set",
        };
        assert_eq!(parse(&dump), Request::BinlogDumpGtid(expected));
    }

    #[test]
    fn other_commands() {
        assert_eq!(parse(b"\x0E"), Request::Ping);
        assert_eq!(parse(b"\x02db"), Request::InitDb(b"db"));
        assert_eq!(parse(b"\x0C\x05\0\0\0"), Request::ProcessKill(5));
        assert_eq!(parse(b"\x1F"), Request::ResetConnection);
        assert_eq!(parse(b"\x19\x01\0\0\0"), Request::NoAnswer);
        assert_eq!(parse(b"\x16SELECT ?"), Request::Unknown(0x16));
    }

    #[test]
    fn a_change_of_the_user() {
        let capabilities =
            capability::SECURE_CONNECTION | capability::PLUGIN_AUTH | capability::CONNECT_ATTRS;
        let payload = b"\x11u\0\x02ab\0\x2D\0caching_sha2_password\0\x04\x01a\x01b";
        let Ok(Request::ChangeUser(change)) = Request::parse(payload, capabilities) else { panic!() };
        assert_eq!(
            (change.user, change.auth_response, change.character_set),
            (&b"u"[..], &b"ab"[..], Some(45))
        );
        assert_eq!(change.plugin, Some(&b"caching_sha2_password"[..]));
        assert_eq!(change.attributes.get("a"), Some(&b"b"[..]));
        let Ok(Request::ChangeUser(change)) = Request::parse(b"\x11u\0\0db\0", capabilities) else {
            panic!()
        };
        assert_eq!((change.database, change.character_set, change.plugin), (&b"db"[..], None, None));
    }

    #[test]
    fn a_file_name_may_have_a_terminator() {
        let dump = command::binlog_dump(4, 0, 7, b"b.000001\0");
        assert!(matches!(parse(&dump), Request::BinlogDump(BinlogDump { file: b"b.000001", .. })));
    }

    #[test]
    fn half_a_command_is_refused() {
        let whole = [
            command::register_replica(7, "host", 3306),
            command::binlog_dump(4, 2, 7, b""),
            command::binlog_dump_gtid(0, 7, b"f", 4, b"set"),
            b"\x0C\0\0\0\0".to_vec(),
        ];
        for message in &whole {
            assert!(Request::parse(message, 0).is_ok());
            for end in 1..message.len() {
                assert!(Request::parse(&message[..end], 0).is_err(), "{message:?} up to {end}");
            }
        }
        assert!(Request::parse(b"", 0).is_err());
        // A set that claims 4 GiB.
        let mut message = command::binlog_dump_gtid(0, 7, b"", 4, b"");
        let at = message.len() - 4;
        message[at..].fill(0xFF);
        assert!(Request::parse(&message, 0).is_err());
    }

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..80),
            capabilities: u32,
            command: u8,
        ) {
            let _ = Request::parse(&bytes, capabilities);
            let _ = Request::parse(&[&[command & 0x1F][..], &bytes].concat(), capabilities);
        }
    }
}
