//! Whether a server can be the source of a quorum, as it is: what on it would make the work something else, each by name.
//!
//! A pure judgement of what was asked of the server, so that every answer is tested without one. From the servers' manuals and sources
//! (MySQL 5.7 to 9.7, MariaDB 10.11 and 11.8).

use super::channel::Channel;
use crate::doctor::Facts;
use crate::doctor::server::grants::Privileges;
use codec::ServerKind;
use codec::gtid::GtidState;
use source::identify::{SourceIdentity, SourceSemiSync};

/// Settings that are looked at beside those of [`Facts`].
pub(super) const ASKED: [&str; 5] =
    ["log_slave_updates", "log_replica_updates", "offline_mode", "wsrep_on", "group_replication_group_name"];

/// What was asked of a server that is to be the source.
pub(super) struct Looked<'a> {
    pub(super) identity: &'a SourceIdentity,
    /// With the variables of [`ASKED`].
    pub(super) facts: &'a Facts,
    pub(super) channels: &'a [Channel],
    /// `Binlog_Do_DB` and `Binlog_Ignore_DB`, where one is set.
    pub(super) log_filter: Option<&'a str>,
    /// Settings that change what is made of a log by its applier, in words.
    pub(super) deviations: &'a [String],
}

/// What the server is judged by.
pub(super) struct Quorum<'a> {
    pub(super) kind: ServerKind,
    /// How many nodes there are.
    pub(super) nodes: usize,
    /// All that the nodes hold.
    pub(super) held: &'a GtidState,
    /// The present source, and the hosts of the list that answer, as timelines name them.
    pub(super) servers: &'a [String],
    /// So many nodes receive from it; all may where it is the source already, or was the last one.
    pub(super) attached: usize,
}

/// What stands against it, whatever it holds. Empty: nothing.
pub(super) fn faults(looked: &Looked<'_>, quorum: &Quorum<'_>) -> Vec<String> {
    let Looked { identity, facts, .. } = looked;
    if identity.kind != quorum.kind {
        return vec![format!("it is {}, and the source of the quorum is {}", identity.kind, quorum.kind)];
    }
    if !identity.has_gtids {
        let mode = facts.variable("gtid_mode").unwrap_or("OFF");
        return vec![format!(
            "it has gtid_mode = {mode}, and without GTIDs nobody can say whether it has every acknowledged transaction"
        )];
    }
    let mut faults = of_its_log(looked);
    faults.extend(of_semi_sync(looked, quorum));
    faults.extend(of_replication(looked, quorum));
    faults.extend(of_others(facts));
    faults.extend(missing_privileges(facts));
    faults
}

/// What the nodes could not receive from it.
fn of_its_log(looked: &Looked<'_>) -> Vec<String> {
    let is_off = |name: &&str| matches!(looked.facts.variable(name), Some("OFF" | "0"));
    let off = ["log_bin", "log_replica_updates", "log_slave_updates"].into_iter().find(is_off);
    let off = off.map(|name| format!("{name} is OFF: the nodes could not receive from it what they lack"));
    let filter = looked.log_filter.map(|filter| {
        format!("its binary log is filtered ({filter}): the nodes would never receive the rest of what is committed there")
    });
    off.into_iter().chain(filter).chain(looked.facts.refusal(1).map(|refusal| refusal.why)).collect()
}

/// Who would acknowledge its commits, and whether it waits for that.
fn of_semi_sync(looked: &Looked<'_>, quorum: &Quorum<'_>) -> Vec<String> {
    let facts = looked.facts;
    if looked.identity.semi_sync == SourceSemiSync::Absent {
        let why =
            "it has no semi-sync plugin, and would wait for no acknowledgement: binlogd setup installs it";
        return vec![why.to_owned()];
    }
    let mut faults = Vec::new();
    let alone = ["rpl_semi_sync_source_wait_no_replica", "rpl_semi_sync_master_wait_no_slave"];
    if let Some(name) = alone.into_iter().find(|name| facts.variable(name) == Some("OFF")) {
        faults.push(format!(
            "{name} is OFF: a commit before the nodes are attached would be acknowledged by nobody. Set it to ON"
        ));
    }
    let counts = ["rpl_semi_sync_source_wait_for_replica_count", "rpl_semi_sync_master_wait_for_slave_count"];
    let count = counts.into_iter().find_map(|name| Some((name, facts.number(name)?)));
    if let Some((name, count)) = count.filter(|(_, count)| *count > quorum::majority(quorum.nodes) as u64) {
        faults
            .push(format!("{name} is {count}: commits would wait as soon as one node is away. Set it to 1"));
    }
    if let Some(clients) = facts.semi_sync_clients.filter(|clients| *clients > quorum.attached as u64) {
        faults.push(format!(
            "it has {clients} semi-sync replicas, and not all of them are nodes: each of them would acknowledge alone what no majority has. Switch \
             semi-sync off at them (rpl_semi_sync_replica_enabled, rpl_semi_sync_slave_enabled) and start their replication again"
        ));
    }
    faults
}

