//! The binary log itself: whether it is written, what it holds, how long it is kept.

use super::facts::Facts;
use super::managed;
use super::provider::Provider;
use crate::doctor::finding::Finding;
use crate::doctor::wanted::Wanted;
use codec::ServerKind;
use source::settings::{GALERA_GTIDS, GALERA_SETTLED_BY};

/// A copy that is not kept up for a day, a weekend perhaps, should not lose transactions.
const RETENTION_SECONDS_MIN: u64 = 24 * 3600;

pub(in crate::doctor) fn examine(facts: &Facts, wanted: &Wanted) -> Vec<Finding> {
    if !facts.is_on("log_bin") {
        return vec![Finding::error("log_bin: OFF").because(format!(
            "the source writes no binary log, so there is nothing to copy: {}",
            log_on(facts)
        ))];
    }
    if let Some(refusal) = facts.refusal(wanted.hosts) {
        return vec![Finding::error(refusal.setting).because(refusal.why)];
    }
    let checks =
        [galera, format, row_image, row_metadata, checksum, gtids, durability, retention, encryption];
    let mut findings = vec![Finding::ok("log_bin: ON")];
    findings.extend(checks.iter().filter_map(|check| check(facts)));
    findings
}

/// How the binary log is switched on.
fn log_on(facts: &Facts) -> &'static str {
    facts.provider().map_or("set log_bin in its option file and restart it", Provider::log_on)
}

/// A node of a Galera cluster of MariaDB.
fn galera(facts: &Facts) -> Option<Finding> {
    let gtids = facts.variable(GALERA_GTIDS).filter(|_| facts.is_on("wsrep_on"))?;
    // As one of several it would be refused; so it is alone.
    Some(match facts.refusal(2) {
        None => Finding::ok(format!(
            "{GALERA_GTIDS}: {gtids}, on a node of a Galera cluster; only what clients commit on this node waits for binlogd"
        )),
        Some(refusal) => Finding::warning(refusal.setting).because(format!(
            "one GTID can be two transactions in this Galera cluster once a write is not replicated, so no other node can take this \
             one's place as the source. Before a second one is named in `hosts`: {GALERA_SETTLED_BY}"
        )),
    })
}

fn format(facts: &Facts) -> Option<Finding> {
    let value = facts.variable("binlog_format")?;
    Some(match value {
        "ROW" => Finding::ok("binlog_format: ROW"),
        _ => Finding::warning(format!("binlog_format: {value}"))
            .because(
                "statements can give other results when they are run again, so a restore from the copy is less certain; \
                 copied byte for byte all the same",
            )
            .fixed_by(facts.set("binlog_format", "'ROW'")),
    })
}

fn row_image(facts: &Facts) -> Option<Finding> {
    let value = facts.variable("binlog_row_image")?;
    Some(match value {
        "FULL" | "FULL_NODUP" => Finding::ok(format!("binlog_row_image: {value}")),
        _ => Finding::warning(format!("binlog_row_image: {value}"))
            .because("rows as they were before a change are not in the log whole, so a change cannot be undone from it")
            .fixed_by(facts.set("binlog_row_image", "'FULL'")),
    })
}

/// MySQL since 8.0.1 has MINIMAL and FULL, MariaDB since 10.5 NO_LOG too; before, there is no such variable and no such metadata.
fn row_metadata(facts: &Facts) -> Option<Finding> {
    let value = facts.variable("binlog_row_metadata")?;
    Some(match value {
        "FULL" => Finding::ok("binlog_row_metadata: FULL"),
        _ => Finding::warning(format!("binlog_row_metadata: {value}"))
            .because(
                "the log does not name the columns: once a table is gone or changed, show and undo cannot tell which is which",
            )
            .fixed_by(facts.set("binlog_row_metadata", "'FULL'")),
    })
}

fn checksum(facts: &Facts) -> Option<Finding> {
    let value = facts.variable("binlog_checksum")?;
    Some(match value {
        "CRC32" => Finding::ok("binlog_checksum: CRC32"),
        _ => Finding::warning(format!("binlog_checksum: {value}"))
            .because("a byte that changes on a disk or on the way cannot be noticed")
            .fixed_by(facts.set("binlog_checksum", "'CRC32'")),
    })
}

