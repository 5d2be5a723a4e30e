//! Version, TLS, authentication, privileges.

use super::facts::Facts;
use super::grants::Privileges;
use super::semi_sync::at_once;
use crate::doctor::finding::Finding;
use crate::doctor::wanted::Wanted;
use codec::ServerKind;
use codec::packet::release;
use wire::TlsMode;

/// Source: MySQL manual, "Privileges Provided by MySQL"; MariaDB manual, "GRANT": REPLICATION REPLICA is its alias.
const NEEDED: [&str; 2] = ["REPLICATION SLAVE", "REPLICATION REPLICA"];

pub(in crate::doctor) fn examine(facts: &Facts, wanted: &Wanted) -> Vec<Finding> {
    vec![version(facts), tls(facts, wanted), authentication(facts), privileges(facts)]
}

pub(in crate::doctor) fn version(facts: &Facts) -> Finding {
    let what = format!("version {} ({})", facts.version, facts.kind);
    match facts.kind {
        _ if release(&facts.version).is_none() => Finding::warning(what).because(
            "not a version that binlogd understands, so it is taken for a new one: what follows may not fit",
        ),
        ServerKind::MySql if !facts.is_from(5, 6, 1) => Finding::error(what).because(
            "its binary logs have no checksums, so a copy cannot be verified: upgrade to MySQL 5.7 or later",
        ),
        ServerKind::MariaDb if !facts.is_from(10, 2, 0) => Finding::warning(what)
            .because("older than everything that binlogd is tested with (10.11 and 11.8)"),
        ServerKind::MySql if !facts.is_from(5, 7, 0) => Finding::warning(what)
            .because("older than everything that binlogd is tested with (5.7, 8.0 and 9.7)"),
        _ => Finding::ok(what),
    }
}

pub(in crate::doctor) fn tls(facts: &Facts, wanted: &Wanted) -> Finding {
    if let Some(version) = &facts.tls_version {
        let verified = matches!(wanted.tls, TlsMode::VerifyCa | TlsMode::VerifyFull);
        let checked = if verified { "" } else { ", the certificate not checked" };
        return Finding::ok(format!("TLS: {version} (tls = {}{checked})", wanted.tls));
    }
    let cause = match wanted.tls {
        TlsMode::Disabled => "tls = disabled",
        _ => "the server offers none",
    };
    let what = format!("TLS: none, {cause}");
    if facts.loopback {
        return Finding::ok(format!("{what}; the server is on this machine"));
    }
    Finding::warning(what).because("whoever sees the network sees all the data that is written")
}

fn authentication(facts: &Facts) -> Finding {
    let plugin = &facts.auth_plugin;
    let what = format!("authentication: {plugin}");
    if plugin == "mysql_native_password" && facts.kind == ServerKind::MySql && facts.is_from(8, 0, 0) {
        return Finding::warning(what)
            .because("MySQL 9 no longer has it, so the account would stop working with an upgrade")
            .fixed_by(at_once(
                facts,
                format!(
                    "ALTER USER {} IDENTIFIED WITH caching_sha2_password BY '<password>';",
                    facts.quoted_account()
                ),
            ));
    }
    Finding::ok(what)
}

fn privileges(facts: &Facts) -> Finding {
    let account = facts.quoted_account();
    let grant = at_once(facts, format!("GRANT REPLICATION SLAVE ON *.* TO {account};"));
    let lines = match &facts.grants {
        Ok(lines) => lines,
        Err(refusal) => {
            return Finding::warning(format!("privileges of {account}: not known"))
                .because(format!("SHOW GRANTS failed: {refusal}"))
                .fixed_by(grant);
        }
    };
    let privileges = Privileges::parse(lines);
    if privileges.has(&NEEDED) {
        return Finding::ok(format!("privileges of {account}: REPLICATION SLAVE"));
    }
    let roles =
        if privileges.roles { ". It holds a role, but none with it that is active at login" } else { "" };
    Finding::error(format!("privileges of {account}: REPLICATION SLAVE is missing"))
        .because(format!("the source sends its binary log to nobody without it{roles}"))
        .fixed_by(grant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::test_facts::{mariadb, mysql, only_fault, wanted};
    use crate::doctor::{Level, examine};

    #[test]
    fn a_missing_privilege_is_an_error_with_its_grant() {
        let facts = Facts { grants: Ok(vec!["GRANT USAGE ON *.* TO `repl`@`%`".to_owned()]), ..mysql() };
        let fault = only_fault(&facts, &wanted());
        assert_eq!(fault.level, Level::Error);
        assert_eq!(fault.sql.as_deref(), Some("GRANT REPLICATION SLAVE ON *.* TO 'repl'@'%';"));
        let role = "GRANT `r1`@`%` TO `repl`@`%`".to_owned();
        let facts = Facts { grants: Ok(vec![role]), ..mysql() };
        assert!(only_fault(&facts, &wanted()).why.contains("It holds a role"));
    }

    /// MariaDB puts the hash of the password there.
    #[test]
    fn no_grant_is_ever_shown() {
        let line = "GRANT USAGE ON *.* TO `u`@`%` IDENTIFIED BY PASSWORD '*HASH'".to_owned();
        let facts = Facts { grants: Ok(vec![line]), ..mariadb() };
        assert!(!format!("{:?}", examine(&facts, &wanted())).contains("HASH"));
    }

    #[test]
    fn no_encryption_matters_over_a_network() {
        let plain = Facts { tls_version: None, ..mysql() };
        assert!(only_fault(&plain, &wanted()).what.ends_with("the server offers none"));
        let disabled = Wanted { tls: TlsMode::Disabled, ..wanted() };
        assert!(only_fault(&plain, &disabled).what.ends_with("tls = disabled"));
        let near = examine(&Facts { loopback: true, ..plain }, &wanted());
        assert!(near.iter().all(|finding| finding.level == Level::Ok));
    }

    #[test]
    fn an_authentication_without_future_is_a_warning_where_it_has_none() {
        let native = |facts| Facts { auth_plugin: "mysql_native_password".to_owned(), ..facts };
        let fault = only_fault(&native(mysql()), &wanted());
        assert!(
            fault.sql.unwrap().starts_with("ALTER USER 'repl'@'%' IDENTIFIED WITH caching_sha2_password")
        );
        assert!(examine(&native(mariadb()), &wanted()).iter().all(|finding| finding.level == Level::Ok));
    }

    #[test]
    fn old_versions() {
        for (facts, level) in [
            (Facts { version: "5.5.62".to_owned(), ..mysql() }, Level::Error),
            (Facts { version: "5.6.51".to_owned(), ..mysql() }, Level::Warning),
            (Facts { version: "5.7.22-log".to_owned(), ..mysql() }, Level::Ok),
            (Facts { version: "8.0.36-28".to_owned(), ..mysql() }, Level::Ok),
            (Facts { version: "26.7.0".to_owned(), ..mysql() }, Level::Ok),
            (Facts { version: "28.4.1-lts".to_owned(), ..mysql() }, Level::Ok),
            (Facts { version: "x".to_owned(), ..mysql() }, Level::Warning),
            (Facts { version: "10.1.48-MariaDB".to_owned(), ..mariadb() }, Level::Warning),
            (Facts { version: "10.11.1-MariaDB".to_owned(), ..mariadb() }, Level::Ok),
            (Facts { version: "12.1.2-MariaDB".to_owned(), ..mariadb() }, Level::Ok),
            (Facts { version: "".to_owned(), ..mariadb() }, Level::Warning),
        ] {
            assert_eq!(version(&facts).level, level, "{}", facts.version);
        }
    }
}
