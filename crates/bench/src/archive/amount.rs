//! What is uploaded at a steady pace: every object that was ever made, beside the compressed bytes of the log.

use super::scene::{self, Key};
use crate::backlog::{Backlog, Mix, USER};
use crate::daemon::{Daemon, is_at, source_table};
use anyhow::{Context, bail};
use rig::machine;
use rig::object_store::program;
use rig::statistics::Table;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Arguments of `binlogd-bench archive-amount`.
#[derive(Debug, Clone, clap::Args)]
pub struct AmountArgs {
    /// The binary under test.
    #[arg(long, default_value = "target/release/binlogd")]
    pub binlogd: PathBuf,
    /// Folder on the disk to use; a temporary folder is made in it and removed.
    #[arg(long, default_value = "target")]
    pub dir: PathBuf,
    /// Seconds for which the sources write.
    #[arg(long, default_value_t = 300)]
    pub seconds: u64,
    /// Bytes of log a second, one for each source; all are received by one binlogd.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000_000, 10_000, 0])]
    pub rates: Vec<u64>,
    /// Seconds of `interval`; binlogd's own default.
    #[arg(long, default_value_t = 10)]
    pub interval: u64,
    /// Level of zstd, of the archive and of what it is compared with; binlogd's own default.
    #[arg(long, default_value_t = 3)]
    pub level: u32,
    /// The sources: a name of `scripts/servers list`, a MySQL.
    #[arg(long, default_value = "mysql-9.7")]
    pub server: String,
    /// The script that starts them.
    #[arg(long, default_value = "scripts/servers")]
    pub servers_script: PathBuf,
    /// The script that knows where `zstd` and `age-keygen` are.
    #[arg(long, default_value = "scripts/stores")]
    pub stores_script: PathBuf,
}

impl AmountArgs {
    /// Looks whether it can begin, and prints what it is measured on.
    ///
    /// # Errors
    /// When binlogd was not built, or the disk cannot be written.
    pub fn begin(&self) -> anyhow::Result<()> {
        if !self.binlogd.is_file() {
            bail!("{} is not there: build it, or name it with --binlogd", self.binlogd.display());
        }
        machine::print(&self.dir)
    }
}

/// A writer looks so often whether its log is as long as it should be.
const PACE: Duration = Duration::from_millis(100);

/// About the bytes of one transaction of [`Backlog`]'s procedure `small`.
const TRANSACTION_BYTES: u64 = 1900;

/// Most transactions between two looks.
const TRANSACTIONS_MAX: u64 = 500;

/// Longest wait for the last file to be finished in the archive, beside the interval.
const PATIENCE: Duration = Duration::from_secs(60);

/// A night, for which the price of a quiet source is said.
const NIGHT: f64 = 8.0 * 3600.0;

/// One source, and what its archive had when the counting began.
struct Written {
    rate: u64,
    name: String,
    backlog: Backlog,
    before: Objects,
    /// Files up to here were there before.
    files_before: usize,
}

/// Objects in the archive of one source.
#[derive(Debug, Default, Clone, Copy)]
struct Objects {
    /// Of segments.
    data: Kind,
    commits: Kind,
    snapshots: Kind,
    /// Of finished files: for people, and for binlogd.
    lists: Kind,
}

/// Objects of one kind.
#[derive(Debug, Default, Clone, Copy)]
struct Kind {
    count: u64,
    bytes: u64,
}

impl Kind {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }

    fn since(self, before: Kind) -> Kind {
        Kind { count: self.count - before.count, bytes: self.bytes - before.bytes }
    }
}

impl Objects {
    /// Counts what stands below the folder of a source. Nothing is ever removed there, so that is all that was ever made.
    fn count(folder: &Path) -> anyhow::Result<Objects> {
        let mut objects = Objects::default();
        objects.walk(folder)?;
        Ok(objects)
    }

    fn walk(&mut self, folder: &Path) -> anyhow::Result<()> {
        for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if path.is_dir() {
                self.walk(&path)?;
                continue;
            }
            // One that is just being written has a name with a dot in front, and is counted when it has its own.
            if name.starts_with('.') {
                continue;
            }
            let kind = match name.split_once('.').map(|(_, ending)| ending) {
                Some("json") => &mut self.commits,
                Some("json.zst") => &mut self.snapshots,
                Some("sha256" | "segments.json.zst") => &mut self.lists,
                Some("zst" | "zst.age") => &mut self.data,
                _ => bail!("{} is no object of an archive", path.display()),
            };
            kind.add(entry.metadata()?.len());
        }
        Ok(())
    }

    fn since(self, before: Objects) -> Objects {
        Objects {
            data: self.data.since(before.data),
            commits: self.commits.since(before.commits),
            snapshots: self.snapshots.since(before.snapshots),
            lists: self.lists.since(before.lists),
        }
    }

    fn all(self) -> Kind {
        let kinds = [self.data, self.commits, self.snapshots, self.lists];
        Kind {
            count: kinds.iter().map(|kind| kind.count).sum(),
            bytes: kinds.iter().map(|kind| kind.bytes).sum(),
        }
    }
}

