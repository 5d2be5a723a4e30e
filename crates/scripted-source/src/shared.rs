//! What the threads of a source share.

use crate::log::Place;
use crate::peer::{Heard, Malformed, Peer};
use crate::script::Script;
use std::net::TcpStream;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An acknowledgement that the replica has sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Up to where.
    pub place: Place,
    /// When it was read from the socket.
    pub arrived: Instant,
}

/// What is said, and what was heard.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) script: Script,
    pub(crate) queries: Vec<String>,
    pub(crate) acknowledgements: Vec<Acknowledgement>,
    /// What the places acknowledge at which semi-sync dumps began.
    pub(crate) implied: Vec<Place>,
    /// Every open connection.
    pub(crate) sockets: Vec<TcpStream>,
    pub(crate) is_stopped: bool,
}

/// One lock, and one signal for every change behind it.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    pub(crate) fn new(script: Script) -> Shared {
        Shared { state: Mutex::new(State { script, ..State::default() }), changed: Condvar::new() }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes something, and tells everybody who waits.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = change(&mut self.state());
        self.changed.notify_all();
        result
    }

    /// Waits for a change, but no longer than that.
    pub(crate) fn wait<'a>(&self, state: MutexGuard<'a, State>, longest: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, longest).unwrap_or_else(PoisonError::into_inner).0
    }
}

impl State {
    /// Lets `peer` hear what its client says, and keeps it; true when the client asks for a dump.
    pub(crate) fn listen(&mut self, peer: &mut Peer, bytes: &[u8]) -> Result<bool, Malformed> {
        let arrived = Instant::now();
        let mut is_asked = false;
        for heard in peer.take(bytes, &mut self.script)? {
            match heard {
                Heard::Query(sql) => self.queries.push(sql),
                Heard::Dump { implied, .. } => {
                    is_asked = true;
                    self.implied.extend(implied);
                }
                Heard::Acknowledged(place) => self.acknowledgements.push(Acknowledgement { place, arrived }),
            }
        }
        Ok(is_asked)
    }
}
