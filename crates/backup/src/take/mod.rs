//! A backup on its way into the archive: the tool is run, its stream goes into the store, and a commit names it when all is well.
//!
//! ```text
//! the server is looked at: whose it is, what a dump cannot hold       server.rs
//!   → the tool is started, its password in memory alone               program.rs, option_file.rs
//!   → its stream passes, beginning and end are kept                   watched.rs
//!   → pieces in the store, read once, on no disk                      archive::writer::stream
//!   (CLONE writes no stream: a folder, which becomes one             clone.rs)
//!   → its exit, its end mark, its point; the server once more         here
//!   → one commit                                                      archive::writer::stream
//! ```
#![allow(clippy::disallowed_methods, reason = "tools of operators are outside")]

mod child;
mod clone;
mod option_file;
mod order;
pub mod program;
mod server;
mod watched;

pub use self::order::{NoBackup, Order};

use self::child::{Ran, Running, SAID_LINES_SHOWN, said};
use self::order::ANSWER_TIMEOUT;
use self::program::Program;
use self::server::{Definitions, is_source, stranger, without_snapshot};
use self::watched::Watched;
use archive::chain::Chain;
use archive::chain::backup::{BackupPoint, BackupRecord, Tool};
use archive::chain::commit::Writer;
use archive::chain::history::{ArchivedBackup, History};
use archive::writer::stream::{StreamError, Uploaded, commit, upload};
use archive::writer::upload::Uploader;
use rustix::pipe::fcntl_setpipe_size;
use source::clock::Clock;
use source::identify::SourceIdentity;
use source::own_session::{Purpose, prepare};
use std::io::{self, Read};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use wire::Connection;

/// So much a tool may write, in bytes, while what reads it waits for a processor. A user without privileges may ask for no more.
const PIPE_BYTES: usize = 1 << 20;

/// Where it goes.
#[derive(Debug)]
pub struct Place<'a> {
    /// What uploads.
    pub uploader: &'a Uploader,
    /// The archive of the source.
    pub chain: &'a mut Chain,
    /// Who commits.
    pub writer: &'a Writer,
    /// The clock.
    pub clock: &'a dyn Clock,
}

