//! The machine is lost: binlogd is started on an empty disk with the same configuration, and goes on where the archive ends.

use super::place::{Fetched, PATIENCE, Place, assert_no_damage, wait_archived};
use super::{MANNER, MYSQL, executed};
use crate::common::Server;
use crate::common::archive::described;
use crate::common::compare::{AfterCrash, assert_holds, binary_logs, copied_files};
use crate::common::daemon::Daemon;
use crate::common::ledger::{self, Ledger};
use crate::common::pair::{promote, replicate, wait_replicated};
use crate::common::readers::{client, make_account, serve_port};
use jiff::Timestamp;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Whoever ends earlier has not waited for a request to the store, which is given up after 30 s.
const END_MAX: Duration = Duration::from_secs(5);

/// Waits until the archive has everything that is durable now.
#[track_caller]
fn wait_all_archived(daemon: &Daemon) {
    let asked = Timestamp::now();
    let is_since = |until: &str| until.parse::<Timestamp>().expect("a time") >= asked;
    daemon.wait_until(|source| source["archive"]["complete_until"].as_str().is_some_and(is_since), PATIENCE);
}

/// binlogd and its disk are gone.
fn lose(daemon: &mut Daemon) {
    daemon.kill();
    std::fs::remove_dir_all(daemon.data_dir()).expect("the copy is removed");
}

/// The file of which the next upload would have been: the last in the archive, or the one behind it where that is there whole.
fn next_upload(source: &Server, archived: &Fetched) -> String {
    let names = binary_logs(source);
    let last = names.iter().position(|name| *name == archived.file).expect("a file of the source");
    // What has one behind it grows no more.
    let len = std::fs::metadata(source.datadir().join(&archived.file)).expect("the source's file").len();
    names.get(last + 1).filter(|_| len == archived.end).unwrap_or(&archived.file).clone()
}

fn names_of(timelines: &[PathBuf]) -> Vec<String> {
    timelines.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

fn state(source: &Value) -> &str {
    source["state"].as_str().expect("a state")
}

fn goes_on_from_the_archive(name: &str, options: &[&str]) {
    let source = Server::start(name, options);
    make_account(&source);
    ledger::create_table(&source);
    let place = Place::folder();
    let mut daemon = place.start(&source, "");
    let ledger = Ledger::start_in(&source, 3, MANNER);
    for _ in 0..3 {
        ledger.wait_for(ledger.committed().len() + 60);
        source.sql("FLUSH BINARY LOGS");
    }
    wait_all_archived(&daemon);
    let timelines = names_of(&daemon.timeline_dirs());
    lose(&mut daemon);

    // The source has gone on to the next file when binlogd comes back.
    let archived = place.fetch();
    // As a kill between an upload and the change that names it leaves one.
    let folder = place.root().join("default").join(&timelines[0]).join(next_upload(&source, &archived));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join(format!("{:020}-{:020}-0.zst", 1, 2)), "an upload").expect("an object");
    let unnamed = place.assert_sound()["unnamed_objects"].as_u64();
    assert!(unnamed >= Some(1), "{unnamed:?}");
    ledger.wait_for(ledger.committed().len() + 60);
    source.sql("FLUSH BINARY LOGS");
    ledger.wait_for(ledger.committed().len() + 60);
    daemon.restart(&[]);
    ledger.wait_for(ledger.committed().len() + 60);
    ledger.finish();
    wait_archived(&daemon, &source);
    let words = format!(
        "the copy goes on where {} ends, at {}, {}:{}",
        place.url(),
        timelines[0],
        archived.file,
        archived.end
    );
    assert!(daemon.log().contains(&words), "{words}\n{}", daemon.log());
    assert_eq!(names_of(&daemon.timeline_dirs()), timelines, "{}", daemon.log());
    let names = binary_logs(&source);
    let first = names.iter().position(|name| *name == archived.file).expect("a file of the source") - 1;
    assert!(first > 0, "all of them were fetched: {names:?}");
    assert_holds(&source, &daemon, &names[first..], AfterCrash::Identical);
    let timeline = described(&daemon.timeline_dir(), "reason");
    assert_eq!(timeline, "first", "no gap is recorded");

    let sound = place.assert_sound();
    // That file is finished now, and what is older than its end in its folder is not counted.
    assert_eq!(sound["unnamed_objects"], 0, "nothing was uploaded in vain: {sound:#}");
    let fetched = place.fetch();
    assert_eq!(fetched.assert_is_of(&source), names);
    assert_eq!(fetched.state(&source), executed(&source));
    daemon.terminate();
    assert_no_damage(&daemon.data_dir());

    // From then on the copy is one like any other.
    source.sql("FLUSH BINARY LOGS; INSERT INTO ledger.bulk VALUES (1, 'after it')");
    daemon.restart(&[]);
    wait_archived(&daemon, &source);
    assert_holds(&source, &daemon, &binary_logs(&source)[first..], AfterCrash::Identical);
    assert_eq!(daemon.log().matches("the copy goes on where").count(), 1, "{}", daemon.log());
}

