//! An authenticated session with a server.

pub(crate) mod authenticate;
pub(crate) mod denied;
pub(crate) mod dial;
pub(crate) mod dump;
pub(crate) mod options;

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use codec::ServerKind;
use codec::packet::{self, ErrPacket, Handshake, OkPacket, QueryResponse, QueryResponseReader, ResultSet};

use super::byte_stream::ByteStream;
use super::channel::Channel;
use super::error::{TlsError, WireError};
use super::tls::{self, TlsMode};
use super::transport::{Deadline, Transport};
use crate::connection::denied::GREETING;
use crate::connection::dial::dial;
use crate::connection::dump::DumpStream;
use crate::connection::options::ConnectOptions;

/// An authenticated session, ready for commands.
///
/// After an error other than [`WireError::Server`] and [`WireError::AccessDenied`] the session is in an unknown state
/// and must be dropped.
pub struct Connection {
    channel: Channel,
    handshake: Handshake,
    auth_plugin: String,
    tls_version: Option<&'static str>,
    /// For each command and its whole answer.
    timeout: Duration,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("server_version", &self.handshake.server_version)
            .field("connection_id", &self.handshake.connection_id)
            .field("auth_plugin", &self.auth_plugin)
            .field("tls_version", &self.tls_version)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Connects and authenticates. Each later command may take `connect_timeout` too, with its whole answer, until
    /// [`set_timeout`](Self::set_timeout) says otherwise.
    ///
    /// With [`TlsMode::Preferred`] a server that offers TLS, but none that we can speak, is connected to once more
    /// without it.
    pub fn connect(options: &ConnectOptions) -> Result<Self, WireError> {
        Self::connect_with(options, &mut |_| {})
    }

