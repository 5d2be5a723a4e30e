//! The other binlogds of the source: when they are asked, and what of their answers is used.
//!
//! With semi-sync a commit returns when one receiver has it, so of two binlogds each may hold what the other lacks. While the
//! source is there, it sends each of them everything. When it is gone, what only one of them holds can be had from that one
//! alone. So the peers are asked then, and again as long as the source is gone; and once more before another server is followed,
//! because then the timeline ends.
//!
//! A peer is never taken for the source: nothing is acknowledged to it, and no host is chosen by what it says. It is asked in a
//! thread of its own, so that a peer that is dead holds nobody up. Only what follows the end of the copy in the same bytes is
//! taken (`peer_fetch.rs`).

pub(crate) mod above;
pub(crate) mod above_error;
pub(crate) mod doubts;
mod kin;
mod lacking;
pub(crate) mod mirror;
pub mod peer;
pub(crate) mod peer_fetch;

use super::session::SessionError;
use crate::attempt::attempt_error::AttemptError;
use crate::attempt::context::Upstream;
use crate::attempt::copy::HeldCopy;
use crate::attempt::repeats::Repeats;
use crate::decide::older_look::OlderLook;
use crate::peers::peer::{Answer, More, PEER_ANSWER_MAX, PeerSays, STACK_BYTES, in_words, more_than};
use crate::peers::peer_fetch::Fetch;
use binlog::timeline::extent::extents_on_disk;
use binlog::timeline::index::replace_file;
use status::PeerStatus;
use std::fmt::Display;
use std::io;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

/// While the source is gone the peers are asked again after this time; one that cannot be used after twice as long each time, up
/// to the second: a login that is refused again and again would have this address shut out.
const ASKED_AGAIN: Duration = Duration::from_secs(2);
const ASKED_AGAIN_MAX: Duration = Duration::from_secs(60);

/// While the source is gone it is fetched so long at a time, before the hosts are tried again: the second time where the first has
/// not sufficed for a single transaction.
const FETCH_MAX: [Duration; 2] = [Duration::from_millis(1500), Duration::from_secs(4)];

/// Longest time that the peers together hold up the step to another server.
pub(crate) const BEFORE_MAX: Duration = Duration::from_millis(4500);

/// As [`BEFORE_MAX`], where the source is alive and the other server has everything that the source has.
pub(crate) const SWITCHED_MAX: Duration = Duration::from_millis(300);

/// Longest time that the peers are given before a gap: the source cannot send what is lacking, and no other server waits.
pub(crate) const GAP_MAX: Duration = Duration::from_secs(60);

/// A server that is tried again so soon is not a reason to wait for the peers again.
const WAITED_AGAIN: Duration = Duration::from_secs(60);

/// Name of the file in a source's folder that names the peers, one `host:port` a line, for a rescue while no daemon runs.
pub const PEERS_FILE: &str = "peers";

/// Pause between two looks whether a peer has answered, while nothing else is to be done.
const ANSWER_LOOK: Duration = Duration::from_millis(5);

/// What came of completing the newest timeline before it ends.
#[derive(Debug, Default)]
pub(crate) struct Completed {
    /// Something was fetched, so that a decision of before may be another one.
    pub(crate) something: bool,
    /// Peers that could not be asked for everything, by their numbers.
    pub(crate) unasked: Vec<usize>,
}

/// What came of fetching from one peer.
#[derive(Debug, Clone, Copy)]
struct Fetched {
    /// The copy ends further on than before.
    something: bool,
    /// The peer has nothing more, as far as it could be asked.
    all: bool,
    /// It could not be asked, or not to the end.
    failed: bool,
}

/// The peers were waited for.
struct Waited {
    /// The server before which.
    server: String,
    at: Instant,
    /// How long they were given.
    max: Duration,
    /// Those that could not be asked for everything.
    unasked: Vec<usize>,
}

