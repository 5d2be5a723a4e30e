//! Semi-sync: whether the source waits for an acknowledgement, and how faithfully.

use super::facts::Facts;
use super::group::{self, group};
use super::managed::without_semi_sync;
use crate::doctor::finding::Finding;
use crate::doctor::wanted::{Nodes, Wanted};
use codec::ServerKind;
use std::time::Duration;

/// The shortest timeout that outlives what binlogd needs to come back: a pause between two attempts, and a restart of its
/// own. It is also what README suggests, and the servers' default.
pub const TIMEOUT_MIN: Duration = Duration::from_secs(10);

/// The shortest timeout of the source of a quorum: what is committed after it no node has acknowledged, so that what a quorum promises
/// ends there. An hour outlives whatever a person can repair.
pub const QUORUM_TIMEOUT_MIN: Duration = Duration::from_secs(3600);

/// Variables of MySQL 8.0.26 and later, or of earlier MySQL and MariaDB. `wait_no_…` and `wait_for_…_count` follow.
const SOURCE: Names = Names { prefix: "rpl_semi_sync_source_", replica: "replica" };
const MASTER: Names = Names { prefix: "rpl_semi_sync_master_", replica: "slave" };

struct Names {
    prefix: &'static str,
    replica: &'static str,
}

impl Names {
    fn name(&self, suffix: &str) -> String {
        format!("{}{}", self.prefix, suffix.replace("replica", self.replica))
    }
}

/// Whether the source waits for us, and who else it waits for.
pub fn examine(facts: &Facts, wanted: &Wanted) -> Vec<Finding> {
    if !wanted.semi_sync {
        return vec![Finding::ok("semi-sync: not wanted (semi_sync = false)")];
    }
    if let Some(provider) = facts.provider().filter(|_| !is_switched_on(facts)) {
        return vec![without_semi_sync(provider)];
    }
    let Some(names) =
        [SOURCE, MASTER].into_iter().find(|names| facts.variable(&names.name("enabled")).is_some())
    else {
        return vec![absent(facts)];
    };
    if wanted.quorum.is_some() && facts.is_on("read_only") {
        return vec![on_replica(facts, &names)];
    }
    let checks = [enabled, timeout, wait_point, wait_no_replica];
    let mut findings: Vec<Finding> = checks.iter().filter_map(|check| check(facts, wanted, &names)).collect();
    findings.extend(match &wanted.quorum {
        Some(nodes) => {
            [of_quorum(facts, &names), others_attached(facts, nodes)].into_iter().flatten().collect()
        }
        None => Vec::from_iter(replica_count(facts, wanted, &names)),
    });
    findings.extend(truncates_at_its_start(facts));
    findings
}

/// The plugin that a MySQL source needs: its name, and the file that it comes in. `None` for MariaDB, which has semi-sync built
/// in since 10.3; before, the plugin has the name of MySQL's.
pub fn plugin(facts: &Facts) -> Option<(&'static str, &'static str)> {
    match (facts.kind, facts.is_from(8, 0, 26)) {
        (ServerKind::MariaDb, _) => None,
        (ServerKind::MySql, true) => Some(("rpl_semi_sync_source", "semisync_source.so")),
        (ServerKind::MySql, false) => Some(("rpl_semi_sync_master", "semisync_master.so")),
    }
}

/// The variable that switches semi-sync on; `None` while the plugin is not installed.
pub fn switch(facts: &Facts) -> Option<String> {
    [SOURCE, MASTER].iter().map(|names| names.name("enabled")).find(|name| facts.variable(name).is_some())
}

fn absent(facts: &Facts) -> Finding {
    const WHY: &str = "the source never waits for the copy: a crash can lose what was committed since the last bytes arrived";
    let finding = Finding::warning("semi-sync: the plugin is not installed").because(WHY);
    match plugin(facts) {
        Some((plugin, file)) => finding.fixed_by(format!("INSTALL PLUGIN {plugin} SONAME '{file}';")),
        None => finding,
    }
}

/// Semi-sync is on and no replica is attached: what writes the binary log waits, and on MySQL a statement about accounts
/// keeps logins out meanwhile.
pub fn waits_for_nobody(facts: &Facts) -> bool {
    is_switched_on(facts) && facts.semi_sync_clients == Some(0)
}

