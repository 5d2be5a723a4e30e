//! Who may ask, and who may change something: users with a password (HTTP basic authentication), and whoever may read the data
//! folder.

pub(crate) mod origin;
pub(crate) mod token;

use super::address::{DATA_DIR_HEADER, DATA_DIR_UNTOLD};
use super::connection::Connection;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use config::{AdminConfig, Proof};
use sha2::{Digest, Sha256};
use std::net::IpAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;
use wire::{FailedLogins, Secret, Verdict, Verifiers};

/// Failed logins of one address within a minute after which it is refused for a minute.
const FAILED_LOGINS_MAX: u32 = 10;
/// What a browser is told to ask for.
const CHALLENGE: &str = "Basic realm=\"binlogd\", charset=\"UTF-8\"";
/// Why nobody may change anything.
const WRITE_OFF: &str = "this page only shows: write of [admin] is not true";
/// Why nothing is changed by the door for this machine.
const DOOR_SHOWS: &str = "this address is for binlogd status of this machine, and only shows";

/// Who asks, as a request is told.
#[derive(Debug, Clone)]
pub(crate) struct Who {
    /// As whom one has logged in; nobody where no login is asked for.
    name: Option<String>,
    /// Why nothing may be changed; `None` for who may.
    only_looks: Option<String>,
}

impl Who {
    /// Without a login: whoever is there.
    fn anybody(only_looks: Option<&str>) -> Who {
        Who { name: None, only_looks: only_looks.map(str::to_owned) }
    }

    /// As whom one has logged in.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// # Errors
    /// Why not.
    pub(crate) fn may_write(&self) -> Result<(), &str> {
        self.only_looks.as_deref().map_or(Ok(()), Err)
    }

    /// As the log names who did something.
    pub(crate) fn at(&self, from: IpAddr) -> String {
        match &self.name {
            Some(name) => format!("{name} from {from}"),
            None => format!("somebody from {from}"),
        }
    }
}

/// What a reload can change.
#[derive(Debug, Default)]
struct Rules {
    users: Vec<User>,
    /// Whether something can be changed at all.
    write: bool,
}

#[derive(Debug)]
struct User {
    name: String,
    verifiers: Verifiers,
    write: bool,
}

/// Who may ask.
#[derive(Debug, Default)]
pub(crate) struct Access {
    rules: RwLock<Arc<Rules>>,
    /// Only who is on this machine reaches it.
    is_near: bool,
    failed: FailedLogins,
    /// What is asked for at the door for this machine: it stands in a file of the data folder that its owner alone can read.
    token: Option<Secret>,
}

impl Access {
    /// `is_near` when the address that is listened on is of this machine alone.
    pub(crate) fn new(config: &AdminConfig, is_near: bool, token: Option<Secret>) -> Access {
        let access = Access { is_near, token, ..Access::default() };
        access.set(config);
        access
    }

    /// Whether a login is asked for.
    pub(crate) fn has_users(&self) -> bool {
        !self.rules().users.is_empty()
    }

    /// Other users and rights, for requests from now on.
    pub(crate) fn set(&self, config: &AdminConfig) {
        let users = config.users.iter().filter_map(|user| {
            let verifiers = match &user.proof {
                Proof::Password(password) => Verifiers::from_password(password),
                // The configuration was refused for one that cannot be read.
                Proof::Hash(text) => text.expose().parse().ok()?,
            };
            Some(User { name: user.name.clone(), verifiers, write: user.write })
        });
        let users: Vec<User> = users.collect();
        let write = config.write && (self.is_near || !users.is_empty());
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Rules { users, write });
    }

    /// From now on nobody may change anything.
    pub(crate) fn take_write(&self) {
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        let users = rules.users.iter().map(|user| User {
            name: user.name.clone(),
            verifiers: user.verifiers,
            write: false,
        });
        *rules = Arc::new(Rules { users: users.collect(), write: false });
    }

    fn rules(&self) -> Arc<Rules> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).clone()
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
    fn judge(&self, rules: &Rules, headers: &HeaderMap, from: IpAddr) -> Result<Who, StatusCode> {
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
        let user = rules.users.iter().find(|user| user.name == name);
        // An unknown name takes as long.
        let nobody = Verifiers { sha256: Some([0; 32]), ..Verifiers::default() };
        let is_right = user.map_or(&nobody, |user| &user.verifiers).admits(&password) && user.is_some();
        match self.failed.judge(from, is_right, FAILED_LOGINS_MAX, now) {
            Verdict::Admitted => Ok(Who {
                name: Some(name.to_owned()),
                only_looks: match (rules.write, user.is_some_and(|user| user.write)) {
                    (true, true) => None,
                    (true, false) => {
                        Some(format!("{name} may look only: write of that [[admin.user]] is not true"))
                    }
                    (false, _) => Some(WRITE_OFF.to_owned()),
                },
            }),
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
pub(crate) async fn guard(
    State(access): State<Arc<Access>>,
    Extension(connection): Extension<Connection>,
    mut request: Request,
    next: Next,
) -> Response {
    if connection.is_by_door() {
        request.extensions_mut().insert(Who::anybody(Some(DOOR_SHOWS)));
        return match access.knows_token(request.headers()) {
            true => next.run(request).await,
            false => (StatusCode::FORBIDDEN, "this address is for binlogd status of this machine\n")
                .into_response(),
        };
    }
    let rules = access.rules();
    if rules.users.is_empty() {
        request.extensions_mut().insert(Who::anybody((!rules.write).then_some(WRITE_OFF)));
        return next.run(request).await;
    }
    match access.judge(&rules, request.headers(), connection.peer().ip()) {
        Ok(who) => {
            request.extensions_mut().insert(who);
            next.run(request).await
        }
        // An address that may not log in for now is answered too: a probe must not take that for an illness.
        Err(_) if ["/healthz", "/livez"].contains(&request.uri().path()) => {
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
