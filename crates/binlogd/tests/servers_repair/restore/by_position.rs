//! A source and a target with `gtid_mode = OFF`: by file and position.

use super::{PATIENCE, Scene, succeeded};
use crate::common::readers::{checksums, replica_status};
use crate::common::{connect_options, wait_within};
use std::process::Output;
use wire::{Connection, TlsMode};

const OPTIONS: [&str; 3] = ["--server-id=1", "--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"];

/// Threads that apply and each do a part of it.
const WORKERS: [&str; 2] = ["--workers", "4"];

fn failed(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{}{said}", String::from_utf8_lossy(&output.stdout));
    said
}

/// Counters, of which a transaction that is applied twice or not at all makes others.
fn count_up(scene: &Scene, times: usize) {
    scene.source.sql(
        &"UPDATE shop.parts SET n = n + 1 WHERE id = 1; UPDATE shop.parts SET n = n + 1 WHERE id = 2; "
            .repeat(times),
    );
}

/// Somebody who reads the counters holds up whoever changes them.
fn held_up(scene: &Scene) -> Connection {
    let mut client =
        Connection::connect(&connect_options(&scene.target, "root", "", TlsMode::Disabled)).unwrap();
    client.query("LOCK TABLES shop.parts READ").unwrap();
    client
}

/// Whether it has begun to apply, and waits for the lock.
fn waits_for_lock(scene: &Scene) -> bool {
    scene.target.sql("SHOW PROCESSLIST").contains("Waiting for table metadata lock")
}

fn to_just_before_the_mistake(name: &str) {
    let scene = Scene::with(name, &OPTIONS);
    let point = ["--until", "before DROP TABLE shop.orders", "--yes"];
    let refused = scene.refused(&point);
    assert!(
        refused.contains("gtid_mode = OFF") && refused.contains("--backup-at FILE:POSITION"),
        "{refused}"
    );
    let (file, offset) = scene.backup_at.split_once(':').unwrap();
    let inside = format!("{file}:{}", offset.parse::<u64>().unwrap() - 1);
    let refused = scene.refused(&[&point[..], &["--backup-at", &inside]].concat());
    assert!(refused.contains("no transaction ends there"), "{refused}");
    let uuid = scene.source.sql("SELECT @@server_uuid").trim().to_owned();
    let refused = scene.refused(&[&point[..], &["--backup-at", &format!("{uuid}:1-5")]].concat());
    assert!(refused.contains("say FILE:POSITION"), "{refused}");
    let at = ["--backup-at", scene.backup_at.as_str()];
    let refused = scene.refused(&[&point[..], &at, &["--statements"]].concat());
    assert!(refused.contains("--statements needs GTIDs"), "{refused}");

    let said = succeeded(&scene.restore(&[&point[..2], &at, &["--plan"]].concat()));
    assert!(said.contains(&format!("without GTIDs; it has everything up to {}", scene.backup_at)), "{said}");
    assert!(said.contains("to apply: 203 transactions") && said.contains("without a GTID, "), "{said}");
    let said = succeeded(&scene.restore(&[&point[..], &at, &WORKERS].concat()));
    assert!(
        said.contains("restored: 203 transactions were applied") && said.contains(" stands at "),
        "{said}"
    );
    assert_eq!(checksums(&scene.target, "shop"), scene.before);
    scene.is_detached();
    // From where it stands it goes on.
    let stands = said.split(" stands at ").nth(1).unwrap().split(' ').next().unwrap();
    succeeded(&scene.restore(&["--until", "end", "--yes", "--backup-at", stands]));
    assert_eq!(checksums(&scene.target, "shop"), checksums(&scene.source, "shop"));
    scene.is_detached();
    let said = succeeded(&scene.restore(&["--until", "end", "--yes", "--backup-at", &last(&scene)]));
    assert!(said.contains("nothing is to be done"), "{said}");
}

/// The end of the source's log.
fn last(scene: &Scene) -> String {
    let logs = scene.source.sql("SHOW BINARY LOGS");
    let mut last = logs.lines().last().unwrap().split('\t');
    format!("{}:{}", last.next().unwrap(), last.next().unwrap())
}

#[test]
fn mysql_9_7() {
    to_just_before_the_mistake("mysql-9.7");
}

#[test]
fn mysql_8_0_31() {
    to_just_before_the_mistake("mysql-8.0.31");
}

