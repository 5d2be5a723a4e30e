//! What the server's side writes while a connection is set up: the greeting, a request to change the authentication
//! method, and what a method has to say. [`super::handshake`] is the reading side.
//!
//! Sources: MySQL Source Code Documentation, "Protocol::HandshakeV10", "Protocol::AuthSwitchRequest" and
//! "Protocol::AuthMoreData"; MariaDB Knowledge Base, "Connection".

use super::capability;
use super::handshake::AuthSwitchRequest;

/// Length of the challenge in a greeting, in bytes (`SCRAMBLE_LENGTH` in mysql_com.h).
pub const CHALLENGE_BYTES: usize = 20;

/// First byte of a message that goes on with the current authentication method.
pub const AUTH_MORE_DATA: u8 = 0x01;

const PROTOCOL_VERSION: u8 = 10;

/// utf8mb4_general_ci, which every client since 5.5.3 knows.
const COLLATION: u8 = 45;

/// SERVER_STATUS_AUTOCOMMIT.
const STATUS: u16 = 2;

/// A server's greeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Greeting<'a> {
    /// As SELECT VERSION() says it; without NUL.
    pub version: &'a str,
    /// The number of the connection that SHOW PROCESSLIST shows.
    pub connection_id: u32,
    /// Bits of [`capability`]. Without [`capability::MYSQL`] clients take the server for MariaDB 10.2 or later, one without
    /// capabilities of its own.
    pub capabilities: u32,
    /// Random bytes, none of them NUL: old clients read a text.
    pub challenge: &'a [u8; CHALLENGE_BYTES],
    /// The authentication method that `challenge` is for.
    pub plugin: &'a str,
}

impl Greeting<'_> {
    /// The message, to be framed with sequence number 0.
    pub fn message(&self) -> Vec<u8> {
        let (first, rest) = self.challenge.split_at(8);
        let [a, b, c, d] = self.capabilities.to_le_bytes();
        let has_plugin = self.capabilities & capability::PLUGIN_AUTH != 0;
        // With the terminator, as servers count it.
        let challenge_len = if has_plugin { CHALLENGE_BYTES as u8 + 1 } else { 0 };
        let mut message = vec![PROTOCOL_VERSION];
        message.extend_from_slice(self.version.as_bytes());
        message.push(0);
        message.extend_from_slice(&self.connection_id.to_le_bytes());
        message.extend_from_slice(first);
        message.extend_from_slice(&[0, a, b, COLLATION]);
        message.extend_from_slice(&STATUS.to_le_bytes());
        message.extend_from_slice(&[c, d, challenge_len]);
        // The last four are MariaDB's own capabilities, of which there are none.
        message.extend_from_slice(&[0; 10]);
        message.extend_from_slice(rest);
        message.push(0);
        if has_plugin {
            message.extend_from_slice(self.plugin.as_bytes());
            message.push(0);
        }
        message
    }
}

/// The request to authenticate by another method, with its challenge. One of [`CHALLENGE_BYTES`] gets the terminator that
/// the methods with such a challenge expect; others go bare, as client_ed25519 wants its 32 bytes.
pub fn auth_switch_request(plugin: &str, challenge: &[u8]) -> Vec<u8> {
    let mut message = vec![AuthSwitchRequest::MARKER];
    message.extend_from_slice(plugin.as_bytes());
    message.push(0);
    message.extend_from_slice(challenge);
    if challenge.len() == CHALLENGE_BYTES {
        message.push(0);
    }
    message
}

/// What the current authentication method has to say.
pub fn auth_more_data(data: &[u8]) -> Vec<u8> {
    [&[AUTH_MORE_DATA], data].concat()
}

#[cfg(test)]
mod tests {
    use super::super::handshake::Handshake;
    use super::*;
    use crate::ServerKind;

    const CHALLENGE: &[u8; CHALLENGE_BYTES] = b"abcdefghijklmnopqrst";

    #[test]
    fn the_reading_side_understands_the_greeting() {
        for (version, capabilities, kind) in [
            (
                "9.7.0",
                capability::MYSQL | capability::PROTOCOL_41 | capability::PLUGIN_AUTH,
                ServerKind::MySql,
            ),
            ("12.1.2-distribution", capability::PROTOCOL_41 | capability::PLUGIN_AUTH, ServerKind::MariaDb),
        ] {
            let plugin = "caching_sha2_password";
            let greeting =
                Greeting { version, connection_id: 0x0102_0304, capabilities, challenge: CHALLENGE, plugin };
            let read = Handshake::parse(&greeting.message()).unwrap();
            assert_eq!((read.server_version.as_str(), read.connection_id), (version, 0x0102_0304));
            assert_eq!((read.capabilities, read.server_kind()), (capabilities, kind));
            assert_eq!((&read.challenge[..], &read.auth_plugin[..]), (&CHALLENGE[..], plugin.as_bytes()));
        }
    }

    #[test]
    fn a_greeting_byte_by_byte() {
        let capabilities = 0xDFFF_0001;
        let greeting =
            Greeting { version: "8", connection_id: 7, capabilities, challenge: CHALLENGE, plugin: "p" };
        let expected =
            b"\x0A8\0\x07\0\0\0abcdefgh\0\x01\x00\x2D\x02\0\xFF\xDF\x15\0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0p\0";
        assert_eq!(greeting.message(), expected);
    }

    #[test]
    fn the_reading_side_understands_a_switch() {
        for challenge in [&CHALLENGE[..], &[7; 32]] {
            let message = auth_switch_request("a_method", challenge);
            let read = AuthSwitchRequest::parse(&message).unwrap();
            assert_eq!((read.plugin, read.challenge), (&b"a_method"[..], challenge));
        }
        assert_eq!(auth_more_data(&[3]), [1, 3]);
    }
}