#[test]
fn of_a_lost_machine_mysql_goes_on_from_the_archive() {
    goes_on_from_the_archive("mysql-9.7", &MYSQL);
}

#[test]
fn of_a_lost_machine_mariadb_goes_on_from_the_archive() {
    goes_on_from_the_archive("mariadb-11.8", &[]);
}

/// The disk of the archive is not mounted when binlogd starts. To begin at the source would make a second history.
#[test]
fn nothing_begins_before_the_archive_can_be_asked() {
    let source = Server::start("mysql-9.7", &MYSQL);
    make_account(&source);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)");
    let place = Place::folder();
    let mut daemon = place.start(&source, "");
    for _ in 0..3 {
        source.sql("INSERT INTO d.t (v) VALUES (1); FLUSH BINARY LOGS");
    }
    wait_archived(&daemon, &source);
    let timelines = names_of(&daemon.timeline_dirs());
    lose(&mut daemon);
    source.sql("INSERT INTO d.t (v) VALUES (2); FLUSH BINARY LOGS");
    let mount = place.root().parent().expect("a folder around it").to_owned();
    let away = mount.with_extension("away");
    std::fs::rename(&mount, &away).expect("it is unmounted");

    daemon.restart(&[]);
    let waits = daemon.wait_until(|source| state(source) == "waiting for the archive", PATIENCE);
    let detail = waits["state_detail"].as_str().expect("words");
    assert!(detail.contains("Is it mounted?") && detail.contains("archive = false"), "{detail}");
    assert_eq!(waits["verdict"]["level"], "critical", "{waits:#}");
    let ask = |path: &str| ureq::get(format!("http://{}{path}", daemon.admin_address())).call();
    let metrics = ask("/metrics").expect("metrics").body_mut().read_to_string().expect("text");
    let metric = "binlogd_source_state{source=\"default\",state=\"waiting for the archive\"} 1";
    assert!(metrics.contains(metric), "{metrics}");
    let healthy = ask("/healthz");
    assert!(healthy.is_err(), "nothing is received: {healthy:?}");
    let begin = Instant::now();
    daemon.terminate();
    assert!(begin.elapsed() < END_MAX, "the end waited for the archive: {:?}", begin.elapsed());
    assert_eq!(daemon.timeline_dirs(), [] as [PathBuf; 0]);

    daemon.restart(&[]);
    daemon.wait_until(|source| state(source) == "waiting for the archive", PATIENCE);
    std::thread::sleep(Duration::from_secs(4)); // Several tries, that the log tells once.
    assert_eq!(daemon.timeline_dirs(), [] as [PathBuf; 0]);
    std::fs::rename(&away, &mount).expect("it is mounted");
    wait_archived(&daemon, &source);
    assert_eq!(daemon.log().matches("nothing is begun before").count(), 2, "once a start:\n{}", daemon.log());
    assert_eq!(names_of(&daemon.timeline_dirs()), timelines);
    assert_eq!(place.fetch().assert_is_of(&source), binary_logs(&source));
    place.assert_sound();
}

