//! What a server says of itself, and what is wrong with that.

pub(in crate::doctor) mod access;
pub(in crate::doctor) mod behind;
pub(in crate::doctor) mod binlog;
pub(in crate::doctor) mod facts;
pub mod grants;
mod group;
pub(in crate::doctor) mod identity;
mod managed;
pub(crate) mod provider;
pub mod semi_sync;
pub(in crate::doctor) mod start;

use super::finding::Finding;
use super::wanted::Wanted;
use facts::Facts;

/// Judges everything, in the order in which a person would.
pub fn examine(facts: &Facts, wanted: &Wanted) -> Vec<Finding> {
    let mut findings = access::examine(facts, wanted);
    findings.extend(start::examine(facts, wanted));
    findings.extend(identity::examine(facts, wanted));
    if behind::is_binlogd(facts) {
        findings.extend(behind::examine(facts, wanted));
        return findings;
    }
    findings.extend(of_its_kind(facts));
    findings.extend(binlog::examine(facts, wanted));
    // Where it is refused, nothing of semi-sync helps.
    if facts.refusal(wanted.hosts).is_none() {
        findings.extend(semi_sync::examine(facts, wanted));
    }
    findings
}

/// What is to be known of a server whatever its semi-sync and its accounts are like: version, encryption, binary log.
pub fn examine_server(facts: &Facts, wanted: &Wanted) -> Vec<Finding> {
    let mut findings = vec![access::version(facts), access::tls(facts, wanted)];
    findings.extend(of_its_kind(facts));
    findings.extend(binlog::examine(facts, wanted));
    findings
}

/// What it is beside a server like others.
fn of_its_kind(facts: &Facts) -> Vec<Finding> {
    managed::examine(facts).into_iter().chain(group::examine(facts)).collect()
}

/// Whether a binlogd has answered, and no server.
pub fn is_binlogd(facts: &Facts) -> bool {
    behind::is_binlogd(facts)
}
