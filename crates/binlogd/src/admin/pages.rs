//! What each path answers.

use super::format::Format;
use super::large_answer::LargeAnswer;
use super::metrics;
use crate::status::{DaemonMonitor, SourceState};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use jiff::Timestamp;
use std::fmt::Write;
use std::sync::Arc;

const ENDPOINTS: &str = "\
binlogd

/status   everything about every source, as JSON
/metrics  the same as numbers, for Prometheus
/healthz  200 while every source receives, otherwise 503 and a line for each that does not
/livez    200 while no receiving thread is stuck, otherwise 503: a restart of binlogd would help
";

/// In the answer of `/healthz`: whose health it is, so that who asks for one daemon is not answered by another that has
/// taken over its port.
pub(crate) const DATA_DIR_HEADER: &str = "binlogd-data-dir";
/// Stands there for a folder whose name a header cannot hold.
pub(crate) const DATA_DIR_UNTOLD: &str = "?";

/// The paths, all for GET and HEAD.
pub(super) fn router(monitor: Arc<DaemonMonitor>) -> Router {
    Router::new()
        .route("/", get(|| async { ENDPOINTS }))
        .route("/status", get(status))
        .route("/metrics", get(scrape))
        .route("/healthz", get(health))
        .route("/livez", get(live))
        .fallback(|| async { (StatusCode::NOT_FOUND, ENDPOINTS) })
        .with_state(Asked { monitor, status: Arc::default() })
}

/// What the pages are made of.
#[derive(Clone)]
struct Asked {
    monitor: Arc<DaemonMonitor>,
    /// `/status`, whose GTID sets may be large.
    status: Arc<LargeAnswer>,
}

async fn status(State(Asked { monitor, status }): State<Asked>) -> Response {
    match status.get(|| serde_json::to_vec(&monitor.status(Timestamp::now()))) {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "the status could not be formatted\n").into_response(),
    }
}

async fn scrape(State(Asked { monitor, .. }): State<Asked>, headers: HeaderMap) -> Response {
    let format = Format::wanted(&headers);
    match metrics::text(&monitor, Timestamp::now()) {
        Ok(text) => ([(header::CONTENT_TYPE, format.content_type())], format.of(text)).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be formatted\n").into_response(),
    }
}

async fn health(State(Asked { monitor, .. }): State<Asked>) -> Response {
    let mut answer = match complaints(&monitor) {
        None => (StatusCode::OK, "ok\n").into_response(),
        Some(complaints) => (StatusCode::SERVICE_UNAVAILABLE, complaints).into_response(),
    };
    let data_dir = monitor.data_dir().display().to_string();
    let data_dir = HeaderValue::from_str(&data_dir).unwrap_or(HeaderValue::from_static(DATA_DIR_UNTOLD));
    answer.headers_mut().insert(DATA_DIR_HEADER, data_dir);
    answer
}

/// Whether a restart of the process would help. A source that is away, and a disk that is full, are no reason for one.
async fn live(State(Asked { monitor, .. }): State<Asked>) -> Response {
    let stuck: Vec<_> = monitor.sources().iter().filter_map(|source| source.stuck()).collect();
    let lines: String =
        stuck.iter().filter(|stuck| stuck.is_for_good).map(|stuck| format!("{}\n", stuck.what)).collect();
    match lines.is_empty() {
        true => (StatusCode::OK, "ok\n").into_response(),
        false => (StatusCode::SERVICE_UNAVAILABLE, lines).into_response(),
    }
}

/// One line for each source that does not receive; `None` when all do.
fn complaints(monitor: &DaemonMonitor) -> Option<String> {
    let sources = monitor.sources();
    if sources.is_empty() {
        return Some("no source has been started\n".to_owned());
    }
    let mut lines = String::new();
    for source in sources {
        let (state, detail) = source.state_in_words();
        if state != SourceState::Receiving.word() {
            let colon = if detail.is_some() { ": " } else { "" };
            // One line a source, whatever an error message of a server holds. Writing to a String does not fail.
            let detail = detail.unwrap_or_default().replace(['\r', '\n'], " ");
            let _ = writeln!(lines, "{}: {state}{colon}{detail}", source.name());
        }
    }
    (!lines.is_empty()).then_some(lines)
}
