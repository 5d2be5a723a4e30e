//! Light looks at the other hosts of the list while a session lasts: whether clients can write there, and, while the source is
//! read-only, what they have executed.
//!
//! Each host is looked at by a thread of its own, so that one that is dead holds up nobody. What it finds decides nothing:
//! `decide/switch_over.rs` does, with what the source says of itself at that moment.

use crate::attempt::ask::connect_options;
use crate::attempt::context::Upstream;
use crate::decide::switch_over::{Has, Other, Seen, Verdict, decide};
use crate::watch::counters::{LOOK_MAX, ask_waiting};
use codec::gtid::GtidState;
use source::clock::Clock;
use source::identify::{Access, SourceIdentity};
use status::Watched;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Duration;
use wire::{ConnectOptions, Connection, WireError};

/// Of a thread that looks: enough for a TLS handshake in a build without optimisation.
pub(super) const STACK_BYTES: usize = 1 << 20;

/// Pause between two looks at a host while the source is writable.
const PAUSE: Duration = Duration::from_secs(1);

/// The same while the source is read-only: commits may wait on another host from any moment on.
pub(super) const PAUSE_READ_ONLY: Duration = Duration::from_millis(50);

/// Pause after a login that was refused. Refused again and again, it would have this address shut out.
const PAUSE_DENIED: Duration = Duration::from_secs(60);

/// What is known of the hosts of a list, by their numbers.
#[derive(Debug)]
pub(super) struct Others {
    shared: Arc<Shared>,
    threads: Vec<Thread>,
}

#[derive(Debug)]
struct Shared {
    hosts: Mutex<Vec<Host>>,
    /// The source is: the others are looked at often, and asked what they have.
    source_is_read_only: AtomicBool,
    end: Arc<AtomicBool>,
}

#[derive(Debug, Clone, Default)]
struct Host {
    seen: Seen,
    /// As of the last look while the source was read-only.
    identity: Option<Arc<SourceIdentity>>,
    /// Sessions there whose commit waited for an acknowledgement then.
    waiting: u64,
}

impl Shared {
    fn hosts(&self) -> MutexGuard<'_, Vec<Host>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Others {
    /// Starts a thread a host. They end soon after `end` is set. `None` where the list names one host alone.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(super) fn start(upstream: &Upstream, end: Arc<AtomicBool>) -> io::Result<Option<Others>> {
        let hosts = &upstream.config.hosts;
        if hosts.len() < 2 {
            return Ok(None);
        }
        let shared = Arc::new(Shared {
            hosts: Mutex::new(vec![Host::default(); hosts.len()]),
            source_is_read_only: AtomicBool::new(false),
            end,
        });
        let mut others = Others { shared, threads: Vec::new() };
        for number in 0..hosts.len() {
            let onlooker = Onlooker {
                number,
                upstream: upstream.clone(),
                shared: others.shared.clone(),
                connected: None,
                was_denied: false,
            };
            let thread = std::thread::Builder::new()
                .name(format!("look-{}", upstream.config.name))
                .stack_size(STACK_BYTES)
                .spawn(move || onlooker.run());
            match thread {
                Ok(thread) => others.threads.push(thread.thread().clone()),
                Err(error) => {
                    others.shared.end.store(true, Ordering::Release);
                    return Err(error);
                }
            }
        }
        Ok(Some(others))
    }

    /// Has the threads look at once, or end.
    pub(super) fn wake(&self) {
        self.threads.iter().for_each(Thread::unpark);
    }

    /// No session lasts.
    pub(super) fn rest(&self) {
        self.shared.source_is_read_only.store(false, Ordering::Release);
    }

    /// Whether clients cannot write to the source, by the last look.
    pub(super) fn is_source_read_only(&self) -> bool {
        self.shared.source_is_read_only.load(Ordering::Acquire)
    }

    /// Asks the source, which is host `number` and was `source` when the connection was made, and decides. `held` is what the
    /// copy holds.
    ///
    /// # Errors
    /// When the source cannot be asked.
    pub(super) fn look(
        &self,
        connection: &mut Connection,
        number: usize,
        source: &mut SourceIdentity,
        held: impl FnOnce() -> Arc<GtidState>,
        clock: &dyn Clock,
    ) -> Result<Verdict, WireError> {
        let access = source.ask_access(connection)?;
        let is_read_only = access != Access::Writable;
        let was_read_only = self.shared.source_is_read_only.swap(is_read_only, Ordering::AcqRel);
        if is_read_only && !was_read_only {
            self.wake();
        }
        let hosts = {
            let mut hosts = self.shared.hosts();
            hosts[number].seen.look(access, clock.now());
            hosts.clone()
        };
        let mut all: Option<Arc<GtidState>> = None;
        // Behind that: nobody writes there any more, so that this is all that it will ever have.
        if is_read_only
            && hosts.iter().enumerate().any(|(other, host)| other != number && host.seen.is_writable())
        {
            source.ask_executed(connection)?;
            all = Some(held());
        }
        let is_itself = |host: &Host| host.identity.as_ref().is_some_and(|other| other.uuid == source.uuid);
        let others: Vec<Other> = hosts
            .iter()
            .enumerate()
            .filter(|(other, host)| *other != number && !is_itself(host))
            .map(|(host, known)| Other {
                host,
                seen: known.seen,
                has: has(known.identity.as_deref(), known.waiting, source, all.as_deref()),
                is_node: source.galera.is_some()
                    && known.identity.as_ref().is_some_and(|other| other.galera == source.galera),
            })
            .collect();
        Ok(decide(&hosts[number].seen, &others, clock.now()))
    }
}