/// Takes a backup. `tell` is given remarks, `progress` plain bytes as they are in the store.
///
/// # Errors
/// [`NoBackup`].
pub fn take(
    order: &Order,
    place: Place<'_>,
    tell: &dyn Fn(&str),
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Arc<ArchivedBackup>, NoBackup> {
    let Place { uploader, chain, writer, clock } = place;
    let mut connection = Connection::connect(&order.server)?;
    connection.set_timeout(ANSWER_TIMEOUT);
    let identity = SourceIdentity::ask(&mut connection)?;
    let tool = order.tool.unwrap_or_else(|| Program::for_kind(identity.kind));
    let program = Program { tool, path: order.program.clone(), arguments: order.arguments.clone() };
    let mut remarks = may_be_taken(&program, order, chain.history(), &identity, &mut connection)?;
    let definitions = program.is_dump().then(|| Definitions::ask(&mut connection)).transpose()?;
    drop(connection);
    remarks.iter().for_each(|remark| tell(remark));
    let started = clock.wall_time();
    let id = format!("{}-{:08x}", started.strftime("%Y%m%dT%H%M%SZ"), getrandom::u32().unwrap_or(0));
    let tool_version = program.version();
    let pause = |rest| clock.sleep(rest);
    let send =
        |stream: &mut (dyn Read + Send)| upload(uploader, chain.source(), &id, stream, &pause, progress);
    let ran = match tool {
        Tool::Clone => clone::run(&program, order, (&identity, &id), clock, send)?,
        _ => run(&program, order, &identity, send)?,
    };
    let point = point_of(&program, order, &ran)?;
    if point.gtids.is_empty() && !is_source(chain.history(), &identity.uuid) {
        return Err(NoBackup::Refused(format!(
            "its point, {point}, is one of this server's own log, and the archive has the log of another server: back up the source itself, or a \
             server whose GTIDs the tool tells"
        )));
    }
    if let Some(before) = definitions {
        let mut connection = Connection::connect(&order.server)?;
        connection.set_timeout(ANSWER_TIMEOUT);
        if SourceIdentity::ask(&mut connection)?.uuid != identity.uuid {
            return Err(NoBackup::Refused("another server answers now than before the dump".to_owned()));
        }
        if let Some(what) = before.changed(&Definitions::ask(&mut connection)?) {
            return Err(NoBackup::Refused(format!(
                "while {tool} ran, this was created, changed or dropped: {what}. A dump has definitions as they are when their turn comes, so the \
                 log behind its point could not be applied to it. Nothing was recorded: do it again when nobody changes definitions"
            )));
        }
    }
    remarks.extend(ran.remarks);
    let record = BackupRecord {
        id,
        tool,
        tool_version,
        stream: program.stream(),
        server_kind: identity.kind,
        server_version: identity.version,
        server_uuid: identity.uuid,
        started,
        finished: clock.wall_time(),
        point,
        remarks,
    };
    Ok(commit(uploader, chain, writer, (record, &ran.uploaded), clock.wall_time(), &pause)?)
}

/// Refuses by name what would be no backup of the source; remarks of what is known before.
fn may_be_taken(
    program: &Program,
    order: &Order,
    history: &History,
    identity: &SourceIdentity,
    connection: &mut Connection,
) -> Result<Vec<String>, NoBackup> {
    let refused = |text: String| Err(NoBackup::Refused(text));
    if let Some(why) = program.refused() {
        return refused(why);
    }
    if order.clone_dir.is_some() != (program.tool == Tool::Clone) {
        return refused("--clone-dir and --tool clone belong together: the folder, on the server's machine and its own to write, holds the clone until it is in the archive".to_owned());
    }
    if order.point.is_some() && program.tool != Tool::Command {
        return refused(format!("--point is for a command: {} tells its point itself", program.tool));
    }
    if history.timelines.is_empty() {
        return refused(
            "the archive has no log of this source yet: a backup without a log is worth its own moment only"
                .to_owned(),
        );
    }
    if let Some(theirs) = stranger(history, identity) {
        return refused(format!(
            "this server, {}, has nothing to do with the source of that archive, which has {theirs}. Name the right server, or with --source the \
             right source of the archive",
            identity.uuid
        ));
    }
    prepare(connection, Purpose::Reader).map_err(|error| NoBackup::Refused(error.to_string()))?;
    let log_bin = connection.query("SELECT @@global.log_bin")?;
    if program.tool != Tool::Command && log_bin.first() == Some("0") {
        return refused(format!(
            "this server writes no binary log (log_bin = OFF), so {} cannot tell its point",
            program.tool
        ));
    }
    if program.needs_snapshots()
        && let Some(tables) = without_snapshot(connection)?
    {
        let (fate, way) = match program.tool {
            Tool::Clone => ("CLONE would leave out their rows", ""),
            _ => (
                "a dump would have them as of another moment than the rest",
                ", or let all writers wait for as long as the dump takes: -- --lock-all-tables",
            ),
        };
        return refused(format!(
            "these tables have an engine without snapshots, so {fate}: {tables}. Convert them to InnoDB{way}"
        ));
    }
    let mut remarks = Vec::new();
    if !is_source(history, &identity.uuid) {
        remarks.push(format!(
            "made on {}, which is not the server whose log the archive has: what is not applied there yet is not in it, and its GTIDs say so",
            identity.uuid
        ));
    }
    Ok(remarks)
}

/// Runs the tool to its end while `send` takes its stream.
fn run(
    program: &Program,
    order: &Order,
    identity: &SourceIdentity,
    send: impl FnOnce(&mut (dyn Read + Send)) -> Result<Uploaded, StreamError>,
) -> Result<Ran, NoBackup> {
    let mut command = program.command(&identity.version).map_err(NoBackup::Refused)?;
    let name = command.get_program().to_string_lossy().into_owned();
    let not_run = |error| NoBackup::NotRun { program: name.clone(), error };
    let input = match program.tool {
        Tool::Command => Stdio::null(),
        tool => Stdio::from(option_file::make(tool, &order.server).map_err(&not_run)?),
    };
    let child = command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = Running(child.map_err(&not_run)?);
    let streams = (child.0.stdout.take(), child.0.stderr.take());
    let (Some(stdout), Some(stderr)) = streams else {
        return Err(not_run(io::Error::other("it has no output")));
    };
    // Where it is not allowed the pipe stays as it is.
    let _ = fcntl_setpipe_size(&stdout, PIPE_BYTES);
    let listener = thread::Builder::new().spawn(move || said(stderr)).map_err(&not_run)?;
    let mut watched = Watched::new(stdout);
    let sent = send(&mut watched);
    if let Err(error) = &sent
        && !matches!(error, StreamError::Empty)
    {
        drop(child);
        return Err(sent.err().map_or_else(|| NoBackup::Tool(String::new()), NoBackup::Stream));
    }
    let status = child.0.wait().map_err(&not_run)?;
    let said = listener.join().unwrap_or_default();
    ended_well(program, status, &said, watched.tail())?;
    let point = match program.tool {
        Tool::MariadbBackup => watched::of_mariadb_backup(&said),
        _ => watched.point(),
    };
    let warnings = said.lines().filter(|line| program.is_dump() && !line.trim().is_empty());
    let remarks =
        warnings.take(SAID_LINES_SHOWN).map(|line| codec::packet::printable(line.as_bytes(), 256)).collect();
    Ok(Ran { uploaded: sent?, point, remarks })
}

fn ended_well(program: &Program, status: ExitStatus, said: &str, tail: &[u8]) -> Result<(), NoBackup> {
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(SAID_LINES_SHOWN)..].join("\n");
    let why = match (status.success(), program.unfinished(tail, said)) {
        (true, None) => return Ok(()),
        (true, Some(why)) => why,
        (false, _) => format!("{} failed ({status})", program.tool),
    };
    let saying = if last.is_empty() { "it said nothing".to_owned() } else { format!("it said: {last}") };
    let hint = another_version(said).unwrap_or_default();
    Err(NoBackup::Tool(format!("{why}; {saying}. {hint}Nothing was recorded")))
}

/// MySQL 8.4 has no `SHOW MASTER STATUS` any more, and what came before 8.2 has no other word for it: a mysqldump asks with one alone.
fn another_version(said: &str) -> Option<&'static str> {
    let asks = |statement| said.contains(statement) && said.contains("(1064)");
    let is_other = asks("'SHOW BINARY LOG STATUS'") || asks("'SHOW MASTER STATUS'");
    is_other.then_some("This mysqldump is of another version than the server: name one of the server's version with --program. ")
}

fn point_of(program: &Program, order: &Order, ran: &Ran) -> Result<BackupPoint, NoBackup> {
    let point = order.point.as_deref().map_or_else(|| ran.point.clone(), watched::given);
    if point == BackupPoint::default() {
        let tells = watched::tells(program.tool);
        return Err(NoBackup::Tool(format!(
            "{} did not tell the point of its backup: there is nothing of {tells}",
            program.tool
        )));
    }
    Ok(point)
}
