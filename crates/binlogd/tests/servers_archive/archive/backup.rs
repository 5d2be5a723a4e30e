//! Backups beside the log: taken by the stock tools while the source is written to, and put back by the stock client. What comes back,
//! brought forward by the log from the point that the archive tells, is what the source has.

use super::place::{PATIENCE, Place, wait_archived};
use crate::common::daemon::Daemon;
use crate::common::metrics::metrics;
use crate::common::readers::{checksums, make_account};
use crate::common::{Server, connect_options, script, wait_within};
use archive::chain::Chain;
use archive::chain::history::ArchivedBackup;
use archive::keys::Identities;
use archive::plain_stream::PlainStream;
use archive::reader::Reader;
use archive::segment::Opener;
use archive::store::remote::Folder;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wire::{Connection, TlsMode};

/// Quotes, and what a shell and an option file would take for something else.
const PASSWORD: &str = "p\"a'ss # \\ word";

fn options(name: &str) -> &'static [&'static str] {
    match name.starts_with("mysql") {
        true => &["--server-id=1", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
        false => &["--server-id=1"],
    }
}

/// A source that is archived, and the tool that backs it up.
struct Shop {
    source: Server,
    daemon: Daemon,
    place: Place,
    dir: tempfile::TempDir,
    tool: PathBuf,
}

impl Shop {
    fn new(name: &str, config: &str) -> Shop {
        let source = Server::start(name, options(name));
        make_account(&source);
        source.sql(
            "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT); CREATE PROCEDURE shop.early() SELECT 1",
        );
        source.sql(&"INSERT INTO shop.orders (v) VALUES ('early'); ".repeat(50));
        let secret = PASSWORD.replace('\\', "\\\\").replace('\'', "\\'");
        source
            .sql(&format!("CREATE USER keeper@'%' IDENTIFIED BY '{secret}'; GRANT ALL ON *.* TO keeper@'%'"));
        let place = Place::folder();
        let daemon = place.start(&source, config);
        wait_archived(&daemon, &source);
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("password"), PASSWORD).unwrap();
        let tool = dir.path().join("dump");
        // The wrapper of scripts/servers, without its own account and options.
        let wrapper = std::fs::read_to_string(source.env("MYSQLDUMP")).unwrap();
        let exec =
            wrapper.lines().find_map(|line| line.split_once(" --no-defaults")).expect("a call").0.to_owned();
        program(&tool, &format!("{exec} \"$@\""));
        Shop { source, daemon, place, dir, tool }
    }

    /// A backup by another program than the tool.
    fn command_by(&self, tool: &Path, more: &[&str]) -> Command {
        let from = format!("mysql://keeper@127.0.0.1:{}", self.source.port());
        let password = self.dir.path().join("password");
        let arguments = ["--from", &from, "--password-file", path(&password), "--program", path(tool)];
        self.place.command("backup", &[&arguments[..], more].concat())
    }

    #[track_caller]
    fn back_up(&self, more: &[&str]) -> String {
        let output = self.command_by(&self.tool, more).output().expect("it runs");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.contains("its log is whole until "), "{said}");
        said
    }

    /// Nothing is recorded by it, and it says why.
    #[track_caller]
    fn fails(&self, shell: &str, more: &[&str]) -> String {
        let tool = self.dir.path().join("other");
        program(&tool, shell);
        let before = self.listed();
        let output = self.command_by(&tool, more).output().expect("it runs");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert_eq!(self.listed(), before);
        said
    }

    /// What `binlogd backups` says.
    fn listed(&self) -> Vec<Value> {
        let output = self.place.command("backups", &["--json"]).output().expect("it runs");
        let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        answer["sources"][0]["backups"].as_array().expect("a list").clone()
    }

    fn reader(&self) -> (Reader, Arc<ArchivedBackup>) {
        let store = Arc::new(Folder::open(&self.place.root()).unwrap());
        let chain = Chain::open(&*store, "default").unwrap();
        let newest = chain.history().backups.values().next_back().expect("a backup").clone();
        (Reader { store, opener: Arc::new(Opener::new(Identities::new())) }, newest)
    }

    /// The newest backup as a file.
    fn stream(&self) -> (PathBuf, Arc<ArchivedBackup>) {
        let (reader, newest) = self.reader();
        let path = self.dir.path().join("stream");
        let mut file = std::fs::File::create(&path).unwrap();
        std::io::copy(&mut PlainStream::open(&reader, &newest.file).unwrap(), &mut file).unwrap();
        (path, newest)
    }

    /// The newest backup in an empty server, which the log then brings to where the source is.
    #[track_caller]
    fn comes_back(&self) {
        let (stream, backup) = self.stream();
        let target = Server::start(self.source.name(), options(self.source.name()));
        target.sql_file(&stream, &[]);
        let point = &backup.record.point;
        self.daemon.wait_caught_up(&self.source);
        let mut restore = Command::new(env!("CARGO_BIN_EXE_binlogd"));
        restore.args(["restore", "--into", &format!("mysql://root@127.0.0.1:{}", target.port())]);
        restore
            .arg("--from")
            .arg(self.daemon.data_dir())
            .args(["--until", "end", "--yes"])
            .stdin(Stdio::null());
        if self.source.name().starts_with("mariadb") {
            target.sql("RESET MASTER");
            restore.args(["--backup-at", &point.gtids]);
        } else {
            assert_eq!(
                target.sql("SELECT @@global.gtid_executed").split_whitespace().collect::<String>(),
                point.gtids
            );
        }
        let output = restore.output().expect("it runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat())
        );
        assert_eq!(checksums(&target, "shop"), checksums(&self.source, "shop"));
    }
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