    /// As [`connect`](Self::connect). Each socket is shown to `on_socket` as soon as it is connected, before anything is
    /// read from it: who shuts it down from another thread ends the wait for a server that says nothing.
    pub(crate) fn connect_with(
        options: &ConnectOptions,
        on_socket: &mut dyn FnMut(BorrowedFd<'_>),
    ) -> Result<Self, WireError> {
        let deadline = Deadline::after(options.connect_timeout);
        match Self::open(options, options.tls.mode, deadline, on_socket) {
            Err(WireError::Tls(TlsError::Refused(reason))) if options.tls.mode == TlsMode::Preferred => {
                tracing::warn!(
                    host = options.host,
                    port = options.port,
                    reason,
                    "no TLS with this server; going on in clear"
                );
                Self::open(options, TlsMode::Disabled, deadline, on_socket)
            }
            other => other,
        }
    }

    fn open(
        options: &ConnectOptions,
        mode: TlsMode,
        deadline: Deadline,
        on_socket: &mut dyn FnMut(BorrowedFd<'_>),
    ) -> Result<Self, WireError> {
        let socket = dial(&options.host, options.port, deadline)?;
        on_socket(socket.as_fd());
        Self::begin(Transport::Plain(socket), options, mode, deadline)
    }

    /// Authenticates in clear over a stream that stands for a connection to the server.
    ///
    /// # Errors
    /// As [`Connection::connect`].
    pub fn over(stream: Box<dyn ByteStream>, options: &ConnectOptions) -> Result<Self, WireError> {
        let deadline = Deadline::after(options.connect_timeout);
        Self::begin(Transport::Other(stream), options, TlsMode::Disabled, deadline)
    }

    fn begin(
        transport: Transport,
        options: &ConnectOptions,
        mode: TlsMode,
        deadline: Deadline,
    ) -> Result<Self, WireError> {
        let mut channel = Channel::new(transport, deadline);
        let handshake = receive_handshake(&mut channel)?;
        let (mut channel, tls_version) = match (mode, authenticate::offers_tls(&handshake)) {
            (TlsMode::Disabled, _) | (TlsMode::Preferred, false) => (channel, None),
            (_, true) => encrypt(channel, options, &handshake)?,
            (_, false) => return Err(TlsError::NotOffered.into()),
        };
        let auth_plugin = authenticate::authenticate(&mut channel, options, &handshake)?;
        Ok(Self { channel, handshake, auth_plugin, tls_version, timeout: options.connect_timeout })
    }

    /// For instance `9.7.0` or `11.8.3-MariaDB-log`.
    pub fn server_version(&self) -> &str {
        &self.handshake.server_version
    }

    /// The kind of the server, by its greeting.
    pub fn server_kind(&self) -> ServerKind {
        self.handshake.server_kind()
    }

    /// The number that SHOW PROCESSLIST shows for this session.
    pub fn connection_id(&self) -> u32 {
        self.handshake.connection_id
    }

    /// `TLSv1.2` or `TLSv1.3`; `None` when the session is not encrypted.
    pub fn tls_version(&self) -> Option<&str> {
        self.tls_version
    }

    /// When the server's certificate ends to be valid, in seconds since 1970, whether or not it was verified; `None` when the
    /// session is not encrypted.
    pub fn certificate_expires(&self) -> Option<i64> {
        self.channel.transport.certificate_expires()
    }

    /// The authentication method that the server accepted, for instance `caching_sha2_password`.
    pub fn auth_plugin(&self) -> &str {
        &self.auth_plugin
    }

    /// Sets how long each command may take with its whole answer.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Runs one statement and collects its rows; a statement without rows gives an empty set.
    ///
    /// Limits: [`packet::RESPONSE_BYTES_MAX`] a row, [`packet::RESULT_SET_BYTES_MAX`] and the timeout altogether.
    pub fn query(&mut self, sql: &str) -> Result<ResultSet, WireError> {
        self.query_bytes(sql.as_bytes())
    }

    /// As [`query`](Self::query), for a statement in whatever character set the session has.
    pub fn query_bytes(&mut self, sql: &[u8]) -> Result<ResultSet, WireError> {
        const DURING: &str = "running a query";
        self.channel.send_command(&packet::command::query(sql), DURING, self.timeout)?;
        let mut reader = QueryResponseReader::new();
        loop {
            let message = self.channel.receive(DURING)?;
            match reader.push(&message)? {
                None => {}
                Some(QueryResponse::Ok(_)) => return Ok(ResultSet::default()),
                Some(QueryResponse::Err(error)) => return Err(error.into()),
                Some(QueryResponse::Rows(rows)) => return Ok(rows),
            }
        }
    }

    /// Lets [`query_several`](Self::query_several) be used from now on.
    pub fn allow_several_statements(&mut self) -> Result<(), WireError> {
        const DURING: &str = "allowing several statements in one packet";
        self.channel.send_command(&packet::command::allow_several_statements(), DURING, self.timeout)?;
        let message = self.channel.receive(DURING)?;
        if packet::is_err(&message) {
            return Err(ErrPacket::parse(&message)?.into());
        }
        if packet::is_eof(&message) { Ok(()) } else { Err(WireError::protocol(DURING, "no EOF packet")) }
    }

    /// Runs statements that are parted by semicolons and sent in one packet. The server runs one after the other and stops at
    /// the first that fails: what stands behind it is never run. `done` is told after each that succeeded; rows are dropped.
    ///
    /// # Errors
    /// Of the first statement that failed, which is the one after those that `done` was told of.
    pub fn query_several(
        &mut self,
        statements: &[u8],
        count: usize,
        mut done: impl FnMut(),
    ) -> Result<(), WireError> {
        const DURING: &str = "running several statements";
        self.channel.send_command(&packet::command::query(statements), DURING, self.timeout)?;
        for left in (0..count).rev() {
            let mut reader = QueryResponseReader::new();
            let response = loop {
                if let Some(response) = reader.push(&self.channel.receive(DURING)?)? {
                    break response;
                }
            };
            if let QueryResponse::Err(error) = response {
                return Err(error.into());
            }
            // Before the last one the servers' word does not count: they forget it in the answer to a BINLOG of rows.
            if left == 0 && reader.more_follow() {
                return Err(WireError::protocol(DURING, format!("the server has run more than {count}")));
            }
            done();
        }
        Ok(())
    }

    /// Sends a command whose only answer is OK or an error, such as the registration of a replica.
    pub fn command(&mut self, payload: &[u8]) -> Result<(), WireError> {
        const DURING: &str = "sending a command";
        self.channel.send_command(payload, DURING, self.timeout)?;
        let message = self.channel.receive(DURING)?;
        if packet::is_err(&message) {
            return Err(ErrPacket::parse(&message)?.into());
        }
        OkPacket::parse(&message)?;
        Ok(())
    }

    /// Ends the session in good order, so that the server does not count an aborted connection. Dropping it ends it too.
    pub fn close(mut self) {
        // The session is over either way.
        let _ = self.channel.send_command(&packet::command::quit(), "closing the session", self.timeout);
    }

    /// Sends a binlog dump command and hands over the stream of its answer, framing and all.
    ///
    /// The first packet of the answer carries sequence number 1. An error of the server comes as an ERR packet in it.
    pub fn start_dump(mut self, payload: &[u8]) -> Result<DumpStream, WireError> {
        self.channel.send_command(payload, "asking for the binlog", self.timeout)?;
        let (transport, leftover) = self.channel.into_parts();
        Ok(DumpStream::new(transport, leftover))
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.transport.as_fd()
    }
}

fn receive_handshake(channel: &mut Channel) -> Result<Handshake, WireError> {
    const DURING: &str = GREETING;
    let message = channel.receive(DURING)?;
    if packet::is_err(&message) {
        return Err(ErrPacket::parse(&message)?.into());
    }
    Handshake::parse(&message).map_err(|error| WireError::protocol(DURING, error))
}

/// Switches to TLS; gives the version that was agreed on.
fn encrypt(
    mut channel: Channel,
    options: &ConnectOptions,
    handshake: &Handshake,
) -> Result<(Channel, Option<&'static str>), WireError> {
    let session = tls::new_session(&options.tls, &options.host)?;
    // Bytes that arrived in clear must not be taken for encrypted ones later: somebody on the path could have put
    // them there.
    if channel.has_leftover() {
        return Err(WireError::protocol("asking for TLS", "data after the server's greeting"));
    }
    authenticate::request_tls(&mut channel, handshake)?;
    Ok(channel.start_tls(session.into(), |stream| Ok(Transport::Tls(Box::new(stream))))?)
}
