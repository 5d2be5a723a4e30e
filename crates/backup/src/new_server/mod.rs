//! A server from nothing: a backup of the archive, in a new server of the operator's program, brought to a point by the log.
//!
//! ```text
//! the newest backup that leads to the point, by the log itself         choose.rs
//!   → program, version, disk and memory are enough                     program.rs, here
//!   → an empty folder, marked as unfinished; an empty server in it     folder.rs, running.rs
//!   → the backup's stream into it, compared with its hash              load.rs
//!   → what the server says that it has is what the backup was said to have   here
//!   → the log to the point, applied by the server's own threads        repair::restore
//!   → our account dropped, the server ended, the mark removed          here
//! ```
//!
//! Nobody else reaches the server meanwhile: it has no port, and its socket stands in a folder that is ours alone. It ends when binlogd does.
#![allow(clippy::disallowed_methods, reason = "servers and tools of operators are outside")]

pub(crate) mod choose;
mod folder;
mod load;
mod no_server;
pub mod program;
mod running;

pub use self::choose::{Chosen, choose};
pub use self::folder::{Fetched, Folder};
use self::load::Passing;
pub use self::no_server::{Hear, NoServer};
use self::program::{Programs, ServerProgram};
pub use self::running::{How, Running};
use archive::chain::backup::{BackupRecord, Stream};
use archive::chain::history::ArchivedBackup;
use archive::reader::Reader;
use codec::ServerKind;
use codec::gtid::GtidState;
use repair::history::{Copied, Until};
use repair::restore::{By, Request, Restoring};
use source::clock::Clock;
use source::identify::SourceIdentity;
use std::io;
use std::sync::atomic::AtomicBool;

/// Least size of the buffer pool, in bytes.
const BUFFER_POOL_MIN: u64 = 128 << 20;

/// An empty server's own files, with its redo log, in bytes.
const OWN_FILES_BYTES: u64 = 256 << 20;

/// What is restored where.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// What reads the archive.
    pub reader: &'a Reader,
    /// The backup.
    pub backup: &'a ArchivedBackup,
    /// The operator's programs.
    pub programs: &'a Programs,
    /// Bytes of the log that is to be applied.
    pub log_bytes: u64,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// Raised by whoever wants it ended.
    pub is_over: &'a AtomicBool,
}

/// A server that holds a backup.
#[derive(Debug)]
pub struct NewServer<'a> {
    order: Order<'a>,
    folder: Folder,
    how: How,
    running: Running,
}

impl<'a> NewServer<'a> {
    /// Looks whether program, disk and memory are enough. Nothing is changed.
    ///
    /// # Errors
    /// [`NoServer`], and what to do.
    pub fn may_be_made(order: &Order<'_>, folder_is_on: &std::path::Path) -> Result<How, NoServer> {
        let record = &order.backup.record;
        load::may_be_loaded(record.stream)?;
        let program = ServerProgram::find(order.programs.server.as_deref(), record.server_kind)?;
        program.fits(record)?;
        let needed = order.backup.file.end().saturating_add(order.log_bytes).saturating_add(OWN_FILES_BYTES);
        let free = free(folder_is_on)
            .map_err(|error| NoServer::Folder(format!("{}: {error}", folder_is_on.display())))?;
        if free < needed {
            return Err(NoServer::Folder(format!(
                "disk full: {} has {free} bytes free, and backup, log and the server's own files take at least {needed} bytes: make room, or name a folder of another disk",
                folder_is_on.display()
            )));
        }
        let buffer_pool = order.programs.buffer_pool.unwrap_or_else(a_quarter_of_memory);
        let has_gtids = record.server_kind == ServerKind::MariaDb || !record.point.gtids.is_empty();
        Ok(How { program, options: order.programs.options.clone(), buffer_pool, has_gtids })
    }

