//! What `binlogd rescue` refuses, leaves out and shows, on real servers; and how fast it is.

use crate::common::Server;
use crate::common::daemon::{Daemon, url};
use crate::common::pair;

use std::process::{Command, Output, Stdio};
use std::time::Instant;

const FLAGS: [&str; 4] = ["--heartbeat-period", "1s", "--net-read-timeout", "3s"];

fn rescue(daemon: &Daemon, target: &str, flags: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    command.arg("rescue").arg(daemon.data_dir()).args(["--to", target]).args(flags);
    command.env_remove("BINLOGD_PASSWORD").stdin(Stdio::null()).output().expect("binlogd runs")
}

/// Exit code, standard output and standard error.
fn told(daemon: &Daemon, target: &str, flags: &[&str]) -> (i32, String, String) {
    let output = rescue(daemon, target, flags);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().expect("it ends by itself"), text(&output.stdout), text(&output.stderr))
}

/// Makes `new` a replica of `old` until it has everything, and nothing after that.
fn bring_up(old: &Server, new: &Server) {
    pair::replicate(new, old);
    pair::wait_replicated(new, old);
    pair::promote(new);
}

fn source(name: &str, options: &[&str]) -> Server {
    let server = Server::start(name, options);
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v LONGTEXT); INSERT INTO d.t VALUES (1, 'zero')");
    server
}

fn successor(name: &str) -> Server {
    Server::start(name, if name.starts_with("mysql") { &[] } else { &["--server-id=2"] })
}

