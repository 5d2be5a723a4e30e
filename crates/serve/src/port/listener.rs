//! The port for readers: who is let in, and what each connection gets.

use super::certificate::Shown;
use super::error::ServeError;
use super::limits::STACK_BYTES;
use super::refusals::Reason;
use super::session;
use super::shared::{Rules, Shared, refuse};
use super::users::Users;
use crate::history::size_watch;
use binlog::storage::Storage;
use config::ServeConfig;
use rustix::event::{PollFd, PollFlags, poll};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Pause after a failed accept, such as too many open files, so that the thread does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Longest wait for the connections at the end.
const END_MAX: Duration = Duration::from_secs(2);

/// How often it is looked whether they have ended.
const END_LOOK: Duration = Duration::from_millis(5);

/// A running listener. Dropping it ends all connections.
pub struct ServeServer {
    shared: Arc<Shared>,
    local_addr: SocketAddr,
    place: Place,
    /// Closed to end the threads.
    stop: Option<UnixStream>,
    threads: Vec<JoinHandle<()>>,
}

/// Where a port is, and where its certificate is kept.
#[derive(Debug, Clone)]
pub struct Place {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The disk.
    pub storage: Arc<dyn Storage>,
    /// The data folder.
    pub data_dir: PathBuf,
}

impl Place {
    fn rules(&self, config: &ServeConfig, users: Users) -> Result<Arc<Rules>, ServeError> {
        let tls = Shown::of(config, self.listen, &*self.storage, &self.data_dir)?;
        Ok(Arc::new(Rules { config: config.clone(), users, tls }))
    }
}

impl ServeServer {
    /// Listens, and serves each connection from a thread of its own. With port 0 the system chooses the port. There are
    /// descriptors for `room` readers.
    ///
    /// # Errors
    /// When the address or the certificate cannot be had.
    pub fn start(
        place: Place,
        config: &ServeConfig,
        users: Users,
        room: u32,
    ) -> Result<ServeServer, ServeError> {
        let in_listen = |error| ServeError::Listen { address: place.listen, error };
        let listener = TcpListener::bind(place.listen).map_err(in_listen)?;
        listener.set_nonblocking(true).map_err(in_listen)?;
        let local_addr = listener.local_addr().map_err(in_listen)?;
        let shared = Arc::new(Shared::new(place.rules(config, users)?, local_addr, room));
        let (stop, stopped) = UnixStream::pair().map_err(ServeError::Thread)?;
        let also_stopped = stopped.try_clone().map_err(ServeError::Thread)?;
        let for_thread = shared.clone();
        let accepts = move || accept(&listener, &stopped, &for_thread);
        let for_thread = shared.clone();
        let looks = move || size_watch::keep(&for_thread, &also_stopped);
        let mut server = ServeServer { shared, local_addr, place, stop: Some(stop), threads: Vec::new() };
        server.spawn("serve", accepts)?;
        server.spawn("serve-sizes", looks)?;
        Ok(server)
    }

    fn spawn(&mut self, name: &str, does: impl FnOnce() + Send + 'static) -> Result<(), ServeError> {
        let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(does);
        self.threads.push(spawned.map_err(ServeError::Thread)?);
        Ok(())
    }

    /// The address listened on, with the port that the system chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// What the connections share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Other users, limits and certificates, for connections from now on. Those that there are stay.
    ///
    /// # Errors
    /// When the certificate cannot be used: then everything stays as it was.
    pub fn reload(&self, config: &ServeConfig, users: Users) -> Result<(), ServeError> {
        self.shared.set_rules(self.place.rules(config, users)?);
        self.shared.end_what_is_bound_otherwise();
        Ok(())
    }
}

impl Drop for ServeServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        let deadline = Instant::now() + END_MAX;
        // One of them may wait for a disk that does not answer.
        while self.threads.iter().any(|thread| !thread.is_finished()) && Instant::now() < deadline {
            std::thread::sleep(END_LOOK);
        }
        for thread in self.threads.drain(..).filter(JoinHandle::is_finished) {
            if thread.join().is_err() {
                tracing::error!("a thread for readers had panicked");
            }
        }
        self.shared.end_all();
        while self.shared.connections() > 0 && Instant::now() < deadline {
            std::thread::sleep(END_LOOK);
        }
    }
}

fn accept(listener: &TcpListener, stopped: &UnixStream, shared: &Arc<Shared>) {
    loop {
        let mut wanted = [PollFd::new(listener, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        // Fails for a signal only, which another thread takes.
        let _ = poll(&mut wanted, None);
        if !wanted[1].revents().is_empty() {
            return;
        }
        match listener.accept() {
            Ok((socket, address)) => begin(socket, address, shared),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                tracing::warn!("a reader could not be accepted: {error}");
                std::thread::sleep(ACCEPT_PAUSE);
            }
        }
    }
}

fn begin(socket: TcpStream, address: SocketAddr, shared: &Arc<Shared>) {
    let rules = shared.rules();
    let readers = shared.readers_max(&rules);
    let strangers = ServeConfig::strangers_beside(readers);
    let (counted, connections) = shared.count();
    // Who was sent away may not be gone yet: their descriptors are counted for twice as many.
    if shared.readers.count() >= readers as usize || connections > (readers + 2 * strangers) as usize {
        let why = format!("there are as many connections as there may be ({readers}, max_connections)");
        shared.refusals.refused(Reason::TooManyConnections, address, &why);
        return refuse(&socket, 1040, "08004", "Too many connections");
    }
    if shared.failed_logins.refuses(address.ip(), rules.config.max_failed_logins, Instant::now()) {
        let message =
            format!("Host '{}' is blocked because of many failed logins; wait a minute", address.ip());
        shared.refusals.refused(Reason::Blocked, address, &message);
        return refuse(&socket, 1129, "HY000", &message);
    }
    let id = shared.next_id();
    let Ok(closer) = socket.try_clone() else {
        return shared.refusals.refused(Reason::NoResources, address, "there is no file descriptor for it");
    };
    let displaced = shared.strangers.come(id, address, closer.into(), strangers as usize);
    if let Some(displaced) = displaced {
        let why = "it had not logged in when others wanted to, and there is room for only so many at a time";
        shared.refusals.refused(Reason::Displaced, displaced, why);
    }
    let for_thread = shared.clone();
    let begun =
        std::thread::Builder::new().name(format!("reader-{id}")).stack_size(STACK_BYTES).spawn(move || {
            session::run(&for_thread, &rules, socket, address, id);
            drop(counted);
        });
    if let Err(error) = begun {
        shared.strangers.forget(id);
        shared.refusals.refused(Reason::NoResources, address, &format!("there is no thread for it: {error}"));
    }
}