fn is_switched_on(facts: &Facts) -> bool {
    [SOURCE, MASTER].into_iter().any(|names| facts.is_on(&names.name("enabled")))
}

/// A statement about accounts, so that it does not wait when semi-sync waits for nobody: what is not logged is not waited for.
pub(in crate::doctor) fn at_once(facts: &Facts, sql: String) -> String {
    if waits_for_nobody(facts) { format!("SET SESSION sql_log_bin = 0; {sql}") } else { sql }
}

/// A replica of a quorum's source. `binlogd promote` switches semi-sync on there, with the timeout of the source before.
fn on_replica(facts: &Facts, names: &Names) -> Finding {
    let name = names.name("enabled");
    if !facts.is_on(&name) {
        return Finding::ok(format!(
            "semi-sync: {name} is OFF, and this server is read-only: right for a replica (binlogd promote switches it on)"
        ));
    }
    Finding::warning(format!("semi-sync: {name} is ON, and this server is read-only"))
        .because("a replica waits at each transaction that it applies, and nobody acknowledges that to it")
        .fixed_by_setting(facts, &name, "OFF")
}

fn enabled(facts: &Facts, wanted: &Wanted, names: &Names) -> Option<Finding> {
    let name = names.name("enabled");
    if waits_for_nobody(facts) {
        let start = match &wanted.running {
            Some(running) => {
                let state = &running.state;
                format!("binlogd runs and is not attached (its state: {state}; binlogd status says more)")
            }
            None => "Start binlogd now".to_owned(),
        };
        let logins = match facts.kind {
            ServerKind::MySql => ", and MySQL lets nobody log in while those wait",
            ServerKind::MariaDb => "",
        };
        return Some(
            Finding::warning(format!("semi-sync: {name} is ON, and no semi-sync replica is connected")).because(format!(
                "whatever writes the binary log waits for the timeout, GRANT and CREATE USER too{logins}. {start}, keep a session of an administrator open, and if it cannot start: SET \
                 GLOBAL {name} = OFF (docs/failures.md, \"Locked out\")"
            )),
        );
    }
    if facts.is_on(&name) && facts.semi_sync_waits == Some(false) {
        return Some(Finding::warning(format!("semi-sync: {name} is ON, and the source does not wait at present")).because(
            format!(
                "{}status is OFF: no acknowledgement came within the timeout, so that commits return without the copy until one \
                 does. Look whether binlogd answers (binlogd status); while a replica that has just attached catches up it is OFF, too",
                names.prefix.replacen("rpl", "Rpl", 1)
            ),
        ));
    }
    if facts.is_on(&name) {
        let attached = match facts.semi_sync_clients {
            Some(count) => format!("; semi-sync replicas connected now: {count}"),
            None => String::new(),
        };
        return Some(Finding::ok(format!("semi-sync: {name} is ON{attached}")));
    }
    Some(
        Finding::warning(format!("semi-sync: {name} is OFF"))
            .because(
                "the source does not wait for the copy. Switch it on once binlogd receives: as long as no semi-sync replica is \
                 connected every commit waits for the timeout",
            )
            .fixed_by_setting(facts, &name, "ON"),
    )
}

fn timeout(facts: &Facts, wanted: &Wanted, names: &Names) -> Option<Finding> {
    let name = names.name("timeout");
    let timeout = Duration::from_millis(facts.number(&name)?);
    let what = format!("semi-sync: {name} is {}", in_words(timeout));
    let least = timeout_min(wanted);
    if timeout >= least {
        return Some(Finding::ok(what));
    }
    if wanted.quorum.is_some() {
        let why = "what the source commits after its timeout no node has acknowledged: what a quorum promises ends there. An hour at least";
        return Some(Finding::error(what).because(why).fixed_by_setting(
            facts,
            &name,
            &least.as_millis().to_string(),
        ));
    }
    Some(
        Finding::warning(what)
            .because(format!(
                "when no acknowledgement came for that long the source stops waiting and commits without the copy. binlogd comes \
                 back within backoff_max ({}) when it can, and a restart of it takes some seconds. With a longer timeout \
                 commits wait instead",
                in_words(wanted.backoff_max)
            ))
            .fixed_by_setting(facts, &name, &least.as_millis().to_string()),
    )
}

/// The shortest timeout of the source that will do.
pub(crate) fn timeout_min(wanted: &Wanted) -> Duration {
    match wanted.quorum {
        Some(_) => QUORUM_TIMEOUT_MIN,
        None => TIMEOUT_MIN.max(wanted.backoff_max * 2),
    }
}

