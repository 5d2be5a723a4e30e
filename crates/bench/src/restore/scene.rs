//! The source with its log, a backup from before that log, and binlogd's copy.

use super::args::RestoreArgs;
use crate::backlog::USER;
use crate::daemon::{Daemon, source_table};
use anyhow::{Context, bail};
use rig::server::{LogFile, Server, Session};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Rows of each session.
const ROWS: usize = 5_000;

/// Longest statement: a session's share of the log.
const PATIENCE: Duration = Duration::from_secs(900);

/// What makes a log quickly. Nothing of it has to survive a crash.
const FAST: [&str; 5] = [
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=OFF",
    "--innodb-buffer-pool-size=512M",
    "--max-binlog-size=64M",
];

/// See [the module](self).
#[derive(Debug)]
pub(super) struct Scene {
    /// It writes nothing more.
    pub(super) source: Server,
    /// Its files, the oldest first; the first one begins where the backup ends.
    pub(super) files: Vec<LogFile>,
    /// Transactions in them.
    pub(super) transactions: u64,
    /// A data folder that no server uses.
    pub(super) backup: PathBuf,
    /// binlogd's data folder.
    pub(super) copy: PathBuf,
    /// Its check sums.
    pub(super) rows: String,
}

impl Scene {
    /// Makes everything in `dir`.
    ///
    /// # Errors
    /// When a server does not do its work.
    pub(super) fn make(args: &RestoreArgs, dir: &Path) -> anyhow::Result<Scene> {
        let mut options: Vec<String> = FAST.map(str::to_owned).to_vec();
        options.extend(["--gtid-mode=ON", "--enforce-gtid-consistency=ON"].map(str::to_owned));
        if args.server.starts_with("mysql-8.0") {
            options.push("--binlog-transaction-dependency-tracking=WRITESET".to_owned());
        }
        let script = &args.servers_script;
        let mut source = Server::start(script, &args.server, dir.join("source"), None, &options)?;
        let mut session = source.session()?;
        session.set_timeout(PATIENCE);
        session.query(&format!("SET @rows = {}", args.sessions * ROWS))?;
        session.run(&schema())?;
        let forget = match args.server.starts_with("mysql-8.0") {
            true => "RESET MASTER",
            false => "RESET BINARY LOGS AND GTIDS",
        };
        session.run(&[forget])?;
        source.stop()?;
        let (datadir, backup) = (PathBuf::from(source.fact("DATADIR")?), dir.join("backup"));
        copy(&datadir, &backup)?;
        source.restart(&[])?;
        load(args, &source)?;
        let mut session = source.session()?;
        session.query("FLUSH BINARY LOGS")?;
        let copy = make_copy(args, dir, source.port(), &mut session)?;
        let files = session.log_files()?;
        let rows = check_sums(&mut session)?;
        let executed = session.query("SELECT @@GLOBAL.gtid_executed AS gtids")?;
        let transactions = transactions(executed.get(0, "gtids").unwrap_or_default())?;
        Ok(Scene { source, files, transactions, backup, copy, rows })
    }

    /// Bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.len).sum()
    }
}

/// Table and procedure. Nothing of that is in the log.
fn schema() -> Vec<&'static str> {
    vec![
        "SET sql_log_bin = 0",
        "CREATE DATABASE bench",
        "CREATE USER bench@'%'",
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO bench@'%'",
        "CREATE TABLE bench.sbtest1 (id INT NOT NULL PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY k_1 (k)) \
         ENGINE=InnoDB",
        "SET SESSION cte_max_recursion_depth = 10000000",
        "INSERT INTO bench.sbtest1 WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < @rows) SELECT i, i * 7919 % \
         @rows, RPAD(SHA2(i, 256), 119, '0'), LEFT(SHA2(i, 256), 59) FROM n",
        "CREATE PROCEDURE bench.small(transactions INT, first INT, count INT)
         BEGIN
           DECLARE i, a, b, d INT DEFAULT 0;
           WHILE i < transactions DO
             SET a = first + FLOOR(RAND() * count), b = first + FLOOR(RAND() * count), d = first + FLOOR(RAND() * count);
             START TRANSACTION;
             UPDATE bench.sbtest1 SET k = k + 1 WHERE id = a;
             UPDATE bench.sbtest1 SET c = RPAD(CONCAT(SHA2(RAND(), 256), '-', SHA2(i, 256)), 119, '1') WHERE id = b;
             DELETE FROM bench.sbtest1 WHERE id = d;
             INSERT INTO bench.sbtest1 VALUES (d, i, RPAD(SHA2(RAND(), 256), 119, '2'), LEFT(SHA2(i, 256), 59));
             COMMIT;
             SET i = i + 1;
           END WHILE;
         END",
    ]
}

/// Every session does its share in its own rows.
fn load(args: &RestoreArgs, source: &Server) -> anyhow::Result<()> {
    let share = |place: usize| {
        let mut session = source.session()?;
        session.set_timeout(PATIENCE);
        let (count, first) = (args.transactions / args.sessions, place * ROWS + 1);
        session.query(&format!("CALL bench.small({count}, {first}, {ROWS})")).map(drop)
    };
    std::thread::scope(|scope| {
        let sessions: Vec<_> = (0..args.sessions).map(|place| scope.spawn(move || share(place))).collect();
        sessions
            .into_iter()
            .try_for_each(|session| session.join().ok().context("a session of the load panicked")?)
    })
}

/// Lets binlogd copy everything.
fn make_copy(args: &RestoreArgs, dir: &Path, port: u16, session: &mut Session) -> anyhow::Result<PathBuf> {
    let data = dir.join("copy");
    std::fs::create_dir(&data)?;
    let text = source_table("bench", port, USER);
    let daemon = Daemon::start(&args.common.binlogd, dir, &data, &text, &[])?;
    let last = session.log_files()?.pop().context("the source has no files")?;
    daemon.wait("everything is durable", |status| {
        let durable = &status["sources"][0]["positions"]["durable"];
        durable["file"] == last.name.as_str() && durable["position"] == last.len
    })?;
    daemon.end()?;
    Ok(data)
}

/// Copies a folder with what is in it.
pub(super) fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let done = Command::new("cp").arg("-a").arg(from).arg(to).status()?;
    if !done.success() {
        bail!("cp -a {} {} failed: {done}", from.display(), to.display());
    }
    Ok(())
}

/// Of the table that is written to.
pub(super) fn check_sums(session: &mut Session) -> anyhow::Result<String> {
    let sums = session.query("CHECKSUM TABLE bench.sbtest1")?;
    Ok(sums.get(0, "Checksum").context("no check sum")?.to_owned())
}

/// How many a set names that has one server's GTIDs from 1 on.
fn transactions(executed: &str) -> anyhow::Result<u64> {
    let (_, last) =
        executed.rsplit_once('-').with_context(|| format!("{executed:?} is not of one server"))?;
    Ok(last.trim().parse()?)
}
