//! The archive when the store is down.

use super::place::{PATIENCE, Place, wait_archived};
use super::{MANNER, MYSQL};
use crate::common::compare::{binary_logs, copied_files};
use crate::common::daemon::Daemon;
use crate::common::ledger::{self, Ledger};
use crate::common::readers::{client, make_account, serve_port};
use crate::common::semi_sync::SemiSync;
use crate::common::{Server, wait_within};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Longer than the test: a commit without acknowledgement hangs instead of passing for an acknowledged one.
const TIMEOUT: Duration = Duration::from_secs(600);
const WRITERS: usize = 3;
/// A request to a store is given up after 30 s. Whoever ends earlier has not waited for one.
const END_MAX: Duration = Duration::from_secs(10);
/// So many commits come while the store does not answer, within the time of [`UNHURRIED`].
const COMMITS: usize = 300;
const UNHURRIED: Duration = Duration::from_secs(25);

/// Commits return as ever.
#[track_caller]
fn commits_go_on(ledger: &Ledger, semi_sync: &SemiSync<'_>) {
    let (before, begin) = (ledger.committed().len(), Instant::now());
    wait_within(UNHURRIED, "commits go on", || ledger.committed().len() >= before + COMMITS);
    println!("{COMMITS} commits took {:?}", begin.elapsed());
    assert_eq!(semi_sync.counters().no_tx, 0, "commits went on without acknowledgement");
}

fn verdict(source: &Value) -> String {
    source["verdict"].to_string()
}

#[track_caller]
fn failing(daemon: &Daemon) -> f64 {
    let scrape = crate::common::alert::Scrape::of(&daemon.admin_address());
    scrape.value("binlogd_archive_failing").expect("the metric")
}

#[test]
fn a_store_that_hangs_or_is_gone_holds_up_nobody() {
    let source = Server::start("mysql-9.7", &MYSQL);
    make_account(&source);
    ledger::create_table(&source);
    let semi_sync = SemiSync::enable(&source, TIMEOUT);
    let mut place = Place::s3();
    let mut daemon = place.start(&source, "");
    semi_sync.wait_attached();
    let ledger = Ledger::start_in(&source, WRITERS, MANNER);
    daemon.wait_until(|source| !source["archive"]["complete_until"].is_null(), PATIENCE);
    assert_eq!(failing(&daemon), 0.0);

    // It takes connections, and answers nothing.
    place.store().pause().expect("it runs");
    commits_go_on(&ledger, &semi_sync);
    let begin = Instant::now();
    daemon.terminate();
    assert!(begin.elapsed() < END_MAX, "the end waited for the store: {:?}", begin.elapsed());
    daemon.restart(&[]);
    semi_sync.wait_attached();
    commits_go_on(&ledger, &semi_sync);

    // Nobody listens any more.
    place.store().kill().expect("it runs");
    // At first it may be a connection that breaks.
    let is_refused = |source: &Value| {
        let message = source["archive"]["error"]["message"].as_str();
        message
            .is_some_and(|text| text.contains("Connection refused") && text.contains("nobody listens there"))
    };
    let failed = daemon.wait_until(is_refused, PATIENCE);
    assert!(verdict(&failed).contains("The archive is not kept up"), "{failed:#}");
    assert!(verdict(&failed).contains("warning"), "{failed:#}");
    assert_eq!(failing(&daemon), 1.0);
    commits_go_on(&ledger, &semi_sync);

    place.store_mut().restart().expect("a store");
    ledger.finish();
    wait_archived(&daemon, &source);
    // The verification is tried again a moment later.
    daemon.wait_until(|status| !verdict(status).contains("archive"), PATIENCE);
    assert_eq!(failing(&daemon), 0.0);
    assert!(daemon.log().contains("the archive is kept up again"), "{}", daemon.log());
    assert!(!daemon.log().contains("retry"), "what a library repeats is no news:\n{}", daemon.log());
    assert_eq!(semi_sync.counters().no_tx, 0);
    place.assert_whole(&source);
}

/// What the archive does not have nobody deletes, whatever the rules say.
#[test]
fn nothing_is_purged_before_it_is_archived() {
    let source = Server::start("mysql-9.7", &MYSQL);
    make_account(&source);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)");
    let mut place = Place::s3();
    let rules = "[[serve.user]]\nname = 'boss'\npassword = 'secret'\nprivileges = ['read', 'purge']\n\
                 [retention]\nmax_files = 2\n";
    let daemon = place.start(&source, rules);
    wait_archived(&daemon, &source);
    place.store().stop().expect("it ends");
    for _ in 0..5 {
        source.sql("INSERT INTO d.t (v) VALUES (1); FLUSH BINARY LOGS");
    }
    daemon.wait_caught_up(&source);
    let names = binary_logs(&source);
    let first = &names[0];
    let why = format!("want {first} gone, and it stays: the archive does not have it yet");
    daemon.wait_log(&why, PATIENCE);
    let statement = format!("PURGE BINARY LOGS TO '{}'; SHOW WARNINGS", names[3]);
    let arguments = ["--user=boss", "--batch", "--skip-column-names", "-e", &statement];
    let output = client(&source, "MYSQL", serve_port(&daemon), &arguments);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let warning = format!("file {first} was not purged because the archive does not have it yet");
    assert!(said.contains(&warning), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(copied_files(&daemon.timeline_dir()), names);

    place.store_mut().restart().expect("a store");
    wait_within(PATIENCE, "what is archived goes", || copied_files(&daemon.timeline_dir()).len() == 2);
    wait_archived(&daemon, &source);
    place.assert_whole(&source);
}
