//! A restore from the first change of the target to the proof that it has what was asked for.

use super::channel::{CHANNEL, From, State};
use super::course::Course;
use super::stream::Stream;
use super::target::Target;
use crate::history::shortened;
use crate::rescue::{Restore, Setting};
use crate::upstream::identify::SourceIdentity;
use codec::ServerKind;
use codec::gtid::{GtidSet, GtidState, TransactionId};
use std::fmt;
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

/// What is to be done.
pub(crate) struct CarryOut<'a> {
    /// Where to.
    pub(crate) course: &'a Course,
    /// What sends it.
    pub(crate) stream: &'a Stream,
    /// Our host as the target reaches it.
    pub(crate) host: &'a str,
    /// What the target has and does not know, as it was said by hand; `None` where it knows.
    pub(crate) backup: Option<&'a GtidState>,
    /// These transactions are not applied, and count as if they were.
    pub(crate) skip: &'a [TransactionId],
    /// Threads that apply; `None` for the target's own number, or four where that is one.
    pub(crate) workers: Option<u32>,
    /// Whoever wants it ended raises this.
    pub(crate) is_over: &'a AtomicBool,
}

/// How far it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    /// Transactions that the target has by now.
    pub(crate) done: u64,
    /// Of so many.
    pub(crate) all: u64,
}

/// Why a restore has ended early. The target is as it was, with what it has applied so far; to do it again goes on there.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The target cannot be asked or changed.
    Wire(&'static str, WireError),
    /// Its settings could not be noted.
    Note(std::io::Error),
    /// It does not reach us.
    NotReached { address: String, error: String },
    /// It does not receive.
    Receive(String),
    /// It could not apply a transaction.
    Apply { id: Option<TransactionId>, error: String },
    /// Somebody wanted it ended.
    Interrupted(Progress),
    /// Only MySQL can be told that a transaction counts.
    SkipMariadb,
    /// What is to be passed over is not to be applied anyway.
    SkipOther(TransactionId),
    /// The target could not be put back as it was. Before that it had ended early, for `first`, or had everything.
    Left { first: Option<Box<Ended>>, why: Box<Ended>, settings: String },
    /// It is not what was asked for.
    Differs { more: GtidState, lacking: GtidState },
}

impl std::error::Error for Ended {}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Wire(during, error) => write!(f, "{during}: {error}"),
            Ended::Note(error) => write!(f, "what is changed on the target for the time being cannot be noted, so nothing was: {error}"),
            Ended::NotReached { address, error } => write!(
                f,
                "the target does not reach this machine at {address}: {error}. Let that port through, or name another address with \
                 --listen and --advertise"
            ),
            Ended::Receive(error) => write!(f, "the target cannot receive: {error}"),
            Ended::Apply { id: Some(id), error } => write!(
                f,
                "the target cannot apply {id}: {error}\nEverything before it is applied. Repair what it stumbles over and do this \
                 again; or leave it out, knowingly: --skip {id}"
            ),
            Ended::Apply { id: None, error } => write!(f, "the target cannot apply a transaction: {error}"),
            Ended::Interrupted(progress) => write!(
                f,
                "ended after about {} of {} transactions; the target is detached. The same command again goes on there",
                progress.done, progress.all
            ),
            Ended::SkipMariadb => f.write_str(
                "--skip is not possible on MariaDB, whose positions have no holes: apply up to the transaction (--until GTID), then \
                 SET GLOBAL gtid_slave_pos to it, and do this again",
            ),
            Ended::SkipOther(id) => write!(
                f,
                "--skip {id}: it is not one of those that are to be applied, so nothing was changed: the target has it, or it comes behind \
                 the point"
            ),
            Ended::Left { first, why, settings } => {
                match first {
                    Some(first) => writeln!(f, "{first}")?,
                    None => f.write_str("everything up to the point was applied.\n")?,
                }
                write!(f, "The target could not be put back as it was ({why}). The channel {CHANNEL} may be left on it")?;
                if !settings.is_empty() {
                    write!(f, ", and settings: {settings}")?;
                }
                f.write_str(". The same command again takes that back")
            }
            Ended::Differs { more, lacking } => {
                f.write_str("the target has not what was asked for:")?;
                if !more.is_empty() {
                    write!(f, " it has executed {} beside it: somebody else writes to it", shortened(&more.to_line()))?;
                }
                if !lacking.is_empty() {
                    write!(f, " it lacks {}", shortened(&lacking.to_line()))?;
                }
                Ok(())
            }
        }
    }
}

fn during(what: &'static str) -> impl FnOnce(WireError) -> Ended {
    move |error| Ended::Wire(what, error)
}

