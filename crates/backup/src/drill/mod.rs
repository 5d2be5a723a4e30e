//! A rehearsal of a recovery, in a server that is thrown away: a backup is brought forward by the log, and what it has become is compared.
//!
//! ```text
//! two backups that follow one another in the log     pair.rs
//!   → a folder of the drill's own                    work.rs
//!   → the first in a new server, the log on it up to exactly the point of the second   new_server, target.rs
//!   → CHECK TABLE, and a fingerprint of all that is in it                              fingerprint.rs
//!   → that server away; the second in another; its fingerprint is the same, or what differs is named
//! ```
//!
//! So the log and two backups prove one another, and nobody asks the source. Where there is one backup only it is brought to a random later
//! point: the GTIDs are exactly those, and CHECK TABLE finds nothing.
//!
//! No clock decides anything but when the time is over: the backups are taken in the order of the log.
#![allow(clippy::disallowed_methods, reason = "servers and tools of operators are outside")]

mod fingerprint;
mod pair;
pub mod supervised;
mod target;
mod work;

pub use self::pair::Which;

use self::fingerprint::{Fingerprint, damaged};
use self::pair::{NoPair, Pair};
use self::target::{Target, words};
use self::work::{Work, data_bytes};
use crate::new_server::program::Programs;
use crate::new_server::{Folder, Hear, NewServer, NoServer, Order};
use archive::chain::Chain;
use archive::chain::history::ArchivedBackup;
use archive::reader::{ReadError, Reader};
use archive::segment::OpenError;
use archive::upkeep::catalogue;
use jiff::Timestamp;
use repair::history::Copied;
use source::clock::Clock;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// So long the log behind a new backup may be on its way into the archive.
const LOG_WAIT: Duration = Duration::from_secs(20);
const LOG_LOOK: Duration = Duration::from_secs(1);

/// A disk with less than that, in bytes, is full.
const FULL_BYTES: u64 = 32 << 20;

/// This machine's clock may go so much otherwise than the time that has passed.
const CLOCK_SLACK: Duration = Duration::from_secs(30);

/// What is drilled.
#[derive(Debug, Clone)]
pub struct Request {
    /// What reads the archive.
    pub reader: Reader,
    /// The source.
    pub source: String,
    /// From which backup.
    pub which: Which,
    /// The operator's programs.
    pub programs: Programs,
    /// Where the folder of the drill is made.
    pub work: PathBuf,
}

/// What was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// All that is in a backup that was brought forward with all that is in the next backup.
    NextBackup,
    /// The GTIDs, or the position, and each table by CHECK TABLE.
    GtidsAndCheck,
}

/// What a drill has shown.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The source.
    pub source: String,
    /// The backup that was brought forward; empty where none was chosen.
    pub backup: String,
    /// When it began, by this machine's clock.
    pub started: Timestamp,
    /// When it was over: so much later.
    pub finished: Timestamp,
    /// How long it took.
    pub took: Duration,
    /// The point that was reached: GTIDs, or FILE:POS; empty where none was.
    pub until: String,
    /// When the last transaction before it was committed, by the source's clock.
    pub until_time: Option<Timestamp>,
    /// What was compared, once it was.
    pub proof: Option<Proof>,
    /// The same in words.
    pub proof_in_words: String,
    /// Tables that were there.
    pub tables: u64,
    /// Bytes of the files of people's schemas.
    pub bytes: u64,
    /// Why it has not passed, in words.
    pub fault: Option<String>,
    /// What should be known and is no fault.
    pub notes: Vec<String>,
    /// What was done, and how long it took.
    pub steps: Vec<(&'static str, Duration)>,
}

/// One that is under way.
struct Drill<'a> {
    request: &'a Request,
    clock: &'a dyn Clock,
    is_over: &'a AtomicBool,
    hear: &'a mut Hear<'a>,
    report: Report,
    began: Instant,
    step: Instant,
}

/// Drills. Whatever comes of it stands in the report, and nothing stays in the folder. It ends early when `is_over` is raised.
pub fn drill<'a>(
    request: &'a Request,
    clock: &'a dyn Clock,
    is_over: &'a AtomicBool,
    hear: &'a mut Hear<'a>,
) -> Report {
    let (now, started) = (clock.now(), clock.wall_time());
    let report = Report { source: request.source.clone(), started, ..Report::default() };
    let mut drill = Drill { request, clock, is_over, hear, report, began: now, step: now };
    let outcome = drill.run();
    let (now, wall) = (clock.now(), clock.wall_time());
    let mut report = drill.report;
    report.fault = outcome.err();
    report.took = now - drill.began;
    report.finished = started.checked_add(report.took).unwrap_or(started);
    let by_clock = wall.duration_since(started).abs_diff(report.took);
    if by_clock > CLOCK_SLACK {
        report.notes.push(format!(
            "clock jumped: this machine's clock went from {started:.0} to {wall:.0} in {} s. Nothing of the drill goes by it",
            report.took.as_secs()
        ));
    }
    report
}

