//! What became of the transactions that forks took from a source: handed back since, still lost, or their GTIDs given to
//! others.
//!
//! The GTIDs alone do not tell. A server that lost its tail gives the same numbers to the next transactions of its clients; a
//! rescue, or replication, gives the same numbers to the same transactions. So each transaction that was lost once is looked
//! up on every timeline of the present history, and what it [does](crate::forks::content) is compared.

pub mod content;
pub mod fingerprint;
pub mod gtid_list;
mod losses;
mod lost;
mod place;
pub mod settlement;
pub mod transactions;

pub use losses::Losses;
pub use lost::{Fate, Lost, Version};
pub use place::Place;

use super::storage::Storage;
use crate::forks::content::ContentReader;
use crate::forks::settlement::{Decision, Settlement, Settlements};
use crate::forks::transactions::{TransactionReader, stated_before};
use crate::timeline::files::timeline_files;
use codec::ServerKind;
use codec::gtid::{GtidState, TransactionId};
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// What became of everything that forks took from the source, in its present history.
#[derive(Debug, Clone)]
pub struct Forks {
    losses: Losses,
    lost: HashMap<TransactionId, Lost>,
    settlements: Settlements,
    /// What was lost, by timeline, and stands in no file any more: it was purged or moved away, before the loss was known.
    gone: Vec<GtidState>,
}

impl Forks {
    /// As [`Forks::of`]; `None` when nothing was lost.
    ///
    /// # Errors
    /// As [`Forks::of`].
    pub fn read(
        storage: &dyn Storage,
        source_folder: &Path,
        go_on: impl FnMut() -> bool,
    ) -> io::Result<Option<Forks>> {
        Losses::read(storage, source_folder)?.map(|losses| Forks::of(storage, losses, go_on)).transpose()
    }

    /// Reads every transaction that was lost once, wherever it stands. Files that hold none of them, by the word of their own
    /// beginnings, are not read. Locks nothing. `go_on` is asked before each transaction.
    ///
    /// # Errors
    /// When a folder or a file cannot be read or is damaged, or `Interrupted` when it is not to go on.
    pub fn of(storage: &dyn Storage, losses: Losses, mut go_on: impl FnMut() -> bool) -> io::Result<Forks> {
        let settlements = Settlements::read(storage, losses.source_folder(), losses.kind())?;
        let mut forks = Forks { losses, lost: HashMap::new(), settlements, gone: Vec::new() };
        for index in 0..forks.losses.timelines() {
            forks.read_timeline(storage, index, &mut go_on)?;
        }
        forks.gone = forks.find_gone(storage)?;
        Ok(forks)
    }

    /// What was purged or moved away of what was lost, and the source has not executed since by the word of its newest file.
    fn find_gone(&self, storage: &dyn Storage) -> io::Result<Vec<GtidState>> {
        let of = |index| self.losses.removed_of(index);
        let mut gone: Vec<GtidState> = (0..self.losses.timelines()).map(of).collect();
        if gone.iter().all(GtidState::is_empty) {
            return Ok(gone);
        }
        if let Some((index, there)) = self.newest_word(storage)? {
            // An older timeline's files say nothing of what a later one lost.
            for gone in &mut gone[..=index] {
                *gone = gone.subtract(&there);
            }
        }
        for id in self.lost.keys() {
            take_off(&mut gone, id);
        }
        Ok(gone)
    }

    /// What was executed before the newest file that says so, and the timeline that it is of.
    fn newest_word(&self, storage: &dyn Storage) -> io::Result<Option<(usize, GtidState)>> {
        for index in (0..self.losses.timelines()).rev() {
            let folder = self.losses.folder(index);
            for name in timeline_files(storage, folder)?.iter().rev() {
                if let Some(stated) = stated_before(storage, &folder.join(name))? {
                    return Ok(Some((index, stated)));
                }
            }
        }
        Ok(None)
    }

    /// What the source lacks and no file holds any more, and about which nothing was decided. For MariaDB, of each server and domain
    /// the last. It counts as open: only a backup can bring it back.
    pub fn gone(&self) -> GtidState {
        self.gone_where(|gone, decided| gone.subtract(decided))
    }

    /// Of the same, what was decided about.
    pub fn gone_and_settled(&self) -> GtidState {
        self.gone_where(|gone, decided| gone.subtract(&gone.subtract(decided)))
    }