/// Runs it and prints a table.
///
/// # Errors
/// When a program does not do its work.
pub fn run(args: &AmountArgs) -> anyhow::Result<()> {
    let dir = tempfile::Builder::new().prefix("binlogd-amount-").tempdir_in(&args.dir)?;
    let dir = dir.path().canonicalize()?;
    let archive = dir.join("archive");
    let mut sources = Vec::new();
    for (number, rate) in args.rates.iter().enumerate() {
        let name = format!("s{}", number + 1);
        let backlog = Backlog::make(&args.servers_script, &args.server, &dir.join(&name), 0, Mix::Ordinary)?;
        sources.push(Written { rate: *rate, name, backlog, before: Objects::default(), files_before: 0 });
    }
    let key = Key::make(&args.stores_script, &dir)?;
    let (folder, level, interval) = (archive.display(), args.level, args.interval);
    let mut text = format!(
        "[archive]\nurl = \"file://{folder}\"\nlevel = {level}\ninterval = \"{interval}s\"\nrecipients = [\"{}\"]\n",
        key.public
    );
    for source in &sources {
        text += &source_table(&source.name, source.backlog.server.port(), USER);
    }
    let daemon = Daemon::start(&args.binlogd, &dir, &dir.join("data"), &text, &[])?;
    for (index, source) in sources.iter_mut().enumerate() {
        source.files_before = finish_file(&daemon, args, index, source, &archive)?;
        source.before = Objects::count(&archive.join(&source.name))?;
    }
    let seconds = Duration::from_secs(args.seconds);
    std::thread::scope(|scope| {
        let writers: Vec<_> =
            sources.iter().map(|source| scope.spawn(move || write(source, seconds))).collect();
        writers.into_iter().try_for_each(|writer| writer.join().ok().context("a writer panicked")?)
    })?;
    print(args, &daemon, &mut sources, &archive)?;
    daemon.end()
}

/// Lets the source begin a new file, and waits until the archive has finished the one before. The count of files before the new one.
fn finish_file(
    daemon: &Daemon,
    args: &AmountArgs,
    index: usize,
    source: &Written,
    archive: &Path,
) -> anyhow::Result<usize> {
    let mut session = source.backlog.server.session()?;
    session.query("FLUSH BINARY LOGS")?;
    let files = session.log_files()?;
    let [.., last, new] = &files[..] else { bail!("a source has no two files after FLUSH BINARY LOGS") };
    daemon.wait("the end of the source's log is archived", |status| {
        is_at(&status["sources"][index]["archive"]["archived"], &new.name, new.len)
    })?;
    let deadline = Instant::now() + PATIENCE + Duration::from_secs(args.interval);
    while !has_list(&archive.join(&source.name), &last.name)? {
        if Instant::now() > deadline {
            bail!("{} of {} has not been finished in the archive", last.name, source.name);
        }
        std::thread::sleep(PACE);
    }
    // The commit comes behind the list, and both before what is looked at next.
    let commits = |status: &serde_json::Value| status["sources"][index]["archive"]["commits"].clone();
    let mut seen = commits(&daemon.wait("an answer", |_| true)?);
    loop {
        std::thread::sleep(Duration::from_secs(2));
        let now = commits(&daemon.wait("an answer", |_| true)?);
        if now == seen {
            return Ok(files.len() - 1);
        }
        seen = now;
    }
}

