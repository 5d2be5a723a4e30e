//! What the pages are made of, and a page as an answer.

use super::large_answer::LargeAnswer;
use super::page::{self, Live};
use crate::deed::desk::Desk;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use status::DaemonMonitor;
use std::sync::Arc;
use tokio::sync::Semaphore;

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

/// What the pages are made of.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) monitor: Arc<DaemonMonitor>,
    /// Where forms are taken.
    pub(crate) desk: Arc<Desk>,
    /// `/status`, whose GTID sets may be large.
    pub(crate) status: Arc<LargeAnswer>,
    pub(crate) live: Arc<Live>,
    /// Room for who listens to `/events`.
    pub(crate) listeners: Arc<Semaphore>,
    /// Room for who makes this node ask others.
    pub(crate) asking: Arc<Semaphore>,
}

/// A page as an answer.
pub(crate) fn html(text: String) -> Response {
    let kept = HeaderValue::from_static("no-store");
    let mut response = ([(header::CONTENT_TYPE, HTML), (header::CACHE_CONTROL, kept)], text).into_response();
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response.headers_mut().extend(page::SECURITY);
    response
}
