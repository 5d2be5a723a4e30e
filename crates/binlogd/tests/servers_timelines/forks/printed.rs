//! The statements that `binlogd forks --print-sql` prints, run on the server that they are for.

use serde_json::json;

use crate::common::Server;
use crate::common::daemon::url;
use crate::common::fork_scene::{PATIENCE, Scene, binlogd, copy_folder, forks, rescue, told};

/// What is printed for a person is run as its own head says: what was lost comes once, what the source has does not come again,
/// and what a rescue hands over does not either.
fn run_on_the_source(name: &str, format: &str) {
    let mut scene = Scene::new(name, &[]);
    let write = |server: &Server, statements: &str| {
        server.sql(&format!("SET SESSION binlog_format = {format}; USE d; {statements}"));
    };
    write(
        &scene.server,
        "CREATE TABLE acc (id INT PRIMARY KEY, bal INT); INSERT INTO acc VALUES (1, 1100), (2, 0)",
    );
    scene.daemon.wait_caught_up(&scene.server);
    scene.server.stop();
    copy_folder(scene.server.datadir(), &scene.earlier());
    scene.server.restart(&[]);
    scene.daemon.wait_until(|source| source["state"] == "receiving", PATIENCE);
    // Whoever reads the file carelessly takes a part of the text for a statement.
    let trap = |id: u32| {
        format!("INSERT INTO t VALUES ({id}, 'it''s */\n/*!*/;\nUPDATE d.acc SET bal = 0;\r\n-- /*')")
    };
    write(&scene.server, "UPDATE acc SET bal = bal + 10 WHERE id = 1");
    write(&scene.server, &trap(31));
    for more in [100, 200] {
        write(&scene.server, &format!("UPDATE acc SET bal = bal + {more} WHERE id = 2"));
    }
    scene.daemon.wait_caught_up(&scene.server);
    scene.put_back(&[]);
    write(&scene.server, "UPDATE acc SET bal = bal + 1000 WHERE id = 1");
    write(&scene.server, &trap(32));
    let Scene { server, daemon } = &scene;
    daemon.wait_until(|source| source["gtids_given_twice"] == 2, PATIENCE);
    daemon.wait_caught_up(server);
    let balance = || server.sql("SELECT GROUP_CONCAT(bal ORDER BY id) FROM d.acc").trim().to_owned();

    let printed = |flags: &[&str]| {
        let output = binlogd(&["forks", "--print-sql"], &daemon.data_dir(), flags);
        assert!(output.status.success(), "{}", told(&output).1);
        let text = String::from_utf8(output.stdout).unwrap();
        (text, String::from_utf8(output.stderr).unwrap())
    };
    let run = |text: &str| {
        let (_, command) = text.split_once("mysql ").expect(text);
        let flags: Vec<&str> = command.split_once(" < FILE").expect(text).0.split(' ').collect();
        let file = server.dir().join("printed.sql");
        std::fs::write(&file, text).unwrap();
        server.sql_file(&file, &flags);
    };
    // A rescue has to come first: a GTID that the server gives now is one of those that it lacks.
    let (before, said) = printed(&[]);
    assert!(
        said.contains("binlogd rescue") && before.contains("-- Run binlogd rescue first"),
        "{said}{before}"
    );
    let lacked = before.split("lost by the source; binlogd rescue hands it over").collect::<Vec<_>>();
    assert_eq!(lacked.len(), 3, "{before}");
    for one in &lacked[1..] {
        let statements: Vec<&str> = one.lines().skip(1).filter(|line| !line.starts_with("--")).collect();
        assert!(
            statements.iter().all(|line| line.is_empty()
                || line.contains("SET @@session.pseudo_")
                || *line == "DELIMITER ;"
                || *line == "/*!*/;"),
            "{one}"
        );
    }
    assert_eq!(rescue(daemon, server).0, Some(1));
    daemon.wait_until(|source| source["source_lacks"] == "", PATIENCE);
    assert_eq!(balance(), "2100,300");
    let (text, said) = printed(&[]);
    assert!(said.is_empty() && !text.contains("Run binlogd rescue first"), "{said}{text}");
    run(&text);
    // A row would be set to what it was then, and the source's own 1000 be lost: that is left to who has looked.
    let is_rows = format == "ROW";
    assert_eq!(balance(), if is_rows { "2100,300" } else { "2110,300" }, "{text}");
    assert_eq!(text.contains("--overwrite"), is_rows, "{text}");
    let traps =
        || server.sql("SELECT COUNT(*), COUNT(DISTINCT v), SUM(id) FROM d.t WHERE id > 30").trim().to_owned();
    assert_eq!(traps(), "2\t1\t63", "{text}");
    if is_rows {
        server.sql("DELETE FROM d.t WHERE id = 31");
        let (text, _) = printed(&["--overwrite"]);
        run(&text);
        assert_eq!((balance().as_str(), traps().as_str()), ("1110,300", "2\t1\t63"), "{text}");
    }
    let settled = balance();
    // Nothing was given twice by that.
    let source = daemon.wait_caught_up(server);
    assert_eq!((&source["source_lacks"], &source["gtids_given_twice"]), (&json!(""), &json!(2)));
    let (code, text) = forks(daemon, &["--settle", "all", "--note", "run by hand"]);
    assert_eq!(code, Some(0), "{text}");
    let (text, _) = printed(&[]);
    run(&text);
    assert_eq!(balance(), settled, "{text}");
}

