//! Makes the copies that later versions must be able to open: `tests/data/copy-of-VERSION-KIND.tar.gz`. The tests that open
//! them are in `tests/scripted/golden.rs`. Each release that changes what stands on disk adds its own, and keeps the older ones:
//!
//! ```text
//! cargo test -p binlogd --test servers_durable golden::make -- --ignored
//! ```

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::compare::copied_files;
use crate::common::daemon::Daemon;
use crate::common::fork_scene::{PATIENCE, copy_folder};
use crate::common::readers::{client, client_command, make_account, serve_port};
use crate::common::semi_sync::SemiSync;
use crate::common::{Server, wait_within};

/// A slot, somebody who may purge, and a journal that alone holds what was acknowledged last.
fn config(server: &Server) -> String {
    let port = server.port();
    format!(
        "[[serve.user]]\nname = 'repl'\npassword = 'secret'\nslot = 'warehouse'\n\
         [[serve.user]]\nname = 'boss'\npassword = 'secret'\nprivileges = ['read', 'purge']\n\
         [retention]\nslot_margin = '0s'\n\
         [[source]]\nhosts = ['127.0.0.1:{port}']\nuser = 'repl'\npassword = 'secret'\nfsync_interval = '1m'\n\
         heartbeat_period = '1s'\nnet_read_timeout = '3s'\nbackoff_max = '1s'\n"
    )
}

fn binlogd(arguments: &[&str], data_dir: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    let output = command.args(arguments).arg(data_dir).output().expect("binlogd runs");
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// A history with a purge and a slot, a reset, a fork whose GTIDs were given twice and settled; at its end a power failure.
fn make(name: &str, kind: &str, options: &[&str], reset: &str) {
    let mut server = Server::start(name, options);
    make_account(&server);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(20))");
    let mut daemon = Daemon::start_from(&config(&server));
    for id in 0..4 {
        server.sql(&format!("INSERT INTO d.t VALUES ({id}, 'kept'); FLUSH BINARY LOGS"));
    }
    daemon.wait_caught_up(&server);
    let source_folder = daemon.timeline_dir().parent().unwrap().to_owned();

    // A reader leaves a slot behind.
    let files = copied_files(&daemon.timeline_dir());
    let identity =
        if kind == "mysql" { "--connection-server-id=77" } else { "--stop-never-slave-server-id=77" };
    let arguments = ["--read-from-remote-server", "--stop-never", identity, &files[2]];
    let mut reader = client_command(&server, "MYSQLBINLOG", serve_port(&daemon), &arguments);
    let mut reader = reader.stdout(Stdio::null()).spawn().expect("the client runs");
    wait_within(PATIENCE, "the slot is written", || source_folder.join("slots/warehouse.toml").exists());
    reader.kill().and_then(|()| reader.wait()).expect("a child of ours");
    let purge = format!("PURGE BINARY LOGS TO '{}'", files[1]);
    let purged = client(&server, "MYSQL", serve_port(&daemon), &["--user=boss", "-e", &purge]);
    assert!(purged.status.success(), "{}", String::from_utf8_lossy(&purged.stderr));
    assert_eq!(copied_files(&daemon.timeline_dir()).len(), files.len() - 1);

    // A reset.
    daemon.wait_caught_up(&server);
    server.sql(reset);
    server.sql("INSERT INTO d.t VALUES (30, 'after the reset'); FLUSH BINARY LOGS");
    daemon.wait_until(|_| daemon.timeline_dirs().len() == 2, PATIENCE);
    daemon.wait_caught_up(&server);

    // A fork, and the same GTIDs given to other transactions.
    let earlier = server.dir().join("earlier");
    server.stop();
    copy_folder(server.datadir(), &earlier);
    server.restart(options);
    daemon.wait_until(|source| source["state"] == "receiving", PATIENCE);
    for id in 10..12 {
        server.sql(&format!("INSERT INTO d.t VALUES ({id}, 'lost')"));
    }
    daemon.wait_caught_up(&server);
    server.kill();
    copy_folder(&earlier, server.datadir());
    server.restart(options);
    for id in 20..22 {
        server.sql(&format!("INSERT INTO d.t VALUES ({id}, 'in their place')"));
    }
    daemon.wait_until(|source| source["gtids_given_twice"] == 2, PATIENCE);
    let said = binlogd(&["forks", "--settle", "all", "--note", "as it should be"], &daemon.data_dir());
    assert!(source_folder.join("forks.toml").exists(), "{said}");

    // A power failure, after acknowledgements that the journal alone holds.
    assert_eq!(daemon.timeline_dirs().len(), 3);
    daemon.terminate();
    daemon.restart(&[]);
    let _semi_sync = SemiSync::enable(&server, PATIENCE);
    daemon.wait_until(|source| source["semi_sync"]["active"] == true, PATIENCE);
    server.sql("FLUSH BINARY LOGS");
    for id in 31..34 {
        server.sql(&format!("INSERT INTO d.t VALUES ({id}, 'in the journal')"));
    }
    daemon.wait_caught_up(&server);
    let live = daemon.timeline_dir().join(copied_files(&daemon.timeline_dir()).pop().unwrap());
    daemon.kill();
    let theirs = std::fs::read(server.datadir().join(live.file_name().unwrap())).unwrap();
    assert_eq!(std::fs::read(&live).unwrap()[23..], theirs[23..]);
    std::fs::File::options().write(true).open(&live).unwrap().set_len(4).unwrap();
    archive(&daemon, kind, &theirs, live.file_name().unwrap().to_str().unwrap());
}

/// The folder, without what is only for the time of a run, and the source's newest file to compare with.
fn archive(daemon: &Daemon, kind: &str, theirs: &[u8], live: &str) {
    let data_dir = daemon.data_dir();
    let folder = data_dir.parent().unwrap();
    std::fs::write(folder.join(format!("source-{live}")), theirs).unwrap();
    for name in
        ["data/admin.address", "data/default/purge.reserve", "data/default/lock", "data/default/purge.lock"]
    {
        let _ = std::fs::remove_file(folder.join(name));
    }
    let version = env!("CARGO_PKG_VERSION");
    let path: PathBuf =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/copy-of-{version}-{kind}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--owner=0", "--group=0", "--numeric-owner", "-I", "gzip -9", "-cf"])
        .arg(&path)
        .arg("-C")
        .arg(folder);
    assert!(tar.arg("data").arg(format!("source-{live}")).status().expect("tar runs").success());
}

#[test]
#[ignore = "makes the copy that later versions are tried on"]
fn make_mysql() {
    let options = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"];
    make("mysql-9.7", "mysql", &options, "RESET BINARY LOGS AND GTIDS");
}

#[test]
#[ignore = "makes the copy that later versions are tried on"]
fn make_mariadb() {
    make("mariadb-11.8", "mariadb", &[], "RESET MASTER");
}
