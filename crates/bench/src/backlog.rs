//! A backlog on a real source: binary log files of ordinary row events, as sysbench makes them.
//!
//! Nine tenths of the bytes are transactions that update 400 rows of sysbench's table, in events of up to 8 KiB (the
//! server's `binlog_row_event_max_size`); one tenth are sysbench's oltp_write_only: two updates, a delete and an insert
//! of one row each, in events of a few hundred bytes.

use anyhow::{Context, bail};
use rig::server::{LogFile, Server};
use std::path::Path;
use std::time::{Duration, Instant};

/// Account that every receiver uses; it has no password.
pub const USER: &str = "bench";

/// Options for a source that makes a log quickly. Nothing of it has to survive a crash.
const OPTIONS: [&str; 7] = [
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=OFF",
    "--innodb-buffer-pool-size=512M",
    "--innodb-redo-log-capacity=1G",
    "--binlog-cache-size=4M",
    "--max-binlog-size=256M",
];

/// Clients that write at once, each in its own rows.
const CLIENTS: usize = 2;

/// Rows of each client.
const ROWS: usize = 20_000;

/// What a client runs at once: about 17 MiB of ordinary log, or 4 MiB of small transactions.
const LARGE_TRANSACTIONS: usize = 100;
const SMALL_TRANSACTIONS: usize = 1000;
const TINY_TRANSACTIONS: usize = 10_000;
const NOISE_TRANSACTIONS: usize = 1000;

/// Longest time in which the log may stay as long as it is.
const PATIENCE: Duration = Duration::from_secs(120);

/// Table and procedures, of `@rows` rows. The columns are sysbench's.
const SCHEMA: &str = "
CREATE DATABASE bench//
CREATE USER bench@'%'//
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO bench@'%'//
USE bench//
CREATE TABLE sbtest1 (
  id INT NOT NULL PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY k_1 (k)
) ENGINE=InnoDB//
SET SESSION cte_max_recursion_depth = 1000000//
INSERT INTO sbtest1
  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < @rows)
  SELECT i, i * 7919 % @rows, RPAD(CONCAT(SHA2(i, 256), '-', SHA2(-i, 256)), 119, '0'), LEFT(SHA2(i, 256), 59) FROM n//
CREATE PROCEDURE small(transactions INT, first INT, count INT)
BEGIN
  DECLARE i, a, b, d INT DEFAULT 0;
  WHILE i < transactions DO
    SET a = first + FLOOR(RAND() * count), b = first + FLOOR(RAND() * count), d = first + FLOOR(RAND() * count);
    START TRANSACTION;
    UPDATE sbtest1 SET k = k + 1 WHERE id = a;
    UPDATE sbtest1 SET c = RPAD(CONCAT(SHA2(RAND(), 256), '-', SHA2(i, 256)), 119, '1') WHERE id = b;
    DELETE FROM sbtest1 WHERE id = d;
    INSERT INTO sbtest1 VALUES
      (d, i, RPAD(CONCAT(SHA2(RAND(), 256), '-', SHA2(i, 256)), 119, '2'), LEFT(SHA2(i, 256), 59));
    COMMIT;
    SET i = i + 1;
  END WHILE;
END//
CREATE TABLE tiny (id BIGINT AUTO_INCREMENT PRIMARY KEY, c CHAR(120) NOT NULL) ENGINE=InnoDB//
CREATE PROCEDURE tiny(transactions INT)
BEGIN
  DECLARE i INT DEFAULT 0;
  WHILE i < transactions DO
    INSERT INTO tiny (c) VALUES (RPAD(SHA2(i, 256), 119, '3'));
    SET i = i + 1;
  END WHILE;
END//
CREATE TABLE noise (id BIGINT AUTO_INCREMENT PRIMARY KEY, c VARBINARY(8192) NOT NULL) ENGINE=InnoDB//
CREATE PROCEDURE noise(transactions INT)
BEGIN
  DECLARE i INT DEFAULT 0;
  WHILE i < transactions DO
    INSERT INTO noise (c) VALUES (CONCAT(
      RANDOM_BYTES(1024), RANDOM_BYTES(1024), RANDOM_BYTES(1024), RANDOM_BYTES(1024),
      RANDOM_BYTES(1024), RANDOM_BYTES(1024), RANDOM_BYTES(1024), RANDOM_BYTES(1024)));
    SET i = i + 1;
  END WHILE;
