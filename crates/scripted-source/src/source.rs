//! The listener, its threads, and what was received.

use crate::dump::{Acknowledgement, Dump};
use crate::log::{Place, SourceLog};
use crate::login;
use crate::script::{Fault, FaultKind, Load, Script, SemiSync};
use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A running source. Dropping it closes every connection.
#[derive(Debug)]
pub struct ScriptedSource {
    port: u16,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

impl ScriptedSource {
    /// Listens on a free port of 127.0.0.1 and follows `script`.
    ///
    /// # Errors
    /// When there is no port or no thread to be had.
    pub fn start(script: Script) -> io::Result<ScriptedSource> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared::new(script));
        let for_thread = shared.clone();
        let thread = std::thread::Builder::new()
            .name("scripted-source".to_owned())
            .spawn(move || accept(&listener, &for_thread))?;
        Ok(ScriptedSource { port, shared, listener: Some(thread) })
    }

    /// TCP port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Lets `write` append to the log, and sends what is new to every dump.
    pub fn append<R>(&self, write: impl FnOnce(&mut SourceLog) -> R) -> R {
        let result = write(&mut self.shared.log());
        self.shared.log_changed.notify_all();
        result
    }

    /// Reads the log.
    pub fn log<R>(&self, read: impl FnOnce(&SourceLog) -> R) -> R {
        read(&self.shared.log())
    }

    /// Puts another log in the place of the present one and disconnects everybody: RESET BINARY LOGS AND GTIDS, a
    /// failover, or a restored server.
    pub fn replace_log(&self, log: SourceLog) {
        *self.shared.log() = log;
        self.shared.epoch.fetch_add(1, Ordering::AcqRel);
        self.disconnect();
    }

    /// Closes every connection. New ones are let in.
    pub fn disconnect(&self) {
        for socket in self.shared.state().sockets.drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
        self.shared.log_changed.notify_all();
    }

    /// Dumps that were asked for, short looks that ask not to wait left out.
    pub fn dumps(&self) -> usize {
        self.shared.state().dumps
    }

    /// Every query that was received, in order.
    pub fn queries(&self) -> Vec<String> {
        self.shared.state().queries.clone()
    }

    /// Every acknowledgement that was received, in order; those that a [`Load`] took are not among them.
    pub fn acknowledgements(&self) -> Vec<Acknowledgement> {
        self.shared.state().acknowledgements.clone()
    }

    /// Waits until `place`, or a later one in its file, was acknowledged; false when `timeout` has passed before.
    pub fn wait_for_acknowledgement(&self, place: &Place, timeout: Duration) -> bool {
        self.wait(timeout, |state| {
            let covers = |seen: &Place| seen.file == place.file && seen.position >= place.position;
            state.acknowledgements.iter().any(|acknowledgement| covers(&acknowledgement.place))
        })
    }

    /// Waits until that many dumps were asked for; false when `timeout` has passed before.
    pub fn wait_for_dumps(&self, count: usize, timeout: Duration) -> bool {
        self.wait(timeout, |state| state.dumps >= count)
    }

    fn wait(&self, timeout: Duration, done: impl Fn(&State) -> bool) -> bool {
        let deadline = Instant::now() + timeout;
        let mut state = self.shared.state();
        while !done(&state) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state =
                self.shared.state_changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl Drop for ScriptedSource {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
        self.disconnect();
        // A connection of our own wakes the listener.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(thread) = self.listener.take() {
            let _ = thread.join();
        }
        self.disconnect();
    }
}

/// What the threads of a source share. Two locks, never held together except state inside log.
#[derive(Debug)]
pub(crate) struct Shared {
    log: Mutex<SourceLog>,
    /// With `log`: it has grown, or a connection has ended.
    pub(crate) log_changed: Condvar,
    state: Mutex<State>,
    state_changed: Condvar,
    pub(crate) semi_sync: SemiSync,
    /// In the place of the log's own.
    pub(crate) variables: HashMap<String, String>,
    /// Counts the logs that were put in place.
    pub(crate) epoch: AtomicU64,
    stopped: AtomicBool,
}

#[derive(Default)]
struct State {
    faults: Vec<Fault>,
    load: Option<Box<dyn Load>>,
    dumps: usize,
    queries: Vec<String>,
    acknowledgements: Vec<Acknowledgement>,
    sockets: Vec<TcpStream>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("faults", &self.faults)
            .field("dumps", &self.dumps)
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn new(script: Script) -> Shared {
        Shared {
            log: Mutex::new(script.log),
            log_changed: Condvar::new(),
            state: Mutex::new(State { faults: script.faults, load: script.load, ..State::default() }),
            state_changed: Condvar::new(),
            semi_sync: script.semi_sync,
            variables: script.variables,
            epoch: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
        }
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, SourceLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn record_query(&self, sql: String) {
        self.state().queries.push(sql);
    }

    pub(crate) fn record_acknowledgement(&self, acknowledgement: Acknowledgement) {
        self.state().acknowledgements.push(acknowledgement);
        self.state_changed.notify_all();
    }

    /// Counts a dump; gives its number, from 0 on.
    pub(crate) fn count_dump(&self) -> usize {
        let mut state = self.state();
        state.dumps += 1;
        self.state_changed.notify_all();
        state.dumps - 1
    }

    /// Takes out the fault for this place, if there is one.
    pub(crate) fn take_fault(&self, dump: usize, file: &str, event: usize) -> Option<FaultKind> {
        let mut state = self.state();
        let here = |fault: &Fault| fault.dump == dump && fault.event == event && fault.file == file;
        let index = state.faults.iter().position(here)?;
        Some(state.faults.remove(index).kind)
    }

    pub(crate) fn take_load(&self) -> Option<Box<dyn Load>> {
        self.state().load.take()
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for socket in listener.incoming() {
        if shared.stopped.load(Ordering::Acquire) {
            return;
        }
        let Ok(socket) = socket else { continue };
        let Ok(registered) = socket.try_clone() else { continue };
        shared.state().sockets.push(registered);
        let shared = shared.clone();
        // A connection that ends in an error is one that the receiver, or a fault, has ended.
        let serve = move || drop(serve(socket, &shared));
        let _ = std::thread::Builder::new().name("scripted-session".to_owned()).spawn(serve);
    }
}

fn serve(mut socket: TcpStream, shared: &Arc<Shared>) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let served = match login::serve(&mut socket, shared)? {
        Some((introduction, request)) => {
            Dump::new(socket.try_clone()?, shared.clone(), &introduction, &request).run(request.from)
        }
        None => Ok(()),
    };
    // The list of sockets keeps the connection open otherwise.
    let _ = socket.shutdown(Shutdown::Both);
    served
}
