//! binlogd, attached to a source.

use super::program::Program;
use crate::interrupt::Interrupt;
use crate::lab::Lab;
use crate::machine::cpus::Role;
use crate::server::{Target, address};
use crate::window::Place;
use anyhow::bail;
use rig::status_client::StatusClient;
use rig::usage::Usage;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Longest wait until binlogd answers after its start.
const START_MAX: Duration = Duration::from_secs(30);
/// Longest wait until it has received what the source's current log file holds already.
const CATCH_UP_MAX: Duration = Duration::from_secs(600);

/// How binlogd is to behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// 0 or 1.
    pub fsync_mode: u8,
    /// It acknowledges; otherwise it receives asynchronously.
    pub semi_sync: bool,
    /// Its connection with one of the lab's own servers is encrypted, or there is none. Otherwise it is in clear there;
    /// with a user's server it is encrypted in either case if the server can.
    pub tls: bool,
}

impl Options {
    /// binlogd's word for it, see docs/security.md.
    fn tls_mode(self, is_users: bool) -> &'static str {
        match (self.tls, is_users) {
            (true, _) => "required",
            (false, true) => "preferred",
            (false, false) => "disabled",
        }
    }
}

/// A running binlogd. Dropping it kills it and removes its copy.
#[derive(Debug)]
pub struct Binlogd {
    program: Program,
    status: StatusClient,
    options: Options,
    /// Sessions that the source had encrypted before; `None` where it need not be encrypted.
    encrypted_before: Option<u64>,
    lab: Lab,
}

/// Its own counters, of all since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes read from the source's connection, packet headers included.
    pub bytes_received: u64,
    /// Bytes appended to its copy.
    pub bytes_written: u64,
    /// Transactions stored to their end.
    pub transactions: u64,
    /// Acknowledgements sent.
    pub acknowledgements: u64,
    /// Sessions with the source that ended.
    pub reconnects: u64,
    /// Durable writes of its journal, and syncs of the copy.
    pub syncs: u64,
}

impl Binlogd {
    /// Starts it with a folder of its own in `dir`, at the source's current log file, and waits until it has received
    /// what that holds.
    ///
    /// # Errors
    /// When it does not start or does not receive; the error holds its last words. When the run is broken off.
    pub fn attach(lab: &Lab, source: &mut Target, options: Options, dir: &Path) -> anyhow::Result<Binlogd> {
        let end = source.log_end()?;
        let encrypted_before = options.tls.then(|| source.encrypted_sessions()).transpose()?;
        let placed = lab.place(Role::Receiver)?;
        let program = Program::start("binlogd", dir, |data| {
            let mut command = Command::new(&lab.binlogd);
            command.arg("run").arg("--data-dir").arg(data);
            command.args(["--source", &address::url_without_password(&source.account_of_receivers())]);
            command.args(["--tls", options.tls_mode(source.is_users())]);
            command.args(["--fsync-mode", &options.fsync_mode.to_string()]);
            command.args(["--semi-sync", if options.semi_sync { "true" } else { "false" }]);
            // A source notices by its next heartbeat that a receiver is gone. On a user's server that is waited for.
            command.args(["--start", "latest", "--heartbeat-period", "500ms"]);
            command.args(["--admin-listen", "127.0.0.1:0", "--log-level", "warn"]);
            // In the environment, where other accounts do not see it.
            command.env("BINLOGD_PASSWORD", source.account().password.expose());
            Ok(command)
        })?;
        drop(placed);
        source.started(program.pid())?;
        let data = program.folder().join("data");
        let address = data.join("admin.address");
        let answers = lab.interrupt.wait(START_MAX, || {
            program.check()?;
            Ok(std::fs::read_to_string(&address).is_ok_and(|text| text.ends_with('\n')).then_some(()))
        })?;
        if answers.is_none() {
            bail!("binlogd does not answer: {}", program.said());
        }
        let status = StatusClient::of(&data)?;
        let mut binlogd = Binlogd { program, status, options, encrypted_before, lab: lab.clone() };
        binlogd.catch_up(&end, &lab.interrupt)?;
        Ok(binlogd)
    }

