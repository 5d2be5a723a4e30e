//! What a client sends before it is let in: a request for TLS, its login, and its acts of changing the user later.
//!
//! Sources: MySQL Source Code Documentation, "Protocol::SSLRequest" and "Protocol::HandshakeResponse41"; the reading side in
//! sql/auth/sql_authentication.cc; MariaDB Knowledge Base, "Connection", for MariaDB's capabilities.

use super::capability;
use super::cursor::{Cursor, MalformedPacket};

/// The longest first message accepted from a client, in bytes: attributes of 64 KiB, which is all that clients send of
/// them, and room for the rest.
pub const LOGIN_BYTES_MAX: usize = 68 << 10;

/// Length of a request for TLS, and of what stands before the user's name in a login, in bytes.
const FIXED_BYTES: usize = 32;

/// The first message of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstMessage<'a> {
    /// A TLS handshake follows, then a [`Login`].
    TlsRequest,
    /// Who wants to be let in.
    Login(Login<'a>),
}

impl<'a> FirstMessage<'a> {
    /// Reads the first message of a client that speaks the protocol since MySQL 4.1; older ones are malformed here.
    pub fn parse(payload: &'a [u8]) -> Result<Self, MalformedPacket> {
        let mut cursor = Cursor::new(payload);
        let capabilities = cursor.u32("the capabilities")?;
        if capabilities & capability::SSL != 0 && payload.len() == FIXED_BYTES {
            return Ok(Self::TlsRequest);
        }
        Login::parse(payload).map(Self::Login)
    }
}

/// A client's login: HandshakeResponse41.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Login<'a> {
    /// Bits of [`capability`] that the client wants or has.
    pub capabilities: u32,
    /// MariaDB's own capabilities; 0 of a client that has not taken the server for MariaDB.
    pub mariadb_capabilities: u32,
    /// The client's character set, the number of a collation below 256.
    pub character_set: u8,
    /// The account, as the client writes it.
    pub user: &'a [u8],
    /// The answer to the greeting's challenge.
    pub auth_response: &'a [u8],
    /// The database that the client wants to use; empty when it names none.
    pub database: &'a [u8],
    /// The method of `auth_response`; `None` of a client that knows no names, which means mysql_native_password.
    pub plugin: Option<&'a [u8]>,
    /// Who the program is.
    pub attributes: Attributes<'a>,
}

impl<'a> Login<'a> {
    /// Reads a login. What stands behind the known fields is ignored, as servers do.
    pub fn parse(payload: &'a [u8]) -> Result<Self, MalformedPacket> {
        let mut cursor = Cursor::new(payload);
        let capabilities = cursor.u32("the capabilities")?;
        if capabilities & capability::PROTOCOL_41 == 0 {
            return Err(MalformedPacket { field: "protocol 4.1", at: 0 });
        }
        cursor.u32("the longest packet")?;
        let character_set = cursor.u8("the character set")?;
        cursor.bytes(19, "the reserved bytes")?;
        let extended = cursor.u32("the reserved bytes")?;
        let mariadb_capabilities = if capabilities & capability::MYSQL == 0 { extended } else { 0 };
        let user = cursor.null_terminated("the user")?;
        let auth_response = auth_response(&mut cursor, capabilities)?;
        let database = if capabilities & capability::CONNECT_WITH_DB != 0 {
            cursor.null_terminated("the database")?
        } else {
            &[]
        };
        let (plugin, attributes) = plugin_and_attributes(&mut cursor, capabilities)?;
        Ok(Self {
            capabilities,
            mariadb_capabilities,
            character_set,
            user,
            auth_response,
            database,
            plugin,
            attributes,
        })
    }
}

/// COM_CHANGE_USER: the session of another user, or a fresh one of the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeUser<'a> {
    /// The account, as the client writes it.
    pub user: &'a [u8],
    /// The answer to a challenge that the client has seen last.
    pub auth_response: &'a [u8],
    /// The database that the client wants to use; empty when it names none.
    pub database: &'a [u8],
    /// Number of a collation; `None` where the client leaves it out.
    pub character_set: Option<u16>,
    /// The method of `auth_response`; `None` means mysql_native_password.
    pub plugin: Option<&'a [u8]>,
    /// Who the program is.
    pub attributes: Attributes<'a>,
}

