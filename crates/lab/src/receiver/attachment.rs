//! A receiver while it is attached to a source, or nothing in its place.

use super::binlogd::Binlogd;
use super::program::Program;
use super::replica::Replica;
use crate::server::Target;
use rig::usage::Usage;

/// What is attached. Dropping it ends a program; a replica must be detached first.
#[derive(Debug)]
pub enum Attachment {
    /// Nothing: the source alone.
    Nothing,
    /// binlogd.
    Binlogd(Box<Binlogd>),
    /// A real replica.
    Replica(Box<Replica>),
    /// A program that tells nothing of itself.
    Program(Program),
}

impl Attachment {
    /// What is wrong now, by the source's word and by the receiver's own: semi-sync in force or not, as wanted, the
    /// connection encrypted if it must be, and nobody else who reads the log.
    ///
    /// # Errors
    /// When the source does not answer.
    pub fn not_in_force(&mut self, source: &mut Target, semi_sync: bool) -> anyhow::Result<Option<String>> {
        let own = match self {
            Attachment::Nothing => Ok(None),
            Attachment::Binlogd(binlogd) => binlogd.not_attached(),
            Attachment::Replica(replica) => replica.not_attached(),
            Attachment::Program(program) => program.check().map(|()| None),
        };
        let own = own.unwrap_or_else(|error| Some(format!("{error:#}")));
        let mut readers = None;
        if !source.is_users() {
            let (dumps, wanted) = (source.dumps()?.len(), usize::from(!matches!(self, Attachment::Nothing)));
            readers = (dumps != wanted).then(|| format!("{dumps} read the source's log"));
        }
        let in_clear = match self {
            Attachment::Binlogd(binlogd) => binlogd.in_clear(source)?,
            _ => None,
        };
        let wrong: Vec<String> =
            [source.not_in_force(semi_sync)?, readers, in_clear, own].into_iter().flatten().collect();
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
            Attachment::Program(program) => program.usage().map(Some),
        }
    }

    /// The receiver's last words, for a reason why a cell is invalid.
    pub fn complaint(&mut self) -> String {
        match self {
            Attachment::Nothing => String::new(),
            Attachment::Binlogd(binlogd) => binlogd.complaint(),
            Attachment::Replica(replica) => replica.complaint(),
            Attachment::Program(program) => program.said(),
        }
    }
}
