//! Whole messages over a transport.

use std::time::Duration;

use codec::packet::{self, Assembler, RESPONSE_BYTES_MAX};
use rustls::ClientConnection;

use super::error::WireError;
use super::transport::{Deadline, TlsStream, Transport};

/// Size of the buffer for answers to commands, in bytes.
const BUFFER_BYTES: usize = 16 << 10;

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
    ) -> Result<(), WireError> {
        self.deadline = Deadline::after(timeout);
        self.sequence = 0;
        self.send(message, during)
    }

    /// Sends the next message of the same exchange.
    pub(super) fn send(&mut self, message: &[u8], during: &'static str) -> Result<(), WireError> {
        let mut bytes = Vec::with_capacity(packet::HEADER_BYTES + message.len());
        self.sequence = packet::append_message(&mut bytes, self.sequence, message);
        self.transport.write_all(&bytes, self.deadline).map_err(|error| failure(error, during, self.deadline))
    }

    /// Waits for the next message.
    pub(super) fn receive(&mut self, during: &'static str) -> Result<Vec<u8>, WireError> {
        let mut assembler = Assembler::new(RESPONSE_BYTES_MAX, self.sequence);
        loop {
            let progress = assembler
                .feed(&self.buffer[self.start..self.end])
                .map_err(|error| WireError::protocol(during, error))?;
            self.start += progress.consumed;
            if progress.complete {
                self.sequence = assembler.next_sequence();
                return Ok(assembler.into_message());
            }
            self.fill(during)?;
        }
    }

    /// Whether nobody on the path can read along. The only thing that may decide about a password in clear.
    pub(super) fn is_encrypted(&self) -> bool {
        matches!(self.transport, Transport::Tls(_))
    }

    /// Whether bytes have arrived that no message has used.
    pub(super) fn has_leftover(&self) -> bool {
        self.start < self.end
    }

    /// Performs a TLS handshake and goes on encrypted; gives the version that was agreed on.
    pub(super) fn start_tls(
        self,
        session: ClientConnection,
    ) -> Result<(Self, Option<&'static str>), WireError> {
        let Self { transport, deadline, sequence, .. } = self;
        let Transport::Plain(socket) = transport else { unreachable!("a session starts TLS at most once") };
        let stream = TlsStream::handshake(socket, session, deadline)
            .map_err(|error| failure(error, "negotiating TLS", deadline))?;
        let version = stream.version();
        let transport = Transport::Tls(Box::new(stream));
        Ok((Self { sequence, ..Self::new(transport, deadline) }, version))
    }

    /// Gives up the messages: the transport, and the bytes that have arrived beyond the last message.
    pub(super) fn into_parts(mut self) -> (Transport, Vec<u8>) {
        self.buffer.truncate(self.end);
        self.buffer.drain(..self.start);
        (self.transport, self.buffer)
    }

    /// Replaces the used-up buffer by what arrives next.
    fn fill(&mut self, during: &'static str) -> Result<(), WireError> {
        (self.start, self.end) = (0, 0);
        if self.buffer.is_empty() {
            self.buffer = vec![0; BUFFER_BYTES];
        }
        match self.transport.read_waiting(&mut self.buffer, self.deadline) {
            Ok(0) => Err(WireError::Closed { during }),
            Ok(read) => {
                self.end = read;
                Ok(())
            }
            Err(error) => Err(failure(error, during, self.deadline)),
        }
    }
}

fn failure(error: std::io::Error, during: &'static str, deadline: Deadline) -> WireError {
    if error.kind() == std::io::ErrorKind::TimedOut {
        WireError::Timeout { during, after: deadline.whole }
    } else {
        WireError::from_io(during, error)
    }
}
