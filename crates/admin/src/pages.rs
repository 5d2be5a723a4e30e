//! What each path answers.

use super::access::{Access, Who, guard};
use super::address::{DATA_DIR_HEADER, DATA_DIR_UNTOLD, LEVEL_HEADER};
use super::asked::{Asked, html};
use super::connection::Connection;
use super::metrics;
use super::page::{self, Notice, Page, View};
use super::promote;
use super::tools;
use crate::deed::act;
use crate::deed::desk::Desk;
use crate::metrics::format::Format;
use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use jiff::Timestamp;
use status::{DaemonMonitor, DaemonStatus};
use std::fmt::Write;
use std::sync::Arc;
use tokio::sync::Semaphore;

const ENDPOINTS: &str = "\
binlogd

/status   everything about every source, as JSON
/status/history/NAME  the last hour of a source, as JSON
/v1/quorum    how the quorum of a source stands, as JSON (?source=NAME where several have one)
/v1/durable?gtid_set=SET  which nodes of the quorum have these GTIDs on stable storage, as JSON
/metrics  the same as numbers, for Prometheus
/healthz  200 while every source receives, no commit waits for other replicas and no archive was put back, otherwise 503 and a line for each
/livez    200 while no receiving thread is stuck, otherwise 503: a restart of binlogd would help
/         for a browser: all of it as a page, and /source/NAME a page a source

All is for GET. What can be changed is changed by the forms of a source's page, and by POST to /v1/promote, where write of [admin] is true.
";

const ICON: &str = include_str!("page/icon.svg");
/// A year: the address of an asset changes with its content.
const KEPT: HeaderValue = HeaderValue::from_static("max-age=31536000, immutable");

/// The paths: for GET and HEAD, but those that change something.
pub(crate) fn router(monitor: Arc<DaemonMonitor>, access: Arc<Access>, desk: Desk) -> Router {
    let asset = |content: &'static str, content_type: &'static str| {
        get(move || async move {
            (
                [
                    (header::CONTENT_TYPE, HeaderValue::from_static(content_type)),
                    (header::CACHE_CONTROL, KEPT),
                ],
                content,
            )
        })
    };
    Router::new()
        .route("/", get(overview))
        .route("/source/{name}", get(source))
        .route("/source/{name}/ask", get(act::ask))
        .route("/source/{name}/do", post(act::act).fallback(act::not_so))
        .route("/events", get(events))
        .route("/page.css", asset(page::STYLE, "text/css; charset=utf-8"))
        .route("/page.js", asset(page::SCRIPT, "text/javascript; charset=utf-8"))
        .route("/icon.svg", asset(ICON, "image/svg+xml"))
        .route("/status", get(status))
        .route("/status/history/{name}", get(history))
        .route("/v1/quorum", get(tools::quorum))
        .route("/v1/durable", get(tools::durable))
        .route("/v1/promote", post(promote::promote).fallback(promote::not_so))
        .route("/metrics", get(scrape))
        .route("/healthz", get(health))
        .route("/livez", get(live))
        .method_not_allowed_fallback(only_shown)
        .fallback(|| async { (StatusCode::NOT_FOUND, ENDPOINTS) })
        .layer(from_fn_with_state(access, guard))
        .with_state(Asked {
            monitor,
            status: Arc::default(),
            live: Arc::default(),
            desk: Arc::new(desk),
            listeners: Arc::new(Semaphore::new(page::LISTENERS_MAX)),
            asking: Arc::new(Semaphore::new(tools::ASKING_MAX)),
        })
}

/// Who names HTML is a browser; a program that takes anything gets the short list.
async fn overview(State(asked): State<Asked>, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if !accept.contains("text/html") {
        return ([(header::VARY, "accept")], ENDPOINTS).into_response();
    }
    shown(&asked, &Page::Overview, false, None)
}

async fn source(
    State(asked): State<Asked>,
    Extension(who): Extension<Who>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let notice = asked.desk.notice(&name, query.as_deref());
    shown(&asked, &Page::Source(name), who.may_write().is_ok(), notice.as_ref())
}

