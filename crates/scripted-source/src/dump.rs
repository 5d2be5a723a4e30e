//! One dump on its thread: a socket, a stopwatch, and the peer that knows what to say.

use crate::line::Line;
use crate::log::SourceLog;
use crate::peer::Peer;
use crate::shared::{Acknowledgement, Shared};
use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Bytes that are framed at most before they are sent.
const STAGED_BYTES_MAX: usize = 256 * 1024;

/// What a benchmark does with a dump: it appends, sends and waits for acknowledgements on the dump's own thread, so that
/// no wake-up stands between the socket and the stopwatch.
pub trait Load: Send {
    /// Runs once. Afterwards the dump goes on as usual, with heartbeats.
    ///
    /// # Errors
    /// When the connection fails; the dump then ends.
    fn run(&mut self, dump: &mut Dump) -> io::Result<()>;
}

/// A dump in progress, as its thread sees it.
#[derive(Debug)]
pub struct Dump {
    line: Line,
    shared: Arc<Shared>,
    peer: Peer,
}

impl Dump {
    /// Lets the client in and answers until it asks for a dump; `None` when it goes away before.
    pub(crate) fn accept(mut socket: TcpStream, shared: Arc<Shared>) -> io::Result<Option<Dump>> {
        let (mut peer, tls) = {
            let state = shared.state();
            (Peer::new(&state.script), state.script.tls.clone())
        };
        let mut line = match tls {
            Some(config) => {
                socket.write_all(&std::mem::take(&mut peer.packets.bytes))?;
                let line = Line::encrypt(socket, config)?;
                peer.is_encrypted_now();
                line
            }
            None => Line::Clear(socket),
        };
        let mut heard = Vec::new();
        while !peer.is_ended() {
            line.write_all(&std::mem::take(&mut peer.packets.bytes))?;
            heard.clear();
            if line.read(&mut heard)? == 0 {
                break;
            }
            if shared.change(|state| state.listen(&mut peer, &heard))? {
                return Ok(Some(Dump { line, shared, peer }));
            }
        }
        Ok(None)
    }

    /// Lets `write` append to the log. Nothing is sent yet.
    pub fn append<R>(&mut self, write: impl FnOnce(&mut SourceLog) -> R) -> R {
        write(&mut self.shared.state().script.log)
    }

    /// Frames all events of the log that were not framed before, up to a limit; false when there were none. Nothing is
    /// sent yet.
    ///
    /// # Errors
    /// When the log was replaced.
    pub fn stage(&mut self) -> io::Result<bool> {
        let state = self.shared.state();
        if state.script.generation != self.peer.generation() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let before = self.peer.packets.bytes.len();
        while self.peer.packets.bytes.len() < STAGED_BYTES_MAX && self.peer.step(&state.script.log) {}
        Ok(self.peer.packets.bytes.len() > before)
    }

    /// Sends what was framed, in one write where the socket has room.
    ///
    /// # Errors
    /// When the connection is closed.
    pub fn send(&mut self) -> io::Result<()> {
        let staged = &mut self.peer.packets.bytes;
        let sent = self.line.write_all(staged);
        staged.clear();
        sent
    }

    /// Waits for the next acknowledgement. Only for a [`Load`]: elsewhere a thread of its own reads them.
    ///
    /// # Errors
    /// When the connection is closed, or something else arrives.
    pub fn read_acknowledgement(&mut self) -> io::Result<Acknowledgement> {
        loop {
            let arrived = Instant::now();
            if let Some(place) = self.peer.inbox.acknowledgement()? {
                return Ok(Acknowledgement { place, arrived });
            }
            if self.line.read(&mut self.peer.inbox.0)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Sends everything, now and as it comes, until the dump ends. `take_load` gives the load when all is sent for the
    /// first time.
    pub(crate) fn run(mut self, take_load: impl Fn() -> Option<Box<dyn Load>>) -> io::Result<()> {
        let closed = Arc::new(AtomicBool::new(false));
        let mut reads = false;
        loop {
            while self.stage()? || !self.peer.packets.bytes.is_empty() {
                self.send()?;
            }
            if self.peer.is_ended() {
                return Ok(());
            }
            if let Some(mut load) = take_load() {
                load.run(&mut self)?;
                continue;
            }
            if !reads {
                self.read_in_background(closed.clone())?;
                reads = true;
            }
            if !self.wait_for_more(&closed)? {
                return Ok(());
            }
        }
    }

    /// Waits until there is something to send; sends heartbeats meanwhile. False when the replica has gone.
    fn wait_for_more(&mut self, closed: &AtomicBool) -> io::Result<bool> {
        let shared = self.shared.clone();
        let period = self.peer.heartbeat_period().unwrap_or(Duration::from_secs(3600));
        let mut silent_since = Instant::now();
        let mut state = shared.state();
        loop {
            if closed.load(Ordering::Acquire) || state.script.generation != self.peer.generation() {
                return Ok(false);
            }
            if self.peer.step(&state.script.log) || self.peer.is_ended() {
                return Ok(true);
            }
            let left = period.saturating_sub(silent_since.elapsed());
            if left.is_zero() {
                self.peer.heartbeat(&state.script.log);
                drop(state);
                self.send()?;
                silent_since = Instant::now();
                state = shared.state();
            } else {
                state = shared.wait(state, left);
            }
        }
    }

    /// Starts the thread that reads acknowledgements and notices the end of the connection.
    fn read_in_background(&mut self, closed: Arc<AtomicBool>) -> io::Result<()> {
        let mut line = self.line.try_clone()?;
        let shared = self.shared.clone();
        let mut inbox = std::mem::take(&mut self.peer.inbox);
        let read = move || {
            while let Ok(1..) = line.read(&mut inbox.0) {
                let arrived = Instant::now();
                while let Ok(Some(place)) = inbox.acknowledgement() {
                    shared.change(|state| state.acknowledgements.push(Acknowledgement { place, arrived }));
                }
            }
            shared.change(|_| closed.store(true, Ordering::Release));
        };
        std::thread::Builder::new().name("scripted-acks".to_owned()).spawn(read)?;
        Ok(())
    }
}