fn gtids(facts: &Facts) -> Option<Finding> {
    if facts.kind == ServerKind::MariaDb {
        let strict = facts.variable("gtid_strict_mode").unwrap_or("not known");
        return Some(Finding::ok(format!("GTIDs: always on (MariaDB); gtid_strict_mode: {strict}")));
    }
    let mode = facts.variable("gtid_mode")?;
    if mode == "ON" {
        let enforced = facts.variable("enforce_gtid_consistency").unwrap_or("not known");
        return Some(Finding::ok(format!("gtid_mode: ON; enforce_gtid_consistency: {enforced}")));
    }
    let steps = [
        ("enforce_gtid_consistency", "ON"),
        ("gtid_mode", "OFF_PERMISSIVE"),
        ("gtid_mode", "ON_PERMISSIVE"),
        ("gtid_mode", "ON"),
    ];
    let reached = steps.iter().skip(1).position(|(_, value)| *value == mode).map_or(0, |index| index + 2);
    let steps: Vec<String> = steps[reached..].iter().map(|(name, value)| facts.set(name, value)).collect();
    Some(
        Finding::warning(format!("gtid_mode: {mode}"))
            .because(
                "without GTIDs the copy cannot go on with another server after a failover, and a gap or a fork can only be \
                 told by file; one step after another, as in the manual's \"Enabling GTID Transactions Online\"",
            )
            .fixed_by(steps.join("\n")),
    )
}

fn durability(facts: &Facts) -> Option<Finding> {
    let (binlog, redo) = (facts.variable("sync_binlog")?, facts.variable("innodb_flush_log_at_trx_commit")?);
    let what = format!("sync_binlog: {binlog}; innodb_flush_log_at_trx_commit: {redo}");
    if (binlog, redo) == ("1", "1") {
        return Some(Finding::ok(what));
    }
    let wrong = [("sync_binlog", binlog), ("innodb_flush_log_at_trx_commit", redo)];
    let sql: Vec<String> =
        wrong.iter().filter(|(_, value)| *value != "1").map(|(name, _)| facts.set(name, "1")).collect();
    Some(
        Finding::warning(what)
            .because(
                "after a crash of its machine the source can lack transactions that the copy holds: the copy keeps them and \
                 begins a new timeline",
            )
            .fixed_by(sql.join("\n")),
    )
}

fn retention(facts: &Facts) -> Option<Finding> {
    if let Some(finding) = managed::retention(facts) {
        return Some(finding);
    }
    let seconds = facts.number("binlog_expire_logs_seconds").filter(|seconds| *seconds > 0);
    let days = facts.number("expire_logs_days").filter(|days| *days > 0);
    let kept = seconds.or(days.map(|days| days.saturating_mul(24 * 3600)));
    let automatic = facts.variable("binlog_expire_logs_auto_purge").is_none_or(|value| value == "ON");
    let size = match facts.number("max_binlog_total_size") {
        Some(bytes) if bytes > 0 => format!(", at most {bytes} bytes of them (max_binlog_total_size)"),
        _ => String::new(),
    };
    let Some(seconds) = kept.filter(|_| automatic) else {
        return Some(Finding::ok(format!(
            "retention: binary logs are kept until somebody purges them{size}"
        )));
    };
    let what = format!("retention: binary logs are kept for {}{size}", duration(seconds));
    if seconds >= RETENTION_SECONDS_MIN {
        return Some(Finding::ok(what));
    }
    let sql = match facts.variable("binlog_expire_logs_seconds") {
        Some(_) => facts.set("binlog_expire_logs_seconds", "604800"),
        None => facts.set("expire_logs_days", "7"),
    };
    Some(
        Finding::warning(what)
            .because(
                "what binlogd has not copied by then is a gap; a week leaves time to notice and to repair",
            )
            .fixed_by(sql),
    )
}

fn encryption(facts: &Facts) -> Option<Finding> {
    let name = ["binlog_encryption", "encrypt_binlog"].into_iter().find(|name| facts.is_on(name))?;
    Some(Finding::warning(format!("{name}: ON")).because(
        "the source decrypts what it sends, so the copy is in clear: keep data_dir on an encrypted file system",
    ))
}

