//! What the server sends while a connection is set up: its greeting and a request to change the authentication method.
//!
//! Sources: MySQL Source Code Documentation, "Protocol::HandshakeV10" and "Protocol::AuthSwitchRequest"; MariaDB
//! Knowledge Base, "Connection".

use super::capability;
use super::cursor::{Cursor, MalformedPacket};
use super::response::printable;
use crate::ServerKind;

/// The longest server version kept, in bytes. MySQL's own limit is 60 (`SERVER_VERSION_LENGTH` in mysql_com.h).
pub const SERVER_VERSION_BYTES_MAX: usize = 128;

/// The only version of the handshake that servers since MySQL 3.21 send.
const PROTOCOL_VERSION: u8 = 10;

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

        let auth_plugin = if capabilities & capability::PLUGIN_AUTH == 0 {
            Vec::new()
        } else {
            // Servers before 5.5.10 forget the terminator (bug 59453).
            let name = cursor.remaining();
            name.split(|byte| *byte == 0).next().unwrap_or_default().to_vec()
        };
        let mut handshake =
            Self { server_version: version, connection_id, capabilities, challenge, auth_plugin };
        if handshake.server_kind() == ServerKind::MariaDb
            && let Some(rest) = handshake.server_version.strip_prefix(MARIADB_VERSION_PREFIX)
            && rest.starts_with(|first: char| first.is_ascii_digit())
        {
            handshake.server_version = rest.to_owned();
        }
        Ok(handshake)
    }

    /// Who greets; see [`ServerKind::of_greeting`].
    pub fn server_kind(&self) -> ServerKind {
        ServerKind::of_greeting(&self.server_version, self.capabilities)
    }
}

/// Major and minor number and patch level of a server's version: `26.7.0`, `8.0.36-28`, `11.8.3-MariaDB-log`. What the text
/// leaves out is 0; `None` when it does not begin with a number.
///
/// To be compared with the release that brought something, never with one that is the last: the numbers of both kinds of server
/// jump.
pub fn release(version: &str) -> Option<(u32, u32, u32)> {
    let end = version.find(|next: char| !next.is_ascii_digit() && next != '.').unwrap_or(version.len());
    let mut numbers = version[..end].trim_end_matches('.').split('.');
    let mut next = || numbers.next().map_or(Some(0), |number| number.parse().ok());
    Some((next()?, next()?, next()?))
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
        assert_eq!(handshake.server_kind(), ServerKind::MySql);
    }

    #[test]
    fn a_mariadb_greeting_loses_its_prefix() {
        let handshake = Handshake::parse(&greeting(b"5.5.5-10.11.6-MariaDB-log", 21, b"x")).unwrap();
        assert_eq!(handshake.server_version, "10.11.6-MariaDB-log");
        assert_eq!(handshake.server_kind(), ServerKind::MariaDb);
        assert_eq!(handshake.auth_plugin, b"x");
    }

    /// MySQL 9.7 is followed by 26.7; MariaDB is at 12.
    #[test]
    fn the_kind_of_server_is_not_told_by_a_number() {
        for (version, shown, kind) in [
            ("26.7.0", "26.7.0", ServerKind::MySql),
            ("28.4.1-lts", "28.4.1-lts", ServerKind::MySql),
            ("10.0.1", "10.0.1", ServerKind::MySql),
            ("11.8.3", "11.8.3", ServerKind::MySql),
            ("8.0.36-28", "8.0.36-28", ServerKind::MySql),
            ("26.7.0-1.1-percona-log", "26.7.0-1.1-percona-log", ServerKind::MySql),
            ("8.0.mysql_aurora.3.04.0", "8.0.mysql_aurora.3.04.0", ServerKind::MySql),
            ("5.5.5-m3-log", "5.5.5-m3-log", ServerKind::MySql),
            ("5.5.5-11.8.3-MariaDB", "11.8.3-MariaDB", ServerKind::MariaDb),
            ("12.1.2-MariaDB", "12.1.2-MariaDB", ServerKind::MariaDb),
            ("11.8.6-MariaDB-0+deb13u1-log", "11.8.6-MariaDB-0+deb13u1-log", ServerKind::MariaDb),
        ] {
            let handshake = Handshake::parse(&greeting(version.as_bytes(), 21, b"x")).unwrap();
            assert_eq!((handshake.server_version.as_str(), handshake.server_kind()), (shown, kind));
        }
        for (version, shown) in [("5.5.5-12.1.2-distribution", "12.1.2-distribution"), ("26.7.0", "26.7.0")] {
            let mut bytes = greeting(version.as_bytes(), 21, b"x");
            bytes[1 + version.len() + 1 + 4 + 8 + 1] &= !1; // CLIENT_MYSQL.
            let handshake = Handshake::parse(&bytes).unwrap();
            assert_eq!(
                (handshake.server_version.as_str(), handshake.server_kind()),
                (shown, ServerKind::MariaDb)
            );
        }
    }

    #[test]
    fn releases() {
        for (version, numbers) in [
            ("9.7.0", Some((9, 7, 0))),
            ("26.7.0", Some((26, 7, 0))),
            ("26.7", Some((26, 7, 0))),
            ("28.4.1-lts", Some((28, 4, 1))),
            ("8.0.31-log", Some((8, 0, 31))),
            ("8.0.36-28", Some((8, 0, 36))),
            ("8.0.mysql_aurora.3.04.0", Some((8, 0, 0))),
            ("5.6.42.0", Some((5, 6, 42))),
            ("11.8.3-MariaDB-0+deb13u1-log", Some((11, 8, 3))),
            ("12.1.2-MariaDB", Some((12, 1, 2))),
            ("9", Some((9, 0, 0))),
            ("", None),
            ("x", None),
            (".7", None),
            ("8..1", None),
            ("99999999999.1", None),
        ] {
            assert_eq!(release(version), numbers, "{version}");
        }
        assert!(release("26.7.0") > release("9.7.0") && release("28.4.1-lts") > release("26.7.0"));
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
