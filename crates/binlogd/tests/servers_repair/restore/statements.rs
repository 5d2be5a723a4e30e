//! Where the target cannot reach us: statements over the one connection that there is.

use super::{Scene, executed, succeeded};
use crate::common::readers::checksums;
use codec::ServerKind;

fn over_one_connection(name: &str) {
    let scene = Scene::new(name);
    // DDL and a large row, beside what the scene has.
    scene.source.sql(
        "CREATE TABLE shop.notes (id INT PRIMARY KEY, v LONGTEXT); INSERT INTO shop.notes VALUES (1, 'one'), (2, REPEAT('x', 3000000)); \
         ALTER TABLE shop.notes ADD COLUMN w INT",
    );
    if scene.source.kind() == ServerKind::MySql {
        scene.source.sql(
            "XA START 'a'; INSERT INTO shop.parts VALUES (20, 1); XA END 'a'; XA PREPARE 'a'; XA COMMIT 'a'",
        );
    }
    scene.source.sql("INSERT INTO shop.parts VALUES (12, 1)");
    scene.daemon.wait_caught_up(&scene.source);
    let output = scene.restore(&[
        "--until",
        "before DROP TABLE shop.orders",
        "--yes",
        "--statements",
        "--workers",
        "4",
    ]);
    assert_eq!(output.status.code(), Some(2), "they exclude each other");

    let said =
        succeeded(&scene.restore(&["--until", "before DROP TABLE shop.orders", "--yes", "--statements"]));
    assert!(said.contains("restored: 203 transactions were applied"), "{said}");
    assert_eq!(checksums(&scene.target, "shop"), scene.before);
    scene.is_detached();

    // The transaction that cannot be applied is named, and all before it is there.
    scene.target.sql("SET sql_log_bin = 0; INSERT INTO shop.parts VALUES (12, 70)");
    let end = ["--until", "end", "--yes", "--statements", "--compare", "none"];
    let output = scene.restore(&end);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let taken = last_gtid(&scene);
    assert!(
        said.contains(&format!("the target refused {taken}")) && said.contains(&format!("--skip {taken}")),
        "{said}"
    );
    assert!(said.contains("Duplicate entry '12'"), "{said}");
    assert_eq!(scene.target.sql("SELECT LENGTH(v) FROM shop.notes ORDER BY id"), "3\n3000000\n");
    scene.target.sql("SET sql_log_bin = 0; DELETE FROM shop.parts WHERE id = 12");
    let said = succeeded(&scene.restore(&end));
    assert!(said.contains("restored: 1 transaction was applied"), "{said}");
    assert_eq!(checksums(&scene.target, "shop"), checksums(&scene.source, "shop"));
    assert_eq!(executed(&scene.target), executed(&scene.source));
    let said = succeeded(&scene.restore(&end));
    assert!(said.contains("nothing is to be done"), "{said}");
}

/// One in the middle and the last are left out, and count as if they were there.
fn without_two(name: &str) {
    let scene = Scene::new(name);
    scene.source.sql("DELETE FROM shop.parts WHERE id = 2");
    let middle = last_gtid(&scene);
    scene.source.sql("INSERT INTO shop.parts VALUES (12, 1)");
    scene.source.sql("DELETE FROM shop.parts WHERE id = 3");
    let skip = format!("{},{middle}", last_gtid(&scene));
    scene.daemon.wait_caught_up(&scene.source);
    succeeded(&scene.restore(&["--until", "end", "--yes", "--statements", "--skip", &skip]));
    assert_eq!(executed(&scene.target), executed(&scene.source));
    assert_eq!(scene.target.sql("SELECT COUNT(*) FROM shop.parts WHERE id IN (2, 3, 12)").trim(), "3");
    scene.is_detached();
}

/// What MariaDB takes from replication only is told before anything is changed.
#[test]
fn mariadb_xa_is_refused_before_anything_is_sent() {
    let scene = Scene::new("mariadb-11.8");
    scene.source.sql(
        "XA START 'a'; INSERT INTO shop.parts VALUES (20, 1); XA END 'a'; XA PREPARE 'a'; XA COMMIT 'a'",
    );
    scene.daemon.wait_caught_up(&scene.source);
    for last in ["--plan", "--yes"] {
        let refused = scene.refused(&["--until", "end", "--statements", last]);
        assert!(
            refused.contains("cannot be handed over by statements: it is part of an XA transaction"),
            "{refused}"
        );
    }
}

#[test]
fn mysql_9_7() {
    over_one_connection("mysql-9.7");
    without_two("mysql-9.7");
}

#[test]
fn mysql_8_0_31() {
    over_one_connection("mysql-8.0.31");
}

#[test]
fn mariadb_11_8() {
    over_one_connection("mariadb-11.8");
    without_two("mariadb-11.8");
}

#[test]
fn mariadb_10_11() {
    over_one_connection("mariadb-10.11");
}

/// The last transaction of a source.
fn last_gtid(scene: &Scene) -> String {
    let executed = executed(&scene.source);
    match scene.source.kind() {
        ServerKind::MySql => {
            let (uuid, numbers) = executed.rsplit_once(':').unwrap();
            format!("{uuid}:{}", numbers.rsplit('-').next().unwrap())
        }
        ServerKind::MariaDb => executed,
    }
}
