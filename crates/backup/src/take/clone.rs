//! MySQL's CLONE plugin: the server copies its folder beside it, a server of the operator's is started on the copy once, and what it
//! leaves is streamed as a tar.
//!
//! ```text
//! looked at: same machine, plugin, GTIDs, room on the disk
//!   → CLONE LOCAL DATA DIRECTORY          the server writes <clone-dir>/binlogd-clone-<id>
//!   → all tablespaces are there           those that the server has before and behind
//!   → mysqld on the copy, once            recovers it, tells gtid_executed, ends
//!   → a tar, and the copy is removed      also where something failed; after a kill the next run does it
//! ```
//!
//! The start is not for comfort: a local clone has no point before it. The server writes it into `performance_schema.clone_status` of
//! the copy, out of what recovery finds there (MySQL 9.7, `clone_pfs_data.cc`), and the server that was cloned shows nothing.

use super::child::{Ran, Running, SAID_LINES_SHOWN, said};
use super::order::{ANSWER_TIMEOUT, NoBackup, Order};
use super::program::Program;
use archive::chain::backup::BackupPoint;
use archive::writer::stream::{StreamError, Uploaded};
use codec::ServerKind;
use codec::gtid::GtidState;
use rustix::fs::{FlockOperation, flock, statvfs};
use source::clock::Clock;
use source::identify::SourceIdentity;
use source::own_session::{Purpose, prepare};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;
use wire::Connection;

/// What our folders in `--clone-dir` begin with.
const OURS: &str = "binlogd-clone-";

/// What a file of ours in a copy begins with; none of them gets into the tar.
const OUR_FILE: &str = "binlogd.";

/// Room that the started server takes beside the copy, in bytes: its redo log, and its buffers for double writes.
const ROOM_FOR_START: u64 = 256 << 20;

/// How long the server may copy.
const CLONE_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 3600);

/// How long the server that is started on the copy may take to recover it, and to end.
const START_TIMEOUT: Duration = Duration::from_secs(3600);

/// Pause between two looks at it.
const START_LOOK: Duration = Duration::from_millis(50);

/// What of the server's settings the one on the copy must have too.
const SAME: &[&str] = &["lower_case_table_names", "innodb_page_size", "innodb_data_file_path"];

/// A copy of the data folder, which is removed with this.
struct Copied {
    dir: PathBuf,
    /// Held while it is there: another run would take it for a rest of a run that was killed.
    _lock: File,
}

