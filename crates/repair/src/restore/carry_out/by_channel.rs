//! A part of a restore by the target's own replication, which reads from a port of ours.

#![allow(clippy::disallowed_methods, reason = "waits for a real server")]

use super::ended::{Ended, Progress, during};
use super::settings::{change, put_back, set_aside};
use super::stream::Stream;
use super::tell::Telling;
use crate::rescue::{Applier, Restore};
use crate::restore::course::Course;
use crate::restore::course::legs::Leg;
use crate::restore::target::Target;
use crate::restore::target::channel::{From, State};
use codec::gtid::{GtidSet, GtidState, TransactionId};
use codec::{Position, ServerKind};
use source::identify::SourceIdentity;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wire::WireError;

/// Between two looks at the target.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// So long the target may try to reach us.
const REACH_MAX: Duration = Duration::from_secs(30);

/// Where the target applies with one thread and nothing else is said.
const WORKERS: u32 = 4;

/// `server_id` that the target is lent: a server passes over what it made itself by its number, and a backup may run under the
/// source's.
const LENT_SERVER_ID: u32 = 4_090_000_000;

/// Asks what MySQL's threads that apply have failed with; a table of 5.7 and later.
const WORKERS_ERRORS: &str = "SELECT LAST_ERROR_MESSAGE FROM performance_schema.replication_applier_status_by_worker WHERE \
                              CHANNEL_NAME = 'binlogd_restore' AND LAST_ERROR_NUMBER <> 0";

/// Whether MySQL's threads commit in the order of the log, so that one position says how far they are.
const KEEP_ORDER: [&str; 2] = ["replica_preserve_commit_order", "slave_preserve_commit_order"];

/// See [the module](self).
pub(in crate::restore) struct ByChannel<'a> {
    pub(in crate::restore) telling: Telling<'a>,
    /// Whoever wants it ended raises this.
    pub(in crate::restore) is_over: &'a AtomicBool,
    pub(in crate::restore) leg: &'a Leg,
    /// What sends it.
    pub(in crate::restore) stream: &'a Stream,
    /// Our host as the target reaches it.
    pub(in crate::restore) host: &'a str,
    /// Threads that apply.
    pub(in crate::restore) workers: Option<u32>,
    /// Nothing comes behind it.
    pub(in crate::restore) is_last: bool,
}

