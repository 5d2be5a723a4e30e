//! Backups beside the log: taken by the stock tools while the source is written to, and put back by the stock client. What comes back,
//! brought forward by the log from the point that the archive tells, is what the source has.

use super::place::shop::{Shop, path, program};
use super::place::{PATIENCE, Place, wait_archived};
use crate::common::metrics::metrics;
use crate::common::readers::checksums;
use crate::common::{Server, connect_options, script, wait_within};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use wire::{Connection, TlsMode};

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
    let mydumper = shop.command_by(&shop.tool, &["--tool", "mydumper"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&mydumper.stderr).into_owned();
    assert!(mydumper.status.code() == Some(2) && said.contains("SHOW MASTER STATUS"), "{said}");
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
    place.assert_sound();
    a_server_from_nothing(&shop);
}

/// Whoever has the archive and the server's programs has the server.
fn a_server_from_nothing(shop: &Shop) {
    let source = &shop.source;
    source.sql("INSERT INTO shop.orders (v) VALUES ('behind it'); CREATE USER ann@'%' IDENTIFIED BY 'y'; FLUSH PRIVILEGES");
    let had = checksums(source, "shop");
    source.sql("DROP TABLE shop.orders");
    wait_archived(&shop.daemon, source);
    let drop = "before DROP TABLE shop.orders";
    let said = shop.comes_from_nothing(drop, &had, &[]);
    assert!(said.contains("has executed exactly ") && said.contains("by mysqldump of MySQL 9.7"), "{said}");

    // What is refused, with nothing changed.
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("new");
    let refused = |until: &str, more: &[&str]| {
        let output = shop.new_server(&folder, until, more).output().expect("it runs");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let early = refused("before CREATE TABLE shop.orders", &[]);
    assert!(
        early.contains("no backup leads there") && early.contains("it is of later than the point"),
        "{early}"
    );
    let lies = dir.path().join("lies");
    program(&lies, "echo \"mysqld  Ver 9.6.0 for Linux\"");
    let other = refused(drop, &["--server", path(&lies)]);
    assert!(other.contains("wrong server version: the backup was made on MySQL 9.7"), "{other}");
    program(&lies, "echo \"mariadbd  Ver 11.8.1-MariaDB for Linux\"");
    let other = refused(drop, &["--server", path(&lies)]);
    assert!(other.contains("the backup needs a server of MySQL"), "{other}");
    assert!(!folder.exists());

    // Killed midway nothing runs on, and the folder says what it is.
    let slow = dir.path().join("slow");
    program(&slow, "cat >/dev/null; exec -a \"waits $1\" sleep 600");
    let mut child = shop
        .new_server(&folder, drop, &["--client", path(&slow)])
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    wait_within(PATIENCE, "the client waits", || runs("waits --defaults-file"));
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    wait_within(PATIENCE, "nothing runs any more", || !runs(path(&folder)));
    let unfinished = refused(drop, &[]);
    assert!(unfinished.contains("has a server that is not whole"), "{unfinished}");
}

/// Whether a program runs that has this in its arguments.
pub(super) fn runs(what: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).contains(what))
}

/// A fire, at some moment under load: the first screen has not promised less loss than there is, when the archive alone is left.
fn burns(shop: &mut Shop, round: u64) {
    let (source, daemon) = (&shop.source, &mut shop.daemon);
    let told = under_load(source, || {
        let is_under_way = |source: &Value| {
            let archive = &source["archive"];
            archive["commits"].as_u64() > Some(round) && archive["complete_position"].is_object()
        };
        daemon.wait_until(is_under_way, PATIENCE);
        let told = daemon.status();
        daemon.kill();
        told
    });
    let told: status::DaemonStatus = serde_json::from_value(told).unwrap();
    let said = status::view::if_this_site_burned(&told, jiff::Timestamp::now()).remove(0);
    let copy = &told.sources[0];
    let written = copy.positions.written.as_ref().unwrap();
    let complete = copy.archive.as_ref().unwrap().complete_position.as_ref().unwrap();
    let chain = shop.reader().0.chain("default").unwrap();
    let newest = chain.history().timelines.values().next_back().unwrap().files.last().unwrap().clone();
    assert_eq!((&*written.file, &*complete.file), (&*newest.name, &*newest.name), "{said}");
    let lost = written.offset.saturating_sub(newest.end());
    match said.contains("nothing acknowledged is lost") {
        true => assert_eq!(lost, 0, "{said}"),
        false => assert!(
            said.contains("in the last ") && written.offset - complete.offset >= lost,
            "{lost}: {said}"
        ),
    }
    assert!(
        said.contains("commits do not wait for this copy") && said.contains("nobody has tried"),
        "{said}"
    );
    println!("lost {lost} bytes: {said}");
    shop.daemon.restart(&[]);
    // What it says of itself.
    shop.daemon.wait_until(|source| source["archive"]["backups"]["reaches_end"] == true, PATIENCE);
    let overview = format!("http://{}/", shop.daemon.admin_address());
    let overview = ureq::get(overview).header("accept", "text/html").call().unwrap();
    let overview = overview.into_body().read_to_string().unwrap();
    assert!(overview.contains("<p>If this site burned now: "), "{overview}");
}

