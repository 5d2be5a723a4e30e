//! Server ids: the source's, ours, those of other replicas.

use super::facts::Facts;
use crate::doctor::finding::Finding;
use crate::doctor::wanted::Wanted;
use codec::ServerKind;

const TWO_REPLICAS: &str =
    "the source ends the older of two replicas with one identity, so that both would reconnect for ever";
/// With different UUIDs; see `receive/watch/rival.rs`.
const TWO_SERVER_IDS: &str = "MySQL serves both, lists only the one that came last, and takes the acknowledgements of both for \
     those of one replica";

pub(in crate::doctor) fn examine(facts: &Facts, wanted: &Wanted) -> Vec<Finding> {
    [source(facts), Some(ours(facts, wanted)), unlisted(facts)].into_iter().flatten().collect()
}

/// Of two replicas with one `server_id` the one that came first is in no list, but it is attached.
fn unlisted(facts: &Facts) -> Option<Finding> {
    let listed = facts.replicas.as_ref().ok().filter(|_| facts.kind == ServerKind::MySql)?.len() as u64;
    let attached = facts.semi_sync_clients.filter(|attached| *attached > listed)?;
    let ids: Vec<String> =
        facts.replicas.iter().flatten().map(|replica| replica.server_id.to_string()).collect();
    let ids = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
    Some(Finding::warning(format!("replicas: {attached} semi-sync replicas are attached, and only {listed} registered ({ids})"))
        .because(format!(
            "two of them use one server_id, unless one has just lost its connection: {TWO_SERVER_IDS}. Give each its own"
        )))
}

fn source(facts: &Facts) -> Option<Finding> {
    match facts.number("server_id") {
        Some(0) => Some(
            Finding::error("server_id of the source: 0")
                .because(
                    "a server without a server_id refuses replicas; give it one that no other server has",
                )
                .fixed_by(facts.set("server_id", "1")),
        ),
        _ => None,
    }
}

fn ours(facts: &Facts, wanted: &Wanted) -> Finding {
    let Some(id) = wanted.server_id else {
        return Finding::ok(
            "server_id of binlogd: none yet; the first start chooses one at random and keeps it",
        );
    };
    let what = format!("server_id of binlogd: {id}");
    if facts.number("server_id") == Some(u64::from(id)) {
        return Finding::error(what).because(
            "it is the source's own, so the source would refuse it: set server_id to one that no server has",
        );
    }
    let replicas = match &facts.replicas {
        Ok(replicas) => replicas,
        Err(refusal) => {
            return Finding::ok(format!(
                "{what}, not the source's; other replicas were not compared: {refusal}"
            ));
        }
    };
    let ours = |uuid: &Option<String>| uuid.is_some() && *uuid == wanted.replica_uuid;
    if let Some(other) = replicas.iter().find(|replica| ours(&replica.uuid) && replica.server_id != id) {
        return Finding::error(what).because(format!(
            "the replica with server_id {} has the UUID of this data folder: {TWO_REPLICAS}. Stop it, or remove \
             replica.toml from the one that is a copy of the other",
            other.server_id
        ));
    }
    match replicas.iter().find(|replica| replica.server_id == id) {
        None => Finding::ok(format!("{what}, unlike the source's and those of {} replicas", replicas.len())),
        Some(replica) if ours(&replica.uuid) => {
            Finding::ok(format!("{what}, registered there by this binlogd"))
        }
        Some(replica) => {
            let host = if replica.host.is_empty() { String::new() } else { format!(" on {}", replica.host) };
            match &replica.uuid {
                Some(uuid) => Finding::error(what).because(format!(
                    "the replica {uuid}{host} has it too: {TWO_SERVER_IDS}. Set server_id to one that no server has"
                )),
                None => Finding::warning(what).because(format!(
                    "a replica{host} that is connected now has it too. Unless that is this binlogd: {TWO_REPLICAS}"
                )),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::Replica;
    use super::*;
    use crate::doctor::test_facts::{mysql, only_fault, wanted, with};
    use crate::doctor::{Level, examine};

    fn replica(server_id: u32, uuid: Option<&str>) -> Facts {
        let replica = Replica { server_id, host: "db9".to_owned(), uuid: uuid.map(str::to_owned) };
        Facts { replicas: Ok(vec![replica]), ..mysql() }
    }

    #[test]
    fn the_source_must_have_one_of_its_own() {
        let fault = only_fault(&with(mysql(), "server_id", Some("0")), &wanted());
        assert_eq!((fault.level, fault.sql.as_deref()), (Level::Error, Some("SET PERSIST server_id = 1;")));
        let fault = only_fault(&with(mysql(), "server_id", Some("4100000001")), &wanted());
        assert!(fault.level == Level::Error && fault.why.contains("the source's own"), "{fault:?}");
    }

    #[test]
    fn another_replica_must_not_have_ours() {
        let id = wanted().server_id.unwrap();
        let fault = only_fault(&replica(id, Some("dddddddd-dddd-dddd-dddd-dddddddddddd")), &wanted());
        assert!(fault.level == Level::Error && fault.why.contains("on db9 has it too"), "{fault:?}");
        assert_eq!(only_fault(&replica(id, None), &wanted()).level, Level::Warning);
        let copied = only_fault(&replica(7, wanted().replica_uuid.as_deref()), &wanted());
        assert!(copied.why.contains("has the UUID of this data folder"), "{copied:?}");
    }

    #[test]
    fn a_replica_that_another_has_pushed_out_of_the_list_is_counted() {
        let id = wanted().server_id.unwrap();
        let facts = Facts { semi_sync_clients: Some(2), ..replica(id, wanted().replica_uuid.as_deref()) };
        let fault = only_fault(&facts, &wanted());
        assert!(fault.level == Level::Warning && fault.what.contains("2 semi-sync replicas"), "{fault:?}");
        assert!(fault.what.contains(&id.to_string()));
    }

    #[test]
    fn we_may_be_connected_ourselves() {
        let wanted = wanted();
        for facts in [
            replica(wanted.server_id.unwrap(), wanted.replica_uuid.as_deref()),
            replica(7, Some("dddddddd-dddd-dddd-dddd-dddddddddddd")),
            Facts { replicas: Err("you need REPLICATION MASTER ADMIN".to_owned()), ..mysql() },
        ] {
            let findings = examine(&facts, &wanted);
            assert!(findings.iter().all(|finding| finding.level == Level::Ok), "{findings:#?}");
        }
    }
}