impl ByChannel<'_> {
    fn course(&self) -> &Course {
        &self.leg.course
    }

    /// Goes to the end of the part, and detaches the target.
    ///
    /// # Errors
    /// Why it has ended early.
    pub(in crate::restore) fn run(
        &self,
        target: &mut Target,
        settings: &mut Restore,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), Ended> {
        if target.channel()?.is_none() {
            may_detach(target)?;
        }
        self.point_here(target)?;
        let outcome = self.attach(target, settings).and_then(|()| self.wait(target, progress));
        let (outcome, detached) = self.detach(target, outcome);
        let left = detached.and(put_back(target, settings)).err();
        match (outcome, left) {
            (outcome, None) => outcome,
            (outcome, Some(why)) => Err(Ended::Left {
                first: outcome.err().map(Box::new),
                why: Box::new(why),
                settings: settings.sql(),
            }),
        }
    }

    /// Ends its replication. Of a server without GTIDs the channel stays where something is left to do: it says how far it is.
    fn detach(
        &self,
        target: &mut Target,
        mut outcome: Result<(), Ended>,
    ) -> (Result<(), Ended>, Result<(), Ended>) {
        let words = target.words;
        if let Some(stretch) = &self.course().stretch {
            let applied = match target.stopped_at() {
                Ok(applied) => applied,
                Err(error) => return (outcome, Err(error)),
            };
            let limit = self.course().first_left_out.as_ref();
            outcome = match outcome {
                Ok(()) if applied.as_ref().is_some_and(|at| stretch.is_end(at, limit)) => Ok(()),
                Ok(()) => Err(Ended::Elsewhere { at: applied, wanted: stretch.end.clone() }),
                Err(Ended::ApplyAt { error, .. }) => Err(Ended::ApplyAt { at: applied, error }),
                Err(error) => Err(error),
            };
            if outcome.is_err() || !self.is_last {
                return (outcome, Ok(()));
            }
        }
        let detached = [words.stop(), words.reset()].iter().try_for_each(|sql| {
            target.connection.query(sql).map(drop).map_err(during("detaching the target"))
        });
        (outcome, detached)
    }

    fn point_here(&self, target: &mut Target) -> Result<(), Ended> {
        let from = From {
            host: self.host,
            port: self.stream.address().port(),
            user: self.stream.user(),
            password: self.stream.password(),
            is_encrypted: self.stream.is_encrypted(),
            at: self.course().stretch.as_ref().map(|stretch| &stretch.begin),
        };
        let sql = target.words.change(&from);
        target.connection.query(&sql).map(drop).map_err(during("pointing the target here"))
    }

    fn attach(&self, target: &mut Target, settings: &mut Restore) -> Result<(), Ended> {
        unfiltered(target)?;
        self.lend_server_id(target, settings)?;
        self.set_workers(target, settings)?;
        set_aside(target, settings, Applier::Channel)?;
        // What is not taken back comes when nothing can be refused any more for want of a right.
        self.telling.tell(target)?;
        let sql = target.words.start();
        target.connection.query(&sql).map(drop).map_err(during("starting its replication"))
    }

    fn lend_server_id(&self, target: &mut Target, settings: &mut Restore) -> Result<(), Ended> {
        let (own, taken) = (target.identity.server_id, &self.course().server_ids);
        let lent = (LENT_SERVER_ID..).find(|id| !taken.contains(id)).unwrap_or(LENT_SERVER_ID);
        change(target, settings, "server_id", &own.to_string(), &lent.to_string())
    }

    fn set_workers(&self, target: &mut Target, settings: &mut Restore) -> Result<(), Ended> {
        let asking = || during("asking how it applies");
        let name = target.words.workers();
        let now = target.variable(name).map_err(asking())?.unwrap_or_default();
        let wanted = match (self.workers, now.parse::<u32>()) {
            (Some(wanted), _) => Some(wanted),
            (None, Ok(0 | 1)) => Some(WORKERS),
            _ => None,
        };
        if let Some(wanted) = wanted {
            change(target, settings, name, &now, &wanted.to_string())?;
        }
        if self.course().stretch.is_some() {
            for name in KEEP_ORDER {
                if let Some(now) = target.variable(name).map_err(asking())? {
                    return change(target, settings, name, &now, "ON");
                }
            }
        }
        Ok(())
    }

    fn wait(&self, target: &mut Target, progress: &mut dyn FnMut(Progress)) -> Result<(), Ended> {
        let began = Instant::now();
        let (mut has_received, mut before) = (false, 0);
        let mut identity = target.identity.clone();
        loop {
            let state = target.channel()?.unwrap_or_default();
            let far = self.how_far(target, &state, &mut identity)?;
            progress(far.progress);
            if far.is_there {
                return Ok(());
            }
            if self.is_over.load(Ordering::Relaxed) {
                return Err(Ended::Interrupted(far.progress));
            }
            has_received |= state.receives == "Yes";
            if !state.apply_error.is_empty() {
                return Err(match self.course().stretch {
                    None => self.apply_error(target, &state, &identity),
                    Some(_) => Ended::ApplyAt { at: None, error: self.first_error(target, &state) },
                });
            }
            self.look(&state, has_received, began)?;
            // A server that is asked to tell the moment looks at each of its commits whether that is it. So it is asked for the last ones.
            let Progress { done, all } = far.progress;
            let is_near = all.saturating_sub(done) <= done.saturating_sub(before).saturating_mul(2);
            before = done;
            let lacking = far.lacking.filter(|_| is_near);
            match lacking.and_then(|lacking| target.words.wait(&lacking, LOOK_INTERVAL)) {
                Some(sql) => target.connection.query(&sql).map(drop).map_err(during("waiting for it"))?,
                None => std::thread::sleep(LOOK_INTERVAL),
            }
        }
    }

    fn how_far(
        &self,
        target: &mut Target,
        state: &State,
        identity: &mut SourceIdentity,
    ) -> Result<Far, Ended> {
        let course = self.course();
        if let Some(stretch) = &course.stretch {
            let (all, bytes) = (course.transactions, stretch.bytes());
            let applied = state.applied.as_ref().and_then(|at| stretch.bytes_to(at)).unwrap_or(0);
            let is_there = applied >= bytes;
            let done = if is_there { all } else { (all as f64 * applied as f64 / bytes as f64) as u64 };
            return Ok(Far { progress: Progress { done, all }, is_there, lacking: None });
        }
        identity.ask_executed(&mut target.connection).map_err(during("asking what it has"))?;
        let lacking = identity.lacks(&course.lacked);
        let done = course.transactions.saturating_sub(count(&lacking, identity, course));
        Ok(Far {
            progress: Progress { done, all: course.transactions },
            is_there: lacking.is_empty(),
            lacking: Some(lacking),
        })
    }

    /// What it could not apply. Of several threads each has an error, and only the first transaction's is a reason.
    fn apply_error(&self, target: &mut Target, state: &State, identity: &SourceIdentity) -> Ended {
        let first = workers_errors(target)
            .into_iter()
            .filter_map(|text| Some((failed(&text)?, text)))
            .min_by_key(|(id, _)| match id {
                TransactionId::Mysql(id) => id.gno,
                TransactionId::Mariadb(id) => id.sequence,
            });
        match first {
            Some((id, error)) => Ended::Apply { id: Some(id), error },
            None => {
                let id = failed(&state.apply_error).or_else(|| next(identity, self.course()));
                Ended::Apply { id, error: state.apply_error.clone() }
            }
        }
    }

    /// The same by positions: the error of the transaction that stands first in the log. The others waited for that.
    fn first_error(&self, target: &mut Target, state: &State) -> String {
        let stretch = self.course().stretch.as_ref();
        let place = |text: &str| stretch?.bytes_to(&failed_at(text)?);
        let first = workers_errors(target)
            .into_iter()
            .filter_map(|text| Some((place(&text)?, text)))
            .min_by_key(|(place, _)| *place);
        first.map_or_else(|| state.apply_error.clone(), |(_, text)| text)
    }

    fn look(&self, state: &State, has_received: bool, began: Instant) -> Result<(), Ended> {
        if state.receives == "No" && !state.receive_error.is_empty() {
            return Err(Ended::Receive(state.receive_error.clone()));
        }
        if !has_received && began.elapsed() > REACH_MAX {
            let address = format!("{}:{}", self.host, self.stream.address().port());
            return Err(Ended::NotReached { address, error: state.receive_error.clone() });
        }
        Ok(())
    }
}

