//! The bytes of a connection, in clear or in TLS.

use codec::packet::FirstMessage;
use rustls::{ServerConfig, ServerConnection};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The longest first message that is looked at: a request for TLS has 32 bytes.
const FIRST_BYTES_MAX: usize = 4096;
/// Most bytes that are taken from the socket at once: a whole record.
const RECORD_BYTES: usize = 17 << 10;

/// A connection. One thread may read a copy while another one writes.
#[derive(Debug)]
pub(crate) enum Line {
    Clear(TcpStream),
    Encrypted(Box<Encrypted>),
}

/// A TLS session over a socket. Nobody waits for the socket with the session locked.
#[derive(Debug)]
pub(crate) struct Encrypted {
    socket: TcpStream,
    session: Arc<Mutex<ServerConnection>>,
    /// What comes from the socket, until it is decrypted.
    received: Box<[u8]>,
    /// What goes to the socket.
    to_send: Vec<u8>,
}

impl Line {
    /// Takes the request for TLS that answers a greeting, and performs the handshake.
    ///
    /// # Errors
    /// When the client asks for none, or fails at it.
    pub(crate) fn encrypt(mut socket: TcpStream, config: Arc<ServerConfig>) -> io::Result<Line> {
        let mut header = [0; 4];
        socket.read_exact(&mut header)?;
        let len = usize::from(u16::from_le_bytes([header[0], header[1]])).min(FIRST_BYTES_MAX);
        let mut message = vec![0; len];
        socket.read_exact(&mut message)?;
        if !matches!(FirstMessage::parse(&message), Ok(FirstMessage::TlsRequest)) {
            return Err(invalid("a login in clear"));
        }
        let mut session = ServerConnection::new(config).map_err(invalid)?;
        // What is framed goes out at once, however much it is.
        session.set_buffer_limit(None);
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        Ok(Line::Encrypted(Box::new(Encrypted::new(socket, Arc::new(Mutex::new(session))))))
    }

    /// The same connection once more.
    pub(crate) fn try_clone(&self) -> io::Result<Line> {
        Ok(match self {
            Line::Clear(socket) => Line::Clear(socket.try_clone()?),
            Line::Encrypted(encrypted) => Line::Encrypted(Box::new(Encrypted::new(
                encrypted.socket.try_clone()?,
                encrypted.session.clone(),
            ))),
        })
    }

    /// Waits for bytes and appends them to `bytes`; gives how many, 0 when the client has closed.
    pub(crate) fn read(&mut self, bytes: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Line::Clear(socket) => {
                let mut buffer = [0; 4096];
                let read = socket.read(&mut buffer)?;
                bytes.extend_from_slice(&buffer[..read]);
                Ok(read)
            }
            Line::Encrypted(encrypted) => encrypted.read(bytes),
        }
    }

    /// Sends all of `bytes`, in one write where the socket has room.
    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Line::Clear(socket) => socket.write_all(bytes),
            Line::Encrypted(encrypted) => encrypted.write_all(bytes),
        }
    }
}

impl Encrypted {
    fn new(socket: TcpStream, session: Arc<Mutex<ServerConnection>>) -> Encrypted {
        Encrypted { socket, session, received: vec![0; RECORD_BYTES].into(), to_send: Vec::new() }
    }

    fn read(&mut self, bytes: &mut Vec<u8>) -> io::Result<usize> {
        // What came with the end of the handshake is decrypted already.
        let mut read = drain(&mut lock(&self.session), bytes)?;
        while read == 0 {
            let received = self.socket.read(&mut self.received)?;
            if received == 0 {
                return Ok(0);
            }
            let mut session = lock(&self.session);
            let mut left = &self.received[..received];
            while !left.is_empty() {
                session.read_tls(&mut left)?;
                session.process_new_packets().map_err(invalid)?;
                read += drain(&mut session, bytes)?;
            }
        }
        Ok(read)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        {
            let mut session = lock(&self.session);
            session.writer().write_all(bytes)?;
            while session.wants_write() {
                session.write_tls(&mut self.to_send)?;
            }
        }
        let sent = self.socket.write_all(&self.to_send);
        self.to_send.clear();
        sent
    }
}

/// Takes all that is decrypted.
fn drain(session: &mut ServerConnection, bytes: &mut Vec<u8>) -> io::Result<usize> {
    let mut read = 0;
    let mut buffer = [0; 4096];
    loop {
        match session.reader().read(&mut buffer) {
            Ok(0) => return Ok(read),
            Ok(count) => {
                bytes.extend_from_slice(&buffer[..count]);
                read += count;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(read),
            Err(error) => return Err(error),
        }
    }
}

fn lock(session: &Mutex<ServerConnection>) -> MutexGuard<'_, ServerConnection> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

fn invalid(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