/// A store that takes connections and answers nothing holds up neither the end of binlogd nor an operator who goes on without it.
#[test]
fn a_store_that_hangs_can_be_done_without() {
    let source = Server::start("mysql-9.7", &MYSQL);
    make_account(&source);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)");
    let place = Place::s3();
    let mut daemon = place.start(&source, "");
    source.sql("INSERT INTO d.t (v) VALUES (1); FLUSH BINARY LOGS");
    wait_archived(&daemon, &source);
    lose(&mut daemon);
    place.store().pause().expect("it runs");

    daemon.restart(&[]);
    let asks = daemon.wait_until(|source| state(source) == "beginning from the archive", PATIENCE);
    assert!(asks["state_detail"].as_str().is_some_and(|detail| detail.contains(&place.url())), "{asks:#}");
    let begin = Instant::now();
    daemon.terminate();
    assert!(begin.elapsed() < END_MAX, "the end waited for the store: {:?}", begin.elapsed());

    daemon.restart(&[]);
    daemon.wait_until(|source| state(source) == "beginning from the archive", PATIENCE);
    assert_eq!(daemon.timeline_dirs(), [] as [PathBuf; 0]);
    daemon.write_config(&format!("{}archive = false\n", place.config(&source, "")));
    let begin = Instant::now();
    daemon.reload();
    daemon.wait_caught_up(&source);
    println!("received {:?} after the operator's word", begin.elapsed());
    assert_holds(&source, &daemon, &binary_logs(&source), AfterCrash::Identical);
}

/// This machine cannot read what it has written: that is said, and a key helps.
#[test]
fn an_encrypted_archive_needs_a_key_to_begin_from() {
    let source = Server::start("mysql-9.7", &MYSQL);
    make_account(&source);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)");
    let place = Place::folder().encrypted();
    let mut daemon = place.start(&source, "");
    source.sql("INSERT INTO d.t (v) VALUES (1); FLUSH BINARY LOGS; INSERT INTO d.t (v) VALUES (2)");
    wait_archived(&daemon, &source);
    let timelines = names_of(&daemon.timeline_dirs());
    lose(&mut daemon);

    daemon.restart(&[]);
    let stopped = daemon.wait_until(|source| state(source) == "stopped", PATIENCE);
    let reason = stopped["state_detail"].as_str().expect("words");
    for words in ["identity of [archive]", "binlogd fetch", "archive = false", "no private key was given"] {
        assert!(reason.contains(words), "{words}: {reason}");
    }
    assert_eq!(daemon.timeline_dirs(), [] as [PathBuf; 0]);
    daemon.terminate();

    // The doctor says all that before anything is started.
    let (is_well, said) = doctor(&daemon);
    assert!(is_well && said.contains("No identity is configured"), "{said}");
    assert!(said.contains("default: the archive has") && said.contains("in 2 files, up to "), "{said}");
    let with_key = |key: &Path| {
        let identity = format!("[archive]\nidentity = ['{}']\n", key.display());
        place.config(&source, "").replace("[archive]\n", &identity)
    };
    let other = Place::folder().encrypted();
    daemon.write_config(&with_key(other.identity()));
    let (is_well, said) = doctor(&daemon);
    assert!(
        !is_well && said.contains("cannot be read") && said.contains("add the private key to identity"),
        "{said}"
    );
    daemon.write_config(&format!("{}name = 'other'\n", place.config(&source, "")));
    let (is_well, said) = doctor(&daemon);
    assert!(is_well && said.contains("nothing of other; it has history of: default"), "{said}");

    daemon.write_config(&with_key(place.identity()));
    let (is_well, said) = doctor(&daemon);
    assert!(is_well && said.contains("the keys of identity open what was tried"), "{said}");
    daemon.restart(&[]);
    source.sql("INSERT INTO d.t (v) VALUES (3)");
    wait_archived(&daemon, &source);
    assert_eq!(names_of(&daemon.timeline_dirs()), timelines);
    assert_holds(&source, &daemon, &binary_logs(&source), AfterCrash::Identical);
    place.assert_sound();
    assert_eq!(place.fetch().assert_is_of(&source), binary_logs(&source));
}

