//! The listener, its threads, and what was received.

use crate::dump::{Dump, Load};
use crate::log::{Place, SourceLog};
use crate::script::Script;
use crate::shared::{Acknowledgement, Shared, State};
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What takes over the first dump that has been sent all that was there.
type LoadSlot = Mutex<Option<Box<dyn Load>>>;

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
        Self::run(script, None)
    }

    /// As [`start`](Self::start); `load` takes over the first dump that has been sent all that was there.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with(script: Script, load: impl Load + 'static) -> io::Result<ScriptedSource> {
        Self::run(script, Some(Box::new(load)))
    }

    fn run(script: Script, load: Option<Box<dyn Load>>) -> io::Result<ScriptedSource> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared::new(script));
        let (for_thread, load) = (shared.clone(), Arc::new(Mutex::new(load)));
        let thread = std::thread::Builder::new()
            .name("scripted-source".to_owned())
            .spawn(move || accept(&listener, &for_thread, &load))?;
        Ok(ScriptedSource { port, shared, listener: Some(thread) })
    }

    /// TCP port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Lets `write` append to the log, and sends what is new to every dump.
    pub fn append<R>(&self, write: impl FnOnce(&mut SourceLog) -> R) -> R {
        self.shared.change(|state| write(&mut state.script.log))
    }

    /// Reads the log.
    pub fn log<R>(&self, read: impl FnOnce(&SourceLog) -> R) -> R {
        read(&self.shared.state().script.log)
    }

    /// Puts another log in the place of the present one and disconnects everybody: RESET BINARY LOGS AND GTIDS, a
    /// failover, or a restored server.
    pub fn replace_log(&self, log: SourceLog) {
        self.shared.change(|state| {
            state.script.log = log;
            state.script.generation += 1;
        });
        self.disconnect();
    }

    /// The server is started again with another value of a variable: everybody is disconnected.
    pub fn restart_with(&self, name: &str, value: &str) {
        self.shared.change(|state| state.script.variables.insert(name.to_owned(), value.to_owned()));
        self.disconnect();
    }

    /// Closes every connection. New ones are let in.
    pub fn disconnect(&self) {
        self.shared.change(|state| {
            for socket in state.sockets.drain(..) {
                let _ = socket.shutdown(Shutdown::Both);
            }
        });
    }

    /// Dumps that were asked for, short looks that ask not to wait left out.
    pub fn dumps(&self) -> usize {
        self.shared.state().script.dumps
    }

    /// Every query that was received, in order.
    pub fn queries(&self) -> Vec<String> {
        self.shared.state().queries.clone()
    }

    /// Every acknowledgement that was received, in order; those that a [`Load`] took are not among them.
    pub fn acknowledgements(&self) -> Vec<Acknowledgement> {
        self.shared.state().acknowledgements.clone()
    }

    /// What the places acknowledge at which semi-sync dumps began, in order: a source takes them so.
    pub fn implied_acknowledgements(&self) -> Vec<Place> {
        self.shared.state().implied.clone()
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
        self.wait(timeout, |state| state.script.dumps >= count)
    }

    fn wait(&self, timeout: Duration, done: impl Fn(&State) -> bool) -> bool {
        let deadline = Instant::now() + timeout;
        let mut state = self.shared.state();
        while !done(&state) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.shared.wait(state, left);
        }
        true
    }
}

impl Drop for ScriptedSource {
    fn drop(&mut self) {
        self.shared.state().is_stopped = true;
        self.disconnect();
        // A connection of our own wakes the listener.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(thread) = self.listener.take() {
            let _ = thread.join();
        }
        self.disconnect();
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>, load: &Arc<LoadSlot>) {
    for socket in listener.incoming() {
        if shared.state().is_stopped {
            return;
        }
        let Ok(socket) = socket else { continue };
        let Ok(registered) = socket.try_clone() else { continue };
        shared.state().sockets.push(registered);
        let (shared, load) = (shared.clone(), load.clone());
        // A connection that ends in an error is one that the receiver, or a fault, has ended.
        let serve = move || drop(serve(socket, &shared, &load));
        let _ = std::thread::Builder::new().name("scripted-session".to_owned()).spawn(serve);
    }
}

fn serve(socket: TcpStream, shared: &Arc<Shared>, load: &LoadSlot) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let served = match Dump::accept(socket.try_clone()?, shared.clone()) {
        Ok(Some(dump)) => dump.run(|| load.lock().unwrap_or_else(PoisonError::into_inner).take()),
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    // The list of sockets keeps the connection open otherwise.
    let _ = socket.shutdown(Shutdown::Both);
    served
}
