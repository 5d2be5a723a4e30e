//! What the sources are made to write: batches of SQL that leave every kind of event in a binary log.
//!
//! Each batch is text, made from a seed alone, so that a failure can be had again.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::common::Server;

/// What a server allows.
#[derive(Debug, Clone, Copy)]
pub struct Dialect {
    /// A transaction may not write to transactional and other tables.
    pub gtid_consistency: bool,
    /// A table may be made from a SELECT; with GTIDs only from MySQL 8.0.21 on.
    pub create_select: bool,
}

/// Small pseudo-random numbers, the same for the same seed (xorshift64*).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }
}

/// Tables for `clients` writers side by side, each with its own so that none waits for another, and what is called from
/// statements: a view, a trigger, a procedure, a function.
pub fn schema(database: &str, clients: u64) -> String {
    let mut sql = format!("CREATE DATABASE {database} CHARACTER SET utf8mb4; USE {database};\n");
    for client in 0..clients {
        write!(
            sql,
            "CREATE TABLE t{client} (id INT AUTO_INCREMENT PRIMARY KEY, k INT, c VARCHAR(4000), KEY (k)) ENGINE=InnoDB;
             CREATE TABLE m{client} (id INT AUTO_INCREMENT PRIMARY KEY, k INT, c VARCHAR(4000)) ENGINE=MyISAM;
             CREATE TABLE log{client} (id INT AUTO_INCREMENT PRIMARY KEY, k INT) ENGINE=InnoDB;
             CREATE VIEW v{client} AS SELECT id, k FROM t{client} WHERE k > 10;
             CREATE TRIGGER tr{client} AFTER DELETE ON t{client} FOR EACH ROW INSERT INTO log{client} (k) VALUES (OLD.k);
             CREATE PROCEDURE p{client} (n INT) INSERT INTO t{client} (k, c) VALUES (n, UUID()), (n + 1, CONCAT('of a procedure ', n));
             CREATE FUNCTION f{client} (n INT) RETURNS INT DETERMINISTIC RETURN n * 7 % 1000;\n"
        )
        .unwrap();
    }
    sql.push_str("CREATE TABLE wide (id INT AUTO_INCREMENT PRIMARY KEY, a LONGBLOB) ENGINE=MyISAM;\n");
    sql
}

/// As [`mixed`], of what does the same on a replica: as statements only what is safe so.
pub fn safe(dialect: Dialect, database: &str, seed: u64, client: u64, count: u64) -> String {
    mixed(dialect, database, seed, client, count)
        .replace("binlog_format = STATEMENT", "binlog_format = MIXED")
}

/// `count` transactions of one client: all kinds of statement in all three formats.
pub fn mixed(dialect: Dialect, database: &str, seed: u64, client: u64, count: u64) -> String {
    batch(dialect, database, seed, client, count, true)
}

/// As [`mixed`], without statements that define something.
pub fn transactions(dialect: Dialect, database: &str, seed: u64, client: u64, count: u64) -> String {
    batch(dialect, database, seed, client, count, false)
}

fn batch(
    dialect: Dialect,
    database: &str,
    seed: u64,
    client: u64,
    count: u64,
    with_definitions: bool,
) -> String {
    let mut random = Random::new(seed + client * 7919);
    let mut sql = format!("-- seed {seed}, client {client}\nUSE {database};\n");
    for number in 0..count {
        if number % 50 == 0 {
            let format = ["ROW", "MIXED", "STATEMENT", "ROW"][random.below(4) as usize];
            writeln!(sql, "SET SESSION binlog_format = {format};").unwrap();
        }
        if number % 70 == 0 {
            let image = ["FULL", "MINIMAL", "NOBLOB"][random.below(3) as usize];
            writeln!(sql, "SET SESSION binlog_row_image = {image};").unwrap();
        }
        if with_definitions && number % 40 == 39 {
            sql.push_str(&definition(dialect, &mut random, client, number));
        } else {
            sql.push_str(&transaction(dialect, &mut random, client, number));
        }
        sql.push('\n');
    }
    sql
}