/// Whether the doctor finds nothing wrong with the archive of a configuration, and what it says.
fn doctor(daemon: &Daemon) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    command.args(["doctor", "--archive", "--config"]).arg(daemon.config_path()).env("NO_COLOR", "1");
    let output = command.stdin(Stdio::null()).output().expect("it runs");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Over a failover: the older timeline is there as a folder, and everything in it stays in the archive.
fn goes_on_behind_a_failover(name: &str, options: &[&str]) {
    let old = Server::start(name, options);
    let new = Server::start(name, options);
    make_account(&old);
    ledger::create_table(&old);
    replicate(&new, &old);
    let place = Place::folder();
    let hosts = |config: String| {
        let [old, new] = [&old, &new].map(|server| format!("'127.0.0.1:{}'", server.port()));
        config.replace(&format!("[{old}]"), &format!("[{old}, {new}]"))
    };
    let mut daemon = Daemon::start_from(&hosts(place.config(&old, "")));
    old.sql("INSERT INTO ledger.bulk VALUES (1, 'old'); FLUSH BINARY LOGS; INSERT INTO ledger.bulk VALUES (2, 'old')");
    daemon.wait_caught_up(&old);
    wait_replicated(&new, &old);
    old.kill();
    promote(&new);
    let receives = |source: &Value| {
        state(source) == "receiving" && source["host"] == format!("127.0.0.1:{}", new.port())
    };
    daemon.wait_until(receives, PATIENCE);
    for number in 3..6 {
        new.sql(&format!("INSERT INTO ledger.bulk VALUES ({number}, 'new'); FLUSH BINARY LOGS"));
    }
    let before = wait_archived(&daemon, &new);
    let timelines = names_of(&daemon.timeline_dirs());
    assert_eq!(timelines.len(), 2, "{}", daemon.log());
    let descriptions = ["reason", "gtid_before", "source_lacks", "previous", "began_at"]
        .map(|key| described(&daemon.timeline_dir(), key));
    lose(&mut daemon);

    new.sql("INSERT INTO ledger.bulk VALUES (6, 'new'); FLUSH BINARY LOGS; INSERT INTO ledger.bulk VALUES (7, 'new')");
    daemon.restart(&[]);
    let after = wait_archived(&daemon, &new);
    assert_eq!(names_of(&daemon.timeline_dirs()), timelines, "{}", daemon.log());
    assert_eq!(
        copied_files(&daemon.timeline_dirs()[0]),
        [] as [String; 0],
        "the older one stays in the archive"
    );
    let again = ["reason", "gtid_before", "source_lacks", "previous", "began_at"]
        .map(|key| described(&daemon.timeline_dir(), key));
    assert_eq!(again, descriptions);
    for key in ["source_lacks", "missing"] {
        assert_eq!(after[key], before[key], "{after:#}");
    }
    let names = binary_logs(&new);
    let held = copied_files(&daemon.timeline_dir());
    assert!(names.len() > held.len() && names.ends_with(&held), "{held:?} of {names:?}");
    assert_holds(&new, &daemon, &held, AfterCrash::Identical);
    // A reader is shown what is here, and what the archive has behind it.
    let arguments = ["--batch", "--skip-column-names", "-e", "SHOW BINARY LOGS"];
    let output = client(&new, "MYSQL", serve_port(&daemon), &arguments);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let shown: Vec<&str> = shown.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(shown, names, "{}", String::from_utf8_lossy(&output.stderr));

    place.assert_sound();
    daemon.terminate();
    assert_no_damage(&daemon.data_dir());
    daemon.restart(&[]);
    wait_archived(&daemon, &new);
    assert_eq!(names_of(&daemon.timeline_dirs()), timelines, "{}", daemon.log());
}

#[test]
fn behind_a_failover_of_mysql_the_newest_timeline_goes_on() {
    goes_on_behind_a_failover("mysql-9.7", &[&MYSQL[..], &["--log-replica-updates=ON"]].concat());
}

#[test]
fn behind_a_failover_of_mariadb_the_newest_timeline_goes_on() {
    goes_on_behind_a_failover("mariadb-11.8", &["--log-slave-updates=ON"]);
}
