//! The authentication exchange, from the server's side.
//!
//! ```text
//! the client's answer to the greeting's challenge, if its method is one that the account has a verifier for
//!     otherwise: a request to change the method, with a challenge of its own ──► the answer to that
//! ──► the verifier says yes or no
//! ```
//!
//! Somebody unknown goes through the same exchange with a decoy. The verifiers of a decoy are made in each login, needed or
//! not, so that the time tells nothing either.
//!
//! Sources: MySQL Source Code Documentation, "Connection Phase" and "Caching_sha2_password information"; `run_plugin_auth`
//! in sql-common/client.cc for what clients send to a challenge of another method than theirs.

use std::net::IpAddr;

use codec::packet::{
    self, CHALLENGE_BYTES, LOGIN_BYTES_MAX, Login, auth_switch_request, capability, printable,
};
use ring::rand::{SecureRandom as _, SystemRandom};

use super::decoy::decoy;
use super::error::ClientError;
use super::verifiers::{Method, Methods, Verifiers};
use crate::channel::Channel;

const DURING: &str = "authenticating";

/// The challenge of client_ed25519, in bytes (`NONCE_BYTES` in plugin/auth_ed25519).
const LONG_CHALLENGE_BYTES: usize = 32;

/// What the server of caching_sha2_password says when the verifier that it has was enough (`fast_auth_success`).
const FAST_AUTH_SUCCESS: u8 = 3;

/// The longest user name shown, in bytes: 32 characters of four.
pub(super) const USER_BYTES_MAX: usize = 128;

/// Who may log in. Asked once a connection, by the thread of that connection.
pub trait Accounts {
    /// What checks the password of `user` coming from that address; `None` when there is no such account.
    fn find(&self, user: &str, from: IpAddr) -> Option<Verifiers>;

    /// The verdict on a password from that address that was found `right` or not: whether its client is let in. Asked once a
    /// guess, in the thread of its connection, before the client learns anything: who counts wrong guesses counts here, and
    /// can refuse a right one that comes after too many wrong ones. A login that offers no password is no guess.
    fn judge(&self, from: IpAddr, right: bool) -> bool {
        let _ = from;
        right
    }

    /// The methods of the accounts, a set for each of them or each set once. Somebody unknown is treated as one of these
    /// would be.
    fn methods(&self) -> Vec<Methods>;
}

/// A challenge that a client was sent.
#[derive(Debug, Clone)]
pub(super) struct Challenge {
    pub(super) method: Method,
    pub(super) bytes: Vec<u8>,
}

impl Challenge {
    /// A fresh one. Those in a greeting are text without NUL, as old clients expect.
    pub(super) fn new(method: Method) -> Result<Self, ClientError> {
        let length = if method == Method::Ed25519 { LONG_CHALLENGE_BYTES } else { CHALLENGE_BYTES };
        let mut bytes = vec![0; length];
        let random = SystemRandom::new().fill(&mut bytes);
        random.map_err(|_| ClientError::Io { during: DURING, reason: std::io::ErrorKind::Other.into() })?;
        if method != Method::Ed25519 {
            // Seven bits of each, and neither NUL nor the `$` that servers avoid too.
            bytes.iter_mut().for_each(|byte| *byte &= 0x7F);
            bytes.iter_mut().filter(|byte| [0, b'$'].contains(byte)).for_each(|byte| *byte += 1);
        }
        Ok(Self { method, bytes })
    }
}

/// How a client was let in.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) verifiers: Verifiers,
    /// The one that was answered.
    pub(super) challenge: Challenge,
}