/// What its replication has left out, or brings from elsewhere.
fn of_replication(looked: &Looked<'_>, quorum: &Quorum<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    if looked.channels.len() > 1 {
        let names: Vec<String> =
            looked.channels.iter().map(|channel| format!("'{}'", channel.name)).collect();
        faults.push(format!(
            "it replicates over {} channels ({}), and all of them would be ended. Remove those that are of other sources",
            names.len(),
            names.join(", ")
        ));
    }
    for channel in looked.channels {
        for (name, value) in &channel.filters {
            faults.push(format!(
                "its replication is filtered ({name} = {value}): it has the GTIDs of what it passed over, and not the rows. Build it anew \
                 without the filter"
            ));
        }
        if channel.delay > 0 {
            faults.push(format!(
                "its replication is delayed by {} s (SQL_Delay). Set the delay to 0, and wait until it has come up",
                channel.delay
            ));
        }
        if let Some(source) = channel.of_elsewhere(quorum.servers, quorum.held) {
            faults.push(format!(
                "it replicates from {} ({source}), which is none of the hosts, and of which the nodes hold nothing",
                channel.source
            ));
        }
    }
    faults.extend(looked.deviations.iter().cloned());
    faults
}

/// Who else decides there.
fn of_others(facts: &Facts) -> Vec<String> {
    let mut faults = Vec::new();
    if facts.is_on("offline_mode") {
        faults
            .push("offline_mode is ON: it ends the sessions of clients and nodes. Set it to OFF".to_owned());
    }
    let group = facts.variable("group_replication_group_name").filter(|name| !name.is_empty());
    if facts.is_on("wsrep_on") || group.is_some() {
        let why =
            "it is a member of a cluster (Galera, Group Replication), which decides by itself who writes";
        faults.push(why.to_owned());
    }
    faults
}

fn missing_privileges(facts: &Facts) -> Option<String> {
    let lines = match &facts.grants {
        Ok(lines) => lines,
        Err(refusal) => return Some(format!("SHOW GRANTS failed: {refusal}")),
    };
    let privileges = Privileges::parse(lines);
    let lacked: Vec<&str> =
        needed(facts).iter().filter(|names| !privileges.has(names)).map(|names| names[0]).collect();
    (!lacked.is_empty()).then(|| format!("{} lacks {} there", facts.quoted_account(), lacked.join(", ")))
}

