//! `binlogd config` and `binlogd import` as an operator sees them: exit codes, what is printed where.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Exit code, standard output, standard error.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_binlogd"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("BINLOGD_PASSWORD")
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().expect("an exit code"), text(output.stdout), text(output.stderr))
}

fn write(path: &Path, text: &str, mode: u32) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn the_example_passes_its_own_check() {
    let folder = tempfile::tempdir().unwrap();
    let (code, example, errors) = run(folder.path(), &["config", "example"]);
    assert_eq!((code, errors.as_str()), (0, ""));
    write(&folder.path().join("b.toml"), &example, 0o644);
    let result = run(folder.path(), &["config", "check", "b.toml"]);
    assert_eq!(result, (0, "b.toml: ok, 1 source (default), data in ./data\n".to_owned(), String::new()));
}

#[test]
fn a_wrong_file_is_a_configuration_error_with_every_problem() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[[source]]\nhosts = [\"db1\"]\nuser = \"repl\"\npassword = \"SECRET\"\nfsync_mode = 3\nheartbeat = \"1s\"\n";
    write(&folder.path().join("b.toml"), text, 0o644);
    let (code, out, errors) = run(folder.path(), &["config", "check", "b.toml"]);
    assert_eq!((code, out.as_str()), (2, ""));
    let lines: Vec<&str> = errors.lines().collect();
    assert_eq!(lines.len(), 2, "{errors}");
    assert!(lines[0].starts_with("error: b.toml:5:14: fsync_mode = 3: must be one of 0 ("), "{errors}");
    assert!(lines[1].starts_with(
        "error: b.toml:6:1: unknown key heartbeat in [[source]]: did you mean heartbeat_period? "
    ));
    assert!(!errors.contains("SECRET"));

    let (code, out, errors) = run(folder.path(), &["config", "check", "none.toml"]);
    let expected =
        "error: none.toml: the configuration file cannot be read: No such file or directory (os error 2)\n";
    assert_eq!((code, out.as_str(), errors.as_str()), (2, "", expected));
}

#[test]
fn warnings_do_not_fail_a_check() {
    let folder = tempfile::tempdir().unwrap();
    let text = "data_dir = \"/d\"\n[[source]]\nhosts = [\"db1\"]\nuser = \"repl\"\npassword = \"SECRET\"\n";
    write(&folder.path().join("b.toml"), text, 0o644);
    let (code, out, errors) = run(folder.path(), &["config", "check", "b.toml"]);
    assert_eq!((code, out.as_str()), (0, "b.toml: ok, 1 source (default), data in /d, 1 warning\n"));
    assert_eq!(
        errors,
        "warning: b.toml: this file holds a password and others than its owner can use it (mode 0644): chmod 600 b.toml\n"
    );
}

#[test]
fn wrong_usage_exits_with_2() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in
        [&[][..], &["config"], &["config", "check"], &["import"], &["bogus"], &["config", "example", "x"]]
    {
        let (code, out, errors) = run(folder.path(), arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(errors.contains("Usage:"), "{errors}");
    }
    assert_eq!(run(folder.path(), &["--version"]).0, 0);
    assert_eq!(run(folder.path(), &["config", "--help"]).0, 0);
}

#[test]
fn an_import_passes_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let cnf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/virtual_slave.cnf");
    let (code, toml, warnings) = run(folder.path(), &["import", cnf.to_str().unwrap()]);
    assert_eq!(code, 0);
    assert_eq!(warnings.lines().filter(|line| line.starts_with("warning: ")).count(), 3, "{warnings}");
    write(&folder.path().join("b.toml"), &toml, 0o600);
    let result = run(folder.path(), &["config", "check", "b.toml"]);
    let ok = "b.toml: ok, 1 source (default), data in /data/binlog_backup\n";
    assert_eq!(result, (0, ok.to_owned(), String::new()));
}

#[test]
fn an_import_that_cannot_work_prints_nothing() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("v.cnf"), "master_host = db1\n", 0o644);
    assert_eq!(
        run(folder.path(), &["import", "v.cnf"]),
        (
            2,
            String::new(),
            "error: v.cnf: master_user is missing: add the account that replicates\n".to_owned()
        )
    );
    assert_eq!(
        run(folder.path(), &["import", "none.cnf"]),
        (
            2,
            String::new(),
            "error: none.cnf: cannot be read: No such file or directory (os error 2)\n".to_owned()
        )
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_binlogd"))
        .args(["config", "example"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
}

/// The password of a URL leaves `/proc/PID/cmdline`, whatever the verb: here one that then waits, because its file is a
/// pipe that nobody has opened for writing yet.
#[test]
fn a_password_leaves_the_process_list() {
    let folder = tempfile::tempdir().unwrap();
    // The path of the pipe, relative to the folder, looks like a URL without a password once that is removed.
    let pipe = folder.path().join("mysql:/repl@db");
    std::fs::create_dir(folder.path().join("mysql:")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_binlogd"))
        .args(["import", "mysql://repl:SECRET@db"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();

    // Opening waits until the child, executed again, has opened its end.
    let mut writer = std::fs::File::options().write(true).open(&pipe).unwrap();
    let process = Path::new("/proc").join(child.id().to_string());
    let arguments = std::fs::read_to_string(process.join("cmdline")).unwrap();
    let arguments: Vec<&str> = arguments.split_terminator('\0').skip(1).collect();
    assert_eq!(arguments, ["import", "mysql://repl@db"]);
    assert_eq!(std::fs::read_to_string(process.join("comm")).unwrap(), "binlogd\n");
    let environment = std::fs::read(process.join("environ")).unwrap();
    assert!(environment.split(|byte| *byte == 0).any(|variable| variable == b"BINLOGD_URL_PASSWORD=SECRET"));

    writer.write_all(b"master_user = u\n").unwrap();
    drop(writer);
    assert!(child.wait_with_output().unwrap().status.success());
}
