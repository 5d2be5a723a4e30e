//! The authentication exchange, driven by mysql_common's state machines.
//!
//! Sources: MySQL Source Code Documentation, "Connection Phase"; MariaDB Knowledge Base, "Connection" and
//! "Authentication Plugin - PARSEC".

use std::collections::HashMap;

use codec::ServerKind;
use codec::packet::{self, AuthSwitchRequest, ErrPacket, Handshake, OkPacket, printable};
use mysql_common::auth::plugins::{AuthProc, ChallengeResponsePlugin, Context, Response};
use mysql_common::constants::CapabilityFlags;
use mysql_common::packets::{AuthPlugin, HandshakeResponse, SslRequest};
use mysql_common::proto::MySerialize;

use super::options::ConnectOptions;
use crate::channel::Channel;
use crate::connection::dial::is_local;
use crate::error::WireError;
use crate::tls::rsa_key;

const DURING: &str = "authenticating";

/// The most messages that a server may send before it decides. The longest ordinary exchange takes five.
const ROUNDS_MAX: usize = 16;

/// The longest name of an authentication method shown, in bytes.
const PLUGIN_NAME_BYTES_MAX: usize = 64;

/// The longest message that we say we accept, in bytes; servers do not make use of it.
const MAX_PACKET_BYTES: u32 = 1 << 30;

/// utf8mb4_general_ci, which every server since 5.5.3 knows.
const COLLATION: u8 = 45;

/// What we ask of the server. Left out on purpose: result sets without EOF packets, multiple statements, local files,
/// session tracking and compression, so that no answer can take those forms.
fn capabilities(tls: bool) -> CapabilityFlags {
    let base = CapabilityFlags::CLIENT_LONG_PASSWORD
        | CapabilityFlags::CLIENT_LONG_FLAG
        | CapabilityFlags::CLIENT_PROTOCOL_41
        | CapabilityFlags::CLIENT_TRANSACTIONS
        | CapabilityFlags::CLIENT_SECURE_CONNECTION
        | CapabilityFlags::CLIENT_PLUGIN_AUTH
        | CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA
        | CapabilityFlags::CLIENT_CONNECT_ATTRS;
    if tls { base | CapabilityFlags::CLIENT_SSL } else { base }
}

/// Asks the server to begin a TLS handshake.
pub(crate) fn request_tls(channel: &mut Channel, handshake: &Handshake) -> Result<(), WireError> {
    let mut message = Vec::new();
    let offered = CapabilityFlags::from_bits_truncate(handshake.capabilities);
    SslRequest::new(capabilities(true) & offered, MAX_PACKET_BYTES, COLLATION).serialize(&mut message);
    Ok(channel.send(&message, "asking for TLS")?)
}

/// Whether the server can encrypt.
pub(crate) fn offers_tls(handshake: &Handshake) -> bool {
    CapabilityFlags::from_bits_truncate(handshake.capabilities).contains(CapabilityFlags::CLIENT_SSL)
}

/// Authenticates; gives the name of the method that the server accepted.
pub(crate) fn authenticate(
    channel: &mut Channel,
    options: &ConnectOptions,
    handshake: &Handshake,
) -> Result<String, WireError> {
    let tls = channel.is_encrypted();
    let offered = CapabilityFlags::from_bits_truncate(handshake.capabilities);
    let capabilities = capabilities(tls) & offered;
    let required = CapabilityFlags::CLIENT_PROTOCOL_41 | CapabilityFlags::CLIENT_PLUGIN_AUTH;
    if !capabilities.contains(required) {
        return Err(WireError::protocol(DURING, "the server is older than MySQL 5.5.7 or MariaDB 5.5"));
    }

    let mut method = first_method(handshake, options, tls)?;
    let answer = method.run(&handshake.challenge)?;
    let message = handshake_response(&options.user, &answer.unwrap_or_default(), &method, capabilities);
    channel.send(&message, DURING)?;

    for _ in 0..ROUNDS_MAX {
        let message = channel.receive(DURING)?;
        let answer = match message.first() {
            Some(&packet::OK) => {
                OkPacket::parse(&message)?;
                return Ok(method.name());
            }
            Some(&packet::ERR) => return Err(ErrPacket::parse(&message)?.into()),
            Some(&AuthSwitchRequest::MARKER) => {
                let request = parse_switch(&message)?;
                method = Method::new(request.plugin, options, tls)?;
                method.run(request.challenge)?
            }
            // It escapes bytes that would mean something else.
            Some(&packet::AUTH_MORE_DATA) => method.run(&message[1..])?,
            Some(_) => method.run(&message)?,
            None => return Err(WireError::protocol(DURING, "an empty message")),
        };
        if let Some(answer) = answer {
            channel.send(&answer, DURING)?;
        }
    }
    Err(WireError::protocol(DURING, format!("the server has not decided after {ROUNDS_MAX} messages")))
}

fn parse_switch(message: &[u8]) -> Result<AuthSwitchRequest<'_>, WireError> {
    if message.len() == 1 {
        return Err(WireError::UnsupportedAuthPlugin("mysql_old_password".into()));
    }
    AuthSwitchRequest::parse(message).map_err(|error| WireError::protocol(DURING, error))
}

