//! Log readers of other languages, on the libraries that people use (tests/clients): they print the same events from binlogd
//! as from the source.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::Server;
use crate::common::compare::binary_logs;
use crate::common::daemon::{Daemon, binlog_end};
use crate::common::readers::{SERVE, account_url, client, foreign_reader, make_account, serve_port};
use crate::common::workload::{Dialect, mixed, run, schema};

/// Far more than a reader takes for a few hundred events, in seconds: it starts a virtual machine, and other tests run.
const READER_SECONDS_MAX: &str = "120";

/// Rows of all types that readers have code of their own for, and each way of changing them.
const TYPES: &str = "
    CREATE TABLE d.types (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, i INT, u INT UNSIGNED, de DECIMAL(20,5), f DOUBLE,
        b BIT(5), dt DATETIME(6), ts TIMESTAMP(3) NULL, da DATE, ti TIME(2), y YEAR, v VARCHAR(200) CHARACTER SET utf8mb4,
        vb VARBINARY(50), t LONGTEXT, bl MEDIUMBLOB, e ENUM('a', 'b', 'ü'), s SET('x', 'y', 'z'));
    INSERT INTO d.types VALUES
        (1, -5, 4294967295, -123456.78901, 1.5e-9, b'10101', '2026-01-02 03:04:05.678901', '2026-01-02 03:04:05.678',
            '1999-12-31', '-12:34:56.78', 2026, 'grün ✓ 🙂', x'00FF10', REPEAT('ab', 2000), REPEAT(x'00FE', 1000), 'ü', 'x,z'),
        (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
        (18446744073709551615, 1, 0, 0, 0, 0, '1000-01-01', '1970-01-02', '0001-01-01', '838:59:59', 1901, '', '', '', '', 'a', '');
    UPDATE d.types SET i = 7, v = CONCAT(v, '!'), t = 'short' WHERE id < 3;
    ALTER TABLE d.types ADD COLUMN later INT DEFAULT 3, DROP COLUMN f;
    DELETE FROM d.types WHERE id = 2;
    INSERT INTO d.types (id, later) VALUES (9, 9);";

/// A source with three files of events, and binlogd, which has them.
struct Scene {
    source: Server,
    daemon: Daemon,
    /// File and position at which all readers end.
    end: (String, u64),
}

impl Scene {
    fn new(name: &str) -> Scene {
        let options: &[&str] = match name {
            // With its index the source finds a place in the middle of a file, and leaves out what no reader needs before.
            "mariadb-11.8" => &["--server-id=1", "--binlog-row-metadata=FULL", "--binlog-gtid-index=OFF"],
            "mariadb-10.11" => &["--server-id=1", "--binlog-row-metadata=FULL"],
            "mysql-5.7.22" => &["--server-id=1", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
            _ => &[
                "--server-id=1",
                "--gtid-mode=ON",
                "--enforce-gtid-consistency=ON",
                "--binlog-row-metadata=FULL",
            ],
        };
        let source = Server::start(name, options);
        let dialect = Dialect { gtid_consistency: true, create_select: false };
        make_account(&source);
        // What these readers ask a source before they read.
        source.sql("GRANT REPLICATION CLIENT ON *.* TO 'repl'@'%'; GRANT SELECT ON d.* TO 'repl'@'%'");
        run(&source, "schema", &schema("d", 2));
        let daemon = Daemon::start_on(&account_url(&source), &SERVE);
        run(&source, "writing", &mixed(dialect, "d", 1, 0, 20));
        source.sql("FLUSH BINARY LOGS");
        source.sql(TYPES);
        source.sql("FLUSH BINARY LOGS");
        run(&source, "writing", &mixed(dialect, "d", 2, 1, 20));
        source.sql("INSERT INTO d.t0 (k) VALUES (1)");
        daemon.wait_caught_up(&source);
        let end = binlog_end(&source);
        Scene { source, daemon, end }
    }

    /// Some transactions of the first file, as a reader's place.
    fn some_gtids(&self) -> String {
        if self.is_mariadb() {
            return "0-1-20".to_owned();
        }
        format!("{}:1-20", self.source.sql("SELECT @@server_uuid").trim())
    }

    fn is_mariadb(&self) -> bool {
        self.source.env("SERVER_KIND") == "mariadb"
    }

    fn start(&self, program: &Path, port: u16, by: &[&str]) -> Child {
        let flavor = if self.is_mariadb() { "mariadb" } else { "mysql" };
        let (file, offset) = (&self.end.0, self.end.1.to_string());
        let mut command = Command::new("timeout");
        command.arg("--signal=KILL").arg(READER_SECONDS_MAX).arg(program).arg(port.to_string()).arg(flavor);
        command.args(by).args([file, &offset]).env("TABLES_PORT", self.source.port().to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the reader runs")
    }

    /// The reader prints the same from the source and from binlogd, and each of `holds` is in that.
    #[track_caller]
    fn reads_the_same(&self, program: &Path, by: &[&str], holds: &[&str]) {
        let ports = [self.source.port(), serve_port(&self.daemon)];
        let [theirs, ours] = ports
            .map(|port| self.start(program, port, by))
            .map(|child| child.wait_with_output().expect("the reader's output"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let what = format!("{} {by:?}", program.display());
        assert!(
            theirs.status.success(),
            "{what} of the source: {}\n{:.2000}",
            text(&theirs.stderr),
            text(&theirs.stdout)
        );
        assert!(
            ours.status.success(),
            "{what}: {}\n{:.2000}\n{}",
            text(&ours.stderr),
            text(&ours.stdout),
            self.daemon.log()
        );
        let (expected, found) = (text(&theirs.stdout), text(&ours.stdout));
        for wanted in holds {
            assert!(expected.contains(wanted), "{what}: the source gave no {wanted:?}:\n{expected:.3000}");
        }
        let differs = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
        assert!(
            expected == found,
            "{what}: {} lines from the source, {} from binlogd; first different:\n{:.2000}",
            expected.lines().count(),
            found.lines().count(),
            differs.map_or(String::new(), |(expected, found)| format!("{expected:.900}\n{found:.900}"))
        );
    }
}

/// Runs the command-line client of the server and gives what it printed: its error where it failed.
fn command_line(scene: &Scene, port: u16, arguments: &[&str]) -> String {
    let output = client(&scene.source, "MYSQL", port, arguments);
    let printed = if output.status.success() { &output.stdout } else { &output.stderr };
    let lines = String::from_utf8_lossy(printed).into_owned();
    lines.lines().filter(|line| !line.contains("[Warning]")).collect::<Vec<_>>().join("\n")
}

/// The command-line client shows of binlogd what it shows of the source.
fn command_line_client(name: &str) {
    let scene = Scene::new(name);
    let ports = [scene.source.port(), serve_port(&scene.daemon)];
    let mut statements = vec![
        "SHOW BINARY LOGS".to_owned(),
        "SELECT @@server_id, @@binlog_checksum, @@binlog_format, @@binlog_row_image, @@binlog_row_metadata".to_owned(),
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('sql_mode', 'max_binlog_size', 'lower_case_table_names')".to_owned(),
        "SELECT IFNULL(@@ssl_cipher, ''), @@require_secure_transport".to_owned(),
    ];
    if scene.is_mariadb() {
        statements.push("SHOW MASTER STATUS".to_owned());
        statements.push("SELECT @@gtid_binlog_pos, @@gtid_binlog_state".to_owned());
        // Between transactions. Within one the source answers as at its end, and binlogd that there is no such place.
        let events = scene.source.sql("SHOW BINLOG EVENTS IN 'mysql-bin.000002'");
        let fields: Vec<Vec<&str>> = events.lines().map(|line| line.split('\t').collect()).collect();
        let between =
            fields.iter().filter(|event| !["Query", "Xid"].contains(&event[2]) && !event[2].contains("ows"));
        let between = between.filter(|event| event[2] != "Table_map" && event[2] != "Intvar");
        for offset in between.map(|event| event[1]).chain(["0", "1", "4", "5", "99999999"]) {
            let asked = format!("BINLOG_GTID_POS('mysql-bin.000002', {offset})");
            statements.push(format!("SELECT {offset}, {asked}"));
        }
        statements.push(
            "SELECT BINLOG_GTID_POS('mysql-bin.000001', 4), BINLOG_GTID_POS('nosuch.000001', 4)".to_owned(),
        );
    } else {
        statements.push("SELECT @@gtid_executed, @@server_uuid, @@gtid_mode".to_owned());
        statements.push(match name {
            "mysql-9.7" => "SHOW BINARY LOG STATUS".to_owned(),
            _ => "SHOW MASTER STATUS".to_owned(),
        });
    }
    let all = statements.join("; ");
    let [theirs, ours] = ports.map(|port| command_line(&scene, port, &["-e", &all]));
    let differs: Vec<_> = theirs.lines().zip(ours.lines()).filter(|(theirs, ours)| ours != theirs).collect();
    assert!(ours == theirs, "theirs and ours: {differs:#?}");
    assert!(theirs.lines().count() > statements.len(), "{theirs}");
    // Typed languages decide by the types of the columns.
    let types = |port| {
        let shown = command_line(&scene, port, &["-t", "--column-type-info", "-e", "SHOW BINARY LOGS"]);
        let wanted = |line: &&str| line.starts_with("Field") || line.starts_with("Type");
        shown.lines().filter(wanted).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(types(ports[1]), types(ports[0]));
    assert!(types(ports[0]).contains("LONGLONG"), "{}", types(ports[0]));
    // A login into a database: those of every server, and one that is not.
    for (database, expected) in
        [("information_schema", "information_schema"), ("nosuch", "Unknown database 'nosuch'")]
    {
        let printed = command_line(&scene, ports[1], &["-N", "-D", database, "-e", "SELECT DATABASE()"]);
        assert!(printed.contains(expected), "{database}: {printed}");
    }
    // Since MySQL 9.4 the client takes no commands of its own unless it is told to.
    let commands: &[&str] = if scene.is_mariadb() { &[] } else { &["--commands"] };
    let status = command_line(&scene, ports[1], &[commands, &["-e", "status"]].concat());
    assert!(status.contains("Uptime") && status.contains(scene.source.env("VERSION")), "{status}");
}

#[test]
fn mysql_client_of_9_7() {
    command_line_client("mysql-9.7");
}

#[test]
fn mysql_client_on_8_0() {
    command_line_client("mysql-8.0.31");
}

#[test]
fn mariadb_client() {
    command_line_client("mariadb-11.8");
}

fn all_clients(name: &str) {
    let scene = Scene::new(name);
    let first = binary_logs(&scene.source)[0].clone();
    let gtids = scene.some_gtids();
    // MySQL 5.7 does not write the names of columns, without which these two ask a server's tables.
    let names_columns = name != "mysql-5.7.22";
    if let Some(python) = names_columns.then(|| foreign_reader("python")).flatten() {
        let rows = ["WriteRowsEvent", "UpdateRowsEvent", "DeleteRowsEvent", "grün ✓ 🙂!", "'later'"];
        scene.reads_the_same(&python, &["position", &first, "4"], &rows);
        scene.reads_the_same(&python, &["gtid", &gtids], &rows);
        scene.reads_the_same(&python, &["now", "-"], &[&format!("at {} {}", scene.end.0, scene.end.1)]);
    }
    if let Some(go) = foreign_reader("go") {
        let rows = ["=== WriteRowsEventV", "=== UpdateRowsEventV", "=== DeleteRowsEventV"];
        scene.reads_the_same(&go, &["position", &first, "4"], &rows);
        scene.reads_the_same(&go, &["gtid", &gtids], &rows);
        let rows = ["insert d.t", "update d.types", "delete d.types", "ddl ", "synced "];
        scene.reads_the_same(&go, &["canal-position", &first, "4"], &rows);
        scene.reads_the_same(&go, &["canal-gtid", &gtids], &rows);
    }
    if let Some(java) = foreign_reader("java") {
        let rows = ["insert ", "update ", "delete ", "later"];
        scene.reads_the_same(&java, &["position", &first, "4"], &rows);
        scene.reads_the_same(&java, &["gtid", &gtids], &rows);
    }
    if let Some(node) = names_columns.then(|| foreign_reader("node")).flatten() {
        let rows = ["WriteRows ", "UpdateRows ", "DeleteRows ", "grün ✓ 🙂!", "\"later\""];
        scene.reads_the_same(&node, &["position", &first, "4"], &rows);
        scene.reads_the_same(&node, &["gtid", &gtids], &rows);
        scene.reads_the_same(&node, &["now", "-"], &[&format!("at {} {}", scene.end.0, scene.end.1)]);
    }
}

#[test]
fn mysql_9_7() {
    all_clients("mysql-9.7");
}

#[test]
fn mysql_8_0() {
    all_clients("mysql-8.0.31");
}

#[test]
fn mariadb_11_8() {
    all_clients("mariadb-11.8");
}

/// Older servers: `make test-clients`.
#[test]
#[ignore = "a broader matrix, for make test-clients"]
fn older_mysql_8_0_15() {
    all_clients("mysql-8.0.15");
}

#[test]
#[ignore = "a broader matrix, for make test-clients"]
fn older_mysql_5_7_22() {
    all_clients("mysql-5.7.22");
}

#[test]
#[ignore = "a broader matrix, for make test-clients"]
fn older_mariadb_10_11() {
    all_clients("mariadb-10.11");
}