    fn gone_where(&self, part: impl Fn(&GtidState, &GtidState) -> GtidState) -> GtidState {
        let kind = self.losses.kind();
        let (mut all, mut decided) = (GtidState::empty(kind), GtidState::empty(kind));
        for (index, gone) in self.gone.iter().enumerate().filter(|(_, gone)| !gone.is_empty()) {
            // What was given up when an earlier timeline lacked it, and no source had since, stays given up. All are of one kind of
            // server, as its timelines are.
            let now = self.settlements.decided(self.losses.number(index), kind);
            let _ = decided.union_with(&gone.subtract(&gone.subtract(&now)));
            let _ = all.union_with(&part(gone, &decided));
        }
        all
    }

    /// Takes a transaction that has arrived on the newest timeline since, and that [may have been lost](Losses::took). False
    /// when the file does not hold it to its end yet.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn arrived(&mut self, storage: &dyn Storage, path: &Arc<Path>, at: u64) -> io::Result<bool> {
        let mut reader = TransactionReader::open(storage, path)?;
        reader.seek(at)?;
        let newest = self.losses.timelines() - 1;
        Ok(self.read_next(newest, path, &mut reader, &mut || true)?.is_some())
    }

    /// Reads again what was decided.
    ///
    /// # Errors
    /// When the file cannot be read or understood.
    pub fn reread_settlements(&mut self, storage: &dyn Storage) -> io::Result<()> {
        self.settlements = Settlements::read(storage, self.losses.source_folder(), self.losses.kind())?;
        Ok(())
    }

    /// Transactions with this fate about which nothing was decided, in the order of the copy.
    pub fn open(&self, fate: Fate) -> Vec<(TransactionId, &Lost)> {
        self.sorted(|id, lost| self.is_open(id, lost, fate))
    }

    /// Those about which somebody decided, in the order of the copy.
    pub fn settled(&self) -> Vec<(TransactionId, &Lost, &Settlement)> {
        let decided = |(id, lost)| match self.standing(&id, lost) {
            (Some(fate), Some(decision)) if fate != Fate::HandedBack => Some((id, lost, decision)),
            _ => None,
        };
        self.sorted(|_, _| true).into_iter().filter_map(decided).collect()
    }

    /// How many transactions of this fate there are about which nothing was decided.
    pub fn count(&self, fate: Fate) -> u64 {
        self.lost.iter().filter(|(id, lost)| self.is_open(id, lost, fate)).count() as u64
    }

    /// About what was handed back there is nothing to decide.
    fn is_open(&self, id: &TransactionId, lost: &Lost, fate: Fate) -> bool {
        let (now, decision) = self.standing(id, lost);
        now == Some(fate) && (fate == Fate::HandedBack || decision.is_none())
    }

    /// What became of a transaction, and the decision about that. A decision holds for the histories that it was made for: a later fork
    /// opens nothing again of which it brings nothing new.
    fn standing(&self, id: &TransactionId, lost: &Lost) -> (Option<Fate>, Option<&Settlement>) {
        let newest = self.losses.number(lost.newest());
        let before = || self.settlements.about(*id).filter(|one| one.through < newest);
        let is_chosen = before().any(|one| lost.is_chosen_by(|on| self.losses.number(on) <= one.through));
        let fate = lost.fate(is_chosen);
        let is_given_up = |one: &&Settlement| {
            one.decision == Decision::LossAccepted
                && lost.is_lacking_since(self.losses.lacked_last(id, one.through))
        };
        let now = self.settlements.of(id, newest);
        (fate, now.or_else(|| before().find(is_given_up).filter(|_| fate == Some(Fate::Lacking))))
    }

    /// The GTIDs of those, which for MariaDB are the newest of each server.
    pub fn gtids(&self, fate: Fate) -> GtidState {
        let mut gtids = GtidState::empty(self.losses.kind());
        for (id, _) in self.open(fate) {
            // Of one kind of server, as its timelines are.
            let _ = gtids.insert(id);
        }
        gtids
    }

    /// True when the source has everything back, or somebody has decided about the rest.
    pub fn is_closed(&self) -> bool {
        self.count(Fate::Lacking) == 0 && self.count(Fate::GivenTwice) == 0 && self.gone().is_empty()
    }

    /// See [`Losses::is_known`].
    pub fn is_known(&self) -> bool {
        self.losses.is_known()
    }

    /// What became of a transaction; `None` for one that was never lost.
    pub fn fate(&self, id: &TransactionId) -> Option<Fate> {
        self.lost.get(id).and_then(|lost| self.standing(id, lost).0)
    }

    /// Whether the source lacks the transaction and somebody has accepted that.
    pub fn is_given_up(&self, id: &TransactionId) -> bool {
        let standing = self.lost.get(id).map(|lost| self.standing(id, lost));
        matches!(standing, Some((Some(Fate::Lacking), Some(_))))
    }

    /// Whether the transaction at that place is not the one that its GTID means now: nobody has decided which one that is, or
    /// it is not the last of them.
    pub fn is_not_the_one(&self, id: &TransactionId, path: &Path, at: u64) -> bool {
        let Some(lost) = self.lost.get(id).filter(|lost| lost.versions.len() > 1) else { return false };
        self.is_undecided(id) || !lost.is_last(path, at)
    }

    /// Whether of the transactions that had the GTID the last one stands at that place.
    pub fn is_last(&self, id: &TransactionId, path: &Path, at: u64) -> bool {
        self.lost.get(id).is_some_and(|lost| lost.is_last(path, at))
    }

    /// Whether the GTID was given twice and nobody has decided about it.
    pub fn is_undecided(&self, id: &TransactionId) -> bool {
        self.lost.get(id).is_some_and(|lost| self.is_open(id, lost, Fate::GivenTwice))
    }

    /// Everything that may have been lost and was found.
    pub fn ids(&self) -> impl Iterator<Item = &TransactionId> {
        self.lost.keys()
    }

    /// Number of the newest timeline.
    pub fn newest_number(&self) -> u32 {
        self.losses.number(self.losses.timelines() - 1)
    }

    /// The kind of server that the GTIDs are of.
    pub fn kind(&self) -> ServerKind {
        self.losses.kind()
    }

    fn sorted(&self, wanted: impl Fn(&TransactionId, &Lost) -> bool) -> Vec<(TransactionId, &Lost)> {
        let mut found: Vec<_> =
            self.lost.iter().filter(|(id, lost)| wanted(id, lost)).map(|(id, lost)| (*id, lost)).collect();
        found.sort_by_key(|(_, lost)| {
            lost.versions.first().map(|first| (first.place.path.clone(), first.place.at))
        });
        found
    }

    fn read_timeline(
        &mut self,
        storage: &dyn Storage,
        index: usize,
        go_on: &mut dyn FnMut() -> bool,
    ) -> io::Result<()> {
        let folder = self.losses.folder(index).to_owned();
        let names = timeline_files(storage, &folder)?;
        let mut before = None;
        for (position, name) in names.iter().enumerate() {
            let path: Arc<Path> = folder.join(name).into();
            let after = match names.get(position + 1) {
                Some(next) => stated_before(storage, &folder.join(next))?,
                None => None,
            };
            let begins_with = match before.take() {
                Some(known) => Some(known),
                None => stated_before(storage, &path)?,
            };
            if self.losses.may_hold_lost(begins_with.as_ref(), after.as_ref()) && is_begun(storage, &path)? {
                let mut reader = TransactionReader::open(storage, &path)?;
                while self.read_next(index, &path, &mut reader, go_on)?.is_some() {}
            }
            before = after;
        }
        Ok(())
    }

    /// Reads the next transaction that may have been lost; the value is where it begins.
    fn read_next(
        &mut self,
        index: usize,
        path: &Arc<Path>,
        reader: &mut TransactionReader,
        go_on: &mut dyn FnMut() -> bool,
    ) -> io::Result<Option<u64>> {
        let mut content = ContentReader::default();
        let mut stopped = false;
        let wanted = |id: Option<&TransactionId>| {
            stopped = stopped || !go_on();
            // When it is to stop, the next one will do to come to an end.
            stopped || id.is_some_and(|id| self.losses.took(id))
        };
        let ended = reader.pass(wanted, &mut |event| {
            match event {
                None => content = ContentReader::default(),
                Some((header, bytes)) => content.event(header, bytes),
            }
            Ok(())
        })?;
        if stopped {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "stopped"));
        }
        let Some((id, at, end)) = ended else { return Ok(None) };
        let Some(id) = id else { return Ok(Some(at)) };
        let read = content.finish();
        if let Some(error) = read.error {
            tracing::warn!("{id} in {} at {at} cannot be compared: {error}", path.display());
        }
        let place = Place { path: path.clone(), at, end };
        let (timestamp, changes, content) = (read.timestamp, read.changes, read.content);
        let version = Version { place, timestamp, changes, content, seen_on: vec![index] };
        let lost_on = self.losses.lacked_last(&id, u32::MAX);
        take_off(&mut self.gone, &id);
        self.lost.entry(id).or_default().seen(version, lost_on);
        Ok(Some(at))
    }
}