impl<'a> ChangeUser<'a> {
    /// Reads what stands behind the command's byte, in a session with these `capabilities`.
    pub(super) fn parse(cursor: &mut Cursor<'a>, capabilities: u32) -> Result<Self, MalformedPacket> {
        let user = cursor.null_terminated("the user")?;
        // Here the length takes one byte whatever the capabilities say of length-encoded integers.
        let auth_response = auth_response(cursor, capabilities & !capability::PLUGIN_AUTH_LENENC_DATA)?;
        let database = cursor.null_terminated("the database")?;
        let mut changed = Self {
            user,
            auth_response,
            database,
            character_set: None,
            plugin: None,
            attributes: Attributes::default(),
        };
        if !cursor.is_empty() {
            changed.character_set = Some(cursor.u16("the character set")?);
            (changed.plugin, changed.attributes) = plugin_and_attributes(cursor, capabilities)?;
        }
        Ok(changed)
    }
}

fn auth_response<'a>(cursor: &mut Cursor<'a>, capabilities: u32) -> Result<&'a [u8], MalformedPacket> {
    const FIELD: &str = "the answer to the challenge";
    if capabilities & capability::PLUGIN_AUTH_LENENC_DATA != 0 {
        let length = cursor.length_encoded_integer(FIELD)?;
        cursor.bytes(length, FIELD)
    } else if capabilities & capability::SECURE_CONNECTION != 0 {
        let length = cursor.u8(FIELD)?;
        cursor.bytes(length.into(), FIELD)
    } else {
        cursor.null_terminated(FIELD)
    }
}

/// The last two fields. Some clients set the bits and leave the fields out; servers let them.
fn plugin_and_attributes<'a>(
    cursor: &mut Cursor<'a>,
    capabilities: u32,
) -> Result<(Option<&'a [u8]>, Attributes<'a>), MalformedPacket> {
    let mut plugin = None;
    let mut attributes = Attributes::default();
    if capabilities & capability::PLUGIN_AUTH != 0 && !cursor.is_empty() {
        plugin = Some(cursor.null_terminated_or_rest());
    }
    if capabilities & capability::CONNECT_ATTRS != 0 && !cursor.is_empty() {
        let length = cursor.length_encoded_integer("the length of the attributes")?;
        attributes = Attributes::parse(cursor.bytes(length, "the attributes")?)?;
    }
    Ok((plugin, attributes))
}

/// Connection attributes, such as `_client_name` and `program_name`. Nothing is copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// Length-encoded names and values by turns; all of them fit.
    encoded: &'a [u8],
}

impl<'a> Attributes<'a> {
    fn parse(encoded: &'a [u8]) -> Result<Self, MalformedPacket> {
        let mut cursor = Cursor::new(encoded);
        while !cursor.is_empty() {
            pair(&mut cursor)?;
        }
        Ok(Self { encoded })
    }

    /// Names and values, in the client's order.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let mut cursor = Cursor::new(self.encoded);
        std::iter::from_fn(move || if cursor.is_empty() { None } else { pair(&mut cursor).ok() })
    }

    /// The value of the first attribute of that name.
    pub fn get(self, name: &str) -> Option<&'a [u8]> {
        self.iter().find(|(found, _)| *found == name.as_bytes()).map(|(_, value)| value)
    }
}

