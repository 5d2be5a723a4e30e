//! The archive's folder is not mounted, and is mounted.

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
    let server = source(&[]);
    let daemon = Daemon::start(&server, &flags);
    receives(&daemon);
    let mut stage = Stage::new(daemon, &flags);
    stage.prometheus.wait_fires("BinlogdArchiveBehind");
    stage.play("The archive is not kept up", &server);
    std::fs::create_dir(&mount).expect("a folder");
    stage
        .daemon
        .wait_until_status(|status| status["sources"][0]["archive"]["behind_seconds"].is_number(), PATIENCE);
    stage.prometheus.wait_ends("BinlogdArchiveBehind");
}