/// Whether a host has all that the read-only source has executed, and all that the copy holds. `waiting`: its sessions that wait for an
/// acknowledgement.
///
/// MySQL sends a transaction to its replicas before it counts as executed (`AFTER_SYNC`), so that the source, a replica of the host by
/// now, may have what waits on the host for an acknowledgement from here. Taken for lacking, both would wait for one another. So what the
/// host lacks and wrote itself is believed to be waiting, as long as it is no more than there are sessions that wait, with one
/// transaction each.
fn has(
    other: Option<&SourceIdentity>,
    waiting: u64,
    source: &SourceIdentity,
    held: Option<&GtidState>,
) -> Has {
    let can_tell = |other: &&SourceIdentity| other.has_gtids && source.has_gtids && other.kind == source.kind;
    let (Some(other), Some(held)) = (other.filter(can_tell), held) else {
        return Has::Unknown;
    };
    let lacks = |gtids: &GtidState| if gtids.is_empty() { gtids.clone() } else { other.lacks(gtids) };
    let (lacked, of_copy) = (lacks(&source.executed), lacks(held));
    let is_waiting = |lacked: &GtidState| match lacked {
        GtidState::Mysql(set) => set.len() <= waiting && other.own(lacked) == *lacked,
        GtidState::Mariadb(_) => false,
    };
    let mut all = lacked.clone();
    if (lacked.is_empty() && of_copy.is_empty()) || (all.union_with(&of_copy).is_ok() && is_waiting(&all)) {
        Has::All
    } else {
        Has::NotAll
    }
}

/// The thread that looks at one host.
struct Onlooker {
    number: usize,
    upstream: Upstream,
    shared: Arc<Shared>,
    connected: Option<(Connection, SourceIdentity)>,
    /// The last login was refused.
    was_denied: bool,
}

impl Onlooker {
    fn run(mut self) {
        let name = self.upstream.config.hosts[self.number].to_string();
        while !self.shared.end.load(Ordering::Acquire) {
            // One to which a session goes has that session's looks.
            // And a binlogd that is received from is no standby's source.
            let is_other = |watched: Watched| watched.host != name && watched.timeline_above.is_none();
            let is_other = self.upstream.monitor.watched().is_some_and(is_other);
            if !is_other {
                self.hang_up();
            }
            let looked = if is_other { self.look() } else { Ok(()) };
            let pause = self.pause(&name, looked);
            std::thread::park_timeout(pause);
        }
        self.hang_up();
    }

