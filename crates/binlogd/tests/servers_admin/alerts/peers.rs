//! Two hosts are writable; then the source is lost, and one of two binlogds alone has its end.

use std::net::{SocketAddr, TcpListener};

use super::stage::Stage;
use super::{PATIENCE, source};
use crate::common::Server;
use crate::common::daemon::Daemon;
use crate::common::pair::{promote, replicate, wait_replicated};
use crate::common::proxy::{Fault, Proxy, address_of};
use crate::common::readers::serve_port;
use crate::common::semi_sync::SemiSync;
use std::time::Duration;

const FLAGS: [&str; 8] =
    ["--heartbeat-period", "1s", "--net-read-timeout", "3s", "--backoff-max", "1s", "--serve", "127.0.0.1:0"];

fn insert(server: &Server) {
    server.sql("INSERT INTO d.t (v) VALUES ('x')");
}

#[test]
#[ignore = "make test-alerts"]
fn a_peer_alone_holds_what_the_successor_lacks() {
    let source = source(&[]);
    let successor = Server::start("mysql-9.7", &[]);
    replicate(&successor, &source);
    wait_replicated(&successor, &source);
    let hosts = format!("mysql://repl:secret@{},{}", address_of(&source), address_of(&successor));
    let nobody: SocketAddr =
        TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a free port");
    let way = Proxy::start(nobody);
    let peers = way.address().to_string();
    let holder = Daemon::start_on(&hosts, &FLAGS);
    let flags = [&FLAGS[..], &["--peers", &peers]].concat();
    let mut other = Daemon::start_on(&hosts, &flags);
    way.move_to(([127, 0, 0, 1], serve_port(&holder)).into());
    for daemon in [&holder, &other] {
        daemon.wait_caught_up(&source);
    }
    SemiSync::enable(&source, Duration::from_secs(600))
        .wait_until(|counters| counters.on && counters.clients == 2);
    insert(&source);
    // The runbook is played on the machine of the holder; the other one sounds the alarm.
    let mut stage = Stage::new(holder, &FLAGS);
    // Somebody opens the replica beside the source.
    successor.sql("SET GLOBAL super_read_only = OFF; SET GLOBAL read_only = OFF");
    stage.prometheus.wait_fires("BinlogdHostsInDoubt");
    stage.play("Two hosts take writes", &successor);
    stage.prometheus.wait_ends("BinlogdHostsInDoubt");
    successor.sql("STOP REPLICA IO_THREAD");
    insert(&source);
    other.wait_caught_up(&source);
    other.terminate();
    insert(&source);
    source.sql("FLUSH BINARY LOGS");
    insert(&source);
    stage.daemon.wait_caught_up(&source);
    source.kill();
    promote(&successor);
    let follows = |source: &serde_json::Value| {
        source["state"] == "receiving" && source["host"] == address_of(&successor).to_string()
    };
    stage.daemon.wait_until(follows, PATIENCE);
    // Under a number of its own, which is in the way of nothing that is lost.
    successor.sql("INSERT INTO d.t VALUES (900, 'by the successor')");
    way.fault(Fault::Blackout);
    other.restart(&flags);
    other.wait_until(follows, PATIENCE);
    other.wait_log("the timeline ends, and not everything could be had from", PATIENCE);
    way.fault(Fault::None);
    stage.others = vec![("binlogd2:9306", other.admin_address())];
    stage.scrape();
    stage.prometheus.wait_fires("BinlogdPeerAloneHolds");
    stage.play("A peer alone holds transactions", &successor);
    stage.prometheus.wait_ends("BinlogdPeerAloneHolds");
}