/// Makes sure that our channel, which has not begun yet, passes over nothing. It may have the server's filters from its beginning: it
/// is told to have none, and where it has some all the same they are refused by name.
fn unfiltered(target: &mut Target) -> Result<(), Ended> {
    let asking = || during("asking what its replication passes over");
    for is_told in [false, true] {
        let rows = target.connection.query(target.words.status()).map_err(asking())?;
        let mut filters = target.words.filters(&rows);
        filters.retain(|(name, _)| !target.is_accepted(name));
        if filters.is_empty() {
            return Ok(());
        }
        if is_told {
            return Err(Ended::Filtered(filters));
        }
        for sql in target.words.unfilter(&filters) {
            // What a server does not let be changed is seen when it is asked again.
            match target.connection.query(&sql) {
                Ok(_) | Err(WireError::Server { .. } | WireError::AccessDenied { .. }) => {}
                Err(error) => return Err(asking()(error)),
            }
        }
    }
    Ok(())
}

/// How far the target is.
struct Far {
    progress: Progress,
    is_there: bool,
    /// What it lacks of the part; `None` where it goes by positions.
    lacking: Option<GtidState>,
}

/// How many transactions of the course the target lacks. MariaDB's positions tell of numbers, which may have holes, so there it is
/// about so many.
fn count(lacking: &GtidState, target: &SourceIdentity, course: &Course) -> u64 {
    match lacking {
        GtidState::Mysql(set) => set.len(),
        GtidState::Mariadb(state) => {
            let has = |domain| target.applied.positions().find(|at| at.domain == domain);
            let left = state
                .positions()
                .map(|last| last.sequence - has(last.domain).map_or(0, |at| at.sequence.min(last.sequence)));
            left.sum::<u64>().min(course.transactions)
        }
    }
}

