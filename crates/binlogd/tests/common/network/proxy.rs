//! A proxy between a receiver and its source that does what networks do: it ends connections at an exact byte, holds one
//! direction back, passes bytes on late or in drips. The address behind it can move, as that of a failover does.
//!
//! Faults are aimed by counting bytes and not by reading the protocol, so they work with TLS too.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use socket2::SockRef;

use crate::common::Server;

/// Bytes that are read at once. What has been read is held back, cut or slowed like everything else.
const CHUNK_BYTES: usize = 16 << 10;
/// Longest time to reach the target, which is on this machine.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// How long a write waits for a peer that does not read before it looks whether the connection is over.
const WRITE_LOOK: Duration = Duration::from_millis(100);

/// One of the two ways through the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the source: greeting, answers, events, heartbeats.
    ToReceiver,
    /// To the source: queries, acknowledgements.
    ToSource,
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// In good order (FIN), as when a process ends.
    Close,
    /// At once (RST), as when a firewall drops it or the other machine has restarted.
    Reset,
}

/// What happens to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Everything passes.
    None,
    /// The connection ends when exactly this many further bytes have passed that way; with 0 at once.
    CutAfter { direction: Direction, bytes: u64, ending: Ending },
    /// Nothing passes that way and nobody is told: half open. What is held back passes when the fault ends.
    Silence(Direction),
    /// Nothing passes either way.
    Blackout,
    /// That way, a few bytes pass at a time and a pause stands before each of them.
    Drip { direction: Direction, bytes: usize, pause: Duration },
    /// Everything passes this much later.
    Latency(Duration),
}

/// A listening address on 127.0.0.1 that passes connections on to a target. Dropping it ends them all.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
}

struct State {
    target: SocketAddr,
    /// Of connections to come.
    fault: Fault,
    links: Vec<Weak<Link>>,
    accepted: Vec<Instant>,
    stopped: bool,
}

impl Proxy {
    /// Listens on a free port before `target`.
    pub fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let state =
            State { target, fault: Fault::None, links: Vec::new(), accepted: Vec::new(), stopped: false };
        let shared = Arc::new(Shared { state: Mutex::new(state) });
        let for_thread = shared.clone();
        let listener = thread::spawn(move || accept(&listener, &for_thread));
        Self { address, shared, listener: Some(listener) }
    }

    /// As [`Proxy::start`], before a server.
    pub fn before(server: &Server) -> Self {
        Self::start(address_of(server))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL by which root reaches the source through it.
    pub fn url(&self) -> String {
        format!("mysql://root@{}", self.address)
    }

    /// Passes connections to come on to another address. Present ones stay where they are; see [`Proxy::cut`].
    pub fn move_to(&self, target: SocketAddr) {
        self.shared.state().target = target;
    }

    /// Does this to every connection, present and to come, in the place of what was done before. Each connection has
    /// its own count of bytes.
    pub fn fault(&self, fault: Fault) {
        let mut state = self.shared.state();
        state.fault = fault;
        state.links().iter().for_each(|link| link.set_fault(fault));
    }

    /// As [`Proxy::fault`], to the present connections only.
    pub fn fault_present(&self, fault: Fault) {
        self.shared.state().links().iter().for_each(|link| link.set_fault(fault));
    }

    /// Ends every present connection.
    pub fn cut(&self, ending: Ending) {
        self.shared.state().links().iter().for_each(|link| link.end(ending));
    }

    /// When each connection came, in order.
    pub fn accepted(&self) -> Vec<Instant> {
        self.shared.state().accepted.clone()
    }

    /// Bytes that have passed that way on the open connection that has had most of them, which the receiver's is: the looks
    /// beside it come and go. 0 without one.
    pub fn passed(&self, direction: Direction) -> u64 {
        let links = self.shared.state().links();
        links.iter().map(|link| link.state().passed[direction as usize]).max().unwrap_or(0)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.state().stopped = true;
        // A connection of our own wakes the listener.
        let _ = TcpStream::connect(self.address);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        self.cut(Ending::Close);
    }
}

/// Where a server listens.
pub fn address_of(server: &Server) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], server.port()))
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The connections that are not over, the oldest first.
    fn links(&mut self) -> Vec<Arc<Link>> {
        self.links.retain(|link| link.strong_count() > 0);
        self.links.iter().filter_map(Weak::upgrade).filter(|link| !link.state().over).collect()
    }
}

fn accept(listener: &TcpListener, shared: &Shared) {
    for receiver in listener.incoming() {
        let Ok(receiver) = receiver else { continue };
        let target = {
            let mut state = shared.state();
            if state.stopped {
                return;
            }
            state.accepted.push(Instant::now());
            state.target
        };
        let Ok(source) = TcpStream::connect_timeout(&target, CONNECT_MAX) else {
            // As near as a proxy comes to a host that refuses connections.
            let _ = SockRef::from(&receiver).set_linger(Some(Duration::ZERO));
            continue;
        };
        // Under one lock, so that no fault misses a connection that is just being made.
        let mut state = shared.state();
        // A socket that cannot be set up has been closed by its peer already.
        if let Ok(link) = Link::start(receiver, source, state.fault) {
            state.links.push(Arc::downgrade(&link));
        }
    }
}