/// In whole seconds, or in milliseconds, as the server counts.
fn in_words(time: Duration) -> String {
    match time.subsec_nanos() {
        0 => format!("{} s", time.as_secs()),
        _ => format!("{} ms", time.as_millis()),
    }
}

fn wait_point(facts: &Facts, _: &Wanted, names: &Names) -> Option<Finding> {
    let name = names.name("wait_point");
    let value = facts.variable(&name)?;
    if value == "AFTER_SYNC" {
        return Some(Finding::ok(format!("semi-sync: {name} is AFTER_SYNC")));
    }
    Some(
        Finding::warning(format!("semi-sync: {name} is {value}"))
            .because(
                "other sessions see a transaction before the copy has it, and it can be gone after a failover; AFTER_SYNC \
                 waits first",
            )
            .fixed_by_setting(facts, &name, "'AFTER_SYNC'"),
    )
}

fn wait_no_replica(facts: &Facts, wanted: &Wanted, names: &Names) -> Option<Finding> {
    let name = names.name("wait_no_replica");
    facts.variable(&name)?;
    if wanted.hosts > 1 && (group(facts).is_some() || facts.is_on("wsrep_on")) {
        return Some(group::wait_no_replica(facts, &name));
    }
    if facts.is_on(&name) {
        return Some(Finding::ok(format!("semi-sync: {name} is ON")));
    }
    Some(
        Finding::warning(format!("semi-sync: {name} is OFF"))
            .because("as soon as no replica is connected the source stops waiting, whatever the timeout")
            .fixed_by_setting(facts, &name, "ON"),
    )
}

fn replica_count(facts: &Facts, wanted: &Wanted, names: &Names) -> Option<Finding> {
    let name = names.name("wait_for_replica_count");
    let count = facts.number(&name)?;
    let what = format!("semi-sync: {name} is {count}");
    let attached = facts.semi_sync_clients.unwrap_or(0);
    let is_ours = |id: u32| Some(id) == wanted.server_id;
    let is_listed = facts.replicas.iter().flatten().any(|replica| is_ours(replica.server_id));
    let is_attached =
        attached > 0 && (is_listed || wanted.running.as_ref().is_some_and(|running| running.is_receiving));
    let with_us = if is_attached { attached } else { attached + 1 };
    if count <= with_us {
        return Some(Finding::ok(what));
    }
    let replicas = if with_us == 1 { "replica" } else { "replicas" };
    let waits = is_attached && facts.is_on(&names.name("enabled")) && facts.semi_sync_waits != Some(false);
    let finding = match waits {
        true => Finding::error(what).because(format!(
            "only {with_us} semi-sync {replicas} attached, binlogd among them, so every commit waits for the timeout: attach the others, or"
        )),
        false => Finding::warning(what).because(format!(
            "with binlogd there would be {with_us} semi-sync {replicas}, so every commit would wait for the timeout"
        )),
    };
    Some(finding.fixed_by_setting(facts, &name, &with_us.to_string()))
}

/// The source of a quorum waits for one replica. MariaDB does so always.
fn of_quorum(facts: &Facts, names: &Names) -> Option<Finding> {
    let name = names.name("wait_for_replica_count");
    let count = facts.number(&name)?;
    let what = format!("semi-sync: {name} is {count}");
    if count == 1 {
        return Some(Finding::ok(what));
    }
    let why = "each node acknowledges for itself what a majority has, and the source is to wait for one of them: with more, commits wait \
               while one node is away";
    Some(Finding::error(what).because(why).fixed_by_setting(facts, &name, "1"))
}