fn program(path: &Path, shell: &str) {
    std::fs::write(path, format!("#!/bin/bash\n{shell}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Does something while a session inserts and deletes rows.
fn under_load<T>(source: &Server, work: impl FnOnce() -> T) -> T {
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_over = AtomicBool::new(false);
    let options = connect_options(source, "root", "", TlsMode::Disabled);
    let mut client = Connection::connect(&options).expect("a session");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for sql in [
                    "INSERT INTO shop.orders (v) VALUES ('between')",
                    "DELETE FROM shop.orders ORDER BY id LIMIT 1",
                ] {
                    client.query(sql).expect("the load goes on");
                }
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        });
        let _over = Over(&is_over);
        work()
    })
}

/// Objects of backups in the store, of those that are listed and of others. A kill leaves hidden files in a folder, which are none.
fn pieces(place: &Place) -> usize {
    let folders = std::fs::read_dir(place.root().join("default/backups")).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten().flatten());
    files.filter(|file| !file.file_name().to_string_lossy().starts_with('.')).count()
}

#[test]
fn mysql_9_7_by_mysqldump() {
    let shop = Shop::new("mysql-9.7", "");
    let (source, place) = (&shop.source, &shop.place);
    let none = place.run_failing("backups", &[]);
    assert!(none.contains("nothing is recoverable"), "{none}");
    let said = under_load(source, || shop.back_up(&[]));
    source.sql("INSERT INTO shop.orders (v) VALUES ('late')");
    assert!(!said.contains("ss # "), "{said}");
    let listed = place.run("backups", &[]);
    assert!(listed.contains("mysqldump of MySQL 9.7") && listed.contains("recoverable from "), "{listed}");
    shop.comes_back();
    place.assert_sound();

    // Tools that lie, fail, or are overtaken by others.
    let dump = path(&shop.tool);
    let said = shop.fails(&format!("\"{dump}\" \"$@\" | head -c 20000; exit 0"), &[]);
    assert!(said.contains("did not write its end mark"), "{said}");
    let said = shop.fails("echo it broke >&2; echo half; exit 3", &[]);
    assert!(said.contains("failed") && said.contains("it broke"), "{said}");
    let said = shop.fails(&format!("\"{dump}\" \"$@\"; kill -9 $$"), &[]);
    assert!(said.contains("signal: 9"), "{said}");
    let mysql = source.env("MYSQL");
    let said = shop.fails(
        &format!("\"{dump}\" \"$@\" && \"{mysql}\" -e 'CREATE PROCEDURE IF NOT EXISTS shop.late() SELECT 1'"),
        &[],
    );
    assert!(said.contains("shop.late"), "{said}");
    let said = shop.fails("exit 0", &["--", "--databases", "shop"]);
    assert!(said.contains("--databases leaves out"), "{said}");
    source.sql("CREATE TABLE shop.old (id INT) ENGINE = MyISAM");
    let said = shop.fails("exit 0", &[]);
    assert!(said.contains("shop.old (MyISAM)"), "{said}");
    source.sql("DROP TABLE shop.old");

    // Another server's data do not get into this archive.
    let stranger =
        Server::start("mysql-9.7", &["--server-id=9", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"]);
    let from = format!("mysql://root@127.0.0.1:{}", stranger.port());
    let said = place.run_failing("backup", &["--from", &from, "--program", dump]);
    assert!(said.contains("nothing to do with the source"), "{said}");

    // Killed midway: nothing is listed, and prune takes what is left.
    let before = pieces(place);
    let tool = shop.dir.path().join("endless");
    program(&tool, "[ \"$1\" = --version ] || { head -c 40000000 /dev/urandom; exec sleep 20; }");
    let mut child =
        shop.command_by(&tool, &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    wait_within(PATIENCE, "pieces are uploaded", || pieces(place) >= before + 4);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert_eq!(shop.listed().len(), 1);
    place.run("prune", &["--grace", "0s", "--yes"]);
    assert_eq!(pieces(place), 3, "its only piece, its list and its index");
    // A second one in the place of the first.
    shop.back_up(&[]);
    let gone = place.run("prune", &["--keep-backups", "1d", "--grace", "0s", "--yes"]);
    assert!(gone.contains(": backup ") && gone.contains(" gone"), "{gone}");
    assert_eq!((shop.listed().len(), pieces(place)), (1, 3));
    shop.comes_back();
    place.assert_sound();
    shop.daemon.wait_caught_up(source);
}

#[test]
fn mariadb_11_8_by_mariadb_dump_and_mariadb_backup() {
    let shop = Shop::new("mariadb-11.8", "[backup]\nkeep = '1y'\n");
    under_load(&shop.source, || shop.back_up(&[]));
    shop.comes_back();

    // A copy of the data folder.
    let tool = script().args(["mariadb-backup", "mariadb-11.8"]).output().expect("scripts/servers runs");
    let tool = PathBuf::from(String::from_utf8(tool.stdout).unwrap().trim());
    let output = under_load(&shop.source, || {
        shop.command_by(&tool, &["--tool", "mariadb-backup"]).output().expect("it runs")
    });
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && said.contains("its log is whole"), "{said}");
    // The rule of the daemon lets the other one of this year go; what is left is what all surfaces tell.
    let is_kept = |source: &Value| {
        let list = &source["archive"]["backups"]["list"];
        list.as_array().is_some_and(|list| list.len() == 1) && list[0]["tool"] == "mariadb-backup"
    };
    let archive = shop.daemon.wait_until(is_kept, PATIENCE)["archive"].clone();
    let backups = &archive["backups"];
    assert_eq!((&backups["count"], &backups["with_log"]), (&1.into(), &1.into()), "{archive:#}");
    assert_eq!(backups["recoverable_from"], backups["list"][0]["finished"], "{archive:#}");
    let time =
        |value: &Value| value.as_str().and_then(|at| at.parse::<jiff::Timestamp>().ok()).expect("a time");
    assert!(time(&backups["recoverable_to"]) >= time(&backups["newest"]), "{archive:#}");
    assert!(archive["prune"]["at"].is_string() && archive["prune"]["error"].is_null(), "{archive:#}");
    let metrics = metrics(&shop.daemon, "text/plain").1;
    let from = time(&backups["recoverable_from"]).as_second();
    let series = format!("binlogd_recoverable_from_timestamp_seconds{{source=\"default\"}} {from}");
    assert!(metrics.contains(&series), "{series}:\n{metrics}");
    let page = format!("http://{}/source/default", shop.daemon.admin_address());
    let page = ureq::get(page).call().unwrap().body_mut().read_to_string().unwrap();
    assert!(page.contains("<td>mariadb-backup</td>") && !page.contains("<td>mariadb-dump</td>"), "{page}");
    let (stream, backup) = shop.stream();
    // The tool's own note is in the stream, as text.
    let bytes = std::fs::read(stream).unwrap();
    let point = &backup.record.point;
    let note = format!("{}\t{}\t{}", point.file, point.position, point.gtids);
    assert!(bytes.windows(note.len()).any(|window| window == note.as_bytes()), "{note:?}");
    let cut = shop.fails(
        &format!("\"{}\" \"$@\" 2>&1 >/dev/null | grep -v completed >&2; echo x; exit 0", path(&tool)),
        &["--tool", "mariadb-backup"],
    );
    assert!(cut.contains("completed OK!"), "{cut}");
    assert_eq!(shop.listed().len(), 1);
    shop.place.assert_sound();
}
