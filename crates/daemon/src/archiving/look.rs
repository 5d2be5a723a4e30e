//! Looks in the store for files that are wanted gone here: a thread a source that nobody waits for, and which is at rest while
//! nobody wants anything gone.

use crate::archiving::kept::{FileKey, Kept};
use crate::keeper::Chore;
use archive::reader::Reader;
use archive::store::StoreError;
use archive::upkeep::presence::{any, look};
use archive::writer::Finished;
use jiff::Timestamp;
use source::stop::StopSignal;
use status::{LastError, Level, SourceMonitor};
use std::sync::Arc;
use std::time::Duration;

/// Pause between two looks whether something is wanted gone.
const PAUSE: Duration = Duration::from_millis(500);

/// A file that was not seen is looked for again after so long.
const AGAIN: Duration = Duration::from_secs(15);

/// What the thread works on.
pub(crate) struct Looker {
    /// The source.
    pub(crate) source: String,
    /// What reads the objects; it ends when it is asked to.
    pub(crate) reader: Reader,
    pub(crate) kept: Arc<Kept>,
    pub(crate) monitor: Arc<SourceMonitor>,
    /// What was said last, so that nothing is said twice.
    pub(crate) told: Option<String>,
}

/// What came of a look.
enum Seen {
    Yes,
    /// Damage, in words.
    Damaged(Vec<String>),
    Unknown(StoreError),
}

impl Chore for Looker {
    fn round(&mut self, stop: &StopSignal) -> Duration {
        let mut pause = PAUSE;
        while let Some((file, finished)) = self.kept.next().filter(|_| !stop.is_requested()) {
            if !self.one(&file, &finished, stop) {
                pause = AGAIN;
                break;
            }
        }
        if self.told.is_some() && self.kept.is_at_rest() {
            self.is_well();
        }
        pause
    }
}

impl Looker {
    /// False when the file was not seen.
    fn one(&mut self, file: &FileKey, finished: &Finished, stop: &StopSignal) -> bool {
        let whole = format!("{}/{}", file.0, file.1);
        let (why, findings) = match self.look(finished) {
            Seen::Yes => {
                self.kept.was_seen(file);
                self.is_well();
                return true;
            }
            Seen::Unknown(_) if stop.is_requested() => return false,
            Seen::Unknown(error) => (format!("the store could not be asked for {whole}: {error}"), 0),
            Seen::Damaged(found) => {
                (format!("the archive is damaged, and has not all of {whole}: {}", found[0]), found.len())
            }
        };
        self.kept.not_seen(file, why.clone());
        self.tell(why, findings as u64);
        false
    }

    fn look(&self, finished: &Finished) -> Seen {
        // It has expired in the archive, by the archive's own rules.
        let Some(archived) = &finished.file else { return Seen::Yes };
        match look(&self.reader, &self.source, &finished.timeline, archived, any()) {
            Ok(found) if found.is_empty() => Seen::Yes,
            Ok(found) => Seen::Damaged(found.iter().map(ToString::to_string).collect()),
            Err(error) => Seen::Unknown(error),
        }
    }

    fn tell(&mut self, why: String, findings: u64) {
        if self.told.as_ref() != Some(&why) {
            let source = self.source.as_str();
            if findings > 0 {
                tracing::error!(source, "a file that is wanted gone stays: {why}");
                self.monitor.note(Level::Critical, "archive", why.clone());
            } else {
                tracing::warn!(source, "a file that is wanted gone stays: {why}");
            }
            self.told = Some(why.clone());
        }
        self.monitor.archive.update(|status| {
            let at = status.kept.as_ref().map_or_else(Timestamp::now, |kept| kept.at);
            status.kept = Some(LastError { at, message: why });
            status.kept_findings = findings;
        });
    }

    fn is_well(&mut self) {
        if self.told.take().is_none() {
            return;
        }
        tracing::info!(source = self.source.as_str(), "what is wanted gone is seen in the archive again");
        self.monitor.archive.update(|status| {
            status.kept = None;
            status.kept_findings = 0;
        });
    }
}
