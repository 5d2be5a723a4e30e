//! How a receiver is reached: a command, or a request over HTTP. What an error of a request says never has the URL; that of a command has what
//! the command itself said last.

use super::teller::Message;
use crate::child::{self, Ended};
use codec::packet::printable;
use config::password::{PASSWORD_VARIABLE, URL_PASSWORD_VARIABLE};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Url};
use source::stop::StopSignal;
use std::error::Error;
use std::process::Command;
use std::time::Duration;
use tokio::runtime::Runtime;
use wire::Secret;

/// Longest time for a command, and for a request with its answer.
const COMMAND_MAX: Duration = Duration::from_secs(30);
const REQUEST_MAX: Duration = Duration::from_secs(10);

/// So much of the last line that a command complained is shown, in bytes.
const SAID_MAX: usize = 200;

/// Why a receiver was not told.
pub(super) struct Failure {
    /// In words.
    pub(super) why: String,
    /// It is there, and does not take this message; it may take another one.
    pub(super) is_refusal: bool,
}

impl From<String> for Failure {
    fn from(why: String) -> Failure {
        Failure { why, is_refusal: false }
    }
}

/// Runs the command with a message.
///
/// # Errors
/// When it cannot be run, does not end in time, or says that it has failed.
pub(super) fn run(command: &str, message: &Message, stop: &StopSignal) -> Result<(), Failure> {
    let mut process = Command::new("/bin/sh");
    let kinds: Vec<&str> = message.problems.iter().map(|problem| problem.kind.as_str()).collect();
    process.args(["-c", command]).envs([
        ("BINLOGD_SOURCE", message.source.as_deref().unwrap_or_default()),
        ("BINLOGD_LEVEL", message.level.word()),
        ("BINLOGD_BEFORE", message.before.map(status::Level::word).unwrap_or_default()),
        ("BINLOGD_REASONS", &kinds.join(",")),
        ("BINLOGD_HEADLINE", &message.headline),
    ]);
    // The password of the server is nothing for it.
    process.env_remove(PASSWORD_VARIABLE).env_remove(URL_PASSWORD_VARIABLE);
    let run = child::run_with(&mut process, line(message)?, COMMAND_MAX, stop);
    let run = run.map_err(|error| format!("it cannot be run: {error}"))?;
    if run.ended.is_success() {
        return Ok(());
    }
    let complained = String::from_utf8_lossy(&run.complained);
    let last = complained.lines().last().map(|last| printable(last.as_bytes(), SAID_MAX));
    let last = last.map(|last| format!(": {last}")).unwrap_or_default();
    Err(Failure { why: format!("{}{last}", run.ended), is_refusal: matches!(run.ended, Ended::Itself(_)) })
}

fn line(message: &Message) -> Result<Vec<u8>, String> {
    let mut line = serde_json::to_vec(message).map_err(|error| error.to_string())?;
    line.push(b'\n');
    Ok(line)
}

/// A URL that is asked.
pub(super) struct Http {
    url: Secret,
    /// `None` until it could be had. A system that lacks something for it, such as certificates, concerns this receiver alone.
    way: Option<Way>,
}

/// What it takes to ask.
struct Way {
    url: Url,
    client: Client,
    runtime: Runtime,
}

impl Http {
    /// No request is sent.
    pub(super) fn new(url: &Secret) -> Http {
        Http { url: url.clone(), way: None }
    }

    /// Asks; with a message, posts it.
    ///
    /// # Errors
    /// When the answer is not 2xx, or there is none in time, or the system lacks what it takes to ask.
    pub(super) fn ask(&mut self, message: Option<&Message>) -> Result<(), Failure> {
        let way = match &mut self.way {
            Some(way) => way,
            none => none.insert(Way::to(&self.url)?),
        };
        let method = if message.is_some() { Method::POST } else { Method::GET };
        let mut request = way.client.request(method, way.url.clone());
        if let Some(message) = message {
            request = request.header("content-type", "application/json").body(line(message)?);
        }
        // Inside: the clock of the request is that of the runtime.
        let answer = way.runtime.block_on(async { request.send().await }).map_err(in_words)?;
        let status = answer.status();
        let refused = || Failure { why: format!("it answers {status}"), is_refusal: true };
        if status.is_success() { Ok(()) } else { Err(refused()) }
    }
}

impl Way {
    fn to(url: &Secret) -> Result<Way, String> {
        // Another part of the process may have done so already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let url = Url::parse(url.expose()).map_err(|error| format!("it is no URL: {error}"))?;
        let mut client = Client::builder().timeout(REQUEST_MAX).redirect(Policy::none());
        if url.scheme() == "http" {
            // Otherwise it wants certificates of authorities for this too.
            client = client.tls_certs_only([]);
        }
        let client = client.build().map_err(in_words)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Way { url, client, runtime: runtime.map_err(|error| error.to_string())? })
    }
}

/// With its causes, and without the URL.
fn in_words(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::teller::{Now, Teller};
    use super::*;
    use std::time::Instant;

    #[test]
    fn what_a_command_complains_is_shown_short_and_harmless() {
        let now = Now { source: String::new(), headline: String::new(), problems: Vec::new() };
        let message = Teller::new(Duration::ZERO).due(vec![now], Instant::now(), "").remove(0);
        let script = "printf 'first\\nred \\033[31m' >&2; head -c 1000 /dev/zero | tr '\\0' x >&2; exit 3";
        let failure = run(script, &message, &StopSignal::new()).unwrap_err();
        let shown = failure
            .why
            .strip_prefix("exit code 3: red  [31mxxx")
            .unwrap_or_else(|| panic!("{}", failure.why));
        assert!(failure.is_refusal && shown.len() < SAID_MAX, "{shown}");
    }
}