/// The privileges that the statements need; of each row one suffices.
fn needed(facts: &Facts) -> &'static [&'static [&'static str]] {
    match facts.kind {
        ServerKind::MySql if facts.persists() => &[
            &["REPLICATION_SLAVE_ADMIN", "SUPER"],
            &["SYSTEM_VARIABLES_ADMIN", "SUPER"],
            &["CONNECTION_ADMIN", "SUPER"],
            &["REPLICATION CLIENT", "SUPER"],
            &["REPLICATION SLAVE"],
            &["RELOAD"],
        ],
        ServerKind::MySql => &[&["SUPER"], &["REPLICATION SLAVE"], &["RELOAD"]],
        // From 10.11 on SUPER no longer contains it (MDEV-29596).
        ServerKind::MariaDb if facts.is_from(10, 11, 0) => &[
            &["REPLICATION SLAVE ADMIN", "SUPER"],
            &["REPLICATION MASTER ADMIN", "SUPER"],
            &["READ_ONLY ADMIN", "READ ONLY ADMIN"],
            &["BINLOG MONITOR", "REPLICATION CLIENT", "SUPER"],
            &["REPLICATION SLAVE"],
            &["RELOAD"],
        ],
        ServerKind::MariaDb => &[&["SUPER"], &["REPLICATION SLAVE"], &["RELOAD"]],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::test_facts::{mariadb, mysql, with};
    use codec::gtid::MariadbGtidState;

    const OLD: &str = "aaaaaaaa-0000-0000-0000-000000000001";
    const NEW: &str = "bbbbbbbb-0000-0000-0000-000000000002";

    fn identity(kind: ServerKind) -> SourceIdentity {
        SourceIdentity {
            version: "9.7.0".into(),
            kind,
            server_id: 2,
            uuid: NEW.into(),
            has_gtids: true,
            executed: GtidState::empty(kind),
            applied: MariadbGtidState::new(),
            purged: GtidState::empty(kind),
            semi_sync: SourceSemiSync::Disabled,
            galera: None,
            knows_checksums: true,
            is_read_only: true,
        }
    }

    fn channel() -> Channel {
        Channel {
            receives: true,
            applies: true,
            source: "db1:3306".into(),
            source_uuid: OLD.into(),
            ..Channel::default()
        }
    }

    /// One that nothing stands against.
    fn facts(kind: ServerKind) -> Facts {
        let facts = if kind == ServerKind::MySql { mysql() } else { mariadb() };
        let grants = Ok(vec!["GRANT ALL PRIVILEGES ON *.* TO `a`@`%`".to_owned()]);
        Facts { grants, semi_sync_clients: Some(0), ..facts }
    }

    #[track_caller]
    fn only_fault(looked: &Looked<'_>) -> String {
        let mut faults = judged(looked);
        assert_eq!(faults.len(), 1, "{faults:#?}");
        faults.remove(0)
    }

    fn judged(looked: &Looked<'_>) -> Vec<String> {
        let kind = ServerKind::MySql;
        let held = GtidState::parse(kind, &format!("{OLD}:1-9")).unwrap();
        let servers = [OLD.to_owned()];
        faults(looked, &Quorum { kind, nodes: 3, held: &held, servers: &servers, attached: 0 })
    }

    #[test]
    fn each_setting_that_stands_against_it_is_named() {
        let identity = identity(ServerKind::MySql);
        let channels = [channel()];
        let of = |facts: &Facts| {
            let looked =
                Looked { identity: &identity, facts, channels: &channels, log_filter: None, deviations: &[] };
            judged(&looked)
        };
        assert_eq!(of(&facts(ServerKind::MySql)), Vec::<String>::new());
        for (name, value, words) in [
            ("log_bin", "OFF", "log_bin is OFF"),
            ("log_replica_updates", "OFF", "log_replica_updates is OFF"),
            ("rpl_semi_sync_source_wait_no_replica", "OFF", "would be acknowledged by nobody"),
            ("rpl_semi_sync_source_wait_for_replica_count", "3", "wait_for_replica_count is 3"),
            ("offline_mode", "ON", "offline_mode is ON"),
            ("wsrep_on", "ON", "member of a cluster"),
            ("group_replication_group_name", OLD, "member of a cluster"),
        ] {
            let found = of(&with(facts(ServerKind::MySql), name, Some(value)));
            assert!(found.len() == 1 && found[0].contains(words), "{name}: {found:?}");
        }
        let with_client = Facts { semi_sync_clients: Some(1), ..facts(ServerKind::MySql) };
        assert!(of(&with_client)[0].contains("would acknowledge alone"));
    }

    #[test]
    fn each_thing_of_its_replication_that_stands_against_it_is_named() {
        let (identity, facts) = (identity(ServerKind::MySql), facts(ServerKind::MySql));
        let of = |channels: &[Channel], log_filter, deviations: &[String]| {
            only_fault(&Looked { identity: &identity, facts: &facts, channels, log_filter, deviations })
        };
        let filtered = Channel { filters: vec![("Replicate_Do_DB".into(), "shop".into())], ..channel() };
        assert!(of(&[filtered], None, &[]).contains("Replicate_Do_DB = shop"));
        assert!(of(&[Channel { delay: 3600, ..channel() }], None, &[]).contains("delayed by 3600 s"));
        let elsewhere = Channel { source_uuid: "cccccccc-0000-0000-0000-000000000003".into(), ..channel() };
        assert!(of(&[elsewhere], None, &[]).contains("none of the hosts"));
        let second = Channel { name: "other".into(), ..channel() };
        assert!(of(&[channel(), second], None, &[]).contains("2 channels ('', 'other')"));
        assert!(of(&[channel()], Some("Binlog_Do_DB = shop"), &[]).contains("binary log is filtered"));
        assert_eq!(of(&[channel()], None, &["a setting".to_owned()]), "a setting");
    }

    #[test]
    fn without_gtids_or_of_another_kind_there_is_no_more_to_say() {
        let facts = with(facts(ServerKind::MySql), "gtid_mode", Some("ON_PERMISSIVE"));
        let of = |identity: &SourceIdentity| {
            only_fault(&Looked {
                identity,
                facts: &facts,
                channels: &[channel(), channel()],
                log_filter: None,
                deviations: &[],
            })
        };
        let without = SourceIdentity { has_gtids: false, ..identity(ServerKind::MySql) };
        assert!(of(&without).contains("gtid_mode = ON_PERMISSIVE"));
        assert!(of(&identity(ServerKind::MariaDb)).contains("it is MariaDB"));
    }

    #[test]
    fn all_privileges_suffice_and_a_replica_s_do_not() {
        for facts in [mysql(), mariadb()] {
            let of = |line: &str| {
                missing_privileges(&Facts { grants: Ok(vec![line.to_owned()]), ..facts.clone() })
            };
            assert_eq!(of("GRANT ALL PRIVILEGES ON *.* TO `a`@`%`"), None);
            let lacked = of("GRANT REPLICATION SLAVE ON *.* TO `a`@`%`").unwrap();
            assert!(lacked.contains("RELOAD") && !lacked.contains("REPLICATION SLAVE,"), "{lacked}");
        }
    }
}
