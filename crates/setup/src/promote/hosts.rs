//! The hosts of the list, as the nodes reach them.

use super::group::Group;
use crate::doctor::first_column;
use crate::doctor::server::grants::Privileges;
use codec::gtid::GtidState;
use config::HostPort;
use source::identify::SourceIdentity;
use std::time::Duration;
use wire::{Connection, WireError};

/// Longest time for a host of the list to say who it is.
const HOST_MAX: Duration = Duration::from_secs(3);

/// A host of the list, as the account of the nodes finds it.
#[derive(Debug, Clone)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) seen: Result<Seen, String>,
}

/// What a host says of itself.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) identity: SourceIdentity,
    /// So long a commit waits there for an acknowledgement, in milliseconds.
    timeout: Option<String>,
    /// Whether the account may receive its binary log; `None` where the host does not say.
    may_receive: Option<bool>,
    /// Commits that wait there for an acknowledgement now. MySQL does not count them as executed.
    waiting: u64,
}

/// A host that is more than a replica of the source: what it has that the source lacks was acknowledged to nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tail {
    /// The host, as in the list.
    pub host: String,
    /// Transactions that it wrote first itself.
    pub gtids: GtidState,
    /// Commits that wait there for an acknowledgement, which does not come.
    pub waiting: u64,
    /// Clients can write there.
    pub is_writable: bool,
}

impl Tail {
    /// Whether something there is lost, or will be.
    pub(super) fn is_lost(&self) -> bool {
        !self.gtids.is_empty() || self.waiting > 0
    }
}

/// The hosts of the list.
#[derive(Debug, Clone)]
pub(super) struct Hosts(pub(super) Vec<Host>);

impl Hosts {
    /// Asks them all at once. Changes nothing.
    pub(super) fn look(group: &Group) -> Hosts {
        let upstream = &group.upstream;
        let ask = |host: &HostPort| {
            let mut connection = upstream.connect_to(host, HOST_MAX)?;
            connection.set_timeout(HOST_MAX);
            let seen = Seen::ask(&mut connection);
            connection.close();
            seen
        };
        std::thread::scope(|scope| {
            let asked: Vec<_> =
                upstream.config.hosts.iter().map(|host| (host, scope.spawn(move || ask(host)))).collect();
            let seen = |asked: std::thread::ScopedJoinHandle<'_, Result<Seen, WireError>>| {
                let seen = asked.join().unwrap_or_else(|_| {
                    Err(WireError::Protocol {
                        during: "asking a host",
                        what: "a thread has panicked".to_owned(),
                    })
                });
                seen.map_err(|error| error.to_string())
            };
            Hosts(
                asked
                    .into_iter()
                    .map(|(host, asked)| Host { name: host.to_string(), seen: seen(asked) })
                    .collect(),
            )
        })
    }

    fn seen(&self) -> impl Iterator<Item = (&str, &Seen)> {
        self.0.iter().filter_map(|host| Some((host.name.as_str(), host.seen.as_ref().ok()?)))
    }

    /// Who answers at them.
    pub(super) fn servers(&self) -> Vec<String> {
        self.seen().map(|(_, seen)| seen.identity.uuid.clone()).collect()
    }

    /// So long a commit waits at that server for an acknowledgement, in milliseconds, where it answers.
    pub(super) fn timeout_of(&self, uuid: &str) -> Option<String> {
        self.seen().find(|(_, seen)| seen.identity.uuid == uuid)?.1.timeout.clone()
    }

    /// Why the nodes could not receive from a server, which the operator reaches as `host`.
    pub(super) fn not_received(&self, host: &str, uuid: &str, user: &str) -> Option<String> {
        match self.seen().find(|(_, seen)| seen.identity.uuid == uuid) {
            Some((name, seen)) => (seen.may_receive == Some(false)).then(|| {
                format!("the account of the nodes ('{user}') lacks REPLICATION SLAVE there ({name}): they could not receive from it")
            }),
            None => match self.0.iter().find(|of| of.name == host) {
                Some(Host { seen: Err(error), .. }) => Some(format!(
                    "the nodes could not receive from it: their account ('{user}') does not get in there: {error}"
                )),
                Some(Host { seen: Ok(seen), .. }) => Some(format!(
                    "by the name in hosts another server answers to the nodes ({}), and not this one ({uuid})",
                    seen.identity.uuid
                )),
                None => Some(
                    "it is none of the hosts in this configuration, by its name and by who answers there: the nodes would never receive \
                     from it. Add it to hosts at every node"
                        .to_owned(),
                ),
            },
        }
    }

    /// What each server but `source` has written that `source` lacks, and who takes writes beside it.
    pub(super) fn tails(&self, source: &SourceIdentity) -> Vec<Tail> {
        let others = self.seen().filter(|(_, seen)| seen.identity.uuid != source.uuid);
        let tail = |(host, seen): (&str, &Seen)| Tail {
            host: host.to_owned(),
            gtids: seen.identity.own(&source.lacks(&seen.identity.executed)),
            waiting: seen.waiting,
            is_writable: !seen.identity.is_read_only,
        };
        others.map(tail).filter(|tail| tail.is_lost() || tail.is_writable).collect()
    }
}