impl CarryOut<'_> {
    /// Takes back what an earlier restore of this server has left, if it was ended before it could.
    ///
    /// # Errors
    /// When the target does not let it.
    pub(crate) fn take_back(target: &mut Target, settings: &mut Restore) -> Result<bool, Ended> {
        let words = target.words;
        let rows = target.connection.query(words.status()).map_err(during("asking for its replication"))?;
        let is_left = words.state(&rows).is_some();
        if is_left {
            for sql in [words.stop(), words.reset()] {
                target.connection.query(&sql).map_err(during("taking back an earlier restore"))?;
            }
        }
        let had_settings = !settings.settings.is_empty();
        put_back(target, settings)?;
        Ok(is_left || had_settings)
    }

    /// Brings the target to the point. `progress` is told now and then.
    ///
    /// # Errors
    /// Why it has ended early. What was changed on the target for the time being is put back all the same, as far as it answers.
    pub(crate) fn run(
        &self,
        target: &mut Target,
        settings: &mut Restore,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<SourceIdentity, Ended> {
        if !self.skip.is_empty() && target.identity.kind == ServerKind::MariaDb {
            return Err(Ended::SkipMariadb);
        }
        // Else what is to be left out would count as executed.
        if let Some(other) = self.skip.iter().find(|id| !self.course.lacked.contains(id)) {
            return Err(Ended::SkipOther(*other));
        }
        may_detach(target)?;
        self.point_here(target)?;
        let outcome = self.attach(target, settings).and_then(|()| self.wait(target, progress));
        let words = target.words;
        let detached = [words.stop(), words.reset()].iter().try_for_each(|sql| {
            target.connection.query(sql).map(drop).map_err(during("detaching the target"))
        });
        let left = detached.and(put_back(target, settings)).err();
        match (outcome, left) {
            (Ok(()), None) => self.compare(target),
            (Err(first), None) => Err(first),
            (outcome, Some(why)) => Err(Ended::Left {
                first: outcome.err().map(Box::new),
                why: Box::new(why),
                settings: settings.sql(),
            }),
        }
    }

    fn point_here(&self, target: &mut Target) -> Result<(), Ended> {
        let from = From {
            host: self.host,
            port: self.stream.address().port(),
            user: self.stream.user(),
            password: self.stream.password(),
            is_encrypted: self.stream.is_encrypted(),
        };
        let sql = target.words.change(&from);
        target.connection.query(&sql).map(drop).map_err(during("pointing the target here"))
    }

    fn attach(&self, target: &mut Target, settings: &mut Restore) -> Result<(), Ended> {
        let words = target.words;
        self.lend_server_id(target, settings)?;
        self.set_workers(target, settings)?;
        // What is not taken back comes when nothing can be refused any more for want of a right.
        match self.backup {
            Some(backup) => tell(target, backup)?,
            None if target.identity.kind == ServerKind::MariaDb => self.set_slave_pos(target)?,
            None => {}
        }
        self.skip(target)?;
        target.connection.query(&words.start()).map(drop).map_err(during("starting its replication"))
    }

    /// What a server has in its own log and not as a replica, its replication does not go by.
    fn set_slave_pos(&self, target: &mut Target) -> Result<(), Ended> {
        let GtidState::Mariadb(executed) = &target.identity.executed else { return Ok(()) };
        if executed.position() == target.identity.applied.position() {
            return Ok(());
        }
        tell(target, &target.identity.executed.clone())
    }

    fn lend_server_id(&self, target: &mut Target, settings: &mut Restore) -> Result<(), Ended> {
        let (own, taken) = (target.identity.server_id, &self.course.server_ids);
        let lent = (LENT_SERVER_ID..).find(|id| !taken.contains(id)).unwrap_or(LENT_SERVER_ID);
        change(target, settings, "server_id", &own.to_string(), &lent.to_string())
    }

    fn set_workers(&self, target: &mut Target, settings: &mut Restore) -> Result<(), Ended> {
        let name = target.words.workers();
        let now = target.variable(name).map_err(during("asking how it applies"))?.unwrap_or_default();
        let wanted = match (self.workers, now.parse::<u32>()) {
            (Some(wanted), _) => wanted,
            (None, Ok(0 | 1)) => WORKERS,
            _ => return Ok(()),
        };
        change(target, settings, name, &now, &wanted.to_string())
    }

    /// A transaction that does nothing under that GTID: what counts as executed is passed over.
    fn skip(&self, target: &mut Target) -> Result<(), Ended> {
        for id in self.skip.iter().filter(|id| !target.identity.has(id)) {
            for sql in [&format!("SET gtid_next = '{id}'"), "BEGIN", "COMMIT", "SET gtid_next = 'AUTOMATIC'"]
            {
                target.connection.query(sql).map_err(during("passing over a transaction"))?;
            }
        }
        Ok(())
    }

    fn wait(&self, target: &mut Target, progress: &mut dyn FnMut(Progress)) -> Result<(), Ended> {
        let began = Instant::now();
        let mut has_received = false;
        loop {
            let identity =
                SourceIdentity::ask(&mut target.connection).map_err(during("asking what it has"))?;
            let lacking = identity.lacks(&self.course.lacked);
            let now = Progress {
                done: self.course.transactions.saturating_sub(count(&lacking, &identity, self.course)),
                all: self.course.transactions,
            };
            progress(now);
            if lacking.is_empty() {
                return Ok(());
            }
            if self.is_over.load(Ordering::Relaxed) {
                return Err(Ended::Interrupted(now));
            }
            let rows = target.connection.query(target.words.status());
            let state = rows.map(|rows| target.words.state(&rows)).map_err(during("asking how far it is"))?;
            let state = state.unwrap_or_default();
            has_received |= state.receives == "Yes";
            if !state.apply_error.is_empty() {
                return Err(self.apply_error(target, &state, &identity));
            }
            self.look(&state, has_received, began)?;
            match target.words.wait(&lacking, LOOK_INTERVAL) {
                Some(sql) => target.connection.query(&sql).map(drop).map_err(during("waiting for it"))?,
                None => std::thread::sleep(LOOK_INTERVAL),
            }
        }
    }

    /// What it could not apply. Of several threads each has an error, and only the first transaction's is a reason.
    fn apply_error(&self, target: &mut Target, state: &State, identity: &SourceIdentity) -> Ended {
        let told = (target.identity.kind == ServerKind::MySql)
            .then(|| target.connection.query(WORKERS_ERRORS).ok())
            .flatten()
            .unwrap_or_default();
        let errors = (0..told.rows.len()).filter_map(|row| told.get(row, "LAST_ERROR_MESSAGE"));
        let first =
            errors.filter_map(|text| Some((failed(text)?, text.to_owned()))).min_by_key(|(id, _)| match id {
                TransactionId::Mysql(id) => id.gno,
                TransactionId::Mariadb(id) => id.sequence,
            });
        match first {
            Some((id, error)) => Ended::Apply { id: Some(id), error },
            None => {
                let id = failed(&state.apply_error).or_else(|| next(identity, self.course));
                Ended::Apply { id, error: state.apply_error.clone() }
            }
        }
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

    /// It has executed what it had and what was wanted, and nothing else.
    fn compare(&self, target: &mut Target) -> Result<SourceIdentity, Ended> {
        let after =
            SourceIdentity::ask(&mut target.connection).map_err(during("asking what it has in the end"))?;
        let lacking = after.lacks(&self.course.at_the_point);
        let more = after.executed.subtract(&self.course.at_the_point);
        if lacking.is_empty() && more.is_empty() { Ok(after) } else { Err(Ended::Differs { more, lacking }) }
    }
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

/// Tells the target what it has executed.
fn tell(target: &mut Target, executed: &GtidState) -> Result<(), Ended> {
    let name = match executed.kind() {
        ServerKind::MySql => "gtid_purged",
        ServerKind::MariaDb => "gtid_slave_pos",
    };
    let sql = format!("SET GLOBAL {name} = '{}'", executed.to_line());
    target.connection.query(&sql).map(drop).map_err(during("telling it what it has executed"))
}

fn change(
    target: &mut Target,
    settings: &mut Restore,
    name: &str,
    was: &str,
    held: &str,
) -> Result<(), Ended> {
    if was == held {
        return Ok(());
    }
    // On disk before it is changed, so that it is put back even after a kill.
    settings
        .note(Setting { name: name.to_owned(), was: was.to_owned(), held: held.to_owned() })
        .map_err(Ended::Note)?;
    let sql = format!("SET GLOBAL {name} = {held}");
    target.connection.query(&sql).map(drop).map_err(during("changing a setting for the time being"))
}

fn put_back(target: &mut Target, settings: &mut Restore) -> Result<(), Ended> {
    for setting in settings.settings.iter().rev() {
        target.connection.query(&setting.sql()).map_err(during("putting its settings back"))?;
    }
    settings.done().map_err(Ended::Note)
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
        assert_eq!(failed("Error 'x' on query"), None);
        assert_eq!(failed("transaction 'ANONYMOUS' at"), None);
    }

    #[test]
    fn a_target_that_is_not_as_it_was_is_said_behind_what_ended_it() {
        let why = || Box::new(Ended::Interrupted(Progress { done: 1, all: 2 }));
        let of = |first, settings: &str| {
            Ended::Left { first, why: why(), settings: settings.to_owned() }.to_string()
        };
        let lines = of(None, "SET GLOBAL x = 1");
        assert!(lines.starts_with("everything up to the point was applied.\n"), "{lines}");
        assert!(
            lines.contains("and settings: SET GLOBAL x = 1. The same command again takes that back"),
            "{lines}"
        );
        let lines = of(Some(Box::new(Ended::SkipMariadb)), "");
        assert!(lines.starts_with("--skip is not possible on MariaDB"), "{lines}");
        assert!(!lines.contains("settings:"), "{lines}");
    }
}
