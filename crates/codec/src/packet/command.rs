//! Payloads of the commands that a replica sends; [`Request`](super::Request) reads them.
//!
//! Each function gives one message to be framed with sequence number 0 (see [`append_message`]).
//!
//! Sources: MySQL Source Code Documentation, "COM_QUERY", "COM_QUIT", "COM_REGISTER_SLAVE", "COM_BINLOG_DUMP",
//! "COM_BINLOG_DUMP_GTID"; the reading side in sql/rpl_source.cc, the writing side in sql-common/client.cc.
//!
//! [`append_message`]: super::append_message

pub(super) const COM_QUIT: u8 = 0x01;
pub(super) const COM_INIT_DB: u8 = 0x02;
pub(super) const COM_QUERY: u8 = 0x03;
pub(super) const COM_FIELD_LIST: u8 = 0x04;
pub(super) const COM_STATISTICS: u8 = 0x09;
pub(super) const COM_PROCESS_KILL: u8 = 0x0C;
pub(super) const COM_PING: u8 = 0x0E;
pub(super) const COM_CHANGE_USER: u8 = 0x11;
pub(super) const COM_BINLOG_DUMP: u8 = 0x12;
pub(super) const COM_REGISTER_SLAVE: u8 = 0x15;
pub(super) const COM_STMT_SEND_LONG_DATA: u8 = 0x18;
pub(super) const COM_STMT_CLOSE: u8 = 0x19;
pub(super) const COM_SET_OPTION: u8 = 0x1B;
pub(super) const COM_BINLOG_DUMP_GTID: u8 = 0x1E;
pub(super) const COM_RESET_CONNECTION: u8 = 0x1F;

/// The longest report host that every server accepts, in bytes (`HOSTNAME_LENGTH` was 60 before MySQL 8.0.17 and
/// still is in older MariaDB).
pub(crate) const REPORT_HOST_BYTES_MAX: usize = 60;

/// COM_QUIT: the session ends; the server closes the connection without an answer.
pub fn quit() -> Vec<u8> {
    vec![COM_QUIT]
}

/// COM_QUERY: one statement as text, of a session without CLIENT_QUERY_ATTRIBUTES.
pub fn query(sql: impl AsRef<[u8]>) -> Vec<u8> {
    let sql = sql.as_ref();
    let mut payload = Vec::with_capacity(1 + sql.len());
    payload.push(COM_QUERY);
    payload.extend_from_slice(sql);
    payload
}

/// COM_SET_OPTION with MYSQL_OPTION_MULTI_STATEMENTS_ON: from now on a COM_QUERY may hold several statements. The server
/// answers with EOF.
pub fn allow_several_statements() -> Vec<u8> {
    vec![COM_SET_OPTION, 0, 0]
}

/// COM_REGISTER_SLAVE: makes the replica appear in SHOW REPLICAS. The server answers with OK.
///
/// `hostname` is only shown, never resolved; what exceeds `REPORT_HOST_BYTES_MAX` is cut off, because the server
/// would refuse the registration. User and password stay empty: they too are only shown.
pub fn register_replica(server_id: u32, hostname: &str, port: u16) -> Vec<u8> {
    let hostname = cut(hostname, REPORT_HOST_BYTES_MAX);
    let mut payload = Vec::with_capacity(18 + hostname.len());
    payload.push(COM_REGISTER_SLAVE);
    payload.extend_from_slice(&server_id.to_le_bytes());
    payload.push(hostname.len() as u8);
    payload.extend_from_slice(hostname.as_bytes());
    payload.extend_from_slice(&[0, 0]);
    payload.extend_from_slice(&port.to_le_bytes());
    // Recovery rank, unused since 5.0, and the source's server id, which the server fills in itself.
    payload.extend_from_slice(&[0; 8]);
    payload
}

/// COM_BINLOG_DUMP: asks for the event stream from `position` in `file` on; an empty name means the oldest file.
///
/// `position` is the offset of an event, 4 for the first one. The format holds 32 bits, so that a later position of
/// a file above 4 GiB cannot be asked for.
pub fn binlog_dump(position: u32, flags: u16, server_id: u32, file: &[u8]) -> Vec<u8> {
    let mut payload = Vec::with_capacity(11 + file.len());
    payload.push(COM_BINLOG_DUMP);
    payload.extend_from_slice(&position.to_le_bytes());
    payload.extend_from_slice(&flags.to_le_bytes());
    payload.extend_from_slice(&server_id.to_le_bytes());
    payload.extend_from_slice(file);
    payload
}

/// COM_BINLOG_DUMP_GTID: asks MySQL for every transaction that is not in `encoded_set` (its binary form).
///
/// By GTID a server wants an empty `file` and `position` 4: it finds the file itself. Names and sets are ours, thus
/// far below the 4 GiB of their length fields.
pub fn binlog_dump_gtid(
    flags: u16,
    server_id: u32,
    file: &[u8],
    position: u64,
    encoded_set: &[u8],
) -> Vec<u8> {
    let mut payload = Vec::with_capacity(23 + file.len() + encoded_set.len());
    payload.push(COM_BINLOG_DUMP_GTID);
    payload.extend_from_slice(&flags.to_le_bytes());
    payload.extend_from_slice(&server_id.to_le_bytes());
    payload.extend_from_slice(&(file.len() as u32).to_le_bytes());
    payload.extend_from_slice(file);
    payload.extend_from_slice(&position.to_le_bytes());
    payload.extend_from_slice(&(encoded_set.len() as u32).to_le_bytes());
    payload.extend_from_slice(encoded_set);
    payload
}

/// The longest beginning of `text` that has at most `bytes_max` bytes and ends between two characters.
fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_commands() {
        assert_eq!(quit(), b"\x01");
        assert_eq!(query("SELECT 1"), b"\x03SELECT 1");
    }

    #[test]
    fn registration_leaves_user_and_password_empty() {
        let payload = register_replica(0x0102_0304, "host", 3306);
        assert_eq!(payload, b"\x15\x04\x03\x02\x01\x04host\0\0\xEA\x0C\0\0\0\0\0\0\0\0");
    }

    #[test]
    fn a_long_report_host_is_cut_between_characters() {
        let payload = register_replica(1, &format!("{}é", "x".repeat(59)), 0);
        assert_eq!(payload[5], 59);
        assert_eq!(payload.len(), 1 + 4 + 1 + 59 + 2 + 2 + 8);
    }

    #[test]
    fn dump_by_file_and_position() {
        assert_eq!(binlog_dump(4, 2, 7, b"b.000001"), b"\x12\x04\0\0\0\x02\0\x07\0\0\0b.000001");
    }

    #[test]
    fn dump_by_gtid() {
        assert_eq!(
            binlog_dump_gtid(4, 7, b"", 4, &[0; 8]),
            b"\x1E\x04\0\x07\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0\0\0\0\0"
        );
    }
}