/// Semi-sync replicas of the source that are no nodes. Only MySQL tells which replica is which; of MariaDB more than there are nodes.
fn others_attached(facts: &Facts, nodes: &Nodes) -> Option<Finding> {
    let attached = facts.semi_sync_clients?;
    let listed: Option<Vec<&str>> =
        facts.replicas.as_ref().ok()?.iter().map(|replica| replica.uuid.as_deref()).collect();
    let are_nodes = |listed: &Vec<&str>| {
        listed.iter().filter(|uuid| nodes.uuids.iter().any(|node| node == *uuid)).count()
    };
    // A node that did not answer may be attached all the same.
    let unheard = nodes.count.saturating_sub(nodes.uuids.len() as u64);
    let most = listed.as_ref().map_or(nodes.count, |listed| are_nodes(listed) as u64 + unheard);
    let others = attached.saturating_sub(most);
    if others == 0 {
        return Some(Finding::ok(format!("semi-sync: no replica is attached but the {} nodes", nodes.count)));
    }
    Some(
        Finding::error(format!("semi-sync: {attached} replicas are attached, and {others} of them no node of the quorum"))
            .because(
                "a semi-sync replica that is no node acknowledges alone what no node may have. Let it replicate without: SET GLOBAL \
                 rpl_semi_sync_replica_enabled = OFF there (rpl_semi_sync_slave_enabled before MySQL 8.0.26 and on MariaDB), and restart \
                 its replication",
            ),
    )
}

