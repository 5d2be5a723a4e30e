//! Whether a transaction of the target is the one that the copy holds under its GTID.
//!
//! A GTID on both sides proves nothing: a server that lost its tail gives the same GTIDs to others. The target's own binary log
//! says what it has done, and each transaction there is held against the copy's by its fingerprint.

pub(crate) mod between;
pub(in crate::rescue) mod chosen;
pub(crate) mod compared;
pub(in crate::rescue) mod missing;
pub(in crate::rescue) mod ours;
pub(in crate::rescue) mod target_log;

use crate::rescue::compare::chosen::{Chosen, PLENTY};
use crate::rescue::compare::compared::{Compared, Difference, Missing, Version};
use crate::rescue::compare::missing::Coverage;
use crate::rescue::compare::ours::{Ours, is_same, next_of_ours, read_again, version};
use crate::rescue::compare::target_log::{From, Logged, TargetLog};
use crate::rescue::plan::lacked::Lacked;
use binlog::forks::Forks;
use binlog::forks::fingerprint::Verdict;
use binlog::forks::transactions::TransactionReader;
use binlog::storage::Storage;
use binlog::timeline::files::timeline_files;
use binlog::timeline::held::{HeldGtids, present_history};
use codec::ServerKind;
use codec::gtid::{GtidSet, GtidState, TransactionId};
use source::identify::SourceIdentity;
use status::units;
use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use thiserror::Error;
use wire::{ConnectOptions, Connection, WireError};

/// So many transactions of the copy are compared in one reading of the target's log.
const BATCH: usize = 50_000;
/// How much of what the target has already is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The newest of each server and domain, and what forks took from the source and those around.
    Sample,
    /// Of these, what stands in the newest files of the target's log, of so many bytes together; one file at least. Who waits for the
    /// answer waits no longer the further back another server has written last.
    Newest(u64),
    /// Everything that both logs hold.
    All,
}

/// Why nothing could be compared.
#[derive(Debug, Error)]
pub enum CompareError {
    /// The account may not read the target's binary log, or there is none.
    #[error(
        "the target's binary log cannot be read, so nobody can say whether its transactions are those of the copy: {0}\nThe \
         target needs log_bin and the account REPLICATION SLAVE and REPLICATION CLIENT (MariaDB: REPLICATION SLAVE and BINLOG \
         MONITOR); or go by GTIDs alone with --compare none"
    )]
    NotReadable(WireError),
    /// The target.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The copy.
    #[error("cannot read the copy: {0}")]
    Copy(#[from] io::Error),
}

impl CompareError {
    fn of(error: WireError) -> CompareError {
        match error {
            error @ (WireError::Server { .. } | WireError::AccessDenied { .. }) => {
                CompareError::NotReadable(error)
            }
            error => CompareError::Wire(error),
        }
    }
}

/// Compares a target with a copy.
#[derive(Debug)]
pub struct Comparison<'a> {
    log: TargetLog<'a>,
    options: &'a ConnectOptions,
    server: &'a SourceIdentity,
    files: Vec<PathBuf>,
    compared: Compared,
}

