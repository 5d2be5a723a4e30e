//! The source loses what clients were told of, and gives its GTIDs to others.

use super::stage::Stage;
use crate::common::fork_scene::{FLAGS, Scene, copy_folder};
use crate::common::semi_sync::SemiSync;
use std::time::Duration;

#[test]
#[ignore = "make test-alerts"]
fn the_source_loses_transactions_and_gives_their_gtids_again() {
    let withhold = [&FLAGS[..], &["--on-fork", "withhold"]].concat();
    let Scene { server, daemon } = Scene::new("mysql-9.7", &["--on-fork", "withhold"]);
    SemiSync::enable(&server, Duration::from_secs(600)).wait_attached();
    let mut stage = Stage::new(daemon, &withhold);
    let mut server = server;
    put_back(&mut server);
    stage.prometheus.wait_fires("BinlogdAcknowledgementsWithheld");
    stage.prometheus.wait_fires("BinlogdSourceLacks");
    stage.play("Acknowledgements are withheld", &server);
    stage.prometheus.wait_ends("BinlogdAcknowledgementsWithheld");
    stage.prometheus.wait_ends("BinlogdSourceLacks");

    // Followed, as is the default.
    stage.flags = FLAGS.iter().map(|&flag| flag.to_owned()).collect();
    stage.restart();
    put_back(&mut server);
    stage.prometheus.wait_fires("BinlogdSourceLacks");
    stage.play("The source lacks transactions", &server);
    stage.prometheus.wait_ends("BinlogdSourceLacks");

    // Clients write before anybody has looked.
    put_back(&mut server);
    server.sql("INSERT INTO d.t VALUES (30, 'under a GTID that is in use')");
    stage.prometheus.wait_fires("BinlogdGtidsGivenTwice");
    stage.play("GTID conflicts", &server);
    stage.prometheus.wait_ends("BinlogdGtidsGivenTwice");
    let rows = server.sql("SELECT GROUP_CONCAT(id ORDER BY id) FROM d.t");
    assert_eq!(rows.trim(), "0,1,2,3,30", "what was lost is there, and what was written since");
}

/// The state of its disk from before the transactions that are lost.
fn put_back(server: &mut crate::common::Server) {
    server.kill();
    copy_folder(&server.dir().join("earlier"), server.datadir());
    server.restart(&[]);
}