trait AbsDiff {
    /// How much two times differ.
    fn abs_diff(self, other: Duration) -> Duration;
}

impl AbsDiff for jiff::SignedDuration {
    fn abs_diff(self, other: Duration) -> Duration {
        let other = jiff::SignedDuration::try_from(other).unwrap_or(jiff::SignedDuration::MAX);
        self.saturating_sub(other).unsigned_abs()
    }
}

impl Drill<'_> {
    fn run(&mut self) -> Result<(), String> {
        let work = Work::take(&self.request.work, &self.request.source)?;
        let outcome = self.in_folder(&work);
        outcome.map_err(|why| {
            let dir = &self.request.work;
            match crate::new_server::free(dir) {
                _ if self.is_over.load(Ordering::Relaxed) => why,
                Ok(free) if free < FULL_BYTES && !why.starts_with("disk full") => {
                    format!("disk full: {} has {free} bytes free. {why}", dir.display())
                }
                _ => why,
            }
        })
    }

    fn in_folder(&mut self, work: &Work) -> Result<(), String> {
        let Request { reader, source, .. } = self.request;
        let mut chain = reader.chain(source).map_err(words)?;
        chain.check_whole(&*reader.store).map_err(words)?;
        let pair = self.choose(&mut chain)?;
        let Pair { first, next } = &pair;
        self.report.backup.clone_from(&first.record.id);
        let copied = Copied::from_archive(reader, source, &work.path("log"), None);
        let (copied, _) = copied
            .map_err(|error| format!("{}{error}", if error.is_gap() { "gap in the log: " } else { "" }))?;
        let target = Target::of(&copied, &first.record, next.as_ref().map(|next| &next.record), self.hear)?;
        // Before an hour's work, not behind it.
        for backup in [Some(first), next.as_ref()].into_iter().flatten() {
            self.opens(backup)?;
        }
        if let Some(next) = next {
            NewServer::may_be_made(&self.order(next, 0), &work.path("server")).map_err(words)?;
        }
        self.step("choose");
        let brought = self.bring(work, &copied, first, &target)?;
        let Some(next) = next else {
            self.report.proof = Some(Proof::GtidsAndCheck);
            let has = if target.has_gtids() { "the GTIDs are" } else { "the log is applied to" };
            let point = match target.course.transactions {
                0 => "the end of the log, behind which nothing was written since the backup",
                _ => "a point that was chosen at random",
            };
            self.report.proof_in_words = format!(
                "{has} exactly {}, {point}; CHECK TABLE of {} tables found nothing. There is no later backup to compare with",
                short(&target.reached()),
                brought.tables
            );
            return Ok(());
        };
        let other = self.next(work, next)?;
        if let Some(differs) = brought.differs(&other, "the first", "the second") {
            return Err(format!(
                "backup {} brought forward to {} is not backup {}: {differs}. One of the two backups does not hold what it says, or the log between \
                 them does not",
                first.record.id,
                short(&target.reached()),
                next.record.id
            ));
        }
        self.step("compare");
        self.report.proof = Some(Proof::NextBackup);
        self.report.proof_in_words = format!(
            "backup {} brought forward to the point of backup {} is that backup. Compared: tables, by definition, number and checksum of rows: {}; \
             views, routines, triggers, events and accounts: {}. CHECK TABLE found nothing",
            first.record.id,
            next.record.id,
            brought.tables,
            brought.others()
        );
        Ok(())
    }

    /// Whether the beginning of a backup is there, is as it was, and there is a key for it.
    fn opens(&self, backup: &ArchivedBackup) -> Result<(), String> {
        let reader = &self.request.reader;
        let first = reader
            .segments(&backup.file)
            .and_then(|all| all.first().map_or(Ok(()), |first| reader.segment(first).map(drop)));
        first.map_err(|error| {
            let is_key = matches!(error, ReadError::Open(OpenError::NoIdentity { .. }));
            format!(
                "{}backup {} cannot be read: {error}",
                if is_key { "key missing: " } else { "" },
                backup.record.id
            )
        })
    }

    /// The log of a new backup may be on its way.
    fn choose(&mut self, chain: &mut Chain) -> Result<Pair, String> {
        let until = self.clock.now() + LOG_WAIT;
        loop {
            let listed = catalogue::list(chain.history());
            let mut notes = Vec::new();
            let why = match Pair::choose(&listed, &self.request.which, self.clock.wall_time(), &mut notes) {
                Ok(pair) => {
                    self.report.notes.extend(notes);
                    return Ok(pair);
                }
                Err(NoPair::Never(why)) => return Err(why),
                Err(NoPair::NotYet(why)) => why,
            };
            if self.clock.now() >= until || self.is_over.load(Ordering::Relaxed) {
                return Err(why);
            }
            self.clock.sleep(LOG_LOOK);
            chain.refresh(&*self.request.reader.store).map_err(words)?;
        }
    }

    /// The first backup, brought to the point and looked at.
    fn bring(
        &mut self,
        work: &Work,
        copied: &Copied,
        first: &ArchivedBackup,
        target: &Target,
    ) -> Result<Fingerprint, String> {
        let mut server = self.load(work, first, target.course.bytes)?;
        self.step("fetch and load");
        let after =
            server.bring(copied, &target.until, None, self.hear).map_err(|error| self.words(&error))?;
        target.is_reached(&after)?;
        self.report.until = target.reached();
        self.report.until_time = target.time();
        self.step("apply the log");
        if let Some(damaged) = damaged(server.running()).map_err(|error| ended(server.running(), &error))? {
            return Err(format!(
                "damaged: CHECK TABLE of backup {} brought forward says: {damaged}. The server's disk or its program is not sound, or the backup is \
                 of damaged files",
                first.record.id
            ));
        }
        self.step("check");
        let found = self.fingerprint(&server)?;
        self.report.tables = found.tables;
        self.report.bytes = data_bytes(&server.folder().data());
        if !found.without_checksum.is_empty() {
            self.report.notes.push(format!(
                "of these tables the rows were counted and not compared, their engine has no checksum: {}",
                found.without_checksum.join(", ")
            ));
        }
        self.step("fingerprint");
        Ok(found)
    }

    fn next(&mut self, work: &Work, next: &ArchivedBackup) -> Result<Fingerprint, String> {
        let server = self.load(work, next, 0).map_err(|why| format!("backup {}: {why}", next.record.id))?;
        self.step("fetch and load the next backup");
        self.fingerprint(&server)
    }

    fn fingerprint(&self, server: &NewServer<'_>) -> Result<Fingerprint, String> {
        Fingerprint::take(server.running()).map_err(|error| ended(server.running(), &error))
    }

    fn order<'b>(&'b self, backup: &'b ArchivedBackup, log_bytes: u64) -> Order<'b> {
        let Request { reader, programs, .. } = self.request;
        Order { reader, backup, programs, log_bytes, clock: self.clock, is_over: self.is_over }
    }

    /// A backup in a new server; one that was there before is gone.
    fn load<'b>(
        &mut self,
        work: &Work,
        backup: &'b ArchivedBackup,
        log_bytes: u64,
    ) -> Result<NewServer<'b>, String>
    where
        Self: 'b,
    {
        let root = work.without("server").map_err(words)?;
        let Request { reader, programs, .. } = self.request;
        let order = Order { reader, backup, programs, log_bytes, clock: self.clock, is_over: self.is_over };
        let how = NewServer::may_be_made(&order, &root).map_err(words)?;
        let folder = Folder::take(&root).map_err(words)?;
        NewServer::load(order, how, folder, self.hear).map_err(|error| self.words(&error))
    }

    /// Why there is no server. That it was ended is said by whoever has ended it.
    fn words(&self, error: &NoServer) -> String {
        match error {
            NoServer::Interrupted => "it was ended".to_owned(),
            error => error.to_string(),
        }
    }

    fn step(&mut self, name: &'static str) {
        let now = self.clock.now();
        self.report.steps.push((name, now - std::mem::replace(&mut self.step, now)));
    }
}

fn short(set: &str) -> String {
    repair::history::shortened(set)
}

/// A server that does not answer any more has said why in its log.
fn ended(running: &crate::new_server::Running, error: &dyn Display) -> String {
    format!("while its tables were looked at: {error}; its log {}", running.last_words())
}
