//! Bytes over a non-blocking socket, plain or encrypted.

#![allow(clippy::disallowed_methods, reason = "time limits of real sockets")]

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::Connection;

use super::byte_stream::ByteStream;
use crate::tls::expiry::expires;

/// A moment at which an undertaking of several steps has to be over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    at: Instant,
    /// The time that was given in the beginning, for messages.
    pub(super) whole: Duration,
}

impl Deadline {
    /// A deadline `whole` from now on.
    pub(super) fn after(whole: Duration) -> Self {
        Self { at: Instant::now() + whole, whole }
    }

    /// Zero once it has passed.
    pub(super) fn left(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }
}

/// Waits until the socket is ready for one of `events` or has failed; `TimedOut` when the deadline comes first.
pub(super) fn wait(fd: BorrowedFd<'_>, events: PollFlags, deadline: Deadline) -> io::Result<()> {
    loop {
        let left = deadline.left();
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&fd, events)], Some(&timeout)) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// A connected, non-blocking byte stream.
#[derive(Debug)]
pub(super) enum Transport {
    Plain(TcpStream),
    Tls(Box<TlsStream>),
    /// One thread may read while another one writes.
    SharedTls(SharedTls),
    /// In place of a socket.
    Other(Box<dyn ByteStream>),
}

impl Transport {
    /// The same connection once more, for a thread that reads while another one writes.
    pub(super) fn share(&self) -> io::Result<Self> {
        match self {
            Self::Plain(socket) => socket.try_clone().map(Self::Plain),
            Self::SharedTls(shared) => shared.try_clone().map(Self::SharedTls),
            Self::Tls(_) | Self::Other(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// One read: `WouldBlock` when nothing can be read yet, 0 when the peer has closed.
    #[inline]
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
            Self::SharedTls(shared) => shared.lock().read(buffer),
            Self::Other(stream) => stream.read(buffer),
        }
    }

    /// Reads what is there, waiting for it if need be. After the deadline nothing is read any more, however much there is:
    /// a peer that never stops sending must not be listened to for ever.
    pub(super) fn read_waiting(&mut self, buffer: &mut [u8], deadline: Deadline) -> io::Result<usize> {
        loop {
            if deadline.left().is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match self.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(self.as_fd(), PollFlags::IN, deadline)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Writes all of `bytes`, waiting where the socket is full.
    pub(super) fn write_all(&mut self, bytes: &[u8], deadline: Deadline) -> io::Result<()> {
        match self {
            Self::Plain(socket) => write_all_plain(socket, bytes, deadline),
            Self::Tls(stream) => stream.write_all(bytes, deadline),
            Self::SharedTls(shared) => shared.write_all(bytes, deadline),
            Self::Other(stream) => stream.write_all(bytes),
        }
    }

    /// From now on reads wait for bytes, and each single write waits at most `write_timeout`.
    pub(super) fn set_blocking(&self, write_timeout: Duration) -> io::Result<()> {
        let Some(socket) = self.socket() else { return Ok(()) };
        socket.set_write_timeout(Some(write_timeout))?;
        socket.set_nonblocking(false)
    }

    /// How long a read that waits may take.
    pub(super) fn set_read_timeout(&mut self, timeout: Duration) -> io::Result<()> {
        if let Self::Other(stream) = self {
            stream.set_read_timeout(timeout);
        }
        self.socket().map_or(Ok(()), |socket| socket.set_read_timeout(Some(timeout)))
    }

    /// The socket below.
    fn socket(&self) -> Option<&TcpStream> {
        match self {
            Self::Plain(socket) => Some(socket),
            Self::Tls(stream) => Some(&stream.socket),
            Self::SharedTls(shared) => Some(&shared.socket),
            Self::Other(_) => None,
        }
    }

    /// A second descriptor of the socket below.
    pub(super) fn clone_socket(&self) -> io::Result<TcpStream> {
        self.socket().ok_or(io::ErrorKind::Unsupported)?.try_clone()
    }

    /// Says that nothing more will be sent, and throws away what the peer still sends.
    pub(super) fn linger(&mut self, bytes_max: usize, deadline: Deadline) {
        if let Some(socket) = self.socket() {
            let _ = socket.shutdown(Shutdown::Write);
        }
        let mut buffer = [0; 4096];
        let mut left = bytes_max;
        while left > 0 {
            match self.read_waiting(&mut buffer, deadline) {
                Ok(0) | Err(_) => return,
                Ok(read) => left = left.saturating_sub(read),
            }
        }
    }

    /// Whether the peer has closed the connection, or the connection is broken. False when nobody knows yet.
    pub(super) fn is_gone(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let fd = self.as_fd();
        let mut asked = [PollFd::new(&fd, PollFlags::RDHUP)];
        poll(&mut asked, Some(&now)).is_ok_and(|count| count > 0)
    }

    /// Whether bytes have arrived since the last call that were too few to read any: a part of a record of TLS. A read
    /// gives `WouldBlock` then, though the peer is not silent.
    pub(super) fn take_part_arrived(&mut self) -> bool {
        match self {
            Self::Plain(_) | Self::Other(_) => false,
            Self::Tls(stream) => std::mem::take(&mut stream.part_arrived),
            Self::SharedTls(shared) => std::mem::take(&mut shared.lock().part_arrived),
        }
    }

    /// Name of the cipher as servers show it; `None` without TLS.
    pub(super) fn tls_cipher(&self) -> Option<String> {
        match self {
            Self::Plain(_) | Self::Other(_) => None,
            Self::Tls(stream) => stream.cipher(),
            Self::SharedTls(shared) => shared.lock().cipher(),
        }
    }

    /// When the peer's certificate ends to be valid, in seconds since 1970; `None` without TLS.
    pub(super) fn certificate_expires(&self) -> Option<i64> {
        match self {
            Self::Plain(_) | Self::Other(_) => None,
            Self::Tls(stream) => stream.certificate_expires(),
            Self::SharedTls(shared) => shared.lock().certificate_expires(),
        }
    }

    /// Whether a read may give bytes without the socket becoming readable.
    pub(super) fn has_buffered(&self) -> bool {
        match self {
            Self::Plain(_) | Self::Other(_) => false,
            Self::Tls(stream) => stream.has_buffered(),
            Self::SharedTls(shared) => shared.lock().has_buffered(),
        }
    }
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Plain(socket) => socket.as_fd(),
            Self::Tls(stream) => stream.socket.as_fd(),
            Self::SharedTls(shared) => shared.socket.as_fd(),
            Self::Other(stream) => stream.as_fd(),
        }
    }
}

/// OpenSSL's name of a cipher suite from rustls' one, which is the registry's (IANA, "TLS Cipher Suites"): of TLS 1.3 they
/// differ in the prefix only; for those of TLS 1.2 see "CIPHER SUITE NAMES" in the manual of `openssl ciphers`.
fn openssl_cipher(name: &str) -> String {
    if let Some(rest) = name.strip_prefix("TLS13_") {
        return format!("TLS_{rest}");
    }
    let name = name.strip_prefix("TLS_").unwrap_or(name).replace("_WITH_", "-").replace('_', "-");
    let name = name.replace("AES-128", "AES128").replace("AES-256", "AES256");
    name.strip_suffix("POLY1305-SHA256").map_or(name.clone(), |start| format!("{start}POLY1305"))
}

fn write_all_plain(socket: &mut TcpStream, mut bytes: &[u8], deadline: Deadline) -> io::Result<()> {
    while !bytes.is_empty() {
        match socket.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait(socket.as_fd(), PollFlags::OUT, deadline)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Size of the buffer for ciphertext, in bytes: two records. rustls by itself would ask the socket for 4 KiB at a time.
const CIPHERTEXT_BYTES: usize = 32 << 10;

/// A rustls session over a non-blocking socket.
#[derive(Debug)]
pub(super) struct TlsStream {
    socket: TcpStream,
    session: Connection,
    ciphertext: Box<[u8]>,
    /// The part of `ciphertext` that the session has not taken yet.
    unfed: std::ops::Range<usize>,
    /// Decrypted bytes in `session` that no read has taken yet.
    buffered: usize,
    /// Ciphertext has arrived that gave nothing to read: the beginning of a record.
    part_arrived: bool,
}

impl TlsStream {
    /// Performs the handshake. `arrived` is the beginning of what the peer sends, at most [`CIPHERTEXT_BYTES`].
    pub(super) fn handshake(
        socket: TcpStream,
        session: Connection,
        arrived: &[u8],
        deadline: Deadline,
    ) -> io::Result<Self> {
        let mut ciphertext = vec![0; CIPHERTEXT_BYTES].into_boxed_slice();
        ciphertext[..arrived.len()].copy_from_slice(arrived);
        let unfed = 0..arrived.len();
        let mut stream = Self { socket, session, ciphertext, unfed, buffered: 0, part_arrived: false };
        while stream.session.is_handshaking() {
            stream.flush(deadline)?;
            if !stream.session.is_handshaking() {
                break;
            }
            match stream.receive() {
                Ok(true) => {}
                Ok(false) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(stream.socket.as_fd(), PollFlags::IN, deadline)?;
                }
                Err(error) => {
                    // Tells the peer why.
                    stream.answer();
                    return Err(error);
                }
            }
        }
        stream.flush(deadline)?;
        Ok(stream)
    }

    /// `TLSv1.2` or `TLSv1.3`, as the servers' status variable Ssl_version writes it.
    pub(super) fn version(&self) -> Option<&'static str> {
        match self.session.protocol_version()? {
            rustls::ProtocolVersion::TLSv1_2 => Some("TLSv1.2"),
            rustls::ProtocolVersion::TLSv1_3 => Some("TLSv1.3"),
            _ => None,
        }
    }

    /// Seconds since 1970 after which the peer's certificate is not valid any more.
    pub(super) fn certificate_expires(&self) -> Option<i64> {
        expires(self.session.peer_certificates()?.first()?)
    }

    /// Name of the cipher, as the servers' status variable Ssl_cipher writes it: that of OpenSSL.
    fn cipher(&self) -> Option<String> {
        let name = self.session.negotiated_cipher_suite()?.suite().as_str()?;
        Some(openssl_cipher(name))
    }

    /// Asks the socket at most once. On a blocking socket a peer that sends a byte now and then, none of which ends a
    /// record, would otherwise keep the caller here for as long as it likes.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut has_asked = false;
        loop {
            match self.session.reader().read(buffer) {
                Ok(read) => {
                    self.buffered = self.buffered.saturating_sub(read);
                    return Ok(read);
                }
                // Servers often close without saying so in TLS first. A cut stream shows in the packets' framing.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if self.unfed.is_empty() && std::mem::replace(&mut has_asked, true) {
                self.part_arrived = true;
                return Err(io::ErrorKind::WouldBlock.into());
            }
            if !self.receive()? {
                return Ok(0);
            }
        }
    }

