//! Whether a transaction of the target is the one that the copy holds under its GTID.
//!
//! A GTID on both sides proves nothing: a server that lost its tail gives the same GTIDs to others. The target's own binary log
//! says what it has done, and each transaction there is held against the copy's by its fingerprint.

use super::chosen::{Chosen, PLENTY};
use super::missing::{Coverage, Missing};
use super::plan::Lacked;
use super::target_log::{From, Logged, TargetLog};
use crate::upstream::identify::SourceIdentity;
use codec::gtid::{GtidSet, GtidState, TransactionId};
use log::fingerprint::{Fingerprinter, Seen, Verdict};
use log::forks::Forks;
use log::gtid_list::GtidList;
use log::held::{HeldGtids, present_history};
use log::index;
use log::recover::files_in_order;
use log::storage::PosixStorage;
use log::timeline::ServerKind;
use log::transactions::TransactionReader;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use thiserror::Error;
use wire::{ConnectOptions, Connection, WireError};

/// So many transactions of the copy are compared in one reading of the target's log.
const BATCH: usize = 50_000;
/// So many that differ are kept to be shown; the others are counted.
const SHOWN_MAX: usize = 20;

/// How much of what the target has already is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The newest of each server and domain, and what forks took from the source and those around.
    Sample,
    /// Everything that both logs hold.
    All,
}

/// One transaction as one side has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Seconds since 1970 at which it was begun.
    pub began: u32,
    /// Length in the binary log, in bytes.
    pub size: u64,
    /// `schema.table` of its rows, the beginning of its statements.
    pub changes: Vec<String>,
    /// File and position.
    pub place: String,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let began = jiff::Timestamp::from_second(i64::from(self.began));
        let began = began.map_or_else(|_| "?".to_owned(), |began| began.to_string());
        let changes = if self.changes.is_empty() { "no changes".to_owned() } else { self.changes.join(", ") };
        write!(f, "{began}  {} bytes  {}  {changes}", self.size, self.place)
    }
}

/// A GTID that names one transaction in the copy and another one on the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The GTID.
    pub id: TransactionId,
    /// What the copy holds.
    pub copy: Version,
    /// What the target has.
    pub target: Version,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  in the copy:   {}\n  on the target: {}", self.id, self.copy, self.target)
    }
}

/// The outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compared {
    /// Transactions that are the same on both sides.
    pub same: u64,
    /// Of these, such that the target tells in a form that cannot be compared byte by byte (rows for a statement, other columns);
    /// time, session and tables are the same.
    pub other_form: u64,
    /// GTIDs under which the two sides have different transactions, the first ones.
    pub different: Vec<Difference>,
    /// How many more there are.
    pub more_different: u64,
    /// Transactions that could not be compared because the target's binary log does not hold them (any more).
    pub not_in_its_log: u64,
    /// Which ones.
    pub not_in_its_log_gtids: GtidList,
    /// Transactions that the target counts as there, and that its binary log passes over, the first ones: it lacks them.
    pub missing: Vec<Missing>,
    /// How many more there are.
    pub more_missing: u64,
    /// All of them.
    pub missing_gtids: GtidList,
    /// GTIDs that stand in the target's log more than once, which MariaDB allows.
    pub twice: Vec<TransactionId>,
    /// Transactions with events that cannot be compared, and why the first of them cannot.
    pub unclear: u64,
    /// Why.
    pub unclear_reason: String,
}

impl Compared {
    /// How many differ.
    pub fn differing(&self) -> u64 {
        self.different.len() as u64 + self.more_different
    }

    fn differs(&mut self, difference: Difference) {
        if self.different.len() < SHOWN_MAX {
            self.different.push(difference);
        } else {
            self.more_different += 1;
        }
    }

    fn absent(&mut self, id: TransactionId) {
        self.not_in_its_log += 1;
        self.not_in_its_log_gtids.insert(id);
    }