/// What is known of the peers, in the order of the configuration.
#[derive(Default)]
pub(crate) struct Peers {
    list: Vec<Peer>,
    /// When the peers were waited for last.
    waited: Option<Waited>,
    /// Looks at what they hold of older timelines.
    pub(crate) older: OlderLook,
}

#[derive(Default)]
struct Peer {
    /// It was asked, and the answer was not taken yet.
    answer: Option<Receiver<Answer>>,
    /// When it is asked again at the earliest.
    not_before: Option<Instant>,
    /// How often it could not be used since it could.
    failures: u32,
    /// The time did not suffice for a single transaction.
    is_slow: bool,
    repeats: Repeats,
}

impl Peers {
    /// A session with the source has begun and ended: what was asked before it is of no use, and the peers may be asked at once.
    pub(crate) fn source_was_there(&mut self) {
        for peer in &mut self.list {
            (peer.answer, peer.not_before, peer.failures) = (None, None, 0);
            peer.repeats.forget();
        }
        self.waited = None;
    }

    /// The peers are to be waited for again.
    pub(crate) fn forget_wait(&mut self) {
        self.waited = None;
    }

    fn peer(&mut self, number: usize) -> &mut Peer {
        if self.list.len() <= number {
            self.list.resize_with(number + 1, Peer::default);
        }
        &mut self.list[number]
    }

    /// Nothing is left to be had from a peer.
    fn had_all(&mut self, number: usize) {
        if let Some(waited) = &mut self.waited {
            waited.unasked.retain(|unasked| *unasked != number);
        }
    }

    /// The answer of a peer, once.
    fn take_answer(&mut self, number: usize) -> Option<Answer> {
        let peer = self.peer(number);
        match peer.answer.as_ref()?.try_recv() {
            Ok(answer) => {
                peer.answer = None;
                Some(answer)
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                peer.answer = None;
                None
            }
        }
    }
}