impl Seen {
    fn ask(connection: &mut Connection) -> Result<Seen, WireError> {
        let identity = SourceIdentity::ask(connection)?;
        let timeout = connection.query("SHOW GLOBAL VARIABLES LIKE 'rpl\\_semi\\_sync\\_%\\_timeout'")?;
        let timeout = timeout.get(0, "Value").map(str::to_owned);
        let may_receive = match connection.query("SHOW GRANTS") {
            Ok(rows) => {
                let privileges = Privileges::parse(&first_column(&rows));
                // One with roles may have it all the same.
                Some(privileges.has(&["REPLICATION SLAVE"]) || privileges.roles)
            }
            Err(WireError::Server { .. }) => None,
            Err(error) => return Err(error),
        };
        let waiting =
            connection.query("SHOW GLOBAL STATUS LIKE 'Rpl\\_semi\\_sync\\_%\\_wait\\_sessions'")?;
        let waiting = waiting.get(0, "Value").and_then(|value| value.parse().ok()).unwrap_or(0);
        Ok(Seen { identity, timeout, may_receive, waiting })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::ServerKind;
    use codec::gtid::MariadbGtidState;
    use source::identify::SourceSemiSync;

    const OLD: &str = "aaaaaaaa-0000-0000-0000-000000000001";
    const NEW: &str = "bbbbbbbb-0000-0000-0000-000000000002";

    fn seen(uuid: &str, executed: &str, may_receive: Option<bool>) -> Seen {
        let kind = ServerKind::MySql;
        let identity = SourceIdentity {
            version: "9.7.0".into(),
            kind,
            server_id: 1,
            uuid: uuid.into(),
            has_gtids: true,
            executed: GtidState::parse(kind, executed).unwrap(),
            applied: MariadbGtidState::new(),
            purged: GtidState::empty(kind),
            semi_sync: SourceSemiSync::Enabled,
            galera: None,
            knows_checksums: true,
            is_read_only: false,
        };
        Seen { identity, timeout: Some("3600000".into()), may_receive, waiting: 0 }
    }

    fn host(name: &str, seen: Result<Seen, String>) -> Host {
        Host { name: name.into(), seen }
    }

    #[test]
    fn who_cannot_be_received_from_is_told_why() {
        let hosts = Hosts(vec![
            host("db1:3306", Ok(seen(OLD, "", Some(true)))),
            host("db2:3306", Err("Access denied for user 'repl'".into())),
            host("db3:3306", Ok(seen("cccccccc-0000-0000-0000-000000000003", "", Some(false)))),
        ]);
        let why = |host: &str, uuid: &str| hosts.not_received(host, uuid, "repl").unwrap_or_default();
        assert_eq!(why("db1:3306", OLD), "");
        assert_eq!(why("10.0.0.1:3306", OLD), "", "by whatever name the operator reaches it");
        assert!(why("db2:3306", NEW).contains("Access denied"));
        assert!(why("db9:3306", NEW).contains("none of the hosts"));
        assert!(why("db1:3306", NEW).contains("another server answers"));
        let lacks = why("db3:3306", "cccccccc-0000-0000-0000-000000000003");
        assert!(lacks.contains("lacks REPLICATION SLAVE"), "{lacks}");
        assert_eq!(hosts.timeout_of(OLD).as_deref(), Some("3600000"));
        assert_eq!(hosts.timeout_of(NEW), None);
    }

    #[test]
    fn what_a_server_alone_has_written_is_its_tail() {
        let new = seen(NEW, &format!("{OLD}:1-9,{NEW}:1-3"), None).identity;
        let waits = |waiting| Seen { waiting, ..seen(OLD, &format!("{OLD}:1-9"), None) };
        let hosts = Hosts(vec![
            host("db1:3306", Ok(seen(OLD, &format!("{OLD}:1-12"), None))),
            host("db2:3306", Ok(seen(NEW, &format!("{OLD}:1-9,{NEW}:1-4"), None))),
            host("db3:3306", Err("it is down".into())),
            host("db4:3306", Ok(waits(0))),
            host("db5:3306", Ok(waits(2))),
        ]);
        let gtids = |text: &str| GtidState::parse(ServerKind::MySql, text).unwrap();
        let tail = |host: &str, text: &str, waiting| Tail {
            host: host.into(),
            gtids: gtids(text),
            waiting,
            is_writable: true,
        };
        let own = format!("{OLD}:10-12");
        let expected = [tail("db1:3306", &own, 0), tail("db4:3306", "", 0), tail("db5:3306", "", 2)];
        assert_eq!(hosts.tails(&new), expected);
        let mut replica = waits(0);
        replica.identity.is_read_only = true;
        assert_eq!(Hosts(vec![host("db4:3306", Ok(replica))]).tails(&new), []);
    }
}
