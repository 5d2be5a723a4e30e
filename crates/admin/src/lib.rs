//! The HTTP endpoints for operators: `/status`, `/metrics`, `/healthz`, `/livez`.
//!
//! One OS thread with a single-threaded tokio runtime serves them, because they are asked a few times a minute and the
//! process promises to stay small. They only read [`DaemonMonitor`], and nothing here can hold up a receiver for longer
//! than a copy of its positions; what an operator changes on the page is done by a thread of its own. Every request gets a connection of its own, bounded in size and time; who listens to a page
//! stays longer, in a room of its own.
//!
//! The same thread takes the samples of the last hour, every ten seconds.
//!
//! | file | noun |
//! |---|---|
//! | `mod.rs` | [`AdminServer`]: listener, thread, limits |
//! | `access/` | who may ask, and who may change something: users, and whoever may read the data folder; what a form is checked by |
//! | `pages.rs`, `asked.rs` | what each path answers, and from what |
//! | `deed/` | [`Deed`]: what can be changed, and [`Controls`], who does it; from a form to what happened |
//! | `fields.rs` | the fields of a form |
//! | `tools.rs` | `/v1/quorum`, `/v1/durable`: what failover tools ask |
//! | `promote.rs` | `POST /v1/promote`: what they have done |
//! | `page/` | the web page |
//! | `connection.rs` | `Connection`: what a request knows of the connection that it came by |
//! | `large_answer.rs` | an answer of many megabytes, made once for all who ask at a time |
//! | `metrics/` | the metrics, as OpenMetrics text: families, each with its name, unit and help; in which format a request gets them |
//! | `address.rs` | [`AddressFile`]: how `binlogd status` finds the server of a data folder |

#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::panic, clippy::unwrap_used))]
#![allow(
    clippy::disallowed_methods,
    reason = "people and programs ask, in real time; the file with the address is this module's"
)]

mod access;
mod address;
mod asked;
mod connection;
mod deed;
mod fields;
mod large_answer;
mod metrics;
mod page;
mod pages;
mod promote;
mod tools;

pub use address::{ADDRESS_FILE, AddressFile, DATA_DIR_HEADER, DATA_DIR_UNTOLD, LEVEL_HEADER, reachable};
pub use deed::{Controls, Deed, NotPromoted, PromoteAsked};
pub use metrics::text as metrics_text;

use access::Access;
use axum::extract::Request;
use config::AdminConfig;
use connection::Connection;
use deed::desk::Desk;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use status::{DaemonMonitor, SAMPLE_INTERVAL};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, oneshot};
use tokio_rustls::TlsAcceptor;
use wire::{Secret, ServerTls, TlsError};