fn transaction(dialect: Dialect, random: &mut Random, c: u64, n: u64) -> String {
    let k = random.below(1000);
    let text = format!("REPEAT('{}', {})", (b'a' + (n % 26) as u8) as char, random.below(1500));
    let insert = format!("INSERT INTO t{c} (k, c) VALUES ({k}, {text})");
    match random.below(16) {
        0..=3 => format!("{insert};"),
        4 | 5 => format!("BEGIN; {insert}; UPDATE t{c} SET k = k + 1 WHERE k = {k}; {insert}; COMMIT;"),
        6 => format!(
            "BEGIN; {insert}; SAVEPOINT a; UPDATE t{c} SET c = {text} WHERE k BETWEEN {k} AND {}; ROLLBACK TO SAVEPOINT a; {insert}; RELEASE SAVEPOINT a; COMMIT;",
            k + 20
        ),
        7 => format!("BEGIN; {insert}; DELETE FROM t{c} WHERE k = {k}; ROLLBACK;"),
        8 => format!("INSERT INTO m{c} (k, c) VALUES ({k}, {text}), ({k}, NULL);"),
        9 => format!(
            "UPDATE t{c} SET k = k + 1, c = CONCAT(LEFT(c, 100), '{n}') WHERE k BETWEEN {k} AND {};",
            k + 5
        ),
        10 => format!("DELETE FROM t{c} WHERE k BETWEEN {k} AND {};", k + 3),
        11 => format!("CALL p{c}({k});"),
        12 => format!(
            "SET @a = 'user variable {n}'; INSERT INTO t{c} (k, c) VALUES (RAND() * 1000, @a), (f{c}({k}), 'ü€𝄞');"
        ),
        13 => format!("BEGIN; {insert}; INSERT INTO log{c} (k) VALUES (LAST_INSERT_ID()); COMMIT;"),
        // Rolled back, but a table without transactions keeps its rows, and the log what made them.
        14 if !dialect.gtid_consistency => format!(
            "BEGIN; {insert}; INSERT INTO m{c} (k) VALUES ({k}); SAVEPOINT b; {insert}; ROLLBACK TO b; {};",
            if n.is_multiple_of(2) { "ROLLBACK" } else { "COMMIT" }
        ),
        _ => format!("REPLACE INTO t{c} (id, k, c) VALUES ({}, {k}, {text});", 1 + random.below(200)),
    }
}

/// Statements that define something.
fn definition(dialect: Dialect, random: &mut Random, c: u64, n: u64) -> String {
    let kinds = if dialect.create_select { 7 } else { 5 };
    match random.below(kinds) {
        // A change of format is refused while a temporary table exists, so it goes at once.
        0 => format!(
            "CREATE TEMPORARY TABLE tmp (k INT); INSERT INTO tmp VALUES ({n}), (2); INSERT INTO t{c} (k) SELECT k FROM tmp; DROP TEMPORARY TABLE tmp;"
        ),
        1 => format!(
            "ALTER TABLE t{c} ADD COLUMN extra{n} INT DEFAULT {n}; ALTER TABLE t{c} DROP COLUMN extra{n};"
        ),
        2 => format!(
            "CREATE OR REPLACE VIEW v{c} AS SELECT id, k, {n} FROM t{c}; CREATE INDEX i{n} ON t{c} (k, id); DROP INDEX i{n} ON t{c};"
        ),
        3 => format!(
            "CREATE USER u{c}_{n} IDENTIFIED BY 'aA1!{n}'; GRANT SELECT ON d.* TO u{c}_{n}; DROP USER u{c}_{n};"
        ),
        4 => format!(
            "DROP PROCEDURE p{c};\nDELIMITER //\n\
             CREATE PROCEDURE p{c} (n INT) BEGIN INSERT INTO t{c} (k) VALUES (n); UPDATE t{c} SET k = n + 1 WHERE id = LAST_INSERT_ID(); END//\n\
             DELIMITER ;\n"
        ),
        5 => format!("CREATE TABLE x{c}_{n} AS SELECT id, k FROM t{c} LIMIT 20; DROP TABLE x{c}_{n};"),
        _ => format!(
            "CREATE TABLE x{c}_{n} (PRIMARY KEY (id)) ENGINE=InnoDB SELECT id, c FROM t{c} LIMIT 5; TRUNCATE x{c}_{n}; DROP TABLE x{c}_{n}, m{c}; CREATE TABLE m{c} (id INT AUTO_INCREMENT PRIMARY KEY, k INT, c VARCHAR(4000)) ENGINE=MyISAM;"
        ),
    }
}

