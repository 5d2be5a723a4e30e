//! Whole messages over a transport.

use std::io;
use std::time::Duration;

use codec::packet::{self, Assembler, FrameError, RESPONSE_BYTES_MAX};
use rustls::Connection;

use super::transport::{Deadline, TlsStream, Transport};

/// Size of the buffer for answers to commands, in bytes.
const BUFFER_BYTES: usize = 16 << 10;

/// A message was not sent or received.
#[derive(Debug)]
pub(super) struct Failure {
    /// What was being done.
    pub(super) during: &'static str,
    pub(super) kind: FailureKind,
}

#[derive(Debug)]
pub(super) enum FailureKind {
    /// The deadline has come.
    Timeout {
        /// The time that there was in the beginning.
        after: Duration,
    },
    /// The peer has closed the connection.
    Closed,
    /// The peer breaks the rules of framing.
    Frame(FrameError),
    /// TLS failed.
    Tls(rustls::Error),
    /// The operating system reports anything else.
    Io(io::Error),
}

/// Sends and receives messages, and keeps what arrived beyond the last one.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) transport: Transport,
    /// End of what is being done now: connecting, or one command and its whole answer.
    deadline: Deadline,
    buffer: Vec<u8>,
    /// The bytes not used yet are `buffer[start..end]`.
    start: usize,
    end: usize,
    /// Number that the next packet must carry, sent or received.
    sequence: u8,
}

impl Channel {
    pub(super) fn new(transport: Transport, deadline: Deadline) -> Self {
        Self { transport, deadline, buffer: Vec::new(), start: 0, end: 0, sequence: 0 }
    }

    /// Sends the first message of a command. It and its answer may take `timeout` altogether.
    pub(super) fn send_command(
        &mut self,
        message: &[u8],
        during: &'static str,
        timeout: Duration,
    ) -> Result<(), Failure> {
        self.deadline = Deadline::after(timeout);
        self.sequence = 0;
        self.send(message, during)
    }

    /// Sends the next message of the same exchange.
    pub(super) fn send(&mut self, message: &[u8], during: &'static str) -> Result<(), Failure> {
        let mut bytes = Vec::with_capacity(packet::HEADER_BYTES + message.len());
        self.sequence = packet::append_message(&mut bytes, self.sequence, message);
        self.send_framed(&bytes, during)
    }

    /// Sends bytes that are framed already.
    pub(super) fn send_framed(&mut self, bytes: &[u8], during: &'static str) -> Result<(), Failure> {
        self.transport.write_all(bytes, self.deadline).map_err(|error| failure(error, during, self.deadline))
    }

    /// Waits for the next message of the answer to a command.
    pub(super) fn receive(&mut self, during: &'static str) -> Result<Vec<u8>, Failure> {
        self.receive_up_to(RESPONSE_BYTES_MAX, during)
    }

    /// Waits for the first message of a command: at most `idle` for its beginning, then `whole` for the rest of it. `None`
    /// when the peer has closed the connection before.
    pub(super) fn receive_command(
        &mut self,
        idle: Duration,
        whole: Duration,
        limit: usize,
        during: &'static str,
    ) -> Result<Option<Vec<u8>>, Failure> {
        self.sequence = 0;
        if !self.has_leftover() {
            self.deadline = Deadline::after(idle);
            match self.fill(during) {
                Ok(()) => {}
                Err(Failure { kind: FailureKind::Closed, .. }) => return Ok(None),
                Err(failure) => return Err(failure),
            }
        }
        self.deadline = Deadline::after(whole);
        self.receive_up_to(limit, during).map(Some)
    }

    /// Waits for the next message, of at most `limit` bytes.
    pub(super) fn receive_up_to(&mut self, limit: usize, during: &'static str) -> Result<Vec<u8>, Failure> {
        let mut assembler = Assembler::new(limit, self.sequence);
        loop {
            let progress = match assembler.feed(&self.buffer[self.start..self.end]) {
                Ok(progress) => progress,
                Err(error) => {
                    self.sequence = assembler.next_sequence();
                    return Err(Failure { during, kind: FailureKind::Frame(error) });
                }
            };
            self.start += progress.consumed;
            if progress.complete {
                self.sequence = assembler.next_sequence();
                return Ok(assembler.into_message());
            }
            self.fill(during)?;
        }
    }

