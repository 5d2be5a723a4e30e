//! A binlog dump: from a reader's request to the packets that a server would send.
//!
//! ```text
//! place.rs  where it begins
//!   │
//! for each file:
//!   artificial ROTATE ─► format description ─► the file's events ─► at the live end: sleep until there is more, heartbeats
//!                                                                       │ the live file is another one
//!   next file of the timeline, or of the next timeline where that is provably what follows ◄─┘
//! ```
//!
//! Only what is published leaves, so no reader has what a crash could take from the copy. When the files below a reader may
//! have become others, its dump ends: it comes back and is placed anew.

mod ahead;
pub(crate) mod answers;
pub(crate) mod asked;
pub(crate) mod bound;
pub(crate) mod dump_log;
pub mod dump_request;
mod hold;
pub(crate) mod made_up;
pub mod packets;
pub mod progress;
pub mod refusal;
pub mod request;
pub mod stop;
pub(crate) mod stream;

use super::history::{FileId, Following, History};
use crate::dump::asked::Asked;
use crate::dump::bound::Bound;
use crate::dump::made_up::{FormatChange, HeartbeatForm, Maker, format_description, start_encryption};
use crate::dump::packets::{PacketOut, Packets};
use crate::dump::progress::ReaderProgress;
use crate::dump::refusal::{DumpError, ReadSoFar, Refusal, Words};
use crate::dump::request::{DumpRequest, From, ReaderChecksum};
use crate::dump::stream::{Passed, Sink, Stream, StreamError};
use crate::history::choice::{MysqlChoice, Rule};
use crate::history::head::Head;
use crate::history::look::{Look, NoPlace};
use crate::history::next_timeline;
use crate::history::place::Start;
use crate::history::timeline_end;
use binlog::storage::Storage;
use binlog::writer::published::{Live, Published};
use codec::Position;
use codec::ServerKind;
use codec::event::{BINLOG_MAGIC, ChecksumAlgorithm};
use codec::gtid::GtidState;
use jiff::Timestamp;
use status::SourceMonitor;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long a reader without heartbeats sleeps before it looks whether it is still wanted.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// One source's copy, as it is served.
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "nobody prints a copy with its status")]
pub struct Served {
    /// `<data_dir>/<source>`.
    pub folder: PathBuf,
    /// The disk.
    pub storage: Arc<dyn Storage>,
    /// What readers may have.
    pub published: Arc<Published>,
    /// What is known of the source; `None` for a copy that has all that there is.
    pub monitor: Option<Arc<SourceMonitor>>,
    /// The clock by which a delay is measured.
    pub wall_time: WallTime,
    /// How a dump waits.
    pub waits: Arc<dyn Waits>,
}

/// How a dump waits: by the machine's clock, or as a simulation has it.
pub trait Waits: Send + Sync {
    /// Until something is published after `seen`, or for `timeout`; it may come back early.
    fn for_news(&self, published: &Published, seen: u32, timeout: Duration) {
        published.wait(seen, timeout);
    }

    /// For so long.
    fn pause(&self, pause: Duration) {
        std::thread::sleep(pause);
    }
}

/// By the machine's clock.
#[derive(Debug, Clone, Copy)]
pub struct RealTime;

impl Waits for RealTime {}

/// A clock, as people read it.
pub(crate) type WallTime = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What the reader of a source is told that was taken out of the configuration.
const NOT_COPIED: &str =
    "binlogd does not copy this source any more: it was taken out of the configuration; its files are kept";

/// How a dump ended that was not refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DumpEnd {
    /// The reader has everything that it asked for, and was told so with an EOF packet. The session goes on.
    Complete,
    /// The copy is not open, or other files are below the reader now: the connection is to be closed. The reader comes back.
    Moved,
    /// The reader was cancelled: the connection is to be closed.
    Cancelled,
}