impl Drop for Copied {
    fn drop(&mut self) {
        // What cannot be removed is told by the next run, which wants it gone.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Makes the copy, asks it for its point, and sends it.
pub(super) fn run(
    program: &Program,
    order: &Order,
    (identity, id): (&SourceIdentity, &str),
    clock: &dyn Clock,
    send: impl FnOnce(&mut (dyn Read + Send)) -> Result<Uploaded, StreamError>,
) -> Result<Ran, NoBackup> {
    let mut connection = Connection::connect(&order.server)?;
    connection.set_timeout(ANSWER_TIMEOUT);
    prepare(&mut connection, Purpose::Reader).map_err(|error| NoBackup::Refused(error.to_string()))?;
    let asked = SAME.iter().map(|name| format!("@@{name}")).collect::<Vec<_>>().join(", ");
    let same = row(&mut connection, &format!("SELECT {asked}"))?;
    can_clone(&mut connection, identity)?;
    let place = order.clone_dir.as_deref().unwrap_or_else(|| Path::new("/"));
    let copied = make_room(&mut connection, place, id)?;
    let (executed, had) = (executed(&mut connection)?, tablespaces(&mut connection)?);
    connection.set_timeout(CLONE_TIMEOUT);
    let dir = copied.dir.display();
    connection.query(&format!("CLONE LOCAL DATA DIRECTORY = '{dir}'"))?;
    connection.set_timeout(ANSWER_TIMEOUT);
    let has = tablespaces(&mut connection)?;
    if let Some(missing) = had.intersection(&has).find(|name| !copied.dir.join(name).exists()) {
        return Err(NoBackup::Tool(format!(
            "the server says that it has cloned itself, and {missing} is not in {dir}. Nothing was recorded"
        )));
    }
    let text = ask_copy(program, &same, &copied.dir, clock)?;
    let point = GtidState::parse(identity.kind, &text).map_err(|error| {
        NoBackup::Tool(format!("gtid_executed of the server on the clone is {text:?}: {error}"))
    })?;
    let after = self::executed(&mut connection)?;
    if !(point.contains_state(&executed) && after.contains_state(&point)) {
        return Err(NoBackup::Tool(format!(
            "the clone has executed {point}, which does not lie between what its server had before, {executed}, and has now, {after}: it is not \
             its clone, or a part of it. Nothing was recorded",
            point = point.to_line(),
            executed = executed.to_line(),
            after = after.to_line()
        )));
    }
    let uploaded = sent_as_tar(&copied.dir, send)?;
    Ok(Ran {
        uploaded,
        point: BackupPoint { gtids: point.to_line(), ..BackupPoint::default() },
        remarks: Vec::new(),
    })
}

/// Refuses by name a server that cannot clone itself into a folder of this machine, or whose clone would tell no point.
fn can_clone(connection: &mut Connection, identity: &SourceIdentity) -> Result<(), NoBackup> {
    let refused = |text: String| Err(NoBackup::Refused(text));
    if identity.kind != ServerKind::MySql {
        return refused("MariaDB has no CLONE: --tool mariadb-backup copies its folder".to_owned());
    }
    if !identity.has_gtids {
        return refused(
            "without GTIDs (gtid_mode = ON) a clone does not tell its point: use mysqldump".to_owned(),
        );
    }
    let plugin = connection
        .query("SELECT PLUGIN_STATUS FROM information_schema.PLUGINS WHERE PLUGIN_NAME = 'clone'")?;
    if plugin.first() != Some("ACTIVE") {
        return refused(
            "the clone plugin is not active on this server (MySQL 8.0.17 and later have it): INSTALL PLUGIN clone SONAME 'mysql_clone.so'"
                .to_owned(),
        );
    }
    let folder = connection.query("SELECT @@datadir")?.first().unwrap_or_default().to_owned();
    let card = Path::new(&folder).join("auto.cnf");
    match fs::read_to_string(&card) {
        Ok(text) if text.contains(&identity.uuid) => Ok(()),
        Ok(_) => refused(format!(
            "{} of this machine is another server's: CLONE works on the server's machine only",
            card.display()
        )),
        Err(error) => refused(format!(
            "{} cannot be read ({error}): CLONE works on the server's machine only, as root or as the server's own user",
            card.display()
        )),
    }
}

/// The folder for a copy, which is not there yet. What an earlier run left is removed.
fn make_room(connection: &mut Connection, place: &Path, id: &str) -> Result<Copied, NoBackup> {
    let failed = |what: &Path, error: io::Error| {
        NoBackup::Refused(format!("--clone-dir: {}: {error}", what.display()))
    };
    let root = fs::canonicalize(place).map_err(|error| failed(place, error))?;
    if root.to_str().is_none_or(|path| path.contains(['\'', '\\', '\n'])) {
        return Err(NoBackup::Refused(format!(
            "--clone-dir: name a folder without quotes: {}",
            root.display()
        )));
    }
    let lock = File::open(&root).map_err(|error| failed(&root, error))?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        NoBackup::Refused(format!("--clone-dir: another backup is being made in {}", root.display()))
    })?;
    for entry in fs::read_dir(&root).map_err(|error| failed(&root, error))? {
        let entry = entry.map_err(|error| failed(&root, error))?;
        if entry.file_name().to_string_lossy().starts_with(OURS) {
            fs::remove_dir_all(entry.path()).map_err(|error| failed(&entry.path(), error))?;
        }
    }
    let size = connection
        .query("SELECT CAST(SUM(GREATEST(TOTAL_EXTENTS * EXTENT_SIZE, INITIAL_SIZE)) AS UNSIGNED) FROM information_schema.FILES")?;
    let size: u64 = size.first().and_then(|digits| digits.parse().ok()).unwrap_or(0);
    let space = statvfs(&root).map_err(|error| failed(&root, error.into()))?;
    let (free, need) = (space.f_bavail.saturating_mul(space.f_frsize), size.saturating_add(ROOM_FOR_START));
    if free < need {
        return Err(NoBackup::Refused(format!(
            "--clone-dir: {} has {} MiB free, and a clone of this server needs {} MiB there until it is in the archive",
            root.display(),
            free >> 20,
            need >> 20
        )));
    }
    Ok(Copied { dir: root.join(format!("{OURS}{id}")), _lock: lock })
}

fn executed(connection: &mut Connection) -> Result<GtidState, NoBackup> {
    Ok(SourceIdentity::ask(connection)?.executed)
}

/// Files of tablespaces in the data folder, relative to it.
fn tablespaces(connection: &mut Connection) -> Result<BTreeSet<String>, NoBackup> {
    let rows = connection.query(
        "SELECT FILE_NAME FROM information_schema.FILES WHERE FILE_TYPE IN ('TABLESPACE', 'UNDO LOG')",
    )?;
    let names = rows.rows.iter().filter_map(|row| Some(String::from_utf8_lossy(row.first()?.as_deref()?)));
    Ok(names.filter_map(|name| Some(name.strip_prefix("./")?.to_owned())).collect())
}

fn row(connection: &mut Connection, question: &str) -> Result<Vec<String>, NoBackup> {
    let rows = connection.query(question)?.rows;
    let cells = rows.into_iter().next().unwrap_or_default();
    Ok(cells
        .into_iter()
        .map(|cell| String::from_utf8_lossy(&cell.unwrap_or_default()).into_owned())
        .collect())
}

