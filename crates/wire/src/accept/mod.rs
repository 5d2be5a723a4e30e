//! The server's side of a connection, from the socket to a client that was let in.
//!
//! ```text
//! greeting ──► request for TLS? handshake ──► login ──► authentication ──► Accepted: commands in, framed answers out
//! ```
//!
//! | file | what it is |
//! |---|---|
//! | `mod.rs` | the way from a socket to a session |
//! | `authenticate.rs` | the authentication exchange |
//! | `verifiers.rs`, `decoy.rs` | what is kept of a password; who stands in for an account that does not exist |
//! | `session.rs` | a client that was let in |
//! | `tls.rs`, `made_certificate.rs` | the server's certificate; one that is made where none is configured |
//! | `error.rs` | errors that say what the client did |
//!
//! Nothing leaves before the login but the greeting, requests to authenticate otherwise, and errors.

mod authenticate;
mod decoy;
mod error;
mod made_certificate;
mod session;
mod tls;
mod verifiers;

pub use authenticate::Accounts;
pub use error::ClientError;
pub use made_certificate::{Day, MadeCertificate};
pub use session::{Accepted, Client, Closer, Reader};
pub use tls::ServerTls;
pub use verifiers::{BadVerifier, Method, Methods, Verifiers};

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use codec::ServerKind;
use codec::packet::reply::{self, STATUS_AUTOCOMMIT};
use codec::packet::{CHALLENGE_BYTES, FirstMessage, Greeting, LOGIN_BYTES_MAX, Login, OkPacket, capability};

use self::authenticate::{Admitted, Challenge, authenticate, is_mariadb};
use self::error::AWAITS_LOGIN;
use self::session::refuse;
use self::verifiers::{hex, sha256};
use crate::byte_stream::ByteStream;
use crate::channel::Channel;
use crate::connection::dial;
use crate::transport::{Deadline, SharedTls, TlsStream, Transport};

/// What is offered to every client. Left out on purpose: result sets without EOF packets, query attributes, session
/// tracking, local files and compression, so that no message can take those forms.
const CAPABILITIES: u32 = capability::FOUND_ROWS
    | capability::LONG_FLAG
    | capability::CONNECT_WITH_DB
    | capability::IGNORE_SPACE
    | capability::PROTOCOL_41
    | capability::INTERACTIVE
    | capability::TRANSACTIONS
    | capability::SECURE_CONNECTION
    | capability::MULTI_STATEMENTS
    | capability::MULTI_RESULTS
    | capability::PLUGIN_AUTH
    | capability::CONNECT_ATTRS
    | capability::PLUGIN_AUTH_LENENC_DATA;

/// Who we are to a client, and what we ask of it.
#[derive(Debug, Clone)]
pub struct AcceptOptions {
    /// The server's version, as SELECT VERSION() says it. Clients decide by it.
    pub version: String,
    /// What clients are to take us for.
    pub kind: ServerKind,
    /// Number of this connection, as SHOW PROCESSLIST shows it. Not 0.
    pub connection_id: u32,
    /// The method that the greeting names: [`Method::CachingSha2`] as MySQL 8.0 and later, [`Method::Native`] as everybody
    /// else. [`Method::Ed25519`] is for no greeting; [`Method::Native`] stands there then.
    pub default_method: Method,
    /// The databases that a login may name, in lower case; another one is refused as unknown.
    pub databases: &'static [&'static str],
    /// The server's certificate; without it no TLS is offered.
    pub tls: Option<ServerTls>,
    /// Who does not encrypt is refused before anything else is looked at.
    pub require_tls: bool,
    /// Time for everything up to the end of the authentication.
    pub login_timeout: Duration,
    /// Time that the client has to take what is sent to it, for each [`Accepted::send`].
    pub write_timeout: Duration,
}

/// Greets the client behind `socket`, and lets it in if it can show that it has the password of one of the accounts. Who is
/// refused has been told why.
///
/// # Errors
/// [`ClientError`] says what the client did.
pub fn accept(
    socket: TcpStream,
    options: &AcceptOptions,
    accounts: &dyn Accounts,
) -> Result<Accepted, ClientError> {
    let address = dial::set_up(&socket).and_then(|()| socket.peer_addr());
    let address =
        address.map_err(|reason| ClientError::Io { during: "setting up the connection", reason })?;
    begin(Transport::Plain(socket), address, options, accounts)
}

/// As [`accept`], over a stream that stands for a connection from `address`; without TLS.
///
/// # Errors
/// As [`accept`].
pub fn accept_over(
    stream: Box<dyn ByteStream>,
    address: SocketAddr,
    options: &AcceptOptions,
    accounts: &dyn Accounts,
) -> Result<Accepted, ClientError> {
    let options = AcceptOptions { tls: None, ..options.clone() };
    begin(Transport::Other(stream), address, &options, accounts)
}

