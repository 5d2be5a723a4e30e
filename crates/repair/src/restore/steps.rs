//! A restore, step by step: look, check, carry out. Between them whoever asks for it shows what was found, and decides.

use super::carry_out::{CarryOut, Way};
use super::course::Course;
use super::known::Known;
use super::no_restore::NoRestore;
use super::release::other_release;
use super::target::{Target, own_address};
use crate::hear::{Event, Hear};
use crate::history::{Copied, Until};
use crate::rescue::guard::Guard;
use crate::rescue::{Compared, Deviation, Restore, Scope};
use crate::restore::carry_out::by_statements::ByStatements;
use crate::restore::carry_out::ended::Ended;
use crate::restore::carry_out::stream::Stream;
use crate::restore::carry_out::tell::Telling;
use crate::restore::course::legs::{Leg, legs};
use crate::restore::course::no_course::NoCourse;
use crate::restore::course::skip::Skip;
use crate::restore::target::space::{Short, short_of_space};
use binlog::storage::Storage;
use binlog::timeline::held::HeldGtids;
use codec::Position;
use codec::gtid::TransactionId;
use config::{HostPort, Point};
use source::identify::SourceIdentity;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use wire::ConnectOptions;

/// From so many transactions on it matters how fast they are.
const SLOW_FROM: u64 = 2_000;

const SLOW: &str = "--statements applies one transaction after the other. Where the server can reach this machine, its own applier, which \
                    has several threads, is faster";

/// What is done where the target has something else under a GTID of the source.
const WRITTEN_TO: &str = "Nothing was applied. The server was written to after its backup was restored, and gave the source's GTIDs, \
                          because it has the source's UUID, or on MariaDB the server_id. Restore the backup again, remove its auto.cnf, and \
                          let nobody write to it. Where that was only the load of a dump, RESET BINARY LOGS AND GTIDS (MariaDB, and \
                          MySQL before 8.4: RESET MASTER) forgets it; then tell it what it has, by --backup-at if it does not know. Where it is only what an earlier restore was told to pass over (--skip), say --compare none";

/// What is asked for.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The history.
    pub copied: &'a Copied,
    /// Folder in which it is noted what is changed on the target for the time being.
    pub notes: &'a Path,
    /// Folder that holds the certificate of a port of ours.
    pub data_dir: &'a Path,
    /// The server to restore.
    pub into: &'a ConnectOptions,
    /// Where to stop.
    pub until: &'a Until,
    /// Where its backup was made, as it is said by hand.
    pub backup_at: Option<&'a str>,
    /// Transactions that are not applied, as they are named by hand.
    pub skip: &'a [String],
    /// Settings of the server that stay as they are, although they change what is made of the log.
    pub accept: &'a [String],
    /// Go on although others use the server.
    pub allow_clients: bool,
    /// How much of what it has already is compared with the copy; `None` for nothing.
    pub scope: Option<Scope>,
    /// How it gets what it lacks.
    pub by: By<'a>,
    /// Nothing is changed.
    pub plan: bool,
}

/// How the server gets what it lacks.
#[derive(Debug, Clone, Copy)]
pub enum By<'a> {
    /// By its own replication, from a port of ours.
    Channel {
        /// Threads that apply; `None` for its own number, or four where that is one.
        workers: Option<u32>,
        /// Where the port is; `None` for the address by which the server is reached.
        listen: Option<SocketAddr>,
        /// Our host as the server sees it, where that is another one.
        advertise: Option<&'a str>,
    },
    /// By statements, one transaction after the other.
    Statements,
}

/// A restore under way.
pub struct Restoring<'a> {
    request: Request<'a>,
    host: String,
    target: Target,
    settings: Restore,
    legs: Vec<Leg>,
    /// Our address as the server sees it.
    own: IpAddr,
    found: Found,
}

/// What was found.
pub struct Found {
    /// The server, before anything was changed.
    pub target: SourceIdentity,
    /// How it is known what it has.
    pub known: Known,
    /// What is between that and the point.
    pub course: Course,
    /// What is not applied.
    pub skip: Vec<Skip>,
    /// What is changed on the server for the time of the restore.
    pub set_aside: Vec<Deviation>,
    /// Of a log of another release: what a person should know of that.
    pub other_release: Option<String>,
    /// Its disk is too small for what is to be applied.
    pub short: Option<Short>,
}

