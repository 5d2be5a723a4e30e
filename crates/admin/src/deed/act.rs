//! What changes something: the question before it, and the form that does it.
//!
//! ```text
//! a link on the page ──► GET /source/NAME/ask?do=…   what it means, with a form that holds a token
//!                        POST /source/NAME/do        checked, carried out, logged ──► 303 to the page, which says what happened
//! ```
//!
//! A form is taken only from who may write, from this page itself, with the token of this form, of this user and of this run.

use crate::access::Who;
use crate::access::origin;
use crate::asked::{Asked, html};
use crate::connection::Connection;
use crate::deed::Deed;
use crate::deed::desk::on_a_thread;
use crate::fields::Fields;
use crate::page;
use crate::page::Notice;
use axum::body::Body;
use axum::extract::{Extension, Path, RawQuery, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use std::time::Duration;

/// Largest form, in bytes. Ours have a few hundred.
const FORM_BYTES_MAX: usize = 4096;
/// Longest time that the page waits for what was asked for. It goes on behind that.
const DONE_MAX: Duration = Duration::from_secs(6);
const FORM: &str = "application/x-www-form-urlencoded";

/// Why a form was not taken, as the answer says it.
struct Refused(StatusCode, String);

impl Refused {
    fn forbidden(why: impl Into<String>) -> Refused {
        Refused(StatusCode::FORBIDDEN, why.into())
    }

    fn bad(why: &str) -> Refused {
        Refused(StatusCode::BAD_REQUEST, why.to_owned())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Refused(status, why) = self;
        (status, [(header::CACHE_CONTROL, "no-store")], format!("nothing was changed: {why}\n"))
            .into_response()
    }
}

fn no_such_source() -> Refused {
    Refused(StatusCode::NOT_FOUND, "there is no such source".to_owned())
}

/// Where a deed comes from: as for a form, so that nobody is asked by a page that could not do it.
fn may_come(who: &Who, connection: &Connection, headers: &HeaderMap) -> Result<(), Refused> {
    who.may_write().map_err(Refused::forbidden)?;
    origin::judge(headers, connection.is_encrypted() || who.name().is_some()).map_err(Refused::forbidden)
}

/// `GET /source/NAME/ask?do=…`: changes nothing.
pub(crate) async fn ask(
    State(asked): State<Asked>,
    Extension(who): Extension<Who>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    if let Err(why) = who.may_write() {
        return Refused::forbidden(why).into_response();
    }
    let Some(deed) = Deed::of(&Fields::parse(query.as_deref().unwrap_or_default())) else {
        return Refused::bad("the address asks for nothing that can be done here").into_response();
    };
    let token = asked.desk.secret.token(who.name(), &name, &deed);
    match page::question(&asked.monitor, &name, &deed, &token, Timestamp::now()) {
        Some(text) => html(text),
        None => no_such_source().into_response(),
    }
}

/// `/source/NAME/do` by another method.
pub(crate) async fn not_so() -> Response {
    let allowed = [(header::ALLOW, "POST")];
    (StatusCode::METHOD_NOT_ALLOWED, allowed, "nothing was changed: this address takes forms alone (POST)\n")
        .into_response()
}

/// `POST /source/NAME/do`.
pub(crate) async fn act(
    State(asked): State<Asked>,
    Extension(connection): Extension<Connection>,
    Extension(who): Extension<Who>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    match taken(&asked, &connection, &who, &name, request).await {
        Ok(word) => {
            let place = HeaderValue::from_str(&format!("/source/{name}?did={word}"));
            let place = place.unwrap_or(HeaderValue::from_static("/"));
            (StatusCode::SEE_OTHER, [(header::LOCATION, place)]).into_response()
        }
        Err(refused) => {
            let by = who.at(connection.peer().ip());
            tracing::warn!(source = name, "a form of {by} was refused: {}", refused.1);
            refused.into_response()
        }
    }
}

/// Takes a form; gives the word by which the page tells what happened.
async fn taken(
    asked: &Asked,
    connection: &Connection,
    who: &Who,
    name: &str,
    request: Request,
) -> Result<String, Refused> {
    let (head, body) = request.into_parts();
    may_come(who, connection, &head.headers)?;
    let fields = fields(&head.headers, body).await?;
    let monitor = asked.monitor.sources().into_iter().find(|source| source.name() == name);
    let monitor = monitor.ok_or_else(no_such_source)?;
    let deed =
        Deed::of(&fields).ok_or_else(|| Refused::bad("the form asks for nothing that can be done here"))?;
    let given = fields.get("token").unwrap_or_default();
    if !asked.desk.secret.knows(given, who.name(), name, &deed) {
        let why = "the token of the form is not of this page, of this user and of this run of binlogd: load the page again";
        return Err(Refused::forbidden(why));
    }
    let by = who.at(connection.peer().ip());
    let word = word()?;
    let happened = carried_out(asked, name, deed, format!("the web page ({by})")).await?;
    let (level, text) = match happened {
        Ok(text) => (status::Level::Notice, text),
        Err(text) => (status::Level::Warning, text),
    };
    tracing::info!(source = name, "by the web page ({by}): {text}");
    monitor.note(level, "operator", format!("{by}, on the web page: {text}"));
    asked.desk.keep(word.clone(), Notice { source: name.to_owned(), at: Timestamp::now(), level, text });
    Ok(word)
}

async fn fields(headers: &HeaderMap, body: Body) -> Result<Fields, Refused> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(FORM) {
        let why = format!("the body is {kind:?}, and must be a form ({FORM})");
        return Err(Refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    match axum::body::to_bytes(body, FORM_BYTES_MAX).await {
        Ok(bytes) => Ok(Fields::parse(&String::from_utf8_lossy(&bytes))),
        Err(_) => {
            let why = format!("the form has more than {FORM_BYTES_MAX} bytes, or did not arrive whole");
            Err(Refused(StatusCode::PAYLOAD_TOO_LARGE, why))
        }
    }
}

/// On a thread of its own: what waits for a disk keeps nobody else waiting.
async fn carried_out(
    asked: &Asked,
    name: &str,
    deed: Deed,
    by: String,
) -> Result<Result<String, String>, Refused> {
    let (controls, source) = (asked.desk.controls.clone(), name.to_owned());
    let told = on_a_thread(&asked.desk.room, "page-deed", move || controls.carry_out(&source, &deed, &by));
    let told = told.ok_or_else(|| {
        let why = "too much is under way already: try again in a moment";
        Refused(StatusCode::SERVICE_UNAVAILABLE, why.to_owned())
    })?;
    Ok(match tokio::time::timeout(DONE_MAX, told).await {
        Ok(Ok(happened)) => happened,
        Ok(Err(_)) => Err("it failed by an error of binlogd: see its log".to_owned()),
        Err(_) => {
            Ok("it was begun, and takes longer than usual: the state below tells when it is done".to_owned())
        }
    })
}

fn word() -> Result<String, Refused> {
    let mut bytes = [0_u8; 8];
    getrandom::fill(&mut bytes).map_err(|error| {
        Refused(StatusCode::INTERNAL_SERVER_ERROR, format!("the system has no random numbers: {error}"))
    })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