#[test]
fn mariadb_11_8_by_mariadb_dump_and_mariadb_backup() {
    let mut shop = Shop::new("mariadb-11.8", "[backup]\nkeep = '1y'\n");
    under_load(&shop.source, || shop.back_up(&[]));
    shop.source.sql("INSERT INTO shop.orders (v) VALUES ('behind it')");
    // The end of the log may be in the copy alone.
    shop.daemon.wait_caught_up(&shop.source);
    let (had, log) = (checksums(&shop.source, "shop"), shop.daemon.data_dir());
    let said = shop.comes_from_nothing("end", &had, &["--log", path(&log)]);
    assert!(said.contains("by mariadb-dump of MariaDB 11.8"), "{said}");

    // A copy of the data folder.
    let tool = script().args(["mariadb-backup", "mariadb-11.8"]).output().expect("scripts/servers runs");
    let tool = PathBuf::from(String::from_utf8(tool.stdout).unwrap().trim());
    let output = under_load(&shop.source, || {
        shop.command_by(&tool, &["--tool", "mariadb-backup"]).output().expect("it runs")
    });
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && said.contains("its log is whole"), "{said}");
    // The rule of the daemon lets the other one of this year go; what is left is what all surfaces tell.
    // The daemon says that it has pruned a moment after it has.
    let is_kept = |source: &Value| {
        let list = &source["archive"]["backups"]["list"];
        let is_told = source["archive"]["prune"]["at"].is_string();
        is_told && list.as_array().is_some_and(|list| list.len() == 1) && list[0]["tool"] == "mariadb-backup"
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
    (1..=3).for_each(|round| burns(&mut shop, round));
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
    shop.source.sql("INSERT INTO shop.orders (v) VALUES ('behind it')");
    let had = checksums(&shop.source, "shop");
    shop.source.sql("DROP TABLE shop.orders");
    wait_archived(&shop.daemon, &shop.source);
    let drop = "before DROP TABLE shop.orders";
    let said = shop.comes_from_nothing(drop, &had, &["--mariadb-backup", path(&tool)]);
    assert!(said.contains("by mariadb-backup of MariaDB 11.8"), "{said}");
}

#[test]
fn mysql_9_7_by_clone() {
    let shop = Shop::new("mysql-9.7", "");
    let source = &shop.source;
    let dir = shop.dir.path().join("clones");
    // What a run left that was killed.
    std::fs::create_dir_all(dir.join("binlogd-clone-old/shop")).unwrap();
    std::fs::write(dir.join("notes"), "not ours").unwrap();
    let clone = ["--tool", "clone", "--clone-dir", path(&dir)];
    let said = shop.fails("exit 0", &clone);
    assert!(said.contains("INSTALL PLUGIN clone"), "{said}");
    source.sql("INSTALL PLUGIN clone SONAME 'mysql_clone.so'");
    let server = shop.programs().join("mysqld");
    let output = under_load(source, || shop.command_by(&server, &clone).output().expect("it runs"));
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && said.contains("its log is whole until "), "{said}");
    let left =
        || std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    assert_eq!(left(), ["notes"]);

    // Killed while its clone is there; the next run removes it.
    let other = shop.dir.path().join("slow");
    program(&other, "[ \"$1\" = --version ] || exec sleep 600");
    let mut child = shop.command_by(&other, &clone).stderr(Stdio::null()).spawn().expect("it runs");
    wait_within(PATIENCE, "a clone is there", || left().len() == 2);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert_eq!(left().len(), 2);
    // A clone goes on at the server when nobody waits for it.
    let clones = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'CLONE%'";
    wait_within(PATIENCE, "no clone is made", || source.sql(clones).trim() == "0");

    // Servers that lie: one that tells nothing, and one that tells what its clone cannot have.
    assert!(shop.fails("exit 0", &clone).contains("did not tell gtid_executed"));
    let uuid = source.sql("SELECT @@server_uuid");
    let lie = format!(
        "for a; do [[ $a != --datadir=* ]] || echo '{}:1' > \"${{a#*=}}/binlogd.point\"; done",
        uuid.trim()
    );
    let said = shop.fails(&lie, &clone);
    assert!(said.contains("does not lie between"), "{said}");
    assert_eq!(left(), ["notes"]);

    source.sql("INSERT INTO shop.orders (v) VALUES ('behind it')");
    wait_archived(&shop.daemon, source);
    shop.place.assert_sound();
    let said = shop.comes_from_nothing("end", &checksums(source, "shop"), &[]);
    assert!(said.contains("by clone of MySQL 9.7"), "{said}");
}

/// A mysqldump knows one of two words for the point.
#[test]
fn mysql_8_0_31_is_dumped_by_none_of_9_7() {
    let shop = Shop::new("mysql-8.0.31", "");
    let said = shop.fails(&format!("exec {} \"$@\"", path(&shop.tool)), &[]);
    assert!(said.contains("another version than the server") && said.contains("--program"), "{said}");
}