/// One connection. Its two threads hold it; with the last of them its sockets close.
struct Link {
    receiver: TcpStream,
    source: TcpStream,
    state: Mutex<LinkState>,
    changed: Condvar,
}

struct LinkState {
    fault: Fault,
    /// Bytes that have passed, by [`Direction`].
    passed: [u64; 2],
    /// Of [`Fault::CutAfter`]: the count at which the connection ends.
    cut_at: u64,
    over: bool,
}

impl Link {
    fn start(receiver: TcpStream, source: TcpStream, fault: Fault) -> io::Result<Arc<Self>> {
        for socket in [&receiver, &source] {
            socket.set_nodelay(true)?;
            socket.set_write_timeout(Some(WRITE_LOOK))?;
        }
        let state = LinkState { fault: Fault::None, passed: [0; 2], cut_at: 0, over: false };
        let link = Arc::new(Self { receiver, source, state: Mutex::new(state), changed: Condvar::new() });
        link.set_fault(fault);
        for direction in [Direction::ToReceiver, Direction::ToSource] {
            let link = link.clone();
            thread::spawn(move || link.pump(direction));
        }
        Ok(link)
    }

    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_fault(&self, fault: Fault) {
        let mut state = self.state();
        state.fault = fault;
        let mut at_once = None;
        if let Fault::CutAfter { direction, bytes, ending } = fault {
            state.cut_at = state.passed[direction as usize] + bytes;
            at_once = (bytes == 0).then_some(ending);
        }
        drop(state);
        self.changed.notify_all();
        if let Some(ending) = at_once {
            self.end(ending);
        }
    }

    fn end(&self, ending: Ending) {
        if std::mem::replace(&mut self.state().over, true) {
            return;
        }
        for socket in [&self.receiver, &self.source] {
            // Fails only for a peer that has gone already.
            let _ = match ending {
                Ending::Close => socket.shutdown(Shutdown::Both),
                // Wakes the thread that reads without saying anything to the peer. When both threads have ended the
                // sockets close, and without lingering that is a reset.
                Ending::Reset => SockRef::from(socket)
                    .set_linger(Some(Duration::ZERO))
                    .and_then(|()| socket.shutdown(Shutdown::Read)),
            };
        }
        self.changed.notify_all();
    }

    /// The body of the thread of one direction.
    fn pump(&self, direction: Direction) {
        let (mut from, to) = match direction {
            Direction::ToReceiver => (&self.source, &self.receiver),
            Direction::ToSource => (&self.receiver, &self.source),
        };
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => {
                    if !self.deliver(direction, to, &buffer[..read]) {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return self.end(Ending::Reset),
            }
        }
        // The end of a stream is held back like its bytes.
        if self.turn(direction).is_some() {
            let _ = to.shutdown(Shutdown::Write);
        }
    }

    /// Passes bytes on as the faults let them; false when the connection is over.
    fn deliver(&self, direction: Direction, to: &TcpStream, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let Some(most) = self.turn(direction) else { return false };
            let (now, later) = bytes.split_at(most.min(bytes.len()));
            if !self.write(to, now) {
                self.end(Ending::Close);
                return false;
            }
            bytes = later;
            self.count(direction, now.len());
        }
        true
    }

    /// Waits until bytes may pass that way, and says how many at once; `None` when the connection is over.
    fn turn(&self, direction: Direction) -> Option<usize> {
        let mut state = self.state();
        while !state.over {
            let fault = state.fault;
            let (pause, most) = match fault {
                Fault::Blackout => (Duration::MAX, 0),
                Fault::Silence(silent) if silent == direction => (Duration::MAX, 0),
                Fault::Drip { direction: slow, bytes, pause } if slow == direction => (pause, bytes),
                Fault::Latency(delay) => (delay, usize::MAX),
                Fault::CutAfter { direction: cut, .. } if cut == direction => {
                    let left = state.cut_at.saturating_sub(state.passed[direction as usize]);
                    return Some(usize::try_from(left).unwrap_or(usize::MAX));
                }
                _ => return Some(usize::MAX),
            };
            let began = Instant::now();
            while !state.over && state.fault == fault {
                let left = pause.saturating_sub(began.elapsed());
                if left.is_zero() {
                    return Some(most);
                }
                state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        None
    }

    fn write(&self, mut to: &TcpStream, mut bytes: &[u8]) -> bool {
        use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
        while !bytes.is_empty() {
            match to.write(bytes) {
                Ok(0) => return false,
                Ok(written) => bytes = &bytes[written..],
                Err(error) if matches!(error.kind(), WouldBlock | TimedOut | Interrupted) => {
                    if self.state().over {
                        return false;
                    }
                }
                Err(_) => return false,
            }
        }
        true
    }

    /// Counts what has passed, and ends the connection where that is due.
    fn count(&self, direction: Direction, bytes: usize) {
        let mut state = self.state();
        state.passed[direction as usize] += bytes as u64;
        let cut = match state.fault {
            Fault::CutAfter { direction: cut, ending, .. }
                if cut == direction && state.passed[direction as usize] >= state.cut_at =>
            {
                Some(ending)
            }
            _ => None,
        };
        drop(state);
        if let Some(ending) = cut {
            self.end(ending);
        }
    }
}