/// Serves one dump to its end. The first packet of the answer has number 1. The last one, EOF or an error, is sent too.
///
/// # Errors
/// [`DumpError::Refused`] when the reader was told an error; the session may go on. After the others the connection is to be
/// closed.
pub fn dump(
    served: &Served,
    request: &DumpRequest,
    out: &mut dyn PacketOut,
    progress: &ReaderProgress,
) -> Result<DumpEnd, DumpError> {
    let Some(live) = served.published.live() else { return Ok(DumpEnd::Moved) };
    // What was taken away since it was listed is asked for again.
    let Some(history) = history(served, request, &live)? else { return Ok(DumpEnd::Moved) };
    let version = history.files().next_back().map_or("", |file| &history.timeline(file).server_version);
    let words = Words::of(version);
    let form = heartbeat_form(request, words, version);
    let mut dump = Dump {
        served,
        request,
        progress,
        history,
        live,
        words,
        form,
        packets: Packets::new(request.semi_sync),
        maker: Maker { server_id: 0, checksum: first_checksum(request.checksum) },
        so_far: None,
    };
    if request.semi_sync {
        progress.asked.begin(dump.live.generation);
        dump.packets.has_what_is_not_sent(says_what_it_has(request));
    }
    let ran = match dump.run(out) {
        // To be told so, and not to come back for ever.
        Ok(DumpEnd::Moved | DumpEnd::Cancelled) if progress.is_dismissed() => {
            Err(Failure::Refused(Refusal::Text(NOT_COPIED.to_owned())))
        }
        ran => ran,
    };
    let ended = match ran {
        Ok(DumpEnd::Complete) => {
            dump.packets.eof();
            Ok(DumpEnd::Complete)
        }
        Ok(end) => Ok(end),
        Err(Failure::Refused(refusal)) => {
            let packet = refusal.packet(words, dump.so_far.as_ref());
            Err(match (dump.packets.error(&packet), refusal) {
                (false, _) => DumpError::Cut(packet),
                (true, Refusal::Behind { .. } | Refusal::PastNotKnown) => DumpError::Behind(packet),
                (true, _) => DumpError::Refused(packet),
            })
        }
        // Who does not take what is sent is not to be waited for a second time.
        Err(Failure::Failed(error @ DumpError::Reader(_))) => return Err(error),
        Err(Failure::Failed(error)) => Err(error),
    };
    dump.packets.flush(out).map_err(DumpError::Reader)?;
    ended
}

/// The files that this reader may have; `None` where there is no timeline as it names one.
fn history(served: &Served, request: &DumpRequest, live: &Live) -> Result<Option<History>, DumpError> {
    let history = match &request.timeline {
        None => History::read(&*served.storage, &served.folder, live).map(Some),
        Some(name) => History::of_one(&*served.storage, &served.folder, name, live),
    };
    history.map_err(|error| DumpError::File { path: served.folder.clone(), error })
}

/// Whether the reader says that it has everything that it does not ask for. With the beginning of a file it may be new.
fn says_what_it_has(request: &DumpRequest) -> bool {
    !matches!(request.from, From::Position { offset, .. } if offset <= BINLOG_MAGIC.len() as u64)
}

/// MySQL knows the new form since 8.0.26.
fn heartbeat_form(request: &DumpRequest, words: Words, version: &str) -> HeartbeatForm {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next(), numbers.next(), numbers.next());
    match words {
        Words::Mariadb => HeartbeatForm::Mariadb,
        _ if request.heartbeat_v2 && version >= (Some(8), Some(0), Some(26)) => HeartbeatForm::V2,
        _ => HeartbeatForm::V1,
    }
}

/// The first artificial ROTATE comes before any file says what its checksums are.
fn first_checksum(asked: ReaderChecksum) -> ChecksumAlgorithm {
    match asked {
        ReaderChecksum::Crc32 => ChecksumAlgorithm::Crc32,
        ReaderChecksum::None | ReaderChecksum::Unaware => ChecksumAlgorithm::None,
    }
}

/// Why a dump ends before its time.
enum Failure {
    Refused(Refusal),
    Failed(DumpError),
}

impl std::convert::From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::Refused(refusal)
    }
}

impl std::convert::From<NoPlace> for Failure {
    fn from(none: NoPlace) -> Failure {
        match none {
            NoPlace::Refused(refusal) | NoPlace::Ahead(refusal) | NoPlace::Apart(refusal) => {
                Failure::Refused(refusal)
            }
            NoPlace::Failed(error) => Failure::Failed(error),
        }
    }
}

