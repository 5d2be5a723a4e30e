//! Every query of the packaged dashboard, asked of a real Prometheus.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::stage::Stage;
use super::{received, receives, source};
use crate::common::daemon::{Daemon, binlog_end};
use crate::common::readers::{By, attach, serve_port, wait_applied};
use crate::common::semi_sync::SemiSync;
use crate::common::{Server, wait_within, workspace};

/// Queries that give nothing while all is well, or without what they are about.
const MAY_BE_EMPTY: [&str; 2] = ["binlogd_disk_left_seconds", "binlogd_peer_only_there_transactions"];

/// The queries of all panels, with the variables put in.
fn queries() -> Vec<String> {
    let text =
        std::fs::read_to_string(workspace().join("packaging/grafana/binlogd.json")).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let queries = targets.map(|target| target["expr"].as_str().expect("a query").to_owned());
    queries
        .map(|query| {
            query.replace("$instance", ".*").replace("$source", ".*").replace("$__rate_interval", "10s")
        })
        .collect()
}

#[test]
#[ignore = "make test-alerts"]
fn every_query_of_the_dashboard_gives_something() {
    let server = source(&[]);
    let replica = Server::start("mysql-9.7", &[]);
    let user = "[[serve.user]]\nname = 'repl'\npassword = 'secret'\nslot = 'warehouse'\n";
    let place = tempfile::tempdir().expect("a folder");
    let archive = format!("[archive]\nurl = 'file://{}'\ninterval = '1s'\n", place.path().display());
    let received = received(&server, "ack_after_replicas = 0");
    let daemon = Daemon::start_from(&format!("{user}{archive}{received}"));
    receives(&daemon);
    SemiSync::enable(&server, Duration::from_secs(600)).wait_attached();
    attach(&replica, serve_port(&daemon), By::Gtid, ("", 4));
    server.sql("INSERT INTO d.t (v) VALUES ('x')");
    wait_applied(&replica, || binlog_end(&server), &daemon);
    let verify = Command::new(env!("CARGO_BIN_EXE_binlogd")).arg("verify").arg(daemon.data_dir()).output();
    assert!(verify.expect("binlogd runs").status.success());
    let stage = Stage::new(daemon, &[]);
    let queries = queries();
    assert!(queries.len() >= 20, "{queries:?}");
    for query in queries {
        if MAY_BE_EMPTY.iter().any(|name| query.contains(name)) {
            stage.prometheus.query(&query);
            continue;
        }
        wait_within(super::PATIENCE, &format!("{query} gives something"), || {
            server.sql("INSERT INTO d.t (v) VALUES ('x')");
            !stage.prometheus.query(&query).is_empty()
        });
    }
}