fn pair<'a>(cursor: &mut Cursor<'a>) -> Result<(&'a [u8], &'a [u8]), MalformedPacket> {
    let mut text = |field| {
        let length = cursor.length_encoded_integer(field)?;
        cursor.bytes(length, field)
    };
    Ok((text("the name of an attribute")?, text("the value of an attribute")?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CAPABILITIES: u32 = capability::MYSQL
        | capability::CONNECT_WITH_DB
        | capability::PROTOCOL_41
        | capability::SECURE_CONNECTION
        | capability::PLUGIN_AUTH
        | capability::CONNECT_ATTRS
        | capability::PLUGIN_AUTH_LENENC_DATA;

    fn fixed(capabilities: u32) -> Vec<u8> {
        let mut message = capabilities.to_le_bytes().to_vec();
        message.extend_from_slice(&[0, 0, 0, 1, 255]);
        message.extend_from_slice(&[0; 19]);
        message.extend_from_slice(&[0x1D, 0, 0, 0]);
        message
    }

    fn login(message: &[u8]) -> Login<'_> {
        match FirstMessage::parse(message).unwrap() {
            FirstMessage::Login(login) => login,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_login_with_everything() {
        let mut message = fixed(CAPABILITIES);
        message.extend_from_slice(b"repl\0\x04abcddb\0caching_sha2_password\0");
        message.extend_from_slice(b"\x16\x0C_client_name\x08libmysql");
        let login = login(&message);
        assert_eq!(
            (login.user, login.auth_response, login.database),
            (&b"repl"[..], &b"abcd"[..], &b"db"[..])
        );
        assert_eq!((login.plugin, login.character_set), (Some(&b"caching_sha2_password"[..]), 255));
        assert_eq!(login.mariadb_capabilities, 0);
        assert_eq!(login.attributes.get("_client_name"), Some(&b"libmysql"[..]));
        assert_eq!(login.attributes.get("program_name"), None);
    }

    #[test]
    fn the_length_of_the_answer_follows_the_capabilities() {
        for (drop, answer) in [
            (0, &b"\xFC\x03\x00a\0c"[..]),
            (capability::PLUGIN_AUTH_LENENC_DATA, b"\x03a\0c"),
            (capability::PLUGIN_AUTH_LENENC_DATA | capability::SECURE_CONNECTION, b"abc\0"),
        ] {
            let capabilities = CAPABILITIES & !drop & !capability::CONNECT_ATTRS;
            let message = [&fixed(capabilities)[..], b"u\0", answer, b"\0", b"p\0"].concat();
            let login = login(&message);
            assert_eq!(
                (login.auth_response.len(), login.database.len(), login.plugin),
                (3, 0, Some(&b"p"[..]))
            );
        }
    }

    #[test]
    fn mariadb_sends_capabilities_of_its_own() {
        let message = [&fixed(CAPABILITIES & !capability::MYSQL)[..], b"u\0\0\0"].concat();
        let login = login(&message);
        assert_eq!((login.mariadb_capabilities, login.plugin), (0x1D, None));
    }

    #[test]
    fn a_request_for_tls_is_told_from_a_login_by_its_length() {
        let request = fixed(CAPABILITIES | capability::SSL);
        assert_eq!(FirstMessage::parse(&request), Ok(FirstMessage::TlsRequest));
        assert!(FirstMessage::parse(&fixed(CAPABILITIES)).is_err());
        let message = [&request[..], b"u\0\0\0"].concat();
        assert_eq!(login(&message).user, b"u");
    }

    #[test]
    fn a_client_of_before_4_1_is_refused() {
        let error = FirstMessage::parse(b"\x85\x24\0\0\0old\0GDSCQYR_").unwrap_err();
        assert!(error.to_string().contains("4.1"), "{error}");
    }

    #[test]
    fn lengths_beyond_the_packet_are_refused() {
        let message = [&fixed(CAPABILITIES)[..], b"u\0\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"].concat();
        assert!(FirstMessage::parse(&message).is_err());
        for attributes in [&b"\xFEa"[..], b"\x03\x01a\x02", b"\x02\x05a", b"\x02\xFB\xFB"] {
            let message = [&fixed(CAPABILITIES)[..], b"u\0\0\0p\0", attributes].concat();
            assert!(FirstMessage::parse(&message).is_err(), "{attributes:?}");
        }
    }

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(
            tail in proptest::collection::vec(any::<u8>(), 0..120),
            capabilities: u32,
            cut in 0_usize..150,
        ) {
            let mut message = fixed(capabilities | capability::PROTOCOL_41);
            message.extend_from_slice(&tail);
            message.truncate(cut);
            if let Ok(FirstMessage::Login(login)) = FirstMessage::parse(&message) {
                prop_assert!(login.attributes.iter().count() <= tail.len());
            }
            let _ = FirstMessage::parse(&tail);
            let _ = ChangeUser::parse(&mut Cursor::new(&tail), capabilities);
        }
    }
}