END//
CREATE PROCEDURE large(transactions INT, first INT, count INT)
BEGIN
  DECLARE i, a INT DEFAULT 0;
  WHILE i < transactions DO
    SET a = first + FLOOR(RAND() * (count - 400));
    UPDATE sbtest1 SET c = LEFT(CONCAT(SHA2(RAND(), 256), '-', c), 119) WHERE id BETWEEN a AND a + 399;
    SET i = i + 1;
  END WHILE;
END//
";

/// What the log is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// As said above.
    Ordinary,
    /// Only transactions that insert one row, of about 400 bytes each.
    Small,
    /// Only transactions that insert one row of 8 KiB that nothing can compress.
    Noise,
}

/// A source with its backlog. It writes nothing more.
#[derive(Debug)]
pub struct Backlog {
    /// The source.
    pub server: Server,
    /// Its files, oldest first.
    pub files: Vec<LogFile>,
}

impl Backlog {
    /// Starts a server in `dir` and makes at least `bytes` bytes of log.
    ///
    /// # Errors
    /// When the server does not do its work, or has semi-sync switched on.
    pub fn make(script: &Path, server: &str, dir: &Path, bytes: u64, mix: Mix) -> anyhow::Result<Backlog> {
        let mut server = Server::start(script, server, dir.to_owned(), None, &OPTIONS.map(str::to_owned))?;
        let mut session = server.session()?;
        session.query(&format!("SET @rows = {}", CLIENTS * ROWS))?;
        let statements: Vec<&str> = SCHEMA.split("//").map(str::trim).filter(|sql| !sql.is_empty()).collect();
        session.run(&statements)?;
        let mut grown = (0, Instant::now());
        loop {
            let len = len(&session.log_files()?);
            if len >= bytes {
                break;
            }
            if len > grown.0 {
                grown = (len, Instant::now());
            } else if grown.1.elapsed() > PATIENCE {
                bail!("the source's log has stayed at {len} of {bytes} bytes for {PATIENCE:?}");
            }
            write(&server, mix)?;
        }
        // So that nothing is left to be done in the background.
        server.stop()?;
        server.restart(&[])?;
        let mut session = server.session()?;
        for name in ["rpl_semi_sync_source_enabled", "rpl_semi_sync_master_enabled"] {
            let value = session.query(&format!("SHOW GLOBAL VARIABLES LIKE '{name}'"))?;
            if value.get(0, "Value") == Some("ON") {
                bail!("{name} is ON: the backlog is to be pulled without semi-sync; switch it off");
            }
        }
        Ok(Backlog { files: session.log_files()?, server })
    }

    /// Bytes of all files.
    pub fn len(&self) -> u64 {
        len(&self.files)
    }

    /// File and position at which it ends.
    ///
    /// # Errors
    /// When the source has no file.
    pub fn end(&self) -> anyhow::Result<(&str, u64)> {
        let last = self.files.last().context("the source has no files")?;
        Ok((&last.name, last.len))
    }

    /// Never true: a source has a file.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

fn len(files: &[LogFile]) -> u64 {
    files.iter().map(|file| file.len).sum()
}

/// Lets every client run its share once.
fn write(server: &Server, mix: Mix) -> anyhow::Result<()> {
    let share = |client: usize| {
        let (mut session, first) = (server.session()?, client * ROWS + 1);
        session.set_timeout(PATIENCE);
        match mix {
            Mix::Ordinary => session.run(&[
                format!("CALL bench.small({SMALL_TRANSACTIONS}, {first}, {ROWS})"),
                format!("CALL bench.large({LARGE_TRANSACTIONS}, {first}, {ROWS})"),
            ]),
            Mix::Small => session.run(&[format!("CALL bench.tiny({TINY_TRANSACTIONS})")]),
            Mix::Noise => session.run(&[format!("CALL bench.noise({NOISE_TRANSACTIONS})")]),
        }
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|client| scope.spawn(move || share(client))).collect();
        clients
            .into_iter()
            .try_for_each(|client| client.join().ok().context("a client that makes the backlog panicked")?)
    })
}