impl Found {
    /// The server has everything up to the point, and knows that it has.
    pub fn is_there(&self) -> bool {
        self.course.transactions == 0 && !matches!(self.known, Known::Told(_))
    }

    /// So many transactions are applied.
    pub fn applied(&self) -> u64 {
        self.course.transactions - self.course.skipped.len() as u64
    }
}

impl<'a> Restoring<'a> {
    /// Walks everything between the server and the point. What an earlier restore has left on the server is taken back before, but
    /// where nothing is to be changed.
    ///
    /// # Errors
    /// [`NoRestore`].
    pub fn look(request: Request<'a>, hear: &mut Hear<'_>) -> Result<Restoring<'a>, NoRestore> {
        let Request { copied, into, .. } = request;
        let host = HostPort { host: into.host.clone(), port: into.port }.to_string();
        let told = |error: String| NoRestore::Target { host: host.clone(), error };
        let mut target = Target::connect(into, copied.kind).map_err(|error| told(error.to_string()))?;
        let parse = |word: &String| Skip::parse(word, copied.kind, target.identity.has_gtids);
        let skip: Result<Vec<Skip>, String> = request.skip.iter().map(parse).collect();
        let skip = skip.map_err(NoRestore::Skip)?;
        let mut settings = Restore::open(request.notes, &host, &target.identity.uuid)?;
        let applied = applied_before(&request, &mut target, &mut settings, &host, hear)?;
        let known = Known::of(&mut target, copied, &host, applied, request.backup_at, hear)?;
        let by_statements = matches!(request.by, By::Statements);
        if by_statements && matches!(known, Known::Position(_)) {
            return Err(NoRestore::StatementsNeedGtids { host });
        }
        let course = find(&request, &known, &target, &skip, hear)?;
        let legs = legs(copied, known.begin(&target), request.until, course.clone())?;
        let mut set_aside = Vec::new();
        if course.transactions > 0 {
            if !request.allow_clients {
                target.is_unused().map_err(|error| told(error.to_string()))?;
            }
            set_aside = target
                .applies_as_written(by_statements, request.accept)
                .map_err(|error| told(error.to_string()))?;
        }
        match &known {
            Known::Itself => compare(&request, &target, &host, hear)?,
            Known::Told(_) => {}
            Known::Position(_) => hear(Event::Note(
                "without GTIDs nobody can compare what the target has already with the copy",
            )),
        }
        let own = own_address(into).map_err(|error| told(error.to_string()))?;
        let short = short_of_space(&mut target, into, own, course.bytes);
        let other_release = other_release(&course.versions, target.identity.kind, &target.identity.version);
        let identity = target.identity.clone();
        let found = Found { target: identity, known, course, skip, set_aside, other_release, short };
        Ok(Restoring { request, host, target, settings, legs, own, found })
    }

    /// What was found.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Makes sure that what cannot be said in statements is told before anything is changed. A server that has everything is detached
    /// from an earlier restore.
    ///
    /// # Errors
    /// [`NoRestore::Ended`].
    pub fn check(&mut self) -> Result<(), NoRestore> {
        let Restoring { request, host, target, found, .. } = self;
        let checked = if found.is_there() {
            if request.plan { Ok(()) } else { CarryOut::forget(target) }
        } else if matches!(request.by, By::Statements) {
            let skip = passed_over(&found.skip);
            ByStatements { copied: request.copied, course: &found.course, skip: &skip }.check(target)
        } else {
            Ok(())
        };
        checked.map_err(|error| NoRestore::Ended { host: host.clone(), error: Box::new(error) })
    }

    /// Brings the server to the point, and detaches it. Gives what it says of itself then. Whoever wants it ended raises `is_over`.
    ///
    /// # Errors
    /// [`NoRestore::Ended`]. What was changed on the server for the time being is put back all the same, as far as it answers.
    pub fn carry_out(
        &mut self,
        is_over: &AtomicBool,
        hear: &mut Hear<'_>,
    ) -> Result<SourceIdentity, NoRestore> {
        let Restoring { request, host, target, settings, legs, own, found } = self;
        let (by, own) = (request.by, *own);
        let listen = match by {
            By::Channel { listen: Some(listen), .. } => listen,
            _ => SocketAddr::new(own, 0),
        };
        let open = |part: &Course| {
            // Where others may reach the port nobody gets anything in clear.
            let is_open = !own.is_loopback() || !listen.ip().is_loopback();
            let has_gtids = part.stretch.is_none();
            Stream::open(request.copied, stop_of(part), listen, request.data_dir, is_open, has_gtids)
        };
        let shown = shown_address(listen.ip(), own).to_string();
        let way = match by {
            By::Statements => {
                if found.course.transactions > SLOW_FROM {
                    hear(Event::Note(SLOW));
                }
                Way::Statements
            }
            By::Channel { workers, advertise, .. } => {
                Way::Channel { open: &open, host: advertise.unwrap_or(&shown), workers }
            }
        };
        let backup = match &found.known {
            Known::Told(backup) => Some(backup),
            _ => None,
        };
        let skip = passed_over(&found.skip);
        let telling = Telling { backup, skip: &skip };
        let carry_out = CarryOut { legs, copied: request.copied, way, telling, is_over };
        let of = carry_out.transactions();
        let after = carry_out.run(target, settings, &mut |now| hear(Event::Applied { done: now.done, of }));
        after.map_err(|error| NoRestore::Ended { host: host.clone(), error: Box::new(error) })
    }
}

