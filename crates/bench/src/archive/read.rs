//! A backlog sent to a reader: from the disk, and from the archive by a binlogd whose disk does not have it.

use super::archiving::{Archive, Place};
use super::args::ArchiveArgs;
use super::scene::{self, Scene};
use crate::backlog::USER;
use crate::daemon::{Daemon, is_at};
use crate::serve::null_reader::NullReaders;
use crate::serve::{PASSWORD, catch_up, serve_table, serving_port};
use anyhow::bail;
use rig::statistics::{Table, median, with_spread};
use std::fmt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Where the bytes lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Disk,
    Archive(Place),
}

/// Who reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// Takes what comes and throws it away: as fast as it can be sent.
    Null,
    /// A stock program, which writes what comes into files.
    Mysqlbinlog,
    /// A new MySQL, which also applies what comes, with four workers.
    Replica,
}

/// In the order of the table. The first of each reader is what its others are held against.
const ALL: [(Reader, From); 9] = [
    (Reader::Null, From::Disk),
    (Reader::Null, From::Archive(Place::S3)),
    (Reader::Null, From::Archive(Place::Folder)),
    (Reader::Mysqlbinlog, From::Disk),
    (Reader::Mysqlbinlog, From::Archive(Place::S3)),
    (Reader::Mysqlbinlog, From::Archive(Place::Folder)),
    (Reader::Replica, From::Disk),
    (Reader::Replica, From::Archive(Place::S3)),
    (Reader::Replica, From::Archive(Place::Folder)),
];

impl fmt::Display for From {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            From::Disk => f.write_str("this disk"),
            From::Archive(place) => write!(f, "the archive in {place}"),
        }
    }
}

impl fmt::Display for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reader::Null => "one that reads and does nothing",
            Reader::Mysqlbinlog => "mysqlbinlog --raw",
            Reader::Replica => "a replica that applies it",
        })
    }
}

/// One stream to its end.
struct Read {
    seconds: f64,
    /// On a processor, of binlogd.
    processor: f64,
    /// Part of the bytes that the reader got from the disk of a binlogd with an archive: the file that the source writes.
    on_disk: f64,
    highest_mib: f64,
}

/// Measures and prints a table.
///
/// # Errors
/// When a program does not do its work, or a reader does not get everything.
pub(super) fn run(args: &ArchiveArgs, scene: &Scene) -> anyhow::Result<()> {
    let archives =
        [Place::S3, Place::Folder].map(|place| Archive::new(scene, place, args.level, "read".into()));
    archives.iter().try_for_each(|archive| archive.fill(1).map(drop))?;
    let rounds = args.common.in_turn(&ALL, |round, (reader, from)| {
        let read = measure(args, scene, &archives, (reader, from))?;
        eprintln!("round {}: {reader}, from {from}: {:.2} s", round + 1, read.seconds);
        Ok(read)
    })?;
    let megabytes = scene.backlog.len() as f64 / 1e6;
    println!(
        "## Sending {megabytes:.0} MB in {} files to one reader, compressed at level {} and encrypted in the archive, {} rounds\n",
        scene.backlog.files.len(),
        args.level,
        args.common.rounds
    );
    let mut table = Table::new(&[
        "reader",
        "from",
        "MB/s",
        "against this disk",
        "the part on the disk all the same",
        "processor s a GB",
        "VmHWM MiB",
    ]);
    for ((reader, from), of) in ALL.iter().zip(&rounds) {
        let from_disk = ALL.iter().position(|one| *one == (*reader, From::Disk)).unwrap_or_default();
        let speeds: Vec<f64> = of.iter().map(|read| megabytes / read.seconds).collect();
        let against = of.iter().zip(&rounds[from_disk]).map(|(one, disk)| disk.seconds / one.seconds);
        table.row(vec![
            reader.to_string(),
            from.to_string(),
            with_spread(&speeds, 0),
            with_spread(&against.collect::<Vec<_>>(), 2),
            format!("{:.2}", median(of.iter().map(|read| read.on_disk))),
            format!("{:.2}", median(of.iter().map(|read| read.processor)) / (megabytes / 1e3)),
            format!("{:.1}", median(of.iter().map(|read| read.highest_mib))),
        ]);
    }
    table.print();
    Ok(())
}

fn measure(
    args: &ArchiveArgs,
    scene: &Scene,
    archives: &[Archive<'_>],
    (reader, from): (Reader, From),
) -> anyhow::Result<Read> {
    // A copy that begins from the archive has what its source writes, and nothing else.
    let begun = tempfile::Builder::new().prefix("begun-").tempdir_in(&scene.dir)?;
    let archive = archives.iter().find(|archive| from == From::Archive(archive.place()));
    let (data, table) = match archive {
        None => (scene.data.clone(), String::new()),
        Some(archive) => (begun.path().join("data"), archive.table_to_read()?),
    };
    let (file, position) = scene.backlog.end()?;
    let text = format!("{table}{}", serve_table());
    let daemon = scene.start_on(&data, &text, 1, &scene.credentials()?)?;
    daemon.wait("the copy has the source's end", |status| {
        scene.is_all(status, 1, |source| {
            is_at(&source["positions"]["durable"], file, position)
                && (archive.is_none() || is_at(&source["archive"]["archived"], file, position))
        })
    })?;
    let on_disk = scene::bytes_below(&data)? as f64 / scene.backlog.len() as f64;
    let before = daemon.usage()?;
    let seconds = pull(args, scene, &daemon, reader)?;
    let after = daemon.usage()?;
    daemon.end()?;
    Ok(Read {
        seconds,
        processor: after.since(&before).processor_seconds,
        on_disk,
        highest_mib: after.memory.highest as f64 / 1024.0,
    })
}

/// Lets it read everything; in seconds.
fn pull(args: &ArchiveArgs, scene: &Scene, daemon: &Daemon, reader: Reader) -> anyhow::Result<f64> {
    let port = serving_port(daemon)?;
    let first = &scene.backlog.files[0].name;
    let began = Instant::now();
    match reader {
        Reader::Null => {
            let bytes = NullReaders::start((port, PASSWORD), (first, 4), 1, true)?.finish()?;
            // Packets with a byte of status each, and no magic at the beginning of a file.
            let least = scene.backlog.len() - 4 * scene.backlog.files.len() as u64;
            if bytes < least {
                bail!("the reader got {bytes} bytes of at least {least}: its dump has ended early");
            }
            Ok(began.elapsed().as_secs_f64())
        }
        Reader::Mysqlbinlog => {
            let out = tempfile::Builder::new().prefix("raw-").tempdir_in(&scene.dir)?;
            let mut command = Command::new(scene.backlog.server.fact("MYSQLBINLOG")?);
            command.args(["--raw", "--read-from-remote-server", "--to-last-log", "--host=127.0.0.1"]);
            command.args(["--ssl-mode=DISABLED", &format!("--port={port}"), &format!("--user={USER}")]);
            command
                .arg(format!("--password={PASSWORD}"))
                .arg(format!("--result-file={}/", out.path().display()));
            scene::run(command.arg(first))?;
            let seconds = began.elapsed().as_secs_f64();
            let originals = Path::new(scene.backlog.server.fact("DATADIR")?);
            crate::compare::same_bytes(originals, &scene.backlog.files, |name| Ok(out.path().join(name)))?;
            Ok(seconds)
        }
        Reader::Replica => {
            let dir = tempfile::Builder::new().prefix("replica-").tempdir_in(&scene.dir)?;
            let server = (&*args.servers_script, &*args.server);
            catch_up(server, &scene.backlog, (port, PASSWORD), &dir.path().join("server"))
        }
    }
}
