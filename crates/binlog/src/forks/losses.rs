//! What forks took from the source, by the record of its timelines.

use crate::folder::timeline_number;
use crate::storage::Storage;
use crate::timeline::held::{HeldTimeline, beginning, present_history, removed};
use codec::ServerKind;
use codec::gtid::{GtidState, MariadbGtid, MariadbGtidState, TransactionId};
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
    /// What stood in files that were purged or moved away.
    removed: GtidState,
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
        if nothing {
            return Ok(None);
        }
        let removed = removed(storage, timelines)?;
        Ok(Some(Losses { source_folder: source_folder.to_owned(), kind, list, removed }))
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

    /// What was lost by a timeline and stood in files that are not there any more. Some may stand in others too. For MariaDB, of
    /// each server and domain the last.
    pub(super) fn removed_of(&self, timeline: usize) -> GtidState {
        let Loss { lacked, shares, .. } = &self.list[timeline];
        match (lacked, &self.removed) {
            (GtidState::Mysql(lacked), GtidState::Mysql(removed)) => {
                GtidState::Mysql(lacked.intersect(removed))
            }
            (GtidState::Mariadb(lacked), GtidState::Mariadb(removed)) => {
                let mut lost = MariadbGtidState::new();
                for id in lacked.list() {
                    let is_same =
                        |other: &&MariadbGtid| (other.domain, other.server_id) == (id.domain, id.server_id);
                    let last = removed.list().find(|other| is_same(&other));
                    let last = last.map(|last| if last.sequence < id.sequence { last } else { id });
                    if let Some(last) = last.filter(|last| !shares.contains(&TransactionId::from(*last))) {
                        lost.insert(last);
                    }
                }
                GtidState::Mariadb(lost)
            }
            _ => GtidState::empty(self.kind),
        }
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

    /// The newest timeline up to number `through` whose source lacked a transaction.
    pub(super) fn lacked_last(&self, id: &TransactionId, through: u32) -> Option<usize> {
        self.list.iter().rposition(|loss| loss.number <= through && loss.took(id))
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
        // A later file would count to it what the source has written since.
        let before = beginning(storage, held)?;
        loss.is_known = before.is_some();
        if let Some(before) = before {
            // Both are MariaDB's.
            let _ = loss.shares.union_with(&before);
        }
    }
    Ok(loss)
}