    /// Takes ciphertext from the socket and decrypts it. False when the peer has closed the connection.
    fn receive(&mut self) -> io::Result<bool> {
        if self.unfed.is_empty() {
            let received = self.socket.read(&mut self.ciphertext)?;
            self.unfed = 0..received;
        }
        let fed = self.session.read_tls(&mut &self.ciphertext[self.unfed.clone()])?;
        self.unfed.start += fed;
        let state = self
            .session
            .process_new_packets()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        self.buffered = state.plaintext_bytes_to_read();
        self.answer();
        Ok(fed > 0)
    }

    /// Sends what the TLS protocol itself has to say, such as the answer to a key update, as far as the socket takes it.
    /// The rest goes out with the next write, and a broken socket shows at the next read.
    fn answer(&mut self) {
        if self.session.wants_write() {
            let _ = self.session.write_tls(&mut self.socket);
        }
    }

    fn write_all(&mut self, mut bytes: &[u8], deadline: Deadline) -> io::Result<()> {
        while !bytes.is_empty() {
            // The session takes as much as its buffer holds, so that encrypted data never piles up.
            let taken = self.session.writer().write(bytes)?;
            bytes = &bytes[taken..];
            self.flush(deadline)?;
        }
        Ok(())
    }

    fn flush(&mut self, deadline: Deadline) -> io::Result<()> {
        loop {
            match self.send() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait(self.socket.as_fd(), PollFlags::OUT, deadline)?;
                }
                done => return done,
            }
        }
    }

    /// Sends what is encrypted; `WouldBlock` when the socket is full before all of it is sent.
    fn send(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn has_buffered(&self) -> bool {
        self.buffered > 0 || !self.unfed.is_empty()
    }
}

