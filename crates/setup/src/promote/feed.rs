//! How the successor gets what the nodes hold: by its own replication; and where that does not bring it, because its source is dead,
//! hangs or is cut off, by a channel of its own to a node, which serves as a source does. The channels that the operator made are
//! stopped meanwhile and not changed.

use super::channel::CHANNEL;
use super::no_promotion::NoPromotion;
use super::successor::Successor;
use crate::Statement;
use crate::step::{PASSWORD_HERE, quote};
use codec::ServerKind;
use config::HostPort;
use receive::Upstream;
use std::time::Duration;
use wire::WireError;

/// The applier has read all that was received, and nothing new comes: so long that is believed to be a pause. A source that is alive
/// sends within milliseconds.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Longest time to connect to a node.
const CONNECT_MAX: Duration = Duration::from_secs(3);

/// A node that the successor reads from.
#[derive(Debug)]
struct Feeder {
    address: HostPort,
    is_encrypted: bool,
}

/// Who feeds the successor, look by look.
pub(super) struct Feed {
    upstream: Upstream,
    /// Nodes that hold everything, and were not tried yet; the best last.
    untried: Vec<HostPort>,
    /// The node that is read from now.
    now: Option<HostPort>,
    /// Since when its own replication brings nothing.
    pause: Option<std::time::Instant>,
    /// What did not go well.
    problems: Vec<String>,
}

impl Feed {
    /// By these nodes, where it comes to that; the best first.
    pub(super) fn by(upstream: &Upstream, nodes: Vec<HostPort>) -> Feed {
        let untried = nodes.into_iter().rev().collect();
        Feed { upstream: upstream.clone(), untried, now: None, pause: None, problems: Vec::new() }
    }

    /// Why it did not come, in words that go behind what is lacking.
    pub(super) fn problems(&self) -> String {
        match self.problems.is_empty() {
            true => String::new(),
            false => format!(" ({})", self.problems.join("; ")),
        }
    }

    /// The successor lacks something still. Returns the node to which its replication was led just now.
    pub(super) fn look(&mut self, successor: &mut Successor) -> Result<Option<String>, NoPromotion> {
        let channels = successor.channels()?;
        let brings = |channel: &&super::channel::Channel| channel.applies && !channel.is_idle;
        match &self.now {
            None => {
                if channels.iter().any(|channel| brings(&channel)) {
                    self.pause = None;
                    return Ok(None);
                }
                let now = self.upstream.clock.now();
                let is_dead = channels.iter().all(|channel| !channel.receives);
                let since = *self.pause.get_or_insert(now);
                if !is_dead && now.saturating_duration_since(since) < PAUSE_MAX {
                    return Ok(None);
                }
            }
            Some(node) => {
                let own = channels.iter().find(|channel| channel.name == CHANNEL);
                let Some(error) = own.and_then(|channel| channel.error.clone()) else { return Ok(None) };
                self.problems.push(format!("{node}: {error}"));
            }
        }
        self.next(successor)
    }

    fn next(&mut self, successor: &mut Successor) -> Result<Option<String>, NoPromotion> {
        while let Some(address) = self.untried.pop() {
            let led = self
                .reach(&address)
                .map_err(|error| error.to_string())
                .and_then(|feeder| successor.read_from(&feeder, &self.upstream));
            match led {
                Ok(()) => {
                    self.now = Some(address.clone());
                    return Ok(Some(address.to_string()));
                }
                Err(error) => self.problems.push(format!("{address}: {error}")),
            }
        }
        Ok(None)
    }

    fn reach(&self, address: &HostPort) -> Result<Feeder, WireError> {
        let connection = self.upstream.connect_to(address, CONNECT_MAX)?;
        let feeder = Feeder { address: address.clone(), is_encrypted: connection.tls_version().is_some() };
        connection.close();
        Ok(feeder)
    }
}

impl Successor {
    /// Stops the channels that are there, and replicates from a node.
    fn read_from(&mut self, feeder: &Feeder, upstream: &Upstream) -> Result<(), String> {
        self.end_feed()?;
        self.run(self.stop_all())?;
        let (password, _) = upstream.config.password_now();
        for statement in self.reading_from(feeder, &upstream.config.user) {
            self.run(&statement.sql(&password)).map_err(|error| format!("{}: {error}", statement.shown()))?;
        }
        Ok(())
    }

    fn reading_from(&self, feeder: &Feeder, user: &str) -> [Statement; 2] {
        let HostPort { host, port } = &feeder.address;
        let (host, user, ssl) = (quote(host), quote(user), u8::from(feeder.is_encrypted));
        if self.identity.kind == ServerKind::MariaDb {
            return [
                Statement::new(format!(
                    "CHANGE MASTER '{CHANNEL}' TO MASTER_HOST = {host}, MASTER_PORT = {port}, MASTER_USER = {user}, MASTER_PASSWORD = \
                     {PASSWORD_HERE}, MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1"
                )),
                Statement::new(format!("START SLAVE '{CHANNEL}'")),
            ];
        }
        let word = self.word("SOURCE", "MASTER");
        let change = self.word("CHANGE REPLICATION SOURCE", "CHANGE MASTER");
        let start = self.word("START REPLICA", "START SLAVE");
        [
            Statement::new(format!(
                "{change} TO {word}_HOST = {host}, {word}_PORT = {port}, {word}_USER = {user}, {word}_PASSWORD = {PASSWORD_HERE}, \
                 {word}_AUTO_POSITION = 1, {word}_SSL = {ssl}, {word}_CONNECT_RETRY = 1 FOR CHANNEL '{CHANNEL}'"
            )),
            Statement::new(format!("{start} FOR CHANNEL '{CHANNEL}'")),
        ]
    }

    /// Takes the channel to a node away, also one that an interrupted promotion has left.
    pub(super) fn end_feed(&mut self) -> Result<(), String> {
        let channels = self.channels().map_err(|error| error.to_string())?;
        if !channels.iter().any(|channel| channel.name == CHANNEL) {
            return Ok(());
        }
        let statements = match self.identity.kind {
            ServerKind::MariaDb => {
                [format!("STOP SLAVE '{CHANNEL}'"), format!("RESET SLAVE '{CHANNEL}' ALL")]
            }
            ServerKind::MySql => [
                format!("{} FOR CHANNEL '{CHANNEL}'", self.word("STOP REPLICA", "STOP SLAVE")),
                format!("{} FOR CHANNEL '{CHANNEL}'", self.word("RESET REPLICA ALL", "RESET SLAVE ALL")),
            ],
        };
        statements.iter().try_for_each(|statement| self.run(statement))
    }
}