    /// Waits until it has received through `end`, and on the way negotiated semi-sync as wanted.
    fn catch_up(&mut self, end: &Place, interrupt: &Interrupt) -> anyhow::Result<()> {
        let reached = interrupt.wait(CATCH_UP_MAX, || {
            let source = self.source()?;
            let written = &source["positions"]["written"];
            let there = written["file"].as_str() > Some(&end.file)
                || (written["file"] == end.file.as_str()
                    && written["position"].as_u64() >= Some(end.position));
            Ok((source["state"] == "receiving" && there).then_some(()))
        })?;
        if reached.is_none() {
            bail!("binlogd has not received through {}:{}: {}", end.file, end.position, self.complaint());
        }
        Ok(())
    }

    /// The only source in its own status, see docs/status.md.
    ///
    /// # Errors
    /// When it has ended, with its last words, or does not answer.
    pub fn source(&mut self) -> anyhow::Result<Value> {
        self.program.check()?;
        let _placed = self.lab.enter_link()?;
        Ok(self.status.status()?["sources"][0].clone())
    }

    /// Its counters now.
    ///
    /// # Errors
    /// As [`Binlogd::source`].
    pub fn counters(&mut self) -> anyhow::Result<Counters> {
        let source = self.source()?;
        let counter = |name: &str| source["counters"][name].as_u64().unwrap_or(0);
        Ok(Counters {
            bytes_received: counter("bytes_received"),
            bytes_written: counter("bytes_written"),
            transactions: counter("transactions"),
            acknowledgements: counter("acknowledgements"),
            reconnects: counter("reconnects"),
            syncs: counter("syncs"),
        })
    }

    /// What is wrong with its encryption by the source's word: it must be encrypted, and the source has encrypted no
    /// session since before its start. Before the load nobody else speaks to one of the lab's own servers, but for the lab's
    /// session from before.
    ///
    /// # Errors
    /// When the source does not answer.
    pub fn in_clear(&self, source: &mut Target) -> anyhow::Result<Option<String>> {
        let Some(before) = self.encrypted_before else { return Ok(None) };
        let none = source.encrypted_sessions()? == before;
        Ok(none.then(|| "the source has encrypted no session since binlogd was started".to_owned()))
    }

    /// What is not as it must be before and after a load, by its own word: receiving, in its `fsync_mode`, encrypted if
    /// it was told so, acknowledging or not as it was told, and never disconnected.
    ///
    /// # Errors
    /// As [`Binlogd::source`].
    pub fn not_attached(&mut self) -> anyhow::Result<Option<String>> {
        let source = self.source()?;
        let Options { fsync_mode, semi_sync, tls } = self.options;
        let right = source["state"] == "receiving"
            && source["fsync_mode"] == fsync_mode
            && source["semi_sync"]["active"] == semi_sync
            && (source["tls"].is_string() || !tls)
            && source["counters"]["reconnects"] == 0;
        Ok((!right).then(|| {
            format!(
                "binlogd is {} with fsync_mode {}, TLS: {}, semi-sync: {}, and was disconnected {} times",
                source["state"],
                source["fsync_mode"],
                source["tls"],
                source["semi_sync"]["reason"],
                source["counters"]["reconnects"]
            )
        }))
    }

    /// What it has used until now.
    ///
    /// # Errors
    /// When it has ended, with its last words.
    pub fn usage(&self) -> anyhow::Result<Usage> {
        self.program.usage()
    }

    /// Its last words, for a reason why a cell is invalid.
    pub fn complaint(&mut self) -> String {
        let detail =
            self.source().map(|source| format!("{} {}", source["state"], source["last_error"]["message"]));
        let words = [detail.unwrap_or_default(), self.program.said()];
        words.join(" / ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_encrypted_never_falls_back_and_what_is_not_speaks_in_clear_with_our_own_servers() {
        let options = |tls| Options { fsync_mode: 1, semi_sync: true, tls };
        assert_eq!([true, false].map(|users| options(true).tls_mode(users)), ["required", "required"]);
        assert_eq!([true, false].map(|users| options(false).tls_mode(users)), ["preferred", "disabled"]);
    }
}