impl<'a> Comparison<'a> {
    /// With the server behind `options`, whose executed GTIDs are those of `server`.
    pub fn new(options: &'a ConnectOptions, server: &'a SourceIdentity) -> Comparison<'a> {
        let log = TargetLog::new(options, server);
        Comparison { log, options, server, files: Vec::new(), compared: Compared::default() }
    }

    /// Makes sure that the account may read the target's binary log.
    ///
    /// # Errors
    /// `CompareError::NotReadable` when it may not.
    pub fn try_reading(&self) -> Result<(), CompareError> {
        self.log.try_reading().map_err(CompareError::of)?;
        if self.server.kind == ServerKind::MariaDb {
            self.target_files()?;
        }
        Ok(())
    }

    /// Compares what the target has already, as far as `scope` says. Returns what it chose, in words, and the outcome. `look_at`
    /// is told each file of the copy that is read; `storage` may have files of it that are not on this disk.
    ///
    /// # Errors
    /// When either side cannot be read.
    pub fn what_is_there(
        mut self,
        (storage, source_folder): (&dyn Storage, &Path),
        held: &HeldGtids,
        scope: Scope,
        mut look_at: impl FnMut(&Path),
    ) -> Result<(String, Compared), CompareError> {
        // Which of two transactions of one GTID the target should have is for a person to decide.
        let forks = Forks::read(storage, source_folder, || true)?;
        let mut chosen = Chosen::of(held, self.server, forks.as_ref(), scope == Scope::All);
        let sample = format!("the newest {PLENTY} of each server, and what forks took with {PLENTY} around");
        let words = match scope {
            Scope::All => "everything that both have".to_owned(),
            Scope::Sample => sample,
            Scope::Newest(bytes) => {
                if let Some(before) = self.logged_before_newest(bytes)? {
                    self.compared.further_back = chosen.leave_out(&before);
                }
                format!("{sample}, as far as its log of the newest {} has it", units::bytes(bytes))
            }
        };
        let mut batch: HashMap<TransactionId, Vec<Ours>> = HashMap::new();
        for path in files_with(storage, source_folder, &chosen)? {
            look_at(&path);
            let mut reader = TransactionReader::open(storage, &path)?;
            let file = self.files.len();
            self.files.push(path.clone());
            while let Some((id, ours)) = next_of_ours(&mut reader, file, &|id| chosen.has(id))? {
                if forks.as_ref().is_some_and(|forks| forks.is_not_the_one(&id, &path, ours.at)) {
                    continue;
                }
                let versions = batch.entry(id).or_default();
                // A new timeline begins with a whole file, so the same transaction may stand in two of them.
                if !versions.iter().any(|other| is_same(&other.seen, &ours.seen)) {
                    versions.push(ours);
                }
                if batch.len() >= BATCH {
                    self.batch(&batch, forks.as_ref())?;
                    batch.clear();
                }
            }
        }
        self.batch(&batch, forks.as_ref())?;
        Ok((words, self.compared))
    }

    /// Compares what was handed over: every one of them must stand in the target's log, once, as the copy has it.
    ///
    /// # Errors
    /// When either side cannot be read.
    pub fn handed_over(mut self, transactions: &[Lacked]) -> Result<Compared, CompareError> {
        let mut places: HashMap<TransactionId, (&Lacked, u32)> =
            transactions.iter().map(|lacked| (lacked.id, (lacked, 0))).collect();
        let ids: Vec<TransactionId> = transactions.iter().map(|lacked| lacked.id).collect();
        let from = self.beginning(&ids)?;
        let wanted: HashSet<TransactionId> = ids.into_iter().collect();
        let mut open: Option<(PathBuf, TransactionReader)> = None;
        let (mut compared, mut failed) = (std::mem::take(&mut self.compared), None);
        let read = self.log.read(&from, &mut |id| wanted.contains(id), &mut |logged| {
            let Some((lacked, times)) = places.get_mut(&logged.id) else {
                return Ok(ControlFlow::Continue(()));
            };
            *times += 1;
            if *times > 1 {
                compared.twice.push(logged.id);
            }
            match read_again(&mut open, &lacked.path, lacked.at) {
                Ok(ours) => compare(&mut compared, &lacked.path, &ours, &logged),
                Err(error) => {
                    failed = Some(error);
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
        read.map_err(CompareError::of)?;
        for lacked in transactions {
            if places.get(&lacked.id).is_none_or(|(_, times)| *times == 0) {
                compared.absent(lacked.id);
            }
        }
        Ok(compared)
    }

    fn batch(
        &mut self,
        batch: &HashMap<TransactionId, Vec<Ours>>,
        forks: Option<&Forks>,
    ) -> Result<(), CompareError> {
        if batch.is_empty() {
            return Ok(());
        }
        let ids: Vec<TransactionId> = batch.keys().copied().collect();
        let from = self.beginning(&ids)?;
        let mut coverage = self.coverage(&from)?;
        let mut seen = HashSet::new();
        let (compared, files) = (&mut self.compared, &self.files);
        self.log
            .read(
                &from,
                &mut |id| {
                    coverage.logged(id);
                    batch.contains_key(id)
                },
                &mut |logged| {
                    for ours in batch.get(&logged.id).into_iter().flatten() {
                        compare(compared, &files[ours.file], ours, &logged);
                    }
                    seen.insert(logged.id);
                    // MariaDB may have given a GTID twice, so it is read to its end.
                    let all = self.server.kind == ServerKind::MySql && seen.len() == batch.len();
                    Ok(if all { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
                },
            )
            .map_err(CompareError::of)?;
        let mut absent: Vec<&TransactionId> = batch.keys().filter(|id| !seen.contains(id)).collect();
        absent.sort_by_key(|id| match id {
            TransactionId::Mysql(id) => (0, 0, id.gno),
            TransactionId::Mariadb(id) => (id.domain, id.server_id, id.sequence),
        });
        for id in absent {
            let newest = batch[id].last().filter(|_| coverage.would_hold(id, self.server));
            match newest {
                // Somebody has decided that it may be.
                Some(_) if forks.is_some_and(|forks| forks.is_given_up(id)) => {}
                Some(ours) => {
                    let copy = version(&self.files[ours.file], ours);
                    self.compared.misses(Missing { id: *id, copy });
                }
                None => self.compared.absent(*id),
            }
        }
        Ok(())
    }

    /// What the target's log covers from there on.
    fn coverage(&self, from: &From) -> Result<Coverage, CompareError> {
        let From::Place(file, _) = from else { return Ok(Coverage::default()) };
        let before = self.log.logged_before(file).map_err(CompareError::of)?;
        let mut connection = Connection::connect(self.options)?;
        let rows = connection.query("SHOW GLOBAL VARIABLES LIKE 'log_slave_updates'")?;
        Ok(Coverage::new(before, rows.get(0, "Value") == Some("ON")))
    }

    /// Where to begin in the target's log to find all of these.
    fn beginning(&self, ids: &[TransactionId]) -> Result<From, CompareError> {
        if let GtidState::Mysql(executed) = &self.server.executed {
            let mut wanted = GtidSet::new();
            for id in ids {
                if let TransactionId::Mysql(gtid) = id {
                    wanted.insert(*gtid);
                }
            }
            // What was purged is refused when it is asked for.
            if let GtidState::Mysql(purged) = &self.server.purged {
                wanted = wanted.subtract(purged);
            }
            return Ok(From::Outside(executed.subtract(&wanted)));
        }
        let files = self.target_files()?;
        let before = |state: &GtidState| ids.iter().any(|id| state.contains(id));
        let file = self.log.file_before(&files, &before).map_err(CompareError::of)?;
        Ok(From::Place(file, 4))
    }

    /// What the target logged before its newest files of so many bytes together.
    fn logged_before_newest(&self, bytes: u64) -> Result<Option<GtidState>, CompareError> {
        let mut connection = Connection::connect(self.options)?;
        let rows = connection.query("SHOW BINARY LOGS").map_err(CompareError::of)?;
        let size = |row: &usize| rows.get(*row, "File_size").and_then(|size| size.parse::<u64>().ok());
        let mut sum = 0_u64;
        let is_near = |row: &usize| {
            sum = sum.saturating_add(size(row).unwrap_or(0));
            sum <= bytes
        };
        let newest = rows.rows.len().saturating_sub(1);
        let first = (0..newest).rev().take_while(is_near).last().unwrap_or(newest);
        let Some(name) = rows.get(first, "Log_name").filter(|_| first > 0) else { return Ok(None) };
        self.log.logged_before(name).map_err(CompareError::of)
    }

    fn target_files(&self) -> Result<Vec<String>, CompareError> {
        let mut connection = Connection::connect(self.options)?;
        let rows = connection.query("SHOW BINARY LOGS").map_err(CompareError::of)?;
        // Without a name that cannot be read more is read: the search begins in an earlier file.
        Ok((0..rows.rows.len()).filter_map(|row| rows.get(row, "Log_name").map(str::to_owned)).collect())
    }
}

/// The files that may hold what is chosen, the oldest first. Those before it are not looked at: of an archive each look is a request.
fn files_with(storage: &dyn Storage, source_folder: &Path, chosen: &Chosen) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for timeline in present_history(storage, source_folder)?.into_iter().rev() {
        let mut after = None;
        for name in timeline_files(storage, &timeline.folder)?.into_iter().rev() {
            let path = timeline.folder.join(name);
            let before = executed_before(storage, &path)?;
            // Without a word of its own in its first events it may hold anything.
            if chosen.may_be_between(before.as_ref(), after.as_ref()) && !is_empty(storage, &path)? {
                found.push(path);
            }
            // What a fork took stands in an older timeline only.
            if before.as_ref().is_some_and(|before| !chosen.may_be_between(None, Some(before))) {
                break;
            }
            after = before;
        }
    }
    found.reverse();
    Ok(found)
}

/// Begun, and nothing in it yet.
fn is_empty(storage: &dyn Storage, path: &Path) -> io::Result<bool> {
    Ok(storage.look(path)?.len <= 4)
}

/// What was executed before a file by its own word. One that has no whole head yet says nothing, nor does a damaged one: then it
/// may hold anything, and who reads on in it tells of the damage.
fn executed_before(storage: &dyn Storage, path: &Path) -> io::Result<Option<GtidState>> {
    TransactionReader::open_head(storage, path).ok().map_or(Ok(None), |mut reader| reader.gtids_before())
}

fn compare(compared: &mut Compared, path: &Path, ours: &Ours, logged: &Logged) {
    let (own, theirs) = match (&ours.seen, &logged.seen) {
        (Ok(own), Ok(theirs)) => (own, theirs),
        (Err(why), _) | (_, Err(why)) => return compared.unclear(why),
    };
    match own.fingerprint.compare(&theirs.fingerprint) {
        Verdict::Same => compared.same += 1,
        Verdict::OtherForm => {
            compared.same += 1;
            compared.other_form += 1;
        }
        Verdict::Different => {
            let copy = version(path, ours);
            let target = Version {
                began: theirs.began,
                size: logged.size,
                changes: theirs.changes.clone(),
                place: format!("{} at {}", logged.file, logged.at),
            };
            compared.differs(Difference { id: logged.id, copy, target });
        }
    }
}
