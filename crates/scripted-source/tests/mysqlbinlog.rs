//! MySQL's own mysqlbinlog reads the scripted source's files, and copies them from it.

use scripted_source::{LogOptions, Script, ScriptedSource, SourceLog};
use std::path::Path;
use std::process::{Command, Output};

fn servers() -> Command {
    Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/servers"))
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {stderr}");
    output
}

#[test]
fn mysqlbinlog_reads_and_copies_the_files() {
    let mut log = SourceLog::new(LogOptions { rotate_after: 100_000, ..LogOptions::default() });
    for size in [0, 1, 100, 300, 70_000, 10] {
        log.group(2, size);
    }
    log.ddl("CREATE TABLE x (a INT)");
    let dir = tempfile::tempdir().unwrap();
    // mysqlbinlog comes with a server, which is not needed any more once it has been unpacked.
    succeed(servers().args(["start", "mysql-9.7", "--dir"]).arg(dir.path().join("server")));
    succeed(servers().arg("stop").arg(dir.path().join("server")));
    let mysqlbinlog = dir.path().join("server/mysqlbinlog");

    for file in log.files() {
        let path = dir.path().join(&file.name);
        std::fs::write(&path, &file.bytes).unwrap();
        let read = succeed(Command::new(&mysqlbinlog).args(["--verify-binlog-checksum", "-v"]).arg(&path));
        let text = String::from_utf8_lossy(&read.stdout).into_owned();
        assert_eq!(text.matches("### INSERT INTO `bench`.`t`").count(), text.matches("Xid = ").count());
    }

    let source = ScriptedSource::start(Script::new(log.clone())).unwrap();
    let copies = format!("{}/copy-", dir.path().display());
    succeed(
        Command::new(&mysqlbinlog)
            .args(["--read-from-remote-server", "--raw", "--host=127.0.0.1", "--user=any", "--to-last-log"])
            .args([format!("--port={}", source.port()), format!("--result-file={copies}")])
            .arg("mysql-bin.000001"),
    );
    for file in log.files() {
        let copy = std::fs::read(format!("{copies}{}", file.name)).unwrap();
        assert!(copy == file.bytes, "the copy of {} differs", file.name);
    }
}