impl Upstream {
    /// Shows the peers of the configuration, none of which was asked yet.
    pub(crate) fn publish_peers(&self) {
        let peers: Vec<_> = self.config.peers.iter().map(ToString::to_string).collect();
        self.monitor.update_facts(|facts| {
            facts.peers =
                peers.iter().map(|peer| PeerStatus { peer: peer.clone(), ..Default::default() }).collect();
        });
        let path = self.data_dir.join(&self.config.name).join(PEERS_FILE);
        let text = peers.iter().map(|peer| format!("{peer}\n")).collect::<String>();
        let kept = match self.storage.read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            kept => kept,
        };
        if !kept.is_ok_and(|kept| kept == text)
            && let Err(error) = replace_file(&*self.storage, &path, text.as_bytes())
        {
            tracing::warn!(
                source = self.config.name,
                "cannot write {}: {error}; a rescue without --config while no daemon runs knows of no peers",
                path.display()
            );
        }
    }

    /// The source is gone: asks those peers that were not asked a moment ago. Waits for none.
    pub(crate) fn ask_peers(&self, peers: &mut Peers) {
        let now = self.clock.now();
        for number in 0..self.config.peers.len() {
            let peer = peers.peer(number);
            if peer.answer.is_none() && peer.not_before.is_none_or(|not_before| not_before <= now) {
                self.ask_one(peers, number);
            }
        }
    }

    fn ask_one(&self, peers: &mut Peers, number: usize) {
        let (sender, receiver) = sync_channel(1);
        let (upstream, host) = (self.clone(), self.config.peers[number].clone());
        let asks = move || drop(sender.send(upstream.ask_peer(&host)));
        if self.clock.has_threads() {
            let thread = std::thread::Builder::new()
                .name(format!("peer-{}", self.config.name))
                .stack_size(STACK_BYTES)
                .spawn(asks);
            if let Err(error) = thread {
                self.peer_failed(peers, number, &format!("it cannot be asked: no thread is left: {error}"));
            }
        } else {
            asks();
        }
        let peer = peers.peer(number);
        peer.answer = Some(receiver);
        peer.not_before = Some(self.clock.now() + pause_after(peer.failures));
    }

    /// Fetches what those peers have that have answered meanwhile.
    ///
    /// # Errors
    /// When the copy must be opened again.
    pub(crate) fn complete_while_gone(
        &self,
        copy: &mut HeldCopy,
        peers: &mut Peers,
    ) -> Result<(), AttemptError> {
        for number in 0..self.config.peers.len() {
            let Some(answer) = peers.take_answer(number) else { continue };
            let was_slow = std::mem::take(&mut peers.peer(number).is_slow);
            let max = FETCH_MAX[usize::from(was_slow)];
            let fetched = self.complete_from(copy, peers, number, answer, "", self.clock.now() + max)?;
            let is_over = !fetched.all && !fetched.failed;
            if is_over && (fetched.something || !was_slow) {
                peers.peer(number).not_before = None;
                peers.peer(number).is_slow = !fetched.something;
            } else if is_over {
                let why = format!("not one transaction arrived whole within {max:?}");
                peers.peer(number).is_slow = true;
                self.peer_failed(peers, number, &why);
            }
            break; // The hosts are tried between two peers.
        }
        Ok(())
    }

    /// The newest timeline is about to end, because `server` is followed, or because of a gap: waits for the peers' answers, and
    /// fetches what they have, all within `max`. Where that was done a moment ago, the answer is the same.
    ///
    /// # Errors
    /// When the copy must be opened again, or no session is to go on: then no timeline may end either.
    pub(crate) fn complete_before(
        &self,
        copy: &mut HeldCopy,
        peers: &mut Peers,
        server: &str,
        max: Duration,
    ) -> Result<Completed, AttemptError> {
        let began = self.clock.now();
        let is_again = |waited: &&Waited| {
            let is_fresh = began.saturating_duration_since(waited.at) < WAITED_AGAIN;
            waited.server == server && is_fresh && waited.max >= max
        };
        if self.config.peers.is_empty() || copy.timeline().is_none() {
            return Ok(Completed::default());
        }
        if let Some(waited) = peers.waited.as_ref().filter(is_again) {
            return Ok(Completed { something: false, unasked: waited.unasked.clone() });
        }
        let end = copy.end();
        let (answers, mut unasked) = self.wait_for_answers(peers, max.min(PEER_ANSWER_MAX));
        for (number, answer) in answers {
            let fetched = self.complete_from(copy, peers, number, answer, server, began + max)?;
            if !fetched.all {
                unasked.push(number);
            }
        }
        if self.stop.ends_session() {
            return Err(SessionError::Closed.into());
        }
        let waited = Waited { server: server.to_owned(), at: began, max, unasked: unasked.clone() };
        peers.waited = Some(waited);
        // Not by what each says of itself: what has arrived is kept whatever ended it.
        Ok(Completed { something: copy.end() != end, unasked })
    }

    /// Asks all peers, for an answer of before may be too old. The second value are those that do not answer.
    fn wait_for_answers(&self, peers: &mut Peers, max: Duration) -> (Vec<(usize, Answer)>, Vec<usize>) {
        let began = self.clock.now();
        let mut waiting: Vec<usize> = (0..self.config.peers.len()).collect();
        for number in &waiting {
            self.ask_one(peers, *number);
        }
        let mut answers = Vec::new();
        loop {
            waiting.retain(|number| {
                let answer = peers.take_answer(*number);
                let is_waiting = answer.is_none();
                answers.extend(answer.map(|answer| (*number, answer)));
                is_waiting
            });
            let is_over = self.clock.now().saturating_duration_since(began) >= max;
            let ends = self.stop.ends_session();
            if waiting.is_empty() || is_over || ends || self.clock.pause(&self.stop, ANSWER_LOOK) {
                break;
            }
        }
        for number in &waiting {
            peers.peer(*number).answer = None;
            self.peer_failed(peers, *number, &format!("it has not answered within {max:?}"));
        }
        (answers, waiting)
    }

    /// A timeline ends though these peers could not be asked for everything: says so, and goes on asking what they hold of it.
    pub(crate) fn end_without(&self, peers: &Peers, timeline: &str, unasked: &[usize]) {
        if unasked.is_empty() || self.stop.ends_session() {
            return;
        }
        let hosts: Vec<_> = unasked.iter().map(|number| self.config.peers[*number].to_string()).collect();
        tracing::error!(
            source = self.config.name,
            timeline,
            "the timeline ends, and not everything could be had from {}: what a peer holds of this timeline and this copy lacks \
             stays there alone, and binlogd rescue on its machine hands it over",
            hosts.join(", ")
        );
        self.look_for_older_at(&peers.older, unasked);
    }

    /// Fetches from a peer what it has. `server` is the one that is about to be followed; empty for none.
    fn complete_from(
        &self,
        copy: &mut HeldCopy,
        peers: &mut Peers,
        number: usize,
        answer: Answer,
        server: &str,
        until: Instant,
    ) -> Result<Fetched, AttemptError> {
        let nothing = Fetched { something: false, all: false, failed: true };
        let compared = match answer {
            Ok(says) => self.compare_with(copy, &says).map(|more| (says, more)),
            Err(error) => Err(error.to_string()),
        };
        let (says, more) = match compared {
            Ok(compared) => compared,
            Err(why) => {
                self.peer_failed(peers, number, &why);
                return Ok(nothing);
            }
        };
        let beyond: Vec<String> = more.beyond(server).map(in_words).collect();
        self.peer_answered(number, !more.of_newest.is_empty() || !beyond.is_empty());
        peers.peer(number).failures = 0;
        // While no server is followed nothing ends.
        let is_joined = server.is_empty() || beyond.is_empty();
        if !is_joined {
            self.show_peer_error(number, cannot_be_joined(&beyond));
        }
        let (end, mut other) = (copy.end(), None);
        for theirs in &more.of_newest {
            let fetch = Fetch {
                upstream: self,
                host: &self.config.peers[number],
                says: &says,
                timeline: &theirs.timeline,
                until,
            };
            let result = match fetch.run(copy) {
                // The peer sends every reader away when it begins another timeline.
                Err(error) if Fetch::is_broken_off(&error) && !self.stop.ends_session() => fetch.run(copy),
                result => result,
            };
            let something = copy.end() != end;
            match result {
                Ok(all) => {
                    if all && beyond.is_empty() {
                        peers.had_all(number);
                    }
                    return Ok(Fetched { something, all: all && is_joined, failed: false });
                }
                Err(error) if error.log_failed() => return Err(error),
                Err(error) if Fetch::is_other_history(&error) && !something => other = Some((theirs, error)),
                Err(error) => {
                    // What has arrived is kept.
                    self.peer_failed(peers, number, &error);
                    return Ok(Fetched { something, ..nothing });
                }
            }
        }
        let Some((theirs, error)) = other.filter(|_| !more.is_level) else {
            return Ok(Fetched { something: false, all: is_joined, failed: false });
        };
        let ours = copy.timeline().map_or("", |timeline| timeline.name.as_str());
        let theirs = &theirs.timeline;
        let why = format!(
            "its logs are not those of this copy: its {theirs} and our {ours} differ: {error}. Nothing was taken from it"
        );
        self.peer_failed(peers, number, &why);
        Ok(nothing)
    }

    /// What a peer may have that the copy lacks.
    fn compare_with(&self, copy: &HeldCopy, says: &PeerSays) -> Result<More, String> {
        let Some(timeline) = copy.timeline() else { return Ok(More::default()) };
        let mut ours = extents_on_disk(copy.storage(), copy.source_folder())
            .map_err(|error| format!("the own copy cannot be read to compare it: {error}"))?;
        if let (Some(newest), Some(end)) =
            (ours.iter_mut().find(|ours| ours.timeline == timeline.name), timeline.end())
        {
            // Before its end the file may have room that is reserved.
            (newest.last, newest.end) = (end.file.to_string(), end.offset);
        }
        more_than(&timeline.name, &ours, &says.extents)
    }

    /// Shows what came of asking a peer.
    fn peer_answered(&self, number: usize, had_more: bool) {
        let now = self.clock.wall_time();
        self.update_peer(number, |peer| {
            (peer.asked_at, peer.had_more, peer.error) = (Some(now), Some(had_more), None);
        });
    }

    /// Shows why a peer cannot be used, and says so in the log now and then.
    fn peer_failed(&self, peers: &mut Peers, number: usize, why: &dyn Display) {
        let (host, text) = (&self.config.peers[number], why.to_string());
        let peer = peers.peer(number);
        peer.failures += 1;
        peer.not_before = Some(self.clock.now() + pause_after(peer.failures));
        if !self.stop.is_requested()
            && let Some(again) = peers.peer(number).repeats.hear(&text, self.clock.now())
        {
            tracing::warn!(source = self.config.name, peer = %host, "the peer cannot be used: {text}{again}");
        }
        self.show_peer_error(number, text);
    }
}