    fn look(&mut self) -> Result<(), WireError> {
        let (mut connection, mut identity) = match self.connected.take() {
            Some(connected) => connected,
            None => {
                let mut connection = self.connect()?;
                let identity = SourceIdentity::ask(&mut connection)?;
                (connection, identity)
            }
        };
        let access = identity.ask_access(&mut connection)?;
        // What it says from now on it had when it was found to be so.
        let at = self.upstream.clock.now();
        let mut waiting = 0;
        if access == Access::Writable && self.shared.source_is_read_only.load(Ordering::Acquire) {
            identity.ask_executed(&mut connection)?;
            // Behind that: what is acknowledged in between is lacking until the next look, and nothing is believed wrongly.
            waiting = ask_waiting(&mut connection)?.unwrap_or(0);
        }
        {
            let mut hosts = self.shared.hosts();
            let host = &mut hosts[self.number];
            host.seen.look(access, at);
            host.identity = Some(Arc::new(identity.clone()));
            host.waiting = waiting;
        }
        self.connected = Some((connection, identity));
        Ok(())
    }

    fn connect(&self) -> Result<Connection, WireError> {
        let config = &self.upstream.config;
        let (password, _) = config.password_now();
        let options = connect_options(config, &config.hosts[self.number], password);
        let options = ConnectOptions { connect_timeout: options.connect_timeout.min(LOOK_MAX), ..options };
        let mut connection = self.upstream.network.connect(&options, &mut |_| {})?;
        connection.set_timeout(LOOK_MAX);
        Ok(connection)
    }

    fn hang_up(&mut self) {
        if let Some((connection, _)) = self.connected.take() {
            connection.close();
        }
    }

    /// Until the next look. That a host is down is no news: while it is, it is no source.
    fn pause(&mut self, name: &str, looked: Result<(), WireError>) -> Duration {
        let is_denied = looked.as_ref().is_err_and(WireError::is_permanent);
        if let Err(error) = &looked
            && is_denied
            && !self.was_denied
        {
            tracing::warn!(
                source = self.upstream.config.name,
                host = name,
                "cannot look at this host: {error}; so a switch-over to it is not seen"
            );
        }
        self.was_denied = is_denied;
        match looked {
            Err(_) if is_denied => PAUSE_DENIED,
            Ok(()) if self.shared.source_is_read_only.load(Ordering::Acquire) => PAUSE_READ_ONLY,
            _ if self.shared.source_is_read_only.load(Ordering::Acquire) => 4 * PAUSE_READ_ONLY,
            _ => PAUSE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use codec::ServerKind;
    use source::identify::SourceSemiSync;

    const HOST: &str = "00000000-0000-0000-0000-000000000001";
    const SOURCE: &str = "00000000-0000-0000-0000-000000000002";

    fn gtids(text: &str) -> GtidState {
        GtidState::parse(ServerKind::MySql, text).unwrap()
    }

    fn server(uuid: &str, executed: &str) -> SourceIdentity {
        SourceIdentity {
            version: String::new(),
            kind: ServerKind::MySql,
            server_id: 1,
            uuid: uuid.to_owned(),
            has_gtids: true,
            executed: gtids(executed),
            applied: "".parse().unwrap(),
            purged: gtids(""),
            semi_sync: SourceSemiSync::Enabled,
            is_read_only: false,
            galera: None,
            knows_checksums: true,
        }
    }

    /// The source has applied, as a replica of the host, what waits there for an acknowledgement from here.
    #[test]
    fn what_waits_on_a_host_is_not_lacking_there() {
        let host = server(HOST, &format!("{HOST}:1-8"));
        let has = |waiting, executed: &str, held: &str| {
            has(Some(&host), waiting, &server(SOURCE, executed), Some(&gtids(held)))
        };
        let (all, ahead) = (format!("{HOST}:1-8"), format!("{HOST}:1-10"));
        assert_eq!(has(0, &all, &all), Has::All);
        assert_eq!(has(2, &ahead, &all), Has::All, "two wait");
        assert_eq!(has(2, &all, &ahead), Has::All);
        assert_eq!(has(1, &ahead, &ahead), Has::NotAll, "more than one can have in hand");
        assert_eq!(has(0, &ahead, &all), Has::NotAll, "it has lost them");
        let of_source = format!("{HOST}:1-9,{SOURCE}:1");
        assert_eq!(has(5, &of_source, &all), Has::NotAll, "the source wrote one");
        assert_eq!(
            has(1, &format!("{HOST}:1-9"), &format!("{HOST}:1-8:10")),
            Has::NotAll,
            "of both together"
        );
    }
}
