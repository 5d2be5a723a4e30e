//! A source that is no server, but another binlogd: this one keeps a second copy.

use super::facts::Facts;
use crate::doctor::finding::Finding;
use crate::doctor::wanted::Wanted;

/// How the `version_comment` of a binlogd begins, which is no server's.
const COMMENT: &str = "binlogd";

/// Whether a binlogd has answered.
pub(in crate::doctor) fn is_binlogd(facts: &Facts) -> bool {
    facts.variable("version_comment").is_some_and(|comment| comment.starts_with(COMMENT))
}

/// What its settings say is the business of its own source; what matters here is how the two work together.
pub(in crate::doctor) fn examine(facts: &Facts, wanted: &Wanted) -> Vec<Finding> {
    let source = Finding::ok(format!(
        "source: another binlogd, which serves the copy of a server of version {}. How that server is set up is for a doctor \
         there: binlogd doctor with the server's address",
        facts.version
    ));
    vec![source, semi_sync(facts, wanted)]
}

fn semi_sync(facts: &Facts, wanted: &Wanted) -> Finding {
    let names = ["rpl_semi_sync_source_wait_for_replica_count", "rpl_semi_sync_master_wait_for_slave_count"];
    // MariaDB has no such variable, and one that poses as MariaDB neither.
    let is_offered =
        ["rpl_semi_sync_source_enabled", "rpl_semi_sync_master_enabled"].iter().any(|name| facts.is_on(name));
    let count = names.iter().find_map(|name| facts.number(name));
    match (wanted.semi_sync, count) {
        (false, Some(count)) if count > 0 => {
            Finding::warning("semi-sync: switched off here (semi_sync = false), and the other binlogd waits for receivers")
                .because(format!(
                    "it acknowledges to the source when {count} receivers have confirmed (ack_after_replicas), and this one will not: set \
                     semi_sync = true"
                ))
        }
        (false, _) => Finding::ok("semi-sync: switched off here (semi_sync = false): durable within fsync_interval"),
        (true, _) if !is_offered => Finding::warning("semi-sync: the other binlogd does not offer it")
            .because("an older version: what arrives is durable within fsync_interval only. Update it"),
        (true, None) => Finding::ok("semi-sync: on, so that what arrives is durable here at once"),
        (true, Some(0)) => Finding::ok(
            "semi-sync: on, so that what arrives is durable here at once. The other binlogd acknowledges to the source without waiting \
             for that; with ack_after_replicas = 1 there, a commit returns when both have it",
        ),
        (true, Some(count)) => Finding::ok(format!(
            "semi-sync: on; the other binlogd acknowledges to the source when {count} receivers have confirmed \
             (ack_after_replicas), of which this can be one"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::test_facts::{mariadb, mysql, wanted, with};
    use crate::doctor::{Level, examine};

    fn binlogd(facts: Facts) -> Facts {
        let facts = with(facts, "version_comment", Some("binlogd, which keeps and serves binary logs"));
        with(facts, "sync_binlog", Some("0"))
    }

    #[test]
    fn it_is_not_judged_as_a_server() {
        for (facts, count) in [
            (mysql(), "rpl_semi_sync_source_wait_for_replica_count"),
            (mariadb(), "rpl_semi_sync_master_wait_for_slave_count"),
        ] {
            let facts = Facts { semi_sync_clients: Some(0), ..with(binlogd(facts), count, Some("0")) };
            let said = |facts: &Facts, wanted: &Wanted| {
                let findings = examine(facts, wanted);
                assert!(findings.iter().all(|finding| finding.sql.is_none()), "{findings:#?}");
                findings.into_iter().last().unwrap()
            };
            let finding = said(&facts, &wanted());
            assert!(finding.level == Level::Ok && finding.what.contains("without waiting"), "{finding:?}");
            let facts = with(facts, count, Some("2"));
            assert!(said(&facts, &wanted()).what.contains("when 2 receivers have confirmed"));
            let off = Wanted { semi_sync: false, ..wanted() };
            assert_eq!(said(&facts, &off).level, Level::Warning);
            assert_eq!(said(&with(facts.clone(), count, Some("0")), &off).level, Level::Ok);
            assert_eq!(said(&with(facts.clone(), count, None), &wanted()).level, Level::Ok);
            let names = ["rpl_semi_sync_source_enabled", "rpl_semi_sync_master_enabled"];
            let older = names.into_iter().fold(facts, |facts, name| with(facts, name, Some("OFF")));
            assert_eq!(said(&older, &wanted()).level, Level::Warning);
        }
    }
}
