//! The ways to apply a log to a server that was restored from a backup.

use super::args::{Durability, RestoreArgs};
use super::scene::{Scene, check_sums, copy};
use anyhow::{Context, bail};
use rig::server::{Server, Session};
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longest time for one.
const PATIENCE: Duration = Duration::from_secs(1800);

/// A way, with its threads that apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// `mysqlbinlog FILES | mysql`.
    Pipe,
    /// The files as relay logs of a replication that has no source.
    Relay {
        /// Threads.
        workers: u32,
    },
    /// `binlogd restore`.
    Binlogd {
        /// Threads.
        workers: u32,
    },
    /// `binlogd restore --statements`.
    Statements,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Pipe => f.write_str("mysqlbinlog \\| mysql"),
            Way::Relay { workers } => write!(f, "as relay logs, {workers} threads"),
            Way::Binlogd { workers } => write!(f, "binlogd restore, {workers} threads"),
            Way::Statements => f.write_str("binlogd restore --statements"),
        }
    }
}

impl Way {
    /// Applies everything to a new server in `dir`; in seconds.
    ///
    /// # Errors
    /// When the server does not come to the end, or has other rows than the source.
    pub(super) fn measure(
        self,
        args: &RestoreArgs,
        scene: &Scene,
        durability: Durability,
        dir: &Path,
    ) -> anyhow::Result<f64> {
        let mut options = durability.options();
        options.extend(
            ["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--relay-log=relay"].map(str::to_owned),
        );
        let script = &args.servers_script;
        let target = Server::start(script, &args.server, dir.to_owned(), Some(&scene.backup), &options)?;
        let mut session = target.session()?;
        session.set_timeout(PATIENCE);
        // What was written for an earlier one is not to be written in this one's time.
        rustix::fs::sync();
        let began = Instant::now();
        match self {
            Way::Pipe => pipe(scene, &target),
            Way::Relay { workers } => relay(scene, &target, &mut session, workers),
            Way::Binlogd { workers } => binlogd(args, scene, &target, &["--workers", &workers.to_string()]),
            Way::Statements => binlogd(args, scene, &target, &["--statements"]),
        }
        .with_context(|| self.to_string())?;
        let seconds = began.elapsed().as_secs_f64();
        let rows = check_sums(&mut session)?;
        if rows != scene.rows {
            bail!("{self}: the check sum of the rows is {rows}, and that of the source's {}", scene.rows);
        }
        Ok(seconds)
    }
}

fn ran(mut command: Command) -> anyhow::Result<()> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

fn pipe(scene: &Scene, target: &Server) -> anyhow::Result<()> {
    let mut command = Command::new("bash");
    command.args([
        "-c",
        "set -o pipefail; mysqlbinlog=$1 mysql=$2 socket=$3; shift 3; \"$mysqlbinlog\" \"$@\" | \"$mysql\" --host=localhost --protocol=socket --socket=\"$socket\"",
        "bash",
    ]);
    command.args([target.fact("MYSQLBINLOG")?, target.fact("MYSQL")?, target.fact("SOCKET")?]);
    let datadir = Path::new(scene.source.fact("DATADIR")?);
    command.args(scene.files.iter().map(|file| datadir.join(&file.name)));
    ran(command)
}

fn relay(scene: &Scene, target: &Server, session: &mut Session, workers: u32) -> anyhow::Result<()> {
    let (from, to) = (Path::new(scene.source.fact("DATADIR")?), Path::new(target.fact("DATADIR")?));
    let mut index = String::new();
    for (number, file) in scene.files.iter().enumerate() {
        let name = format!("relay.{:06}", number + 1);
        copy(&from.join(&file.name), &to.join(&name))?;
        index += &format!("./{name}\n");
    }
    std::fs::write(to.join("relay.index"), index)?;
    session.run(&[
        format!("SET GLOBAL replica_parallel_workers = {workers}"),
        "CHANGE REPLICATION SOURCE TO RELAY_LOG_FILE = 'relay.000001', RELAY_LOG_POS = 4, SOURCE_HOST = 'nowhere'".to_owned(),
        "START REPLICA SQL_THREAD".to_owned(),
    ])?;
    let everything = scene.source.session()?.query("SELECT @@GLOBAL.gtid_executed AS gtids")?;
    let everything = everything.get(0, "gtids").unwrap_or_default().replace('\n', "");
    let limit = PATIENCE.as_secs();
    let reached =
        session.query(&format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{everything}', {limit}) AS timeout"))?;
    if reached.get(0, "timeout") != Some("0") {
        let status = session.query("SHOW REPLICA STATUS")?;
        bail!("it does not come to the end: {}", status.get(0, "Last_SQL_Error").unwrap_or_default());
    }
    session.run(&["STOP REPLICA", "RESET REPLICA ALL"])
}

fn binlogd(args: &RestoreArgs, scene: &Scene, target: &Server, way: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new(&args.common.binlogd);
    command.arg("restore").arg("--into").arg(format!("mysql://root@127.0.0.1:{}", target.port()));
    command.arg("--from").arg(&scene.copy).args(["--until", "end", "--yes", "--allow-clients"]);
    // The backup has tables that were in no log.
    command.args(["--backup-at", "nothing", "--tls", "disabled"]).args(way);
    ran(command)
}
