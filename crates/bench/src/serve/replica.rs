//! A real replica with four workers that catches up from nothing, from the source and from binlogd.

use super::args::ServeArgs;
use super::scene::{SENDERS, Scene, Sender};
use crate::backlog::{Backlog, USER};
use anyhow::{Context, bail};
use rig::server::Server;
use rig::statistics::{Table, with_spread};
use std::path::Path;
use std::time::{Duration, Instant};

/// Options of the replica: nothing but its applier shall limit it.
const OPTIONS: [&str; 8] = [
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=OFF",
    "--innodb-buffer-pool-size=512M",
    "--innodb-redo-log-capacity=1G",
    "--skip-log-bin",
    "--replica-parallel-workers=4",
    "--server-id=77",
];

/// Longest time to catch up.
const PATIENCE: Duration = Duration::from_secs(900);

/// Measures and prints one table.
///
/// # Errors
/// When the replica does not get there.
pub(super) fn run(args: &ServeArgs, scene: &Scene, dir: &Path) -> anyhow::Result<()> {
    println!("## A replica with 4 workers catches up, {} rounds\n", args.common.rounds);
    let rounds = args.common.in_turn(&SENDERS, |round, sender| {
        let dir = dir.join(format!("replica-{round}-{}", u8::from(sender == Sender::Source)));
        let (port, password, _) = scene.sender(sender);
        let seconds = catch_up((&args.servers_script, &args.server), &scene.backlog, (port, password), &dir)
            .with_context(|| sender.to_string())?;
        eprintln!("round {}: a replica of {sender}: {seconds:.2} s", round + 1);
        Ok(seconds)
    })?;
    let mut table = Table::new(&["of", "seconds", "against the source"]);
    for (sender, seconds) in SENDERS.iter().zip(&rounds) {
        let ratios: Vec<f64> = seconds.iter().zip(&rounds[0]).map(|(one, source)| one / source).collect();
        table.row(vec![sender.to_string(), with_spread(seconds, 1), with_spread(&ratios, 2)]);
    }
    table.print();
    Ok(())
}

/// Lets a new replica in the folder `dir` read from `port` until it has everything of `backlog`; in seconds.
///
/// # Errors
/// When it does not get there.
pub(crate) fn catch_up(
    (servers_script, server): (&Path, &str),
    backlog: &Backlog,
    (port, password): (u16, &str),
    dir: &Path,
) -> anyhow::Result<f64> {
    let everything = backlog.server.session()?.query("SELECT @@GLOBAL.gtid_executed AS gtids")?;
    let everything = everything.get(0, "gtids").unwrap_or_default().replace('\n', "");
    let replica = Server::start(servers_script, server, dir.to_owned(), None, &OPTIONS.map(str::to_owned))?;
    let mut session = replica.session()?;
    session.set_timeout(PATIENCE);
    session.run(&[format!(
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, SOURCE_USER = '{USER}', \
         SOURCE_PASSWORD = '{password}', SOURCE_SSL = 0, GET_SOURCE_PUBLIC_KEY = 1, SOURCE_AUTO_POSITION = 1"
    )])?;
    let began = Instant::now();
    session.run(&["START REPLICA"])?;
    let limit = PATIENCE.as_secs();
    let reached =
        session.query(&format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{everything}', {limit}) AS timeout"))?;
    if reached.get(0, "timeout") != Some("0") {
        let status = session.query("SHOW REPLICA STATUS")?;
        let said = |column| status.get(0, column).unwrap_or_default().to_owned();
        bail!(
            "the replica has not caught up within {PATIENCE:?}: {} {}",
            said("Last_IO_Error"),
            said("Last_SQL_Error")
        );
    }
    Ok(began.elapsed().as_secs_f64())
}
