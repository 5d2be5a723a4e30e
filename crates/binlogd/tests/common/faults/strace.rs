//! binlogd under strace: what it asks of the operating system and in which order, which is the only proof that a sync
//! comes before its acknowledgement that does not rest on reading the code.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The calls that are traced: all ways to write to a file or a socket, to sync, to make and to rename a file.
const CALLS: &str = "trace=write,writev,pwrite64,pwritev,pwritev2,send,sendto,sendmsg,sendmmsg,io_uring_enter,fdatasync,\
                     fsync,sync_file_range,msync,open,openat,rename,renameat,renameat2";
/// Longest time that strace takes to write the end of its log.
const END_MAX: Duration = Duration::from_secs(30);

/// Path of strace, which is installed where that is possible; `None` when the operator renounces it.
///
/// A proof that is left out by itself would be missed by nobody, so there is a variable for it.
#[track_caller]
pub fn find() -> Option<PathBuf> {
    if std::env::var_os("BINLOGD_WITHOUT_STRACE").is_some() {
        crate::common::skip::skip(
            "BINLOGD_WITHOUT_STRACE is set, and that a sync comes before each acknowledgement is not shown",
        );
        return None;
    }
    let output = Command::new(crate::common::workspace().join("scripts/servers"))
        .arg("strace")
        .output()
        .expect("the script runs");
    let advice = "this test traces system calls; to run without it, say so with BINLOGD_WITHOUT_STRACE=1";
    assert!(output.status.success(), "{advice}\n{}", String::from_utf8_lossy(&output.stderr));
    Some(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// Starts `command` under strace, whose log goes to `trace`, and that of the program to `log`. The child's id is that of
/// the traced program itself.
#[track_caller]
pub fn spawn(strace: &Path, trace: &Path, command: &Command, log: File) -> Child {
    let mut traced = Command::new(strace);
    // -D: strace is not the parent. -y: paths of descriptors. -x: bytes that are no text in hexadecimal.
    traced.args(["-D", "-f", "-ttt", "-y", "-x", "-s", "512", "-e", CALLS, "-o"]).arg(trace).arg("--");
    traced.arg(command.get_program()).args(command.get_args());
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => traced.env(key, value),
            None => traced.env_remove(key),
        };
    }
    traced.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    traced.spawn().expect("strace starts")
}

/// The log, once it holds the end of process `pid`.
#[track_caller]
pub fn read_to_end(trace: &Path, pid: u32) -> String {
    let deadline = Instant::now() + END_MAX;
    loop {
        let text = std::fs::read_to_string(trace).unwrap_or_default();
        let ended = text.lines().rev().take(20).any(|line| {
            line.split_whitespace().next() == Some(&pid.to_string()) && line.contains("+++ exited")
                || line.contains("+++ killed")
        });
        if ended {
            return text;
        }
        assert!(Instant::now() < deadline, "strace did not end its log:\n{text}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What is wrong with an acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// No fdatasync that had returned before the acknowledgement left covers its position.
    NotSynced {
        /// Line of the trace, from 1 on.
        line: usize,
        /// What was acknowledged.
        position: u64,
        /// End of what had been synced of that file.
        synced: u64,
    },
    /// The file is new, and its folder was not synced: a crash of the machine could lose its name.
    FolderNotSynced {
        /// Line of the trace, from 1 on.
        line: usize,
    },
}

/// What a trace shows.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Acknowledgements that were sent.
    pub acknowledgements: usize,
    /// Successful calls of fdatasync or fsync on binary logs, and records written into a journal that is opened so that
    /// each write is durable.
    pub syncs: usize,
    /// Binary logs that were made.
    pub files_made: usize,
    /// Acknowledgements that should not have been sent yet.
    pub faults: Vec<Fault>,
}

/// Checks each acknowledgement in a trace: it may only leave when the bytes up to its position are on stable storage. They
/// are by an fdatasync of the file that it names, which began after they were written and has returned 0, or by a write
/// into a journal opened with O_DSYNC, which has returned its whole length and says that it holds them.
///
/// # Errors
/// When a line cannot be understood, or binlogd writes in a way that the checker does not know: then nothing is proven.
pub fn check(trace: &str) -> Result<Verdict, String> {
    let mut checker = Checker::default();
    let mut unfinished: HashMap<&str, (usize, String)> = HashMap::new();
    for (index, line) in trace.lines().enumerate() {
        let number = index + 1;
        // strace pads a thread number of fewer than five digits, so more than one space may stand between the words.
        let words = line.split_once(' ').and_then(|(thread, rest)| {
            rest.trim_start().split_once(' ').map(|(_time, text)| (thread, text.trim_start()))
        });
        let Some((thread, text)) = words else { return Err(format!("line {number}: {line}")) };
        let at = |error: String| format!("line {number}: {error}: {line}");
        if text.starts_with("---") || text.starts_with("+++") {
            continue;
        }
        if let Some(begin) = text.strip_suffix("<unfinished ...>") {
            checker.begins(number, begin).map_err(at)?;
            unfinished.insert(thread, (number, begin.to_owned()));
        } else if text.starts_with("<... ") {
            let (_, rest) = text.split_once(" resumed>").ok_or_else(|| at("no end of a call".to_owned()))?;
            // What was begun before strace attached is not known.
            let Some((begun, begin)) = unfinished.remove(thread) else { continue };
            checker.ends(begun, &format!("{begin}{rest}")).map_err(at)?;
        } else {
            checker.begins(number, text).map_err(at)?;
            checker.ends(number, text).map_err(at)?;
        }
    }
    Ok(checker.verdict)
}

/// What is known of one binary log.
#[derive(Debug, Default)]
struct Log {
    written: u64,
    synced: u64,
    /// Made, and its folder not synced since.
    unnamed: bool,
    /// Syncs that have begun: line of the call and the end of what was written then.
    syncing: HashMap<usize, u64>,
}

#[derive(Default)]
struct Checker {
    /// By path.
    logs: HashMap<String, Log>,
    /// Paths of journals that are open with O_DSYNC.
    durable: HashSet<String>,
    verdict: Verdict,
}

/// Descriptor's path, and the arguments after it.
struct Call<'a> {
    name: &'a str,
    path: &'a str,
    arguments: &'a str,
}

