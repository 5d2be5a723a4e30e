//! Semi-sync: whether the source waits for an acknowledgement, and how faithfully.

use super::{Facts, Finding, Wanted};
use std::time::Duration;

/// The suggested timeout, in milliseconds: an hour.
const TIMEOUT_MILLISECONDS: &str = "3600000";

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

pub(super) fn examine(facts: &Facts, wanted: &Wanted) -> Vec<Finding> {
    if !wanted.semi_sync {
        return vec![Finding::ok("semi-sync: not wanted (semi_sync = false)")];
    }
    let Some(names) =
        [SOURCE, MASTER].into_iter().find(|names| facts.variable(&names.name("enabled")).is_some())
    else {
        return vec![absent(facts)];
    };
    let checks = [enabled, timeout, wait_point, wait_no_replica];
    let mut findings: Vec<Finding> = checks.iter().filter_map(|check| check(facts, wanted, &names)).collect();
    findings.extend(replica_count(facts, &names));
    findings
}

fn absent(facts: &Facts) -> Finding {
    const WHY: &str = "the source never waits for the copy: a crash can lose what was committed since the last bytes arrived";
    let (plugin, file) = match facts.release() {
        release if release >= (8, 0, 26) => ("rpl_semi_sync_source", "semisync_source.so"),
        _ => ("rpl_semi_sync_master", "semisync_master.so"),
    };
    let finding = Finding::warning("semi-sync: the plugin is not installed").because(WHY);
    if facts.mariadb {
        return finding; // Built in since 10.3; before, the plugin has the name of MySQL's.
    }
    finding.mended_by(format!("INSTALL PLUGIN {plugin} SONAME '{file}';"))
}

fn enabled(facts: &Facts, _: &Wanted, names: &Names) -> Option<Finding> {
    let name = names.name("enabled");
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
            .mended_by(facts.set(&name, "ON")),
    )
}

fn timeout(facts: &Facts, wanted: &Wanted, names: &Names) -> Option<Finding> {
    let name = names.name("timeout");
    let timeout = Duration::from_millis(facts.number(&name)?);
    let what = format!("semi-sync: {name} is {timeout:?}");
    if timeout > wanted.backoff_max {
        return Some(Finding::ok(what));
    }
    Some(
        Finding::warning(what)
            .because(format!(
                "when no acknowledgement came for that long the source stops waiting and commits without the copy; a pause \
                 of binlogd between two attempts to connect can be {:?} (backoff_max). With a long timeout commits wait \
                 instead",
                wanted.backoff_max
            ))
            .mended_by(facts.set(&name, TIMEOUT_MILLISECONDS)),
    )
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
            .mended_by(facts.set(&name, "'AFTER_SYNC'")),
    )
}

fn wait_no_replica(facts: &Facts, _: &Wanted, names: &Names) -> Option<Finding> {
    let name = names.name("wait_no_replica");
    facts.variable(&name)?;
    if facts.is_on(&name) {
        return Some(Finding::ok(format!("semi-sync: {name} is ON")));
    }
    Some(
        Finding::warning(format!("semi-sync: {name} is OFF"))
            .because("as soon as no replica is connected the source stops waiting, whatever the timeout")
            .mended_by(facts.set(&name, "ON")),
    )
}

fn replica_count(facts: &Facts, names: &Names) -> Option<Finding> {
    let name = names.name("wait_for_replica_count");
    let count = facts.number(&name)?;
    let what = format!("semi-sync: {name} is {count}");
    // binlogd may be one of those attached already, which only makes the count look better than it is.
    let attached = facts.semi_sync_clients.unwrap_or(0);
    if count <= attached + 1 {
        return Some(Finding::ok(what));
    }
    Some(
        Finding::warning(what)
            .because(format!(
                "with binlogd there are at most {} semi-sync replicas, so every commit would wait for the timeout",
                attached + 1
            ))
            .mended_by(facts.set(&name, &(attached + 1).to_string())),
    )
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::super::test_facts::{mariadb, mysql, only_fault, wanted, with};
    use super::*;

    #[test]
    fn each_setting_has_its_mending_under_both_names() {
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
                "10000",
                "SET PERSIST rpl_semi_sync_source_timeout = 3600000;",
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
                "SET PERSIST rpl_semi_sync_source_wait_for_replica_count = 1;",
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
    fn enough_replicas_are_enough() {
        let two = with(mysql(), "rpl_semi_sync_source_wait_for_replica_count", Some("2"));
        let one_attached = Facts { semi_sync_clients: Some(1), ..two };
        assert!(examine(&one_attached, &wanted()).iter().all(|finding| finding.level == Level::Ok));
    }
}
