//! What forks took from the source, by the record of its timelines.

use crate::files::timeline_files;
use crate::folder::timeline_number;
use crate::held::{HeldTimeline, present_history};
use crate::storage::Storage;
use crate::transactions::stated_before;
use codec::ServerKind;
use codec::gtid::{GtidState, MariadbGtidState, TransactionId};
use std::io;
use std::path::{Path, PathBuf};

/// What each timeline says about what was lost.
#[derive(Debug, Clone)]
struct Loss {
    folder: PathBuf,
    number: u32,
    lacked: GtidState,
    /// Of MariaDB servers in `lacked`, up to where the source has their transactions all the same.
    shares: GtidState,
    /// False while the timeline has no file whose beginning says what is shared: `shares` may say too little.
    is_known: bool,
}

impl Loss {
    fn took(&self, id: &TransactionId) -> bool {
        self.lacked.contains(id) && !self.shares.contains(id)
    }
}

/// What forks took from the source in its present history, by the record of its timelines.
#[derive(Debug, Clone)]
pub struct Losses {
    source_folder: PathBuf,
    kind: ServerKind,
    list: Vec<Loss>,
}

impl Losses {
    /// Reads the descriptions of the timelines, and the beginning of a file of each that lost something; `None` when none did.
    ///
    /// # Errors
    /// When a folder or a file cannot be read.
    pub fn read(storage: &dyn Storage, source_folder: &Path) -> io::Result<Option<Losses>> {
        let history = present_history(storage, source_folder)?;
        let Some(newest) = history.last() else { return Ok(None) };
        Losses::of(storage, source_folder, &history, newest.info.server_kind)
    }

    /// As [`Losses::read`], by the record of these timelines alone.
    ///
    /// # Errors
    /// When a folder or a file cannot be read.
    pub fn of(
        storage: &dyn Storage,
        source_folder: &Path,
        timelines: &[HeldTimeline],
        kind: ServerKind,
    ) -> io::Result<Option<Losses>> {
        let list: Vec<Loss> =
            timelines.iter().map(|held| loss(storage, held, kind)).collect::<io::Result<_>>()?;
        let nothing = list.iter().all(|loss| loss.lacked.is_empty());
        Ok((!nothing).then(|| Losses { source_folder: source_folder.to_owned(), kind, list }))
    }

    /// Whether it is known what exactly was lost. With MariaDB that is not so before the first file of a timeline has begun.
    pub fn is_known(&self) -> bool {
        self.list.iter().all(|loss| loss.is_known)
    }

    /// Reads them again.
    ///
    /// # Errors
    /// As [`Losses::read`].
    pub fn reread(&self, storage: &dyn Storage) -> io::Result<Option<Losses>> {
        Losses::read(storage, &self.source_folder)
    }

    /// Whether a transaction may be one that was lost.
    pub fn took(&self, id: &TransactionId) -> bool {
        self.list.iter().any(|loss| loss.took(id))
    }

    /// The source's folder.
    pub(super) fn source_folder(&self) -> &Path {
        &self.source_folder
    }

    /// The kind of server that the GTIDs are of.
    pub(super) fn kind(&self) -> ServerKind {
        self.kind
    }

    /// How many timelines there are, one at least.
    pub(super) fn timelines(&self) -> usize {
        self.list.len()
    }

    /// The folder of a timeline.
    pub(super) fn folder(&self, timeline: usize) -> &Path {
        &self.list[timeline].folder
    }

    /// The number of a timeline, as its folder's name has it.
    pub(super) fn number(&self, timeline: usize) -> u32 {
        self.list[timeline].number
    }

    /// The newest timeline whose source lacked a transaction.
    pub(super) fn lacked_last(&self, id: &TransactionId) -> Option<usize> {
        self.list.iter().rposition(|loss| loss.took(id))
    }

    /// Whether a file may hold something that was lost, which begins with the one state of GTIDs and after which the next one
    /// begins with the other.
    pub fn may_hold_lost(&self, before: Option<&GtidState>, after: Option<&GtidState>) -> bool {
        let (Some(before), Some(after)) = (before, after) else { return true };
        self.list.iter().filter(|loss| !loss.lacked.is_empty()).any(|loss| {
            match (&loss.lacked, before, after) {
                (GtidState::Mysql(lacked), GtidState::Mysql(before), GtidState::Mysql(after)) => {
                    !lacked.intersect(after).subtract(before).is_empty()
                }
                (GtidState::Mariadb(lacked), GtidState::Mariadb(before), GtidState::Mariadb(after)) => {
                    wrote_what_was_lost(lacked, &loss.shares, before, after)
                }
                _ => true,
            }
        })
    }
}

/// Whether between the two states a server wrote transactions of which a source lacks the newest, and had not all.
fn wrote_what_was_lost(
    lacked: &MariadbGtidState,
    shares: &GtidState,
    before: &MariadbGtidState,
    after: &MariadbGtidState,
) -> bool {
    let is_of = |state: &MariadbGtidState, domain, server| {
        state.list().find(|id| (id.domain, id.server_id) == (domain, server)).map(|id| id.sequence)
    };
    lacked.list().any(|id| {
        let last = is_of(after, id.domain, id.server_id);
        let shared = match shares {
            GtidState::Mariadb(shares) => is_of(shares, id.domain, id.server_id),
            GtidState::Mysql(_) => None,
        };
        last != is_of(before, id.domain, id.server_id) && last > shared
    })
}

fn loss(storage: &dyn Storage, held: &HeldTimeline, kind: ServerKind) -> io::Result<Loss> {
    let number = held.folder.file_name().and_then(|name| timeline_number(name.to_str()?)).unwrap_or(0);
    let mut loss = Loss {
        folder: held.folder.clone(),
        number,
        lacked: GtidState::empty(kind),
        shares: GtidState::empty(kind),
        is_known: true,
    };
    if held.info.server_kind != kind {
        return Ok(loss);
    }
    loss.lacked = held.info.lacked();
    if kind == ServerKind::MariaDb && !loss.lacked.is_empty() {
        loss.shares = held.info.shares();
        let names = timeline_files(storage, &held.folder)?;
        let before = names
            .first()
            .map(|first| stated_before(storage, &held.folder.join(first)))
            .transpose()?
            .flatten();
        loss.is_known = before.is_some();
        if let Some(before) = before {
            // Both are MariaDB's.
            let _ = loss.shares.union_with(&before);
        }
    }
    Ok(loss)
}