/// Takes off what is there. Of MariaDB's, that one was written says nothing of those before it.
fn take_off(gone: &mut [GtidState], id: &TransactionId) {
    let is_in = |gone: &GtidState| match (gone, id) {
        (GtidState::Mariadb(gone), TransactionId::Mariadb(id)) => gone.list().any(|one| one == *id),
        (gone, id) => gone.contains(id),
    };
    for gone in gone.iter_mut().filter(|gone| is_in(gone)) {
        let mut one = GtidState::empty(gone.kind());
        if one.insert(*id).is_ok() {
            *gone = gone.subtract(&one);
        }
    }
}

/// False for a file that was made and has no whole format description yet.
fn is_begun(storage: &dyn Storage, path: &Path) -> io::Result<bool> {
    match TransactionReader::open(storage, path) {
        Ok(_) => Ok(true),
        // A live file of which nothing has arrived; a damaged one is told by who reads on in it.
        Err(_) if storage.look(path)?.len <= 4 => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::super::timeline::{Reason, Timeline};
    use super::*;
    use crate::forks::settlement::record;
    use crate::storage::posix::PosixStorage;
    use crate::testing::{FileBuilder, SERVER_UUID, first_timeline};
    use std::path::PathBuf;

    /// A transaction with one row image, whose table has this id.
    fn rows(mut builder: FileBuilder, number: u64, table_id: u8, image: &[u8]) -> FileBuilder {
        builder.event(33, &[&[0][..], &[0xab; 16], &number.to_le_bytes()].concat());
        builder.event(2, &[&[0; 14][..], b"BEGIN"].concat());
        builder.event(
            19,
            &[&[table_id, 0, 0, 0, 0, 0, 1, 0][..], b"\x01d\0\x01t\0\x01\x0f\x02\x50\0\0"].concat(),
        );
        builder.event(30, &[&[table_id, 0, 0, 0, 0, 0, 1, 0, 2, 0, 1, 1][..], image].concat());
        builder.event(16, &number.to_le_bytes());
        builder
    }

    fn timeline(dir: &Path, number: u32, lacks: &str) -> PathBuf {
        let reason = if number == 1 { Reason::First } else { Reason::Fork };
        let source_lacks = if lacks.is_empty() { String::new() } else { format!("{SERVER_UUID}:{lacks}") };
        let info = Timeline { reason, source_lacks, ..first_timeline(SERVER_UUID) };
        info.create(&PosixStorage, dir, number).unwrap()
    }

    fn numbers(forks: &Forks, fate: Fate) -> String {
        forks.gtids(fate).to_line().replace(&format!("{SERVER_UUID}:"), "")
    }

    /// 1 to 5, of which 3 to 5 are lost; the source then gives 3 to another transaction and gets 4 back.
    fn copy() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (timeline(dir.path(), 1, ""), timeline(dir.path(), 2, "3-5"));
        let sealed = rows(FileBuilder::new().previous_gtids(""), 1, 1, b"one").rotate("b.000002").finish();
        std::fs::write(old.join("b.000001"), sealed).unwrap();
        let begun = || rows(FileBuilder::new().previous_gtids(&format!("{SERVER_UUID}:1")), 2, 1, b"two");
        let ours = rows(rows(rows(begun(), 3, 1, b"three"), 4, 1, b"four"), 5, 1, b"five").finish();
        std::fs::write(old.join("b.000002"), ours).unwrap();
        let theirs = rows(rows(begun(), 3, 8, b"else"), 4, 9, b"four").finish();
        std::fs::write(new.join("b.000002"), theirs).unwrap();
        (dir, new)
    }

    #[test]
    fn a_gtid_that_came_back_is_compared_by_content() {
        let (dir, new) = copy();
        let mut forks = Forks::read(&PosixStorage, dir.path(), || true).unwrap().unwrap();
        let told = |forks: &Forks| {
            [Fate::GivenTwice, Fate::HandedBack, Fate::Lacking].map(|fate| numbers(forks, fate))
        };
        assert_eq!(told(&forks), ["3", "4", "5"]);
        let twice = forks.open(Fate::GivenTwice)[0].1;
        let places = twice.versions.iter().map(|version| (version.place.timeline(), version.place.file()));
        let expected =
            ["0001", "0002"].map(|number| (format!("{number}-{SERVER_UUID}"), "b.000002".to_owned()));
        assert_eq!(places.collect::<Vec<_>>(), expected);
        assert_eq!(twice.versions[1].changes, ["d.t"]);
        let third = forks.open(Fate::GivenTwice)[0].0;
        let place = twice.versions[1].place.clone();
        assert!(forks.is_not_the_one(&third, &place.path, place.at), "nobody has decided");

        // 5 arrives on the newest timeline, in two pieces.
        let path: Arc<Path> = new.join("b.000002").into();
        let held = std::fs::read(&path).unwrap();
        let builder = rows(FileBuilder::new().previous_gtids(&format!("{SERVER_UUID}:1")), 2, 1, b"two");
        let whole = rows(rows(rows(builder, 3, 8, b"else"), 4, 9, b"four"), 5, 7, b"five").finish();
        std::fs::write(&path, &whole[..whole.len() - 9]).unwrap();
        assert!(!forks.arrived(&PosixStorage, &path, held.len() as u64).unwrap());
        std::fs::write(&path, &whole).unwrap();
        assert!(forks.arrived(&PosixStorage, &path, held.len() as u64).unwrap());
        assert_eq!(told(&forks), ["3", "4-5", ""]);
        assert!(!forks.is_closed());

        let settlement = Settlement {
            at: String::new(),
            by: String::new(),
            decision: Decision::Settled,
            gtids: format!("{SERVER_UUID}:3"),
            transactions: Vec::new(),
            through: 2,
            note: String::new(),
        };
        record(&PosixStorage, dir.path(), settlement).unwrap();
        forks.reread_settlements(&PosixStorage).unwrap();
        assert_eq!(told(&forks), ["", "4-5", ""]);
        assert!(forks.is_closed() && forks.settled().len() == 1);
        assert!(!forks.is_not_the_one(&third, &place.path, place.at), "the last one counts");

        // Lost once more, what was handed back before is open again; of what was settled the one that was chosen is lost.
        let newest = timeline(dir.path(), 3, "3-4");
        let read = || Forks::read(&PosixStorage, dir.path(), || true).unwrap().unwrap();
        assert_eq!(told(&read()), ["", "5", "3-4"]);
        assert!(!read().is_not_the_one(&third, &place.path, place.at), "this one is handed over");
        // It is, and stays settled.
        let begun = || rows(FileBuilder::new().previous_gtids(&format!("{SERVER_UUID}:1")), 2, 1, b"two");
        let write =
            |image: &[u8]| std::fs::write(newest.join("b.000002"), rows(begun(), 3, 9, image).finish());
        write(b"else").unwrap();
        assert_eq!(told(&read()), ["", "3:5", "4"]);
        // A third one is not what was decided about, nor is that the source has the first one now.
        for other in [&b"more"[..], b"three"] {
            write(other).unwrap();
            assert_eq!(told(&read()), ["3", "5", "4"]);
        }
    }

    #[test]
    fn what_was_given_up_stays_so_until_it_was_there_again() {
        let (dir, new) = copy();
        let accepted = Settlement {
            at: String::new(),
            by: String::new(),
            decision: Decision::LossAccepted,
            gtids: format!("{SERVER_UUID}:5"),
            transactions: Vec::new(),
            through: 2,
            note: String::new(),
        };
        record(&PosixStorage, dir.path(), accepted).unwrap();
        let third = timeline(dir.path(), 3, "5");
        let lacking =
            || numbers(&Forks::read(&PosixStorage, dir.path(), || true).unwrap().unwrap(), Fate::Lacking);
        assert_eq!(lacking(), "", "a later fork does not open it");
        // It came back to the second one after the decision, and was lost again.
        let path = new.join("b.000002");
        let begun = || rows(FileBuilder::new().previous_gtids(&format!("{SERVER_UUID}:1")), 2, 1, b"two");
        std::fs::write(&path, rows(begun(), 5, 1, b"five").finish()).unwrap();
        assert_eq!(lacking(), "3-5");
        std::fs::write(third.join("b.000003"), rows(begun(), 5, 1, b"five").finish()).unwrap();
        assert_eq!(lacking(), "3-4");
    }

    fn purge_first(dir: &Path, files: usize) {
        let all = crate::purge::order::list(&PosixStorage, dir).unwrap();
        let at = crate::testing::NOW;
        let goes: Vec<_> = all.iter().take(files).collect();
        crate::purge::carry_out(&PosixStorage, &goes, "a test", at, crate::purge::Indexes::Ours).unwrap();
    }

    /// The file of a transaction was purged while the source had it; then the source was put back to before it.
    #[test]
    fn what_was_purged_before_it_was_lost_counts_as_open() {
        let dir = tempfile::tempdir().unwrap();
        let old = timeline(dir.path(), 1, "");
        let file = |number: u64, before: &str| {
            rows(FileBuilder::new().previous_gtids(before), number, 1, b"x").rotate("b.9").finish()
        };
        let to = |number: u64| match number {
            0 => String::new(),
            1 => format!("{SERVER_UUID}:1"),
            _ => format!("{SERVER_UUID}:1-{number}"),
        };
        for number in 1..=6 {
            std::fs::write(old.join(format!("b.00000{number}")), file(number, &to(number - 1))).unwrap();
        }
        purge_first(dir.path(), 4);
        let new = timeline(dir.path(), 2, "3-6");
        std::fs::write(new.join("b.000003"), FileBuilder::new().previous_gtids(&to(2)).finish()).unwrap();
        let read = || Forks::read(&PosixStorage, dir.path(), || true).unwrap().unwrap();
        let gone = |forks: &Forks| forks.gone().to_line().replace(&format!("{SERVER_UUID}:"), "");
        assert_eq!((numbers(&read(), Fate::Lacking), gone(&read())), ("5-6".to_owned(), "3-4".to_owned()));
        // What stands in files is handed back; that is not all.
        let path: Arc<Path> = new.join("b.000003").into();
        let begun = || FileBuilder::new().previous_gtids(&to(2));
        std::fs::write(&path, rows(rows(begun(), 5, 1, b"x"), 6, 1, b"x").finish()).unwrap();
        let mut forks = read();
        assert_eq!((numbers(&forks, Fate::Lacking), gone(&forks)), (String::new(), "3-4".to_owned()));
        assert!(!forks.is_closed(), "nobody has given 3 and 4 back");
        // One comes from elsewhere, and arrives with the log.
        let at = std::fs::read(&path).unwrap().len() as u64;
        std::fs::write(&path, rows(rows(rows(begun(), 5, 1, b"x"), 6, 1, b"x"), 3, 1, b"x").finish())
            .unwrap();
        assert!(forks.arrived(&PosixStorage, &path, at).unwrap());
        assert_eq!((gone(&forks), gone(&read())), ("4".to_owned(), "4".to_owned()));
        let settlement = Settlement {
            at: String::new(),
            by: String::new(),
            decision: Decision::LossAccepted,
            gtids: format!("{SERVER_UUID}:4"),
            transactions: Vec::new(),
            through: 2,
            note: String::new(),
        };
        record(&PosixStorage, dir.path(), settlement).unwrap();
        forks.reread_settlements(&PosixStorage).unwrap();
        assert!(forks.is_closed() && forks.gone().is_empty());
        assert_eq!(forks.gone_and_settled().to_line(), format!("{SERVER_UUID}:4"));
        // What the source has executed since is not lost, wherever it was written.
        std::fs::remove_file(dir.path().join("forks.toml")).unwrap();
        std::fs::write(new.join("b.000004"), FileBuilder::new().previous_gtids(&to(6)).finish()).unwrap();
        assert!(read().is_closed());
    }

    #[test]
    fn nothing_is_read_where_nothing_was_lost_and_it_can_be_stopped() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Forks::read(&PosixStorage, dir.path(), || true).unwrap().is_none());
        timeline(dir.path(), 1, "");
        assert!(Forks::read(&PosixStorage, dir.path(), || panic!("nothing is read")).unwrap().is_none());
        let (dir, _) = copy();
        let error = Forks::read(&PosixStorage, dir.path(), || false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    }
}
