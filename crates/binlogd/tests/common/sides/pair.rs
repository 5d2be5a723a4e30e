//! A source and its replica, and the steps of a failover as an operator takes them.

use std::time::{Duration, Instant};

use crate::common::Server;
use codec::ServerKind;

/// Longest wait for a replica.
const REPLICATES_MAX: Duration = Duration::from_secs(60);

/// Makes `replica` a replica of `source` by GTID, and read-only.
pub fn replicate(replica: &Server, source: &Server) {
    let port = source.port();
    if replica.kind() == ServerKind::MariaDb {
        replica.sql(&format!(
            "SET GLOBAL read_only = 1; CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, \
             MASTER_USER = 'root', MASTER_USE_GTID = slave_pos, MASTER_SSL = 0, MASTER_SSL_VERIFY_SERVER_CERT = 0; START SLAVE"
        ));
    } else {
        replica.sql(&format!(
            "SET GLOBAL super_read_only = 1; CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', \
             SOURCE_PORT = {port}, SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1, SOURCE_SSL = 1; START REPLICA"
        ));
    }
}

/// Waits until the replica has executed everything that the source has written, in slices shorter than a statement may take.
#[track_caller]
pub fn wait_replicated(replica: &Server, source: &Server) {
    let (written, wait) = match replica.kind() {
        ServerKind::MariaDb => {
            (source.sql("SELECT @@global.gtid_binlog_pos").trim().to_owned(), "MASTER_GTID_WAIT")
        }
        ServerKind::MySql => (gtid_executed(source), "WAIT_FOR_EXECUTED_GTID_SET"),
    };
    let wait = format!("SELECT {wait}('{written}', 30)");
    let has_come = (0..8).any(|_| replica.sql(&wait).trim() == "0");
    assert!(has_come, "the replica does not come to {written}");
}

/// `@@gtid_executed` on one line.
pub fn gtid_executed(server: &Server) -> String {
    server.sql("SELECT REPLACE(@@global.gtid_executed, '\\n', '')").trim().replace("\\n", "")
}

/// Makes a replica the source, after it has applied everything that it has received.
#[track_caller]
pub fn promote(replica: &Server) {
    let (stop_receiver, status, rest) = if replica.kind() == ServerKind::MariaDb {
        let rest = "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0";
        ("STOP SLAVE IO_THREAD", "SHOW SLAVE STATUS", rest)
    } else {
        let rest =
            "STOP REPLICA; RESET REPLICA ALL; SET GLOBAL super_read_only = 0; SET GLOBAL read_only = 0";
        ("STOP REPLICA IO_THREAD", "SHOW REPLICA STATUS", rest)
    };
    replica.sql(stop_receiver);
    let deadline = Instant::now() + REPLICATES_MAX;
    // What its applier does: "Replica (or Slave) has read all relay log; waiting for more updates".
    while !replica.sql(status).contains("has read all relay log") {
        assert!(Instant::now() < deadline, "the relay log is not applied:\n{}", replica.sql(status));
        std::thread::sleep(Duration::from_millis(20));
    }
    replica.sql(rest);
}

/// What a planned switch-over does to the source first: clients can no longer write to it.
pub fn demote(source: &Server) {
    source.sql(if source.kind() == ServerKind::MariaDb {
        "SET GLOBAL read_only = 1"
    } else {
        "SET GLOBAL super_read_only = 1"
    });
}

/// Has the server throw its binary logs away and begin new ones.
pub fn reset(server: &Server) {
    server.sql(if server.kind() == ServerKind::MariaDb {
        "RESET MASTER"
    } else {
        "RESET BINARY LOGS AND GTIDS"
    });
}

/// Makes `new` a replica of `old` and waits until it has everything.
pub fn replicate_once(old: &Server, new: &Server) {
    let (host, port) = (old.env("HOST"), old.port());
    if new.kind() == ServerKind::MySql {
        new.sql(&format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST='{host}', SOURCE_PORT={port}, SOURCE_USER='root', \
             SOURCE_AUTO_POSITION=1, SOURCE_SSL=1; START REPLICA"
        ));
        wait_replicated(new, old);
        new.sql("STOP REPLICA; RESET REPLICA ALL");
    } else {
        new.sql(&format!(
            "CHANGE MASTER TO MASTER_HOST='{host}', MASTER_PORT={port}, MASTER_USER='root', MASTER_USE_GTID=slave_pos; \
             START SLAVE"
        ));
        wait_replicated(new, old);
        new.sql("STOP SLAVE; RESET SLAVE ALL");
    }
}
