//! `/v1/quorum` and `/v1/durable`: what failover tools ask of a node. Answers and errors are JSON.

use super::asked::Asked;
use super::fields::Fields;
use crate::deed::desk::on_a_thread;
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use codec::gtid::GtidState;
use serde::Serialize;
use serde_json::json;
use status::{DaemonMonitor, DurableAnswer, QuorumAnswer, SourceMonitor};
use std::sync::Arc;

/// Questions that make this node ask the others, at a time: each has a thread.
pub(crate) const ASKING_MAX: usize = 4;

/// Why a question of a tool has no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoAnswer(pub(crate) StatusCode, pub(crate) String);

impl IntoResponse for NoAnswer {
    fn into_response(self) -> Response {
        answer(self.0, &json!({ "error": self.1 }))
    }
}

/// JSON that nobody keeps.
pub(crate) fn answer(status: StatusCode, what: &impl Serialize) -> Response {
    (status, [(header::CACHE_CONTROL, "no-store")], axum::Json(what)).into_response()
}

/// The source that is meant: the one of that name, or the only one that has a quorum.
pub(crate) fn meant(monitor: &DaemonMonitor, name: Option<&str>) -> Result<Arc<SourceMonitor>, NoAnswer> {
    let has_quorum = |source: &Arc<SourceMonitor>| source.quorum().is_some();
    let is_meant = |source: &Arc<SourceMonitor>| name.is_none_or(|name| source.name() == name);
    let found: Vec<_> =
        monitor.sources().into_iter().filter(|source| has_quorum(source) && is_meant(source)).collect();
    match (&found[..], name) {
        ([source], _) => Ok(source.clone()),
        ([], Some(name)) => {
            Err(NoAnswer(StatusCode::NOT_FOUND, format!("there is no source {name} with a quorum")))
        }
        ([], None) => Err(NoAnswer(
            StatusCode::NOT_FOUND,
            "no source of this binlogd has a quorum: set quorum in a [[source]]".to_owned(),
        )),
        (several, _) => {
            let names: Vec<&str> = several.iter().map(|source| source.name()).collect();
            let why = format!("several sources have a quorum: add source=NAME, one of {}", names.join(", "));
            Err(NoAnswer(StatusCode::BAD_REQUEST, why))
        }
    }
}

/// `GET /v1/quorum`: from what this node has heard. Nobody is asked for it.
pub(crate) async fn quorum(State(asked): State<Asked>, RawQuery(query): RawQuery) -> Response {
    let fields = Fields::parse(query.as_deref().unwrap_or_default());
    let found = meant(&asked.monitor, fields.get("source"));
    match found.map(|source| QuorumAnswer::of(&source)) {
        Ok(standing) => answer(StatusCode::OK, &standing),
        Err(none) => none.into_response(),
    }
}

/// `GET /v1/durable?gtid_set=…`: each node is asked now.
pub(crate) async fn durable(State(asked): State<Asked>, RawQuery(query): RawQuery) -> Response {
    let fields = Fields::parse(query.as_deref().unwrap_or_default());
    match durable_on(&asked, &fields).await {
        Ok(found) => answer(StatusCode::OK, &found),
        Err(none) => none.into_response(),
    }
}

async fn durable_on(asked: &Asked, fields: &Fields) -> Result<DurableAnswer, NoAnswer> {
    let source = meant(&asked.monitor, fields.get("source"))?;
    let set = set_of(&source, fields.get("gtid_set"))?;
    let (controls, name) = (asked.desk.controls.clone(), source.name().to_owned());
    let answers = on_a_thread(&asked.asking, "ask-nodes", move || controls.ask_nodes(&name));
    let unavailable = |why: &str| NoAnswer(StatusCode::SERVICE_UNAVAILABLE, why.to_owned());
    let answers = answers.ok_or_else(|| unavailable("too many ask already: try again in a moment"))?;
    let answers = answers.await.map_err(|_| unavailable("it failed by an error of binlogd: see its log"))?;
    Ok(DurableAnswer::of(source.name(), &set, answers))
}

/// The set that is asked for, in the notation of the source's kind of server.
fn set_of(source: &SourceMonitor, given: Option<&str>) -> Result<GtidState, NoAnswer> {
    let bad = |why: String| NoAnswer(StatusCode::BAD_REQUEST, why);
    let given = given.map(str::trim).filter(|given| !given.is_empty());
    let given =
        given.ok_or_else(|| bad("add gtid_set=SET, the GTIDs in the notation of the server".to_owned()))?;
    // Without any GTID here it is not known either of which kind they are.
    let held = source.gtids().durable;
    let kind = (!held.is_empty()).then(|| held.kind());
    drop(held);
    let kind = kind.ok_or_else(|| {
        let why = "this node has received no GTID yet".to_owned();
        NoAnswer(StatusCode::SERVICE_UNAVAILABLE, why)
    })?;
    let set = GtidState::parse(kind, given).map_err(|error| bad(format!("gtid_set: {error} (of {kind})")))?;
    match set.is_empty() {
        true => Err(bad("gtid_set holds no GTID".to_owned())),
        false => Ok(set),
    }
}
