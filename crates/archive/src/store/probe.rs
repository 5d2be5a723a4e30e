//! Tries out whether a store does what an archive needs, before anything is entrusted to it.
//!
//! Most of all: that a name that is taken is refused. Some stores take the condition and overwrite all the same, and two
//! writers would then destroy each other's commits without a word.

use crate::store::{Created, Fault, Store, StoreError};
use bytes::Bytes;
use codec::rows::hex;
use jiff::{SignedDuration, Timestamp};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Ok,
    /// The archive works, but something should be known.
    Warning,
    /// The archive will not work, or not safely.
    Error,
}

/// One thing that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// What was tried and what came of it.
    pub what: String,
    /// Why it matters and what helps; empty when there is nothing to say.
    pub why: String,
}

/// What a probe has to know.
pub struct Terms<'a> {
    /// This machine's clock.
    pub now: &'a dyn Fn() -> Timestamp,
    /// Whether the operator vouches that nobody else writes: then a store may ignore conditions.
    pub single_writer: bool,
    /// Asks how an object is locked; `None` where a store has no locks.
    pub lock_of: Option<&'a LockOf<'a>>,
}

/// Tells how the object of a name is locked, if the store says so.
pub(crate) type LockOf<'a> = dyn Fn(&str) -> Result<Option<String>, StoreError> + 'a;

/// A clock that differs by more from the store's is worth a word.
const SKEW_MAX: SignedDuration = SignedDuration::from_mins(5);
/// So many create one name at the same time.
const RIVALS: u8 = 4;
/// Below it stand the objects of probes.
const FOLDER: &str = "probe/";

/// Tries everything out. The store is left as it was, except where it allows no removal: then a finding names what stays.
pub fn probe(store: &dyn Store, terms: &Terms<'_>) -> Vec<Finding> {
    let mut probe = Probe { store, terms, findings: Vec::new(), left: Vec::new() };
    match draw() {
        Ok(random) => probe.run(&random),
        Err(error) => {
            probe.error("a name for the probe", format!("the system gives no random numbers: {error}"))
        }
    }
    probe.findings
}

/// Whether the store keeps the one promise without which two writers would destroy an archive: a name that is taken stays what
/// it is. Leaves one small object, always the same, for whoever writes may not be allowed to delete.
///
/// # Errors
/// When the store does not answer, or does not let an object be made.
pub fn refuses_to_overwrite(store: &dyn Store) -> Result<bool, StoreError> {
    let name = format!("{FOLDER}conditions");
    let _: Created = store.create(&name, Bytes::from_static(b"binlogd: this object is made once.\n"))?;
    let again = store.create(&name, Bytes::from_static(b"binlogd: this store overwrites.\n"))?;
    Ok(again == Created::Exists)
}

/// A part of a name that nobody has used.
fn draw() -> Result<String, getrandom::Error> {
    let mut random = [0; 12];
    getrandom::fill(&mut random)?;
    Ok(hex(&random))
}

struct Probe<'a> {
    store: &'a dyn Store,
    terms: &'a Terms<'a>,
    findings: Vec<Finding>,
    /// Objects that were made.
    left: Vec<String>,
}

