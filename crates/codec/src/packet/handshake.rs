//! What the server sends while a connection is set up: its greeting and a request to change the authentication method.
//!
//! Sources: MySQL Source Code Documentation, "Protocol::HandshakeV10" and "Protocol::AuthSwitchRequest"; MariaDB
//! Knowledge Base, "Connection".

use super::cursor::{Cursor, MalformedPacket};
use super::response::printable;

/// The longest server version kept, in bytes. MySQL's own limit is 60 (`SERVER_VERSION_LENGTH` in mysql_com.h).
pub const SERVER_VERSION_BYTES_MAX: usize = 128;

/// The only version of the handshake that servers since MySQL 3.21 send.
const PROTOCOL_VERSION: u8 = 10;

const CLIENT_MYSQL: u32 = 1;
const CLIENT_PLUGIN_AUTH: u32 = 1 << 19;

/// What replication clients of MySQL 5.5 expect before the true version of MariaDB 10 and later.
const MARIADB_VERSION_PREFIX: &str = "5.5.5-";

/// The server's greeting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handshake {
    /// For instance `9.7.0` or `11.8.3-MariaDB-log`, without the `5.5.5-` that MariaDB puts before it; printable.
    pub server_version: String,
    /// The number that SHOW PROCESSLIST shows for this connection.
    pub connection_id: u32,
    /// CLIENT_* bits that the server supports.
    pub capabilities: u32,
    /// The challenge of the authentication method, without its terminator. Usually 20 bytes.
    pub challenge: Vec<u8>,
    /// The server's default authentication method; empty if it has no such notion.
    pub auth_plugin: Vec<u8>,
}

impl Handshake {
    /// Reads the first packet of a connection that is not an ERR packet.
    pub fn parse(payload: &[u8]) -> Result<Self, MalformedPacket> {
        let mut cursor = Cursor::new(payload);
        if cursor.u8("the protocol version")? != PROTOCOL_VERSION {
            return Err(MalformedPacket { field: "protocol version 10", at: 0 });
        }
        let version = printable(cursor.null_terminated("the server version")?, SERVER_VERSION_BYTES_MAX);
        let connection_id = cursor.u32("the connection id")?;
        let mut challenge = cursor.array::<8>("the first part of the challenge")?.to_vec();
        cursor.u8("the filler")?;
        let capabilities_low = cursor.u16("the lower capabilities")?;
        cursor.bytes(3, "character set and status")?;
        let capabilities_high = cursor.u16("the upper capabilities")?;
        let capabilities = u32::from(capabilities_low) | u32::from(capabilities_high) << 16;
        let challenge_length = cursor.u8("the length of the challenge")?;
        cursor.bytes(10, "the reserved bytes")?;

        // The rest of the challenge takes at least 13 bytes, the last of which is its terminator.
        let rest_length = challenge_length.saturating_sub(8).max(13);
        let rest = cursor.bytes(u64::from(rest_length), "the second part of the challenge")?;
        challenge.extend_from_slice(rest.strip_suffix(&[0]).unwrap_or(rest));

        let auth_plugin = if capabilities & CLIENT_PLUGIN_AUTH == 0 {
            Vec::new()
        } else {
            // Servers before 5.5.10 forget the terminator (bug 59453).
            let name = cursor.remaining();
            name.split(|byte| *byte == 0).next().unwrap_or_default().to_vec()
        };
        let server_version = match version.strip_prefix(MARIADB_VERSION_PREFIX) {
            Some(rest) if rest.contains("MariaDB") => rest.to_owned(),
            _ => version,
        };
        Ok(Self { server_version, connection_id, capabilities, challenge, auth_plugin })
    }

    /// Whether the server is MariaDB: it says so in its version, or leaves out CLIENT_MYSQL as MariaDB 10.2 and later
    /// do even when a distribution changed the version text.
    pub fn is_mariadb(&self) -> bool {
        self.server_version.contains("MariaDB") || self.capabilities & CLIENT_MYSQL == 0
    }
}