/// Ended by a signal, killed, or with the target killed under it: the channel that is left on the target says how far it is, and nothing is
/// applied twice, whatever the command line says.
#[test]
fn ended_early_it_goes_on_where_it_was() {
    let mut scene = Scene::with("mysql-9.7", &OPTIONS);
    count_up(&scene, 150);
    scene.source.sql("FLUSH BINARY LOGS");
    count_up(&scene, 150);
    scene.daemon.wait_caught_up(&scene.source);
    let arguments = [
        "--until",
        "end",
        "--yes",
        "--allow-clients",
        "--backup-at",
        &scene.backup_at.clone(),
        "--workers",
        "4",
    ];
    for round in 0..3 {
        let client = held_up(&scene);
        let mut command = scene.command(&arguments);
        let mut restore = command.stderr(std::process::Stdio::piped()).spawn().expect("binlogd runs");
        wait_within(PATIENCE, "the target waits for a lock", || waits_for_lock(&scene));
        match round {
            0 => {
                let pid = rustix::process::Pid::from_child(&restore);
                rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
                // STOP REPLICA waits for what is applied.
                wait_within(PATIENCE, "it stops the target", || {
                    scene.target.sql("SHOW PROCESSLIST").contains("STOP REPLICA")
                });
                client.close();
                let said = failed(&restore.wait_with_output().unwrap());
                assert!(said.contains("The same command again goes on there"), "{said}");
                let state = replica_status(&scene.target);
                assert!(!state.is_empty(), "its channel says how far it is");
            }
            1 => {
                restore.kill().unwrap();
                restore.wait().unwrap();
                client.close();
            }
            _ => {
                scene.target.kill();
                let _ = restore.wait();
                scene.target.restart(&[&OPTIONS[..], &["--skip-replica-start"]].concat());
            }
        }
        // A part of it is applied meanwhile.
        if round < 2 {
            scene.source.sql("INSERT INTO shop.parts SELECT MAX(id) + 1, 0 FROM shop.parts");
            count_up(&scene, 100);
            scene.daemon.wait_caught_up(&scene.source);
        }
    }
    let output = scene.restore(&arguments);
    let noted = String::from_utf8_lossy(&output.stderr).into_owned();
    let said = succeeded(&output);
    assert!(noted.contains("an earlier restore has brought the target to"), "{noted}");
    assert!(said.contains("restored: "), "{said}");
    assert_eq!(checksums(&scene.target, "shop"), checksums(&scene.source, "shop"));
    scene.is_detached();
}

/// The transaction that cannot be applied is named by its position, and is passed over by that.
#[test]
fn what_is_in_its_way_is_passed_over() {
    let scene = Scene::with("mysql-9.7", &OPTIONS);
    count_up(&scene, 20);
    scene.source.sql("DELETE FROM shop.parts WHERE id = 3");
    count_up(&scene, 20);
    scene.daemon.wait_caught_up(&scene.source);
    let arguments = ["--until", "end", "--yes", "--backup-at", &scene.backup_at, "--workers", "4"];
    // The row that is to be written is there.
    scene.target.sql("INSERT INTO shop.parts VALUES (9, 90)");
    let said = failed(&scene.restore(&arguments));
    assert!(
        said.contains("cannot apply the transaction behind ") && said.contains("Duplicate entry '9'"),
        "{said}"
    );
    let place = said.split("--skip ").nth(1).unwrap().trim();
    let refused = failed(&scene.restore(&[&arguments[..], &["--skip", "mysql-bin.000001:4"]].concat()));
    assert!(refused.contains("it is not one of those that are to be applied"), "{refused}");
    let refused = failed(&scene.restore(&[&arguments[..], &["--skip", "0-1-5"]].concat()));
    assert!(refused.contains("as FILE:POSITION"), "{refused}");
    let output = scene.restore(&[&arguments[..], &["--skip", place]].concat());
    assert!(succeeded(&output).contains("restored: "), "{output:?}");
    scene.is_detached();
    let wanted = scene.source.sql("SELECT id, n FROM shop.parts WHERE id <> 9 ORDER BY id");
    assert_eq!(scene.target.sql("SELECT id, n FROM shop.parts WHERE id <> 9 ORDER BY id"), wanted);
    assert_eq!(scene.target.sql("SELECT n FROM shop.parts WHERE id = 9").trim(), "90");
}

/// A log with GTIDs and a server without, and the other way round.
#[test]
fn a_log_of_the_other_kind_is_refused() {
    let scene = Scene::new("mysql-9.7");
    let off = "SET GLOBAL gtid_mode = ON_PERMISSIVE; SET GLOBAL gtid_mode = OFF_PERMISSIVE; SET GLOBAL gtid_mode = OFF";
    scene.target.sql(off);
    let at = ["--until", "end", "--yes", "--backup-at", &scene.backup_at];
    let refused = scene.refused(&at);
    assert!(refused.contains("it has a GTID, and the target has GTIDs switched off"), "{refused}");
    let scene = Scene::with("mysql-9.7", &OPTIONS);
    scene.target.sql(
        "SET GLOBAL enforce_gtid_consistency = ON; SET GLOBAL gtid_mode = OFF_PERMISSIVE; SET GLOBAL gtid_mode = ON_PERMISSIVE; SET \
         GLOBAL gtid_mode = ON",
    );
    let at = ["--until", "end", "--yes", "--backup-at", &scene.backup_at];
    let refused = scene.refused(&at);
    assert!(refused.contains("the log names no GTIDs there"), "{refused}");
}
