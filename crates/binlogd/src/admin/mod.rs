//! The HTTP endpoints for operators: `/status`, `/metrics`, `/healthz`, `/livez`.
//!
//! One OS thread with a single-threaded tokio runtime serves them, because they are asked a few times a minute and the
//! process promises to stay small. They only read [`DaemonMonitor`], and nothing here can hold up a receiver for longer
//! than a copy of its positions. Every request gets a connection of its own, bounded in size and time; who listens to a page
//! stays longer, in a room of its own.
//!
//! The same thread takes the samples of the last hour, every ten seconds.
//!
//! | file | noun |
//! |---|---|
//! | `mod.rs` | [`AdminServer`]: listener, thread, limits |
//! | `access.rs` | who may ask: users, and whoever may read the data folder |
//! | `pages.rs` | what each path answers |
//! | `page/` | the web page |
//! | `connection.rs` | [`Connection`]: what a request knows of the connection that it came by |
//! | `large_answer.rs` | an answer of many megabytes, made once for all who ask at a time |
//! | `metrics.rs` | the metrics, as OpenMetrics text |
//! | `peers.rs` | the other binlogds of the sources, as metrics |
//! | `families.rs` | families of metrics, each with its name, unit and help |
//! | `format.rs` | in which format a request gets them |
//! | `address.rs` | [`AddressFile`]: how `binlogd status` finds the server of a data folder |

mod access;
mod address;
mod connection;
mod families;
mod format;
mod large_answer;
mod metrics;
mod page;
mod pages;
mod peers;
mod resources;
mod serving;
mod upkeep;

#[cfg(test)]
pub(crate) use address::ADDRESS_FILE;
pub(crate) use address::{AddressFile, DATA_DIR_HEADER, DATA_DIR_UNTOLD, reachable};
pub(crate) use metrics::text as metrics_text;

use crate::config::AdminConfig;
use crate::status::{DaemonMonitor, SAMPLE_INTERVAL};
use access::Access;
use axum::extract::Request;
use connection::Connection;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
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
pub(crate) enum AdminError {
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
pub(crate) struct AdminServer {
    local_addr: SocketAddr,
    /// The door for this machine, and the token that is asked for there.
    door: Option<(SocketAddr, Secret)>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl AdminServer {
    /// Listens on `listen`, for whoever reaches it, and serves from a thread of its own. With port 0 the system chooses the port.
    #[cfg(test)]
    pub(crate) fn start(listen: SocketAddr, monitor: Arc<DaemonMonitor>) -> Result<AdminServer, AdminError> {
        let config = AdminConfig { listen: Some(listen), tls: None, users: Vec::new() };
        AdminServer::start_with(listen, &config, monitor)
    }

    /// Listens on `listen` and serves from a thread of its own. With port 0 the system chooses the port. Where TLS or a login is
    /// wanted there, a second port on the loopback address is for whoever may read the data folder.
    pub(crate) fn start_with(
        listen: SocketAddr,
        config: &AdminConfig,
        monitor: Arc<DaemonMonitor>,
    ) -> Result<AdminServer, AdminError> {
        let tls = config.tls.as_ref().map(|(cert, key)| ServerTls::load(cert, key)).transpose();
        let tls = tls.map_err(AdminError::Tls)?.map(|tls| TlsAcceptor::from(tls.config()));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(AdminError::Thread)?;
        let has_door = tls.is_some() || !config.users.is_empty();
        let front = Entrance::open(&runtime, listen, tls, false)?;
        let local_addr = front.address;
        let mut entrances = vec![front];
        let mut door = None;
        if has_door {
            let loopback = SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, 0));
            let entrance = Entrance::open(&runtime, loopback, None, true)?;
            door = Some((entrance.address, token()?));
            entrances.push(entrance);
        }
        let access = Arc::new(Access::new(config, door.as_ref().map(|(_, token)| token.clone())));
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("admin".to_owned())
            .spawn(move || runtime.block_on(serve(entrances, monitor, access, stopped)))
            .map_err(AdminError::Thread)?;
        Ok(AdminServer { local_addr, door, stop: Some(stop), thread: Some(thread) })
    }

    /// Where `binlogd status` of this machine asks, and the token that it must show there, if it must.
    pub(crate) fn for_this_machine(&self) -> (SocketAddr, Option<&Secret>) {
        match &self.door {
            Some((address, token)) => (*address, Some(token)),
            None => (self.local_addr, None),
        }
    }

