//! The other replicas of the list are pointed to the new source.

use super::channel::Channel;
use super::steps::Promote;
use super::successor::Successor;
use config::HostPort;
use std::time::Duration;
use wire::ConnectOptions;

/// So long a replica is waited for to receive from the new source.
const RECEIVES_MAX: Duration = Duration::from_secs(10);

/// Pause between two looks at that.
const LOOK: Duration = Duration::from_millis(50);

/// What became of one host of the list.
#[derive(Debug)]
pub struct Repointed {
    /// The host, as in the list.
    pub host: String,
    /// Why it is not pointed to the new source.
    pub refused: Option<String>,
}

impl Promote {
    /// Points each host of the list that is a replica to the successor, with the account of the operator. What was done before is no
    /// harm. Gives what became of each but the successor.
    pub fn repoint(&mut self) -> Vec<Repointed> {
        let hosts = self.group.upstream.config.hosts.clone();
        hosts.iter().filter_map(|host| self.repoint_one(host)).collect()
    }

    fn repoint_one(&mut self, host: &HostPort) -> Option<Repointed> {
        let options = ConnectOptions { host: host.host.clone(), port: host.port, ..self.request.to.clone() };
        let mut replica = match Successor::reach(&options, &host.to_string()) {
            Ok(replica) => replica,
            Err(error) => {
                return Some(Repointed { host: host.to_string(), refused: Some(error.to_string()) });
            }
        };
        if replica.identity.uuid == self.successor.identity.uuid {
            return None;
        }
        let refused = self.point(&mut replica).err();
        Some(Repointed { host: host.to_string(), refused })
    }

    fn point(&mut self, replica: &mut Successor) -> Result<(), String> {
        let channels = replica.channels().map_err(|error| error.to_string())?;
        self.successor.ask_executed().map_err(|error| error.to_string())?;
        let channel = refusal(replica, &channels, &self.successor)?;
        let source = self.successor.identity.uuid.clone();
        if channel.receives && channel.source_uuid == source {
            return Ok(());
        }
        for statement in statements(replica, channel, &self.request.to) {
            replica.run(&statement).map_err(|error| format!("{statement}: {error}"))?;
        }
        let until = self.group.upstream.clock.now() + RECEIVES_MAX;
        loop {
            let channels = replica.channels().map_err(|error| error.to_string())?;
            match channels.first() {
                Some(channel) if channel.receives && channel.source_uuid == source => return Ok(()),
                Some(channel) if self.group.upstream.clock.now() >= until => {
                    return Err(format!(
                        "it was pointed there, and does not receive within {RECEIVES_MAX:?}: {}",
                        channel.error.as_deref().unwrap_or("it does not say why")
                    ));
                }
                _ => self.group.upstream.clock.sleep(LOOK),
            }
        }
    }
}

/// Why a replica is not pointed to another source; its channel where nothing stands against that.
fn refusal<'a>(
    replica: &Successor,
    channels: &'a [Channel],
    source: &Successor,
) -> Result<&'a Channel, String> {
    let [channel] = channels else {
        return Err(match channels.len() {
            0 => "it is no replica, and stays as it is. The old source is made one by hand, as is said of it"
                .to_owned(),
            several => format!(
                "it replicates over {several} channels: which of them is to be changed is for a person to say"
            ),
        });
    };
    if !replica.identity.has_gtids || !channel.by_gtid {
        let why = "it does not replicate by GTID (SOURCE_AUTO_POSITION, MASTER_USE_GTID), and where it is in the new source's log nobody \
                   knows";
        return Err(why.to_owned());
    }
    let own = replica.identity.own(&source.identity.lacks(&replica.identity.executed));
    if !own.is_empty() {
        return Err(format!("it has transactions of its own that the source lacks: {}", own.to_line()));
    }
    let on = [
        ("rpl_semi_sync_replica_enabled", "it would acknowledge alone what no majority of the nodes has"),
        ("rpl_semi_sync_slave_enabled", "it would acknowledge alone what no majority of the nodes has"),
        ("rpl_semi_sync_source_enabled", "it would wait for acknowledgements of what it applies"),
        ("rpl_semi_sync_master_enabled", "it would wait for acknowledgements of what it applies"),
    ];
    match on.into_iter().find(|(name, _)| replica.facts.is_on(name)) {
        Some((name, why)) => Err(format!("{name} is ON: {why}. Set it to OFF there, and run this again")),
        None => Ok(channel),
    }
}

/// Login, TLS and the way by GTID stay as they are.
fn statements(replica: &Successor, channel: &Channel, to: &ConnectOptions) -> [String; 3] {
    let (host, port) = (to.host.replace('\\', "\\\\").replace('\'', "''"), to.port);
    let name = channel.name.replace('\\', "\\\\").replace('\'', "''");
    if replica.is_mariadb() {
        let name = if name.is_empty() { String::new() } else { format!(" '{name}'") };
        return [
            format!("STOP SLAVE{name}"),
            format!("CHANGE MASTER{name} TO MASTER_HOST = '{host}', MASTER_PORT = {port}"),
            format!("START SLAVE{name}"),
        ];
    }
    let name = if name.is_empty() { String::new() } else { format!(" FOR CHANNEL '{name}'") };
    match replica.has_new_words() {
        true => [
            format!("STOP REPLICA{name}"),
            format!("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{host}', SOURCE_PORT = {port}{name}"),
            format!("START REPLICA{name}"),
        ],
        false => [
            format!("STOP SLAVE{name}"),
            format!("CHANGE MASTER TO MASTER_HOST = '{host}', MASTER_PORT = {port}{name}"),
            format!("START SLAVE{name}"),
        ],
    }
}
