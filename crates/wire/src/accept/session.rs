//! A client that was let in.

use std::fmt;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use codec::packet::{Login, printable, reply};

use super::authenticate::{USER_BYTES_MAX, is_mariadb};
use super::error::ClientError;
use crate::channel::Channel;
use crate::transport::Deadline;

const WAITING: &str = "waiting for a command";

/// Time for the rest of a message of which the first byte has arrived (`net_read_timeout` of servers).
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Time that a client gets to stop sending, so that it sees why it was refused.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);

/// The most that is thrown away then, in bytes.
const LINGER_BYTES_MAX: usize = 16 << 20;

/// The longest name or value of an attribute that is kept, in bytes.
const ATTRIBUTE_BYTES_MAX: usize = 256;

/// The most attributes that are kept. MySQL's own clients send about ten.
const ATTRIBUTES_MAX: usize = 32;

/// The longest database name kept, in bytes: 64 characters of four.
const DATABASE_BYTES_MAX: usize = 256;

/// What a client says of itself in its login. All texts are cut, and clean of control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// The account. The client has shown that it has its password.
    pub user: String,
    /// The database that the client wants to use; `None` when it names none.
    pub database: Option<String>,
    /// Who the program is, such as `_client_name` and `program_name`.
    pub attributes: Vec<(String, String)>,
    /// Bits of [`codec::packet::capability`].
    pub capabilities: u32,
    /// Number of a collation.
    pub character_set: u8,
    /// The client is one of MariaDB's, as far as it tells.
    pub is_mariadb: bool,
}

impl Client {
    pub(super) fn new(login: &Login<'_>) -> Self {
        let text = |text: &[u8]| printable(text, ATTRIBUTE_BYTES_MAX);
        let attributes = login.attributes.iter().take(ATTRIBUTES_MAX);
        Self {
            user: printable(login.user, USER_BYTES_MAX),
            database: Some(printable(login.database, DATABASE_BYTES_MAX)).filter(|name| !name.is_empty()),
            attributes: attributes.map(|(name, value)| (text(name), text(value))).collect(),
            capabilities: login.capabilities,
            character_set: login.character_set,
            is_mariadb: is_mariadb(login),
        }
    }

    /// The value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

/// The session of a client that was let in: commands in, framed answers out.
///
/// After an error the session is in an unknown state and must be dropped, which closes it.
pub struct Accepted {
    pub(super) channel: Channel,
    pub(super) client: Client,
    pub(super) address: SocketAddr,
    pub(super) auth_plugin: &'static str,
    pub(super) tls_version: Option<&'static str>,
    /// For each [`send`](Self::send).
    pub(super) write_timeout: Duration,
    /// A [`Reader`] has taken over the reading.
    pub(super) is_read_elsewhere: bool,
}

impl fmt::Debug for Accepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accepted")
            .field("client", &self.client)
            .field("address", &self.address)
            .field("auth_plugin", &self.auth_plugin)
            .field("tls_version", &self.tls_version)
            .finish_non_exhaustive()
    }
}

