//! Why a server is not brought to a point.

use super::backup::NoBackup;
use crate::history::shortened;
use crate::rescue::NoRescue;
use crate::restore::carry_out::ended::Ended;
use crate::restore::course::no_course::NoCourse;
use codec::gtid::GtidState;
use std::io;

/// What a server without GTIDs needs.
const NO_GTIDS: &str = "the target has gtid_mode = OFF, so it does not know what it has. Where the source has GTIDs, switch them on here \
                        too: SET GLOBAL enforce_gtid_consistency = ON; SET GLOBAL gtid_mode = OFF_PERMISSIVE; = ON_PERMISSIVE; = ON, \
                        one after the other. Where the source has none either, say where the backup was made: --backup-at FILE:POSITION, or \
                        nothing";

/// Why. Nothing was applied, but where it is [`NoRestore::Ended`].
#[derive(Debug, thiserror::Error)]
pub enum NoRestore {
    /// The target cannot be reached or asked, is in use, or has settings that are refused by name.
    #[error("{host}: {error}")]
    Target {
        /// Which.
        host: String,
        /// Why, in words.
        error: String,
    },
    /// What is changed on it for the time being cannot be noted.
    #[error(transparent)]
    Notes(#[from] io::Error),
    /// What is to be passed over is not named as it must be.
    #[error("{0}")]
    Skip(String),
    /// Nobody knows what the target has: it has no GTIDs, and no place of its backup was given.
    #[error("{host}: {NO_GTIDS}")]
    Unknown {
        /// Which.
        host: String,
    },
    /// Statements name transactions by their GTIDs.
    #[error("{host}: --statements needs GTIDs, which the target has switched off")]
    StatementsNeedGtids {
        /// Which.
        host: String,
    },
    /// The place of the backup cannot be read.
    #[error("--backup-at: {0}")]
    BackupAt(String),
    /// The place of the backup does not lead to what the target has.
    #[error(transparent)]
    Backup(Box<NoBackup>),
    /// The GTIDs of the backup stand in no file of the copy.
    #[error(
        "--backup-at: {} is in no file of the copy: the backup is another source's, or the copy is behind it",
        shortened(&.0.to_line())
    )]
    OtherBackup(Box<GtidState>),
    /// There is no way from what it has to the point.
    #[error(transparent)]
    Course(Box<NoCourse>),
    /// It has other transactions than the copy under GTIDs of the source, or cannot be compared.
    #[error(transparent)]
    Compared(#[from] NoRescue),
    /// It has ended early.
    #[error("{host}: {error}")]
    Ended {
        /// Where.
        host: String,
        /// Why.
        error: Box<Ended>,
    },
}

impl From<NoBackup> for NoRestore {
    fn from(error: NoBackup) -> NoRestore {
        NoRestore::Backup(Box::new(error))
    }
}

impl From<NoCourse> for NoRestore {
    fn from(error: NoCourse) -> NoRestore {
        NoRestore::Course(Box::new(error))
    }
}