/// Takes back what an earlier restore has left; with `plan` nothing is changed. Of a server without GTIDs: how far that one has come.
fn applied_before(
    request: &Request<'_>,
    target: &mut Target,
    settings: &mut Restore,
    host: &str,
    hear: &mut Hear<'_>,
) -> Result<Option<Position>, NoRestore> {
    let ended = |error: Ended| NoRestore::Ended { host: host.to_owned(), error: Box::new(error) };
    if request.plan {
        let asks = !target.identity.has_gtids;
        return if asks { target.left_at().map_err(ended) } else { Ok(None) };
    }
    let busy = |error: String| NoRestore::Target { host: host.to_owned(), error };
    target.take().map_err(|error| busy(error.to_string()))?;
    let left = CarryOut::take_back(target, settings).map_err(ended)?;
    // Of a server without GTIDs the channel stays, and it is said where this one goes on.
    if left.is_some && left.applied.is_none() {
        hear(Event::Note(&format!(
            "what an earlier restore had left on {host} was taken back; this one goes on with what the target has"
        )));
    }
    Ok(left.applied)
}

fn find(
    request: &Request<'_>,
    known: &Known,
    target: &Target,
    skip: &[Skip],
    hear: &mut Hear<'_>,
) -> Result<Course, NoRestore> {
    let mut walked = |bytes, of| hear(Event::Walked { bytes, of });
    let begin = known.begin(target);
    Course::find(request.copied, begin, request.until, skip, &mut walked).map_err(|error| {
        match (error, known) {
            (NoCourse::Foreign { gtids }, Known::Told(_)) => NoRestore::OtherBackup(Box::new(gtids)),
            (error, _) => error.into(),
        }
    })
}

/// Finds a GTID under which something else stands on the target, as happens to a physical backup that was written to: it has the
/// source's UUID. Of an archive only the files at the end of what the target has are read for that.
fn compare(request: &Request<'_>, target: &Target, host: &str, hear: &mut Hear<'_>) -> Result<(), NoRestore> {
    if target.identity.executed.is_empty() {
        return Ok(());
    }
    let Copied { folder, kind, storage, .. } = request.copied;
    let source: (&dyn Storage, _) = (&**storage, folder.as_path());
    let Some(held) = HeldGtids::read(source.0, folder, *kind)? else { return Ok(()) };
    let guard =
        Guard { options: request.into, host: host.to_owned(), scope: request.scope, allow_writers: true };
    let compared = &mut Compared::default();
    Ok(guard.compare_before(source, &held, &target.identity, (false, WRITTEN_TO), compared, hear)?)
}

fn passed_over(skip: &[Skip]) -> Vec<TransactionId> {
    let id = |skip: &Skip| match skip {
        Skip::Id(id) => Some(*id),
        Skip::At(_) => None,
    };
    skip.iter().filter_map(id).collect()
}

/// Where the stream ends: before the first transaction that is left out.
fn stop_of(course: &Course) -> Option<Point> {
    let first = course.first_left_out.as_ref()?;
    let text = match (first.id, &course.stretch) {
        (Some(id), None) => id.to_string(),
        _ => format!("{}:{}", first.file, first.at),
    };
    Some(text.parse().expect("a GTID and a position are points"))
}

/// The address that the target is told: of a port on all addresses the one by which the target is reached.
fn shown_address(listen: IpAddr, own: IpAddr) -> IpAddr {
    if listen.is_unspecified() { own } else { listen }
}