    /// The number that the next packet must carry, sent or received.
    pub(super) fn sequence(&self) -> u8 {
        self.sequence
    }

    /// The same connection once more, for a thread that reads while another one writes. What has arrived is its.
    pub(super) fn share(&mut self) -> io::Result<Self> {
        let shared = Self::new(self.transport.share()?, self.deadline);
        let (start, end) = (std::mem::take(&mut self.start), std::mem::take(&mut self.end));
        Ok(Self { buffer: std::mem::take(&mut self.buffer), start, end, ..shared })
    }

    /// Whether nobody on the path can read along. The only thing that may decide about a password in clear.
    pub(super) fn is_encrypted(&self) -> bool {
        matches!(self.transport, Transport::Tls(_) | Transport::SharedTls(_))
    }

    /// Whether bytes have arrived that no message has used.
    pub(super) fn has_leftover(&self) -> bool {
        self.start < self.end
    }

    /// Performs a TLS handshake and goes on encrypted, with the stream as `wrap` makes it; gives the version that was agreed
    /// on.
    pub(super) fn start_tls(
        self,
        session: Connection,
        wrap: impl FnOnce(TlsStream) -> io::Result<Transport>,
    ) -> Result<(Self, Option<&'static str>), Failure> {
        const DURING: &str = "negotiating TLS";
        let Self { transport, deadline, sequence, buffer, start, end } = self;
        let Transport::Plain(socket) = transport else { unreachable!("a session starts TLS at most once") };
        let failure = |error| failure(error, DURING, deadline);
        let stream = TlsStream::handshake(socket, session, &buffer[start..end], deadline).map_err(failure)?;
        let version = stream.version();
        let transport = wrap(stream).map_err(failure)?;
        Ok((Self { sequence, ..Self::new(transport, deadline) }, version))
    }

    /// Name of the cipher as servers show it; `None` without TLS.
    pub(super) fn tls_cipher(&self) -> Option<String> {
        self.transport.tls_cipher()
    }

    /// Gives up the messages: the transport, and the bytes that have arrived beyond the last message.
    pub(super) fn into_parts(mut self) -> (Transport, Vec<u8>) {
        self.buffer.truncate(self.end);
        self.buffer.drain(..self.start);
        (self.transport, self.buffer)
    }

    /// Replaces the used-up buffer by what arrives next.
    fn fill(&mut self, during: &'static str) -> Result<(), Failure> {
        (self.start, self.end) = (0, 0);
        if self.buffer.is_empty() {
            self.buffer = vec![0; BUFFER_BYTES];
        }
        match self.transport.read_waiting(&mut self.buffer, self.deadline) {
            Ok(0) => Err(Failure { during, kind: FailureKind::Closed }),
            Ok(read) => {
                self.end = read;
                Ok(())
            }
            Err(error) => Err(failure(error, during, self.deadline)),
        }
    }
}

/// Sorts an error of the transport: rustls wraps its own errors in one, and a closed connection has several names.
fn failure(error: io::Error, during: &'static str, deadline: Deadline) -> Failure {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof};
    let kind = match error.kind() {
        TimedOut => FailureKind::Timeout { after: deadline.whole },
        UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe => FailureKind::Closed,
        _ => match error.downcast::<rustls::Error>() {
            Ok(tls) => FailureKind::Tls(tls),
            Err(other) => FailureKind::Io(other),
        },
    };
    Failure { during, kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_transport_are_sorted() {
        let deadline = Deadline::after(Duration::from_secs(7));
        let sorted = |error| failure(error, "x", deadline).kind;
        assert!(matches!(sorted(io::ErrorKind::ConnectionReset.into()), FailureKind::Closed));
        let timeout = sorted(io::ErrorKind::TimedOut.into());
        assert!(matches!(timeout, FailureKind::Timeout { after } if after == deadline.whole));
        let tls = io::Error::new(io::ErrorKind::InvalidData, rustls::Error::DecryptError);
        assert!(matches!(sorted(tls), FailureKind::Tls(rustls::Error::DecryptError)));
        assert!(matches!(sorted(io::Error::other("x")), FailureKind::Io(_)));
        assert!(matches!(sorted(io::Error::from_raw_os_error(28)), FailureKind::Io(_)));
    }
}
