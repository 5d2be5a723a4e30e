//! What comes before a copy is opened: on an empty disk the archive is asked where to go on.
//!
//! In the source's own thread, so that no other source waits for it. While the store does not answer nothing is begun: a copy that
//! began at the source would be a second history, with a gap before it. Who wants that says `archive = false` for the source.

use archive::begin::{BeginError, Begun, There, begin, finish, look};
use archive::reader::Reader;
use archive::segment::Opener;
use archive::store::Store;
use archive::store::abandon::Abandoning;
use binlog::folder::{FolderError, SourceFolder};
use receive::Upstream;
use status::{Level, Place, SourceState, units};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// First pause after a failure; each further one doubles it.
const RETRY_MIN: Duration = Duration::from_secs(1);

/// How often a source looks whether it is its turn.
const TURN_INTERVAL: Duration = Duration::from_millis(50);

/// The longest pause between two tries.
const RETRY_MAX: Duration = Duration::from_secs(30);

/// The archive, as a copy begins from it.
#[derive(Clone)]
pub(crate) struct Beginning {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) opener: Arc<Opener>,
    /// Its place in words, without secrets.
    pub(crate) place: String,
    /// Objects that are read side by side.
    pub(crate) at_once: usize,
    /// Held by the source that reads: with hundreds of them on an empty disk what is in memory stays that of one.
    pub(crate) turn: Arc<Mutex<()>>,
}

/// Why the copy cannot be opened yet.
enum Failure {
    /// It is tried again.
    Passing(String),
    /// Only an operator helps.
    Lasting(String),
}

/// Waits until the source's copy may be opened. False when it may not before an operator has done something, which is then the state,
/// and in the log. After a request to stop the answer does not matter.
pub(crate) fn may_be_opened(upstream: &Upstream, archive: Option<&Beginning>) -> bool {
    let source = upstream.config.name.as_str();
    // However long the store takes: a restart would begin the same again.
    upstream.monitor.pulse.beat(Place::Rests);
    let mut retry = RETRY_MIN;
    let mut told = None;
    while !upstream.stop.is_requested() {
        let Err(failure) = try_once(upstream, archive) else { return true };
        if upstream.stop.is_requested() {
            break;
        }
        if let Some(why) = upstream.stop.halted() {
            upstream.monitor.set_state(SourceState::stopped_by_operator(why));
            upstream.stop.rest();
            continue;
        }
        let error = match failure {
            Failure::Passing(error) => error,
            Failure::Lasting(reason) => {
                tracing::error!(source, "stopped: {reason}");
                upstream.monitor.set_state(SourceState::stopped(reason));
                return false;
            }
        };
        if told.as_ref() != Some(&error) {
            tracing::error!(source, "{error}; the next try is in {} s", retry.as_secs());
            told = Some(error.clone());
        }
        upstream.monitor.set_state(SourceState::WaitingForArchive { error });
        upstream.stop.wait(retry);
        retry = (retry * 2).min(RETRY_MAX);
    }
    true
}

fn try_once(upstream: &Upstream, archive: Option<&Beginning>) -> Result<(), Failure> {
    let folder = upstream.data_dir.join(&upstream.config.name);
    let of_folder = |error| Failure::Passing(format!("{}: {error}", folder.display()));
    let there = |found| match (found, archive) {
        (There::Copy, _) | (There::Nothing, None) => false,
        (There::Unfinished, _) | (There::Nothing, Some(_)) => true,
    };
    if !there(look(&*upstream.storage, &folder).map_err(of_folder)?) {
        return Ok(());
    }
    let locked = SourceFolder::open(&*upstream.storage, &upstream.data_dir, &upstream.config.name);
    let _locked = locked.map_err(|error| match error {
        FolderError::Io { .. } => Failure::Passing(error.to_string()),
        FolderError::Locked { .. } | FolderError::Replica { .. } => Failure::Lasting(error.to_string()),
    })?;
    // Another process may have had the lock until now.
    match look(&*upstream.storage, &folder).map_err(of_folder)? {
        There::Unfinished => finish(&*upstream.storage, &folder).map_err(of_folder),
        There::Copy => Ok(()),
        There::Nothing => archive.map_or(Ok(()), |archive| archive.begin(upstream, &folder)),
    }
}

impl Beginning {
    fn begin(&self, upstream: &Upstream, folder: &Path) -> Result<(), Failure> {
        let (source, monitor) = (upstream.config.name.as_str(), &upstream.monitor);
        let is_new = !matches!(monitor.state(), SourceState::WaitingForArchive { .. });
        if is_new {
            let what = format!("asking {} what it has of this source", self.place);
            monitor.set_state(SourceState::BeginningFromArchive { what });
        }
        let Some(_turn) = self.wait_for_turn(upstream) else {
            return Err(Failure::Passing(format!("{} was not asked yet", self.place)));
        };
        let stop = upstream.stop.clone();
        let is_over = Arc::new(move || stop.ends_session());
        let store = Arc::new(Abandoning::new(self.store.clone(), is_over));
        let reader = Reader { store, opener: self.opener.clone() };
        let told = |begun: &Begun| {
            let what = format!("fetching {} from {}", extent(begun), self.place);
            monitor.set_state(SourceState::BeginningFromArchive { what });
        };
        match begin(&reader, &*upstream.storage, folder, source, self.at_once, &told) {
            Ok(None) => {
                tracing::info!(
                    source,
                    "{} has nothing of this source: its copy begins at the source",
                    self.place
                );
                Ok(())
            }
            Ok(Some(begun)) => {
                let end = format!("{}, {}:{}", begun.timeline, begun.file, begun.offset);
                let text = format!(
                    "nothing was on this disk: the copy goes on where {} ends, at {end}; {} were fetched, older files stay there",
                    self.place,
                    extent(&begun)
                );
                tracing::info!(source, gtids = begun.gtids, "{text}");
                monitor.note(Level::Notice, "archive", text);
                Ok(())
            }
            Err(error) => Err(self.failure(&error)),
        }
    }

    /// `None` when the thread is to end, or to rest.
    fn wait_for_turn(&self, upstream: &Upstream) -> Option<MutexGuard<'_, ()>> {
        loop {
            match self.turn.try_lock() {
                Ok(turn) => return Some(turn),
                Err(TryLockError::Poisoned(poisoned)) => return Some(PoisonError::into_inner(poisoned)),
                Err(TryLockError::WouldBlock) => {}
            }
            upstream.stop.wait(TURN_INTERVAL);
            if upstream.stop.ends_session() {
                return None;
            }
        }
    }

    fn failure(&self, error: &BeginError) -> Failure {
        let place = &self.place;
        if error.lacks_key() {
            return Failure::Lasting(format!(
                "nothing is on this disk, and what {place} has of this source is encrypted: {error}. Name a file with the private key \
                 in identity of [archive] and restart binlogd. Or run `binlogd fetch` where the key is, and bring what it fetched here \
                 as the data folder. Or say archive = false for this source and reload, to begin at the source without what is archived"
            ));
        }
        if error.of_disk().is_some() {
            return Failure::Passing(format!(
                "nothing is on this disk, and what is needed of {place} cannot be written: {error}"
            ));
        }
        Failure::Passing(format!(
            "nothing is on this disk, and nothing is begun before {place} says where to go on: {error}. Repair the way to the store; or \
             say archive = false for this source and reload, to begin at the source without what is archived"
        ))
    }
}

/// How much is fetched, in words.
fn extent(begun: &Begun) -> String {
    format!("{} ({})", units::counted(begun.files as u64, "file"), units::bytes(begun.bytes))
}