impl Checker {
    /// A call begins: what must be true before it is looked at now.
    fn begins(&mut self, line: usize, text: &str) -> Result<(), String> {
        let Some(call) = parse(text) else { return Ok(()) };
        match call.name {
            "fdatasync" | "fsync" => {
                if let Some(log) = self.logs.get_mut(call.path) {
                    log.syncing.insert(line, log.written);
                }
            }
            "sendto" | "send" | "write" => {
                let data = quoted(call.arguments);
                if let Some((position, file)) = data.as_deref().and_then(acknowledgement) {
                    self.acknowledged(line, position, &file);
                }
            }
            "io_uring_enter" | "sendmsg" | "sendmmsg" | "sync_file_range" | "msync" => {
                return Err(format!("the checker does not know {}", call.name));
            }
            _ => {}
        }
        Ok(())
    }

    /// A call has returned: what it did is true from now on. `line` is where it began.
    fn ends(&mut self, line: usize, text: &str) -> Result<(), String> {
        let Some(call) = parse(text) else { return Ok(()) };
        let Some((_, result)) = text.rsplit_once(") = ") else { return Err("no result".to_owned()) };
        let number: i64 = result.split([' ', '<']).next().and_then(|text| text.parse().ok()).unwrap_or(-1);
        match call.name {
            "openat" | "open" if text.contains("O_CREAT") && number >= 0 => {
                let path = between(result, '<', '>').ok_or("no path")?;
                if is_binary_log(path) {
                    self.logs.insert(path.to_owned(), Log { unnamed: true, ..Log::default() });
                    self.verdict.files_made += 1;
                }
            }
            "openat" | "open" if text.contains("O_DSYNC") && number >= 0 => {
                self.durable.insert(between(result, '<', '>').ok_or("no path")?.to_owned());
            }
            "pwrite64" | "pwritev" | "pwritev2" if self.durable.contains(call.path) && number >= 0 => {
                let written = quoted(call.arguments).ok_or("no bytes")?;
                self.journaled(call.path, &written, number.unsigned_abs());
            }
            "pwrite64" | "pwritev" | "pwritev2" if is_binary_log(call.path) && number >= 0 => {
                let arguments = text.rsplit_once(") = ").map_or(text, |(arguments, _)| arguments);
                // A call that another thread interrupted has a blank before its parenthesis.
                let offset = arguments.rsplit(", ").next().and_then(|text| text.trim().parse::<u64>().ok());
                let offset = offset.ok_or("no offset")?;
                let log = self.logs.entry(call.path.to_owned()).or_default();
                log.written = log.written.max(offset + number.unsigned_abs());
            }
            "write" | "writev" if is_binary_log(call.path) => {
                return Err(format!("the checker does not know {} to a binary log", call.name));
            }
            "fdatasync" | "fsync" => self.synced(line, call.path, number == 0),
            _ => {}
        }
        Ok(())
    }