/// Lets in who has the password. The client waits for OK then; who is not let in has still to be told.
pub(super) fn authenticate(
    channel: &mut Channel,
    login: &Login<'_>,
    from: IpAddr,
    greeted: &Challenge,
    accounts: &dyn Accounts,
) -> Result<Admitted, ClientError> {
    let stand_in = decoy(login.user, &accounts.methods());
    let found = std::str::from_utf8(login.user).ok().and_then(|user| accounts.find(user, from));
    let verifiers = found.unwrap_or(stand_in);
    let user = || printable(login.user, USER_BYTES_MAX);

    let claimed = Method::from_name(login.plugin.unwrap_or(Method::Native.name().as_bytes()));
    let answered = claimed.filter(|method| {
        // A client that was challenged for another method than its own leaves the answer empty.
        let has_answered = *method == greeted.method || !login.auth_response.is_empty();
        has_answered && *method != Method::Ed25519 && verifiers.methods().has(*method)
    });
    let (challenge, answer) = match answered {
        Some(method) => (Challenge { method, ..greeted.clone() }, login.auth_response.to_vec()),
        None => {
            if login.capabilities & capability::PLUGIN_AUTH == 0 {
                let with_password = offers_password(login.auth_response);
                return Err(ClientError::NoCommonMethod { user: user(), with_password });
            }
            let method = choose(verifiers.methods(), claimed, is_mariadb(login));
            let challenge = Challenge::new(method)?;
            channel.send(&auth_switch_request(method.name(), &challenge.bytes), DURING)?;
            (challenge, channel.receive_up_to(LOGIN_BYTES_MAX, DURING)?)
        }
    };
    let with_password = offers_password(&answer);
    let right = verifiers.check(challenge.method, &challenge.bytes, &answer);
    let is_let_in = (right || with_password) && accounts.judge(from, right);
    if !is_let_in {
        return Err(ClientError::Denied { user: user(), with_password });
    }
    if challenge.method == Method::CachingSha2 {
        channel.send(&packet::auth_more_data(&[FAST_AUTH_SUCCESS]), DURING)?;
    }
    Ok(Admitted { verifiers, challenge })
}

/// Not with nothing, or of caching_sha2_password the terminator of an empty text. Nobody guesses so: no account is without a
/// password. Probes of load balancers log in like that (HAProxy's `option mysql-check user`).
fn offers_password(answer: &[u8]) -> bool {
    !matches!(answer, [] | [0])
}

/// Whether the client is one of MariaDB's, as far as it tells. The replica inside a server of MariaDB says that it is
/// libmysql, and tells the host that it connects to, which MySQL's libmysql does not (seen of 10.11 and 11.8).
pub(super) fn is_mariadb(login: &Login<'_>) -> bool {
    let attributes = login.attributes;
    match attributes.get("_client_name") {
        Some(b"libmariadb") => true,
        Some(b"libmysql") if attributes.get("_server_host").is_some() => true,
        _ => login.capabilities & capability::MYSQL == 0,
    }
}

/// The method that a client is asked to use: its own where that will do, else the best that its kind is likely to have.
fn choose(methods: Methods, claimed: Option<Method>, is_mariadb: bool) -> Method {
    let by_kind = if is_mariadb {
        [Method::Ed25519, Method::Native, Method::CachingSha2]
    } else {
        [Method::CachingSha2, Method::Native, Method::Ed25519]
    };
    let mut candidates = claimed.into_iter().chain(by_kind);
    // An account without any verifier lets nobody in, by whatever method.
    candidates.find(|method| methods.has(*method)).unwrap_or(by_kind[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Methods = Methods { caching_sha2: true, native: true, ed25519: true };

    #[test]
    fn a_client_keeps_its_method_where_that_will_do() {
        assert_eq!(choose(ALL, Some(Method::Native), false), Method::Native);
        assert_eq!(choose(ALL, Some(Method::Ed25519), true), Method::Ed25519);
        let only = Methods { native: false, ..ALL };
        assert_eq!(choose(only, Some(Method::Native), false), Method::CachingSha2);
        assert_eq!(choose(only, Some(Method::Native), true), Method::Ed25519);
        let native = Methods { native: true, ..Methods::default() };
        assert_eq!(choose(native, None, false), Method::Native);
        assert_eq!(choose(native, None, true), Method::Native);
    }

    #[test]
    fn challenges_are_fresh_and_of_the_right_form() {
        for _ in 0..100 {
            let challenge = Challenge::new(Method::CachingSha2).unwrap().bytes;
            assert_eq!(challenge.len(), CHALLENGE_BYTES);
            assert!(challenge.iter().all(|byte| (1..128).contains(byte) && *byte != b'$'));
            assert_ne!(challenge, Challenge::new(Method::Native).unwrap().bytes);
        }
        assert_eq!(Challenge::new(Method::Ed25519).unwrap().bytes.len(), LONG_CHALLENGE_BYTES);
    }
}
