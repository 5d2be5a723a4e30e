//! The HTTP endpoints for operators: `/status`, `/metrics`, `/healthz`.
//!
//! One OS thread with a single-threaded tokio runtime serves them, because they are asked a few times a minute and the
//! process promises to stay small. They only read [`DaemonMonitor`], and nothing here can hold up a receiver for longer
//! than a copy of its positions. Every request gets a connection of its own, bounded in size and time.
//!
//! | file | noun |
//! |---|---|
//! | `mod.rs` | [`AdminServer`]: listener, thread, limits |
//! | `pages.rs` | what each path answers |
//! | `large_answer.rs` | an answer of many megabytes, made once for all who ask at a time |
//! | `metrics.rs` | the metrics, as OpenMetrics text |
//! | `peers.rs` | the other binlogds of the sources, as metrics |
//! | `families.rs` | families of metrics, each with its name, unit and help |
//! | `format.rs` | in which format a request gets them |
//! | `address.rs` | [`AddressFile`]: how `binlogd status` finds the server of a data folder |

mod address;
mod families;
mod format;
mod large_answer;
mod metrics;
mod pages;
mod peers;
mod resources;
mod serving;

#[cfg(test)]
pub(crate) use address::ADDRESS_FILE;
pub(crate) use address::{AddressFile, reachable};

use crate::status::DaemonMonitor;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};

/// Connections served at once. More of them wait in the kernel's queue.
const CONNECTIONS_MAX: u32 = 32;
/// Longest time for one connection: request, answer and close.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(10);
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
    /// The operating system refused a thread or an event queue.
    #[error("cannot start the thread for status and metrics: {0}")]
    Thread(#[source] io::Error),
}

/// A running server. Dropping it stops listening, lets answers in progress finish for at most a second, and waits for the
/// thread.
pub(crate) struct AdminServer {
    local_addr: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl AdminServer {
    /// Listens on `listen` and serves from a thread of its own. With port 0 the system chooses the port.
    pub(crate) fn start(listen: SocketAddr, monitor: Arc<DaemonMonitor>) -> Result<AdminServer, AdminError> {
        let in_listen = |error| AdminError::Listen { address: listen, error };
        let listener = TcpListener::bind(listen).map_err(in_listen)?;
        listener.set_nonblocking(true).map_err(in_listen)?;
        let local_addr = listener.local_addr().map_err(in_listen)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(AdminError::Thread)?;
        let listener = {
            let _context = runtime.enter();
            tokio::net::TcpListener::from_std(listener).map_err(AdminError::Thread)?
        };
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("admin".to_owned())
            .spawn(move || runtime.block_on(serve(listener, pages::router(monitor), stopped)))
            .map_err(AdminError::Thread)?;
        Ok(AdminServer { local_addr, stop: Some(stop), thread: Some(thread) })
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

async fn serve(listener: tokio::net::TcpListener, router: axum::Router, stopped: oneshot::Receiver<()>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX as usize));
    let accepting = tokio::spawn(accept(listener, router, slots.clone()));
    // An error means that the handle is gone, which asks for the same.
    let _ = stopped.await;
    accepting.abort();
    // All slots are free once no connection is left. After the timeout the runtime's end cuts what remains.
    let _ = tokio::time::timeout(SHUTDOWN_TIME_MAX, slots.acquire_many(CONNECTIONS_MAX)).await;
}

async fn accept(listener: tokio::net::TcpListener, router: axum::Router, slots: Arc<Semaphore>) {
    // The semaphore is never closed.
    while let Ok(slot) = slots.clone().acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let router = router.clone();
                tokio::spawn(async move {
                    // A broken or slow client is its own problem; there is nothing to report.
                    let _ = tokio::time::timeout(CONNECTION_TIME_MAX, serve_connection(stream, router)).await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection for status and metrics");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one request and closes. Without keep-alive an idle client holds no slot.
async fn serve_connection(stream: tokio::net::TcpStream, router: axum::Router) -> hyper::Result<()> {
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME_MAX)
        .max_buf_size(REQUEST_BYTES_MAX)
        .max_headers(REQUEST_HEADERS_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{DaemonStatus, SourceMonitor, SourceState};
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
