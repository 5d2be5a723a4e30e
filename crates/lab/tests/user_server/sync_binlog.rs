//! The study `sync-binlog` on a user's server.

use super::{User, assert_same, journals_in, written};
use binlogd_lab::results::run::Cell;
use std::process::{Command, Output};

/// A run of `sync-binlog` with TPC-C in seconds.
fn run_sync_binlog(user: &User, more: &[&str]) -> Output {
    let url = user.url();
    let mut arguments = vec!["--server", &url];
    for setting in ["warehouses=1", "threads=2", "seconds=3", "sync_binlog=0,1", "attached=1", "pools=70"] {
        arguments.extend(["--set", setting]);
    }
    arguments.extend(more);
    user.run_command_of("sync-binlog", &arguments).output().expect("the lab starts")
}

pub(crate) fn leaves_nothing(user: &User) {
    let before = user.snapshot();
    let output = run_sync_binlog(user, &[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("max_binlog_size other than now") && said.contains("set back"), "{said}");
    assert_same(&before, &user.snapshot());
    assert_eq!(journals_in(&user.journals()), 0);

    let run = user.newest("sync-binlog");
    assert_eq!(run.cells.len(), 3, "{:?}", run.skipped);
    for cell in &run.cells {
        assert_eq!(cell.measured.invalid, None, "{:?}", cell.key);
        let condition = cell.key.point.panel.condition;
        assert_eq!(condition.to_string(), "its own file system, buffer pool 70/90");
        let values = &cell.measured.values;
        assert!(values["tps"] > 0.0 && values["binlog_bytes"] > 0.0, "{values:?}");
        assert_eq!(values["rotations"], cell.measured.series["rotation_s"].len() as f64);
    }
    let rotated = |cell: &Cell| cell.measured.values.get("rotation_bytes").is_some_and(|bytes| *bytes > 0.0);
    assert!(run.cells.iter().any(rotated), "{:?}", run.cells);
    assert!(run.skipped.len() == 1, "{:?}", run.skipped);
    for what in ["no binary log", "restart", "ext4,xfs"] {
        assert!(run.skipped[0].to_string().contains(what), "{:?}", run.skipped);
    }
    user.wait_until_alone();

    // The report is sound, and says why there is no ratio to a server without a binary log.
    let id = run.id.to_string();
    as_lab(user, &["report", &id, "--out", "report"]);
    as_lab(user, &["check", &id]);
    let findings = written::compare(&run, &user.dir.path().join("report"));
    assert!(findings.problems.is_empty() && findings.numbers > run.cells.len(), "{findings:?}");
    assert!(findings.charts > 0 && findings.tables > 0, "{findings:?}");
    let report = std::fs::read_to_string(user.dir.path().join("report/report.md")).expect("the report");
    assert!(report.contains("ratio to sync_binlog 1") && report.contains("would have to be restarted"));
    let compared = as_lab(user, &["compare", &id, &id]);
    assert!(
        compared.contains("its own file system, buffer pool 70/90: ratio to sync_binlog 0"),
        "{compared}"
    );

    // A pool that the server cannot have is told before anything is measured, and its own is always possible.
    let refused = run_sync_binlog(user, &["--set", "pools=own,2"]);
    let complaint = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && user.newest("sync-binlog").cells.is_empty(), "{complaint}");
    for what in ["a buffer pool of 2/90 of the tables", "--set warehouses", "--set pools=own"] {
        assert!(complaint.contains(what), "{complaint}");
    }
    let own =
        ["--set", "pools=own,70", "--set", "attached=none", "--set", "sync_binlog=1", "--set", "seconds=1"];
    let output = run_sync_binlog(user, &own);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let cells = user.newest("sync-binlog").cells;
    assert!(
        cells[0].key.point.panel.condition.to_string().ends_with("its own buffer pool") && cells.len() == 2,
        "{cells:?}"
    );
    assert!(cells.iter().all(|cell| cell.measured.invalid.is_none()), "{cells:?}");
    assert_same(&before, &user.snapshot());

    // go-tpc speaks in clear. This session stays, others must be encrypted.
    let mut root = user.root();
    root.query("SET GLOBAL require_secure_transport = ON").expect("it is set");
    let refused = run_sync_binlog(user, &[]);
    root.query("SET GLOBAL require_secure_transport = OFF").expect("it is set");
    let complaint = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && complaint.contains("speaks in clear"), "{complaint}");
    assert_same(&before, &user.snapshot());
}

/// Another command of the lab's, which must work: what it prints.
fn as_lab(user: &User, arguments: &[&str]) -> String {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.current_dir(user.dir.path()).arg("as-lab").args(arguments);
    let output = command.output().expect("the lab starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