/// Connections served at once. More of them wait in the kernel's queue.
const CONNECTIONS_MAX: u32 = 32;
/// Longest time for one connection: request, answer and close.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(10);
/// Longest time for one that listens to a page. Its browser comes again by itself; one that is gone without a word does not.
const LISTENING_TIME_MAX: Duration = Duration::from_secs(600);
/// Longest time until a request's headers are complete.
const HEADER_TIME_MAX: Duration = Duration::from_secs(3);
/// Most bytes buffered for a connection; a request line with headers above it is refused.
const REQUEST_BYTES_MAX: usize = 16 * 1024;
/// Most header fields of a request.
const REQUEST_HEADERS_MAX: usize = 64;
/// Longest time that [`AdminServer::shutdown`] lets answers in progress finish.
const SHUTDOWN_TIME_MAX: Duration = Duration::from_secs(1);
/// Pause after a failed accept, such as too many open files, so that the thread does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Why the admin server did not start.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The address cannot be listened on: in use, not of this machine, or reserved.
    #[error(
        "cannot listen on {address} for status and metrics: {error}. Choose another address with the key `listen` in \
         section [admin]"
    )]
    Listen {
        /// The address of the configuration.
        address: SocketAddr,
        /// The operating system's reason.
        #[source]
        error: io::Error,
    },
    /// The certificate cannot be used.
    #[error("[admin]: {0}")]
    Tls(#[source] TlsError),
    /// The system has no random numbers.
    #[error("cannot make a token for this machine: {0}")]
    Token(getrandom::Error),
    /// The operating system refused a thread or an event queue.
    #[error("cannot start the thread for status and metrics: {0}")]
    Thread(#[source] io::Error),
}

/// A running server. Dropping it stops listening, lets answers in progress finish for at most a second, and waits for the
/// thread.
pub struct AdminServer {
    local_addr: SocketAddr,
    /// The door for this machine, and the token that is asked for there.
    door: Option<(SocketAddr, Secret)>,
    access: Arc<Access>,
    /// Of the address that is listened on.
    tls: SharedTls,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl AdminServer {
    /// Listens on `listen`, for whoever reaches it, and serves from a thread of its own. With port 0 the system chooses the port.
    #[cfg(any(test, feature = "testing"))]
    pub fn start(listen: SocketAddr, monitor: Arc<DaemonMonitor>) -> Result<AdminServer, AdminError> {
        let config = AdminConfig { listen: Some(listen), tls: None, write: false, users: Vec::new() };
        AdminServer::start_with(listen, &config, monitor, Arc::new(testing::Nothing))
    }

    /// Listens on `listen` and serves from a thread of its own. With port 0 the system chooses the port. Where TLS or a login is
    /// wanted there, a second port on the loopback address is for whoever may read the data folder.
    pub fn start_with(
        listen: SocketAddr,
        config: &AdminConfig,
        monitor: Arc<DaemonMonitor>,
        controls: Arc<dyn Controls>,
    ) -> Result<AdminServer, AdminError> {
        let tls = acceptor(config)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(AdminError::Thread)?;
        let has_door = tls.is_some() || !config.users.is_empty();
        let tls: SharedTls = Arc::new(RwLock::new(tls));
        let front = Entrance::open(&runtime, listen, tls.clone(), false)?;
        let local_addr = front.address;
        let mut entrances = vec![front];
        let mut door = None;
        if has_door {
            let loopback = SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, 0));
            let entrance = Entrance::open(&runtime, loopback, SharedTls::default(), true)?;
            door = Some((entrance.address, token()?));
            entrances.push(entrance);
        }
        let token = door.as_ref().map(|(_, token)| token.clone());
        let access = Arc::new(Access::new(config, local_addr.ip().is_loopback(), token));
        let router =
            pages::router(monitor.clone(), access.clone(), Desk::new(controls).map_err(AdminError::Token)?);
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("admin".to_owned())
            .spawn(move || runtime.block_on(serve(entrances, monitor, router, stopped)))
            .map_err(AdminError::Thread)?;
        Ok(AdminServer { local_addr, door, access, tls, stop: Some(stop), thread: Some(thread) })
    }

    /// Another certificate, other users and rights, for connections from now on. Gives the keys that need a restart: whether TLS
    /// or a login is asked for at all, because without either there is no door for this machine. Rights that are taken away are
    /// taken away at once.
    ///
    /// # Errors
    /// When the certificate cannot be used: then everything stays as it was.
    pub fn reload(&self, config: &AdminConfig) -> Result<Vec<&'static str>, AdminError> {
        let tls = acceptor(config)?;
        let mut restart = Vec::new();
        {
            let mut shown = self.tls.write().unwrap_or_else(PoisonError::into_inner);
            match tls.is_some() == shown.is_some() {
                true => *shown = tls,
                false => restart.push("admin.tls_cert"),
            }
        }
        if self.access.has_users() != config.users.is_empty() {
            self.access.set(config);
        } else {
            restart.push("admin.user");
            if !config.write {
                self.access.take_write();
            }
        }
        Ok(restart)
    }

    /// Where `binlogd status` of this machine asks, and the token that it must show there, if it must.
    pub fn for_this_machine(&self) -> (SocketAddr, Option<&Secret>) {
        match &self.door {
            Some((address, token)) => (*address, Some(token)),
            None => (self.local_addr, None),
        }
    }

    /// The address listened on, with the port that the system chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // Fails only when the thread has already ended.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread for status and metrics had panicked");
        }
    }
}

/// A certificate that a reload can change; `None` without TLS.
type SharedTls = Arc<RwLock<Option<TlsAcceptor>>>;

fn acceptor(config: &AdminConfig) -> Result<Option<TlsAcceptor>, AdminError> {
    let tls = config.tls.as_ref().map(|(cert, key)| ServerTls::load(cert, key)).transpose();
    Ok(tls.map_err(AdminError::Tls)?.map(|tls| TlsAcceptor::from(tls.config())))
}

/// A port.
struct Entrance {
    listener: tokio::net::TcpListener,
    address: SocketAddr,
    tls: SharedTls,
    is_door: bool,
}