/// XA transactions: two phases committed and rolled back, one phase, and an empty one.
pub fn xa(count: u64) -> String {
    let mut sql = String::from("USE d;\n");
    for number in 0..count {
        let end = match number % 4 {
            0 => format!("XA PREPARE 'x{number}', 'branch', 7; XA COMMIT 'x{number}', 'branch', 7;"),
            1 => format!("XA PREPARE 'x{number}', 'branch', 7; XA ROLLBACK 'x{number}', 'branch', 7;"),
            2 => format!("XA COMMIT 'x{number}', 'branch', 7 ONE PHASE;"),
            _ => format!("XA ROLLBACK 'x{number}', 'branch', 7;"),
        };
        let insert = if number % 9 == 8 {
            String::new()
        } else {
            format!("INSERT INTO t0 (k, c) VALUES ({number}, 'xa'); ")
        };
        writeln!(sql, "XA START 'x{number}', 'branch', 7; {insert}XA END 'x{number}', 'branch', 7; {end}")
            .unwrap();
    }
    sql
}

/// LOAD DATA as rows and as a statement, where the file itself goes into the log in blocks.
pub fn load_data(folder: &Path) -> String {
    let path = folder.join("rows.tsv");
    let rows: String = (0..3000).map(|n| format!("{n}\trow {n} {}\n", "x".repeat(n % 90))).collect();
    std::fs::write(&path, rows).unwrap();
    let load = |table: &str| format!("LOAD DATA INFILE '{}' INTO TABLE {table} (k, c);", path.display());
    format!(
        "USE d;\nSET SESSION binlog_format = ROW; {0} {1}\nSET SESSION binlog_format = STATEMENT; {0} {1}\nBEGIN; {0} {0} COMMIT;\nBEGIN; {0} ROLLBACK;\n",
        load("t0"),
        load("m0")
    )
}

/// One transaction of 5 KB in many events, doubled that many times: 12 are 20 MiB, 14 are 80 MiB.
pub fn one_transaction(doublings: u32) -> String {
    let mut sql = String::from(
        "USE d;\nSET SESSION binlog_format = ROW;\nCREATE TABLE many (id INT AUTO_INCREMENT PRIMARY KEY, c VARCHAR(1100)) ENGINE=InnoDB;\nBEGIN;\n\
         INSERT INTO many (c) VALUES (REPEAT('a', 1000)), (REPEAT('b', 1000)), (REPEAT('c', 1000)), (REPEAT('d', 1000)), (REPEAT('e', 1000));\n",
    );
    for _ in 0..doublings {
        sql.push_str("INSERT INTO many (c) SELECT c FROM many;\n");
    }
    sql.push_str("COMMIT;\n");
    sql
}

/// Rows of one value each, of these sizes in bytes. The table has no transactions: InnoDB refuses a value larger than a
/// tenth of its redo log.
pub fn large_values(sizes: &[u64]) -> String {
    let mut sql = String::from("USE d;\nSET SESSION binlog_format = ROW;\n");
    for size in sizes {
        writeln!(sql, "INSERT INTO wide (a) VALUES (REPEAT('w', {size}));").unwrap();
    }
    sql.push_str("TRUNCATE wide;\n");
    sql
}

/// Runs a batch through the client; it ends at the first error.
#[track_caller]
pub fn run(server: &Server, name: &str, sql: &str) {
    server.sql_file(&write(server, name, sql), &[]);
}

/// Runs batches side by side, each in a client of its own.
#[track_caller]
pub fn run_side_by_side(server: &Server, name: &str, batches: &[String]) {
    std::thread::scope(|scope| {
        let clients: Vec<_> = batches
            .iter()
            .enumerate()
            .map(|(number, sql)| scope.spawn(move || run(server, &format!("{name}-{number}"), sql)))
            .collect();
        for client in clients {
            client.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
}

/// Writes a batch to a file beside the server's data.
pub fn write(server: &Server, name: &str, sql: &str) -> PathBuf {
    let path = server.dir().join(format!("{name}.sql"));
    std::fs::write(&path, sql).expect("a file of statements");
    path
}
