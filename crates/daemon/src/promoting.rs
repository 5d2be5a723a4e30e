//! A promotion that a tool asks for over HTTP: what `binlogd promote` does, by this node.

use admin::{NotPromoted, PromoteAsked};
use config::HostPort;
use config::value::parse_host_port;
use receive::Upstream;
use serde_json::{Value, json};
use setup::promote::{Group, Promote, PromoteAnswer, Request, reached_at, rescue_command};
use status::Level;
use std::net::SocketAddr;
use std::sync::{Mutex, TryLockError};
use std::time::{Duration, Instant};
use wire::ConnectOptions;

/// Longest time to connect to the server, and for each of its answers until the promotion says otherwise.
const CONNECT_MAX: Duration = Duration::from_secs(30);

/// Whoever stops binlogd waits so long for a promotion that is under way. What is cut off then is gone on with by whoever asks again.
const STOP_MAX: Duration = Duration::from_secs(10);

/// Pause between two looks whether it has ended.
const STOP_LOOK: Duration = Duration::from_millis(20);

/// The place for one promotion at a time: its lock is held while one is under way. True: there is none any more.
#[derive(Debug, Default)]
pub(super) struct Promoting(Mutex<bool>);

impl Promoting {
    /// Carries one out, whoever listens.
    pub(super) fn carry_out(
        &self,
        upstream: &Upstream,
        listens: SocketAddr,
        asked: &PromoteAsked,
        by: &str,
    ) -> Result<Value, NotPromoted> {
        let refused = |why: &str| NotPromoted::Refused(why.to_owned());
        let is_closed = match self.0.try_lock() {
            Ok(is_closed) => is_closed,
            Err(TryLockError::Poisoned(held)) => held.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(refused(
                    "another promotion is under way at this node: ask again when it has ended",
                ));
            }
        };
        if *is_closed {
            return Err(refused("this binlogd is being stopped: ask another node"));
        }
        let to = options(upstream, asked).map_err(NotPromoted::Asked)?;
        let source = &upstream.config.name;
        let host = &asked.to;
        let what = if asked.dry_run { "a dry run of a promotion" } else { "a promotion" };
        tracing::info!(source, "{what} of {host}, asked for by {by}");
        let outcome = promoted(upstream, listens, asked, to);
        let (level, text) = match &outcome {
            Ok(_) if asked.dry_run => (None, "nothing stands against it".to_owned()),
            Ok(answer) if answer.done => {
                (Some(Level::Notice), format!("it is the source of epoch {}", answer.epoch.unwrap_or(0)))
            }
            Ok(_) => (None, "it is the source already".to_owned()),
            Err(why) => (Some(Level::Warning), why.clone()),
        };
        let text = format!("{what} of {host}, asked for by {by}: {text}");
        tracing::info!(source, "{text}");
        if let Some(level) = level.filter(|_| !asked.dry_run) {
            upstream.monitor.note(level, "operator", text);
        }
        outcome.map(|answer| json!(answer)).map_err(NotPromoted::Refused)
    }

    /// Lets one that is under way end, for a while, and takes none any more.
    pub(super) fn end(&self) {
        let asked = Instant::now();
        loop {
            match self.0.try_lock() {
                Ok(mut is_closed) => *is_closed = true,
                Err(TryLockError::Poisoned(held)) => *held.into_inner() = true,
                Err(TryLockError::WouldBlock) if asked.elapsed() < STOP_MAX => {
                    std::thread::sleep(STOP_LOOK);
                    continue;
                }
                Err(TryLockError::WouldBlock) => {
                    tracing::warn!(
                        "a promotion is cut off: it has not ended within {STOP_MAX:?}. Ask for the same again, at any node"
                    );
                }
            }
            return;
        }
    }
}

/// The server, and who to be there: an account of the question, else that of the source.
fn options(upstream: &Upstream, asked: &PromoteAsked) -> Result<ConnectOptions, String> {
    let to = parse_host_port(&asked.to).map_err(|why| format!("to {why}"))?;
    let hosts = &upstream.config.hosts;
    if !hosts.contains(&to) {
        let hosts: Vec<String> = hosts.iter().map(HostPort::to_string).collect();
        return Err(format!("to is {to}, and must be one of hosts: {}", hosts.join(", ")));
    }
    let options = upstream.options_of(&to, CONNECT_MAX);
    Ok(match &asked.user {
        Some(user) => ConnectOptions { user: user.clone(), password: asked.password.clone(), ..options },
        None => options,
    })
}

fn promoted(
    upstream: &Upstream,
    listens: SocketAddr,
    asked: &PromoteAsked,
    to: ConnectOptions,
) -> Result<PromoteAnswer, String> {
    let source = upstream.config.name.clone();
    // Not the receiver's own: what ends a session there, as a new epoch does, must not end this.
    let asking = Upstream::asking(upstream.config.clone(), &upstream.data_dir);
    let request = Request {
        rescue: rescue_command(&upstream.data_dir, &source, &to),
        to,
        wait: Duration::from_secs(asked.wait),
        epoch: asked.epoch,
        accept: asked.accept.clone(),
    };
    let mut promote =
        Promote::look(Group::new(asking, reached_at(listens)), request).map_err(|error| error.to_string())?;
    let left = promote.left_to_open().map_err(|error| error.to_string())?;
    let is_open = promote.present.is_some() && left.is_empty();
    if asked.dry_run || is_open && !asked.repoint {
        return Ok(PromoteAnswer::found(&mut promote, left));
    }
    let mut hear = |step: &str| tracing::info!(source, "promotion of {}: {step}", asked.to);
    let done = promote.carry_out(&mut hear).map_err(|error| error.to_string())?;
    let repointed = if asked.repoint { promote.repoint() } else { Vec::new() };
    Ok(PromoteAnswer::done(&mut promote, done, repointed))
}