    /// How many are missing.
    pub fn missing(&self) -> u64 {
        self.missing.len() as u64 + self.more_missing
    }

    fn misses(&mut self, missing: Missing) {
        self.missing_gtids.insert(missing.id);
        if self.missing.len() < SHOWN_MAX {
            self.missing.push(missing);
        } else {
            self.more_missing += 1;
        }
    }

    fn unclear(&mut self, why: &str) {
        if self.unclear == 0 {
            self.unclear_reason = why.to_owned();
        }
        self.unclear += 1;
    }
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

/// A transaction of the copy that is to be compared.
struct Ours {
    seen: Result<Seen, String>,
    /// Place in [`Comparison::files`].
    file: usize,
    at: u64,
    end: u64,
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
    /// [`CompareError::NotReadable`] when it may not.
    pub fn try_reading(&self) -> Result<(), CompareError> {
        self.log.try_reading().map_err(CompareError::of)?;
        if self.server.kind == ServerKind::Mariadb {
            self.target_files()?;
        }
        Ok(())
    }

    /// Compares what the target has already, as far as `scope` says. Returns what it chose, in words, and the outcome. `look_at`
    /// is told each file of the copy that is read.
    ///
    /// # Errors
    /// When either side cannot be read.
    pub fn what_is_there(
        mut self,
        source_folder: &Path,
        held: &HeldGtids,
        scope: Scope,
        mut look_at: impl FnMut(&Path),
    ) -> Result<(String, Compared), CompareError> {
        // Which of two transactions of one GTID the target should have is for a person to decide.
        let forks = Forks::read(&PosixStorage, source_folder, || true)?;
        let chosen = Chosen::of(held, self.server, forks.as_ref(), scope == Scope::All);
        let words = match scope {
            Scope::All => "everything that both have".to_owned(),
            Scope::Sample => {
                format!("the newest {PLENTY} of each server, and what forks took with {PLENTY} around")
            }
        };
        let mut batch: HashMap<TransactionId, Vec<Ours>> = HashMap::new();
        for timeline in present_history(&PosixStorage, source_folder)? {
            let files = files_in_order(
                &PosixStorage,
                &timeline.folder,
                &index::read(&PosixStorage, &timeline.folder)?,
                &mut Vec::new(),
            )?;
            let paths: Vec<PathBuf> = files.iter().map(|name| timeline.folder.join(name)).collect();
            let mut before = paths.first().map_or(Ok(None), |first| executed_before(first))?;
            for (position, path) in paths.iter().enumerate() {
                let after = paths.get(position + 1).map_or(Ok(None), |next| executed_before(next))?;
                let begins_after = std::mem::replace(&mut before, after);
                // Without a word of its own in its first events it may hold anything.
                if !chosen.may_be_between(begins_after.as_ref(), before.as_ref()) || is_empty(path)? {
                    continue;
                }
                look_at(path);
                self.files.push(path.clone());
                let file = self.files.len() - 1;
                let mut reader = TransactionReader::open(&PosixStorage, path)?;
                while let Some((id, ours)) = next_of_ours(&mut reader, file, &|id| chosen.has(id))? {
                    if forks.as_ref().is_some_and(|forks| forks.is_not_the_one(&id, path, ours.at)) {
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
                    let all = self.server.kind == ServerKind::Mysql && seen.len() == batch.len();
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

    fn target_files(&self) -> Result<Vec<String>, CompareError> {
        let mut connection = Connection::connect(self.options)?;
        let rows = connection.query("SHOW BINARY LOGS").map_err(CompareError::of)?;
        // Without a name that cannot be read more is read: the search begins in an earlier file.
        Ok((0..rows.rows.len()).filter_map(|row| rows.get(row, "Log_name").map(str::to_owned)).collect())
    }
}

/// Begun, and nothing in it yet.
fn is_empty(path: &Path) -> io::Result<bool> {
    Ok(std::fs::metadata(path)?.len() <= 4)
}

/// What was executed before a file by its own word. One that has no whole head yet says nothing, nor does a damaged one: then it
/// may hold anything, and who reads on in it tells of the damage.
fn executed_before(path: &Path) -> io::Result<Option<GtidState>> {
    TransactionReader::open_head(&PosixStorage, path)
        .ok()
        .map_or(Ok(None), |mut reader| reader.gtids_before())
}

fn next_of_ours(
    reader: &mut TransactionReader,
    file: usize,
    wanted: &dyn Fn(&TransactionId) -> bool,
) -> io::Result<Option<(TransactionId, Ours)>> {
    let (mut fingerprinter, mut unclear) = (Fingerprinter::new(), None);
    let passed = reader.pass(|id| id.is_some_and(wanted), &mut |event| {
        match event {
            None => (fingerprinter, unclear) = (Fingerprinter::new(), None),
            Some((header, bytes)) if unclear.is_none() => unclear = fingerprinter.event(header, bytes).err(),
            Some(_) => {}
        }
        Ok(())
    })?;
    let Some((Some(id), at, end)) = passed else { return Ok(None) };
    let seen = unclear.map_or_else(|| Ok(fingerprinter.finish()), Err);
    Ok(Some((id, Ours { seen, file, at, end })))
}

/// A transaction of the copy at a place that is known.
fn read_again(open: &mut Option<(PathBuf, TransactionReader)>, path: &Path, at: u64) -> io::Result<Ours> {
    if open.as_ref().is_none_or(|(other, _)| other != path) {
        *open = Some((path.to_owned(), TransactionReader::open(&PosixStorage, path)?));
    }
    let gone =
        || io::Error::other(format!("{} at {at}: no transaction stands there any more", path.display()));
    let (_, reader) = open.as_mut().ok_or_else(gone)?;
    reader.seek(at)?;
    next_of_ours(reader, 0, &|_| true)?.map(|(_, ours)| ours).ok_or_else(gone)
}

fn is_same(one: &Result<Seen, String>, other: &Result<Seen, String>) -> bool {
    matches!((one, other), (Ok(one), Ok(other)) if one.fingerprint.compare(&other.fingerprint) == Verdict::Same)
}

/// As the copy has it.
fn version(path: &Path, ours: &Ours) -> Version {
    let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let (began, changes) =
        ours.seen.as_ref().map_or((0, Vec::new()), |seen| (seen.began, seen.changes.clone()));
    Version { began, size: ours.end - ours.at, changes, place: format!("{folder}/{file} at {}", ours.at) }
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

#[cfg(test)]
mod tests {
    use super::*;
    use log::testing::FileBuilder;

    /// Of the versions that the copy holds of one GTID, those that are the same are held against the target once, and others each.
    #[test]
    fn versions_of_a_gtid_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let version = |name: &str, image: &[u8]| {
            let path = dir.path().join(name);
            let mut file = FileBuilder::new();
            file.event(33, &[&[0][..], &[0xab; 16], &1u64.to_le_bytes()].concat());
            file.event(2, &[&[0; 14][..], b"BEGIN"].concat());
            file.event(19, b"\x01\0\0\0\0\0\x01\0\x01d\0\x01t\0\x01\x0f\x02\x50\0\0");
            file.event(30, &[b"\x01\0\0\0\0\0\x01\0\x02\0\x01\x01", image].concat());
            file.event(16, &1u64.to_le_bytes());
            std::fs::write(&path, file.finish()).unwrap();
            let mut reader = TransactionReader::open(&PosixStorage, &path).unwrap();
            next_of_ours(&mut reader, 0, &|_| true).unwrap().unwrap().1.seen
        };
        let [one, again] = ["b.000001", "b.000002"].map(|name| version(name, b"one"));
        let other = version("b.000003", b"two");
        assert!(is_same(&one, &again));
        assert!(!is_same(&one, &other));
        let unclear = Err("an event that nobody knows".to_owned());
        assert!(!is_same(&unclear, &unclear), "nobody can say so");
    }
}