/// What the threads that apply have failed with, where the server tells of each.
fn workers_errors(target: &mut Target) -> Vec<String> {
    let told = (target.identity.kind == ServerKind::MySql)
        .then(|| target.connection.query(WORKERS_ERRORS).ok())
        .flatten()
        .unwrap_or_default();
    (0..told.rows.len()).filter_map(|row| told.get(row, "LAST_ERROR_MESSAGE")).map(str::to_owned).collect()
}

/// The place that MySQL names in its error: `… at source log mysql-bin.000001, end_log_pos 1234; …`.
fn failed_at(error: &str) -> Option<Position> {
    let (head, rest) = error.split_once(", end_log_pos ")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some(Position::new(head.rsplit(' ').next()?, digits.parse().ok()?))
}

/// The GTID that MySQL names in its error: `… executing transaction 'UUID:N' at …`.
fn failed(error: &str) -> Option<TransactionId> {
    let (_, rest) = error.split_once("transaction '")?;
    let (text, _) = rest.split_once('\'')?;
    let set: GtidSet = text.parse().ok()?;
    let (uuid, tag, numbers) = set.iter().next()?;
    let gtid = codec::gtid::Gtid::new(uuid, tag, *numbers.start()).ok()?;
    Some(TransactionId::Mysql(gtid))
}

/// The transaction behind the last that was applied, where the target has one domain.
fn next(identity: &SourceIdentity, course: &Course) -> Option<TransactionId> {
    let GtidState::Mariadb(lacking) = identity.lacks(&course.lacked) else { return None };
    let mut domains = lacking.positions();
    let (first, second) = (domains.next()?, domains.next());
    if second.is_some() {
        return None;
    }
    let at = identity.applied.positions().find(|at| at.domain == first.domain)?;
    Some(TransactionId::Mariadb(codec::gtid::MariadbGtid { sequence: at.sequence + 1, ..first }))
}

/// Forgets our channel, which is not there yet, so that an account that may not do so is refused before the channel is made.
fn may_detach(target: &mut Target) -> Result<(), Ended> {
    match target.connection.query(&target.words.reset()) {
        Ok(_) | Err(WireError::Server { .. }) => Ok(()),
        Err(error) => Err(Ended::Wire("asking whether it can be detached again", error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transaction_that_failed_is_read_from_the_error() {
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        let error = format!(
            "Coordinator stopped because there were error(s) in the worker(s). The most recent failure being: Worker 1 failed \
             executing transaction '{uuid}:42' at source log mysql-bin.000001, end_log_pos 1234."
        );
        assert_eq!(failed(&error).unwrap().to_string(), format!("{uuid}:42"));
        assert_eq!(failed_at(&error), Some(Position::new("mysql-bin.000001", 1234)));
        let error = "at source log b.000002, end_log_pos 99; Could not execute Write_rows";
        assert_eq!(failed_at(error), Some(Position::new("b.000002", 99)));
        assert_eq!(failed("Error 'x' on query"), None);
        assert_eq!(failed("transaction 'ANONYMOUS' at"), None);
    }
}