fn begin(
    transport: Transport,
    address: SocketAddr,
    options: &AcceptOptions,
    accounts: &dyn Accounts,
) -> Result<Accepted, ClientError> {
    let host = address.ip().to_canonical().to_string();
    let mut channel = Channel::new(transport, Deadline::after(options.login_timeout));
    let greeted = told(greet(&mut channel, options), &mut channel, &host)?;
    let mut tls_version = None;
    if let First::TlsRequest = greeted.first {
        let tls = options.tls.as_ref().ok_or_else(|| bad_handshake("TLS was not offered"));
        let tls = told(tls, &mut channel, &host)?;
        let session = tls.session().map_err(|error| ClientError::Tls(error.to_string()))?;
        (channel, tls_version) = channel.start_tls(session.into(), share)?;
    }
    let let_in = let_in(&mut channel, greeted, address.ip().to_canonical(), options, accounts);
    let (client, auth_plugin) = told(let_in, &mut channel, &host)?;
    Ok(Accepted {
        channel,
        client,
        address: SocketAddr::new(address.ip().to_canonical(), address.port()),
        auth_plugin,
        tls_version,
        write_timeout: options.write_timeout,
        is_read_elsewhere: false,
    })
}

/// One thread may read while another one writes.
fn share(stream: TlsStream) -> std::io::Result<Transport> {
    SharedTls::new(stream).map(Transport::SharedTls)
}

/// Tells the client what went wrong, if something did.
fn told<T>(result: Result<T, ClientError>, channel: &mut Channel, host: &str) -> Result<T, ClientError> {
    result.inspect_err(|error| refuse(channel, error, host))
}

/// A client that has answered the greeting.
struct Greeted {
    challenge: Challenge,
    first: First,
}

/// The first message, kept whole.
enum First {
    TlsRequest,
    Login(Vec<u8>),
}

fn greet(channel: &mut Channel, options: &AcceptOptions) -> Result<Greeted, ClientError> {
    let method = match options.default_method {
        Method::Ed25519 => Method::Native,
        other => other,
    };
    let challenge = Challenge::new(method)?;
    let mysql = if options.kind == ServerKind::MySql { capability::MYSQL } else { 0 };
    let tls = if options.tls.is_some() { capability::SSL } else { 0 };
    let bytes =
        challenge.bytes.first_chunk().ok_or_else(|| bad_handshake("a challenge of another length"))?;
    let greeting = Greeting {
        version: &options.version,
        connection_id: options.connection_id,
        capabilities: CAPABILITIES | mysql | tls,
        challenge: bytes,
        plugin: method.name(),
    };
    channel.send(&greeting.message(), "greeting")?;
    Ok(Greeted { first: receive_first(channel)?, challenge })
}

fn receive_first(channel: &mut Channel) -> Result<First, ClientError> {
    let message = channel.receive_up_to(LOGIN_BYTES_MAX, AWAITS_LOGIN)?;
    match FirstMessage::parse(&message) {
        Ok(FirstMessage::TlsRequest) => Ok(First::TlsRequest),
        Ok(FirstMessage::Login(_)) => Ok(First::Login(message)),
        Err(error) => Err(bad_handshake(error)),
    }
}

fn let_in(
    channel: &mut Channel,
    greeted: Greeted,
    from: IpAddr,
    options: &AcceptOptions,
    accounts: &dyn Accounts,
) -> Result<(Client, &'static str), ClientError> {
    let first = match greeted.first {
        First::TlsRequest => receive_first(channel)?,
        login => login,
    };
    let First::Login(message) = first else { return Err(bad_handshake("TLS is asked for twice")) };
    let login = Login::parse(&message).map_err(bad_handshake)?;
    if options.require_tls && !channel.is_encrypted() {
        return Err(ClientError::NotEncrypted);
    }
    let admitted = authenticate(channel, &login, from, &greeted.challenge, accounts)?;
    // Only to who has the password, as servers do.
    let client = Client::new(&login);
    if let Some(name) = client.database.as_deref()
        && !options.databases.contains(&name.to_ascii_lowercase().as_str())
    {
        return Err(ClientError::UnknownDatabase { name: name.to_owned() });
    }
    let mut bytes = Vec::new();
    let ok = OkPacket { affected_rows: 0, last_insert_id: 0, status: STATUS_AUTOCOMMIT, warnings: 0 };
    let info = signed_certificate(channel, options, &login, &admitted);
    reply::ok_with_info(&mut bytes, channel.sequence(), &ok, info.as_bytes());
    channel.send_framed(&bytes, "letting in")?;
    Ok((client, admitted.challenge.method.name()))
}

/// What shows a client of MariaDB 11.4 and later that our certificate is the one of who knows the password's hash, so that
/// nobody has to sign it (`run_plugin_auth` in plugins/auth/my_auth.c of MariaDB Connector/C); empty for others.
fn signed_certificate(
    channel: &Channel,
    options: &AcceptOptions,
    login: &Login<'_>,
    admitted: &Admitted,
) -> String {
    let Some(tls) = options.tls.as_ref().filter(|_| channel.is_encrypted() && is_mariadb(login)) else {
        return String::new();
    };
    let Some(shared) = admitted.verifiers.shared(admitted.challenge.method) else { return String::new() };
    let scramble = &admitted.challenge.bytes[..CHALLENGE_BYTES];
    format!("\u{1}{}", hex(&sha256(&[shared, scramble, tls.fingerprint()].concat())))
}

fn bad_handshake(what: impl ToString) -> ClientError {
    ClientError::BadHandshake { what: what.to_string() }
}

#[cfg(test)]
mod tests;
