//! Drills: a good archive passes, nothing is left of one that is ended, and each of twelve faults is found and named.
//!
//! `BINLOGD_DRILL_ROUNDS` is the number of clean drills of each server (`make drills`: 50), and asks for the slow faults too.

use super::place::shop::{Shop, path, program};
use super::place::{PATIENCE, wait_archived};
use super::put_back::{Tree, put, tree};
use crate::common::faults::volume::{Kind, Volume};
use crate::common::wait_within;
use archive::chain::Chain;
use archive::chain::backup::BackupRecord;
use archive::chain::commit::Writer;
use archive::chain::history::ArchivedBackup;
use archive::plain_stream::PlainStream;
use archive::writer::stream::{commit, upload};
use archive::writer::upload::{Permits, Uploader};
use jiff::Timestamp;
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// What is in the second table; the first of them in the order of its index is the one that is hurt.
const NEEDLES: &str = "('needle-01'), ('needle-02'), ('needle-03'), ('needle-04')";

fn rounds() -> usize {
    let rounds = std::env::var("BINLOGD_DRILL_ROUNDS").ok();
    rounds.map_or(0, |text| text.parse().expect("BINLOGD_DRILL_ROUNDS is a number"))
}

/// An archive with two backups and a log behind each, of which nothing is written any more.
struct Scene {
    shop: Shop,
    programs: PathBuf,
    work: tempfile::TempDir,
    /// The archive as it is.
    good: Tree,
}

impl Scene {
    fn new(name: &str) -> Scene {
        let mut shop = Shop::new(name, "");
        shop.source.sql(&format!(
            "CREATE TABLE shop.items (id INT AUTO_INCREMENT PRIMARY KEY, k CHAR(9) CHARACTER SET ascii, n INT, KEY k (k)); \
             INSERT INTO shop.items (k) VALUES {NEEDLES}; CREATE VIEW shop.w AS SELECT v FROM shop.orders; \
             CREATE TRIGGER shop.t BEFORE INSERT ON shop.items FOR EACH ROW SET NEW.n = 1; \
             CREATE EVENT shop.e ON SCHEDULE EVERY 1 DAY DO DELETE FROM shop.items"
        ));
        shop.back_up(&[]);
        shop.source.sql(
            "INSERT INTO shop.orders (v) VALUES ('between'); CREATE USER ann@'%' IDENTIFIED BY 'y'; GRANT SELECT ON shop.* TO ann@'%'; \
             CREATE FUNCTION shop.f() RETURNS INT DETERMINISTIC RETURN 3; UPDATE shop.items SET n = 7; FLUSH BINARY LOGS; \
             ALTER TABLE shop.items ADD COLUMN g INT AS (n + 1), ADD KEY (g); DELETE FROM shop.orders WHERE id < 5; \
             CREATE EVENT shop.late ON SCHEDULE EVERY 1 DAY DO DELETE FROM shop.items; FLUSH BINARY LOGS"
        );
        shop.back_up(&[]);
        shop.source.sql("INSERT INTO shop.orders (v) VALUES ('behind it'); INSERT INTO shop.orders (v) VALUES ('behind that')");
        wait_archived(&shop.daemon, &shop.source);
        shop.daemon.terminate();
        let (programs, work) = (shop.programs(), tempfile::tempdir().unwrap());
        let good = tree(&shop.place.root());
        Scene { shop, programs, work, good }
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = self.shop.place.command("drill", &["--json"]);
        for (flag, name) in [("--server", "mysqld"), ("--client", "mysql")] {
            if !more.contains(&flag) {
                command.arg(flag).arg(self.programs.join(name));
            }
        }
        if !more.contains(&"--work") {
            command.args(["--work", path(self.work.path())]);
        }
        command.args(["--buffer-pool", "64MiB"]).args(more);
        command
    }

