//! A member of a group of MySQL's Group Replication.

use super::facts::{Facts, GROUP_NAME};
use crate::doctor::finding::Finding;

/// What is to be granted so that a doubt ends.
const NOT_SEEN: &str = "Whether it is ONLINE there this account cannot see (SELECT on performance_schema.replication_group_members)";

/// The group that it is a member of, or may be; `None` for a server like others.
pub(super) fn group(facts: &Facts) -> Option<&str> {
    facts.variable(GROUP_NAME).filter(|name| !name.is_empty() && facts.in_group != Some(false))
}

pub(super) fn examine(facts: &Facts) -> Option<Finding> {
    let group = group(facts)?;
    let doubt = if facts.in_group.is_none() { format!(". {NOT_SEEN}") } else { String::new() };
    Some(Finding::ok(format!("Group Replication: {group}")).because(format!(
        "name every member in hosts: their GTIDs are the group's, so each transaction is copied once. What is committed on another \
         member than the one that binlogd reads from waits for nobody{doubt}"
    )))
}

/// Of a member, and of one of several nodes of Galera, instead of what holds for a server alone.
pub(super) fn wait_no_replica(facts: &Facts, name: &str) -> Finding {
    if !facts.is_on(name) {
        return Finding::ok(format!("semi-sync: {name} is OFF, as it must be in a cluster"));
    }
    const WHY: &str = "binlogd reads from one member, and on the others every commit waits for the timeout. OFF on each of them";
    let finding = Finding::warning(format!("semi-sync: {name} is ON, on a member of a cluster"));
    match facts.in_group {
        None => finding.because(format!("{WHY}. {NOT_SEEN}: if it is not, leave it ON")),
        Some(_) => finding.because(WHY).fixed_by_setting(facts, name, "OFF"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::test_facts::{mysql, only_fault, wanted, with};
    use crate::doctor::{Wanted, examine as examine_all};

    #[test]
    fn a_member_is_told_and_does_not_wait_where_nobody_is_attached() {
        let several = Wanted { hosts: 3, ..wanted() };
        let seen = |in_group| {
            let facts = with(mysql(), GROUP_NAME, Some("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"));
            Facts { in_group, ..facts }
        };
        let fault = only_fault(&seen(Some(true)), &several);
        assert!(fault.sql.unwrap().contains("rpl_semi_sync_source_wait_no_replica = OFF"));
        let right = with(seen(Some(true)), "rpl_semi_sync_source_wait_no_replica", Some("OFF"));
        let text = format!("{:?}", examine_all(&right, &several));
        assert!(text.contains("Group Replication: aaaaaaaa-") && text.contains("as it must be"), "{text}");

        // Alone in hosts, or out of its group, it is a source like others.
        let all_well = |facts: &Facts, wanted: &Wanted| {
            examine_all(facts, wanted).iter().all(|finding| finding.level == crate::doctor::Level::Ok)
        };
        assert!(all_well(&seen(Some(true)), &wanted()) && all_well(&seen(Some(false)), &several));
        assert_eq!(examine(&seen(Some(false))), None);
        let doubt = only_fault(&seen(None), &several);
        assert!(doubt.sql.is_none() && doubt.why.contains("if it is not, leave it ON"), "{doubt:?}");
        assert_eq!(examine(&with(mysql(), GROUP_NAME, Some(""))), None);
    }
}
