//! One seed: writers with copies that lag, a reader, somebody who prunes, and what goes wrong on the way.

use crate::ledger::{Counts, Ledger, SOURCE, Watching};
use crate::source::{Copy, FOLDER, Source};
use crate::stage::{Door, Ended, Killed, Stage};
use archive::chain::commit::{Change, Writer};
use archive::chain::history::History;
use archive::chain::{Chain, ChainError};
use archive::keys::Identities;
use archive::names;
use archive::reader::Reader;
use archive::segment::Opener;
use archive::segment::search_index::{get, is_there, list, put};
use archive::store::Store;
use archive::testing::{Faults, Memory, Network, Saved};
use archive::upkeep::prune::{PruneError, Rules, dry_run, prune, undo};
use archive::upkeep::scrub::{Depth, scrub};
use archive::writer::upload::{Owner, Permits, Uploader};
use archive::writer::{ArchiveError, Archiver, Step};
use binlog::storage::ReadAt;
use binlog::testing::Random;
use jiff::{SignedDuration, Timestamp};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// What a seed came to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Outcome {
    pub operations: u64,
    pub counts: Counts,
}

struct World {
    /// From which the copies receive their last bytes.
    ending: u64,
    source: Arc<Source>,
    ledger: Arc<Mutex<Ledger>>,
    memory: Arc<Memory>,
    /// The store as it was at some moments of the run.
    saved: Mutex<Vec<Saved>>,
    network: Arc<Network>,
    stage: Arc<Stage>,
    rules: Rules,
    has_faults: bool,
    snapshots_after: u64,
}

/// Plain bytes of which the steps of all writers told, new and again.
#[derive(Debug, Clone, Copy, Default)]
struct Told {
    new: u64,
    again: u64,
}

/// Runs a seed.
///
/// # Errors
/// In words, when something was that must not be.
pub fn run(seed: u64) -> Result<Outcome, String> {
    let mut random = Random::new(seed);
    let has_faults = !random.one_in(8);
    let writers = if !has_faults { 1 } else { 2 + usize::from(random.one_in(4)) };
    let is_parted = writers > 1 && random.one_in(6);
    let source = Arc::new(Source::new(&mut random, is_parted));
    let world = World::new(&mut random, source, has_faults, writers + 2);
    let mut copies = world.copies(&mut random, writers, is_parted);
    let told = Mutex::new(Told::default());
    thread::scope(|scope| {
        for (me, copy) in copies.iter_mut().enumerate() {
            let (world, told, random) = (&world, &told, Random::new(random.next()));
            scope.spawn(move || world.party(me, || world.writer(me, copy, random, told)));
        }
        let (world, seeds) = (&world, [random.next(), random.next()]);
        scope.spawn(move || world.party(writers, || world.reader(writers, Random::new(seeds[0]))));
        scope.spawn(move || world.party(writers + 1, || world.pruner(writers + 1, Random::new(seeds[1]))));
    });
    world.verdict()?;
    world.network.calm();
    world.catch_up(&mut copies, is_parted, &told)?;
    let counts = world.ledger().counts;
    Ok(Outcome { operations: world.stage.operations(), counts })
}

impl World {
    fn new(random: &mut Random, source: Arc<Source>, has_faults: bool, parties: usize) -> World {
        let grace = SignedDuration::from_mins(20 + random.below(400) as i64);
        let ledger = Arc::new(Mutex::new(Ledger::new(source.clone(), grace)));
        let memory = Arc::new(Memory::watched(Box::new(Watching(ledger.clone()))));
        let mut faults = if has_faults { Faults::each(12 + random.below(100)) } else { Faults::default() };
        if has_faults && random.one_in(3) {
            // Shorter than the grace, which is what is asked of a store.
            faults.listing_lag = Some(SignedDuration::from_secs(1 + random.below(19 * 60) as i64));
        }
        let network = Arc::new(Network::new(memory.clone(), random.next(), faults));
        let begin = Timestamp::from_second(1_700_000_000).expect("a time");
        let stage = Arc::new(Stage::new(memory.clone(), random.next(), parties, has_faults, begin));
        let rules = Rules {
            keep_for: random.one_in(8).then(|| SignedDuration::from_hours(1 + random.below(100) as i64)),
            keep_files: random.one_in(3).then(|| 1 + random.below(3) as usize),
            backups: Vec::new(),
            keep: None,
            grace,
            agreed: None,
        };
        let snapshots_after = 2 + random.below(8);
        let ending = random.next();
        let saved = Mutex::default();
        World { ending, source, ledger, memory, saved, network, stage, rules, has_faults, snapshots_after }
    }