fn shown(asked: &Asked, page: &Page, may_write: bool, notice: Option<&Notice>) -> Response {
    match View::of(page, may_write, &asked.monitor, Timestamp::now()) {
        Some(view) => html(view.whole(page, notice)),
        None => (StatusCode::NOT_FOUND, "there is no such source\n").into_response(),
    }
}

/// Another method than those of a path. axum says which those are.
async fn only_shown() -> Response {
    let text = "nothing was changed: this address only shows (GET). What can be changed is changed by the forms of a source's page\n";
    (StatusCode::METHOD_NOT_ALLOWED, text).into_response()
}

/// `?source=NAME`: the changes of that source's page, otherwise of the overview.
async fn events(
    State(asked): State<Asked>,
    Extension(connection): Extension<Connection>,
    Extension(who): Extension<Who>,
    RawQuery(query): RawQuery,
) -> Response {
    let page = match query.as_deref().and_then(|query| query.strip_prefix("source=")) {
        Some(name) => Page::Source(name.to_owned()),
        None => Page::Overview,
    };
    let is_there = |name: &str| asked.monitor.sources().iter().any(|source| source.name() == name);
    if matches!(&page, Page::Source(name) if !is_there(name)) {
        return (StatusCode::NOT_FOUND, "there is no such source\n").into_response();
    }
    let Ok(place) = asked.listeners.clone().try_acquire_owned() else {
        let after = [(header::RETRY_AFTER, "10")];
        return (StatusCode::SERVICE_UNAVAILABLE, after, "too many listen already\n").into_response();
    };
    connection.listens();
    let body =
        Body::from_stream(page::changes(asked.live, asked.monitor, (page, who.may_write().is_ok()), place));
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        // A proxy must not gather them.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, body).into_response()
}

async fn status(State(Asked { monitor, status, .. }): State<Asked>) -> Response {
    match status.get(|| serde_json::to_vec(&monitor.status(Timestamp::now()))) {
        Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "the status could not be formatted\n").into_response(),
    }
}

async fn history(State(Asked { monitor, .. }): State<Asked>, Path(name): Path<String>) -> Response {
    match monitor.history(&name, Timestamp::now()) {
        Some(history) => axum::Json(history).into_response(),
        None => (StatusCode::NOT_FOUND, "there is no such source\n").into_response(),
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
    let status = monitor.glance(Timestamp::now());
    let mut answer = match complaints(&status) {
        None => (StatusCode::OK, "ok\n").into_response(),
        Some(complaints) => (StatusCode::SERVICE_UNAVAILABLE, complaints).into_response(),
    };
    let data_dir =
        HeaderValue::from_str(&status.data_dir).unwrap_or(HeaderValue::from_static(DATA_DIR_UNTOLD));
    answer.headers_mut().insert(DATA_DIR_HEADER, data_dir);
    answer.headers_mut().insert(LEVEL_HEADER, HeaderValue::from_static(status.verdict.level.word()));
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

/// A line for each source that is not healthy by its verdict, and one more where two things are wrong; `None` when all is well.
fn complaints(status: &DaemonStatus) -> Option<String> {
    if status.sources.is_empty() {
        return Some("no source has been started\n".to_owned());
    }
    let mut lines = String::new();
    for source in status.sources.iter().filter(|source| source.verdict.healthy != Some(true)) {
        let state = match (source.is_receiving(), &source.state_detail) {
            (true, _) => source.waits_for_others(),
            (false, None) => Some(source.state.to_string()),
            (false, Some(detail)) => Some(format!("{}: {detail}", source.state)),
        };
        let archive = source.archive.as_ref().and_then(|archive| archive.put_back());
        for what in state.into_iter().chain(archive.map(|error| error.message.clone())) {
            // One line, whatever an error message of a server holds. Writing to a String does not fail.
            let _ = writeln!(lines, "{}: {}", source.name, what.replace(['\r', '\n'], " "));
        }
    }
    (!lines.is_empty()).then_some(lines)
}
