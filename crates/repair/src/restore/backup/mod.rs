//! Where a backup was made, said by hand: for a server that was restored from it and does not know.
//!
//! A dump of MySQL and a clone tell the server themselves. A physical backup of MariaDB does not, and a dump that was made without
//! GTIDs does not: there the backup's own notes have a file and a position, or GTIDs. A position is looked up in the history that
//! is held, which knows the GTIDs at each of its boundaries.

use crate::history::{Copied, CopiedFile, NoCopy, shortened};
use codec::event::BINLOG_MAGIC;
use codec::gtid::{GtidState, MariadbGtidState};
use codec::{Position, ServerKind};
use config::{Point, PointPlace};
use points::transaction::Transaction;
use points::walk::{Options, Walk, WalkError};
use source::identify::SourceIdentity;
use std::fmt;
use std::path::PathBuf;

/// How it is written.
const FORMS: &str =
    "mysql-bin.000002:1234, GTIDs, or the line of xtrabackup_binlog_info or mariadb_backup_binlog_info";

/// Where a backup was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BackupAt {
    /// Behind the last transaction that ends there or before.
    Position(Position),
    /// It has these.
    Gtids(GtidState),
}

/// Why what was said of a backup does not lead to GTIDs, or is not told to the server.
#[derive(Debug)]
pub enum NoBackup {
    /// The copy cannot be read.
    Copy(NoCopy),
    /// A file of it is damaged, or cannot be read.
    Walk { path: PathBuf, error: WalkError },
    /// The history has no file of that name.
    NoFile { at: Position, first: Option<String>, last: Option<String> },
    /// It has several.
    Files { at: Position, timelines: Vec<String> },
    /// The file does not go so far.
    Beyond { at: Position, end: u64 },
    /// A transaction is cut there.
    Inside { at: Position, begins: u64, ends: u64 },
    /// Transactions have no GTIDs there, or the file does not say what was executed before.
    NoGtids { at: Position },
    /// The copy holds no file.
    Empty(String),
    /// GTIDs were given, and the server has none.
    NeedsPosition,
    /// The server has something else.
    Other { kind: ServerKind, has: GtidState, backup: GtidState },
}

impl std::error::Error for NoBackup {}

impl fmt::Display for NoBackup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoBackup::Copy(error) => error.fmt(f),
            NoBackup::Walk { path, error } => write!(f, "{}: {error}", path.display()),
            NoBackup::NoFile { at, first: Some(first), last: Some(last) } => write!(
                f,
                "--backup-at {at}: the history has no file of that name; it goes from {first} to {last}. Where the backup was made on \
                 another server, its positions are of that server's own log: give its GTIDs"
            ),
            NoBackup::NoFile { at, .. } => write!(f, "--backup-at {at}: the history holds no file"),
            NoBackup::Files { at, timelines } => write!(
                f,
                "--backup-at {at}: files of that name are in several timelines: {}. Give the backup's GTIDs, or choose with --timeline",
                timelines.join(", ")
            ),
            NoBackup::Beyond { at, end } => write!(
                f,
                "--backup-at {at}: the file ends at {end} in the copy: the position is another file's, or the copy is behind the backup"
            ),
            NoBackup::Inside { at, begins, ends } => write!(
                f,
                "--backup-at {at}: no transaction ends there; one goes from {begins} to {ends}. A backup is never in the middle of one: \
                 look at the position again"
            ),
            NoBackup::NoGtids { at } => write!(
                f,
                "--backup-at {at}: the log names no GTIDs there, because the source had gtid_mode = OFF, and the target goes by GTIDs. \
                 Switch them off on the target too, and it is restored by positions: SET GLOBAL gtid_mode = ON_PERMISSIVE; = \
                 OFF_PERMISSIVE; = OFF, one after the other"
            ),
            NoBackup::Empty(name) => write!(f, "the copy of {name} holds nothing yet"),
            NoBackup::NeedsPosition => f.write_str(
                "--backup-at: the target has gtid_mode = OFF, so GTIDs mean nothing to it: say FILE:POSITION, as the backup tool noted it",
            ),
            NoBackup::Other { kind, has, backup } => {
                let forget = match kind {
                    ServerKind::MySql => "RESET BINARY LOGS AND GTIDS (MySQL before 8.4: RESET MASTER)",
                    ServerKind::MariaDb => "RESET MASTER; SET GLOBAL gtid_slave_pos = ''",
                };
                write!(
                    f,
                    "the target cannot be told that it has {}: it has executed {} by its own word. Where that is only the load of the \
                     backup, {forget} makes it forget that, and do this again; else restore the backup again",
                    shortened(&backup.to_line()),
                    shortened(&has.to_line())
                )
            }
        }
    }
}

