//! Why a server cannot be brought to a point.

use super::skip::Skip;
use crate::history::{NoCopy, Shown, shortened};
use codec::ServerKind;
use codec::gtid::GtidState;
use points::walk::WalkError;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why there is no way.
#[expect(missing_docs, reason = "the words of each variant name its fields")]
#[derive(Debug)]
pub enum NoCourse {
    /// The copy cannot be read.
    Copy(NoCopy),
    /// A file of it is damaged, or cannot be read.
    Walk { path: PathBuf, error: WalkError },
    /// The copy does not have something that the target needs.
    Missing { gtids: GtidState, target_is_empty: bool },
    /// The target has executed more than the history up to the point.
    Beyond {
        /// The first transaction that it has and is not to have.
        shown: Box<Shown>,
        point: String,
    },
    /// The target has executed what is in no file of the copy.
    Foreign { gtids: GtidState },
    /// The copy does not come to the point.
    NotReached { point: String, last: Option<Box<Shown>> },
    /// Several transactions are meant.
    Ambiguous { point: String, choices: Vec<Shown>, count: u64 },
    /// A transaction has no GTID, and the target goes by GTIDs.
    Anonymous { shown: Box<Shown> },
    /// A transaction has a GTID, and the target has them switched off.
    HasGtid { shown: Box<Shown> },
    /// Without GTIDs nobody can tell how the history goes on there.
    Parted { path: PathBuf, why: &'static str },
    /// What is to be passed over is not to be applied anyway.
    NotToBeSkipped(Skip),
    /// What a transaction does could not be looked at, and the point is found by that.
    Unread { shown: Box<Shown>, why: String },
}

impl std::error::Error for NoCourse {}

impl NoCourse {
    /// Whether a part of the log is not there: neither damaged, nor of another history.
    pub fn is_gap(&self) -> bool {
        let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        match self {
            NoCourse::Missing { .. } => true,
            NoCourse::Walk { error: WalkError::Read(error), .. } => is_gone(error),
            NoCourse::Copy(NoCopy::Read { error, .. }) => is_gone(error),
            _ => false,
        }
    }
}

impl fmt::Display for NoCourse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoCourse::Copy(error) => error.fmt(f),
            NoCourse::Walk { path, error } => write!(f, "{}: {error}", path.display()),
            NoCourse::Missing { gtids, target_is_empty: true } => write!(
                f,
                "the target is empty, and the copy does not begin with the first transaction of its source: {} is in no file of it. \
                 Restore a backup first, with its GTIDs (gtid_purged; on MariaDB gtid_slave_pos), then do this again",
                shortened(&gtids.to_line())
            ),
            NoCourse::Missing { gtids, .. } => write!(
                f,
                "the history has a gap between the target and the point: {} was executed by the source, the target does not have it, \
                 and no file of the copy holds it. Take a later backup, or a copy or an archive that reaches further back",
                shortened(&gtids.to_line())
            ),
            NoCourse::Beyond { shown, point } => write!(
                f,
                "the target is past the point already ({point}): it has executed what was to be left out, {shown}. Nothing is undone by \
                 going on: restore a backup that was made earlier"
            ),
            NoCourse::Foreign { gtids } => {
                let forget = match gtids.kind() {
                    ServerKind::MySql => {
                        "RESET BINARY LOGS AND GTIDS (MySQL before 8.4: RESET MASTER) and set them again"
                    }
                    ServerKind::MariaDb => "RESET MASTER, which leaves gtid_slave_pos as it is",
                };
                write!(
                    f,
                    "the target has executed {}, which is in no file of the copy: it is another server, or something was written to it \
                     after its backup was restored. Restore the backup again and write nothing; or, where that was only an account or \
                     the load of a dump, {forget}",
                    shortened(&gtids.to_line())
                )
            }
            NoCourse::NotReached { point, last: Some(last) } => write!(
                f,
                "the copy does not come to the point ({point}): its last transaction is {last}. Where all of it is wanted, say --until end"
            ),
            NoCourse::NotReached { point, last: None } => write!(
                f,
                "the copy does not come to the point ({point}): it holds nothing that the target lacks"
            ),
            NoCourse::Ambiguous { point, choices, count } => {
                write!(
                    f,
                    "{point} may be {count} transactions; name the GTID of the one that is meant, --until GTID:"
                )?;
                choices.iter().try_for_each(|choice| write!(f, "\n  {choice}"))
            }
            NoCourse::Anonymous { shown } => write!(
                f,
                "{shown}: it has no GTID, because the source had gtid_mode = OFF, and the target goes by GTIDs. Switch them off on the \
                 target too (SET GLOBAL gtid_mode = ON_PERMISSIVE; = OFF_PERMISSIVE; = OFF, one after the other), and say where the \
                 backup was made: --backup-at FILE:POSITION"
            ),
            NoCourse::HasGtid { shown } => write!(
                f,
                "{shown}: it has a GTID, and the target has GTIDs switched off. Switch them on there: SET GLOBAL \
                 enforce_gtid_consistency = ON; SET GLOBAL gtid_mode = OFF_PERMISSIVE; = ON_PERMISSIVE; = ON, one after the other"
            ),
            NoCourse::Parted { path, why } => write!(
                f,
                "{}: {why}, and without GTIDs nobody can tell what of the files before is in it. Restore to the end of the timeline \
                 before: --until end --timeline N",
                path.display()
            ),
            NoCourse::NotToBeSkipped(skip) => write!(
                f,
                "--skip {skip}: it is not one of those that are to be applied, so nothing was changed: the target has it, or it comes behind \
                 the point"
            ),
            NoCourse::Unread { shown, why } => write!(
                f,
                "{shown}: what it does cannot be looked at ({why}), so it may be what is meant or not. Name the point by its GTID"
            ),
        }
    }
}
