//! Who may ask: users with a password (HTTP basic authentication), and whoever may read the data folder.

use super::address::{DATA_DIR_HEADER, DATA_DIR_UNTOLD};
use super::connection::Connection;
use crate::config::{AdminConfig, Proof};
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
use wire::{FailedLogins, Secret, Verdict, Verifiers};

/// Failed logins of one address within a minute after which it is refused for a minute.
const FAILED_LOGINS_MAX: u32 = 10;
/// What a browser is told to ask for.
const CHALLENGE: &str = "Basic realm=\"binlogd\", charset=\"UTF-8\"";

/// Who may ask.
#[derive(Debug, Default)]
pub(super) struct Access {
    users: Vec<(String, Verifiers)>,
    failed: FailedLogins,
    /// What is asked for at the door for this machine: it stands in a file of the data folder that its owner alone can read.
    token: Option<Secret>,
}

impl Access {
    pub(super) fn new(config: &AdminConfig, token: Option<Secret>) -> Access {
        let users = config.users.iter().filter_map(|user| {
            let verifiers = match &user.proof {
                Proof::Password(password) => Verifiers::from_password(password),
                // The configuration was refused for one that cannot be read.
                Proof::Hash(text) => text.expose().parse().ok()?,
            };
            Some((user.name.clone(), verifiers))
        });
        Access { users: users.collect(), failed: FailedLogins::default(), token }
    }

    /// Whether the headers come from somebody who may ask, at the door for this machine.
    fn knows_token(&self, headers: &HeaderMap) -> bool {
        let given = credentials(headers, "Bearer ");
        match (&self.token, given) {
            // Of digests the time of a comparison tells nothing.
            (Some(token), Some(given)) => Sha256::digest(token.expose()) == Sha256::digest(given),
            _ => false,
        }
    }

    /// Judges a name and a password.
    fn judge(&self, headers: &HeaderMap, from: IpAddr) -> Result<(), StatusCode> {
        let now = Instant::now();
        if self.failed.refuses(from, FAILED_LOGINS_MAX, now) {
            return Err(StatusCode::TOO_MANY_REQUESTS);
        }
        // A browser asks without a password first: that is no failed login.
        let Some(given) = credentials(headers, "Basic ") else { return Err(StatusCode::UNAUTHORIZED) };
        let decoded = BASE64_STANDARD.decode(given).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let (name, password) = match decoded.as_deref().and_then(|text| text.split_once(':')) {
            Some((name, password)) => (name, Secret::new(password)),
            None => ("", Secret::default()),
        };
        let user = self.users.iter().find(|(known, _)| known == name);
        // An unknown name takes as long.
        let nobody = Verifiers { sha256: Some([0; 32]), ..Verifiers::default() };
        let is_right = user.map_or(&nobody, |(_, verifiers)| verifiers).admits(&password) && user.is_some();
        match self.failed.judge(from, is_right, FAILED_LOGINS_MAX, now) {
            Verdict::Admitted => Ok(()),
            Verdict::Wrong => Err(StatusCode::UNAUTHORIZED),
            Verdict::WrongTooOften => {
                tracing::warn!(%from, "{FAILED_LOGINS_MAX} logins at the admin address have failed; it is refused for a minute");
                Err(StatusCode::TOO_MANY_REQUESTS)
            }
            Verdict::Refused => Err(StatusCode::TOO_MANY_REQUESTS),
        }
    }
}

fn credentials<'a>(headers: &'a HeaderMap, scheme: &str) -> Option<&'a str> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix(scheme).map(str::trim)
}

/// Lets a request pass, or not. `/healthz` and `/livez` without a login say yes or no, and nothing more.
pub(super) async fn guard(
    State(access): State<Arc<Access>>,
    Extension(connection): Extension<Connection>,
    request: Request,
    next: Next,
) -> Response {
    if connection.is_by_door() {
        return match access.knows_token(request.headers()) {
            true => next.run(request).await,
            false => (StatusCode::FORBIDDEN, "this address is for binlogd status of this machine\n")
                .into_response(),
        };
    }
    if access.users.is_empty() {
        return next.run(request).await;
    }
    match access.judge(request.headers(), connection.peer().ip()) {
        Ok(()) => next.run(request).await,
        Err(StatusCode::UNAUTHORIZED) if ["/healthz", "/livez"].contains(&request.uri().path()) => {
            let status = next.run(request).await.status();
            let body = if status.is_success() { "ok\n" } else { "not ok: log in to see why\n" };
            (status, [(DATA_DIR_HEADER, DATA_DIR_UNTOLD)], body).into_response()
        }
        Err(StatusCode::UNAUTHORIZED) => {
            (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, CHALLENGE)], "log in\n").into_response()
        }
        Err(status) => (status, [(header::RETRY_AFTER, "60")], "too many failed logins\n").into_response(),
    }
}
