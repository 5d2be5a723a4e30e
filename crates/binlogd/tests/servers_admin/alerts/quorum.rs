//! Nodes of a quorum are away; a promotion does not end, and another epoch begins.

use super::stage::Stage;
use super::{PATIENCE, received, source};
use crate::common::Server;
use crate::common::daemon::Daemon;
use crate::common::proxy::Proxy;
use crate::common::readers::serve_port;
use crate::common::semi_sync::SemiSync;
use rustix::process::Signal;
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::time::Duration;
use wire::{ConnectOptions, Connection, Secret, TlsOptions};

/// Longer than the test.
const NEVER: Duration = Duration::from_secs(3600);
/// How Prometheus knows the nodes.
const NAMES: [&str; 3] = ["binlogd1:9306", "binlogd2:9306", "binlogd3:9306"];

fn start(server: &Server, ways: &[Proxy; 3], node: usize) -> Daemon {
    let others: Vec<String> =
        (0..3).filter(|other| *other != node).map(|other| format!("'{}'", ways[other].address())).collect();
    let daemon = Daemon::start_from(&received(server, &format!("quorum = [{}]", others.join(", "))));
    lead(&ways[node], &daemon);
    daemon
}

/// The way to a node leads to where it serves.
fn lead(way: &Proxy, daemon: &Daemon) {
    way.move_to(([127, 0, 0, 1], serve_port(daemon)).into());
}

fn counts(daemon: &Daemon, nodes: u64) {
    daemon.wait_until(
        |source| {
            let quorum = &source["quorum"];
            let others = quorum["others"].as_array().expect("the other nodes");
            let counting = others.iter().filter(|other| other["counts"] == true).count() as u64;
            quorum["counts"] == true && counting + 1 == nodes && source["semi_sync"]["active"] == true
        },
        PATIENCE,
    );
}

/// Promises an epoch, as for a promotion of which nothing more is heard.
fn fence(daemon: &Daemon) {
    let mut connection = Connection::connect(&ConnectOptions {
        host: "127.0.0.1".to_owned(),
        port: serve_port(daemon),
        user: "repl".to_owned(),
        password: Secret::new("secret"),
        connect_timeout: PATIENCE,
        tls: TlsOptions::default(),
    })
    .expect("it lets the nodes in");
    let ballot = r#"{"epoch":99,"promotion":"3e11fa47-71ca-11e1-9e33-c80aa9429562"}"#;
    let promise = format!(r#"BINLOGD QUORUM {{"promise":{{"ballot":{ballot},"kind":"ordinary"}}}}"#);
    connection.query(&promise).expect("it promises");
}

/// What the doctor of the first node finds, as it is and with names that are wrong.
fn doctor_says(first: &Daemon, ways: &[Proxy; 3]) {
    let config = std::fs::read_to_string(first.config_path()).expect("a configuration");
    let ways: Vec<String> = ways.iter().map(|way| way.address().to_string()).collect();
    let told = |own: &str, other: &str| {
        let path = first.config_path().with_extension("doctor.toml");
        let text = config
            .replace(&ways[1], own)
            .replace(&ways[2], other)
            .replace("'data'", &format!("{:?}", first.data_dir()));
        std::fs::write(&path, text).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
        let output =
            command.arg("doctor").arg("--config").arg(path).env("NO_COLOR", "1").output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, text) = told(&ways[1], &ways[2]);
    assert!(code == Some(0) && text.matches("a node, which counts in epoch ").count() == 2, "{text}");
    assert!(text.contains("semi-sync: no replica is attached but the 3 nodes"), "{text}");
    // The first names itself by another name, and one node by two.
    let (code, text) = told(&ways[0], &ways[2]);
    assert!(code == Some(1) && text.contains("error    it is this binlogd itself"), "{text}");
    let same = Proxy::start(
        ([127, 0, 0, 1], ways[2].rsplit_once(':').expect("a port").1.parse().expect("a port")).into(),
    );
    let (code, text) = told(&same.address().to_string(), &ways[2]);
    assert!(code == Some(1) && text.contains("error    it is the same binlogd as"), "{text}");
}

#[test]
#[ignore = "make test-alerts"]
fn nodes_of_a_quorum_are_away_and_a_promotion_does_not_end() {
    let server = source(&[]);
    let nobody: SocketAddr = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port");
    let ways: [Proxy; 3] = std::array::from_fn(|_| Proxy::start(nobody));
    let [first, second, third] = [0, 1, 2].map(|node| start(&server, &ways, node));
    SemiSync::enable(&server, NEVER);
    [&first, &second, &third].into_iter().for_each(|node| counts(node, 3));
    let insert = || server.sql("INSERT INTO d.t (v) VALUES ('x')");
    insert();
    doctor_says(&first, &ways);
    let mut stage = Stage::new(first, &[]);
    stage.others = vec![(NAMES[1], second.admin_address()), (NAMES[2], third.admin_address())];
    stage.scrape();

    stage.stop();
    stage.prometheus.wait_fires("BinlogdNodeAbsent");
    insert();
    // The operator is on the machine of the node that is away.
    stage.play("A node is absent", &server);
    lead(&ways[0], &stage.daemon);
    stage.prometheus.wait_ends("BinlogdNodeAbsent");

    stage.stop();
    third.signal(Signal::STOP);
    std::thread::scope(|scope| {
        let client = scope.spawn(insert);
        stage.prometheus.wait_fires("BinlogdQuorumLost");
        assert!(!client.is_finished(), "one node alone has acknowledged");
        stage.play("The quorum is lost", &server);
        lead(&ways[0], &stage.daemon);
        client.join().expect("it commits");
    });
    third.signal(Signal::CONT);
    stage.prometheus.wait_ends("BinlogdQuorumLost");

    // A promotion was begun, one node has promised, and whoever began it is gone.
    fence(&third);
    stage.prometheus.wait_fires("BinlogdNodeFenced");
    insert();
    stage.play("A node is fenced", &server);
    stage.prometheus.wait_ends("BinlogdNodeFenced");
    stage.prometheus.wait_fires("BinlogdEpochChanged");
    stage.play("The epoch has changed", &server);
    stage.prometheus.wait_ends("BinlogdEpochChanged");
    stage.prometheus.wait_quiet();
    assert_eq!(SemiSync::of(&server).counters().no_tx, 0);
}
