//! Hears how far another node is, over a connection of its own.

use super::common::{is_of_size, not_reached, tell_once};
use crate::attempt::context::Upstream;
use codec::packet::{ErrPacket, command};
use quorum::{Node, Told};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};
use wire::DumpStream;

/// What another node needs to answer at the longest. It tells something at least twice a second.
const SILENT_MAX: Duration = Duration::from_secs(3);

/// A read waits so long before it is looked whether to end.
const READ_MAX: Duration = Duration::from_millis(250);

/// Pause between two tries to reach a node.
const PAUSE: Duration = Duration::from_millis(250);

/// Longest message, in bytes: a set of executed GTIDs may be long.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// One other node.
pub(super) struct Listener {
    pub(super) upstream: Upstream,
    pub(super) node: Arc<Node>,
    /// Its number among the others.
    pub(super) other: usize,
    pub(super) end: Arc<AtomicBool>,
}

impl Listener {
    pub(super) fn run(self) {
        let mut last = None;
        while !self.is_over() {
            let Err(error) = self.listen(&mut last) else { continue };
            if self.is_over() {
                break;
            }
            let words = format!("node {} is not heard: {error}", self.upstream.config.quorum[self.other]);
            tell_once(&self.upstream, &mut last, words);
            self.heard(Err(error), &mut None);
            self.upstream.clock.sleep(PAUSE);
        }
    }

    fn is_over(&self) -> bool {
        self.end.load(SeqCst)
    }

    fn heard(&self, told: Result<Told, String>, last: &mut Option<String>) {
        if let Err(error) = self.node.hear(self.other, told) {
            tell_once(&self.upstream, last, error.to_string());
        }
    }

    fn listen(&self, last: &mut Option<String>) -> Result<(), String> {
        let address = &self.upstream.config.quorum[self.other];
        let connection =
            self.upstream.connect_to(address, SILENT_MAX).map_err(|error| not_reached(&error))?;
        let request = command::query("BINLOGD QUORUM LISTEN");
        let mut stream = connection.start_dump(&request).map_err(|error| error.to_string())?;
        let failed = |error: io::Error| error.to_string();
        stream.set_blocking(SILENT_MAX).map_err(failed)?;
        stream.set_read_timeout(READ_MAX).map_err(failed)?;
        let mut is_first = true;
        while !self.is_over() {
            let message = self.message(&mut stream).map_err(failed)?;
            if message.first() == Some(&0xff) {
                return Err(ErrPacket::parse(&message)
                    .map_or_else(|error| error.to_string(), |refused| refused.message));
            }
            let told = Told::of_text(&message).map_err(|error| {
                format!(
                    "it tells what is not understood ({error}): both binlogds should have the same version"
                )
            })?;
            is_of_size(&self.node, told.nodes)?;
            if Some(told.node) == self.node.uuid() {
                return Err("it is this node itself: quorum names the others".to_owned());
            }
            if std::mem::take(&mut is_first) {
                *last = None;
                tracing::info!(source = self.upstream.config.name, "quorum: node {address} is heard");
            }
            self.heard(Ok(told), last);
        }
        Ok(())
    }

    /// One message, in one packet.
    fn message(&self, stream: &mut DumpStream) -> io::Result<Vec<u8>> {
        let since = self.upstream.clock.now();
        let mut header = [0; 4];
        self.read(stream, &mut header, since)?;
        let len = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        if len >= MESSAGE_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it tells too much at once"));
        }
        let mut message = vec![0; len];
        self.read(stream, &mut message, since)?;
        Ok(message)
    }

    fn read(&self, stream: &mut DumpStream, mut into: &mut [u8], since: Instant) -> io::Result<()> {
        while !into.is_empty() {
            match stream.read(into) {
                Ok(0) => {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it has closed the connection"));
                }
                Ok(read) => into = &mut into[read..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.is_over() {
                        return Err(io::ErrorKind::Interrupted.into());
                    }
                    if self.upstream.clock.now().saturating_duration_since(since) >= SILENT_MAX {
                        let text = format!("nothing was heard for {SILENT_MAX:?}");
                        return Err(io::Error::new(io::ErrorKind::TimedOut, text));
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