    /// `begin` is the beginning of a record that was written into a journal, `written` bytes of it. Its form is described
    /// in binlog/journal/record.rs.
    fn journaled(&mut self, journal: &str, begin: &[u8], written: u64) {
        let Some((name, offset, len)) = record(begin, written) else { return };
        let path = Path::new(journal).parent().unwrap_or(Path::new("")).join(name);
        let log = self.logs.entry(path.to_string_lossy().into_owned()).or_default();
        // A hole before it would make it worthless.
        if offset <= log.synced && len > 0 {
            log.synced = log.synced.max(offset + len);
            self.verdict.syncs += 1;
        }
    }

    fn synced(&mut self, line: usize, path: &str, succeeded: bool) {
        if let Some(log) = self.logs.get_mut(path) {
            if let Some(covered) = log.syncing.remove(&line).filter(|_| succeeded) {
                log.synced = log.synced.max(covered);
                self.verdict.syncs += 1;
            }
        } else if succeeded {
            // A folder: the names in it are durable.
            for (name, log) in &mut self.logs {
                log.unnamed &= Path::new(name).parent() != Some(Path::new(path));
            }
        }
    }

    fn acknowledged(&mut self, line: usize, position: u64, file: &str) {
        self.verdict.acknowledgements += 1;
        let named = |path: &str| Path::new(path).file_name().is_some_and(|name| name == file);
        let log = self.logs.iter().find(|(path, _)| named(path)).map(|(_, log)| log);
        let synced = log.map_or(0, |log| log.synced);
        if position > synced {
            self.verdict.faults.push(Fault::NotSynced { line, position, synced });
        }
        if log.is_some_and(|log| log.unnamed) {
            self.verdict.faults.push(Fault::FolderNotSynced { line });
        }
    }
}

/// `name(8</a/path>, the rest`; a call without a descriptor has an empty path.
fn parse(text: &str) -> Option<Call<'_>> {
    let (name, rest) = text.split_once('(')?;
    let described =
        rest.split_once('<').filter(|(digits, _)| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let path_and_rest = described.and_then(|(_, rest)| rest.split_once('>'));
    let (path, arguments) = path_and_rest.unwrap_or(("", rest));
    Some(Call { name, path, arguments })
}

fn between(text: &str, open: char, close: char) -> Option<&str> {
    text.split_once(open)?.1.split_once(close).map(|(inside, _)| inside)
}

/// The bytes of the first string, which strace has written as `"\x19\x00…"`.
fn quoted(arguments: &str) -> Option<Vec<u8>> {
    let text = arguments.split('"').nth(1)?;
    text.split("\\x").skip(1).map(|hex| u8::from_str_radix(hex, 16).ok()).collect()
}

/// Position and file of a semi-sync acknowledgement: a packet numbered 0 that begins with EF
/// (`ReplSemiSyncMaster::reportReplyPacket`).
fn acknowledgement(bytes: &[u8]) -> Option<(u64, String)> {
    let (header, payload) = bytes.split_first_chunk::<4>()?;
    let [a, b, c, sequence] = *header;
    let length = u32::from_le_bytes([a, b, c, 0]) as usize;
    let (position, file) = payload.strip_prefix(&[0xEF])?.split_first_chunk::<8>()?;
    let sound = sequence == 0 && length == payload.len();
    sound.then(|| (u64::from_le_bytes(*position), String::from_utf8_lossy(file).into_owned()))
}

/// Path of the binary log below the source's folder, offset in it and length of the data of a record of a journal; `None`
/// when it is none or was not written whole.
fn record(begin: &[u8], written: u64) -> Option<(PathBuf, u64, u64)> {
    let number = |at: usize, len: usize| {
        begin
            .get(at..at + len)
            .map(|bytes| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    };
    let (offset, len, timeline, file) = (number(48, 8)?, number(56, 4)?, number(60, 2)?, number(62, 2)?);
    let names = begin.get(64..64 + (timeline + file) as usize)?;
    let (timeline, file) = names.split_at_checked(timeline as usize)?;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    let whole = begin.starts_with(b"binlogdJ") && 64 + names.len() as u64 + len <= written;
    whole.then_some((Path::new(&text(timeline)?).join(text(file)?), offset, len))
}

fn is_binary_log(path: &str) -> bool {
    let extension = Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    !extension.is_empty() && extension.bytes().all(|byte| byte.is_ascii_digit())
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict { acknowledgements, syncs, files_made, faults } = self;
        write!(
            f,
            "{acknowledgements} acknowledgements, {syncs} syncs, {files_made} files made, {} faults",
            faults.len()
        )
    }
}
