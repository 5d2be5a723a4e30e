//! Asks a server for the place at which the copy ends.

use crate::doctor::logs::Continuation;
use binlog::Position;
use binlog::folder::timelines;
use binlog::scan::scan_file;
use binlog::storage::posix::PosixStorage;
use binlog::timeline::Timeline;
use binlog::timeline::held::HeldGtids;
use binlog::timeline::offline::resume_point;
use codec::ServerKind;
use codec::event::FormatDescription;
use codec::gtid::GtidState;
use codec::packet::ErrPacket;
use config::HostPort;
use source::clock::SystemClock;
use source::complaint::{Complaint, ER_FATAL_READING_BINLOG};
use source::identify::SourceIdentity;
use source::link::{End, Link, link};
use source::look::{Look, Waits, look};
use source::negotiate::{ask_for_events_as_they_are, look_request};
use source::stop::StopSignal;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;
use wire::{Connection, WireError};

/// So much of the transaction behind the copy's end is read, in bytes, to see whether the server can.
const AHEAD_BYTES: u64 = 64 * 1024 * 1024;

/// A server that can be connected to, and who it is.
pub(super) struct Server<'a> {
    /// For messages.
    pub(super) host: &'a HostPort,
    /// What it said of itself.
    pub(super) identity: &'a SourceIdentity,
    /// Longest time for one look.
    pub(super) timeout: Duration,
    /// Connects once more: a look uses a connection up.
    pub(super) connect: &'a dyn Fn() -> Result<Connection, WireError>,
}

impl Server<'_> {
    fn look(&self, file: &str, offset: u64) -> Result<Look, WireError> {
        let mut connection = (self.connect)()?;
        ask_for_events_as_they_are(&mut connection, self.identity)?;
        // Not binlogd's own server_id: a source would end the dump of a daemon that runs.
        let waits = Waits { stop: &StopSignal::new(), clock: &SystemClock, pulse: None };
        look(connection, self.identity, &look_request(any_server_id(), file, offset), self.timeout, waits)
    }

    /// What it says in place of the first transaction behind the copy's end.
    fn refusal(&self, at: &Position) -> Result<Option<ErrPacket>, WireError> {
        if u32::try_from(at.offset).is_err() {
            return Ok(None); // It would send the file from its beginning.
        }
        let mut connection = (self.connect)()?;
        ask_for_events_as_they_are(&mut connection, self.identity)?;
        let request = look_request(any_server_id(), &at.file, at.offset);
        let end = End { at: at.clone(), format: None, tail: &[], ahead: AHEAD_BYTES };
        let waits = Waits { stop: &StopSignal::new(), clock: &SystemClock, pulse: None };
        match link(connection, self.identity, &request, &end, self.timeout, waits) {
            Ok(Link::Refused(complaint)) => Ok(Some(*complaint)),
            Err(WireError::Server { code, sqlstate, message }) => {
                Ok(Some(ErrPacket { code, sqlstate, message }))
            }
            Ok(_) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Holds the copy below `folder` against the server's logs. `None` when there is nothing to compare, or when the account
/// may not read logs, which is told with its privileges.
pub(super) fn continuation(
    folder: &Path,
    held: Option<&HeldGtids>,
    server: &Server<'_>,
) -> io::Result<Option<Continuation>> {
    let Some(newest) = timelines(&PosixStorage, folder)?.pop() else { return Ok(None) };
    let info = Timeline::read(&PosixStorage, &newest)?;
    let Some(point) = resume_point(&PosixStorage, &newest)? else { return Ok(None) };
    let (file, end) = (&*point.position.file, point.position.to_string());
    if info.server_uuid != server.identity.uuid {
        return Ok(held.and_then(|held| after_a_change(held, server)));
    }
    let found = match server.look(file, point.position.offset) {
        Ok(look) => {
            let ours = scan_file(&File::open(newest.join(file))?, FormatDescription::END_MAX, |_| {})?.format;
            match ours.is_none_or(|ours| ours.is_same_file(&look.format)) {
                true => match server.refusal(&point.position) {
                    Ok(None) => Continuation::GoesOn,
                    Ok(Some(complaint)) => refused(end, complaint.message),
                    Err(error) => Continuation::Unknown(format!("{}: {error}", server.host)),
                },
                false => Continuation::Anew { file: file.to_owned() },
            }
        }
        Err(WireError::AccessDenied { .. }) => return Ok(None),
        Err(WireError::Server { code: ER_FATAL_READING_BINLOG, message, .. }) => {
            let lost = || Continuation::LostItsEnd {
                end: end.clone(),
                lacked: held.map(|held| server.identity.lacks(&held.all())).unwrap_or_default(),
            };
            match Complaint::of(&message) {
                Complaint::NoBinlog => return Ok(None), // Told with log_bin.
                Complaint::PastTheEnd => lost(),
                Complaint::FileNotFound | Complaint::Purged => match server.look("", 4) {
                    Ok(oldest) => match oldest.begins_behind(file) {
                        Ok(true) => {
                            let purged = purged(server, oldest.gtids_before);
                            let missing = held.map(|held| purged.subtract(&held.all())).unwrap_or_default();
                            Continuation::Gap { needed: end, oldest: oldest.file, missing }
                        }
                        Ok(false) => lost(),
                        Err(error) => Continuation::Unknown(error.to_string()),
                    },
                    Err(error) => Continuation::Unknown(format!("{}: {error}", server.host)),
                },
                _ => Continuation::Unknown(format!("{}: {message}", server.host)),
            }
        }
        Err(error) => Continuation::Unknown(format!("{}: {error}", server.host)),
    };
    Ok(Some(found))
}

/// The server has the end of the copy, and does not send what follows.
fn refused(end: String, message: String) -> Continuation {
    match Complaint::of(&message) {
        Complaint::Anonymous => Continuation::Anonymous { end },
        Complaint::Unreadable | Complaint::ReadFailed => Continuation::Unreadable { end, message },
        _ => Continuation::Unknown(message),
    }
}

/// Another server than that of the newest timeline goes on by GTID: what it purged must be held.
fn after_a_change(held: &HeldGtids, server: &Server<'_>) -> Option<Continuation> {
    let history = held.all();
    if !server.identity.has_gtids || history.is_empty() || history.kind() != server.identity.executed.kind() {
        return None;
    }
    let oldest = match server.look("", 4) {
        Ok(oldest) => oldest,
        Err(WireError::AccessDenied { .. }) => return None,
        Err(error) => return Some(Continuation::Unknown(format!("{}: {error}", server.host))),
    };
    let missing = purged(server, oldest.gtids_before).subtract(&history);
    Some(match missing.is_empty() {
        true => Continuation::GoesOn,
        false => Continuation::Gap {
            needed: missing.to_line(),
            oldest: oldest.file,
            missing: GtidState::default(),
        },
    })
}

/// What a server wrote and has in no file any more; of a MariaDB its oldest file tells.
fn purged(server: &Server<'_>, before_oldest: Option<GtidState>) -> GtidState {
    match server.identity.kind {
        ServerKind::MySql => server.identity.purged.clone(),
        ServerKind::MariaDb => before_oldest.unwrap_or_default(),
    }
}

/// A `server_id` that no replica has, as far as 32 bits go.
fn any_server_id() -> u32 {
    getrandom::u32().unwrap_or_else(|_| std::process::id()).max(1)
}