/// A [`TlsStream`] of two threads. Nobody waits for the socket with the lock held.
#[derive(Debug)]
pub(super) struct SharedTls {
    stream: Arc<Mutex<TlsStream>>,
    /// The socket of `stream`.
    socket: TcpStream,
}

impl SharedTls {
    pub(super) fn new(stream: TlsStream) -> io::Result<Self> {
        let socket = stream.socket.try_clone()?;
        Ok(Self { stream: Arc::new(Mutex::new(stream)), socket })
    }

    fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { stream: self.stream.clone(), socket: self.socket.try_clone()? })
    }

    fn lock(&self) -> MutexGuard<'_, TlsStream> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For one thread at a time: bytes of two calls would mix.
    fn write_all(&self, mut bytes: &[u8], deadline: Deadline) -> io::Result<()> {
        while !bytes.is_empty() {
            let taken = self.lock().session.writer().write(bytes)?;
            bytes = &bytes[taken..];
            loop {
                let sent = self.lock().send();
                match sent {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        wait(self.socket.as_fd(), PollFlags::OUT, deadline)?;
                    }
                    done => break done?,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::openssl_cipher;

    #[test]
    fn ciphers_have_the_names_that_servers_show() {
        for (ours, theirs) in [
            ("TLS13_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384"),
            ("TLS13_CHACHA20_POLY1305_SHA256", "TLS_CHACHA20_POLY1305_SHA256"),
            ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
            ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
            ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ] {
            assert_eq!(openssl_cipher(ours), theirs);
        }
    }
}