impl Probe<'_> {
    fn run(&mut self, random: &str) {
        let name = format!("{FOLDER}{random}");
        let first = Bytes::from(format!("binlogd tries out its archive: {random}\n"));
        let began = (self.terms.now)();
        if !self.create(&name, &first) {
            return;
        }
        let Some(there) = self.second_is_refused(&name, &first) else { return self.clean() };
        self.rivals(&format!("{FOLDER}{random}-rivals"));
        self.read(&name, &there);
        self.missing(&format!("{FOLDER}{random}-missing"));
        self.look(&name, &there, began);
        self.list(&name);
        self.lock(&name);
        self.clean();
    }

    /// Makes the first object: the address, the credentials and the right to write. False when nothing else makes sense.
    fn create(&mut self, name: &str, bytes: &Bytes) -> bool {
        match self.store.create(name, bytes.clone()) {
            Ok(Created::New) => {
                self.left.push(name.to_owned());
                self.ok("reached the store, and made an object");
                true
            }
            // A first try may have arrived although its answer was lost; the store's content is what counts.
            Ok(Created::Exists) if self.store.get(name).is_ok_and(|found| found == *bytes) => {
                self.left.push(name.to_owned());
                self.ok("reached the store, and made an object at the second try");
                true
            }
            Ok(Created::Exists) => {
                self.error(
                    format!("the store says that {name} is there, a name that was just drawn"),
                    "the store's answers to conditional creations cannot be believed: use another store",
                );
                false
            }
            Err(error) => {
                let reads = match error.fault {
                    Fault::Denied if self.store.list(FOLDER, None).is_ok() => {
                        ". Listing is allowed: the right to create is missing"
                    }
                    _ => "",
                };
                self.failed(&format!("no object could be made{reads}"), &error);
                false
            }
        }
    }

    /// Makes it again with other bytes: the name is taken, so nothing may change. Gives what stands there then.
    fn second_is_refused(&mut self, name: &str, first: &Bytes) -> Option<Bytes> {
        let second = Bytes::from(vec![b'x'; first.len()]);
        let created = match self.store.create(name, second) {
            Ok(created) => created,
            Err(error) => {
                self.failed("making an object under a name that is taken", &error);
                return None;
            }
        };
        let found = match self.store.get(name) {
            Ok(found) => found,
            Err(error) => {
                self.failed("reading the object back", &error);
                return None;
            }
        };
        match (created, found == *first) {
            (Created::Exists, true) => self.ok("a name that is taken is refused, and its object stays"),
            (Created::Exists, false) => self.error(
                "the store says that a name is taken, and has overwritten its object",
                "archived history could be destroyed at any time: use another store",
            ),
            (Created::New, _) => self.ignored("the store overwrites an object although it was told not to"),
        }
        Some(found)
    }

    /// What a store that does not hold to conditions means.
    fn ignored(&mut self, what: &str) {
        if self.terms.single_writer {
            self.warning(
                what,
                "single_writer = true vouches that no second binlogd ever writes here: if one does, both destroy each other's \
                 history",
            );
        } else {
            self.error(
                what,
                "two writers would destroy each other's history. Use a store or a version with conditional writes (If-None-Match), \
                 or say single_writer = true if never more than one binlogd writes here",
            );
        }
    }

    /// Several at once: one of them may succeed, and a store that only looks before it writes lets more.
    fn rivals(&mut self, name: &str) {
        let store = self.store;
        let outcomes: Vec<Result<Created, StoreError>> = std::thread::scope(|scope| {
            let rivals: Vec<_> = (0..RIVALS)
                .map(|number| scope.spawn(move || store.create(name, Bytes::from(vec![number; 64]))))
                .collect();
            let gone = || StoreError::new(Fault::Unavailable, "a thread of the probe failed");
            rivals.into_iter().map(|rival| rival.join().unwrap_or_else(|_| Err(gone()))).collect()
        });
        self.left.push(name.to_owned());
        let new = outcomes.iter().filter(|outcome| **outcome == Ok(Created::New)).count();
        if let Some(error) = outcomes.into_iter().find_map(Result::err) {
            return self.failed("several creations of one name at the same time", &error);
        }
        match new {
            1 => self.ok(format!("of {RIVALS} that made one name at the same time one succeeded")),
            // Nobody was told that it did: an answer was lost, which the writer's own look resolves.
            0 => self.warning(
                format!("of {RIVALS} that made one name at the same time none was told that it did"),
                "an answer was lost on the way; binlogd then reads what is there",
            ),
            _ => self.ignored(&format!(
                "of {RIVALS} that made one name at the same time {new} were told that they did"
            )),
        }
    }

    fn read(&mut self, name: &str, there: &Bytes) {
        match self.store.get_range(name, 8..19) {
            Ok(found) if Some(&found[..]) == there.get(8..19) => {
                self.ok("read an object, and a piece of one")
            }
            Ok(found) => self.error(
                format!("of 11 bytes in the middle of an object the store gave {} others", found.len()),
                "readers need ranges: use another store, or look for a proxy that drops the Range header",
            ),
            Err(error) => self.failed("reading a piece of an object", &error),
        }
    }

    /// What is not there must be said to be not there.
    fn missing(&mut self, name: &str) {
        match self.store.head(name) {
            Err(error) if error.is_missing() => self.ok("an object that is not there is missing"),
            Err(error) if error.fault == Fault::Denied => self.error(
                format!("what is not there is said to be forbidden: {error}"),
                "without the right to list (s3:ListBucket on the bucket) a store does not tell the two apart: allow it",
            ),
            Err(error) => self.failed("asking after an object that is not there", &error),
            Ok(_) => self.error(
                format!("the store says that {name} is there, which nobody made"),
                "the store's answers cannot be believed: use another store",
            ),
        }
    }

    fn look(&mut self, name: &str, there: &Bytes, began: Timestamp) {
        let meta = match self.store.head(name) {
            Ok(meta) => meta,
            Err(error) => return self.failed("asking after an object", &error),
        };
        if meta.size != u64::try_from(there.len()).unwrap_or(u64::MAX) {
            self.error(
                format!("an object of {} bytes is said to have {}", there.len(), meta.size),
                "something on the way changes what is sent: look for a proxy",
            );
        }
        // The object was made between these two, by a clock that is right.
        let (early, late) =
            (began.duration_since(meta.modified), meta.modified.duration_since((self.terms.now)()));
        let skew = early.max(late);
        if skew > SKEW_MAX {
            let which = if early > late { "behind" } else { "ahead of" };
            self.warning(
                format!("the store's clock is {} s {which} this machine's", skew.as_secs()),
                "requests are refused when clocks differ by a quarter of an hour, and times in the archive are wrong: set the clock, best \
                 by NTP",
            );
        } else {
            self.ok("the store's clock agrees with this machine's");
        }
    }

    fn list(&mut self, name: &str) {
        let before = &name[..name.len() - 1];
        let outcome = self.store.list(FOLDER, None).and_then(|all| {
            Ok((all, self.store.list(FOLDER, Some(before))?, self.store.list(FOLDER, Some(name))?))
        });
        let has = |found: &[crate::store::Meta]| found.iter().any(|meta| meta.name == name);
        match outcome {
            Err(error) => self.failed("listing", &error),
            Ok((all, behind, past)) if has(&all) && has(&behind) && !has(&past) => {
                self.ok("listed objects, and those behind a name");
            }
            Ok((all, ..)) if !has(&all) => self.error(
                "an object that was just made is not in the list",
                "a writer and readers find the end of a history by lists: use a store whose lists are never behind",
            ),
            Ok(_) => self.error(
                "the list of objects behind a name is wrong",
                "readers find what is new by such lists: use another store",
            ),
        }
    }

    fn lock(&mut self, name: &str) {
        let Some(lock_of) = self.terms.lock_of else { return };
        match lock_of(name) {
            Ok(Some(lock)) => self.ok(format!("objects are locked against deletion: {lock}")),
            Ok(None) => self.ok(
                "whether objects are locked against deletion is not known: the store shows no lock to this account",
            ),
            Err(error) => self.failed("asking after a lock", &error),
        }
    }

    /// Removes what was made.
    fn clean(&mut self) {
        let mut first_refusal = None;
        let mut stay = Vec::new();
        for name in std::mem::take(&mut self.left) {
            if let Err(error) = self.store.delete(&name) {
                first_refusal.get_or_insert(error);
                stay.push(name);
            }
        }
        match first_refusal {
            None => self.ok(
                "deleting is allowed: retention of the archive needs that, writing does not; where this machine is not to be trusted, \
                 give it credentials that cannot delete, or lock the bucket",
            ),
            Some(error) => self.warning(
                format!("deleting is not allowed, so {} of this probe stays: {error}", stay.join(" and ")),
                "a writer deletes nothing, so the archive works; retention of the archive needs the right to delete",
            ),
        }
    }

    fn add(&mut self, level: Level, what: impl Into<String>, why: impl Into<String>) {
        self.findings.push(Finding { level, what: what.into(), why: why.into() });
    }

    fn ok(&mut self, what: impl Into<String>) {
        self.add(Level::Ok, what, "");
    }

    fn warning(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.add(Level::Warning, what, why);
    }

    fn error(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.add(Level::Error, what, why);
    }

    /// An operation that failed. The store's error says what to do, as far as that is known.
    fn failed(&mut self, what: &str, error: &StoreError) {
        let why = match error.fault {
            Fault::Missing => "an object that was just made is gone: somebody else deletes here",
            Fault::Denied => "nothing was done: correct the credentials or their rights",
            Fault::Unavailable => "try again when the store can be reached",
            Fault::Refused => "correct [archive]",
        };
        self.error(format!("{what}: {error}"), why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Meta;
    use crate::store::remote::Folder;
    use std::ops::Range;

    /// A folder with one thing that is otherwise.
    #[derive(Debug)]
    struct Odd {
        folder: Folder,
        ignores_conditions: bool,
        cannot_delete: bool,
        cannot_create: bool,
        list_is_behind: bool,
        forbids_the_missing: bool,
    }

    fn odd() -> (tempfile::TempDir, Odd) {
        let around = tempfile::tempdir().unwrap();
        let folder = Folder::open(around.path()).unwrap();
        let odd = Odd {
            folder,
            ignores_conditions: false,
            cannot_delete: false,
            cannot_create: false,
            list_is_behind: false,
            forbids_the_missing: false,
        };
        (around, odd)
    }

    fn denied() -> StoreError {
        StoreError::new(Fault::Denied, "the store says 403 AccessDenied")
    }

    impl Store for Odd {
        fn create(&self, name: &str, bytes: Bytes) -> Result<Created, StoreError> {
            if self.cannot_create {
                return Err(denied());
            }
            if self.ignores_conditions {
                self.folder.delete(name)?;
            }
            match self.folder.create(name, bytes) {
                // Rivals meet between the removal and the creation.
                Ok(Created::Exists) if self.ignores_conditions => Ok(Created::New),
                outcome => outcome,
            }
        }

        fn get(&self, name: &str) -> Result<Bytes, StoreError> {
            self.folder.get(name)
        }

        fn get_range(&self, name: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
            self.folder.get_range(name, range)
        }

        fn head(&self, name: &str) -> Result<Meta, StoreError> {
            match self.folder.head(name) {
                Err(_) if self.forbids_the_missing => Err(denied()),
                outcome => outcome,
            }
        }

        fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Meta>, StoreError> {
            if self.list_is_behind { Ok(Vec::new()) } else { self.folder.list(prefix, after) }
        }

        fn delete(&self, name: &str) -> Result<(), StoreError> {
            if self.cannot_delete { Err(denied()) } else { self.folder.delete(name) }
        }
    }

    fn terms(single_writer: bool) -> Terms<'static> {
        Terms { now: &Timestamp::now, single_writer, lock_of: None }
    }

    fn worst(findings: &[Finding]) -> Vec<&Finding> {
        let worst = findings.iter().map(|finding| finding.level).max().unwrap();
        findings.iter().filter(|finding| finding.level == worst).collect()
    }

    #[test]
    fn a_sound_store_has_nothing_to_say_and_keeps_nothing() {
        let (_around, store) = odd();
        let findings = probe(&store, &terms(false));
        assert!(findings.len() >= 8 && worst(&findings)[0].level == Level::Ok, "{findings:#?}");
        assert!(store.folder.list("", None).unwrap().is_empty());
    }

    #[test]
    fn a_store_that_ignores_conditions_is_refused_unless_one_writes() {
        let (_around, mut store) = odd();
        store.ignores_conditions = true;
        let findings = probe(&store, &terms(false));
        let errors = worst(&findings);
        assert!(errors[0].level == Level::Error && errors[0].why.contains("single_writer"), "{findings:#?}");
        let findings = probe(&store, &terms(true));
        assert_eq!(worst(&findings)[0].level, Level::Warning, "{findings:#?}");
    }

    #[test]
    fn what_cannot_be_deleted_is_named() {
        let (_around, mut store) = odd();
        store.cannot_delete = true;
        let findings = probe(&store, &terms(false));
        let warnings = worst(&findings);
        assert_eq!((warnings.len(), warnings[0].level), (1, Level::Warning), "{findings:#?}");
        for left in store.folder.list("", None).unwrap() {
            assert!(warnings[0].what.contains(&left.name), "{warnings:#?}");
        }
    }

    #[test]
    fn missing_rights_and_late_lists_are_errors() {
        for spoil in [
            (|store: &mut Odd| store.cannot_create = true) as fn(&mut Odd),
            |store| store.list_is_behind = true,
            |store| store.forbids_the_missing = true,
        ] {
            let (_around, mut store) = odd();
            spoil(&mut store);
            let findings = probe(&store, &terms(false));
            let errors = worst(&findings);
            assert!(errors.len() == 1 && errors[0].level == Level::Error, "{findings:#?}");
            assert!(!errors[0].why.is_empty());
        }
    }

    #[test]
    fn a_clock_that_is_wrong_is_noticed_in_both_directions() {
        let (_around, store) = odd();
        for hours in [-1, 1] {
            let now = move || Timestamp::now() + SignedDuration::from_hours(hours);
            let findings = probe(&store, &Terms { now: &now, ..terms(false) });
            let warnings = worst(&findings);
            assert!(
                warnings[0].level == Level::Warning && warnings[0].what.contains("clock"),
                "{findings:#?}"
            );
        }
    }

    #[test]
    fn a_lock_is_told_as_far_as_it_is_known() {
        let (_around, store) = odd();
        for (lock, words) in [(Some("COMPLIANCE until 2027"), "COMPLIANCE until 2027"), (None, "not known")] {
            let lock_of = |_: &str| Ok(lock.map(str::to_owned));
            let findings = probe(&store, &Terms { lock_of: Some(&lock_of), ..terms(false) });
            assert!(findings.iter().any(|finding| finding.what.contains(words)), "{findings:#?}");
        }
    }
}