/// GTIDs of the list's lines that hold `text`, in order.
fn gtids_of(list: &str, text: &str) -> Vec<String> {
    let lines = list.lines().filter(|line| line.starts_with("  ") && line.contains(text));
    lines.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

/// What statements cannot express, what must not be shown, and XA: listed, counted, left out by name.
#[test]
fn what_cannot_be_handed_over_is_counted_and_can_be_left_out() {
    let old = source("mysql-9.7", &[]);
    let new = successor("mysql-9.7");
    let daemon = Daemon::start(&old, &FLAGS);
    bring_up(&old, &new);
    let rows = old.dir().join("rows.txt");
    std::fs::write(&rows, "70\tloaded\n").unwrap();
    old.sql(&format!(
        "USE d; INSERT INTO t VALUES (10, 'a'); \
         SET SESSION binlog_format = STATEMENT; SET @x = 'from a variable'; INSERT INTO t VALUES (20, @x); \
         LOAD DATA INFILE '{}' INTO TABLE t; SET SESSION binlog_format = ROW; \
         CREATE USER carol@'%' IDENTIFIED BY 'tops3cret'; \
         XA START 'x1'; INSERT INTO t VALUES (30, 'two phases'); XA END 'x1'; XA PREPARE 'x1'; XA COMMIT 'x1'; \
         XA START 'x2'; INSERT INTO t VALUES (31, 'one phase'); XA END 'x2'; XA COMMIT 'x2' ONE PHASE; \
         INSERT INTO t VALUES (40, REPEAT('x', 2000000))",
        rows.display()
    ));
    daemon.wait_caught_up(&old);
    old.kill();
    let target = url(&new);

    let (code, list, error) = told(&daemon, &target, &["--dry-run"]);
    assert_eq!(code, 1, "as the real run would: {list}{error}");
    assert!(list.contains(" lacks 8 transactions "), "{list}");
    assert!(list.contains("2, which cannot be handed over"), "{list}");
    assert!(list.contains("XA PREPARE 'x1'") && list.contains("XA COMMIT 'x1' (d.t)"), "{list}");
    assert!(list.contains("d.t, XA COMMIT 'x2' ONE PHASE"), "{list}");
    assert!(list.contains("  LOAD DATA INFILE"), "{list}");
    assert!(list.contains("CREATE USER 'carol'@'%' IDENTIFIED"), "{list}");
    assert!(list.contains("<secret>") && !list.contains("tops3cret") && !list.contains("$A$005"), "{list}");
    assert!(error.contains("USER_VAR") && error.contains("--leave-out "), "{error}");
    let before = new.sql("SELECT @@gtid_executed");
    let (code, _, error) = told(&daemon, &target, &["--yes"]);
    assert!(code == 1 && error.contains("nothing was sent"), "{error}");
    assert_eq!(new.sql("SELECT @@gtid_executed"), before);

    let named = error.split("--leave-out ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    let (code, list, _) = told(&daemon, &target, &["--dry-run", "--leave-out", &named]);
    assert!(code == 1 && list.contains("2, which are left out:"), "{list}");
    let unknown =
        told(&daemon, &target, &["--dry-run", "--leave-out", "3e11fa47-71ca-11e1-9e33-c80aa9429562:7"]);
    assert!(unknown.0 == 1 && unknown.2.contains("3e11fa47-71ca-11e1-9e33-c80aa9429562:7"), "{}", unknown.2);

    // What the real run would be refused for, the dry run is.
    new.sql("SET GLOBAL max_allowed_packet = 1048576");
    for flags in [["--dry-run"], ["--yes"]] {
        let (code, _, error) = told(&daemon, &target, &[&flags[..], &["--leave-out", &named]].concat());
        assert!(code == 1 && error.contains("max_allowed_packet"), "{flags:?}: {error}");
    }
    new.sql("SET GLOBAL max_allowed_packet = 67108864; XA START 'left'; XA END 'left'; XA PREPARE 'left'");
    for flags in [["--dry-run"], ["--yes"]] {
        let (code, _, error) = told(&daemon, &target, &[&flags[..], &["--leave-out", &named]].concat());
        assert!(code == 1 && error.contains("XA COMMIT X'6c656674'"), "{flags:?}: {error}");
    }
    new.sql("XA ROLLBACK 'left'");

    let (code, text, error) = told(&daemon, &target, &["--yes", "--leave-out", &named]);
    assert!(
        code == 1 && text.contains("now has these 6 transactions") && !text.contains("has all"),
        "{text}{error}"
    );
    for gtid in named.split(',') {
        assert!(text.contains(&format!("left out, and missing there: {gtid}")), "{text}");
    }
    assert_eq!(new.sql("SELECT GROUP_CONCAT(id ORDER BY id) FROM d.t").trim(), "1,10,30,31,40");
    let (code, list, _) = told(&daemon, &target, &["--dry-run"]);
    assert!(
        code == 1 && list.contains(" lacks 2 transactions ") && gtids_of(&list, "d.t").len() <= 2,
        "{list}"
    );
    readers_may_go_away(&daemon, &new);
}

/// `… | head`: no verb panics when nobody reads what it prints.
fn readers_may_go_away(daemon: &Daemon, server: &Server) {
    let data_dir = daemon.data_dir();
    let data_dir = data_dir.to_str().unwrap();
    let target = url(server);
    for arguments in [
        &["rescue", data_dir, "--to", &target, "--dry-run"][..],
        &["rescue", data_dir, "--to", &target, "--dry-run", "--json"],
        &["status", "--data-dir", data_dir],
        &["verify", data_dir],
        &["doctor", "--source", &target],
        &["config", "example"],
    ] {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
        command.args(arguments).env_remove("BINLOGD_PASSWORD").stdin(Stdio::null()).stdout(writer);
        let output = command.stderr(Stdio::piped()).output().expect("binlogd runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!error.contains("panicked"), "{arguments:?}: {error}");
        assert!(matches!(output.status.code(), Some(0..=2)), "{arguments:?}: {}", output.status);
    }
}

/// Nobody can say what a server lacks of a copy without GTIDs, and who shares nothing with the copy is not its successor.
#[test]
fn what_cannot_be_known_is_said() {
    let anonymous = source("mysql-9.7", &["--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"]);
    let other = source("mysql-9.7", &[]);
    let new = successor("mysql-9.7");
    let mut daemon = Daemon::start(&anonymous, &FLAGS);
    daemon.wait_caught_up(&anonymous);
    for flags in [["--dry-run"], ["--yes"]] {
        let (code, text, error) = told(&daemon, &url(&other), &flags);
        assert_eq!(code, 1, "{text}{error}");
        assert!(
            text.contains("nobody can say") && text.contains("3 transactions of the copy have no GTID"),
            "{text}"
        );
        assert!(!text.contains("has every transaction"), "{text}");
    }
    daemon.terminate();
    drop(anonymous);

    let daemon = Daemon::start(&other, &FLAGS);
    daemon.wait_caught_up(&other);
    let (code, text, error) = told(&daemon, &url(&new), &["--dry-run"]);
    assert!(code == 1 && text.is_empty(), "{text}");
    assert!(error.contains("is empty") && error.contains("restore a backup first"), "{error}");
    new.sql("CREATE DATABASE elsewhere");
    for flags in [["--dry-run"], ["--yes"]] {
        let (code, text, error) = told(&daemon, &url(&new), &flags);
        assert!(code == 1 && text.is_empty(), "{text}");
        assert!(error.contains("shares no history") && error.contains("--unrelated"), "{error}");
    }
    assert_eq!(new.sql("SHOW DATABASES LIKE 'd'"), "");
    let (code, text, error) = told(&daemon, &url(&new), &["--yes", "--unrelated"]);
    assert!(code == 0 && text.contains("now has all 3 transactions"), "{text}{error}");
    assert_eq!(new.sql("SELECT v FROM d.t").trim(), "zero");
}

/// What no file of the copy holds: purged before it was copied (a gap), or moved away by the operator. Each is called what it is.
#[test]
fn what_was_never_copied_or_was_moved_away_is_named_as_such() {
    let source = source("mysql-9.7", &[]);
    let target = successor("mysql-9.7");
    let mut daemon = Daemon::start(&source, &FLAGS);
    bring_up(&source, &target);
    daemon.wait_caught_up(&source);
    daemon.terminate();
    source.sql("INSERT INTO d.t (v) VALUES ('in the gap'); FLUSH BINARY LOGS");
    let newest =
        || source.sql("SHOW BINARY LOGS").lines().last().unwrap().split('\t').next().unwrap().to_owned();
    source.sql(&format!("PURGE BINARY LOGS TO '{}'", newest()));
    source.sql("INSERT INTO d.t (v) VALUES ('moved away')");
    let moved = newest();
    source.sql("FLUSH BINARY LOGS");
    source.sql("INSERT INTO d.t (v) VALUES ('kept')");
    daemon.restart(&[&FLAGS[..], &["--on-gap", "record"]].concat());
    daemon.wait_caught_up(&source);
    daemon.terminate();
    let timelines = daemon.timeline_dirs();
    assert_eq!(timelines.len(), 2, "{}", daemon.log());
    std::fs::rename(timelines[1].join(&moved), source.dir().join(&moved)).unwrap();
    let toml = timelines[1].join("timeline.toml");
    let text = std::fs::read_to_string(&toml).unwrap() + &format!("kept_from = {:?}\n", newest());
    std::fs::write(&toml, text).unwrap();

    let uuid = source.sql("SELECT @@server_uuid").trim().to_owned();
    let last =
        source.sql("SELECT @@gtid_executed").trim().rsplit('-').next().unwrap().parse::<u64>().unwrap();
    let (gap, moved) = (format!("{uuid}:{}", last - 2), format!("{uuid}:{}", last - 1));
    let (code, out, error) = told(&daemon, &url(&target), &["--dry-run"]);
    assert_eq!(code, 1, "{out}{error}");
    assert!(out.contains(&format!("it also lacks {gap}, which the copy never got")), "{out}");
    assert!(
        out.contains(&format!("it also lacks {moved}, which stood in files that were purged or moved away")),
        "{out}"
    );
    assert!(!out.contains("before the copy began"), "{out}");
}

/// Many transactions in one packet: those before a refused one are there, and nothing behind it was ever executed.
fn the_first_refusal_ends_it(name: &str) {
    let old = source(name, &[]);
    let new = successor(name);
    let daemon = Daemon::start(&old, &FLAGS);
    bring_up(&old, &new);
    let inserts: String = (1001..=1300).map(|id| format!("INSERT INTO d.t VALUES ({id}, 'v');")).collect();
    let file = old.dir().join("inserts.sql");
    std::fs::write(&file, inserts).unwrap();
    old.sql_file(&file, &[]);
    daemon.wait_caught_up(&old);
    old.kill();
    new.sql("SET SESSION sql_log_bin = 0; INSERT INTO d.t VALUES (1150, 'in the way')");
    let (code, _, error) = told(&daemon, &url(&new), &["--yes"]);
    assert_eq!(code, 1);
    assert!(error.contains("Duplicate entry '1150'") && error.contains("it goes on here"), "{error}");
    let ids = "SELECT COUNT(*), MIN(id), MAX(id) FROM d.t WHERE v = 'v'";
    assert_eq!(new.sql(ids).trim(), "149\t1001\t1149");
    new.sql("SET SESSION sql_log_bin = 0; DELETE FROM d.t WHERE id = 1150");
    let (code, text, error) = told(&daemon, &url(&new), &["--yes"]);
    assert!(code == 0 && text.contains("now has all 151 transactions"), "{text}{error}");
    assert_eq!(new.sql(ids).trim(), "300\t1001\t1300");
}

#[test]
fn the_first_refusal_ends_it_mysql() {
    the_first_refusal_ends_it("mysql-9.7");
}

#[test]
fn the_first_refusal_ends_it_mariadb() {
    the_first_refusal_ends_it("mariadb-11.8");
}

/// Small transactions of one row each, written as a session with this format writes them.
fn write_small_transactions(server: &Server, count: u32, format: &str) {
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(50))");
    let procedure = server.dir().join("procedure.sql");
    std::fs::write(
        &procedure,
        "DELIMITER //\nCREATE PROCEDURE d.fill(n INT) BEGIN DECLARE i INT DEFAULT 0; WHILE i < n DO \
         INSERT INTO d.t (v) VALUES (CONCAT('row ', i)); SET i = i + 1; END WHILE; END//\n",
    )
    .unwrap();
    server.sql_file(&procedure, &[]);
    server.sql(&format!(
        "SET GLOBAL sync_binlog = 0; SET GLOBAL innodb_flush_log_at_trx_commit = 0; SET SESSION binlog_format = {format}; \
         CALL d.fill({count})"
    ));
}

/// Prints transactions a second. `cargo test -p binlogd --release --test servers_repair -- --ignored --nocapture rescue_speed`
fn measure(name: &str, format: &str, options: &[&str], count: u32) {
    let old = Server::start(name, &[]);
    let new = Server::start(
        name,
        &[if name.starts_with("mysql") { &[][..] } else { &["--server-id=2"] }, options].concat(),
    );
    let daemon = Daemon::start(&old, &FLAGS);
    write_small_transactions(&old, count, format);
    daemon.wait_caught_up(&old);
    let begun = Instant::now();
    let (code, out, err) = told(&daemon, &url(&new), &["--yes", "--json", "--unrelated"]);
    let took = begun.elapsed();
    assert_eq!(code, 0, "{}{err}", &out[out.len().saturating_sub(2000)..]);
    assert_eq!(new.sql("SELECT COUNT(*) FROM d.t").trim(), count.to_string());
    println!(
        "SPEED {name} {format} {options:?}: {count} transactions in {took:.2?}: {:.0} a second",
        f64::from(count) / took.as_secs_f64()
    );
}

#[test]
#[ignore = "measures"]
fn rescue_speed() {
    let relaxed = ["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0"];
    for (name, format) in [("mysql-9.7", "ROW"), ("mariadb-11.8", "ROW"), ("mariadb-11.8", "MIXED")] {
        // Each commit waits for the disk.
        measure(name, format, &[], 2_000);
        measure(name, format, &relaxed, 20_000);
    }
}