/// A MariaDB that takes itself for a semi-sync replica when it recovers cuts from its own binary log what its engines have
/// prepared and not committed, also what was acknowledged and told to clients (MDEV-21117, since 10.6). Which setting says
/// so has changed with MDEV-33465; the newer one cannot be asked for before MDEV-38202.
fn truncates_at_its_start(facts: &Facts) -> Option<Finding> {
    if facts.kind != ServerKind::MariaDb || !facts.is_from(10, 6, 0) {
        return None;
    }
    let slave = "rpl_semi_sync_slave_enabled";
    let why = "after a crash such a server cuts acknowledged transactions from its own binary log when it starts; the copy keeps them, \
               and the server lacks them (docs/mariadb.md)";
    if facts.variable("init_rpl_role").is_some_and(|role| role.eq_ignore_ascii_case("SLAVE")) {
        return Some(Finding::warning("recovery: init_rpl_role is SLAVE").because(format!(
            "{why}. Take it out of the option file of the source, and of each server that may become it"
        )));
    }
    let series = [(10, 6, 19), (10, 11, 9), (11, 1, 6), (11, 2, 5)];
    let is_newer = |(major, minor, patch): (u32, u32, u32)| {
        facts.is_from(major, minor, patch) && !facts.is_from(major, minor + 1, 0)
    };
    let goes_by_role = facts.is_from(11, 4, 3) || series.into_iter().any(is_newer);
    match (facts.is_on(slave), goes_by_role) {
        (false, _) => None,
        (true, false) => Some(
            Finding::warning(format!("recovery: {slave} is ON"))
                .because(why)
                .fixed_by_setting(facts, slave, "OFF"),
        ),
        (true, true) => Some(Finding::ok(format!(
            "recovery: {slave} is ON, which does no harm here; init_rpl_role = SLAVE in the option file, which cannot be asked for, would \
             (docs/mariadb.md)"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::Replica;
    use super::*;
    use crate::doctor::Level;
    use crate::doctor::test_facts::{mariadb, mysql, only_fault, wanted, with};
    use crate::doctor::wanted::Running;

    #[test]
    fn a_source_that_has_given_up_waiting_is_told() {
        for facts in [mysql(), mariadb()] {
            let said = only_fault(&Facts { semi_sync_waits: Some(false), ..facts }, &wanted());
            assert!(
                said.what.contains("does not wait at present") && said.why.contains("_status is OFF"),
                "{said:?}"
            );
        }
        assert_eq!([in_words(Duration::ZERO), in_words(Duration::from_millis(1500))], ["0 s", "1500 ms"]);
    }

    #[test]
    fn each_setting_has_its_fix_under_both_names() {
        for (facts, name, value, sql) in [
            (
                mysql(),
                "rpl_semi_sync_source_enabled",
                "OFF",
                "SET PERSIST rpl_semi_sync_source_enabled = ON;",
            ),
            (
                mysql(),
                "rpl_semi_sync_source_timeout",
                "1000",
                "SET PERSIST rpl_semi_sync_source_timeout = 10000;",
            ),
            (
                mysql(),
                "rpl_semi_sync_source_wait_point",
                "AFTER_COMMIT",
                "SET PERSIST rpl_semi_sync_source_wait_point = 'AFTER_SYNC';",
            ),
            (
                mysql(),
                "rpl_semi_sync_source_wait_no_replica",
                "OFF",
                "SET PERSIST rpl_semi_sync_source_wait_no_replica = ON;",
            ),
            (
                mysql(),
                "rpl_semi_sync_source_wait_for_replica_count",
                "3",
                "SET PERSIST rpl_semi_sync_source_wait_for_replica_count = 2;",
            ),
            (
                mariadb(),
                "rpl_semi_sync_master_enabled",
                "OFF",
                "SET GLOBAL rpl_semi_sync_master_enabled = ON;",
            ),
            (
                mariadb(),
                "rpl_semi_sync_master_wait_no_slave",
                "OFF",
                "SET GLOBAL rpl_semi_sync_master_wait_no_slave = ON;",
            ),
        ] {
            let fault = only_fault(&with(facts, name, Some(value)), &wanted());
            assert_eq!(fault.level, Level::Warning, "{name}");
            assert!(fault.what.contains(name), "{fault:?}");
            assert!(fault.sql.as_deref().unwrap().starts_with(sql), "{fault:?}");
        }
    }

    #[test]
    fn a_missing_plugin_is_installed_by_the_name_of_the_version() {
        let without = |facts: Facts| {
            let variables = facts.variables.clone().into_iter().filter(|(name, _)| !name.starts_with("rpl_"));
            Facts { variables: variables.collect(), ..facts }
        };
        for (version, sql) in [
            ("28.4.1-lts", "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so';"),
            ("26.7.0", "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so';"),
            ("9.7.0", "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so';"),
            ("8.0.26", "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so';"),
            ("8.0.15", "INSTALL PLUGIN rpl_semi_sync_master SONAME 'semisync_master.so';"),
        ] {
            let facts = without(Facts { version: version.to_owned(), ..mysql() });
            assert_eq!(only_fault(&facts, &wanted()).sql.as_deref(), Some(sql), "{version}");
        }
        assert_eq!(examine(&without(mysql()), &Wanted { semi_sync: false, ..wanted() })[0].level, Level::Ok);
    }

    #[test]
    fn nobody_attached_is_a_finding_and_statements_about_accounts_do_not_wait() {
        for facts in [mysql(), mariadb()] {
            let nobody = Facts { semi_sync_clients: Some(0), ..facts };
            let fault = only_fault(&nobody, &wanted());
            assert_eq!(fault.level, Level::Warning);
            assert!(fault.what.ends_with("is ON, and no semi-sync replica is connected"), "{fault:?}");
            assert!(fault.why.contains("_enabled = OFF"), "{fault:?}");
            let grant = || "GRANT a TO b;".to_owned();
            assert_eq!(at_once(&nobody, grant()), "SET SESSION sql_log_bin = 0; GRANT a TO b;");
            assert_eq!(at_once(&Facts { semi_sync_clients: Some(1), ..nobody.clone() }, grant()), grant());
            let off = ["rpl_semi_sync_source_enabled", "rpl_semi_sync_master_enabled"]
                .into_iter()
                .fold(nobody, |facts, name| with(facts, name, None));
            assert_eq!(at_once(&off, grant()), grant());
        }
    }

    #[test]
    fn enough_replicas_are_enough() {
        let two = with(mysql(), "rpl_semi_sync_source_wait_for_replica_count", Some("2"));
        let one_attached = Facts { semi_sync_clients: Some(1), ..two };
        assert!(examine(&one_attached, &wanted()).iter().all(|finding| finding.level == Level::Ok));
        // The one that is attached is binlogd itself: by the daemon's word, or by the source's list.
        let running = Wanted {
            running: Some(Running { state: "receiving".to_owned(), is_receiving: true }),
            ..wanted()
        };
        let ours = Replica {
            server_id: wanted().server_id.unwrap(),
            host: String::new(),
            uuid: wanted().replica_uuid,
        };
        let listed = Facts { replicas: Ok(vec![ours]), ..one_attached.clone() };
        for (facts, wanted) in [(&one_attached, running), (&listed, wanted())] {
            let fault = only_fault(facts, &wanted);
            assert!(
                fault.level == Level::Error && fault.why.contains("only 1 semi-sync replica attached"),
                "{fault:?}"
            );
            assert!(fault.sql.as_deref().unwrap().contains("wait_for_replica_count = 1;"), "{fault:?}");
        }
    }

    #[test]
    fn a_quorum_demands_more_of_its_source() {
        let uuids = ["u1", "u2", "u3"].map(str::to_owned);
        let of_three =
            |uuids: &[String]| Wanted { quorum: Some(Nodes { count: 3, uuids: uuids.to_vec() }), ..wanted() };
        let replica = |uuid: &str| Replica { server_id: 9, host: String::new(), uuid: Some(uuid.to_owned()) };
        let attached = |facts: Facts, uuids: &[&str], clients| Facts {
            replicas: Ok(uuids.iter().map(|uuid| replica(uuid)).collect()),
            semi_sync_clients: Some(clients),
            ..facts
        };
        for (facts, timeout) in
            [(mysql(), "rpl_semi_sync_source_timeout"), (mariadb(), "rpl_semi_sync_master_timeout")]
        {
            let faults = |facts: &Facts| {
                let findings = super::examine(facts, &of_three(&uuids)).into_iter();
                findings.filter(|finding| finding.level > Level::Ok).collect::<Vec<_>>()
            };
            let [short] = faults(&facts).try_into().unwrap();
            assert!(
                short.level == Level::Error && short.sql.unwrap().contains("_timeout = 3600000;"),
                "{}",
                short.what
            );
            let long = with(facts.clone(), timeout, Some("3600000"));
            assert!(faults(&attached(long.clone(), &["u1", "u2", "u3"], 3)).is_empty());
            // Another one in the place of a node that is away.
            let [other] = faults(&attached(long.clone(), &["u1", "u2", "db2"], 3)).try_into().unwrap();
            assert!(other.level == Level::Error && other.what.contains("1 of them no node"), "{other:?}");
            // Which does no harm where it replicates without semi-sync, and may be a node that did not answer.
            assert!(faults(&attached(long.clone(), &["u1", "u2", "db2"], 2)).is_empty());
            let findings =
                super::examine(&attached(long.clone(), &["u1", "u2", "db2"], 3), &of_three(&uuids[..2]));
            assert!(findings.iter().all(|finding| finding.level == Level::Ok), "{findings:?}");
            // MariaDB does not list UUIDs.
            let unnamed = Replica { server_id: 9, host: String::new(), uuid: None };
            let four = Facts { replicas: Ok(vec![unnamed]), semi_sync_clients: Some(4), ..long.clone() };
            assert!(faults(&four)[0].what.contains("4 replicas are attached, and 1 of them no node"));
            let switch = timeout.replace("_timeout", "_enabled");
            let replica = with(facts, "read_only", Some("ON"));
            let [on] = faults(&replica).try_into().unwrap();
            assert_eq!(on.setting.unwrap(), (switch.clone(), "OFF".to_owned()));
            assert!(faults(&with(replica, &switch, Some("OFF"))).is_empty(), "right for a replica");
            let two = with(long, "rpl_semi_sync_source_wait_for_replica_count", Some("2"));
            let two = faults(&attached(two, &["u1", "u2", "u3"], 3));
            assert!(two.iter().all(|fault| fault.level == Level::Error), "{two:?}");
            assert!(two.iter().all(|fault| fault.setting.as_ref().unwrap().1 == "1"), "{two:?}");
            assert_eq!(two.len(), usize::from(timeout.contains("source")));
        }
    }

    #[test]
    fn a_mariadb_that_would_cut_its_own_log_is_told() {
        let slave = with(mariadb(), "rpl_semi_sync_slave_enabled", Some("ON"));
        let at = |version: &str| Facts { version: version.to_owned(), ..slave.clone() };
        for version in
            ["10.6.18-MariaDB", "10.11.8-MariaDB-log", "11.0.6-MariaDB", "11.2.4-MariaDB", "11.4.2-MariaDB"]
        {
            let fault = only_fault(&at(version), &wanted());
            assert!(fault.what.contains("rpl_semi_sync_slave_enabled is ON"), "{version}: {fault:?}");
            assert!(fault.sql.as_deref().unwrap().contains("rpl_semi_sync_slave_enabled = OFF"), "{fault:?}");
        }
        for version in
            ["10.5.28-MariaDB", "10.6.19-MariaDB", "10.11.9-MariaDB", "11.2.5-MariaDB", "11.8.3-MariaDB-log"]
        {
            let findings = examine(&at(version), &wanted());
            assert!(findings.iter().all(|finding| finding.level == Level::Ok), "{version}: {findings:?}");
        }
        let role = with(mariadb(), "init_rpl_role", Some("SLAVE"));
        assert!(only_fault(&role, &wanted()).what.contains("init_rpl_role is SLAVE"));
    }
}
