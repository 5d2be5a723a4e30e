//! Rows are looked at before anything is locked: --plan, and --leave-out-changed.

use super::Scene;
use crate::called::{options, undo_looks};
use crate::common::daemon::url;
use crate::common::verbs::text;
use crate::common::wait_within;
use std::process::{Command, Stdio};
use std::time::Duration;
use wire::Connection;

pub(super) fn looks_before_it_locks(scene: &Scene) {
    let url = &url(&scene.source);
    let sql = |statements: &str| scene.source.sql(statements);
    let state = || sql("SELECT * FROM shop.orders ORDER BY id");
    sql("CREATE TABLE shop.orders (at DATETIME, id INT, state VARCHAR(10), n INT, PRIMARY KEY (at, id))");
    let rows: Vec<String> = (1..=250).map(|id| format!("('2026-01-01', {id}, 'open', 0)")).collect();
    sql(&format!("INSERT INTO shop.orders VALUES {}", rows.join(", ")));
    let before = state();
    // Twice the same rows; some get another key, some go.
    sql("UPDATE shop.orders SET state = 'paid'");
    sql(
        "BEGIN; UPDATE shop.orders SET n = 1 WHERE id <= 200; DELETE FROM shop.orders WHERE id > 240; UPDATE shop.orders SET id = id + 1000 WHERE id BETWEEN 201 AND 210; COMMIT",
    );
    let gtids = scene.gtids("shop.orders")[1..].join(",");
    let undo = |more: &[&str]| scene.run("undo", &[&["--gtid", &gtids, "--into", url], more].concat());
    let plan = undo(&["--plan"]);
    assert!(plan.status.success(), "{}{}", text(&plan.stdout), text(&plan.stderr));
    assert!(text(&plan.stdout).starts_with("rows as these transactions left them: 470, others: 0;"));
    assert_eq!(undo_looks(&scene.daemon, &scene.source, &gtids), (470, Vec::new()));
    let scratch = state();
    // One row is another one in the way of both transactions; one that was deleted is there again; one new key's old one is taken.
    sql(
        "UPDATE shop.orders SET state = 'PAID' WHERE id = 7; INSERT INTO shop.orders VALUES ('2026-01-01', 245, 'new', 5), ('2026-01-01', 205, 'new', 6)",
    );
    let changed = state();
    let plan = undo(&["--plan"]);
    let said = text(&plan.stdout);
    assert_eq!(plan.status.code(), Some(1), "{said}");
    assert!(said.starts_with("rows as these transactions left them: 464, others: 6;"), "{said}");
    for row in ["id=7", "deleted shop.orders: at='2026-01-01 00:00:00', id=245", "id=1205", "id=205"] {
        assert!(said.contains(row), "{row}: {said}");
    }
    let (as_left, others) = undo_looks(&scene.daemon, &scene.source, &gtids);
    assert_eq!((as_left, others.len()), (464, 6), "{others:?}");
    assert!(others.iter().all(|row| said.contains(row)), "{others:?}");
    let refused = text(&undo(&["--yes"]).stderr);
    assert!(refused.contains("left them: 6 of 470;") && refused.contains("id=7"), "{refused}");
    assert!(refused.contains("nothing was changed") && !refused.contains("XPATH"), "{refused}");
    assert_eq!(state(), changed);
    // Who only looks waits for nobody: the whole table is locked.
    let mut holder = Command::new(scene.source.env("MYSQL"))
        .args(["-e", "BEGIN; SELECT COUNT(*) FROM shop.orders FOR UPDATE; DO SLEEP(600)"])
        .stdout(Stdio::null())
        .spawn()
        .expect("the client runs");
    let sleeping = "SELECT COUNT(*) FROM information_schema.processlist WHERE info = 'DO SLEEP(600)'";
    wait_within(Duration::from_secs(60), "the table is locked", || sql(sleeping) == "1\n");
    assert_eq!(undo(&["--plan"]).status.code(), Some(1));
    assert_eq!(sql(sleeping), "1\n", "the table was locked all the time");
    holder.kill().unwrap();
    holder.wait().unwrap();
    let kill =
        sql("SELECT CONCAT('KILL ', id) FROM information_schema.processlist WHERE info = 'DO SLEEP(600)'");
    if !kill.is_empty() {
        // The server may notice meanwhile that its client is gone.
        let _ = Connection::connect(&options(&scene.source)).unwrap().query(kill.trim());
    }
    let script = scene.run("undo", &["--gtid", &gtids, "--schema", url, "--leave-out-changed"]);
    let head = text(&script.stdout);
    assert!(head.contains("-- Left out, because") && head.contains("id=1205"), "{head}");
    let done = undo(&["--yes", "--leave-out-changed"]);
    let said = text(&done.stdout);
    assert!(done.status.success() && said.contains("left them: 6\n"), "{said}{}", text(&done.stderr));
    assert!(said.contains("taken back: 464 rows"), "{said}");
    let others = |rows: &str| -> Vec<String> {
        let is_other = |id: &str| !["7", "245", "205", "1205"].contains(&id);
        rows.lines().filter(|row| is_other(row.split('\t').nth(1).unwrap())).map(str::to_owned).collect()
    };
    assert_eq!(others(&state()), others(&before));
    assert_ne!(others(&scratch), others(&before));
    assert_eq!(
        sql("SELECT state, n FROM shop.orders WHERE id IN (7, 205, 245, 1205) ORDER BY id"),
        "PAID\t1\nnew\t6\nnew\t5\npaid\t0\n"
    );
}