/// Starts a server on the copy, which recovers it, writes down what it has executed, and ends. Nobody can reach it: it has no port, and
/// its socket lies in a folder of the server's user.
fn ask_copy(program: &Program, same: &[String], dir: &Path, clock: &dyn Clock) -> Result<String, NoBackup> {
    let mut command = program.command("").map_err(NoBackup::Refused)?;
    let name = command.get_program().to_string_lossy().into_owned();
    let not_run = |error| NoBackup::NotRun { program: name.clone(), error };
    let of_copy = |error| {
        NoBackup::Refused(format!(
            "{} cannot be used ({error}): run this as root or as the server's own user",
            dir.display()
        ))
    };
    let owner = fs::metadata(dir).map_err(of_copy)?.uid();
    let (orders, answer) = (dir.join("binlogd.init"), dir.join("binlogd.point"));
    let told = answer.display();
    let text =
        format!("SELECT @@global.gtid_executed INTO OUTFILE '{told}' FIELDS ESCAPED BY '';\nSHUTDOWN;\n");
    fs::write(&orders, text).map_err(of_copy)?;
    let place = dir.display();
    command
        .arg(format!("--datadir={place}"))
        .arg(format!("--init-file={}", orders.display()))
        .arg(format!("--secure-file-priv={place}"))
        .args(SAME.iter().zip(same).map(|(name, value)| format!("--{name}={value}")))
        .args(["--socket=binlogd.sock", "--pid-file=binlogd.pid", "--skip-networking", "--mysqlx=OFF"])
        // Of another version it would become one of that version, and the log behind it would not fit any more.
        .args(["--upgrade=NONE", "--skip-log-bin", "--event-scheduler=OFF"])
        .args(["--loose-skip-replica-start", "--loose-skip-slave-start"])
        .args(["--loose-auto-generate-certs=OFF", "--loose-sha256-password-auto-generate-rsa-keys=OFF"])
        .arg("--loose-caching-sha2-password-auto-generate-rsa-keys=OFF");
    if rustix::process::geteuid().is_root() {
        command.arg(format!("--user={owner}"));
    }
    platform::ends_with_us(&mut command);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = Running(child.map_err(&not_run)?);
    let stderr = child.0.stderr.take().ok_or_else(|| not_run(io::Error::other("it has no output")))?;
    let listener = thread::Builder::new().spawn(move || said(stderr)).map_err(&not_run)?;
    let until = clock.now() + START_TIMEOUT;
    let status = loop {
        match child.0.try_wait().map_err(&not_run)? {
            Some(status) => break Some(status),
            None if clock.now() >= until => break None,
            None => clock.sleep(START_LOOK),
        }
    };
    drop(child);
    let said = listener.join().unwrap_or_default();
    let point = fs::read_to_string(&answer).unwrap_or_default();
    match status {
        Some(status) if status.success() && !point.trim().is_empty() => {
            Ok(point.split_whitespace().collect())
        }
        status => {
            let how = status.map_or_else(|| "did not end".to_owned(), |status| format!("ended ({status})"));
            let lines: Vec<&str> = said.lines().collect();
            let last = lines[lines.len().saturating_sub(SAID_LINES_SHOWN)..].join("\n");
            Err(NoBackup::Tool(format!(
                "{name}, started on the clone, {how} and did not tell gtid_executed; it said: {last}. Nothing was recorded"
            )))
        }
    }
}

/// Sends a folder as a tar, but for what is this server's alone: a UUID must not be there twice.
fn sent_as_tar(
    dir: &Path,
    send: impl FnOnce(&mut (dyn Read + Send)) -> Result<Uploaded, StreamError>,
) -> Result<Uploaded, NoBackup> {
    let in_words = |error: io::Error| NoBackup::Tool(format!("{}: {error}", dir.display()));
    let (mut reads, writes) = io::pipe().map_err(in_words)?;
    thread::scope(|scope| {
        let writer =
            thread::Builder::new().spawn_scoped(scope, move || write_tar(dir, writes)).map_err(in_words)?;
        let sent = send(&mut reads);
        // Who writes is told that nobody reads any more, where sending failed.
        drop(reads);
        let written =
            writer.join().unwrap_or_else(|_| Err(io::Error::other("the thread that packs has failed")));
        let uploaded = sent?;
        written.map_err(in_words)?;
        Ok(uploaded)
    })
}

fn write_tar(dir: &Path, to: impl Write) -> io::Result<()> {
    let mut tar = tar::Builder::new(io::BufWriter::with_capacity(1 << 20, to));
    tar.follow_symlinks(false);
    let mut entries = fs::read_dir(dir)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        let is_ours = name.to_string_lossy().starts_with(OUR_FILE);
        match entry.file_type()? {
            _ if is_ours || name == "auto.cnf" || name == "#innodb_temp" => {}
            kind if kind.is_dir() => tar.append_dir_all(&name, entry.path())?,
            _ => tar.append_path_with_name(entry.path(), &name)?,
        }
    }
    tar.into_inner()?.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_one_servers_alone_is_not_in_the_tar() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["ibdata1", "auto.cnf", "binlogd.init", "shop/t.ibd", "#innodb_temp/t"] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        let mut bytes = Vec::new();
        write_tar(dir.path(), &mut bytes).unwrap();
        let mut tar = tar::Archive::new(&bytes[..]);
        let names = tar.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().display().to_string());
        assert_eq!(names.collect::<Vec<_>>(), ["ibdata1", "shop/", "shop/t.ibd"]);
    }
}
