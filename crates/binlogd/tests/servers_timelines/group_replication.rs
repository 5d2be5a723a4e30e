//! MySQL Group Replication: three members, all of them `hosts` of one source. binlogd follows the primary when it dies and when it is
//! changed, goes on where every member may be written to, and has each transaction once.
//!
//! Semi-sync of MySQL works beside the group's own agreement, on the member that binlogd reads from. Every member waits for itself, also
//! where it applies what others wrote: with `rpl_semi_sync_source_wait_no_replica` ON one that nobody is attached to stands still.

use crate::common::daemon::Daemon;
use crate::common::doctor::{doctor, line};
use crate::common::ledger::{self, Ledger};
use crate::common::nodes::nobody;
use crate::common::readers::make_account;
use crate::common::semi_sync::SemiSync;
use crate::common::verbs::{binlogd, text};
use crate::common::{Server, wait_within};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// Members expel one that is silent after 5 s, and elect behind that.
const PATIENCE: Duration = Duration::from_secs(90);
/// Longer than a test: a commit that nobody acknowledges hangs.
const NEVER: Duration = Duration::from_secs(600);
const COMMITS: usize = 50;
const FLAGS: [&str; 6] = ["--heartbeat-period", "1s", "--net-read-timeout", "3s", "--backoff-max", "1s"];
/// Of the group: its transactions have GTIDs of this name, whoever wrote them.
const GROUP: &str = "5ca1ab1e-0000-4000-8000-00000000cafe";

struct Group {
    members: Vec<Server>,
    uuids: Vec<String>,
}

impl Group {
    /// The first member is the primary.
    fn start() -> Group {
        let addresses: Vec<String> = (0..3).map(|_| nobody().to_string()).collect();
        let seeds = format!("--loose-group-replication-group-seeds={}", addresses.join(","));
        let member = |address: &String| {
            let options = [
                "--gtid-mode=ON",
                "--enforce-gtid-consistency=ON",
                "--report-host=127.0.0.1",
                "--rpl-semi-sync-source-wait-no-replica=OFF",
                "--plugin-load-add=group_replication.so",
                &format!("--loose-group-replication-group-name={GROUP}"),
                &format!("--loose-group-replication-local-address={address}"),
                "--loose-group-replication-ip-allowlist=127.0.0.1/8",
                "--loose-group-replication-start-on-boot=OFF",
                "--loose-group-replication-recovery-get-public-key=ON",
                &seeds,
            ];
            let member = Server::start("mysql-9.7", &options);
            member.sql(
                "SET sql_log_bin = 0; CREATE USER gr@'%' IDENTIFIED BY 'gr'; GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, \
                 GROUP_REPLICATION_STREAM ON *.* TO gr@'%'; SET sql_log_bin = 1; RESET BINARY LOGS AND GTIDS",
            );
            member
        };
        let members: Vec<Server> = addresses.iter().map(member).collect();
        let uuids = members.iter().map(|one| one.sql("SELECT @@server_uuid").trim().to_owned()).collect();
        let group = Group { members, uuids };
        group.members[0].sql("SET GLOBAL group_replication_bootstrap_group = ON");
        group.join(0);
        group.members[0].sql("SET GLOBAL group_replication_bootstrap_group = OFF");
        group.join(1);
        group.join(2);
        let primary = &group.members[0];
        make_account(primary);
        ledger::create_table(primary);
        group
    }

    fn join(&self, member: usize) {
        self.members[member].sql("START GROUP_REPLICATION USER = 'gr', PASSWORD = 'gr'");
        wait_within(PATIENCE, "it is a member", || self.is_online(member));
    }

    fn is_online(&self, member: usize) -> bool {
        let own = "SELECT member_state FROM performance_schema.replication_group_members WHERE member_id = @@server_uuid";
        self.members[member].sql(own).trim() == "ONLINE"
    }

    /// Who is the primary in the eyes of a member, when all who are left agree on it.
    fn wait_primary(&self, of: usize, left: usize) -> usize {
        let told = "SELECT member_id FROM performance_schema.replication_group_members WHERE member_role = 'PRIMARY' AND member_state = 'ONLINE'";
        let count =
            "SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE member_state = 'ONLINE'";
        wait_within(PATIENCE, "a primary is elected", || {
            self.members[of].sql(count).trim() == left.to_string() && !self.members[of].sql(told).is_empty()
        });
        let primary = self.members[of].sql(told);
        let found = self.uuids.iter().position(|uuid| uuid == primary.trim()).expect("one of them");
        wait_within(PATIENCE, "it can be written to", || {
            self.members[found].sql("SELECT @@global.super_read_only").trim() == "0"
        });
        found
    }
}

/// It reads from this one, which waits for it.
fn wait_reads_from(daemon: &Daemon, member: &Server) {
    let host = format!("127.0.0.1:{}", member.port());
    let reads = |source: &Value| source["host"] == *host && source["semi_sync"]["active"] == true;
    daemon.wait_until(reads, PATIENCE);
    daemon.wait_caught_up(member);
}