    /// What a drill says. Nothing stays of it.
    #[track_caller]
    fn drill(&self, more: &[&str]) -> Value {
        let output = self.command(more).output().expect("it runs");
        let answer: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let passed = answer["passed"] == true;
        assert_eq!(output.status.code(), Some(i32::from(!passed)), "{answer:#}");
        assert_eq!(answer["fault"] == "", passed, "{answer:#}");
        assert_eq!(answer["proof"] != "", passed, "{answer:#}");
        self.nothing_is_left();
        answer
    }

    #[track_caller]
    fn nothing_is_left(&self) {
        wait_within(PATIENCE, "nothing runs any more", || !super::backup::runs(path(self.work.path())));
        let left: Vec<_> = std::fs::read_dir(self.work.path()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }

    #[track_caller]
    fn passes(&self, proof: &str, more: &[&str]) -> Value {
        let answer = self.drill(more);
        assert!(answer["passed"] == true && answer["proof"] == proof, "{answer:#}");
        assert_eq!(answer["tables"], 2, "{answer:#}");
        assert!(answer["bytes"].as_u64() > Some(1 << 16) && answer["until"] != "", "{answer:#}");
        answer
    }

    /// The fault is named.
    #[track_caller]
    fn finds(&self, words: &[&str], more: &[&str]) -> Value {
        let answer = self.drill(more);
        assert_eq!(answer["passed"], false, "{words:?}: {answer:#}");
        let fault = answer["fault"].as_str().unwrap();
        eprintln!("found: {fault}");
        assert!(words.iter().all(|words| fault.contains(words)), "{words:?}: {fault}");
        answer
    }

    /// The same of an archive in which something is changed, that is put back behind.
    #[track_caller]
    fn planted(&self, change: impl FnOnce(&Path), words: &[&str]) -> Value {
        let root = self.shop.place.root();
        change(&root);
        let answer = self.finds(words, &[]);
        put(&root, &self.good);
        answer
    }

    /// The newest backup, and its bytes.
    fn newest(&self) -> (Arc<ArchivedBackup>, Vec<u8>) {
        let (reader, newest) = self.shop.reader();
        let mut bytes = Vec::new();
        PlainStream::open(&reader, &newest.file).unwrap().read_to_end(&mut bytes).unwrap();
        (newest, bytes)
    }

    /// Another backup in the archive, recorded as that one is, but for what is changed.
    fn forge(&self, change: impl FnOnce(&mut BackupRecord, &mut Vec<u8>)) {
        let (newest, mut bytes) = self.newest();
        let mut record = newest.record.clone();
        let at = record.finished + jiff::SignedDuration::from_secs(1);
        (record.started, record.finished) = (at, at);
        record.id = format!("{}-00000001", at.strftime("%Y%m%dT%H%M%SZ"));
        change(&mut record, &mut bytes);
        let store = self.shop.reader().0.store;
        let mut chain = Chain::open(&*store, "default").unwrap();
        let permits = Arc::new(Permits::new(2));
        let uploader = Uploader { store, permits, level: 3, recipients: None, stop: Arc::default() };
        let uploaded = upload(&uploader, "default", &record.id, &mut &bytes[..], &|_| (), &|_| ()).unwrap();
        let writer = Writer::of_this_run("forger".to_owned(), "0".to_owned());
        commit(&uploader, &mut chain, &writer, (record, &uploaded), Timestamp::now(), &|_| ()).unwrap();
    }

    /// A program in the place of a server's or a client's.
    fn program(&self, name: &str, shell: &str) -> PathBuf {
        let file = self.shop.dir.path().join(name);
        program(&file, &shell.replace("REAL", path(&self.programs)));
        file
    }
}

/// Objects whose names contain this, the first first.
fn objects(good: &Tree, part: &str) -> Vec<PathBuf> {
    good.keys().filter(|name| path(name).contains(part) && path(name).ends_with(".zst")).cloned().collect()
}

fn replaced(bytes: &mut Vec<u8>, from: &[u8], to: &[u8]) {
    let at = bytes.windows(from.len()).position(|window| window == from).expect("it is there");
    bytes.splice(at..at + from.len(), to.iter().copied());
}

/// Those that are found before a server is started.
fn quick_faults(scene: &Scene) {
    let good = &scene.good;
    let newest = scene.newest().0.record.clone();
    let of_backup = objects(good, &format!("/backups/{}/", newest.id)).remove(0);
    let cut = good[&of_backup][..100].to_vec();
    scene.planted(
        |root| std::fs::write(root.join(&of_backup), cut).unwrap(),
        &["the object has 100 bytes and was uploaded with"],
    );
    let mut flipped = good[&of_backup].clone();
    flipped[1000] ^= 4;
    scene.planted(
        |root| std::fs::write(root.join(&of_backup), flipped).unwrap(),
        &["SHA-256", "it was damaged or replaced in the store"],
    );
    let of_log = objects(good, "/mysql-bin.000002/").remove(0);
    scene.planted(
        |root| std::fs::remove_file(root.join(&of_log)).unwrap(),
        &["gap in the log", "mysql-bin.000002"],
    );
    let wrong = |record: &mut BackupRecord, _: &mut Vec<u8>| {
        let (_, last) = record.point.gtids.rsplit_once('-').unwrap();
        let last: u64 = last.parse().unwrap();
        record.point.gtids = format!("{}:{}", record.point.gtids, last + 2);
    };
    scene.planted(|_| scene.forge(wrong), &["wrong point", "the log has no such moment"]);
    let other = |record: &mut BackupRecord, _: &mut Vec<u8>| {
        record.point.gtids = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee:1-7".to_owned();
    };
    scene.planted(|_| scene.forge(other), &["is another source's"]);
    let server = scene.program("older", "echo \"mysqld  Ver 8.4.3 for Linux\"");
    scene.finds(&["wrong server version", "8.4.3"], &["--server", path(&server)]);
    if let Some(volume) = Volume::mount(Kind::Tmpfs, 64 << 20) {
        scene.finds(&["disk full"], &["--work", path(&volume.path())]);
    }
    let none = scene.finds(&["the archive has no backup nothing"], &["--backup", "nothing"]);
    assert_eq!(none["backup"], "", "{none:#}");
}

/// Those of programs.
fn faults_of_programs(scene: &Scene) {
    // Pages without a checksum, so that what is changed in one is not seen by that.
    let shell = "for word; do case $word in --datadir=*) file=${word#*=}/shop/items.ibd ;; esac; done\n\
                 if [ -e \"$file\" ]; then at=$(LC_ALL=C grep -abo needle-01 \"$file\" | tail -1); printf z | dd of=\"$file\" bs=1 \
                 seek=${at%%:*} conv=notrunc 2>/dev/null; fi\nexec REAL/mysqld \"$@\" --innodb-checksum-algorithm=none";
    let server = scene.program("hurts", shell);
    scene.finds(&["damaged: CHECK TABLE", "shop.items", "index k"], &["--server", path(&server)]);
    let client = scene.program("lies", "cat >/dev/null");
    scene.finds(&["the client ended well and did nothing"], &["--client", path(&client)]);
}

/// Those that two servers show. A clock that has jumped changes nothing of that.
fn faults_of_contents(scene: &Scene, is_long: bool) {
    let first = scene.shop.listed()[0]["finished"].as_str().unwrap().parse::<Timestamp>().unwrap();
    let early = first - jiff::SignedDuration::from_hours(1);
    let before_all = move |record: &mut BackupRecord| {
        (record.started, record.finished) = (early, early);
        record.id = format!("{}-00000001", early.strftime("%Y%m%dT%H%M%SZ"));
    };
    let other_rows = |record: &mut BackupRecord, bytes: &mut Vec<u8>| {
        before_all(record);
        replaced(bytes, b"'between'", b"'BETWEEN'");
    };
    let answer =
        scene.planted(|_| scene.forge(other_rows), &["table shop.orders differs", "checksum of its rows"]);
    assert!(answer["notes"].to_string().contains("clock jumped"), "{answer:#}");
    if !is_long {
        return;
    }
    scene.forge(|record, _| before_all(record));
    let answer = scene.passes("next-backup", &[]);
    assert!(answer["notes"].to_string().contains("clock jumped"), "{answer:#}");
    put(&scene.shop.place.root(), &scene.good);
    let half = |_: &mut BackupRecord, bytes: &mut Vec<u8>| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let lines = text.lines().filter(|line| !line.starts_with("INSERT INTO `items`"));
        *bytes = lines.map(|line| format!("{line}\n")).collect::<String>().into_bytes();
    };
    scene
        .planted(|_| scene.forge(half), &["table shop.items differs", "number of rows 4", "0 in the second"]);
    let earlier = |record: &mut BackupRecord, _: &mut Vec<u8>| {
        let (before, last) = record.point.gtids.rsplit_once('-').unwrap();
        record.point.gtids = format!("{before}-{}", last.parse::<u64>().unwrap() - 1);
    };
    scene.planted(|_| scene.forge(earlier), &["wrong point", "a server restored from it has"]);
}

