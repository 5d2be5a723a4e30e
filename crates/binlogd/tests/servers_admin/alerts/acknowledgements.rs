//! Commits wait, or do not wait any more.

use std::time::Duration;

use super::stage::Stage;
use super::{received, receives, source};
use crate::common::Server;
use crate::common::daemon::Daemon;
use crate::common::semi_sync::SemiSync;

/// Longer than the test.
const NEVER: Duration = Duration::from_secs(600);

fn insert(server: &Server) {
    server.sql("INSERT INTO d.t (v) VALUES ('x')");
}

fn start(server: &Server) -> Stage {
    let daemon = Daemon::start_from(&received(server, ""));
    receives(&daemon);
    SemiSync::enable(server, NEVER).wait_attached();
    insert(server);
    Stage::new(daemon, &[])
}

#[test]
#[ignore = "make test-alerts"]
fn semi_sync_is_switched_off_and_binlogd_is_away() {
    let server = source(&[]);
    let mut stage = start(&server);
    SemiSync::of(&server).set_enabled(false);
    stage.prometheus.wait_fires("BinlogdSemiSyncOff");
    stage.play("Semi-sync is off", &server);
    stage.prometheus.wait_ends("BinlogdSemiSyncOff");

    stage.daemon.write_config(&received(&server, "watch_interval = '0s'"));
    stage.daemon.reload();
    stage.prometheus.wait_fires("BinlogdSourceNotWatched");
    stage.play("The source cannot be asked", &server);
    stage.daemon.write_config(&received(&server, ""));
    stage.daemon.reload();
    stage.prometheus.wait_ends("BinlogdSourceNotWatched");
    SemiSync::of(&server).wait_attached();

    SemiSync::of(&server).set_timeout(Duration::from_secs(1));
    stage.stop();
    stage.prometheus.wait_fires("BinlogdDown");
    insert(&server);
    stage.play("binlogd does not answer", &server);
    stage.prometheus.wait_ends("BinlogdDown");
    SemiSync::of(&server).set_timeout(NEVER);
    SemiSync::of(&server).set_enabled(true);
    stage.prometheus.wait_fires("BinlogdUnacknowledgedWhileAway");
    SemiSync::of(&server).wait_attached();
    insert(&server);
    stage.restart();
    stage.prometheus.wait_ends("BinlogdUnacknowledgedWhileAway");
    stage.prometheus.wait_quiet();
}

#[test]
#[ignore = "make test-alerts"]
fn receivers_further_down_do_not_confirm() {
    let server = source(&[]);
    let mut stage = start(&server);
    stage.daemon.write_config(&received(&server, "ack_after_replicas = 1\nack_timeout = '1s'"));
    stage.daemon.reload();
    // Then the source gives up.
    SemiSync::of(&server).set_timeout(Duration::from_secs(25));
    std::thread::scope(|scope| {
        let client = scope.spawn(|| insert(&server));
        stage.prometheus.wait_fires("BinlogdWaitingForReplicas");
        stage.prometheus.wait_fires("BinlogdCommitsWait");
        stage.play("Commits wait and nothing is acknowledged", &server);
        client.join().expect("it is let go");
    });
    stage.prometheus.wait_fires("BinlogdUnacknowledgedCommits");
    stage.play("Commits went without an acknowledgement", &server);
    let alone = "ack_after_replicas = 1\nack_timeout = '1s'\nack_timeout_action = 'go_on'";
    stage.daemon.write_config(&received(&server, alone));
    stage.play("Too few receivers confirm", &server);
    insert(&server);
    stage.prometheus.wait_fires("BinlogdAcknowledgesAlone");
    for name in ["BinlogdWaitingForReplicas", "BinlogdCommitsWait", "BinlogdUnacknowledgedCommits"] {
        stage.prometheus.wait_ends(name);
    }
    stage.daemon.write_config(&received(&server, ""));
    stage.daemon.reload();
    stage.prometheus.wait_ends("BinlogdAcknowledgesAlone");
    stage.prometheus.wait_quiet();
}
