//! A member of a group of MySQL's Group Replication.

use super::facts::{Facts, GROUP_NAME};
use crate::doctor::finding::Finding;

/// The group; `None` for a server like others.
pub(super) fn group(facts: &Facts) -> Option<&str> {
    facts.variable(GROUP_NAME).filter(|name| !name.is_empty())
}

pub(super) fn examine(facts: &Facts) -> Option<Finding> {
    let group = group(facts)?;
    Some(Finding::ok(format!("Group Replication: {group}")).because(
        "name every member in hosts: their GTIDs are the group's, so each transaction is copied once. What is committed on another \
         member than the one that binlogd reads from waits for nobody",
    ))
}

/// Of a member, and of one of several nodes of Galera, instead of what holds for a server alone.
pub(super) fn wait_no_replica(facts: &Facts, name: &str) -> Finding {
    if !facts.is_on(name) {
        return Finding::ok(format!("semi-sync: {name} is OFF, as it must be in a cluster"));
    }
    Finding::warning(format!("semi-sync: {name} is ON, on a member of a cluster"))
        .because("binlogd reads from one member, and on the others every commit waits for the timeout. OFF on each of them")
        .fixed_by_setting(facts, name, "OFF")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::examine as examine_all;
    use crate::doctor::test_facts::{mysql, only_fault, wanted, with};

    #[test]
    fn a_member_is_told_and_does_not_wait_where_nobody_is_attached() {
        let member = with(mysql(), GROUP_NAME, Some("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"));
        let fault = only_fault(&member, &wanted());
        assert!(fault.sql.unwrap().contains("rpl_semi_sync_source_wait_no_replica = OFF"));
        let right = with(member, "rpl_semi_sync_source_wait_no_replica", Some("OFF"));
        let text = format!("{:?}", examine_all(&right, &wanted()));
        assert!(text.contains("Group Replication: aaaaaaaa-") && text.contains("as it must be"), "{text}");
        assert_eq!(examine(&with(mysql(), GROUP_NAME, Some(""))), None);
    }
}
