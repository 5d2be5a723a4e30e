//! Holding others off the target while transactions are handed over, and letting them in again.

#![allow(clippy::disallowed_methods, reason = "waits for a real server")]

pub(in crate::rescue) mod hold_error;
pub(in crate::rescue) mod meanwhile;
pub(in crate::rescue) mod restore;
pub(in crate::rescue) mod writers;

use super::applier::{Applier, Deviation, Remedy, deviations, refusal};
use super::plan::Plan;
use super::target::Target;
use crate::rescue::hold::hold_error::HoldError;
use crate::rescue::hold::restore::{Restore, Setting};
use crate::rescue::hold::writers::{Watch, Writer};
use binlog::forks::transactions::TransactionReader;
use binlog::storage::posix::PosixStorage;
use codec::event::{EventType, query_text};
use source::identify::SourceIdentity;
use source::own_session::{Purpose, prepare};
use std::io;
use std::time::{Duration, Instant};
use wire::WireError;

/// How long events that run, and sessions that are just ending, are waited for.
const EVENTS_MAX: Duration = Duration::from_secs(30);
const SESSIONS_MAX: Duration = Duration::from_secs(3);
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// `ER_LOCK_WAIT_TIMEOUT`.
const LOCK_WAIT_TIMEOUT: u16 = 1205;

/// Seconds that SET GLOBAL read_only waits for the commits and locks of others.
const LOCK_WAIT_SECONDS: u32 = 25;
/// Longer transactions than this do not only end an XA transaction, in bytes.
const XA_END_BYTES_MAX: u64 = 4096;
/// So many events are named.
const EVENTS_SHOWN_MAX: usize = 5;
const CLIENTS: &str = "clients, because read_only is OFF";
impl Target {
    /// Looks at everything that can write to the target, switches the event scheduler off and `read_only` on until
    /// [`put_back`](Self::put_back), and waits until no event runs. What cannot be held off is refused by name, or told to `say`
    /// with `allow_writers`. When it fails, everything is as it was.
    ///
    /// # Errors
    /// [`HoldError`].
    pub fn hold_off(
        &mut self,
        restore: &mut Restore,
        plan: &Plan,
        allow_writers: bool,
        say: &mut dyn FnMut(String),
    ) -> Result<(), HoldError> {
        self.may_hand_over()?;
        self.lock()?;
        self.refuse_what_came_meanwhile(plan)?;
        self.hold_off_or_leave(restore, plan, allow_writers, say)
    }

    /// As [`hold_off`](Self::hold_off) with `allow_writers`, where nothing will be sent: what was taken meanwhile is one reason more.
    ///
    /// # Errors
    /// [`HoldError`].
    pub fn close(
        &mut self,
        restore: &mut Restore,
        plan: &Plan,
        say: &mut dyn FnMut(String),
    ) -> Result<(), HoldError> {
        self.may_hand_over()?;
        self.lock()?;
        self.hold_off_or_leave(restore, plan, true, say)
    }

    fn hold_off_or_leave(
        &mut self,
        restore: &mut Restore,
        plan: &Plan,
        allow_writers: bool,
        say: &mut dyn FnMut(String),
    ) -> Result<(), HoldError> {
        let earlier = restore.settings.len();
        let held = self.try_hold_off(restore, plan, allow_writers, say);
        if held.is_err() {
            // The reason for the failure matters more; what could not be put back is still noted. What an earlier rescue has set
            // stays: it was stopped in the midst.
            let _ = self.put_back_from(restore, earlier);
        }
        held
    }

    /// Between the plan and now somebody thought about a question, or another rescue had the lock.
    fn refuse_what_came_meanwhile(&mut self, plan: &Plan) -> Result<(), HoldError> {
        let now = SourceIdentity::ask(&mut self.connection)?;
        let came = plan.transactions.iter().map(|lacked| lacked.id).find(|id| now.has(id));
        came.map_or(Ok(()), |id| Err(HoldError::Meanwhile(id)))
    }

