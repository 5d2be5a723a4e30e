//! `find`, `stats` and `cat` of an archive, beside the same of the copy that was archived: one history, told twice.

use super::MYSQL;
use super::place::{PATIENCE, Place, wait_archived};
use crate::common::Server;
use crate::common::daemon::Daemon;
use crate::common::readers::make_account;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The answer of a verb for the copy, without the folder that is named in it.
fn of_copy(daemon: &Daemon, verb: &str, arguments: &[&str]) -> Vec<u8> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    command.args([verb.as_ref(), daemon.data_dir().as_os_str()]).args(arguments).stdin(Stdio::null());
    ended_well(&mut command)
}

#[track_caller]
fn ended_well(command: &mut Command) -> Vec<u8> {
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn sources(answer: &[u8]) -> Value {
    let mut answer: Value = serde_json::from_slice(answer).expect("JSON");
    answer["sources"].take()
}

#[test]
fn an_archive_is_searched_and_cut_as_its_copy() {
    let source = Server::start("mysql-9.7", &MYSQL);
    make_account(&source);
    let place = Place::s3().encrypted();
    let daemon = place.start(&source, "");
    source.sql("CREATE DATABASE shop; CREATE TABLE shop.orders (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT)");
    for _ in 0..3 {
        source.sql("INSERT INTO shop.orders (v) VALUES ('a'), ('b'); FLUSH BINARY LOGS");
    }
    source.sql("SET SESSION binlog_transaction_compression = ON; DELETE FROM shop.orders WHERE v = 'a'");
    source.sql("DROP TABLE shop.orders");
    wait_archived(&daemon, &source);

    let asked: [&[&str]; 4] = [
        &["--table", "shop.orders", "--kind", "delete"],
        &["--kind", "drop"],
        &["--min-rows", "2", "--limit", "0"],
        &["--text", "create table"],
    ];
    for options in asked {
        let options = [options, &["--json"]].concat();
        let here = sources(&of_copy(&daemon, "find", &options));
        let there = sources(&ended_well(&mut place.command("find", &options)));
        assert_eq!(here[0]["transactions"], there[0]["transactions"], "{options:?}");
        assert!(!here[0]["transactions"].as_array().expect("a list").is_empty(), "{options:?}: {here:#}");
    }
    let here = sources(&of_copy(&daemon, "stats", &["--json"]));
    assert_eq!(here, sources(&ended_well(&mut place.command("stats", &["--json"]))));

    let dropped = ["--until", "before DROP TABLE shop.orders"];
    let here = of_copy(&daemon, "cat", &dropped);
    let work = super::place::folder();
    let work = ["--work", work.path().to_str().expect("a plain path")];
    let there = ended_well(&mut place.command("cat", &[dropped, work].concat()));
    assert!(here == there, "{} and {} bytes", here.len(), there.len());
}

/// The transactions that are found in the archive, how many files were passed over by their indexes, and how many bytes were walked.
#[track_caller]
fn found_there(place: &Place, options: &[&str]) -> (Value, u64, u64) {
    let answer = sources(&ended_well(&mut place.command("find", &[options, &["--json"]].concat())));
    let number = |name: &str| answer[0][name].as_u64().unwrap_or_else(|| panic!("{answer:#}"));
    (answer[0]["transactions"].clone(), number("files_by_index"), number("bytes_read"))
}

/// Waits until so many files of the archive have their search index there.
#[track_caller]
fn wait_indexed(place: &Place, files: u64) {
    let until = Instant::now() + PATIENCE;
    while found_there(place, &["--limit", "0"]).1 < files {
        assert!(Instant::now() < until, "not all indexes came: {:?}", indexes(place));
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The search indexes in the archive, as files of the store.
fn indexes(place: &Place) -> Vec<PathBuf> {
    let Ok(timelines) = std::fs::read_dir(place.root().join("default/search")) else { return Vec::new() };
    let below =
        |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = timelines.flatten().flat_map(|timeline| below(timeline.path()));
    let mut found: Vec<PathBuf> = files.flat_map(below).filter(|path| path.is_file()).collect();
    found.sort();
    found
}

/// With the source gone, an encrypted archive is searched by the indexes in it, and only what they name is fetched. One that is
/// damaged, deleted or pruned is as if it had never been.
fn searched_by_indexes(name: &str, options: &[&str]) {
    let source = Server::start(name, options);
    make_account(&source);
    let place = Place::s3().encrypted();
    let mut daemon = place.start(&source, "");
    source.sql(
        "CREATE DATABASE shop; CREATE TABLE shop.filler (id INT AUTO_INCREMENT PRIMARY KEY, v LONGTEXT)",
    );
    source.sql("CREATE TABLE shop.rare (id INT PRIMARY KEY)");
    for round in 0..6 {
        if round == 4 {
            // MariaDB's log has times in seconds: what comes now is later than what was.
            source.sql("DO SLEEP(1.1)");
        }
        source.sql("INSERT INTO shop.filler (v) VALUES (REPEAT('x', 200000))");
        if round == 4 {
            source.sql("INSERT INTO shop.rare VALUES (1), (2), (3)");
        }
        source.sql("FLUSH BINARY LOGS");
    }
    wait_archived(&daemon, &source);
    let files = ended_well(&mut place.command("find", &["--json", "--limit", "0"]));
    let files = sources(&files)[0]["files"].as_u64().expect("a number");
    let rare = of_copy(&daemon, "find", &["--json", "--table", "shop.rare", "--kind", "insert"]);
    let rare = sources(&rare)[0]["transactions"][0].clone();
    let [gtid, committed] = ["gtid", "committed"].map(|name| rare[name].as_str().expect("text").to_owned());
    let (time, hour) = (format!("{committed}.."), Duration::from_secs(3600));
    let later = committed.parse::<jiff::Timestamp>().expect("a time") + hour;
    let asked: [&[&str]; 4] = [
        &["--table", "shop.rare", "--kind", "insert"],
        &["--time", &time],
        &["--gtid", &gtid],
        &["--min-rows", "3"],
    ];
    let here = asked.map(|options| sources(&of_copy(&daemon, "find", &[options, &["--json"]].concat())));
    wait_indexed(&place, files - 1);
    let there: Vec<PathBuf> = indexes(&place);
    assert_eq!(there.len() as u64, files - 1, "each is put there once: {there:?}");
    let is_encrypted =
        |path: &PathBuf| std::fs::read(path).expect("an object").starts_with(b"age-encryption.org");
    assert!(there.iter().all(is_encrypted));
    drop(source);
    daemon.terminate();

    let same_answers = |what: &str| {
        for (options, here) in asked.iter().zip(&here) {
            let (there, ..) = found_there(&place, options);
            assert_eq!(here[0]["transactions"], there, "{what}: {options:?}");
            assert!(!there.as_array().expect("a list").is_empty(), "{options:?}");
        }
    };
    same_answers("by indexes");
    let (_, by_index, walked) = found_there(&place, asked[0]);
    assert!(by_index == files - 1 && walked < 250_000, "{by_index} of {files} files, {walked} bytes");
    let nothing = ["--json", "--time", &format!("{later}..")];
    let nothing = place.command("find", &nothing).output().expect("it runs");
    assert_eq!(sources(&nothing.stdout)[0]["files_by_index"], files - 1, "{nothing:?}");
    let sound = place.assert_sound();
    assert_eq!(
        (&sound["search_indexes"], &sound["unnamed_objects"]),
        (&(files - 1).into(), &0.into()),
        "{sound:#}"
    );

    // One is damaged in the store.
    let mut bytes = std::fs::read(&there[0]).expect("an object");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&there[0], bytes).expect("it is damaged");
    same_answers("one is damaged");
    assert_eq!(found_there(&place, asked[0]).1, files - 2);
    let sound = place.assert_sound();
    assert_eq!(sound["search_indexes_damaged"].as_array().map(Vec::len), Some(1), "{sound:#}");

    // The oldest files go, and their indexes with them.
    place.run("prune", &["--max-files", "3", "--grace", "0s", "--yes"]);
    assert_eq!(indexes(&place), there[there.len() - 2..]);
    let sound = place.assert_sound();
    assert_eq!((&sound["search_indexes"], &sound["unnamed_objects"]), (&2.into(), &0.into()), "{sound:#}");
    same_answers("pruned");
    for index in indexes(&place) {
        std::fs::remove_file(index).expect("it is gone");
    }
    same_answers("all are gone");
    let (_, by_index, walked) = found_there(&place, asked[0]);
    assert!(by_index == 0 && walked > 250_000, "{by_index} files by their indexes, {walked} bytes");

    // As one that had never put any there: the next start brings what the copy still has.
    daemon.restart(&[]);
    wait_indexed(&place, 2);
    assert_eq!(indexes(&place).len(), 2);
    same_answers("made again");
}

#[test]
fn an_archive_of_mysql_is_searched_by_its_indexes() {
    searched_by_indexes("mysql-9.7", &MYSQL);
}

#[test]
fn an_archive_of_mariadb_is_searched_by_its_indexes() {
    searched_by_indexes("mariadb-11.8", &[]);
}
