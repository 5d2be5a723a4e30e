//! The archive's folder is not mounted any more, and is mounted again; an object in it is damaged, and put back.

use super::stage::Stage;
use super::{PATIENCE, received, receives, source};
use crate::common::daemon::Daemon;
use jiff::{SignedDuration, Timestamp};
use std::path::{Path, PathBuf};

/// The first object with bytes of a binary log.
fn object(folder: &Path) -> Option<PathBuf> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).ok()?.map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    entries.into_iter().find_map(|path| match path.is_dir() {
        true => object(&path),
        false => path
            .to_str()
            .is_some_and(|name| name.ends_with(".zst") && !name.contains(".json"))
            .then_some(path),
    })
}

#[test]
#[ignore = "make test-alerts"]
fn the_archive_is_damaged_and_is_not_verified() {
    let place = tempfile::tempdir().expect("a folder");
    let mount = place.path().join("mount");
    std::fs::create_dir(&mount).expect("a folder");
    let archive = format!("--archive-url=file://{}", mount.join("binlogs").display());
    let flags =
        [&*archive, "--archive-interval=1s", "--archive-verify-interval=1s", "--archive-verify-sample=1"];
    let server = source(&[]);
    let daemon = Daemon::start(&server, &flags);
    daemon.wait_until(|source| source["archive"]["verify"]["at"].is_string(), PATIENCE);
    let mut stage = Stage::new(daemon, &flags);

    let damaged = object(&mount).expect("an object");
    let bytes = std::fs::read(&damaged).expect("an object");
    let mut harmed = bytes.clone();
    let middle = harmed.len() / 2;
    harmed[middle] ^= 1;
    std::fs::write(&damaged, harmed).expect("a file");
    stage.prometheus.wait_fires("BinlogdArchiveDamaged");
    stage.play("The archive is damaged", &server);
    std::fs::write(&damaged, bytes).expect("a file");
    stage.prometheus.wait_ends("BinlogdArchiveDamaged");

    // As if no run had come to its end since it was due.
    stage.stop();
    let remembered = stage.daemon.data_dir().join("default/archive_verify.toml");
    let text = std::fs::read_to_string(&remembered).expect("what was remembered");
    let long_ago = Timestamp::now() - SignedDuration::from_hours(24 * 4);
    let lines = text.lines().map(|line| match line.strip_prefix("due = ") {
        Some(_) => format!("due = \"{long_ago}\""),
        None => line.to_owned(),
    });
    std::fs::write(&remembered, lines.collect::<Vec<_>>().join("\n")).expect("a file");
    let away = place.path().join("away");
    std::fs::rename(&mount, &away).expect("it is not mounted");
    stage.start();
    stage.prometheus.wait_fires("BinlogdArchiveNotVerified");
    stage.play("The archive was not verified for long", &server);
    std::fs::rename(&away, &mount).expect("it is mounted");
    stage.prometheus.wait_ends("BinlogdArchiveNotVerified");
}

#[test]
#[ignore = "make test-alerts"]
fn the_archive_is_not_kept_up_and_catches_up() {
    let place = tempfile::tempdir().expect("a folder");
    let mount = place.path().join("mount");
    let archive = format!("--archive-url=file://{}", mount.join("binlogs").display());
    let flags = [&*archive, "--archive-interval=1s"];
    let server = source(&[]);
    let daemon = Daemon::start(&server, &[]);
    receives(&daemon);
    // Archived from now on, and the folder was never mounted.
    let mut stage = Stage::new(daemon, &flags);
    stage.restart();
    receives(&stage.daemon);
    stage.prometheus.wait_fires("BinlogdArchiveBehind");
    stage.prometheus.wait_fires("BinlogdArchiveBegins");
    std::fs::create_dir(&mount).expect("it is mounted");
    stage.prometheus.wait_ends("BinlogdArchiveBegins");
    stage.prometheus.wait_ends("BinlogdArchiveBehind");

    let away = place.path().join("away");
    std::fs::rename(&mount, &away).expect("it is unmounted");
    server.sql("CREATE DATABASE what_is_newer");
    stage.prometheus.wait_fires("BinlogdArchiveBehind");
    stage.play("The archive is not kept up", &server);
    std::fs::rename(&away, &mount).expect("it is mounted");
    stage.daemon.wait_until_status(|status| status["sources"][0]["archive"]["error"].is_null(), PATIENCE);
    stage.prometheus.wait_ends("BinlogdArchiveBehind");
}

/// Somebody empties the bucket, and it cannot be filled again.
#[test]
#[ignore = "make test-alerts"]
fn the_archive_was_put_back_and_is_given_up() {
    let place = tempfile::tempdir().expect("a folder");
    let binlogs = place.path().join("binlogs");
    let archive = format!("--archive-url=file://{}", binlogs.display());
    let flags = [&*archive, "--archive-interval=1s"];
    let server = source(&[]);
    let daemon = Daemon::start(&server, &flags);
    daemon.wait_until(|source| !source["archive"]["archived"].is_null(), PATIENCE);
    let mut stage = Stage::new(daemon, &flags);
    std::fs::remove_dir_all(binlogs.join("default/commits")).expect("commits");
    server.sql("CREATE DATABASE what_is_newer");
    stage.prometheus.wait_fires("BinlogdArchivePutBack");
    stage.play("The archive was put back", &server);
    stage.daemon.wait_until(|source| source["archive"]["state"] == "current", PATIENCE);
    stage.prometheus.wait_ends("BinlogdArchivePutBack");
}

/// The throw-away server is none. Then no drill has passed for days, and at last nobody wants one any more.
#[test]
#[ignore = "make test-alerts"]
fn a_drill_fails_and_none_passes_for_long() {
    let place = tempfile::tempdir().expect("a folder");
    let archive = format!("file://{}", place.path().join("binlogs").display());
    let server = source(&[]);
    let archived = format!("[archive]\nurl = '{archive}'\ninterval = '1s'\n");
    let config = |drill: &str| format!("{archived}{drill}{}", received(&server, ""));
    let daemon = Daemon::start_from(&config(""));
    daemon.wait_until(|source| !source["archive"]["archived"].is_null(), PATIENCE);
    let mut stage = Stage::new(daemon, &[]);
    stage.archive = Some(archive);

    let soon = Timestamp::now() + SignedDuration::from_secs(8);
    let at = soon.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M:%S").to_string();
    stage.daemon.write_config(&config(&format!("[drill]\nat = '{at}'\nserver = '/bin/false'\n")));
    stage.restart();
    stage.prometheus.wait_fires("BinlogdDrillFails");
    stage.play("A drill fails", &server);
    let source = stage.daemon.source();
    let drill = &source["archive"]["drill"];
    assert!(drill["list"][0]["fault"] != "" && drill["last_passed"].is_null(), "{drill:#}");

    // As if that had gone on since days.
    stage.stop();
    let results = stage.daemon.data_dir().join("default/drills.jsonl");
    let text = std::fs::read_to_string(&results).expect("the results");
    let (_, rest) = text.split_once('\n').expect("a head");
    let long_ago = Timestamp::now() - SignedDuration::from_hours(24 * 3);
    std::fs::write(&results, format!("{{\"since\":\"{long_ago}\"}}\n{rest}")).expect("a file");
    stage.start();
    stage.prometheus.wait_fires("BinlogdDrillOverdue");
    stage.play("No drill has passed for long", &server);
    stage.daemon.write_config(&config(""));
    stage.restart();
    stage.prometheus.wait_ends("BinlogdDrillFails");
    stage.prometheus.wait_ends("BinlogdDrillOverdue");
}
