//! The port for readers: who is let in, and what each connection gets.

use super::session;
use super::shared::{Rules, Shared, refuse};
use super::users::Users;
use crate::config::ServeConfig;
use rustix::event::{PollFd, PollFlags, poll};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wire::ServerTls;

/// Stack of a connection's thread, in bytes: only what is touched takes memory.
const STACK_BYTES: usize = 512 << 10;

/// Pause after a failed accept, such as too many open files, so that the thread does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Longest wait for the connections at the end.
const END_MAX: Duration = Duration::from_secs(2);

/// Why readers are not served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    /// The address cannot be listened on: in use, not of this machine, or reserved.
    #[error(
        "cannot listen on {address} for readers: {error}. Choose another address with the key `listen` in section [serve], \
         or with --serve"
    )]
    Listen {
        /// The address of the configuration.
        address: SocketAddr,
        /// The operating system's reason.
        #[source]
        error: io::Error,
    },
    /// The certificate cannot be used.
    #[error("[serve]: {0}")]
    Tls(#[from] wire::TlsError),
    /// The operating system refused a thread.
    #[error("cannot start the thread for readers: {0}")]
    Thread(#[source] io::Error),
}

/// A running listener. Dropping it ends all connections.
pub(crate) struct ServeServer {
    shared: Arc<Shared>,
    local_addr: SocketAddr,
    /// Closed to end the thread.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

fn rules(config: &ServeConfig, users: Users) -> Result<Arc<Rules>, ServeError> {
    let tls = match &config.tls {
        Some((cert, key)) => Some(ServerTls::load(cert, key)?),
        None => None,
    };
    Ok(Arc::new(Rules { config: config.clone(), users, tls }))
}

impl ServeServer {
    /// Listens, and serves each connection from a thread of its own. With port 0 the system chooses the port.
    ///
    /// # Errors
    /// When the address or the certificate cannot be had.
    pub(crate) fn start(
        listen: SocketAddr,
        config: &ServeConfig,
        users: Users,
    ) -> Result<ServeServer, ServeError> {
        let in_listen = |error| ServeError::Listen { address: listen, error };
        let rules = rules(config, users)?;
        let listener = TcpListener::bind(listen).map_err(in_listen)?;
        listener.set_nonblocking(true).map_err(in_listen)?;
        let local_addr = listener.local_addr().map_err(in_listen)?;
        let shared = Arc::new(Shared::new(rules, local_addr));
        let (stop, stopped) = UnixStream::pair().map_err(ServeError::Thread)?;
        let for_thread = shared.clone();
        let thread = std::thread::Builder::new()
            .name("serve".to_owned())
            .spawn(move || accept(&listener, &stopped, &for_thread))
            .map_err(ServeError::Thread)?;
        Ok(ServeServer { shared, local_addr, stop: Some(stop), thread: Some(thread) })
    }

    /// The address listened on, with the port that the system chose.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// What the connections share.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Other users, limits and certificates, for connections from now on. Those that there are stay.
    ///
    /// # Errors
    /// When the certificate cannot be used: then everything stays as it was.
    pub(crate) fn reload(&self, config: &ServeConfig, users: Users) -> Result<(), ServeError> {
        let rules = rules(config, users)?;
        self.shared.set_rules(rules);
        Ok(())
    }
}

impl Drop for ServeServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread for readers had panicked");
        }
        self.shared.end_all();
        let deadline = Instant::now() + END_MAX;
        while self.shared.connections() > 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
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
    let max = rules.config.max_connections as usize;
    let (counted, connections) = shared.count();
    if connections > max {
        return refuse(&socket, 1040, "08004", "Too many connections");
    }
    if shared.failed_logins.refuses(address.ip(), rules.config.max_failed_logins, Instant::now()) {
        let message =
            format!("Host '{}' is blocked because of many failed logins; wait a minute", address.ip());
        return refuse(&socket, 1129, "HY000", &message);
    }
    let id = shared.next_id();
    let for_thread = shared.clone();
    let begun =
        std::thread::Builder::new().name(format!("reader-{id}")).stack_size(STACK_BYTES).spawn(move || {
            session::run(&for_thread, &rules, socket, address, id);
            drop(counted);
        });
    if let Err(error) = begun {
        tracing::warn!(%address, "no thread for a reader: {error}");
    }
}
