//! From a connection to somebody who may read: the greeting, the login, the source that is served.

use super::facts::Identity;
use super::limits::{LOGIN_MAX, WRITE_MAX};
use super::readers::{Arrival, Present};
use super::refusals::Reason;
use super::shared::{Rules, Shared, Source};
use crate::answer;
use codec::ServerKind;
use codec::packet::{ErrPacket, reply};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Instant;
use wire::{AcceptOptions, Accepted, Accounts, ClientError, Method, Methods, Verdict, Verifiers};

/// How many questions of somebody who is served nothing are answered, and how long they may be, in bytes.
const ANSWERS_MAX: u32 = 4;
const QUESTION_BYTES_MAX: usize = 4096;

/// Somebody who was let in.
pub(crate) struct LetIn {
    pub(crate) accepted: Accepted,
    /// Name of the source that is served.
    pub(crate) name: String,
    pub(crate) source: Source,
    pub(crate) identity: Identity,
    pub(crate) present: Present,
}

/// Greets, and lets in who has the password of an account. Who is not let in was told why, was counted, and is in the log.
pub(crate) fn let_in(
    shared: &Arc<Shared>,
    rules: &Rules,
    socket: TcpStream,
    address: SocketAddr,
    id: u32,
) -> Option<LetIn> {
    let hesitating = shared.strangers.hesitates(id);
    let Some(greeting) = identity_of_greeting(shared, rules) else {
        let why = if rules.users.all_sources().next().is_none() {
            "Nobody can log in to this binlogd: no account of readers has a password; see [[serve.user]]"
        } else {
            "binlogd has nothing of its source that can be read now: nothing is held yet, or its disk has failed; binlogd status says \
             which. Try again when it receives"
        };
        shared.refusals.refused(Reason::NothingToServe, address, why);
        super::shared::refuse(&socket, 1053, "08S01", why);
        return None;
    };
    let options = AcceptOptions {
        version: greeting.version.clone(),
        kind: greeting.kind,
        connection_id: id,
        default_method: default_method(&greeting),
        databases: answer::DATABASES,
        tls: rules.tls.as_ref().map(|shown| shown.tls.clone()),
        require_tls: rules.config.require_tls,
        login_timeout: LOGIN_MAX,
        write_timeout: WRITE_MAX,
    };
    let accepted = wire::accept(socket, &options, &Judge { shared, rules });
    let is_displaced = hesitating.is_displaced();
    drop(hesitating);
    let mut accepted = match accepted {
        Ok(accepted) => accepted,
        // Said when it was displaced.
        Err(_) if is_displaced => return None,
        Err(error) => {
            not_let_in(shared, rules, address, &error);
            return None;
        }
    };
    match admit(shared, rules, &greeting, &accepted, address, id) {
        Ok((name, source, identity, present)) => Some(LetIn { accepted, name, source, identity, present }),
        Err((reason, error)) => {
            let user = &accepted.client().user;
            shared.refusals.refused(reason, address, &format!("user {user:?}: {}", error.message));
            end_with(&mut accepted, &error);
            None
        }
    }
}

type Admitted = (String, Source, Identity, Present);

/// What somebody with a password is served.
fn admit(
    shared: &Arc<Shared>,
    rules: &Rules,
    greeting: &Identity,
    accepted: &Accepted,
    address: SocketAddr,
    id: u32,
) -> Result<Admitted, (Reason, ErrPacket)> {
    let nothing = |message: String| (Reason::NothingToServe, error(1105, "HY000", message));
    let client = accepted.client();
    let name =
        rules.users.source_of(&client.user).map_err(|ambiguous| nothing(ambiguous.to_string()))?.to_owned();
    let Some(source) = shared.source(&name) else {
        return Err(nothing(format!("source {name} is not received any more")));
    };
    let identity = match Identity::of(&source) {
        Ok(Some(identity)) => identity,
        Ok(None) => return Err(nothing(format!("nothing of source {name} is held yet"))),
        Err(error) => {
            tracing::error!(source = name, "a reader cannot be served: {error}");
            return Err(nothing("the copy cannot be read; see the log of binlogd".to_owned()));
        }
    };
    if identity.kind != greeting.kind {
        // Clients decide by the greeting how they ask: the wrong one would lead to a wrong place, or to a dump that they cannot read.
        let message = format!(
            "this port greets as {}, and source {name} is {}: MySQL and MariaDB cannot be served at one port. Receive one of \
             them with another binlogd, which has a data_dir and a [serve] listen of its own",
            greeting.version, identity.version
        );
        return Err(nothing(message));
    }
    let Ok(closer) = accepted.closer() else {
        return Err((
            Reason::NoResources,
            error(1041, "08004", "binlogd has no file descriptors left".to_owned()),
        ));
    };
    let program = client.attribute("program_name").or(client.attribute("_client_name")).unwrap_or_default();
    let arrival = Arrival {
        id,
        user: client.user.clone(),
        address,
        source: name.clone(),
        program: program.to_owned(),
        closer,
        published: source.published.clone(),
    };
    let Some(present) = shared.readers.arrived(arrival, shared.readers_max(rules) as usize) else {
        return Err((Reason::TooManyConnections, error(1040, "08004", "Too many connections".to_owned())));
    };
    // The source may have been started again since it was looked up: nobody would end this session then.
    if shared.source(&name).is_none_or(|now| !Arc::ptr_eq(&now.published, &source.published)) {
        return Err(nothing(format!("source {name} was started again; connect once more")));
    }
    Ok((name, source, identity, present))
}

