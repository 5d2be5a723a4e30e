//! The stream of a backup on its way back: into a running server, or into the folder of one that is not started yet.

use super::folder::Folder;
use super::no_server::NoServer;
use super::program::Programs;
use super::program::{client, not_run};
use archive::chain::backup::Stream;
use archive::plain_stream::PlainStream;
use codec::ServerKind;
use repair::Event;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Bytes that are handed on at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// So much of what a program says an error shows, in bytes.
const SAID_BYTES_SHOWN: usize = 2000;

/// A backup's stream, its length in bytes, and who hears of it.
pub(super) struct Passing<'a, 'b> {
    pub(super) stream: PlainStream,
    pub(super) bytes: u64,
    pub(super) is_over: &'a AtomicBool,
    pub(super) hear: &'a mut (dyn FnMut(Event<'_>) + 'b),
}

/// Statements through the operator's client, which stops at the first that fails.
pub(super) fn statements(
    passing: &mut Passing<'_, '_>,
    folder: &Folder,
    programs: &Programs,
    kind: ServerKind,
) -> Result<(), NoServer> {
    let path = client(programs.client.as_deref(), kind);
    let mut command = Command::new(&path);
    let mut file = std::ffi::OsString::from("--defaults-file=");
    file.push(folder.path("client.cnf"));
    command.arg(file).args(["--binary-mode", "--max-allowed-packet=1G"]);
    pass(passing, command, &path, "putting the dump into the server")
}

/// The data folder that mariadb-backup has copied: unpacked, and made ready.
pub(super) fn mbstream(
    passing: &mut Passing<'_, '_>,
    folder: &Folder,
    programs: &Programs,
) -> Result<(), NoServer> {
    let tool = programs.mariadb_backup.as_deref().unwrap_or(Path::new("mariadb-backup"));
    let unpacker = tool.parent().filter(|parent| !parent.as_os_str().is_empty());
    let unpacker =
        unpacker.map_or_else(|| Path::new("mbstream").to_owned(), |parent| parent.join("mbstream"));
    let mut command = Command::new(&unpacker);
    command.arg("-x").arg("-C").arg(folder.data());
    pass(passing, command, &unpacker, "unpacking the backup")?;
    (passing.hear)(Event::Note("mariadb-backup makes the copied files ready"));
    let mut command = Command::new(tool);
    let mut target = std::ffi::OsString::from("--target-dir=");
    target.push(folder.data());
    command.arg("--prepare").arg(target).stdin(Stdio::null());
    platform::ends_with_us(&mut command);
    let said = command.output().map_err(|error| not_run(tool, &error))?;
    let text = String::from_utf8_lossy(&said.stderr).into_owned();
    if said.status.success() && text.trim_end().ends_with("completed OK!") {
        return Ok(());
    }
    Err(NoServer::Tool {
        during: "making the copied files ready (mariadb-backup --prepare)",
        said: end_of(&text),
    })
}

/// A data folder that a server of that version starts on, as a tar.
pub(super) fn tar(passing: &mut Passing<'_, '_>, folder: &Folder) -> Result<(), NoServer> {
    let mut command = Command::new("tar");
    command.arg("-x").arg("-C").arg(folder.data());
    pass(passing, command, Path::new("tar"), "unpacking the backup")
}

/// Hands the stream to a program. Only behind its last byte, with which the whole was compared, the program sees its end.
fn pass(
    passing: &mut Passing<'_, '_>,
    mut command: Command,
    path: &Path,
    during: &'static str,
) -> Result<(), NoServer> {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    platform::ends_with_us(&mut command);
    let mut child = command.spawn().map_err(|error| not_run(path, &error))?;
    let (Some(mut stdin), Some(mut stderr)) = (child.stdin.take(), child.stderr.take()) else {
        return Err(NoServer::Tool { during, said: "it has no input".to_owned() });
    };
    let listener = thread::spawn(move || {
        let mut said = Vec::new();
        let _ = stderr.read_to_end(&mut said);
        String::from_utf8_lossy(&said).into_owned()
    });
    let sent = send(passing, &mut stdin);
    if matches!(sent, Err(NoServer::Backup(_) | NoServer::Interrupted)) {
        // It must not take for whole what it has got so far.
        let _ = child.kill();
    }
    drop(stdin);
    let status = child.wait().map_err(|error| not_run(path, &error))?;
    let said = listener.join().unwrap_or_default();
    match sent {
        Err(error @ (NoServer::Backup(_) | NoServer::Interrupted)) => Err(error),
        Ok(()) if status.success() => Ok(()),
        _ => Err(NoServer::Tool {
            during,
            said: format!("{} failed ({status}): {}", path.display(), end_of(&said)),
        }),
    }
}

fn send(passing: &mut Passing<'_, '_>, into: &mut dyn Write) -> Result<(), NoServer> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut done = 0;
    loop {
        if passing.is_over.load(Ordering::Relaxed) {
            return Err(NoServer::Interrupted);
        }
        let read = passing.stream.read(&mut buffer).map_err(NoServer::Backup)?;
        if read == 0 {
            return Ok(());
        }
        into.write_all(&buffer[..read]).map_err(|error| NoServer::Folder(error.to_string()))?;
        done += read as u64;
        (passing.hear)(Event::Loaded { bytes: done, of: passing.bytes });
    }
}

fn end_of(said: &str) -> String {
    let from = said.len().saturating_sub(SAID_BYTES_SHOWN);
    let at = (from..said.len()).find(|at| said.is_char_boundary(*at)).unwrap_or(said.len());
    said[at..].trim().to_owned()
}

/// Whether what a stream is can be put back without a hand.
pub(super) fn may_be_loaded(stream: Stream) -> Result<(), NoServer> {
    match stream {
        Stream::Sql | Stream::Mbstream | Stream::Tar => Ok(()),
        Stream::Other => Err(NoServer::Refused(
            "the backup was written by a command of yours, and binlogd does not know how to put it back: restore it by hand, then binlogd restore \
             --into"
                .to_owned(),
        )),
    }
}

/// An error of the stream is one of the archive.
pub(super) fn open(
    reader: &archive::reader::Reader,
    backup: &archive::chain::history::ArchivedBackup,
) -> io::Result<PlainStream> {
    PlainStream::open(reader, &backup.file)
}