    fn copies(&self, random: &mut Random, writers: usize, is_parted: bool) -> Vec<Copy> {
        let copy = |machine: usize| {
            // The first copy has everything; another may have begun later.
            let late = machine > 0 && random.one_in(4);
            let timeline = if late { random.below(2) as usize % self.source.timelines.len() } else { 0 };
            let first = if late { random.below(3) as usize } else { 0 };
            let is_parted = is_parted && machine == 1;
            let (timeline, first) = if is_parted { (0, 0) } else { (timeline, first) };
            let first = first % self.source.timelines[timeline].files.len();
            Copy::new(self.source.clone(), is_parted, (timeline, first), machine)
        };
        (0..writers).map(copy).collect()
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn verdict(&self) -> Result<(), String> {
        self.ledger().wrong.clone().map_or(Ok(()), Err)
    }

    /// One party from its first turn to its last; a panic of the product is something that is wrong.
    fn party(&self, me: usize, act: impl FnOnce()) {
        let acted = catch_unwind(AssertUnwindSafe(|| {
            self.stage.enter(me);
            act();
        }));
        match acted {
            Ok(()) => self.stage.leave(me),
            Err(why) if why.is::<Ended>() => {}
            Err(why) => {
                self.ledger().complain(format!("party {me}: {}", words(&*why)));
                self.stage.end();
            }
        }
    }

    /// Runs a process until it ends by itself or is killed. True when it was killed.
    fn process(&self, me: usize, random: &mut Random, act: impl FnOnce(&mut Random)) -> bool {
        let Err(why) = catch_unwind(AssertUnwindSafe(|| act(random))) else { return false };
        if !why.is::<Killed>() {
            std::panic::resume_unwind(why);
        }
        self.ledger().counts.killed += 1;
        self.stage.sleep(me, SignedDuration::from_secs(1 + random.below(600) as i64));
        true
    }

    fn door(&self, me: usize) -> Arc<dyn Store> {
        Arc::new(Door { network: self.network.clone(), stage: self.stage.clone(), me })
    }

    fn uploader(store: Arc<dyn Store>) -> Uploader {
        let permits = Arc::new(Permits::new(1));
        Uploader { store, permits, level: 1, recipients: None, stop: Arc::default() }
    }

    /// Puts the search index of one of the files there that the archiver knows as whole, sound or as a store never gives it back.
    fn put_index(&self, me: usize, archiver: &Archiver, random: &mut Random) {
        let whole = archiver.whole_files();
        if whole.is_empty() {
            return;
        }
        let file = random.pick(&whole);
        let owner = Owner { source: SOURCE, timeline: &file.timeline, file: &file.name };
        let store = self.door(me);
        if random.one_in(8) {
            let (folder, hash) = (names::search_folder(SOURCE, &file.timeline, &file.name), "00".repeat(32));
            let object = names::search_index(&folder, 200, &hash, 1, false);
            drop(store.create(&object, vec![1, 2, 3].into()));
            return;
        }
        if random.one_in(8) {
            // Somebody moves one to where that of another file belongs.
            let other = random.pick(&whole);
            let index = index_of(&other.timeline, &other.name);
            drop(put(&Self::uploader(store), owner, &other.sha256, 1, &index));
            return;
        }
        // Whatever becomes of it, nothing depends on it.
        if is_there(&*store, owner, 1).is_ok_and(|is_there| !is_there) {
            drop(put(&Self::uploader(store), owner, &file.sha256, 1, &index_of(&file.timeline, &file.name)));
        }
    }

    /// What a reader is given as the index of a file is that, or nothing. How many were given.
    fn read_indexes(&self, store: &Arc<dyn Store>, history: &History) -> u64 {
        let opener = Arc::new(Opener::new(Identities::default()));
        let reader = Reader { store: store.clone(), opener };
        let mut given = 0;
        for (timeline, archived) in &history.timelines {
            let Ok(listed) = list(&**store, SOURCE, timeline, 1) else { continue };
            let sealed = archived.files.iter().filter_map(|file| Some((file, file.sealed.as_ref()?)));
            for (file, seal) in sealed {
                for found in listed.of(&file.name) {
                    match get(&reader, found, &seal.sha256) {
                        Ok(index) if index == index_of(timeline, &file.name) => given += 1,
                        Ok(_) => {
                            self.ledger().complain(format!("{timeline}/{} has a wrong index", file.name))
                        }
                        Err(_) => {}
                    }
                }
            }
        }
        given
    }

    fn archiver(&self, copy: &Copy, store: Arc<dyn Store>, id: String) -> Archiver {
        let uploader = Self::uploader(store);
        let storage = Arc::new(copy.storage.clone());
        Archiver::new(SOURCE.into(), FOLDER.into(), storage, uploader, identity(id), false)
            .with_snapshots_after(self.snapshots_after)
    }

    fn writer(&self, me: usize, copy: &mut Copy, mut random: Random, told: &Mutex<Told>) {
        let mut left = 6 + random.below(24);
        let mut runs = 0;
        while left > 0 {
            runs += 1;
            let is_killed = self.process(me, &mut random, |random| {
                let mut archiver = self.archiver(copy, self.door(me), format!("writer-{me}-{runs}"));
                while left > 0 {
                    left -= 1;
                    self.turn(me, copy, &mut archiver, random, told);
                }
            });
            left += u64::from(is_killed);
        }
    }

    fn turn(
        &self,
        me: usize,
        copy: &mut Copy,
        archiver: &mut Archiver,
        random: &mut Random,
        told: &Mutex<Told>,
    ) {
        for _ in 0..random.below(3) {
            copy.receive(random);
        }
        if random.one_in(4) {
            drop(archiver.refresh());
            self.check(me, archiver);
        }
        let durable = copy.durable();
        let step =
            archiver.step((!random.one_in(10)).then_some(&durable), !random.one_in(4), self.stage.now());
        self.check(me, archiver);
        if random.one_in(3) {
            self.put_index(me, archiver, random);
        }
        if random.one_in(3) {
            archiver.remember().expect("the disk takes it");
        }
        if random.one_in(12) {
            self.saved.lock().unwrap_or_else(PoisonError::into_inner).push(self.memory.save());
        }
        match step {
            Ok(Step::Committed { new, again, .. }) => {
                let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                told.new += new;
                told.again += again;
            }
            Ok(Step::Idle | Step::Behind) => {
                self.stage.sleep(me, SignedDuration::from_secs(1 + random.below(600) as i64))
            }
            Err(error) => {
                self.error(&format!("writer {me}"), &error);
                self.stage.sleep(me, SignedDuration::from_secs(1 + random.below(1200) as i64));
            }
        }
    }

    /// What an archiver believes is the beginning of what is so, at any moment.
    fn check(&self, me: usize, archiver: &Archiver) {
        if let Some(chain) = archiver.chain() {
            self.ledger().check_belief(&format!("writer {me}"), chain.history());
        }
        if self.ledger().wrong.is_some() {
            self.stage.end();
        }
    }

    /// The store fails, and copies differ. An archive that is not sound must not be.
    fn error(&self, who: &str, error: &ArchiveError) {
        match error {
            ArchiveError::Chain(ChainError::Store(_)) => {}
            ArchiveError::Differs { .. } if self.source.parted.is_some() => self.ledger().counts.differs += 1,
            other => self.ledger().complain(format!("{who}: {other}")),
        }
    }

    fn reader(&self, me: usize, mut random: Random) {
        let store = self.door(me);
        let mut chain = None;
        for _ in 0..4 + random.below(12) {
            let is_killed = self.process(me, &mut random, |random| {
                let read = match &mut chain {
                    None => Chain::open(&*store, SOURCE).map(|opened| chain = Some(opened)),
                    Some(chain) => chain.refresh(&*store).map(drop),
                };
                match (read, &chain) {
                    (Ok(()), Some(chain)) => {
                        self.ledger().check_belief("the reader", chain.history());
                        if random.one_in(3) {
                            let given = self.read_indexes(&store, chain.history());
                            self.ledger().counts.indexes_read += given;
                        }
                    }
                    (Err(error @ (ChainError::Unsound(_) | ChainError::Older(_))), _) => {
                        self.ledger().complain(format!("the reader: {error}"))
                    }
                    _ => {}
                }
                self.stage.sleep(me, SignedDuration::from_mins(1 + random.below(300) as i64));
            });
            if is_killed {
                chain = None;
            }
        }
    }

    fn pruner(&self, me: usize, mut random: Random) {
        let store = self.door(me);
        for run in 0..4 + random.below(12) {
            self.process(me, &mut random, |random| {
                self.stage.sleep(me, SignedDuration::from_mins(1 + random.below(600) as i64));
                let id = identity(format!("pruner-{run}"));
                let is_undo = random.one_in(4);
                let pruned = Chain::open(&*store, SOURCE).map_err(PruneError::from).and_then(|mut chain| {
                    let now = self.stage.now();
                    match is_undo {
                        false => prune(&*store, &mut chain, &id, &self.rules, now).map(drop),
                        true => undo(&reader_of(store.clone()), &mut chain, &id, now).map(drop),
                    }
                });
                match pruned {
                    Err(PruneError::Chain(ChainError::Store(_))) | Ok(()) => {}
                    // Somebody else may have deleted what it takes since the chain was read.
                    Err(PruneError::Lacks(_)) if is_undo => {}
                    Err(error) => self.ledger().complain(format!("the pruner: {error}")),
                }
            });
        }
    }

    /// Nothing fails any more: each copy comes to its end, and the archive with it.
    fn catch_up(&self, copies: &mut [Copy], is_parted: bool, told: &Mutex<Told>) -> Result<(), String> {
        let store: Arc<dyn Store> = self.memory.clone();
        let mut finished = 0;
        for (me, copy) in copies.iter_mut().enumerate() {
            copy.receive_all(Random::new(self.ending));
            let mut archiver = self.archiver(copy, store.clone(), format!("last-{me}"));
            let differs = self.finish(me, copy, &mut archiver, told)?;
            self.check(me, &archiver);
            self.verdict()?;
            if differs.is_some() && !is_parted {
                return Err(format!("writer {me}: {}", differs.unwrap_or_default()));
            }
            if differs.is_none() {
                self.is_complete(copy).map_err(|lacking| format!("writer {me} is idle, and {lacking}"))?;
                finished += 1;
            }
        }
        if finished == 0 {
            return Err("no copy is archived as a whole".into());
        }
        for (me, copy) in copies.iter().enumerate() {
            self.put_back(me, copy)?;
        }
        self.prune_at_last(&*store)?;
        let told = *told.lock().unwrap_or_else(PoisonError::into_inner);
        let whole: u64 = copies[0].wanted().iter().map(|(_, file, _)| file.bytes.len() as u64).sum();
        if !self.has_faults && (told.new != whole || told.again > whole) {
            return Err(format!("the copy has {whole} bytes, and {told:?} was uploaded"));
        }
        Ok(())
    }

    /// The store is put back to how it was, or to nothing, under a writer that runs and behind one that ran: neither adds anything. Then
    /// it has everything again, and both go on.
    fn put_back(&self, me: usize, copy: &Copy) -> Result<(), String> {
        let store: Arc<dyn Store> = self.memory.clone();
        let full = self.memory.save();
        let mut running = self.archiver(copy, store.clone(), format!("running-{me}"));
        running
            .refresh()
            .and_then(|_| running.remember().map_err(|error| ArchiveError::Copy(error.to_string())))
            .map_err(|error| format!("writer {me} is to run: {error}"))?;
        let last = self.ledger().history.seq;
        let older = self.saved.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for older in older.iter().take(2).chain([&Saved::default()]) {
            let mut chain = Chain::open(&*store, SOURCE).map_err(|error| error.to_string())?;
            self.memory.put_back(older);
            if store.head(&names::commit(SOURCE, last)).is_ok() {
                self.memory.put_back(&full);
                continue; // Nothing was committed since.
            }
            let there = store.list("", None).map_err(|error| error.to_string())?;
            let change = Change::Timeline { timeline: "0009-other".into(), record: String::new() };
            let appended = chain.append(&*store, &identity("late".into()), self.stage.now(), vec![change]);
            let durable = copy.durable();
            let mut restarted = self.archiver(copy, store.clone(), format!("restarted-{me}"));
            let stepped = [&mut running, &mut restarted].map(|archiver| {
                let refreshed = archiver.refresh().map(drop);
                refreshed.and(archiver.step(Some(&durable), true, self.stage.now()).map(drop))
            });
            if store.list("", None).map_err(|error| error.to_string())? != there {
                return Err(format!("writer {me} has written to a store that was put back"));
            }
            let is_told = matches!(appended, Err(ChainError::Older(_)))
                && stepped.iter().all(|step| matches!(step, Err(ArchiveError::Chain(ChainError::Older(_)))));
            if !is_told {
                return Err(format!(
                    "writer {me} says of a store that was put back: {appended:?}, {stepped:?}"
                ));
            }
            self.memory.put_back(&full);
            for archiver in [&mut running, &mut restarted] {
                archiver
                    .refresh()
                    .map_err(|error| format!("writer {me}, though all is there again: {error}"))?;
            }
            self.ledger().counts.put_back += 1;
        }
        Ok(())
    }

    /// Steps until nothing is to be done; in words, what differs for good.
    fn finish(
        &self,
        me: usize,
        copy: &Copy,
        archiver: &mut Archiver,
        told: &Mutex<Told>,
    ) -> Result<Option<String>, String> {
        let files = copy.wanted().len();
        // Each file grows, is merged and sealed, with a snapshot behind each at worst.
        let bound = 10 + 8 * files;
        let durable = copy.durable();
        for _ in 0..bound {
            match archiver.step(Some(&durable), true, self.stage.now()) {
                Ok(Step::Idle) => return Ok(None),
                Ok(Step::Committed { new, again, .. }) => {
                    let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                    told.new += new;
                    told.again += again;
                }
                Ok(Step::Behind) => {}
                Err(ArchiveError::Differs { what, .. }) => return Ok(Some(what)),
                Err(error) => return Err(format!("writer {me}, though nothing fails: {error}")),
            }
        }
        Err(format!("writer {me} is not done after {bound} steps"))
    }

    /// Whether the archive has everything of a copy.
    fn is_complete(&self, copy: &Copy) -> Result<(), String> {
        let ledger = self.ledger();
        for (uuid, file, is_sealed) in copy.wanted() {
            let mut same = ledger.history.timelines.iter().filter(|(name, _)| name.ends_with(&uuid));
            let found = same.any(|(name, archived)| {
                let plain = ledger.plain.get(&(name.clone(), file.name.clone()));
                let has_seal = || archived.file(&file.name).is_some_and(|found| found.sealed.is_some());
                let is_here = plain == Some(&file.bytes) && (!is_sealed || has_seal());
                // Another copy has more of it. Where copies have parted, nothing was mixed, and the longer one is kept.
                let is_longer = !is_sealed && plain.is_some_and(|plain| plain.len() > file.bytes.len());
                is_here || is_longer || archived.has_expired(&file.name)
            });
            if !found {
                let held = ledger.history.timelines.iter().map(|(name, archived)| {
                    let files =
                        archived.files.iter().map(|file| (&*file.name, file.end(), file.sealed.is_some()));
                    (name, &archived.expired, files.collect::<Vec<_>>())
                });
                return Err(format!(
                    "{} of {uuid}, {} bytes, sealed {is_sealed}, is not in the archive as a whole: {:?}",
                    file.name,
                    file.bytes.len(),
                    held.collect::<Vec<_>>()
                ));
            }
        }
        Ok(())
    }

    /// In the end whatever may go goes, and what is left can be read from scratch.
    fn prune_at_last(&self, store: &dyn Store) -> Result<(), String> {
        let later = self.stage.now() + self.rules.grace * 3;
        self.memory.set_now(later);
        let in_words = |error: PruneError| format!("pruned at last: {error}");
        let open = || Chain::open(store, SOURCE).map_err(|error| in_words(error.into()));
        let mut chain = open()?;
        if *chain.history() != self.ledger().history {
            return Err("who reads the chain from scratch reads another history".into());
        }
        let planned = dry_run(store, &mut chain, &self.rules, later).map_err(in_words)?;
        let pruned =
            prune(store, &mut chain, &identity("last".into()), &self.rules, later).map_err(in_words)?;
        if planned.expired != pruned.expired || planned.objects != pruned.objects {
            return Err(format!("{planned:?} was planned, and {pruned:?} done"));
        }
        let chain = open()?;
        if *chain.history() != self.ledger().history {
            return Err("who reads the chain from scratch after pruning reads another history".into());
        }
        let listed = store.list("", None).map_err(|error| error.to_string())?;
        let ledger = self.ledger();
        let retired = |name: &str| {
            chain.history().retired.iter().any(|retired| {
                let is_folder = retired.object.ends_with('/') && name.starts_with(&retired.object);
                retired.object == name || is_folder
            })
        };
        let is_data = |name: &str| archive::names::is_data(name);
        if let Some(left) = listed
            .iter()
            .find(|meta| is_data(&meta.name) && !ledger.named.contains(&meta.name) && !retired(&meta.name))
        {
            return Err(format!("{} is left, and nobody needs it", left.name));
        }
        let is_orphan = |name: &str| {
            let named = names::search_name(name);
            named.is_some_and(|named| chain.history().file(named.timeline, named.file).is_none())
        };
        if let Some(left) = listed.iter().find(|meta| is_orphan(&meta.name)) {
            // A file that has just expired is kept for readers, and its index with it.
            let named = names::search_name(&left.name).expect("it was one");
            if !retired(&names::file(SOURCE, named.timeline, named.file)) {
                return Err(format!("{} is left, and its file has gone", left.name));
            }
        }
        drop(ledger);
        let given = self.read_indexes(&(self.memory.clone() as Arc<dyn Store>), chain.history());
        self.ledger().counts.indexes_read += given;
        self.read_back(&chain)?;
        self.verdict()
    }

    /// Whatever the archive has can be read by what the chain says, and whoever verifies it finds nothing wrong.
    fn read_back(&self, chain: &Chain) -> Result<(), String> {
        let opener = Arc::new(Opener::new(Identities::default()));
        let reader = Reader { store: self.memory.clone(), opener };
        for (timeline, archived) in &chain.history().timelines {
            for file in &archived.files {
                let mut plain = vec![0; file.end() as usize];
                let read = reader.file(file.clone()).read_full_at(&mut plain, 0);
                let read = read.map_err(|error| format!("{timeline}/{}: {error}", file.name))?;
                let ledger = self.ledger();
                if read != plain.len()
                    || ledger.plain.get(&(timeline.clone(), file.name.clone())) != Some(&plain)
                {
                    return Err(format!("{timeline}/{} is read as other than it is", file.name));
                }
            }
        }
        let report = scrub(&reader, SOURCE, Depth::All, true, &|_| {}).map_err(|error| error.to_string())?;
        // Timelines of copies that lag have files that are not finished before others.
        let of_objects = report.findings.iter().find(|finding| finding.range.is_some());
        if let Some(finding) = of_objects {
            return Err(format!("verified: {finding}"));
        }
        Ok(())
    }
}

fn reader_of(store: Arc<dyn Store>) -> Reader {
    Reader { store, opener: Arc::new(Opener::new(Identities::default())) }
}

/// What stands for the search index of a file.
fn index_of(timeline: &str, file: &str) -> Vec<u8> {
    format!("the index of {timeline}/{file}").into_bytes()
}

fn identity(id: String) -> Writer {
    Writer { id, epoch: 0, host: "simulated".into(), version: "0".into() }
}

fn words(why: &(dyn Any + Send)) -> String {
    let text =
        why.downcast_ref::<String>().map(String::as_str).or_else(|| why.downcast_ref::<&str>().copied());
    format!("panicked: {}", text.unwrap_or("?"))
}