    /// What writes to the target as long as nothing holds it off; as far as the account may see it.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn is_open_to(&mut self) -> Result<Vec<Writer>, WireError> {
        let mut open = Vec::new();
        if self.is_open()? {
            open.push(Writer { what: CLIENTS.into(), stop: "SET GLOBAL read_only = ON;".into() });
        }
        let mut watch = self.watch();
        if watch.runs_events()? {
            let events = watch.enabled_events()?;
            let what =
                format!("the event scheduler, with {} enabled events: {}", events.len(), some_of(&events));
            if !events.is_empty() {
                open.push(Writer { what, stop: "SET GLOBAL event_scheduler = OFF;".into() });
            }
        }
        Ok(open)
    }

    /// Makes sure that the account may act as an applier of replicated transactions.
    ///
    /// # Errors
    /// [`HoldError::MayNot`].
    pub fn may_hand_over(&mut self) -> Result<(), HoldError> {
        prepare(&mut self.connection, Purpose::Applier).map_err(HoldError::MayNot)
    }

    /// Who could not be held off. Changes nothing.
    ///
    /// # Errors
    /// [`HoldError::Writers`] as [`hold_off`](Self::hold_off) would say it; or when the target or the copy cannot be asked.
    pub fn look_for_writers(&mut self, plan: &Plan) -> Result<(), HoldError> {
        let mut writers = self.lasting_writers(plan)?;
        if self.is_open()? {
            writers.extend(self.open_for_good()?);
        }
        writers.extend(self.lasting_sessions()?);
        if writers.is_empty() { Ok(()) } else { Err(HoldError::Writers(writers)) }
    }

    /// Replication, and XA transactions that nothing of the plan ends.
    fn lasting_writers(&mut self, plan: &Plan) -> Result<Vec<Writer>, HoldError> {
        let mut watch = self.watch();
        let mut writers = watch.replication()?;
        let prepared = watch.prepared()?;
        if !prepared.is_empty() {
            // One that an earlier rescue has handed over is ended by a transaction that is to come.
            let ends = xa_ends(plan)?;
            let lasting = |name: &str| name.is_empty() || !ends.iter().any(|end| end.contains(name));
            writers.extend(prepared.into_iter().filter(|(name, _)| lasting(name)).map(|(_, writer)| writer));
        }
        Ok(writers)
    }

    fn try_hold_off(
        &mut self,
        restore: &mut Restore,
        plan: &Plan,
        allow_writers: bool,
        say: &mut dyn FnMut(String),
    ) -> Result<(), HoldError> {
        // First what no setting stops, so that nothing is changed for nothing.
        let mut writers = self.lasting_writers(plan)?;
        if !writers.is_empty() && !allow_writers {
            writers.extend(self.open_for_good()?);
            writers.extend(self.lasting_sessions()?);
            return Err(HoldError::Writers(writers));
        }
        writers.extend(self.close_to_clients(restore, say)?);
        writers.extend(self.stop_events(restore, say)?);
        writers.extend(self.set_aside(restore, say)?);
        writers.extend(self.lasting_sessions()?);
        if writers.is_empty() {
            return Ok(());
        }
        if !allow_writers {
            return Err(HoldError::Writers(writers));
        }
        for writer in &writers {
            say(format!("going on in spite of {}", writer.what));
        }
        Ok(())
    }

    /// `read_only` keeps everybody out who has no right to write in spite of it. `super_read_only` would keep us out too.
    fn close_to_clients(
        &mut self,
        restore: &mut Restore,
        say: &mut dyn FnMut(String),
    ) -> Result<Vec<Writer>, HoldError> {
        if !self.is_open()? {
            return Ok(Vec::new());
        }
        if let Some(writer) = self.open_for_good()? {
            return Ok(vec![writer]);
        }
        self.set(restore, "read_only", "OFF", "ON", CLIENTS.into(), say, "so that no client writes")
    }

    fn is_open(&mut self) -> Result<bool, WireError> {
        Ok(self.watch().variable("read_only")?.is_some_and(|value| value == "OFF" || value == "0"))
    }

    /// Clients that `read_only` cannot keep out, because it would keep the rescue out too.
    fn open_for_good(&mut self) -> Result<Option<Writer>, WireError> {
        if !self.is_open()? || self.watch().may_write_read_only()? {
            return Ok(None);
        }
        let stop = "SET GLOBAL read_only = ON; and give the account the right to write in spite of it: CONNECTION_ADMIN (MariaDB: \
                    READ_ONLY ADMIN)";
        Ok(Some(Writer { what: CLIENTS.into(), stop: stop.into() }))
    }

    fn stop_events(
        &mut self,
        restore: &mut Restore,
        say: &mut dyn FnMut(String),
    ) -> Result<Vec<Writer>, HoldError> {
        let mut watch = self.watch();
        let mut writers = Vec::new();
        if watch.runs_events()? {
            let events = watch.enabled_events()?;
            let names = some_of(&events);
            let why = match events.len() {
                0 => "so that no event that is handed over runs meanwhile".to_owned(),
                count => format!("so that no event runs meanwhile; {count} enabled: {names}"),
            };
            let what = format!("the event scheduler ({} enabled events: {names})", events.len());
            writers.extend(self.set(restore, "event_scheduler", "ON", "OFF", what, say, &why)?);
        }
        let (deadline, mut is_told) = (Instant::now() + EVENTS_MAX, false);
        loop {
            let running = self.watch().running_events()?;
            if running.is_empty() || Instant::now() >= deadline {
                writers.extend(running);
                return Ok(writers);
            }
            if !std::mem::replace(&mut is_told, true) {
                running.iter().for_each(|event| say(format!("waiting for its end: {}", event.what)));
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Makes sure that no setting of the target is refused by name.
    ///
    /// # Errors
    /// [`HoldError::Settings`].
    pub fn applies_as_written(&mut self, accepted: &[String]) -> Result<(), HoldError> {
        accepted.clone_into(&mut self.accepted);
        refusal(&self.deviations()?).map_or(Ok(()), |refusal| Err(HoldError::Settings(refusal)))
    }

    fn deviations(&mut self) -> Result<Vec<Deviation>, WireError> {
        deviations(&mut self.connection, self.identity.kind, Applier::Statements, &self.accepted)
    }

    /// What would change what is handed over. The event scheduler is held already.
    fn set_aside(
        &mut self,
        restore: &mut Restore,
        say: &mut dyn FnMut(String),
    ) -> Result<Vec<Writer>, HoldError> {
        let mut left = Vec::new();
        for deviation in self.deviations()?.iter().filter(|one| one.setting.remedy == Remedy::SetAside) {
            let (was, held, why) = (deviation.was(), deviation.harmless(), deviation.setting.does);
            left.extend(self.set(restore, deviation.name, &was, &held, deviation.to_string(), say, why)?);
        }
        Ok(left)
    }

    /// Sessions that may write, without those that are ending anyway.
    fn lasting_sessions(&mut self) -> Result<Vec<Writer>, WireError> {
        let deadline = Instant::now() + SESSIONS_MAX;
        loop {
            let found = self.watch().sessions()?;
            if found.is_empty() || Instant::now() >= deadline {
                return Ok(found);
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Notes a setting durably, then changes it. A server that refuses leaves the writer as it is.
    #[expect(clippy::too_many_arguments, reason = "two callers, each with all of it at hand")]
    fn set(
        &mut self,
        restore: &mut Restore,
        name: &str,
        was: &str,
        held: &str,
        what: String,
        say: &mut dyn FnMut(String),
        why: &str,
    ) -> Result<Vec<Writer>, HoldError> {
        let setting = Setting { name: name.into(), was: was.into(), held: held.into() };
        let is_new = !restore.settings.iter().any(|noted| noted.name == name);
        restore.note(setting)?;
        self.connection.query(&format!("SET @@session.lock_wait_timeout = {LOCK_WAIT_SECONDS}"))?;
        let changed = self.connection.query(&format!("SET GLOBAL {name} = {held}"));
        self.connection.query("SET @@session.lock_wait_timeout = 31536000")?;
        match changed {
            Ok(_) => {
                say(format!("{name} = {held} on the target until all is handed over, {why}; it was {was}"));
                Ok(Vec::new())
            }
            Err(error @ (WireError::Server { .. } | WireError::AccessDenied { .. })) => {
                if is_new {
                    restore.forget(name)?;
                }
                // By hand it would wait as long, and without a limit.
                let stop = match error {
                    WireError::Server { code: LOCK_WAIT_TIMEOUT, .. } => format!(
                        "Commits or locks of others keep {name} = {held} from taking effect. Where commits wait for an \
                         acknowledgement that binlogd withholds, go on with --allow-writers: they end when what is handed over \
                         is acknowledged."
                    ),
                    _ => format!("SET GLOBAL {name} = {held};"),
                };
                Ok(vec![Writer { what: format!("{what}: {error}"), stop }])
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Puts back what this rescue, or an earlier one that was killed, has set, where it still is as that had set it. Returns what
    /// was put back.
    ///
    /// # Errors
    /// When the target refuses; what is left to do stays noted.
    pub fn put_back(&mut self, restore: &mut Restore) -> Result<Vec<Setting>, HoldError> {
        self.put_back_from(restore, 0)
    }

    fn put_back_from(&mut self, restore: &mut Restore, first: usize) -> Result<Vec<Setting>, HoldError> {
        let mut done = Vec::new();
        for setting in restore.settings.clone().into_iter().skip(first).rev() {
            let is = self.watch().variable(&setting.name)?;
            let is_held = setting.is_held(is.as_deref());
            if is_held {
                self.connection.query(&setting.sql())?;
            }
            restore.forget(&setting.name)?;
            done.extend(is_held.then_some(setting));
        }
        Ok(done)
    }

    fn watch(&mut self) -> Watch<'_> {
        Watch { kind: self.identity.kind, connection: &mut self.connection }
    }
}

fn some_of(events: &[String]) -> String {
    let (shown, more) = (events.len().min(EVENTS_SHOWN_MAX), events.len() > EVENTS_SHOWN_MAX);
    format!("{}{}", events[..shown].join(", "), if more { ", …" } else { "" })
}

/// Texts of the statements that end prepared XA transactions in what is to be handed over.
fn xa_ends(plan: &Plan) -> io::Result<Vec<String>> {
    let mut ends = Vec::new();
    for lacked in plan.transactions.iter().filter(|lacked| lacked.size() <= XA_END_BYTES_MAX) {
        if !lacked.changes.is_empty() && !lacked.changes.iter().any(|change| change.starts_with("XA ")) {
            continue;
        }
        let mut reader = TransactionReader::open(&PosixStorage, &lacked.path)?;
        reader.seek(lacked.at)?;
        // Where the transaction stood a moment ago there is one. If not, what is prepared counts as somebody else's.
        for event in reader.next(|_| true)?.map(|transaction| transaction.events).unwrap_or_default() {
            if event.header.event_type == EventType::QUERY
                && let Some(text) = query_text(&event.bytes)
                && (text.starts_with(b"XA COMMIT") || text.starts_with(b"XA ROLLBACK"))
            {
                ends.push(String::from_utf8_lossy(text).into_owned());
            }
        }
    }
    Ok(ends)
}
