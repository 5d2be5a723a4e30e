//! MariaDB 12.3 can keep its binary log in InnoDB. Such a server cannot be had here, so a scripted source says of itself what
//! MariaDB's documentation does: `@@binlog_storage_engine`, which is empty where the log is kept in files.

use crate::common::daemon::Daemon;
use crate::common::doctor::{doctor, line};
use crate::common::readers::serve_port;
use scripted_source::{LogOptions, Script, ScriptedSource, SourceLog};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

/// Longest wait for anything: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

const ENGINE: &str = "binlog_storage_engine";
const REFUSAL: &str = "in a storage engine (binlog_storage_engine = innodb)";

#[test]
fn is_refused_by_name_and_what_was_copied_before_is_served() {
    // Its GTIDs are of no interest here, and the events of MySQL would not be MariaDB's.
    let options =
        LogOptions { server_version: "12.3.1-MariaDB".to_owned(), gtids: false, ..LogOptions::default() };
    let mut log = SourceLog::new(options);
    log.group(2, 300);
    log.rotate();
    log.group(1, 3_000);
    let mut script = Script::new(log);
    script.variables.insert(ENGINE.to_owned(), String::new());
    let source = ScriptedSource::start(script).unwrap();
    let url = format!("mysql://any:secret@127.0.0.1:{}", source.port());
    let flags = ["--serve=127.0.0.1:0", "--serve-auto-generate-certs=false", "--backoff-min=10ms"];
    let daemon = Daemon::start_on(&url, &flags);
    let end = source.log(SourceLog::end);
    let is_whole = |status: &Value| {
        let durable = &status["positions"]["durable"];
        durable["file"] == *end.file && durable["position"] == end.position
    };
    daemon.wait_until(is_whole, PATIENCE);
    let timeline = daemon.timeline_dir();

    // With another log: the files of the one before are not looked at by such a server, and its new one is none.
    let (dumps, heard) = (source.dumps(), source.queries().len());
    source.restart_with(ENGINE, "innodb");
    let refused =
        |status: &Value| status["last_error"]["message"].as_str().is_some_and(|it| it.contains(REFUSAL));
    let status = daemon.wait_until(refused, PATIENCE);
    assert_eq!(status["positions"]["durable"]["position"], end.position, "{status:#}");
    let queries = source.queries().split_off(heard);
    assert!(queries.iter().any(|sql| sql.contains(ENGINE)), "{queries:?}");
    assert!(!queries.iter().any(|sql| sql.starts_with("SET ")), "nothing is negotiated: {queries:?}");
    assert_eq!((source.dumps(), daemon.timeline_dir()), (dumps, timeline.clone()), "nothing is asked for");

    let behind = Daemon::start_on(&format!("mysql://any:secret@127.0.0.1:{}", serve_port(&daemon)), &[]);
    behind.wait_until(is_whole, PATIENCE);
    for file in source.log(|log| log.files().to_vec()) {
        for copy in [&timeline, &behind.timeline_dir()] {
            assert!(std::fs::read(copy.join(&file.name)).unwrap() == file.bytes, "{} differs", file.name);
        }
    }

    let (code, said) = doctor(&url, &daemon.data_dir(), &[]);
    let error = line(&said, "error", "binlog_storage_engine: innodb");
    assert_eq!(code, 1, "{error}\n{said}");
    assert!(said.contains("take a backup after the restart") && !said.contains("rpl_semi_sync"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    let setup = Command::new(env!("CARGO_BIN_EXE_binlogd"))
        .args(["setup", &url, "--config"])
        .arg(folder.path().join("binlogd.toml"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&setup.stdout).into_owned() + &String::from_utf8_lossy(&setup.stderr);
    assert!(setup.status.code() != Some(0) && said.contains(REFUSAL), "{said}");
}