impl Accepted {
    /// Who the client is.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Where the client comes from; an IPv4 address stands as one.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Name of the authentication method that was used.
    pub fn auth_plugin(&self) -> &'static str {
        self.auth_plugin
    }

    /// `TLSv1.2` or `TLSv1.3`; `None` when the connection is not encrypted.
    pub fn tls_version(&self) -> Option<&'static str> {
        self.tls_version
    }

    /// Name of the cipher in OpenSSL's words, as the servers' status variable Ssl_cipher has it: `TLS_AES_256_GCM_SHA384`;
    /// `None` when the connection is not encrypted.
    pub fn tls_cipher(&self) -> Option<String> {
        self.channel.tls_cipher()
    }

    /// Waits for the next command message: at most `idle` for its beginning, then 30 s for the rest of it. `None` when the
    /// client has closed the connection between two messages.
    ///
    /// # Errors
    /// [`ClientError::TooLong`] when the message exceeds `bytes_max`; the client was told (error 1153).
    /// [`ClientError::Timeout`] when nothing came. After [`reader`](Self::reader) nothing can be received here any more.
    pub fn receive(&mut self, idle: Duration, bytes_max: usize) -> Result<Option<Vec<u8>>, ClientError> {
        if self.is_read_elsewhere {
            let reason = io::Error::new(io::ErrorKind::Unsupported, "another thread reads from this client");
            return Err(ClientError::Io { during: WAITING, reason });
        }
        let received = receive(&mut self.channel, idle, bytes_max);
        if let Err(error) = &received {
            refuse(&mut self.channel, error, &self.address.ip().to_string());
        }
        received
    }

    /// The number that the first packet of the answer to the last command must carry.
    pub fn sequence(&self) -> u8 {
        self.channel.sequence()
    }

    /// Sends bytes that are framed already, waiting where the socket is full. `TimedOut` when the client has not taken all
    /// of them within the write timeout of [`AcceptOptions`](super::AcceptOptions).
    ///
    /// # Errors
    /// As the operating system says; the session is over then.
    pub fn send(&mut self, framed: &[u8]) -> io::Result<()> {
        self.channel.transport.write_all(framed, Deadline::after(self.write_timeout))
    }

    /// Another time for each later [`send`](Self::send).
    pub fn set_write_timeout(&mut self, timeout: Duration) {
        self.write_timeout = timeout;
    }

    /// Whether the client has closed the connection, or the connection is broken; false also when that is not known yet.
    /// Does not wait, and reads nothing.
    pub fn is_gone(&self) -> bool {
        self.channel.transport.is_gone()
    }

    /// What ends the session from another thread, such as for KILL.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn closer(&self) -> io::Result<Closer> {
        self.channel.transport.clone_socket().map(Closer)
    }

    /// Hands the reading over to another thread, with what has arrived already, while this one goes on sending: for the
    /// acknowledgements of a semi-synchronous dump.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn reader(&mut self) -> io::Result<Reader> {
        let channel = self.channel.share()?;
        self.is_read_elsewhere = true;
        Ok(Reader { channel })
    }
}

impl AsFd for Accepted {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.transport.as_fd()
    }
}

/// What a client sends while another thread sends to it.
pub struct Reader {
    channel: Channel,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

impl Reader {
    /// As [`Accepted::receive`], but the client is told nothing.
    ///
    /// # Errors
    /// As [`Accepted::receive`].
    pub fn receive(&mut self, idle: Duration, bytes_max: usize) -> Result<Option<Vec<u8>>, ClientError> {
        receive(&mut self.channel, idle, bytes_max)
    }
}

/// Ends a session from another thread.
#[derive(Debug)]
pub struct Closer(TcpStream);

impl From<TcpStream> for Closer {
    fn from(socket: TcpStream) -> Closer {
        Closer(socket)
    }
}

impl Closer {
    /// Both sides see the end of the connection; who waits for it or in it wakes up.
    pub fn close(&self) {
        // A connection that is closed already is what was wanted.
        let _ = self.0.shutdown(Shutdown::Both);
    }

    /// Nothing more is read from the client: who waits for it sees the end. What is sent to it still arrives.
    pub fn stop_reading(&self) {
        let _ = self.0.shutdown(Shutdown::Read);
    }
}

/// To be asked together with others whether the client is still there.
impl AsFd for Closer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn receive(channel: &mut Channel, idle: Duration, bytes_max: usize) -> Result<Option<Vec<u8>>, ClientError> {
    Ok(channel.receive_command(idle, MESSAGE_TIMEOUT, bytes_max, WAITING)?)
}

/// Tells the client why it is refused, as far as there is something to tell.
pub(super) fn refuse(channel: &mut Channel, error: &ClientError, host: &str) {
    let Some(packet) = error.packet(host) else { return };
    let mut bytes = Vec::new();
    reply::err(&mut bytes, channel.sequence(), &packet);
    let deadline = Deadline::after(LINGER_TIMEOUT);
    // The connection ends either way.
    let sent = channel.transport.write_all(&bytes, deadline);
    if sent.is_ok() && matches!(error, ClientError::TooLong { .. }) {
        // Closing a socket with unread bytes would take the error away from the client.
        channel.transport.linger(LINGER_BYTES_MAX, deadline);
    }
}
