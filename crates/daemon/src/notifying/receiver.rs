//! How a receiver is reached: a command, or a request over HTTP. What an error says never has a URL.

use super::teller::Message;
use crate::child;
use anyhow::Context;
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

/// Runs the command with a message.
///
/// # Errors
/// In words, when it cannot be run, does not end in time, or says that it has failed.
pub(super) fn run(command: &str, message: &Message, stop: &StopSignal) -> Result<(), String> {
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
    let last = complained.lines().last().map(|last| format!(": {last}")).unwrap_or_default();
    Err(format!("{}{last}", run.ended))
}

fn line(message: &Message) -> Result<Vec<u8>, String> {
    let mut line = serde_json::to_vec(message).map_err(|error| error.to_string())?;
    line.push(b'\n');
    Ok(line)
}

/// A URL, and what it takes to ask it.
pub(super) struct Http {
    url: Url,
    client: Client,
    runtime: Runtime,
}

impl Http {
    /// For the key of `[notify]`. No request is sent.
    ///
    /// # Errors
    /// When it is no URL, or the system gives no descriptor.
    pub(super) fn new(key: &str, url: &Secret) -> anyhow::Result<Http> {
        // Another part of the process may have done so already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let url = Url::parse(url.expose()).with_context(|| format!("{key} in [notify] is no URL"))?;
        let client = Client::builder().timeout(REQUEST_MAX).redirect(Policy::none()).build();
        let client = client.map_err(|error| anyhow::anyhow!("{key} in [notify]: {}", in_words(error)))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Http { url, client, runtime })
    }

    /// Asks; with a message, posts it.
    ///
    /// # Errors
    /// In words, when the answer is not 2xx, or there is none in time.
    pub(super) fn ask(&self, message: Option<&Message>) -> Result<(), String> {
        let method = if message.is_some() { Method::POST } else { Method::GET };
        let mut request = self.client.request(method, self.url.clone());
        if let Some(message) = message {
            request = request.header("content-type", "application/json").body(line(message)?);
        }
        // Inside: the clock of the request is that of the runtime.
        let answer = self.runtime.block_on(async { request.send().await }).map_err(in_words)?;
        let status = answer.status();
        if status.is_success() { Ok(()) } else { Err(format!("it answers {status}")) }
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