/// The accounts, with wrong guesses counted.
struct Judge<'a> {
    shared: &'a Shared,
    rules: &'a Rules,
}

impl Accounts for Judge<'_> {
    fn find(&self, user: &str, from: IpAddr) -> Option<Verifiers> {
        self.rules.users.find(user, from)
    }

    fn methods(&self) -> Vec<Methods> {
        self.rules.users.methods()
    }

    fn judge(&self, from: IpAddr, right: bool) -> bool {
        let max = self.rules.config.max_failed_logins;
        let verdict = self.shared.failed_logins.judge(from, right, max, Instant::now());
        if verdict == Verdict::WrongTooOften {
            tracing::warn!(
                address = %from,
                "{max} logins from this address have failed (max_failed_logins); it is refused for a minute, with its /64 if it \
                 is one of IPv6"
            );
        }
        verdict == Verdict::Admitted
    }
}

/// As the server itself would greet.
fn default_method(identity: &Identity) -> Method {
    let is_new = codec::packet::release(&identity.version).is_some_and(|release| release >= (8, 0, 0));
    if identity.kind == ServerKind::MySql && is_new { Method::CachingSha2 } else { Method::Native }
}

/// The version of the greeting comes before anybody is known: that of the first source which any user may read.
fn identity_of_greeting(shared: &Shared, rules: &Rules) -> Option<Identity> {
    let mut names = rules.users.all_sources();
    names.find_map(|name| {
        let source = shared.source(name)?;
        Identity::of(&source)
            .inspect_err(|error| tracing::error!(source = name, "readers cannot be served: {error}"))
            .ok()
            .flatten()
    })
}

fn not_let_in(shared: &Shared, rules: &Rules, address: SocketAddr, error: &ClientError) {
    let reason = match error {
        ClientError::NoCommonMethod { with_password, .. } => {
            // No guess was judged; but who tries it with each name is to be counted too.
            if *with_password {
                Judge { shared, rules }.judge(address.ip(), false);
            }
            Reason::Login
        }
        ClientError::Denied { .. } | ClientError::UnknownDatabase { .. } => Reason::Login,
        ClientError::NotEncrypted => Reason::NotEncrypted,
        ClientError::Timeout { .. } => Reason::Timeout,
        _ => Reason::Protocol,
    };
    shared.refusals.refused(reason, address, &error.to_string());
}

fn error(code: u16, sqlstate: &str, message: String) -> ErrPacket {
    ErrPacket { code, sqlstate: sqlstate.to_owned(), message }
}

/// Tells somebody who has logged in why he is served nothing. The client asks first, and the command-line clients show no error
/// of what they ask by themselves, so some questions get the same answer.
fn end_with(accepted: &mut Accepted, error: &ErrPacket) {
    let mut bytes = Vec::new();
    reply::err(&mut bytes, 1, error);
    let deadline = Instant::now() + LOGIN_MAX;
    for _ in 0..ANSWERS_MAX {
        // Where it does not listen, it learns nothing.
        let left = deadline.saturating_duration_since(Instant::now());
        match accepted.receive(left, QUESTION_BYTES_MAX) {
            Ok(Some(message)) if message != codec::packet::command::quit() => {
                if accepted.send(&bytes).is_err() {
                    return;
                }
            }
            _ => return,
        }
    }
}