impl BackupAt {
    /// Reads what was given: `nothing`, a position, GTIDs, or the line that a backup tool writes, a file, a position and, where there are
    /// some, GTIDs, which count then.
    ///
    /// # Errors
    /// In words.
    pub(super) fn parse(text: &str, kind: ServerKind) -> Result<BackupAt, String> {
        let none = || format!("{text:?} is no place of a backup of {kind}: write {FORMS}");
        let gtids = |text: &str| GtidState::parse(kind, text).ok().filter(|gtids| !gtids.is_empty());
        if text.trim().eq_ignore_ascii_case("nothing") {
            return Ok(BackupAt::Gtids(GtidState::empty(kind)));
        }
        if let Some(gtids) = gtids(text.trim()) {
            return Ok(BackupAt::Gtids(gtids));
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        if let [_, _, of_gtids @ ..] = &words[..]
            && !of_gtids.is_empty()
        {
            // MySQL parts sets of several servers by a comma and a line break.
            return gtids(&of_gtids.concat()).map(BackupAt::Gtids).ok_or_else(none);
        }
        let point: Point = words.join(":").parse().map_err(|_| none())?;
        match point.place {
            PointPlace::Position(position) => Ok(BackupAt::Position(position)),
            _ => Err(none()),
        }
    }

    /// The GTIDs that a server restored from that backup has, by the history.
    ///
    /// # Errors
    /// When the history does not say so.
    pub(super) fn gtids(&self, copied: &Copied) -> Result<GtidState, NoBackup> {
        let at = match self {
            BackupAt::Gtids(gtids) => return Ok(gtids.clone()),
            BackupAt::Position(at) => at,
        };
        let none = || NoBackup::NoGtids { at: at.clone() };
        let file = the_file(copied, at)?;
        let mut gtids = gtids_before(copied, &file)?.ok_or_else(none)?;
        let mut has_anonymous = false;
        to_boundary(copied, &file, at, &mut |transaction| match transaction.id {
            Some(id) => has_anonymous |= gtids.insert(id).is_err(),
            None => has_anonymous = true,
        })?;
        if has_anonymous { Err(none()) } else { Ok(gtids) }
    }

    /// Where a server without GTIDs that was restored from that backup goes on.
    ///
    /// # Errors
    /// When that is no boundary of the history, or GTIDs were given.
    pub(super) fn position(&self, copied: &Copied) -> Result<Position, NoBackup> {
        match self {
            BackupAt::Position(at) => {
                let file = the_file(copied, at)?;
                to_boundary(copied, &file, at, &mut |_| ())?;
                Ok(at.clone())
            }
            BackupAt::Gtids(gtids) if gtids.is_empty() => {
                let files = copied.files().map_err(NoBackup::Copy)?;
                let first =
                    files.first().map(|file| Position::new(file.name.clone(), BINLOG_MAGIC.len() as u64));
                first.ok_or_else(|| NoBackup::Empty(copied.name.clone()))
            }
            BackupAt::Gtids(_) => Err(NoBackup::NeedsPosition),
        }
    }
}

/// The only file of that name.
fn the_file(copied: &Copied, at: &Position) -> Result<CopiedFile, NoBackup> {
    let files = copied.files().map_err(NoBackup::Copy)?;
    let [first, last] = [files.first(), files.last()].map(|file| file.map(|file| file.name.to_string()));
    let mut named: Vec<CopiedFile> = files.into_iter().filter(|file| *file.name == *at.file).collect();
    match named.len() {
        0 => Err(NoBackup::NoFile { at: at.clone(), first, last }),
        1 => Ok(named.remove(0)),
        _ => Err(NoBackup::Files {
            at: at.clone(),
            timelines: named.into_iter().map(|file| file.timeline).collect(),
        }),
    }
}

fn gtids_before(copied: &Copied, file: &CopiedFile) -> Result<Option<GtidState>, NoBackup> {
    let opened = copied.read(file).map_err(NoBackup::Copy)?;
    let walk = Walk::open(&*opened, file.end, Options::default());
    let walk = walk.map_err(|error| NoBackup::Walk { path: file.path.clone(), error })?;
    Ok(walk.gtids_before().cloned())
}

/// Walks a file up to a position, where a transaction must end, or begin.
fn to_boundary(
    copied: &Copied,
    file: &CopiedFile,
    at: &Position,
    passed: &mut dyn FnMut(&Transaction),
) -> Result<(), NoBackup> {
    if at.offset > file.end {
        return Err(NoBackup::Beyond { at: at.clone(), end: file.end });
    }
    let opened = copied.read(file).map_err(NoBackup::Copy)?;
    let in_file = |error| NoBackup::Walk { path: file.path.clone(), error };
    let mut walk = Walk::open(&*opened, file.end, Options::default()).map_err(in_file)?;
    while let Some(transaction) = walk.next_transaction().map_err(in_file)? {
        if transaction.at >= at.offset {
            break;
        }
        if transaction.end > at.offset {
            return Err(NoBackup::Inside { at: at.clone(), begins: transaction.at, ends: transaction.end });
        }
        passed(transaction);
    }
    Ok(())
}

/// The server as it will be when it has been told that it has `backup`; `None` where it knows already, because it was told
/// before, and may have gone on since.
///
/// # Errors
/// `NoBackup::Other` where it has something else.
pub(super) fn told(target: &SourceIdentity, backup: &GtidState) -> Result<Option<SourceIdentity>, NoBackup> {
    if target.lacks(backup).is_empty() {
        return Ok(None);
    }
    if !target.executed.is_empty() {
        let (kind, has) = (target.kind, target.executed.clone());
        return Err(NoBackup::Other { kind, has, backup: backup.clone() });
    }
    let applied = match backup {
        GtidState::Mysql(_) => MariadbGtidState::new(),
        GtidState::Mariadb(state) => state.position().parse().unwrap_or_else(|_| state.clone()),
    };
    Ok(Some(SourceIdentity { executed: backup.clone(), applied, ..target.clone() }))
}

#[cfg(test)]
mod tests;
