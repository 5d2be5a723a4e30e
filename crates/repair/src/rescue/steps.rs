//! A rescue, step by step: look, check, send. Between them whoever asks for it shows what was found, and decides.

use super::compare::Scope;
use super::found::Found;
use super::guard::{BEFORE, Guard};
use super::no_rescue::NoRescue;
use super::plan::Plan;
use super::target::Target;
use crate::hear::{Event, Hear};
use crate::history::shortened;
use crate::rescue::compare::compared::Compared;
use crate::rescue::hold::restore::Restore;
use crate::rescue::plan::kinship::Kinship;
use crate::rescue::plan::left_out::LeftOut;
use binlog::folder::timelines;
use binlog::purge::lock::PurgeLock;
use binlog::storage::posix::PosixStorage;
use binlog::timeline::Timeline;
use binlog::timeline::held::HeldGtids;
use codec::gtid::GtidState;
use config::HostPort;
use std::path::Path;
use wire::ConnectOptions;

/// From so many transactions on it matters how fast they are.
const SLOW_FROM: usize = 2_000;

const SLOW: &str = "the target waits for its disk at each commit (sync_binlog, innodb_flush_log_at_trx_commit = 1), one after the \
                    other. A server that you would restore after a crash of its machine meanwhile can be told not to: SET GLOBAL \
                    sync_binlog = 0, innodb_flush_log_at_trx_commit = 2; and afterwards back to 1, then FLUSH BINARY LOGS; FLUSH \
                    ENGINE LOGS;";

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Name of the source.
    pub name: &'a str,
    /// Folder of its copy. Until the end nobody else may begin to write it: the caller holds it, or a daemon does.
    pub folder: &'a Path,
    /// The server to complete.
    pub to: &'a ConnectOptions,
    /// How much of what it has already is compared with the copy. `None`: GTIDs are believed, also of what is handed over.
    pub scope: Option<Scope>,
    /// Go on although others can write to it.
    pub allow_writers: bool,
    /// GTIDs that are not handed over.
    pub leave_out: &'a [String],
    /// Go on although it shares no transaction with the copy, or is empty.
    pub unrelated: bool,
    /// Settings of it that stay as they are, although they change what is made of what is handed over.
    pub accept: &'a [String],
    /// Nothing is sent or changed.
    pub dry_run: bool,
    /// It is decided already that everything is sent.
    pub yes: bool,
}

/// What comes after the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The target lacks nothing that can be handed over.
    Nothing,
    /// [`Rescue::send`] would hand over what was found.
    Send,
}

/// A rescue under way.
pub struct Rescue<'a> {
    request: Request<'a>,
    guard: Guard<'a>,
    target: Target,
    held: HeldGtids,
    restore: Restore,
    found: Found,
    /// What is read for the plan is read again when it is sent.
    _files_stay: PurgeLock,
}