struct Dump<'a> {
    served: &'a Served,
    request: &'a DumpRequest,
    progress: &'a ReaderProgress,
    history: History,
    /// The live file when it was looked at last.
    live: Arc<Live>,
    words: Words,
    form: HeartbeatForm,
    packets: Packets,
    maker: Maker,
    /// There once a file is open.
    so_far: Option<ReadSoFar>,
}

/// What became of one file.
enum FileEnd {
    /// Everything in it was sent, and it is sealed.
    Sent,
    Dump(DumpEnd),
}

impl<'a> Dump<'a> {
    fn look(&self) -> Look<'_> {
        Look {
            storage: &*self.served.storage,
            folder: &self.served.folder,
            history: &self.history,
            live: &self.live,
        }
    }

    fn run(&mut self, out: &mut dyn PacketOut) -> Result<DumpEnd, Failure> {
        let Some(mut start) = self.begin(out)? else { return Ok(DumpEnd::Moved) };
        self.tell_what_is_not_here()?;
        loop {
            match self.file(&mut start, out)? {
                FileEnd::Dump(end) => return Ok(end),
                FileEnd::Sent => {}
            }
            match self.next(&mut start)? {
                Some(file) => (start.file, start.offset) = (file, 4),
                None if self.ends_with_timeline(&start) => {
                    // All of this file was sent, so that it is whole for the reader too.
                    if let Some(unbegun) = self.history.unbegun_behind(start.file) {
                        self.packets.event(&self.maker.rotate(unbegun, BINLOG_MAGIC.len() as u64));
                    }
                    return Ok(DumpEnd::Complete);
                }
                None => return Ok(DumpEnd::Moved), // The live file is another one, and is not there.
            }
        }
    }

    /// Sends one file from a place in it on.
    fn file(&mut self, start: &mut Start, out: &mut dyn PacketOut) -> Result<FileEnd, Failure> {
        let (file, offset) = (start.file, start.offset);
        let name = self.history.name(file).clone();
        self.refuse_what_is_no_history(start)?;
        let head = self.look().head(file)?;
        self.maker.server_id = head.format.server_id;
        self.packets.event(&self.maker.rotate(&name, offset));
        self.open_file(&name, offset, &head)?;
        self.maker.checksum = head.checksum();
        self.begin_file(start, &head);
        let stream_at = if offset == 4 { head.format_end } else { offset };
        if start.only_with_previous_gtids && head.gtids_before.is_none() {
            return Ok(FileEnd::Sent);
        }
        if let Rule::Mysql(choice) = &mut start.choice.rule {
            let mut has = start.has.clone().unwrap_or_default();
            if let GtidState::Mysql(lost) = self.history.lost_after(file, ServerKind::MySql) {
                has.union_with(&lost);
            }
            let before = match &head.gtids_before {
                Some(GtidState::Mysql(before)) => Some(before),
                _ => None,
            };
            *choice = MysqlChoice::new(&has, before);
        }
        self.begin_bound(start);
        self.progress.begin_file(self.history.folder(file), &name, stream_at);
        let mut stream = Stream::new(head.file, name, stream_at, offset != 4);
        self.send(&mut stream, start, out)
    }

    /// Refuses readers without checksums, now that the file says what it has.
    fn open_file(&mut self, name: &Arc<str>, offset: u64, head: &Head) -> Result<(), Failure> {
        let first = match (&self.so_far, &self.request.from) {
            (Some(so_far), _) => so_far.first.clone(),
            (None, From::Position { file, .. } | From::Gtids { file, .. }) => {
                Position::new(file.as_str(), offset)
            }
            (None, From::Mariadb(_)) => Position::new("", offset),
        };
        let is_refused =
            self.request.checksum == ReaderChecksum::Unaware && head.checksum() == ChecksumAlgorithm::Crc32;
        let read = Position::new(name.clone(), head.format_end);
        let event = match self.words {
            Words::Mariadb if is_refused => Position::new(name.clone(), 4),
            _ => read.clone(),
        };
        self.so_far = Some(ReadSoFar { first, event, byte: read });
        if is_refused {
            return Err(Refusal::ChecksumUnaware.into());
        }
        Ok(())
    }

    /// The format description, and with MariaDB what stands behind it.
    fn begin_file(&mut self, start: &mut Start, head: &Head) {
        let by_position = matches!(self.request.from, From::Position { .. });
        let sent_again = by_position && start.offset > 4;
        let keep_temporary_tables = match &mut start.choice.rule {
            Rule::Mariadb(choice) => {
                choice.begin_file();
                sent_again || !choice.is_reached()
            }
            // By position of the first file only, by GTID of each.
            _ => sent_again || (!by_position && start.keep_temporary_tables),
        };
        let change = FormatChange { sent_again, keep_temporary_tables };
        self.packets.event(&format_description(&head.format_event, head.checksum(), change));
        if let (Some(event), Words::Mariadb) = (&head.encryption_event, self.words) {
            self.packets.event(&start_encryption(event, head.checksum(), sent_again));
        }
    }

    fn send(
        &mut self,
        stream: &mut Stream,
        start: &mut Start,
        out: &mut dyn PacketOut,
    ) -> Result<FileEnd, Failure> {
        let file = start.file;
        let boundary = self.end_of_older(start)?;
        loop {
            let news = self.served.published.news();
            let Some(live) = self.served.published.live() else { return Ok(FileEnd::Dump(DumpEnd::Moved)) };
            if live.generation != self.live.generation {
                return Ok(FileEnd::Dump(DumpEnd::Moved));
            }
            self.live = live;
            let is_live = self.look().is_live(file);
            let end = match boundary {
                Some(boundary) => boundary,
                None if is_live => self.live.end(),
                None => stream.size().map_err(|error| self.failed(file, error))?,
            };
            self.look_at_clock(start);
            let asked = self.asked().filter(|_| is_live);
            let mut sink = self.sink(start, out, asked);
            let passed = stream.pass(end, is_live, &mut sink).and_then(|passed| {
                stream.flush(&mut sink)?;
                Ok(passed)
            });
            match passed {
                Ok(Passed::All) => self.note_what_it_had(stream.at(), is_live),
                Ok(Passed::Ended) => return Ok(FileEnd::Dump(DumpEnd::Complete)),
                Ok(Passed::Stopped | Passed::Waits(_)) if self.request.non_blocking => {
                    return Ok(FileEnd::Dump(DumpEnd::Complete));
                }
                Ok(Passed::Stopped) => {
                    return Ok(FileEnd::Dump(self.hold_for_good(stream, start, out)?));
                }
                Ok(Passed::Waits(until)) => match self.hold_until(until, stream, start, out)? {
                    Some(end) => return Ok(FileEnd::Dump(end)),
                    None => continue,
                },
                Ok(Passed::Cancelled) => return Ok(FileEnd::Dump(DumpEnd::Cancelled)),
                Ok(Passed::Moved) => return Ok(FileEnd::Dump(DumpEnd::Moved)),
                Err(error) => return Err(self.failure(file, stream.at(), error)),
            }
            if !is_live {
                return Ok(FileEnd::Sent);
            }
            if self.request.non_blocking {
                return Ok(FileEnd::Dump(DumpEnd::Complete));
            }
            if start.choice.bound.as_ref().is_some_and(Bound::is_done) {
                return Ok(FileEnd::Dump(self.hold_for_good(stream, start, out)?));
            }
            if let Some(end) = self.wait(news, stream, start, out)? {
                return Ok(FileEnd::Dump(end));
            }
        }
    }

    /// What is asked of a reader that acknowledges, and stays.
    fn asked(&self) -> Option<&'a Asked> {
        let asks = self.request.semi_sync && !self.request.non_blocking;
        asks.then_some(&self.progress.asked)
    }

    /// At the live end, a reader has everything that was not sent to it by its own word. Nobody would ask it for that: it could
    /// not be waited for before the next transaction, which may not come before it is.
    fn note_what_it_had(&self, at: u64, is_live: bool) {
        if let Some(asked) = self.asked().filter(|_| is_live && self.packets.is_all_asked_for()) {
            asked.has(Position { file: self.live.file.clone(), offset: at }, &self.served.published);
        }
    }

    /// What the events of a file go through.
    fn sink<'s>(
        &'s mut self,
        start: &'s mut Start,
        out: &'s mut dyn PacketOut,
        asked: Option<&'s Asked>,
    ) -> Sink<'s> {
        Sink {
            published: &self.served.published,
            live: &self.live,
            packets: &mut self.packets,
            choice: &mut start.choice,
            out,
            progress: self.progress,
            maker: self.maker,
            form: self.form,
            period: self.request.heartbeat_period,
            asked,
        }
    }

    /// Whether the live file is still the one that was sent, and has no more than that.
    fn is_at_end(&self, at: u64) -> bool {
        let live = self.served.published.live();
        live.is_some_and(|live| Arc::ptr_eq(&live, &self.live) && live.end() <= at)
    }

    /// Whether the reader wants nothing behind the end of a timeline that is written no more.
    fn ends_with_timeline(&self, start: &Start) -> bool {
        self.request.timeline.is_some() && self.history.ends_older_timeline(start.file)
    }

    /// The file that follows, on this timeline or the next one.
    fn next(&mut self, start: &mut Start) -> Result<Option<FileId>, Failure> {
        if self.history.is_of_newest(start.file) {
            let refreshed = self.history.refresh(&*self.served.storage, &self.live, start.file);
            match refreshed.map_err(|error| self.failed(start.file, error))? {
                Some(file) => start.file = file,
                None => return Ok(None), // It was taken away below the reader.
            }
        }
        let following = match self.parting_in(start)? {
            Some(_) => self.history.after_timeline(start.file),
            None => self.history.following(start.file),
        };
        let next = match following {
            Following::Nothing => return Ok(None),
            Following::File(next) => next,
            Following::Timeline(first) => {
                let step = next_timeline::step(&self.look(), start, first);
                step.map_err(|none| self.no_place(none))?
            }
        };
        let by_position = matches!(self.request.from, From::Position { .. });
        if by_position && self.history.named(self.history.name(next)) != Some(next) {
            let why = "a newer file of another server has the name of the next one. Read it by GTID";
            return Err(Refusal::NoNextFile(why).into());
        }
        Ok(Some(next))
    }

    /// For MariaDB by GTID: where a fork took the rest of the timeline, if that is in the file that is sent.
    fn parting_in(&self, start: &Start) -> Result<Option<u64>, Failure> {
        if !matches!(&start.choice.rule, Rule::Mariadb(choice) if choice.is_by_gtid()) {
            return Ok(None);
        }
        let parting = timeline_end::parting(&self.look(), start.file)?;
        Ok(parting.filter(|parting| parting.file == start.file).map(|parting| parting.offset))
    }

    /// Where the last file of a timeline that is written no more ends: at its last boundary, as it would be cut if the copy went
    /// on with it.
    fn end_of_older(&self, start: &Start) -> Result<Option<u64>, Failure> {
        let file = start.file;
        if let Some(offset) = self.parting_in(start)? {
            return Ok(Some(offset));
        }
        if !self.history.ends_older_timeline(file) {
            return Ok(None);
        }
        let end = timeline_end::end_of_timeline(&self.look(), file)?;
        Ok(end
            .filter(|(position, _)| *position.file == **self.history.name(file))
            .map(|(position, _)| position.offset))
    }

    /// A reader by position gets no file in which there is something that a fork took from the source.
    fn refuse_what_is_no_history(&self, start: &Start) -> Result<(), Failure> {
        let by_gtid = match &start.choice.rule {
            Rule::All => false,
            Rule::Mysql(_) => true,
            Rule::Mariadb(choice) => choice.is_by_gtid(),
        };
        if !by_gtid && timeline_end::holds_lost(&self.look(), start.file)? {
            let why = "the source has lost transactions of this file since, and its history goes on without them. Read it \
                       by GTID, or from the files that came later";
            return Err(Refusal::Text(format!("{}: {why}", self.history.name(start.file))).into());
        }
        Ok(())
    }

    fn failed(&self, file: FileId, error: std::io::Error) -> Failure {
        Failure::Failed(DumpError::File { path: self.history.path(file), error })
    }

    fn failure(&mut self, file: FileId, at: u64, error: StreamError) -> Failure {
        let here = Position::new(self.history.name(file).clone(), at);
        match error {
            StreamError::Refused(refusal) => {
                if let Some(so_far) = &mut self.so_far {
                    (so_far.event, so_far.byte) = (here.clone(), here);
                }
                Failure::Refused(refusal)
            }
            StreamError::File(error) => self.failed(file, error),
            StreamError::Reader(error) => Failure::Failed(DumpError::Reader(error)),
        }
    }
}

#[cfg(test)]
mod tests;