/// The method to begin with: the server's default if we know it, else its family's usual one. The server asks for
/// another when the account needs it.
fn first_method(handshake: &Handshake, options: &ConnectOptions, tls: bool) -> Result<Method, WireError> {
    let usable =
        handshake.challenge.len() == mysql_common::auth::plugins::mysql_native_password::SCRAMBLE_LENGTH;
    if !usable {
        return Err(WireError::protocol(DURING, "the challenge has not 20 bytes"));
    }
    match AuthPlugin::from_bytes(&handshake.auth_plugin) {
        // These work with the greeting's challenge of 20 bytes.
        AuthPlugin::MysqlNativePassword | AuthPlugin::CachingSha2Password | AuthPlugin::Sha256Password => {
            Method::new(&handshake.auth_plugin, options, tls)
        }
        _ => match handshake.server_kind() {
            ServerKind::MySql => Method::new(b"caching_sha2_password", options, tls),
            ServerKind::MariaDb => Method::new(b"mysql_native_password", options, tls),
        },
    }
}

fn handshake_response(user: &str, answer: &[u8], method: &Method, capabilities: CapabilityFlags) -> Vec<u8> {
    let attributes = HashMap::from([
        ("_client_name".to_owned(), "binlogd".to_owned()),
        ("_client_version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("_pid".to_owned(), std::process::id().to_string()),
        ("program_name".to_owned(), "binlogd".to_owned()),
    ]);
    let attributes = capabilities.contains(CapabilityFlags::CLIENT_CONNECT_ATTRS).then_some(attributes);
    let mut message = Vec::new();
    HandshakeResponse::new(
        Some(answer),
        (5, 5, 3), // Only chooses the collation: utf8mb4.
        Some(user.as_bytes()),
        None::<&[u8]>,
        Some(method.plugin.borrow()),
        capabilities,
        attributes,
        MAX_PACKET_BYTES,
    )
    .serialize(&mut message);
    message
}

/// One authentication method on its way.
struct Method {
    plugin: AuthPlugin<'static>,
    procedure: AuthProc,
    password: String,
    tls: bool,
    /// A socket of this machine, which nobody listens in on.
    is_local: bool,
    /// The method's first challenge.
    challenge: Vec<u8>,
    /// Challenges answered so far.
    answered: usize,
    /// The method has said all it has to say.
    finished: bool,
}

impl Method {
    /// Prepares a method, if we support it.
    ///
    /// mysql_old_password is left out because it is broken, mysql_clear_password because it gives the password to
    /// whoever asks for it.
    fn new(name: &[u8], options: &ConnectOptions, tls: bool) -> Result<Self, WireError> {
        let unsupported = || WireError::UnsupportedAuthPlugin(printable(name, PLUGIN_NAME_BYTES_MAX));
        let plugin = AuthPlugin::from_bytes(name).into_owned();
        if matches!(plugin, AuthPlugin::MysqlOldPassword | AuthPlugin::MysqlClearPassword) {
            return Err(unsupported());
        }
        let procedure = plugin.init().map_err(|_| unsupported())?;
        Ok(Self {
            plugin,
            procedure,
            password: options.password.expose().to_owned(),
            tls,
            is_local: is_local(&options.host),
            challenge: Vec::new(),
            answered: 0,
            finished: false,
        })
    }

    fn name(&self) -> String {
        printable(self.plugin.as_bytes(), PLUGIN_NAME_BYTES_MAX)
    }

    /// Answers a challenge; `None` when there is nothing to send.
    fn run(&mut self, challenge: &[u8]) -> Result<Option<Vec<u8>>, WireError> {
        let name = self.name();
        let fault = |what: &str| WireError::protocol(DURING, format!("{name}: {what}"));
        if self.finished {
            return Err(fault("the server goes on after the end of the exchange"));
        }
        if self.answered == 0 {
            self.challenge = challenge.to_vec();
        } else if self.takes_rsa_key() && challenge.len() > 1 {
            rsa_key::check(challenge, self.password.len() + 1).map_err(fault)?;
        }
        let context = Circumstances {
            password: self.password.as_bytes(),
            challenge: &self.challenge,
            tls: self.tls,
            is_local: self.is_local,
        };
        let response = self.procedure.run(&context, challenge).map_err(|error| fault(&error.to_string()))?;
        self.answered += 1;
        Ok(match response {
            Response::Next { packet } => packet,
            Response::Last { packet } => {
                self.finished = true;
                packet
            }
        })
    }

    fn takes_rsa_key(&self) -> bool {
        matches!(self.plugin, AuthPlugin::CachingSha2Password | AuthPlugin::Sha256Password)
    }
}

/// What mysql_common's procedures want to know.
struct Circumstances<'a> {
    password: &'a [u8],
    challenge: &'a [u8],
    tls: bool,
    is_local: bool,
}

impl Context for &Circumstances<'_> {
    fn pass(&self) -> &[u8] {
        self.password
    }

    fn is_ipc_transport(&self) -> bool {
        self.is_local
    }

    fn is_tls_transport(&self) -> bool {
        self.tls
    }

    fn scramble(&self) -> &[u8] {
        self.challenge
    }

    fn server_key_pem(&self) -> Option<&[u8]> {
        None
    }
}
