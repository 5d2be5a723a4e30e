//! A connection, as a request on it knows it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OwnedSemaphorePermit;

/// A connection, as a request on it knows it.
#[derive(Clone, Debug)]
pub(crate) struct Connection(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    peer: SocketAddr,
    by_door: bool,
    is_encrypted: bool,
    /// Its place among those that ask one thing and go.
    slot: Mutex<Option<OwnedSemaphorePermit>>,
    listens: AtomicBool,
}

impl Connection {
    /// One that was accepted; `by_door` at the address for this machine.
    pub(crate) fn new(
        peer: SocketAddr,
        by_door: bool,
        is_encrypted: bool,
        slot: OwnedSemaphorePermit,
    ) -> Connection {
        Connection(Arc::new(Inner {
            peer,
            by_door,
            is_encrypted,
            slot: Mutex::new(Some(slot)),
            listens: AtomicBool::new(false),
        }))
    }

    /// Who is there.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.0.peer
    }

    /// Whether it came by the door for this machine.
    pub(crate) fn is_by_door(&self) -> bool {
        self.0.by_door
    }

    /// Whether it is by TLS.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.0.is_encrypted
    }

    /// It stays to listen, and leaves its place to others.
    pub(crate) fn listens(&self) {
        self.0.listens.store(true, Ordering::Relaxed);
        drop(self.0.slot.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Whether it does.
    pub(crate) fn is_listening(&self) -> bool {
        self.0.listens.load(Ordering::Relaxed)
    }
}