/// However a drill is ended.
fn nothing_stays(scene: &Scene) {
    scene.finds(&["time limit: it took longer than 1 s"], &["--time-limit", "1s"]);
    let begun = |more: &[&str]| {
        let child =
            scene.command(more).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
        let data = scene.work.path().join("drill-default/server/data/ibdata1");
        wait_within(PATIENCE, "a server is there", || data.exists());
        child
    };
    let child = begun(&[]);
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM)
        .unwrap();
    let output = child.wait_with_output().expect("it ends");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(answer["fault"].as_str().unwrap().contains("ended by a signal"), "{answer:#}");
    scene.nothing_is_left();
    let mut child = begun(&[]);
    let busy = scene.command(&[]).output().expect("it runs");
    assert!(
        String::from_utf8_lossy(&busy.stdout).contains("another drill of default is under way"),
        "{busy:?}"
    );
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    wait_within(PATIENCE, "nothing runs any more", || !super::backup::runs(path(scene.work.path())));
    // What it has left goes with the next.
    assert!(scene.work.path().join("drill-default/UNFINISHED").exists());
}

#[test]
fn mysql_9_7_passes_and_twelve_faults_are_named() {
    let scene = Scene::new("mysql-9.7");
    let is_long = rounds() > 0;
    quick_faults(&scene);
    nothing_stays(&scene);
    let answer = scene.passes("next-backup", &[]);
    let words = answer["proof_in_words"].as_str().unwrap();
    assert!(
        words.contains("checksum of rows: 2;") && answer["steps"].as_array().unwrap().len() == 7,
        "{answer:#}"
    );
    let ids: Vec<Value> = scene.shop.listed().iter().map(|backup| backup["id"].clone()).collect();
    assert_eq!(answer["backup"], ids[0], "{answer:#}");
    let answer = scene.passes("gtids-and-check", &["--backup", ids[1].as_str().unwrap()]);
    assert!(answer["proof_in_words"].as_str().unwrap().contains("the GTIDs are exactly"), "{answer:#}");
    faults_of_programs(&scene);
    faults_of_contents(&scene, is_long);
    for round in 0..rounds() {
        let answer = scene.drill(&["--backup", ["newest", "random"][round % 2]]);
        assert_eq!(answer["passed"], true, "{answer:#}");
    }
    // A key of nobody here.
    scene.shop.back_up(&["--recipient", "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"]);
    scene.finds(&["key missing", "no private key was given"], &[]);
}

#[test]
fn mariadb_11_8_passes() {
    let scene = Scene::new("mariadb-11.8");
    scene.passes("next-backup", &[]);
    for round in 0..rounds() {
        let answer = scene.drill(&["--backup", ["random", "newest"][round % 2]]);
        assert_eq!(answer["passed"], true, "{answer:#}");
    }
}
