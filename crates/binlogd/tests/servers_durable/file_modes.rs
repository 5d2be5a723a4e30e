//! Binary logs hold the data of all tables: whatever binlogd makes is its owner's only, whatever the umask.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use crate::common::Server;
use crate::common::compare::copied_files;
use crate::common::daemon::{Daemon, Launch, temporary_folder, url};
use crate::common::semi_sync::SemiSync;

/// Longer than the test: the source must never go on without an acknowledgement.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Everything in a folder, itself included, with its mode.
fn modes(path: &Path, found: &mut Vec<(String, u32)>) {
    let metadata = std::fs::symlink_metadata(path).expect("an entry");
    found.push((path.display().to_string(), metadata.mode() & 0o7777));
    if metadata.is_dir() {
        for entry in std::fs::read_dir(path).expect("a folder").flatten() {
            modes(&entry.path(), found);
        }
    }
}

#[track_caller]
fn assert_private(data_dir: &Path, names: &[&str]) {
    let mut found = Vec::new();
    modes(data_dir, &mut found);
    for (path, mode) in &found {
        let expected = if Path::new(path).is_dir() { 0o700 } else { 0o600 };
        assert_eq!(*mode, expected, "{path} has mode {mode:o}");
    }
    for name in names {
        assert!(found.iter().any(|(path, _)| path.contains(name)), "there is no {name} in {found:#?}");
    }
}

#[test]
fn nothing_is_readable_for_others() {
    let folder = temporary_folder();
    let data_dir = folder.path().join("new/data");
    let server = Server::start("mysql-9.7", &[]);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (a INT)");
    let semi_sync = SemiSync::enable(&server, TIMEOUT);
    let wrapper = ["sh", "-c", "umask 000; exec \"$@\"", "sh"].map(str::to_owned).to_vec();
    let launch = Launch { wrapper, ..Launch::default() };
    let mut daemon = Daemon::start_with(launch, folder, &data_dir, &url(&server), &[]);
    semi_sync.wait_attached();
    server.sql("INSERT INTO d.t VALUES (1); FLUSH BINARY LOGS; INSERT INTO d.t VALUES (2)");
    daemon.wait_caught_up(&server);
    let made = ["mysql-bin.000001", "mysql-bin.000002", "binlog.index", "timeline.toml", "journal", "lock"];
    assert_private(&data_dir, &[&made[..], &["replica.toml", "admin.address"]].concat());

    // What only a crash leaves: a torn tail.
    daemon.kill();
    let timeline = daemon.timeline_dir();
    let live = timeline.join(copied_files(&timeline).pop().expect("a binary log"));
    let mut file = File::options().append(true).open(&live).expect("the live file");
    file.write_all(b"torn").expect("a tail");
    daemon.restart(&[]);
    daemon.wait_caught_up(&server);
    assert_private(&data_dir, &[".torn-"]);
    daemon.terminate();
    assert_private(&data_dir, &made);
}
