//! `POST /v1/promote`: another source for a quorum, asked for by a tool.

use crate::access::{Who, origin};
use crate::asked::Asked;
use crate::connection::Connection;
use crate::deed::desk::on_a_thread;
use crate::deed::promotion::{NotPromoted, PromoteAsked};
use crate::tools::{NoAnswer, answer, meant};
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// Largest body, in bytes. Ours have a few hundred.
const BODY_BYTES_MAX: usize = 4096;
const JSON: &str = "application/json";
/// Longest time to wait for the server to have what the nodes hold, in seconds: a connection lasts ten minutes.
const WAIT_MAX: u64 = 300;

/// `/v1/promote` by another method.
pub(crate) async fn not_so() -> Response {
    let why = "nothing was changed: this address takes JSON alone (POST)".to_owned();
    ([(header::ALLOW, "POST")], NoAnswer(StatusCode::METHOD_NOT_ALLOWED, why)).into_response()
}

/// `POST /v1/promote`.
pub(crate) async fn promote(
    State(asked): State<Asked>,
    Extension(connection): Extension<Connection>,
    Extension(who): Extension<Who>,
    request: Request,
) -> Response {
    match promoted(&asked, &connection, &who, request).await {
        Ok(found) => answer(StatusCode::OK, &found),
        Err(NoAnswer(status, why)) => answer(status, &json!({ "done": false, "error": why })),
    }
}

async fn promoted(
    asked: &Asked,
    connection: &Connection,
    who: &Who,
    request: Request,
) -> Result<Value, NoAnswer> {
    let by = who.at(connection.peer().ip());
    let (head, body) = request.into_parts();
    let forbidden = |why: &str| {
        tracing::warn!("a promotion that {by} asks for was refused: {why}");
        NoAnswer(StatusCode::FORBIDDEN, why.to_owned())
    };
    who.may_write().map_err(forbidden)?;
    let is_asked_for = connection.is_encrypted() || who.name().is_some();
    origin::judge(&head.headers, is_asked_for).map_err(|why| forbidden(&why))?;
    let wanted = wanted(&head.headers, body).await?;
    let source = meant(&asked.monitor, wanted.source.as_deref())?;
    // It takes longer than a look; and it goes on to its end when nobody listens any more.
    connection.listens();
    let (controls, name) = (asked.desk.controls.clone(), source.name().to_owned());
    let told = on_a_thread(&asked.desk.room, "promote", move || controls.promote(&name, &wanted, &by));
    let unavailable = |why: &str| NoAnswer(StatusCode::SERVICE_UNAVAILABLE, why.to_owned());
    let told = told.ok_or_else(|| unavailable("too much is under way already: try again in a moment"))?;
    let told = told.await.map_err(|_| unavailable("it failed by an error of binlogd: see its log"))?;
    told.map_err(|why| match why {
        NotPromoted::Asked(why) => NoAnswer(StatusCode::BAD_REQUEST, why),
        NotPromoted::Refused(why) => NoAnswer(StatusCode::CONFLICT, why),
    })
}

/// The body. A page elsewhere cannot make a browser send JSON without asking here first, which is refused.
async fn wanted(headers: &HeaderMap, body: Body) -> Result<PromoteAsked, NoAnswer> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(JSON) {
        let why = format!("the body is {kind:?}, and must be JSON: send Content-Type: {JSON}");
        return Err(NoAnswer(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    let bytes = axum::body::to_bytes(body, BODY_BYTES_MAX).await.map_err(|_| {
        let why = format!("the body has more than {BODY_BYTES_MAX} bytes, or did not arrive whole");
        NoAnswer(StatusCode::PAYLOAD_TOO_LARGE, why)
    })?;
    let bad = |why: String| NoAnswer(StatusCode::BAD_REQUEST, why);
    let wanted: PromoteAsked =
        serde_json::from_slice(&bytes).map_err(|error| bad(format!("the body: {error}")))?;
    if wanted.wait > WAIT_MAX {
        return Err(bad(format!("wait is {}, and may be {WAIT_MAX} seconds at most", wanted.wait)));
    }
    if wanted.user.is_none() && !wanted.password.expose().is_empty() {
        return Err(bad("password is given and user is not: add user, or leave both out".to_owned()));
    }
    Ok(wanted)
}