/// Three generations, of which the last one is deleted in part and else set to NULL.
const FAMILY: &str = "CREATE TABLE d.f1 (id INT PRIMARY KEY); \
    CREATE TABLE d.f2 (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES d.f1 (id) ON DELETE CASCADE); \
    CREATE TABLE d.f3 (id INT PRIMARY KEY, p INT, o INT, FOREIGN KEY (p) REFERENCES d.f2 (id) ON DELETE CASCADE, \
    FOREIGN KEY (o) REFERENCES d.f2 (id) ON DELETE SET NULL); \
    INSERT INTO d.f1 VALUES (1), (2); INSERT INTO d.f2 VALUES (1, 1), (2, 1); INSERT INTO d.f3 VALUES (1, 2, 1), (2, NULL, 2), (3, NULL, NULL)";

/// The runbook's way to its end on a table that counts up: what was lost comes under new numbers, as statements that a person can read.
fn rows_under_new_numbers(name: &str) {
    let mut scene = Scene::new(name, &[]);
    scene.server.sql("CREATE TABLE d.orders (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(40), e ENUM('x', 'it''s'), UNIQUE (v))");
    scene.server.sql(FAMILY);
    scene.write_what_is_lost(20, &[]);
    let order = |server: &Server, v: &str| {
        server.sql(&format!("INSERT INTO d.orders (v, e) VALUES ('{v}', 'it''s')"));
    };
    ["lost 1", "lost ''2\n"].iter().for_each(|v| order(&scene.server, v));
    scene.server.sql("DELETE FROM d.f1");
    scene.daemon.wait_caught_up(&scene.server);
    scene.put_back(&[]);
    ["ours 1", "ours 2", "ours 3", "ours 4", "ours 5", "ours 6"].iter().for_each(|v| order(&scene.server, v));
    let Scene { server, daemon } = &scene;
    daemon.wait_until(|source| source["gtids_given_twice"] == 6, PATIENCE);
    daemon.wait_caught_up(server);
    let print = |flags: &[&str]| {
        let schema = url(server);
        let flags = [&["--schema", &schema], flags].concat();
        let output = binlogd(&["forks", "--print-sql"], &daemon.data_dir(), &flags);
        assert!(output.status.success(), "{}", told(&output).1);
        String::from_utf8(output.stdout).unwrap()
    };
    // The tables of a MariaDB that was put back are of then, behind the rows: somebody has to vouch for their columns.
    let vouch: &[&str] = if name.starts_with("mariadb") { &["--columns-as-now"] } else { &[] };
    let with_numbers = print(vouch);
    assert!(!with_numbers.contains("BINLOG '"), "{with_numbers}");
    assert!(
        with_numbers.contains("INSERT INTO `d`.`orders` (`id`, `v`, `e`) VALUES (1, 'lost 1', 'it''s')"),
        "{with_numbers}"
    );
    assert!(
        with_numbers.contains("-- INSERT INTO `d`.`orders` (`id`, `v`, `e`) VALUES (1, 'ours 1', 'it''s')"),
        "{with_numbers}"
    );
    let text = print(&[&["--new-keys"], vouch].concat());
    assert!(text.contains("\nINSERT INTO `d`.`orders` (`v`, `e`) VALUES ('lost 1', 'it''s')\n"), "{text}");
    assert!(text.contains("inserted d.orders: id=1"), "{text}");
    let file = server.dir().join("printed.sql");
    std::fs::write(&file, &text).unwrap();
    server.sql_file(&file, &["--binary-mode"]);
    let rows =
        server.sql("SELECT COUNT(*), COUNT(DISTINCT id), SUM(v LIKE 'lost%'), SUM(e + 0) FROM d.orders");
    assert_eq!(rows, "8\t8\t2\t16\n", "{text}");
    assert_eq!(server.sql("SELECT COUNT(*) FROM d.t WHERE id BETWEEN 20 AND 22"), "3\n", "{text}");
    // What a foreign key deleted or changed stands in MySQL's log too, and the server does that by itself where the parent goes first.
    assert_eq!(server.sql("SELECT COUNT(*) FROM d.f3"), "3\n");
    server.sql("DELETE FROM d.orders; DELETE FROM d.t WHERE id >= 20");
    std::fs::write(&file, print(&[&["--overwrite"], vouch].concat())).unwrap();
    server.sql_file(&file, &["--binary-mode"]);
    let left = "SELECT (SELECT COUNT(*) FROM d.f1), (SELECT COUNT(*) FROM d.f2), (SELECT GROUP_CONCAT(id, '=', IFNULL(o, 0)) FROM d.f3)";
    assert_eq!(server.sql(left), "0\t0\t2=0,3=0\n");
    // The columns of now may be others than those of the rows: they are not told by these, but to who knows better.
    server.sql("ALTER TABLE d.orders MODIFY v VARCHAR(50)");
    daemon.wait_caught_up(server);
    let unproven = print(&[]);
    assert!(unproven.contains("BINLOG '") && unproven.contains("is not proven"), "{unproven}");
    assert!(!unproven.contains("INSERT INTO `d`.`orders`"), "{unproven}");
    let vouched = print(&["--columns-as-now"]);
    assert!(vouched.contains("\nINSERT INTO `d`.`orders` (`id`, `v`, `e`) VALUES (1, 'lost 1'"), "{vouched}");
    let (code, text) = forks(daemon, &["--settle", "all", "--note", "both kept"]);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn rows_run_under_new_numbers_mysql() {
    rows_under_new_numbers("mysql-9.7");
}

#[test]
fn rows_run_under_new_numbers_mariadb() {
    rows_under_new_numbers("mariadb-11.8");
}

#[test]
fn rows_run_mysql() {
    run_on_the_source("mysql-9.7", "ROW");
}

#[test]
fn statements_run_mysql() {
    run_on_the_source("mysql-9.7", "STATEMENT");
}

#[test]
fn rows_run_mariadb() {
    run_on_the_source("mariadb-11.8", "ROW");
}

#[test]
fn statements_run_mariadb() {
    run_on_the_source("mariadb-11.8", "STATEMENT");
}
