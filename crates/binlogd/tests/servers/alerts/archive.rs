//! The archive's folder is not mounted any more, and is mounted again.

use super::stage::Stage;
use super::{PATIENCE, receives, source};
use crate::common::daemon::Daemon;

#[test]
#[ignore = "make test-alerts"]
fn the_archive_is_not_kept_up_and_catches_up() {
    let place = tempfile::tempdir().expect("a folder");
    let mount = place.path().join("mount");
    let archive = format!("--archive-url=file://{}", mount.join("binlogs").display());
    let flags = [&*archive, "--archive-interval=1s"];
    std::fs::create_dir(&mount).expect("a folder");
    let server = source(&[]);
    let daemon = Daemon::start(&server, &flags);
    receives(&daemon);
    let away = place.path().join("away");
    std::fs::rename(&mount, &away).expect("it is unmounted");
    server.sql("CREATE DATABASE what_is_newer");
    let mut stage = Stage::new(daemon, &flags);
    stage.prometheus.wait_fires("BinlogdArchiveBehind");
    stage.play("The archive is not kept up", &server);
    std::fs::rename(&away, &mount).expect("it is mounted");
    stage
        .daemon
        .wait_until_status(|status| status["sources"][0]["archive"]["error"].is_null(), PATIENCE);
    stage.prometheus.wait_ends("BinlogdArchiveBehind");
}
