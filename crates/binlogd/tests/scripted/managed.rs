//! Servers that a provider runs. None can be had here, so a scripted source says of itself what theirs print, and refuses what they
//! refuse: no SUPER, no SET GLOBAL, no SET PERSIST, no plugin.

use crate::common::daemon::Daemon;
use crate::common::doctor::{doctor, line};
use scripted_source::{Answer, LogOptions, Script, ScriptedSource, SemiSync, SourceLog};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Longest wait for anything: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Each is refused with ER_SPECIFIC_ACCESS_DENIED_ERROR.
const REFUSED: [&str; 4] = ["SET GLOBAL", "SET PERSIST", "INSTALL PLUGIN", "SET SESSION sql_log_bin"];
const RETENTION: &str = "CALL mysql.rds_set_configuration('binlog retention hours', 168);";

fn start(version: &str, variables: &[(&str, &str)]) -> ScriptedSource {
    let mut log = SourceLog::new(LogOptions { server_version: version.to_owned(), ..LogOptions::default() });
    log.group(3, 300);
    let mut script = Script { semi_sync: SemiSync::Absent, ..Script::new(log) };
    // It is not as it should be, so that something is to be set.
    let variables = variables.iter().chain(&[("binlog_row_image", "MINIMAL")]);
    script.variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let denied = "Access denied; you need (at least one of) the SUPER or SYSTEM_VARIABLES_ADMIN privilege(s) for this operation";
    script.answers =
        REFUSED.map(|begin| (begin.to_owned(), Answer::Refused(1227, denied.to_owned()))).to_vec();
    let grant = "GRANT SELECT, CREATE USER, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `any`@`%` WITH GRANT OPTION";
    script.answers.push(("SHOW GRANTS".to_owned(), Answer::Lines(vec![grant.to_owned()])));
    ScriptedSource::start(script).unwrap()
}

/// Whether it went well, and what was said, in words with one blank between them.
fn setup(url: &str, folder: &Path, flags: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_binlogd"))
        .args(["setup", url, "--config"])
        .arg(folder.join("binlogd.toml"))
        .arg("--data-dir")
        .arg(folder.join("data"))
        .args(flags)
        .env_remove("BINLOGD_PASSWORD")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.success(), said.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn are_told_by_name_and_copied_without_what_they_refuse() {
    let rds = ("basedir", "/rdsdbbin/mysql-8.0.36.R2/");
    for (name, place, version, variables) in [
        ("Amazon RDS", "the DB parameter group", "8.0.36", &[rds][..]),
        (
            "Amazon Aurora MySQL",
            "the DB cluster parameter group",
            "8.0.32",
            &[("aurora_version", "3.05.2"), rds],
        ),
        (
            "Google Cloud SQL",
            "the flags of the instance",
            "8.0.31-google",
            &[("version_comment", "(Google)")],
        ),
        ("Azure Database for MySQL", "the server parameters", "8.0.40-azure", &[("aad_auth_only", "OFF")]),
    ] {
        let source = start(version, variables);
        let url = format!("mysql://any:secret@127.0.0.1:{}", source.port());
        let is_amazons = name.starts_with("Amazon");
        let folder = tempfile::tempdir().unwrap();

        let (is_done, said) = setup(&url, folder.path(), &["--apply", "--yes"]);
        let refusal = format!("error: this is {name}: nobody has SUPER there");
        assert!(!is_done && said.contains(&refusal) && said.contains("--semi-sync=false"), "{said}");
        let asks = |sql: &String| sql.starts_with("SELECT") || sql.starts_with("SHOW");
        assert!(source.queries().iter().all(asks), "something was changed: {:?}", source.queries());

        let (is_done, said) = setup(&url, folder.path(), &["--apply", "--yes", "--semi-sync=false"]);
        let untried = format!("{name}, with which binlogd was never tried");
        let setting = format!("-- in {place}: binlog_row_image = FULL");
        assert!(is_done && said.contains(&untried) && said.contains(&setting), "{said}");
        assert_eq!(said.contains(RETENTION), is_amazons, "{said}");
        let grants = |sql: &String| sql.starts_with("GRANT REPLICATION SLAVE ON *.* TO 'binlogd'");
        assert!(source.queries().iter().any(grants), "{:?}", source.queries());

        let daemon = Daemon::start_on(&url, &["--backoff-min=10ms"]);
        let end = source.log(SourceLog::end);
        let status =
            daemon.wait_until(|status| status["positions"]["durable"]["position"] == end.position, PATIENCE);
        assert_eq!(status["semi_sync"]["active"], false, "{status:#}");
        assert_eq!(status["semi_sync"]["reason"], "the source has no semi-sync plugin", "{status:#}");
        let file = source.log(|log| log.files()[0].clone());
        assert!(std::fs::read(daemon.timeline_dir().join(&file.name)).unwrap() == file.bytes, "{name}");
        assert!(source.acknowledgements().is_empty(), "{name}");

        let (code, said) = doctor(&url, &daemon.data_dir(), &[]);
        assert_eq!(code, 0, "{said}");
        line(&said, "warning", &format!("server: {untried}"));
        line(&said, "warning", &format!("semi-sync: not to be had on {name}"));
        assert_eq!((said.contains(&setting), said.contains(RETENTION)), (true, is_amazons), "{said}");
        let printed = ["SET GLOBAL binlog", "SET PERSIST binlog", "INSTALL PLUGIN"];
        assert!(!printed.iter().any(|statement| said.contains(statement)), "{said}");
        let queries = source.queries();
        let refused = queries.iter().find(|sql| REFUSED.iter().any(|begin| sql.starts_with(begin)));
        assert_eq!(refused, None, "{name}");
    }
}