impl Entrance {
    fn open(
        runtime: &tokio::runtime::Runtime,
        listen: SocketAddr,
        tls: SharedTls,
        is_door: bool,
    ) -> Result<Entrance, AdminError> {
        let in_listen = |error| AdminError::Listen { address: listen, error };
        let listener = TcpListener::bind(listen).map_err(in_listen)?;
        listener.set_nonblocking(true).map_err(in_listen)?;
        let address = listener.local_addr().map_err(in_listen)?;
        let _context = runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener).map_err(AdminError::Thread)?;
        Ok(Entrance { listener, address, tls, is_door })
    }
}

/// 256 random bits in hexadecimal digits.
fn token() -> Result<Secret, AdminError> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(AdminError::Token)?;
    Ok(Secret::new(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()))
}

async fn serve(
    entrances: Vec<Entrance>,
    monitor: Arc<DaemonMonitor>,
    router: axum::Router,
    stopped: oneshot::Receiver<()>,
) {
    let sampling = tokio::spawn(take_samples(monitor));
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX as usize));
    let accepting: Vec<_> = entrances
        .into_iter()
        .map(|entrance| tokio::spawn(accept(entrance, router.clone(), slots.clone())))
        .collect();
    // An error means that the handle is gone, which asks for the same.
    let _ = stopped.await;
    accepting.iter().for_each(tokio::task::JoinHandle::abort);
    sampling.abort();
    // All slots are free once no connection is left. After the timeout the runtime's end cuts what remains.
    let _ = tokio::time::timeout(SHUTDOWN_TIME_MAX, slots.acquire_many(CONNECTIONS_MAX)).await;
}

async fn take_samples(monitor: Arc<DaemonMonitor>) {
    let mut looks = tokio::time::interval(SAMPLE_INTERVAL);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        monitor.take_samples(jiff::Timestamp::now());
    }
}

async fn accept(entrance: Entrance, router: axum::Router, slots: Arc<Semaphore>) {
    // The semaphore is never closed.
    while let Ok(slot) = slots.clone().acquire_owned().await {
        match entrance.listener.accept().await {
            Ok((stream, peer)) => {
                let tls = entrance.tls.read().unwrap_or_else(PoisonError::into_inner).clone();
                let connection = Connection::new(peer, entrance.is_door, tls.is_some(), slot);
                let router = router.clone();
                tokio::spawn(async move {
                    let mut served = pin!(enter(stream, tls, router, connection.clone()));
                    // A broken or slow client is its own problem; there is nothing to report.
                    if tokio::time::timeout(CONNECTION_TIME_MAX, &mut served).await.is_err()
                        && connection.is_listening()
                    {
                        let _ = tokio::time::timeout(LISTENING_TIME_MAX, served).await;
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection for status and metrics");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Encrypts first, where that is wanted. A client that cannot is its own problem.
async fn enter(
    stream: tokio::net::TcpStream,
    tls: Option<TlsAcceptor>,
    router: axum::Router,
    connection: Connection,
) {
    let _ = match tls {
        None => serve_connection(stream, router, connection).await,
        Some(tls) => match tls.accept(stream).await {
            Ok(stream) => serve_connection(stream, router, connection).await,
            Err(_) => return,
        },
    };
}

/// Serves one request and closes. Without keep-alive an idle client holds no slot.
async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    router: axum::Router,
    connection: Connection,
) -> hyper::Result<()> {
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(connection.clone());
        TowerToHyperService::new(router.clone()).call(request)
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME_MAX)
        .max_buf_size(REQUEST_BYTES_MAX)
        .max_headers(REQUEST_HEADERS_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

#[cfg(any(test, feature = "testing"))]
mod testing {
    //! What stands in for a daemon in tests.

    use super::{Controls, Deed, NotPromoted, PromoteAsked};

    /// Carries nothing out.
    pub(crate) struct Nothing;

    impl Controls for Nothing {
        fn ask_nodes(&self, _: &str) -> Vec<(Option<String>, Result<quorum::Reply, String>)> {
            Vec::new()
        }

        fn carry_out(&self, _: &str, _: &Deed, _: &str) -> Result<String, String> {
            Err("nothing can be done here".to_owned())
        }

        fn promote(&self, _: &str, _: &PromoteAsked, _: &str) -> Result<serde_json::Value, NotPromoted> {
            Err(NotPromoted::Refused("nothing can be done here".to_owned()))
        }
    }
}
#[cfg(test)]
mod tests;
