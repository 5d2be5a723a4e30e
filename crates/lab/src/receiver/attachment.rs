//! A receiver while it is attached to a source, or nothing in its place.

use super::binlogd::Binlogd;
use super::replica::Replica;
use super::usage::Usage;
use crate::server::Target;
use rig::interrupt::Interrupt;
use std::time::Duration;

/// Longest wait until a receiver is attached and semi-sync in force.
const ATTACH_MAX: Duration = Duration::from_secs(20);

/// What is attached. Dropping it detaches; the source notices later, see [`Target::drop_dumps`].
#[derive(Debug)]
pub enum Attachment<'a> {
    /// Nothing: the source alone.
    Nothing,
    /// binlogd.
    Binlogd(Box<Binlogd>),
    /// A real replica.
    Replica(&'a mut Replica),
}

impl Attachment<'_> {
    /// Waits until it is attached and semi-sync is in force on the source, or not, as wanted; says what is wrong
    /// otherwise.
    ///
    /// # Errors
    /// When the source does not answer, and when the run is broken off.
    pub fn wait_in_force(
        &mut self,
        source: &mut Target,
        semi_sync: bool,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Option<String>> {
        let mut wrong = None;
        interrupt.wait(ATTACH_MAX, || {
            wrong = self.not_in_force(source, semi_sync)?;
            Ok(wrong.is_none().then_some(()))
        })?;
        Ok(wrong)
    }

    /// What is wrong now, by the source's word and by the receiver's own.
    ///
    /// # Errors
    /// When the source does not answer.
    pub fn not_in_force(&mut self, source: &mut Target, semi_sync: bool) -> anyhow::Result<Option<String>> {
        let own = match self {
            Attachment::Nothing => Ok(None),
            Attachment::Binlogd(binlogd) => binlogd.not_attached(),
            Attachment::Replica(replica) => replica.not_attached(),
        };
        let own = own.unwrap_or_else(|error| Some(format!("{error:#}")));
        let mut readers = None;
        if !source.is_users() {
            let (dumps, wanted) = (source.dumps()?.len(), usize::from(!matches!(self, Attachment::Nothing)));
            readers = (dumps != wanted).then(|| format!("{dumps} read the source's log"));
        }
        let wrong: Vec<String> =
            [source.not_in_force(semi_sync)?, readers, own].into_iter().flatten().collect();
        Ok((!wrong.is_empty()).then(|| wrong.join("; ")))
    }

    /// What the receiver's process has used until now; `None` for nothing.
    ///
    /// # Errors
    /// When it is gone.
    pub fn usage(&self) -> anyhow::Result<Option<Usage>> {
        match self {
            Attachment::Nothing => Ok(None),
            Attachment::Binlogd(binlogd) => binlogd.usage().map(Some),
            Attachment::Replica(replica) => replica.usage().map(Some),
        }
    }

    /// The receiver's last words, for a reason why a cell is invalid.
    pub fn complaint(&mut self) -> String {
        match self {
            Attachment::Nothing => String::new(),
            Attachment::Binlogd(binlogd) => binlogd.complaint(),
            Attachment::Replica(replica) => replica.complaint(),
        }
    }
}

impl Drop for Attachment<'_> {
    fn drop(&mut self) {
        if let Attachment::Replica(replica) = self {
            // A replica that refuses to stop is found when it is to be attached again.
            let _ = replica.detach();
        }
    }
}