impl<'a> Rescue<'a> {
    /// Finds out what the target lacks. `peers` is asked, for what the target has executed, what other binlogds of the source alone
    /// hold: a sentence each. With `yes` and without `dry_run` other rescues of the target are kept out from here on.
    ///
    /// # Errors
    /// [`NoRescue`].
    pub fn look(
        request: Request<'a>,
        peers: impl FnOnce(&GtidState) -> Result<Vec<String>, String>,
        hear: &mut Hear<'_>,
    ) -> Result<Rescue<'a>, NoRescue> {
        let Request { name, folder, to, .. } = request;
        let files_stay = PurgeLock::take(&PosixStorage, folder)?;
        let newest = timelines(&PosixStorage, folder)?.pop();
        let newest = newest.ok_or_else(|| NoRescue::Empty(name.to_owned()))?;
        let kind = Timeline::read(&PosixStorage, &newest)?.server_kind;
        let host = HostPort { host: to.host.clone(), port: to.port }.to_string();
        let told = |error: String| NoRescue::Target { host: host.clone(), error };
        let mut target = Target::connect(to, kind).map_err(|error| told(error.to_string()))?;
        let held = HeldGtids::read(&PosixStorage, folder, kind)?;
        let held = held.ok_or_else(|| NoRescue::Empty(name.to_owned()))?;
        let left_out = LeftOut::parse(kind, request.leave_out).map_err(NoRescue::LeaveOut)?;
        if !request.unrelated {
            is_related(name, &host, &held, &target)?;
        }
        if request.yes && !request.dry_run {
            target.take().map_err(|error| told(error.to_string()))?;
        }
        let guard = Guard {
            options: to,
            host: host.clone(),
            scope: request.scope,
            allow_writers: request.allow_writers,
        };
        let restore = guard.leftovers(folder, &target.identity, hear)?;
        let read = |path: &Path| hear(Event::Reading(path));
        let plan = Plan::make(folder, &held, &target.identity, &left_out, read);
        let plan = plan.map_err(|error| NoRescue::Copy(error.to_string()))?;
        // Not before the copy was read: what arrives meanwhile is in it.
        let peers = peers(&target.identity.executed).map_err(NoRescue::Peers)?;
        let version = target.identity.version.clone();
        let found =
            Found { name: name.to_owned(), host, version, plan, peers, compared: Compared::default() };
        Ok(Rescue { request, guard, target, held, restore, found, _files_stay: files_stay })
    }

    /// What was found up to now.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Makes sure that everything that was found can be handed over, and compares what is there already. A dry run is refused what the
    /// real one would be refused. With nothing to be sent, what an earlier rescue has left on the target is put back.
    ///
    /// # Errors
    /// [`NoRescue`]. Where what is there differs, and it was decided to send, the target is closed to others, who would take the
    /// GTIDs that it lacks.
    pub fn check(&mut self, hear: &mut Hear<'_>) -> Result<Next, NoRescue> {
        let Rescue { request, guard, target, held, restore, found, .. } = self;
        let host = guard.host.clone();
        let told = |error: String| NoRescue::Target { host: host.clone(), error };
        if !found.plan.refused.is_empty() {
            return Err(NoRescue::Refused(found.refusal()));
        }
        let sends = !found.plan.transactions.is_empty();
        if sends {
            target
                .may_hand_over()
                .and_then(|()| target.applies_as_written(request.accept))
                .map_err(|error| told(error.to_string()))?;
        }
        if !request.yes {
            guard.warn_if_open(target, &found.plan, hear)?;
        }
        let source = (&PosixStorage as _, request.folder);
        let what_now = (sends, BEFORE);
        let same = guard.compare_before(source, held, &target.identity, what_now, &mut found.compared, hear);
        if let Err(error) = same {
            if !sends || !request.yes || request.dry_run {
                return Err(error);
            }
            let text = guard.close(target, restore, &found.plan, error.to_string(), hear);
            return Err(NoRescue::Different(text));
        }
        if !sends {
            if !request.dry_run {
                guard.put_back(target, restore, hear).map_err(NoRescue::Unfinished)?;
            }
            return Ok(Next::Nothing);
        }
        target
            .check(&found.plan)
            .and_then(|()| target.is_acknowledged())
            .map_err(|error| told(error.to_string()))?;
        if request.dry_run {
            guard.look_for_writers(target, &found.plan, hear)?;
        }
        Ok(Next::Send)
    }

    /// Holds others off, hands everything over, compares each transaction with what the target has logged, and lets others in again.
    /// Gives how it was verified, in words.
    ///
    /// # Errors
    /// [`NoRescue`]. All of it can be repeated.
    pub fn send(&mut self, hear: &mut Hear<'_>) -> Result<String, NoRescue> {
        let Rescue { guard, target, restore, found, .. } = self;
        if found.plan.transactions.len() > SLOW_FROM && target.syncs_each_commit().unwrap_or(false) {
            hear(Event::Note(SLOW));
        }
        guard.hand_over(target, restore, &found.plan, hear)
    }
}

/// Who shares nothing with the copy is another server, or one that needs a backup first.
fn is_related(name: &str, host: &str, held: &HeldGtids, target: &Target) -> Result<(), NoRescue> {
    let (name, host, all) = (name.to_owned(), host.to_owned(), held.all());
    match Kinship::of(&target.identity, &all) {
        Kinship::Related => Ok(()),
        Kinship::Empty => Err(NoRescue::NothingThere { host, name }),
        Kinship::Stranger => {
            let executed = shortened(&target.identity.executed.to_line());
            Err(NoRescue::Stranger { host, name, executed, held: shortened(&all.to_line()) })
        }
    }
}