/// Everything that a client was told of is on the server, and in the copy.
#[track_caller]
fn nothing_told_is_lost(daemon: &Daemon, member: &Server, told: &BTreeSet<u64>) {
    let rows = member.sql("SELECT id FROM ledger.entry");
    let has: BTreeSet<u64> = rows.lines().filter_map(|id| id.trim().parse().ok()).collect();
    let lost: Vec<_> = told.difference(&has).collect();
    assert!(lost.is_empty(), "told to clients, and not on the new primary: {lost:?}");
    let executed = member.sql("SELECT @@global.gtid_executed").split_whitespace().collect::<String>();
    assert_eq!(daemon.source()["gtid"]["durable"], *executed, "{}", daemon.log());
}

#[test]
fn the_primary_is_followed_and_every_member_has_one_history() {
    let mut group = Group::start();
    let hosts: Vec<String> = group.members.iter().map(|one| format!("127.0.0.1:{}", one.port())).collect();
    let daemon = Daemon::start_on(&format!("mysql://repl:secret@{}", hosts.join(",")), &FLAGS);
    for member in &group.members {
        SemiSync::enable(member, NEVER);
    }
    wait_reads_from(&daemon, &group.members[0]);
    // Only an account that may read performance_schema sees that it is a member now.
    for (account, is_seen) in [("root", true), ("repl:secret", false)] {
        let (_, said) = doctor(&format!("mysql://{account}@{}", hosts.join(",")), &daemon.data_dir(), &[]);
        line(&said, "ok", &format!("Group Replication: {GROUP}"));
        line(&said, "ok", "semi-sync: rpl_semi_sync_source_wait_no_replica is OFF, as it must be");
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(said.contains("this account cannot see"), !is_seen, "{account}: {said}");
    }

    // The primary dies under load.
    let ledger = Ledger::start(&group.members[0], 4);
    ledger.wait_for(COMMITS);
    group.members[0].kill();
    let mut told = ledger.of_a_dead_server();
    let second = group.wait_primary(1, 2);
    wait_reads_from(&daemon, &group.members[second]);
    nothing_told_is_lost(&daemon, &group.members[second], &told);

    // It comes back and is caught up by the others, and becomes the primary again as planned.
    group.members[0].restart(&[]);
    group.join(0);
    SemiSync::enable(&group.members[0], NEVER);
    let uuid = &group.uuids[0];
    group.members[second].sql("INSERT INTO ledger.entry VALUES (90000001, 'between')");
    told.insert(90_000_001);
    group.members[second].sql(&format!("SELECT group_replication_set_as_primary('{uuid}')"));
    assert_eq!(group.wait_primary(0, 3), 0);
    wait_reads_from(&daemon, &group.members[0]);
    let acknowledged = SemiSync::of(&group.members[0]).counters();
    group.members[0].sql("INSERT INTO ledger.entry VALUES (90000002, 'at the old primary')");
    told.insert(90_000_002);
    let counters = SemiSync::of(&group.members[0]).counters();
    assert!(counters.on && counters.yes_tx > acknowledged.yes_tx, "{counters:?}");
    daemon.wait_caught_up(&group.members[0]);
    nothing_told_is_lost(&daemon, &group.members[0], &told);

    // Every member may be written to, and the one that is read from dies.
    group.members[0].sql("SELECT group_replication_switch_to_multi_primary_mode()");
    for (member, server) in group.members.iter().enumerate() {
        let id = 91_000_000 + member as u64;
        wait_within(PATIENCE, "it can be written to", || {
            server.sql("SELECT @@global.super_read_only").trim() == "0"
        });
        server.sql(&format!("INSERT INTO ledger.entry VALUES ({id}, 'everywhere')"));
        told.insert(id);
    }
    let count = "SELECT COUNT(*) FROM ledger.entry WHERE id >= 91000000";
    wait_within(PATIENCE, "the first has all", || group.members[0].sql(count).trim() == "3");
    daemon.wait_caught_up(&group.members[0]);
    group.members[0].kill();
    let others = |source: &Value| source["state"] == "receiving" && source["host"] != *hosts[0];
    let status = daemon.wait_until(others, PATIENCE);
    let now = hosts.iter().position(|host| status["host"] == **host).expect("one of the hosts");
    let left =
        "SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE member_state = 'ONLINE'";
    wait_within(PATIENCE, "the dead one is expelled", || group.members[now].sql(left).trim() == "2");
    group.members[now].sql("INSERT INTO ledger.entry VALUES (92000000, 'at the end')");
    told.insert(92_000_000);
    daemon.wait_caught_up(&group.members[now]);
    nothing_told_is_lost(&daemon, &group.members[now], &told);
    each_once(&daemon);
}

/// What several members wrote into their logs is said to be the same, and nothing lies on a fork.
fn each_once(daemon: &Daemon) {
    let output = binlogd(&["find", daemon.data_dir().to_str().expect("a path"), "--limit", "0", "--json"]);
    let answer: Value = serde_json::from_str(&text(&output.stdout)).expect("JSON");
    let (mut firsts, mut again) = (BTreeSet::new(), 0);
    for one in answer["sources"][0]["transactions"].as_array().expect("a list") {
        let gtid = one["gtid"].as_str().expect("a GTID");
        assert!(gtid.starts_with(GROUP), "{one:#}");
        match one["found_before"].is_null() {
            true => assert!(firsts.insert(gtid.to_owned()), "twice: {one:#}"),
            false => again += 1,
        }
    }
    assert!(firsts.len() > COMMITS && again > 0, "{} and {again}", firsts.len());
    let (code, said) = crate::common::fork_scene::forks(daemon, &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("no fork took anything from it"), "{said}");
}