/// Whether a file of the source has its list in the archive: the last thing that is made of it.
fn has_list(folder: &Path, file: &str) -> anyhow::Result<bool> {
    for timeline in fs::read_dir(folder).into_iter().flatten() {
        for object in fs::read_dir(timeline?.path().join(file)).into_iter().flatten() {
            if object?.file_name().to_string_lossy().ends_with(".sha256") {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Writes at the source's pace.
fn write(source: &Written, length: Duration) -> anyhow::Result<()> {
    let mut session = source.backlog.server.session()?;
    let bytes = |files: Vec<rig::server::LogFile>| files.iter().map(|file| file.len).sum::<u64>();
    let (began, begin) = (Instant::now(), bytes(session.log_files()?));
    while began.elapsed() < length {
        let wanted = (source.rate as f64 * began.elapsed().as_secs_f64()) as u64;
        let written = bytes(session.log_files()?) - begin;
        if source.rate > 0 && written < wanted {
            let transactions = ((wanted - written) / TRANSACTION_BYTES).clamp(1, TRANSACTIONS_MAX);
            session.query(&format!("CALL bench.small({transactions}, 1, 20000)"))?;
        }
        std::thread::sleep(PACE);
    }
    Ok(())
}

fn print(args: &AmountArgs, daemon: &Daemon, sources: &mut [Written], archive: &Path) -> anyhow::Result<()> {
    println!(
        "## What is uploaded in {} s, interval {} s, zstd level {}, encrypted with age\n",
        args.seconds, args.interval, args.level
    );
    let mut table = Table::new(&[
        "log a second",
        "log",
        "zstd of whole files",
        "uploaded",
        "uploaded / zstd",
        "of it commits",
        "of it snapshots",
        "segments",
        "PUTs",
        "PUTs a night of 8 h",
        "MB a night",
    ]);
    let zstd = program(&args.stores_script, "zstd")?;
    for (index, source) in sources.iter().enumerate() {
        let folder = archive.join(&source.name);
        // What a source that writes nothing costs, is seen before its file is ended.
        let during = Objects::count(&folder)?.since(source.before);
        let (mut plain, mut compressed, mut uploaded) = (0, 0, during);
        if source.rate > 0 {
            let end = finish_file(daemon, args, index, source, archive)?;
            uploaded = Objects::count(&folder)?.since(source.before);
            let files = source.backlog.server.session()?.log_files()?;
            let datadir = Path::new(source.backlog.server.fact("DATADIR")?);
            for file in &files[source.files_before..end] {
                plain += file.len;
                compressed += compressed_len(&zstd, args.level, &datadir.join(&file.name))?;
            }
        }
        let (all, nights) = (uploaded.all(), NIGHT / args.seconds as f64);
        let kilobytes = |bytes: u64| format!("{:.1} kB", bytes as f64 / 1e3);
        table.row(vec![
            format!("{} kB", source.rate as f64 / 1e3),
            kilobytes(plain),
            kilobytes(compressed),
            kilobytes(all.bytes),
            match compressed {
                0 => String::new(),
                compressed => format!("{:.3}", all.bytes as f64 / compressed as f64),
            },
            kilobytes(uploaded.commits.bytes),
            kilobytes(uploaded.snapshots.bytes),
            uploaded.data.count.to_string(),
            all.count.to_string(),
            format!("{:.0}", all.count as f64 * nights),
            format!("{:.1}", all.bytes as f64 * nights / 1e6),
        ]);
    }
    table.print();
    Ok(())
}

/// Bytes of what `zstd` makes of a file.
fn compressed_len(zstd: &Path, level: u32, file: &Path) -> anyhow::Result<u64> {
    let mut command = Command::new("bash");
    command.args(["-c", r#"set -o pipefail; "$1" -q "-$2" -c "$3" | wc -c"#, "bash"]).arg(zstd);
    command.arg(level.to_string()).arg(file).stdin(Stdio::null());
    scene::run(&mut command)?.trim().parse().context("what wc -c printed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_is_counted_once_by_its_kind() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str, bytes: usize| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, vec![0; bytes]).unwrap();
        };
        make("commits/00000000000000000001.json", 3);
        make("0001-a/bin.000001/0-9-ab.zst.age", 100);
        let before = Objects::count(dir.path()).unwrap();
        make("commits/00000000000000000002.json", 4);
        make("snapshots/1-ab.json.zst", 20);
        make("0001-a/bin.000001/ab.sha256", 7);
        make("0001-a/bin.000001/cd.segments.json.zst", 5);
        make("0001-a/bin.000001/9-99-ab.zst", 200);
        make("0001-a/bin.000001/.new-ab", 1000);
        let now = Objects::count(dir.path()).unwrap().since(before);
        assert_eq!((now.data.count, now.data.bytes), (1, 200));
        assert_eq!((now.commits.bytes, now.snapshots.bytes, now.lists.bytes), (4, 20, 12));
        assert_eq!((now.all().count, now.all().bytes), (5, 236));
        assert!(has_list(dir.path(), "bin.000001").unwrap() && !has_list(dir.path(), "bin.000002").unwrap());
        make("odd", 1);
        assert!(Objects::count(dir.path()).is_err());
    }
}