    /// The address listened on, with the port that the system chose.
    pub(crate) fn local_addr(&self) -> SocketAddr {
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

/// A port.
struct Entrance {
    listener: tokio::net::TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    is_door: bool,
}

impl Entrance {
    fn open(
        runtime: &tokio::runtime::Runtime,
        listen: SocketAddr,
        tls: Option<TlsAcceptor>,
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
    access: Arc<Access>,
    stopped: oneshot::Receiver<()>,
) {
    let sampling = tokio::spawn(take_samples(monitor.clone()));
    let router = pages::router(monitor, access);
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
                let connection = Connection::new(peer, entrance.is_door, slot);
                let (router, tls) = (router.clone(), entrance.tls.clone());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{DaemonStatus, SourceMonitor, SourceState, Stuck};
    use jiff::Timestamp;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::path::Path;

    fn server(names: &[&str]) -> (AdminServer, Vec<Arc<SourceMonitor>>) {
        let daemon = Arc::new(DaemonMonitor::new(Path::new("data")));
        names.iter().for_each(|name| daemon.add(Arc::new(SourceMonitor::new(name))));
        let sources = daemon.sources();
        (AdminServer::start("127.0.0.1:0".parse().unwrap(), daemon).unwrap(), sources)
    }

    /// The answer to raw bytes: status code, headers, body.
    fn exchange(server: &AdminServer, request: &[u8]) -> (u16, String, String) {
        let mut stream = TcpStream::connect(server.local_addr()).unwrap();
        // The server may answer and close before it has read everything.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        (code, head.to_lowercase(), body.to_owned())
    }

    fn get(server: &AdminServer, path: &str) -> (u16, String, String) {
        exchange(server, format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
    }

    #[test]
    fn healthz_is_200_only_while_every_source_receives() {
        let (server, sources) = server(&["orders", "stock"]);
        sources[0].set_state(SourceState::Receiving);
        let until = Timestamp::from_second(1_800_000_000).unwrap();
        sources[1].set_state(SourceState::BackingOff { until, error: "refused\nfor now".to_owned() });
        let (code, _, body) = get(&server, "/healthz");
        assert_eq!(code, 503);
        assert_eq!(body, "stock: backing off: refused for now; next attempt at 2027-01-15 08:00:00 UTC\n");
        sources[1].set_state(SourceState::Receiving);
        assert_eq!(get(&server, "/healthz").0, 200);
        assert_eq!(get(&server, "/healthz").2, "ok\n");
    }

    #[test]
    fn livez_fails_only_where_a_restart_helps() {
        let (server, sources) = server(&["orders", "stock"]);
        sources[0].set_state(SourceState::Stopped { reason: "gone".to_owned() });
        let stuck = |is_for_good| Stuck { what: "recv-stock is stuck".to_owned(), is_for_good };
        sources[1].set_stuck(Some(stuck(false)));
        assert_eq!(get(&server, "/livez").0, 200, "it may yet come round");
        assert!(get(&server, "/healthz").2.contains("stock: stuck: recv-stock is stuck\n"));
        sources[1].set_stuck(Some(stuck(true)));
        let (code, _, body) = get(&server, "/livez");
        assert_eq!((code, body.as_str()), (503, "recv-stock is stuck\n"));
        sources[1].set_stuck(None);
        assert_eq!(get(&server, "/livez").0, 200);
    }

    #[test]
    fn a_daemon_without_sources_is_not_healthy() {
        let (server, _) = server(&[]);
        assert_eq!(get(&server, "/healthz").0, 503);
    }

    #[test]
    fn status_is_the_json_contract() {
        let (server, _) = server(&["orders"]);
        let (code, head, body) = get(&server, "/status");
        assert_eq!(code, 200);
        assert!(head.contains("content-type: application/json"), "{head}");
        let status: DaemonStatus = serde_json::from_str(&body).unwrap();
        assert!(status.running);
        assert_eq!(status.pid, Some(std::process::id()));
        assert_eq!(status.sources[0].name, "orders");
        assert_eq!(status.sources[0].state, "starting");
    }

    #[test]
    fn metrics_say_what_they_are() {
        let (server, _) = server(&["orders"]);
        let (code, head, body) = get(&server, "/metrics");
        assert_eq!(code, 200);
        assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
        assert!(body.contains("# TYPE binlogd_events_total counter\n") && !body.contains("# EOF"));
        let asked = b"GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: application/openmetrics-text; version=1.0.0\r\n\r\n";
        let (code, head, body) = exchange(&server, asked);
        assert_eq!(code, 200);
        assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
        assert!(body.ends_with("# EOF\n"));
    }

    #[test]
    fn other_paths_and_methods_are_refused_with_a_hint() {
        let (server, _) = server(&["orders"]);
        assert!(get(&server, "/").2.contains("/healthz"));
        let (code, _, body) = get(&server, "/nothing");
        assert!(code == 404 && body.contains("/status"));
        assert_eq!(
            exchange(&server, b"POST /status HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n").0,
            405
        );
    }

    #[test]
    fn an_oversized_or_broken_request_is_refused_and_the_server_lives() {
        let (server, _) = server(&["orders"]);
        let long = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(4 * REQUEST_BYTES_MAX));
        assert!(matches!(exchange(&server, long.as_bytes()).0, 0 | 400..500));
        assert_eq!(exchange(&server, b"\x00\xff nonsense\r\n\r\n").0, 400);
        assert_eq!(get(&server, "/status").0, 200);
    }

    #[test]
    fn silent_clients_do_not_keep_others_out() {
        let (server, _) = server(&["orders"]);
        let silent: Vec<_> =
            (0..CONNECTIONS_MAX).map(|_| TcpStream::connect(server.local_addr()).unwrap()).collect();
        // Served once the silent connections run into the limit for headers.
        assert_eq!(get(&server, "/status").0, 200);
        drop(silent);
    }

    /// A server of a source that receives and one that does not, with a user.
    fn guarded() -> AdminServer {
        let daemon = Arc::new(DaemonMonitor::new(Path::new("data")));
        daemon.add(Arc::new(SourceMonitor::new("orders")));
        let proof = crate::config::Proof::Password(Secret::new("s:cret"));
        let users = vec![crate::config::AdminUser { name: "dba".to_owned(), proof }];
        let listen = "127.0.0.1:0".parse().unwrap();
        AdminServer::start_with(listen, &AdminConfig { listen: Some(listen), tls: None, users }, daemon)
            .unwrap()
    }

    fn get_as(address: SocketAddr, path: &str, authorization: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: {authorization}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
    }

    #[test]
    fn who_does_not_log_in_learns_whether_all_is_well_and_no_more() {
        let server = guarded();
        for path in ["/", "/status", "/metrics", "/events", "/source/orders", "/nothing", "/page.css"] {
            let (code, head, _) = get(&server, path);
            assert_eq!(code, 401, "{path}");
            assert!(head.contains("www-authenticate: basic"), "{head}");
        }
        let (code, _, body) = get(&server, "/healthz");
        assert_eq!((code, body.contains("orders")), (503, false), "{body}");
        // base64 of dba:s:cret, of dba:wrong, of eve:s:cret
        let address = server.local_addr();
        assert_eq!(get_as(address, "/status", "Basic ZGJhOnM6Y3JldA==").0, 200);
        assert!(get_as(address, "/healthz", "Basic ZGJhOnM6Y3JldA==").1.contains("orders"));
        for wrong in ["Basic ZGJhOndyb25n", "Basic ZXZlOnM6Y3JldA==", "Basic !", "Bearer x"] {
            assert_eq!(get_as(address, "/status", wrong).0, 401, "{wrong}");
        }
    }

    #[test]
    fn somebody_who_guesses_is_refused_for_a_while() {
        let server = guarded();
        let address = server.local_addr();
        let codes: Vec<u16> = (0..12).map(|_| get_as(address, "/status", "Basic ZGJhOndyb25n").0).collect();
        assert_eq!((codes[0], codes[8], codes[9], codes[11]), (401, 401, 429, 429), "{codes:?}");
        assert_eq!(get_as(address, "/status", "Basic ZGJhOnM6Y3JldA==").0, 429, "right or wrong");
    }

    #[test]
    fn this_machine_has_a_door_of_its_own_and_a_token() {
        let server = guarded();
        let (door, token) = server.for_this_machine();
        assert_ne!(door, server.local_addr());
        assert!(door.ip().is_loopback());
        let token = token.unwrap().expose().to_owned();
        assert_eq!(get_as(door, "/status", &format!("Bearer {token}")).0, 200);
        for wrong in ["Bearer x", "Bearer ", "Basic ZGJhOnM6Y3JldA=="] {
            assert_eq!(get_as(door, "/healthz", wrong).0, 403, "{wrong}");
        }
    }

    #[test]
    fn listeners_keep_nobody_out() {
        let (server, _) = server(&["orders"]);
        let listen = || {
            let mut stream = TcpStream::connect(server.local_addr()).unwrap();
            stream.write_all(b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).unwrap();
            (stream, String::from_utf8_lossy(&answer).into_owned())
        };
        let listeners: Vec<_> = (0..page::LISTENERS_MAX).map(|_| listen()).collect();
        assert!(listeners.iter().all(|(_, answer)| answer == "HTTP/1.1 200"), "{:?}", listeners[0].1);
        assert_eq!(listen().1, "HTTP/1.1 503");
        // As many as may ask at once ask beside them.
        let silent: Vec<_> =
            (1..CONNECTIONS_MAX).map(|_| TcpStream::connect(server.local_addr()).unwrap()).collect();
        assert_eq!(get(&server, "/status").0, 200);
        drop((silent, listeners));
    }

    #[test]
    fn an_address_in_use_is_explained() {
        let (server, _) = server(&["orders"]);
        let daemon = Arc::new(DaemonMonitor::new(Path::new("data")));
        let error = AdminServer::start(server.local_addr(), daemon).map(|_| ()).unwrap_err().to_string();
        let address = server.local_addr();
        assert!(
            error.starts_with(&format!("cannot listen on {address} for status and metrics: ")),
            "{error}"
        );
        assert!(error.contains("in use") && error.contains("`listen` in section [admin]"), "{error}");
    }

    #[test]
    fn shutdown_frees_the_address() {
        let (server, _) = server(&["orders"]);
        let address = server.local_addr();
        assert_eq!(get(&server, "/status").0, 200);
        drop(server);
        assert!(TcpStream::connect(address).is_err());
    }
}