    /// Puts a backup into a new server.
    ///
    /// # Errors
    /// [`NoServer`].
    pub fn load(
        order: Order<'a>,
        how: How,
        folder: Folder,
        hear: &mut Hear<'_>,
    ) -> Result<NewServer<'a>, NoServer> {
        let stream = load::open(order.reader, order.backup).map_err(NoServer::Backup)?;
        let bytes = order.backup.file.end();
        let mut passing = Passing { stream, bytes, is_over: order.is_over, hear };
        let clock = order.clock;
        let in_folder = |error: io::Error| NoServer::Folder(format!("{}: {error}", folder.root().display()));
        let stream = order.backup.record.stream;
        match stream {
            Stream::Mbstream => load::mbstream(&mut passing, &folder, order.programs)?,
            Stream::Tar => load::tar(&mut passing, &folder)?,
            Stream::Sql | Stream::Other => {
                how.initialise(&folder)?;
                let running = Running::start(&how, &folder, clock)?;
                load::statements(&mut passing, &folder, order.programs, how.program.kind)?;
                // The dump has brought accounts, which count when the server begins anew.
                running.stop(false, clock)?;
            }
        }
        if matches!(stream, Stream::Mbstream | Stream::Tar) {
            folder.hand_over().map_err(in_folder)?;
        }
        let running = Running::start(&how, &folder, clock)?;
        let server = NewServer { order, folder, how, running };
        server.is_the_one()?;
        Ok(server)
    }

    /// What a server says of itself that was restored from a stream that tells is what the backup's record says.
    fn is_the_one(&self) -> Result<(), NoServer> {
        let record = &self.order.backup.record;
        let mut connection = self.running.connect()?;
        let executed = SourceIdentity::ask(&mut connection)?.executed;
        if self.knows(record) {
            let said = GtidState::parse(record.server_kind, &record.point.gtids)
                .map_err(|error| NoServer::Refused(format!("the point of backup {}: {error}", record.id)))?;
            if executed.is_empty() && !said.is_empty() {
                return Err(NoServer::Refused(format!(
                    "the tool lied: nothing of backup {} is in the server: the client ended well and did nothing, or the stream is none of \
                     statements",
                    record.id
                )));
            }
            if said != executed {
                return Err(NoServer::Refused(format!(
                    "wrong point: backup {} is recorded with {}, and a server restored from it has {}: one of both is not that backup's. Take another \
                     backup",
                    record.id,
                    said.to_line(),
                    executed.to_line()
                )));
            }
        }
        Ok(())
    }

    /// Whether the stream itself tells the server what it has.
    fn knows(&self, record: &BackupRecord) -> bool {
        record.server_kind == ServerKind::MySql && !record.point.gtids.is_empty()
    }

    /// The server.
    pub fn running(&self) -> &Running {
        &self.running
    }

    /// Its folder.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Brings it to the point. Gives what it says of itself then.
    ///
    /// # Errors
    /// [`NoServer`].
    pub fn bring(
        &mut self,
        copied: &Copied,
        until: &Until,
        workers: Option<u32>,
        hear: &mut Hear<'_>,
    ) -> Result<SourceIdentity, NoServer> {
        let record = &self.order.backup.record;
        let at = choose::backup_at(&record.point);
        let notes = self.folder.path("tmp");
        let request = Request {
            copied,
            notes: &notes,
            data_dir: &notes,
            into: self.running.account(),
            until,
            backup_at: if self.knows(record) { None } else { Some(&at) },
            skip: &[],
            accept: &[],
            allow_clients: false,
            // Nobody but us has written to it.
            scope: None,
            by: By::Channel { workers, listen: None, advertise: None },
            plan: false,
        };
        let mut restoring = Restoring::look(request, hear)?;
        restoring.check()?;
        if restoring.found().is_there() {
            return Ok(restoring.found().target.clone());
        }
        Ok(restoring.carry_out(self.order.is_over, hear)?)
    }

    /// Ends the server, and makes the folder one that anybody may start a server on.
    ///
    /// # Errors
    /// [`NoServer`].
    pub fn finish(self) -> Result<Folder, NoServer> {
        self.running.stop(true, self.order.clock)?;
        let in_folder =
            |error: io::Error| NoServer::Folder(format!("{}: {error}", self.folder.root().display()));
        self.folder.finish().map_err(in_folder)?;
        Ok(self.folder)
    }

    /// How it is run.
    pub fn how(&self) -> &How {
        &self.how
    }
}

/// Bytes that are free where a folder lies, or will lie.
pub(crate) fn free(folder: &std::path::Path) -> io::Result<u64> {
    let there = folder.ancestors().find(|path| path.exists()).unwrap_or(std::path::Path::new("/"));
    let there = if there.as_os_str().is_empty() { std::path::Path::new(".") } else { there };
    let of = rustix::fs::statvfs(there)?;
    Ok(of.f_bavail.saturating_mul(of.f_frsize))
}

/// Of what the kernel says is free, in bytes.
fn a_quarter_of_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0);
    (kilobytes * 1024 / 4).max(BUFFER_POOL_MIN)
}