/// The server asks to authenticate by another method than the one offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthSwitchRequest<'a> {
    /// Name of the method.
    pub plugin: &'a [u8],
    /// Its challenge, without the terminator that some methods add.
    pub challenge: &'a [u8],
}

impl<'a> AuthSwitchRequest<'a> {
    /// First byte of the request, the same as of an EOF packet.
    pub const MARKER: u8 = 0xFE;

    /// Reads the request. The one-byte form, which asks for the method of MySQL 4.0, is malformed here: nobody
    /// should answer it.
    pub fn parse(payload: &'a [u8]) -> Result<Self, MalformedPacket> {
        let mut cursor = Cursor::new(payload);
        if cursor.u8("the marker")? != Self::MARKER {
            return Err(MalformedPacket { field: "the marker", at: 0 });
        }
        let plugin = cursor.null_terminated("the name of the authentication method")?;
        let data = cursor.remaining();
        // Challenges of 20 bytes come with a terminator (MySQL and MariaDB), those of 32 bytes are bare.
        let challenge = match data {
            [challenge @ .., 0] if challenge.len() == 20 => challenge,
            bare => bare,
        };
        Ok(Self { plugin, challenge })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn greeting(version: &[u8], length: u8, plugin: &[u8]) -> Vec<u8> {
        let mut bytes = vec![10];
        bytes.extend_from_slice(version);
        bytes.extend_from_slice(b"\0\x08\0\0\0abcdefgh\0\xFF\xFF\xFF\x02\0\xFF\xDF");
        bytes.push(length);
        bytes.extend_from_slice(&[0; 10]);
        bytes.extend_from_slice(b"ijklmnopqrst\0");
        bytes.extend_from_slice(plugin);
        bytes
    }

    #[test]
    fn a_mysql_greeting() {
        let handshake = Handshake::parse(&greeting(b"9.7.0", 21, b"caching_sha2_password\0")).unwrap();
        assert_eq!(handshake.server_version, "9.7.0");
        assert_eq!(handshake.connection_id, 8);
        assert_eq!(handshake.capabilities, 0xDFFF_FFFF);
        assert_eq!(handshake.challenge, b"abcdefghijklmnopqrst");
        assert_eq!(handshake.auth_plugin, b"caching_sha2_password");
        assert!(!handshake.is_mariadb());
    }

    #[test]
    fn a_mariadb_greeting_loses_its_prefix() {
        let handshake = Handshake::parse(&greeting(b"5.5.5-10.11.6-MariaDB-log", 21, b"x")).unwrap();
        assert_eq!(handshake.server_version, "10.11.6-MariaDB-log");
        assert!(handshake.is_mariadb());
        assert_eq!(handshake.auth_plugin, b"x");
    }

    #[test]
    fn a_challenge_length_beyond_the_packet_is_refused() {
        for length in 0x16..=0xFF {
            let _ = Handshake::parse(&greeting(b"9.7.0", length, b""));
        }
        assert!(Handshake::parse(&greeting(b"9.7.0", 0xFF, b"")).is_err());
    }

    #[test]
    fn only_a_challenge_of_twenty_bytes_loses_its_terminator() {
        let native = AuthSwitchRequest::parse(b"\xFEmysql_native_password\0abcdefghijklmnopqrst\0").unwrap();
        assert_eq!(native.challenge, b"abcdefghijklmnopqrst");
        let bare = AuthSwitchRequest::parse(b"\xFEparsec\0abc\0").unwrap();
        assert_eq!((bare.plugin, bare.challenge), (&b"parsec"[..], &b"abc\0"[..]));
        assert!(AuthSwitchRequest::parse(b"\xFE").is_err());
    }

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = AuthSwitchRequest::parse(&bytes);
            let _ = Handshake::parse(&bytes);
            if let Some(first) = bytes.first_mut() {
                *first = 10;
            }
            let _ = Handshake::parse(&bytes);
        }
    }
}