/// What is said of timelines that a peer holds and the copy cannot append to anything.
fn cannot_be_joined(beyond: &[String]) -> String {
    format!(
        "it holds what this copy lacks and cannot append, because it does not follow what is here: {}. Run binlogd rescue on its \
         machine: it hands over what a server lacks",
        beyond.join(", ")
    )
}

/// After so many failures in a row.
fn pause_after(failures: u32) -> Duration {
    (ASKED_AGAIN * 2_u32.saturating_pow(failures.min(8))).min(ASKED_AGAIN_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use binlog::storage::posix::PosixStorage;
    use binlog::testing::{FileBuilder, SERVER_UUID, first_timeline};
    use config::{AckTimeoutAction, FsyncMode, HostPort, OnFork, OnGap, OnStranger, SourceConfig, Start};
    use jiff::Timestamp;
    use source::clock::Clock;
    use source::stop::StopSignal;
    use status::SourceMonitor;
    use std::os::fd::BorrowedFd;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::SeqCst;
    use wire::{ConnectOptions, Connection, Network, TlsMode, TlsOptions, WireError};

    /// Nobody answers: each connection waits for longer than any test.
    #[derive(Debug, Default)]
    struct Silence(AtomicUsize);

    impl Network for Silence {
        fn connect(
            &self,
            options: &ConnectOptions,
            _: &mut dyn FnMut(BorrowedFd<'_>),
        ) -> Result<Connection, WireError> {
            assert_eq!(options.connect_timeout, PEER_ANSWER_MAX);
            self.0.fetch_add(1, SeqCst);
            std::thread::sleep(Duration::from_secs(600));
            Err(WireError::Closed { during: "waiting" })
        }
    }

    /// Time that passes while somebody pauses.
    #[derive(Debug)]
    struct Pauses(Mutex<Instant>);

    impl Clock for Pauses {
        fn now(&self) -> Instant {
            *self.0.lock().unwrap()
        }

        fn wall_time(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }

        fn pause(&self, stop: &StopSignal, pause: Duration) -> bool {
            self.sleep(pause);
            stop.is_requested()
        }

        fn sleep(&self, pause: Duration) {
            *self.0.lock().unwrap() += pause;
        }

        fn jitter(&self) -> u32 {
            7
        }
    }

    fn upstream(dir: &Path, network: Arc<Silence>) -> Upstream {
        let host = |host: &str| HostPort { host: host.to_owned(), port: 3306 };
        let config = SourceConfig {
            name: "s".to_owned(),
            hosts: vec![host("db1")],
            quorum: Vec::new(),
            peers: vec![host("peer1"), host("peer2")],
            user: "repl".to_owned(),
            password: "".into(),
            password_file: None,
            server_id: Some(7),
            start: Start::Resume,
            fsync_mode: FsyncMode::SyncThenAcknowledge,
            fsync_interval: Duration::from_secs(1),
            semi_sync: true,
            ack_after_replicas: 0,
            ack_timeout: Duration::from_secs(10),
            ack_timeout_action: AckTimeoutAction::Wait,
            heartbeat_period: Duration::from_secs(5),
            net_read_timeout: Duration::from_secs(15),
            watch_interval: Duration::ZERO,
            connect_timeout: Duration::from_secs(10),
            backoff_min: Duration::from_millis(100),
            backoff_max: Duration::from_millis(500),
            tls: TlsOptions { mode: TlsMode::Disabled, ..TlsOptions::default() },
            on_gap: OnGap::Stop,
            on_fork: OnFork::Follow,
            on_stranger: OnStranger::Refuse,
            archive: false,
        };
        Upstream {
            config,
            data_dir: dir.to_owned(),
            storage: Arc::new(PosixStorage),
            network,
            clock: Arc::new(Pauses(Mutex::new(Instant::now()))),
            monitor: Arc::new(SourceMonitor::new("s")),
            published: Arc::default(),
            quorum: None,
            stop: Arc::new(StopSignal::new()),
        }
    }

    fn copy(dir: &Path, upstream: &Upstream) -> HeldCopy {
        let folder = first_timeline(SERVER_UUID).create(&PosixStorage, &dir.join("s"), 1).unwrap();
        std::fs::write(folder.join("b.000001"), FileBuilder::new().transaction(1, 9).finish()).unwrap();
        HeldCopy::open(upstream.storage.clone(), upstream.clock.clone(), dir, "s").unwrap().0
    }

    #[test]
    fn peers_that_are_dead_hold_a_failover_up_once_and_not_for_long() {
        let (dir, network) = (tempfile::tempdir().unwrap(), Arc::<Silence>::default());
        std::fs::create_dir(dir.path().join("s")).unwrap();
        let upstream = upstream(dir.path(), network.clone());
        upstream.publish_peers();
        let (mut copy, mut peers) = (copy(dir.path(), &upstream), Peers::default());
        let mut took = |server: &str, peers: &mut Peers| {
            let began = upstream.clock.now();
            let completed = upstream.complete_before(&mut copy, peers, server, BEFORE_MAX).unwrap();
            assert!(!completed.something);
            (upstream.clock.now() - began, completed.unasked)
        };
        let (time, unasked) = took("successor", &mut peers);
        assert!(time >= PEER_ANSWER_MAX && time < BEFORE_MAX, "{time:?}");
        assert_eq!(unasked, [0, 1]);
        let error = |peer: usize| upstream.monitor.facts().peers[peer].error.clone().unwrap().message;
        assert!(error(0).contains("has not answered within 3s") && error(1) == error(0), "{}", error(0));
        assert_eq!(took("successor", &mut peers), (Duration::ZERO, vec![0, 1]), "the same server again");
        assert!(took("another", &mut peers).0 >= PEER_ANSWER_MAX);
        peers.source_was_there();
        assert!(took("another", &mut peers).0 >= PEER_ANSWER_MAX, "after a session");
    }

    #[test]
    fn while_the_source_is_gone_nobody_waits_and_each_is_asked_once_at_a_time() {
        let (dir, network) = (tempfile::tempdir().unwrap(), Arc::<Silence>::default());
        std::fs::create_dir(dir.path().join("s")).unwrap();
        let upstream = upstream(dir.path(), network.clone());
        let (mut copy, mut peers) = (copy(dir.path(), &upstream), Peers::default());
        let began = upstream.clock.now();
        for _ in 0..3 {
            upstream.ask_peers(&mut peers);
            upstream.complete_while_gone(&mut copy, &mut peers).unwrap();
        }
        assert_eq!(upstream.clock.now(), began);
        while network.0.load(SeqCst) < 2 {
            std::thread::yield_now();
        }
        assert_eq!(network.0.load(SeqCst), 2);
    }

    #[test]
    fn a_peer_that_cannot_be_used_is_asked_less_often() {
        let pauses: Vec<u64> = [0, 1, 2, 3, 4, 5, 99].map(|failures| pause_after(failures).as_secs()).into();
        assert_eq!(pauses, [2, 4, 8, 16, 32, 60, 60]);
    }
}