/// `30 days`, `36 hours`, `90 seconds`: the largest unit that is exact.
fn duration(seconds: u64) -> String {
    let (count, unit) = match seconds {
        seconds if seconds % (24 * 3600) == 0 => (seconds / (24 * 3600), "day"),
        seconds if seconds % 3600 == 0 => (seconds / 3600, "hour"),
        seconds => (seconds, "second"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;
    use crate::doctor::test_facts::{mariadb, mysql, only_fault, wanted, with};

    #[test]
    fn without_a_binary_log_nothing_else_of_it_is_said() {
        let off = with(mysql(), "log_bin", Some("OFF"));
        assert_eq!(examine(&off, &wanted()).len(), 1);
        assert_eq!(only_fault(&off, &wanted()).level, Level::Error);
    }

    #[test]
    fn what_cannot_be_copied_is_refused_by_name() {
        let engine = |value| with(mariadb(), "binlog_storage_engine", Some(value));
        assert!(examine(&engine(""), &wanted()).len() > 1, "MariaDB 12.3 with a log of files");
        let fault = only_fault(&engine("innodb"), &wanted());
        assert_eq!((fault.level, &*fault.what), (Level::Error, "binlog_storage_engine: innodb"));
        assert!(fault.why.contains("without semi-sync"), "{}", fault.why);
        let node = |name, value| with(with(mariadb(), "wsrep_on", Some("ON")), name, Some(value));
        let fault = only_fault(&node("log_slave_updates", "OFF"), &wanted());
        assert_eq!((fault.level, &*fault.what), (Level::Error, "log_slave_updates: OFF"));
        let fault = only_fault(&node(GALERA_GTIDS, "OFF"), &wanted());
        assert_eq!((fault.level, &*fault.what), (Level::Warning, "wsrep_gtid_mode: OFF"));
        assert!(fault.sql.is_none() && fault.why.contains("never used"), "no statement does it: {fault:?}");
        let domains = |of_all| {
            with(
                with(node(GALERA_GTIDS, "ON"), "gtid_domain_id", Some("0")),
                "wsrep_gtid_domain_id",
                Some(of_all),
            )
        };
        let fault = only_fault(&domains("0"), &wanted());
        assert_eq!((fault.level, &*fault.what), (Level::Warning, "wsrep_gtid_domain_id: 0"));
        let fault = only_fault(&domains("0"), &Wanted { hosts: 2, ..wanted() });
        assert_eq!((fault.level, &*fault.what), (Level::Error, "wsrep_gtid_domain_id: 0"));
        assert_eq!(galera(&domains("9")).unwrap().level, Level::Ok);
        let fault = only_fault(&node(GALERA_GTIDS, "OFF"), &Wanted { hosts: 3, ..wanted() });
        assert_eq!(fault.level, Level::Error, "{fault:?}");
        let fault = only_fault(&node(GALERA_GTIDS, "ON"), &Wanted { hosts: 3, ..wanted() });
        assert_eq!(
            fault.what,
            "semi-sync: rpl_semi_sync_master_wait_no_slave is ON, on a member of a cluster"
        );
        assert!(
            only_fault(&with(node(GALERA_GTIDS, "ON"), "log_bin", Some("OFF")), &wanted())
                .why
                .contains("no binary log")
        );
    }

    #[test]
    fn each_setting_has_its_fix() {
        for (name, value, sql) in [
            ("binlog_format", "MIXED", "SET PERSIST binlog_format = 'ROW';"),
            ("binlog_row_image", "MINIMAL", "SET PERSIST binlog_row_image = 'FULL';"),
            ("binlog_row_metadata", "MINIMAL", "SET PERSIST binlog_row_metadata = 'FULL';"),
            ("binlog_checksum", "NONE", "SET PERSIST binlog_checksum = 'CRC32';"),
            ("sync_binlog", "0", "SET PERSIST sync_binlog = 1;"),
            ("innodb_flush_log_at_trx_commit", "2", "SET PERSIST innodb_flush_log_at_trx_commit = 1;"),
            ("binlog_expire_logs_seconds", "3600", "SET PERSIST binlog_expire_logs_seconds = 604800;"),
            ("gtid_mode", "ON_PERMISSIVE", "SET PERSIST gtid_mode = ON;"),
        ] {
            let fault = only_fault(&with(mysql(), name, Some(value)), &wanted());
            assert_eq!((fault.level, fault.sql.as_deref()), (Level::Warning, Some(sql)), "{name}");
        }
    }

    #[test]
    fn gtids_are_switched_on_in_steps() {
        let sql = only_fault(&with(mysql(), "gtid_mode", Some("OFF")), &wanted()).sql.unwrap();
        let steps: Vec<&str> = sql.lines().collect();
        assert_eq!(steps.len(), 4);
        assert_eq!(
            (steps[0], steps[3]),
            ("SET PERSIST enforce_gtid_consistency = ON;", "SET PERSIST gtid_mode = ON;")
        );
    }

    #[test]
    fn retention_in_all_its_ways() {
        let told = |facts: &Facts| retention(facts).unwrap();
        assert_eq!(told(&mysql()).what, "retention: binary logs are kept for 30 days");
        let never = with(mysql(), "binlog_expire_logs_seconds", Some("0"));
        assert_eq!(told(&never).level, Level::Ok);
        let off = with(
            with(mysql(), "binlog_expire_logs_seconds", Some("60")),
            "binlog_expire_logs_auto_purge",
            Some("OFF"),
        );
        assert!(told(&off).what.contains("until somebody purges"));
        let old =
            with(with(mariadb(), "binlog_expire_logs_seconds", None), "expire_logs_days", Some("3.000000"));
        assert_eq!(told(&old).what, "retention: binary logs are kept for 3 days");
        let sized = with(mariadb(), "max_binlog_total_size", Some("1024"));
        assert!(told(&sized).what.ends_with("at most 1024 bytes of them (max_binlog_total_size)"));
    }

    #[test]
    fn an_encrypted_log_is_copied_in_clear() {
        for (facts, name) in [(mysql(), "binlog_encryption"), (mariadb(), "encrypt_binlog")] {
            let fault = only_fault(&with(facts, name, Some("ON")), &wanted());
            assert!(fault.level == Level::Warning && fault.why.contains("in clear"));
        }
    }
}
