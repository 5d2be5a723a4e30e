//! A part of a restore by statements over one connection, where the target cannot reach us.

use super::ended::{Ended, Progress, during};
use super::tell::Telling;
use crate::history::{Copied, CopiedFile};
use crate::rescue::{HandOverError, Lacked, Sender, Translator};
use crate::restore::begin::Begin;
use crate::restore::course::Course;
use crate::restore::target::Target;
use binlog::forks::transactions::{StoredTransaction, TransactionReader};
use codec::ServerKind;
use codec::gtid::{GtidState, TransactionId};
use source::identify::SourceIdentity;
use std::sync::atomic::{AtomicBool, Ordering};

/// See the module.
pub(in crate::restore) struct ByStatements<'a> {
    /// What is read.
    pub copied: &'a Copied,
    /// What of that.
    pub course: &'a Course,
    /// These are not sent.
    pub skip: &'a [TransactionId],
}

/// Takes a transaction of that file, with the file's format description.
type Take<'a> = dyn FnMut(&CopiedFile, &StoredTransaction, &[u8]) -> Result<(), Ended> + 'a;

impl ByStatements<'_> {
    /// Makes sure that everything can be said in statements. Nothing is sent.
    ///
    /// # Errors
    /// Which transaction cannot, and why.
    pub(in crate::restore) fn check(&self, target: &Target) -> Result<(), Ended> {
        let mut translator = Translator::default();
        self.each(&target.identity, &mut |file, transaction, format| {
            let Some(lacked) = lacked(file, transaction) else { return Ok(()) };
            let cannot = |why| Ended::HandOver(HandOverError::NoStatements { lacked: Box::new(lacked), why });
            translator.statements(transaction, format).map(drop).map_err(cannot)
        })
    }

    /// Sends the part, one transaction after the other.
    ///
    /// # Errors
    /// Why it has ended early. What was sent before is there.
    pub(in crate::restore) fn run(
        &self,
        target: &mut Target,
        telling: Telling<'_>,
        is_over: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), Ended> {
        telling.tell(target)?;
        let asking = "asking how long a statement may be";
        let packet = target.variable("max_allowed_packet").map_err(during(asking))?;
        let packet = packet.and_then(|text| text.parse().ok()).unwrap_or(u64::MAX);
        // What it was told, and what an earlier part has brought.
        let has = SourceIdentity::ask(&mut target.connection).map_err(during("asking what it has"))?;
        let all = self.course.transactions;
        let mut sender = Sender::begin(&mut target.connection, has.kind, packet).map_err(Ended::HandOver)?;
        let mut done = 0;
        let mut one_more = |_: &Lacked| {
            done += 1;
            progress(Progress { done, all });
            if is_over.load(Ordering::Relaxed) { Some(Progress { done, all }) } else { None }
        };
        let mut ended = None;
        self.each(&has, &mut |file, transaction, format| {
            let Some(lacked) = lacked(file, transaction) else { return Ok(()) };
            let sent = sender.push(&lacked, transaction, format, &mut |lacked| ended = one_more(lacked));
            sent.map_err(Ended::HandOver)?;
            ended.map_or(Ok(()), |now| Err(Ended::Interrupted(now)))
        })?;
        sender.finish(&mut |lacked| ended = one_more(lacked)).map_err(Ended::HandOver)
    }

    /// Reads what `has` lacks up to the end of the part, in the order of the log.
    fn each(&self, has: &SourceIdentity, take: &mut Take<'_>) -> Result<(), Ended> {
        let gone = |error: &dyn std::fmt::Display| Ended::Copy(error.to_string());
        let files = self.copied.files().map_err(|error| gone(&error))?;
        let first = Begin::Gtids(has).first_file(self.copied, &files).map_err(|error| gone(&error))?;
        let mut had = GtidState::empty(has.kind);
        for file in &files[first..] {
            let limit = self.course.first_left_out.as_ref();
            let limit = limit.filter(|first| first.timeline == file.timeline && *first.file == *file.name);
            let end = limit.map_or(file.end, |first| first.at);
            let reader = TransactionReader::open(&*self.copied.storage, &file.path);
            let mut reader = reader.map_err(|error| gone(&error))?;
            let format = reader.format_event().to_vec();
            loop {
                let wanted =
                    |id: Option<&TransactionId>| id.is_some_and(|id| !has.has(id) && !file.lost.contains(id));
                let Some(transaction) = reader.next(wanted).map_err(|error| gone(&error))? else { break };
                let Some(id) = transaction.id.filter(|_| transaction.end <= end) else { break };
                // A GTID of MySQL may stand in two timelines, and is taken once.
                let is_again = has.kind == ServerKind::MySql && had.contains(&id);
                if is_again || self.skip.contains(&id) {
                    continue;
                }
                // Of the kind of the copy.
                let _ = had.insert(id);
                take(file, &transaction, &format)?;
            }
            if limit.is_some() {
                break;
            }
        }
        Ok(())
    }
}

fn lacked(file: &CopiedFile, transaction: &StoredTransaction) -> Option<Lacked> {
    Some(Lacked::of(&file.timeline, &file.path, transaction, transaction.id?))
}
