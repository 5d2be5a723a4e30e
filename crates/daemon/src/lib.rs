//! The process: the only place that wires the modules together, and the order in which they start and stop.
//!
//! Start: descriptors, data folder, a look whether the copies are in use, the watch over the disk, admin server, one thread a
//! source. Each thread opens, recovers and attaches for itself, so that no source waits for another's files; what is wrong
//! with one copy stops that source alone. Stop, on SIGTERM or SIGINT: a recovery that is under way is given up, the receiver
//! threads finish their batch, sync, acknowledge and close; then the readers and the admin server. SIGHUP rereads the configuration.
//!
//! systemd is told READY when the admin address answers and every thread was started, not when the copies are recovered: who
//! orders itself after binlogd, a source on the same machine for one, must not wait for that, and a long recovery must not
//! run into the time limit of the start. How far it is, is in the status.

#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used))]
// It runs in real time, beside the sources; the data folder is reached through Storage.
#![cfg_attr(not(test), allow(clippy::disallowed_methods))]

mod archiving;
mod child;
mod controls;
mod drilling;
mod ending;
mod keeper;
mod logging;
mod notifying;
mod promoting;
mod reload;
mod retention;
mod search_indexing;
mod service_manager;
mod switch;
mod verified;
pub mod watch;

use crate::archiving::past::seen_by_readers;
use crate::drilling::{Drilled, Drilling};
use crate::notifying::Notifying;
use crate::watch::descriptors::{Descriptors, TooFew};
use crate::watch::hang::HangWatch;
use admin::{AddressFile, AdminServer};
use anyhow::Context;
use archiving::{Archive, Archiving, Copy};
use binlog::folder::{check_free, make_folder};
use binlog::storage::Storage;
use binlog::storage::activity::{DiskActivity, WatchedStorage};
use binlog::storage::posix::PosixStorage;
use binlog::writer::published::Published;
use config::{Config, ConfigError, Loaded, SourceConfig};
use controls::{Controlled, DaemonControls};
use quorum::Node;
use receive::Upstream;
use receive::watch::SourceWatch;
use retention::Retention;
use search_indexing::{Indexed, SearchIndexing};
use serve::retention::{Purger, Readers};
use serve::{Place, ServeServer, Source, Users};
use service_manager::ServiceManager;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use source::clock::SystemClock;
use source::stop::{Interruption, StopSignal};
use status::{DaemonMonitor, QuorumStatus, SourceMonitor, SourceState};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use switch::Switch;
use wire::Tcp;

/// How long the end of a watch over a source is waited for, so that it can close its connection in good order.
const WATCH_END_MAX: Duration = Duration::from_millis(500);

/// The largest `max_connections` that can be configured.
const READERS_MAX: u32 = 100_000;

/// What SIGHUP does.
pub struct Reload<'a> {
    /// Reads the configuration again.
    pub read: &'a dyn Fn() -> Result<Loaded, ConfigError>,
    /// The file in which it stands. Flags, with `None`, stay what they are; only the password that they point to can be another one.
    pub file: Option<&'a Path>,
}

/// Runs until a signal asks for the end.
///
/// # Errors
/// When something that is needed from the start cannot be had: the data folder, the admin address; when a copy is in use by
/// another process, or none can be opened.
pub fn run(config: Config, reload: &Reload<'_>) -> anyhow::Result<()> {
    logging::start(config.log);
    // Before there are other threads, as it must be.
    if !platform::give_large_blocks_back() {
        tracing::warn!(
            "the C library does not let large blocks go back to the system: memory may grow with the number of sources"
        );
    }
    // Before any thread: a signal that arrives early must not end the process without a word.
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).context("cannot take signals")?;
    let descriptors = Descriptors::raise();
    outlive_file_size_limit().context("cannot take SIGXFSZ")?;
    make_data_dir(&config.data_dir)?;
    let hang_watch = HangWatch::start().context("cannot watch the disk")?;
    let monitor = Arc::new(DaemonMonitor::new(&config.data_dir));
    let service_manager = ServiceManager::start(monitor.clone()).context("cannot start a thread")?;
    let retention = Retention::start(config.retention).context("cannot start a thread")?;
    let archive = config.archive.as_ref();
    let archive = archive.map(|archive| Archive::new(archive, config.backup.keep.clone(), monitor.clone()));
    let archive = archive.transpose().context("the archive ([archive])")?;
    let indexing = config.search_index.then(SearchIndexing::start).transpose();
    let indexing = indexing.context("cannot start a thread")?;
    let drilling = config.drill.clone().zip(reload.file).map(|(drill, file)| Drilling::start(drill, file));
    let drilling = drilling.transpose().context("cannot start a thread")?;
    let receivers = BTreeMap::new();
    let mut daemon = Daemon {
        config,
        monitor,
        descriptors,
        hang_watch,
        service_manager,
        receivers,
        serve: None,
        admin: None,
        controls: Arc::default(),
        retention,
        archive,
        indexing,
        drilling,
        notifying: None,
    };
    daemon.check_copies()?;
    daemon.monitor.disk.set_warn(daemon.config.disk_warn);
    let disk_watch = watch::disk::watch(daemon.monitor.clone()).context("cannot watch the disk")?;
    let usage = watch::usage::watch(daemon.monitor.clone()).context("cannot start a thread")?;
    daemon.admin = daemon.start_admin()?;
    daemon.start_serving()?;
    daemon.start_sources()?;
    daemon.notifying = Some(Notifying::start(daemon.config.notify.as_ref(), &daemon.monitor));
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        data_dir = %daemon.monitor.data_dir().display(),
        sources = daemon.receivers.len(),
        "binlogd is running"
    );
    daemon.service_manager.ready();
    for signal in &mut signals {
        if signal == SIGHUP {
            daemon.service_manager.reloading();
            daemon.reload(reload);
            daemon.service_manager.ready();
        } else {
            tracing::info!("stopping: finishing what has arrived");
            break;
        }
    }
    daemon.service_manager.stopping();
    (daemon.indexing, daemon.drilling, daemon.notifying) = (None, None, None);
    // By its own node, which is still there.
    daemon.controls.promoting.end();
    if !daemon.stop_all() {
        // Ending them in order would wait for the disk too.
        std::mem::forget((disk_watch, usage, daemon));
        let limit = ending::STOP_HANG_MAX.as_secs();
        anyhow::bail!("stopped without finishing: the disk has not answered for {limit} s, see above");
    }
    drop((daemon.serve.take(), daemon.admin.take(), disk_watch, usage, daemon));
    tracing::info!("stopped");
    Ok(())
}

/// One source's thread.
struct Receiver {
    config: SourceConfig,
    stop: Arc<StopSignal>,
    monitor: Arc<SourceMonitor>,
    thread: JoinHandle<()>,
    watch: Option<SourceWatch>,
    archiving: Option<Archiving>,
}

impl Receiver {
    /// Asks it to end; nobody waits for it yet.
    fn request_end(&self) {
        self.stop.request();
        if let Some(archiving) = &self.archiving {
            archiving.request_end();
        }
        self.end_watch();
    }

    fn end_watch(&self) {
        if let Some(watch) = &self.watch {
            watch.request_end();
        }
    }
}

struct Daemon {
    config: Config,
    monitor: Arc<DaemonMonitor>,
    /// How many files the process may open.
    descriptors: Descriptors,
    hang_watch: HangWatch,
    service_manager: ServiceManager,
    receivers: BTreeMap<String, Receiver>,
    /// The port for readers; `None` when nobody is served.
    serve: Option<ServeServer>,
    /// Status, metrics and the page, and where they are found; `None` when nobody can ask.
    admin: Option<(AdminServer, Option<AddressFile>)>,
    /// What the page can change.
    controls: Arc<DaemonControls>,
    retention: Retention,
    /// The object store; `None` when nothing is archived.
    archive: Option<Archive>,
    /// Makes search indexes; `None` when nobody wants them.
    indexing: Option<SearchIndexing>,
    /// Tries the way back; `None` when nobody wants that.
    drilling: Option<Drilling>,
    /// Tells of changes; `None` only before the start and at the end.
    notifying: Option<Notifying>,
}

impl Daemon {
    /// Looks whether the copies can be had before anything is started: two binlogds on one data folder are told at once, and
    /// so is one that may open nothing. A single copy that cannot be had is that source's own affair.
    fn check_copies(&self) -> anyhow::Result<()> {
        let mut failed = Vec::new();
        for source in &self.config.sources {
            let Err(error) = check_free(&self.config.data_dir, &source.name) else { continue };
            let in_use = error.is_locked();
            failed.push(anyhow::Error::new(error).context(format!("source {}", source.name)));
            if in_use {
                return failed.pop().map_or(Ok(()), Err);
            }
        }
        if failed.len() < self.config.sources.len() {
            Ok(())
        } else {
            failed.into_iter().next().map_or(Ok(()), Err)
        }
    }

    fn start_sources(&mut self) -> anyhow::Result<()> {
        let sources = self.config.sources.clone();
        let too_few = self.too_few_descriptors(&sources);
        for (index, source) in sources.iter().enumerate() {
            let monitor = Arc::new(SourceMonitor::new(&source.name));
            self.monitor.add(monitor.clone());
            self.start(source, monitor, too_few.filter(|too_few| index >= too_few.served), None)?;
        }
        Ok(())
    }

    /// Whether the descriptors do for the sources; said in the log when they do not.
    fn too_few_descriptors(&self, sources: &[SourceConfig]) -> Option<TooFew> {
        let too_few = self.descriptors.suffice_for(sources).err();
        if let Some(too_few) = too_few {
            tracing::error!("{too_few}");
        }
        too_few
    }

    fn upstream(&self, source: &SourceConfig, monitor: Arc<SourceMonitor>) -> Upstream {
        let activity = Arc::new(DiskActivity::default());
        self.hang_watch.watch(monitor.clone(), &activity);
        self.service_manager.watch(monitor.clone(), &activity, source);
        let storage: Arc<dyn Storage> = Arc::new(WatchedStorage::new(PosixStorage, activity));
        let (published, stop) = (Arc::<Published>::default(), Arc::new(StopSignal::new()));
        monitor.is_no_node();
        let quorum = (!source.quorum.is_empty()).then(|| {
            let others = source.quorum.iter().map(ToString::to_string).collect();
            let folder = self.config.data_dir.join(&source.name);
            let stop = stop.clone();
            let ends_session = Box::new(move |why| stop.interrupt(Interruption::Epoch(why)));
            let node = Arc::new(Node::new(storage.beside(), folder, published.clone(), others, ends_session));
            let shown = node.clone();
            monitor.is_node(move || QuorumStatus::of(&shown));
            node
        });
        Upstream {
            config: source.clone(),
            data_dir: self.config.data_dir.clone(),
            storage,
            network: Arc::new(Tcp),
            clock: Arc::new(SystemClock),
            monitor,
            published,
            quorum,
            stop,
        }
    }

    fn start_admin(&self) -> anyhow::Result<Option<(AdminServer, Option<AddressFile>)>> {
        let Some(listen) = self.config.admin.listen else { return Ok(None) };
        let server =
            AdminServer::start_with(listen, &self.config.admin, self.monitor.clone(), self.controls.clone())?;
        let address = server.local_addr();
        let (near, token) = server.for_this_machine();
        let data_dir = &self.config.data_dir;
        // A help for `binlogd status` only: a full disk must not keep binlogd from starting.
        let file = AddressFile::publish(data_dir, near, token).inspect_err(|error| {
            tracing::warn!(
                "cannot write the admin address into {}: {error}; ask with binlogd status --admin {address}",
                data_dir.display()
            );
        });
        tracing::info!(%address, "status, metrics and health over HTTP");
        Ok(Some((server, file.ok())))
    }

    fn start_serving(&mut self) -> anyhow::Result<()> {
        let Some(listen) = self.config.serve.listen else { return Ok(()) };
        let users = Users::new(&self.config.serve, &self.config.sources);
        let place = Place { listen, storage: Arc::new(PosixStorage), data_dir: self.config.data_dir.clone() };
        let room = self.room_for_readers(&self.config);
        let server = ServeServer::start(place, &self.config.serve, users, room)?;
        tracing::info!(address = %server.local_addr(), "replicas and log readers are served");
        self.monitor.serves(server.shared().clone());
        self.controls.serves(server.shared().clone());
        self.serve = Some(server);
        Ok(())
    }

    /// How many readers there may be without taking a descriptor that a source needs; said in the log when that is fewer than are
    /// configured.
    fn room_for_readers(&self, config: &Config) -> u32 {
        let sources = &config.sources;
        if let Err(less) = self.descriptors.suffice_for_readers(sources, config.serve.max_connections) {
            tracing::warn!("{less}");
        }
        // Readers that are connected stay so when max_connections becomes less, as long as there is room for them.
        self.descriptors
            .suffice_for_readers(sources, READERS_MAX)
            .map_or_else(|less| less.readers, |()| READERS_MAX)
    }

    /// Starts the thread of a source. With `too_few` descriptors for it, it only says so: sources that receive already must not
    /// fail for want of them at their next file. `halted`: why it is not to receive yet, by an operator's word.
    fn start(
        &mut self,
        source: &SourceConfig,
        monitor: Arc<SourceMonitor>,
        too_few: Option<TooFew>,
        halted: Option<String>,
    ) -> anyhow::Result<()> {
        let name = source.name.clone();
        let upstream = self.upstream(source, monitor.clone());
        if let Some(why) = halted {
            upstream.stop.halt(why);
        }
        let ended = Arc::new(AtomicBool::new(false));
        let (config, stop) = (source.clone(), upstream.stop.clone());
        let purger = Arc::new(Purger::new(
            &name,
            upstream.data_dir.join(&name),
            upstream.storage.beside(),
            upstream.published.clone(),
            self.config.retention,
            self.retention.gate(&name),
        ));
        // Before anybody can ask it to purge.
        let archiving = self.start_archiving(source, &upstream, &purger);
        if let Some(indexing) = &self.indexing {
            let indexed = Indexed {
                folder: upstream.data_dir.join(&name),
                storage: upstream.storage.beside(),
                published: upstream.published.clone(),
                monitor: monitor.clone(),
            };
            indexing.add(&name, indexed);
        }
        let switch = Arc::new(Switch { name: name.clone(), stop: stop.clone(), ended: ended.clone() });
        let controlled =
            Controlled { switch: switch.clone(), purger: purger.clone(), upstream: upstream.clone() };
        self.controls.add(&name, controlled);
        if let Some(serve) = &self.serve {
            let served = Source {
                folder: upstream.data_dir.join(&name),
                storage: seen_by_readers(upstream.storage.beside(), archiving.as_ref().map(Archiving::past)),
                published: upstream.published.clone(),
                monitor: monitor.clone(),
                user: source.user.clone(),
                purger: purger.clone(),
                switch,
                quorum: upstream.quorum.clone(),
                uuid: None,
            };
            let shared: Arc<dyn Readers> = serve.shared().clone();
            purger.heeds(Arc::downgrade(&shared));
            serve.shared().add_source(&name, served);
        }
        let peers: Arc<dyn Readers> = monitor.clone();
        purger.heeds(Arc::downgrade(&peers));
        self.retention.add(purger.clone());
        let watch = match too_few {
            None => SourceWatch::start(&upstream).unwrap_or_else(|error| {
                // Without it the source is received all the same.
                tracing::error!(source = name, "cannot start the watch over the source: {error}");
                None
            }),
            Some(_) => None,
        };
        let guard = EndGuard { monitor: monitor.clone(), ended, purger };
        let beginning = self.archive.as_ref().filter(|_| source.archive).map(Archive::beginning);
        let thread = std::thread::Builder::new()
            .name(format!("recv-{name}"))
            .spawn(move || {
                guard.monitor.resources.received_by(this_thread());
                // It works for microseconds at a time, and a source waits for each: where processors are shared, it should not
                // stand behind what has more to do.
                if !platform::shorten_time_slice() {
                    tracing::debug!(
                        "the receiving thread has no time slice of its own: the kernel is older than 6.12, or does not let \
                         the thread ask, or the thread was given another scheduling policy"
                    );
                }
                match too_few {
                    None => {
                        if archiving::beginning::may_be_opened(&upstream, beginning.as_ref()) {
                            upstream.live();
                        }
                    }
                    Some(too_few) => {
                        guard.monitor.set_state(SourceState::stopped(too_few.to_string()))
                    }
                }
                drop(guard);
            })
            .context("cannot start a thread")?;
        self.receivers.insert(name, Receiver { config, stop, monitor, thread, watch, archiving });
        Ok(())
    }

    /// Starts to archive a source, where that is wanted. Until the archive has a file, nobody purges it.
    fn start_archiving(
        &self,
        source: &SourceConfig,
        upstream: &Upstream,
        purger: &Purger,
    ) -> Option<Archiving> {
        // Before a reload it may have been archived.
        upstream.monitor.archive.clear();
        let archive = self.archive.as_ref().filter(|_| source.archive)?;
        let copy = Copy {
            name: source.name.clone(),
            folder: upstream.data_dir.join(&source.name),
            storage: upstream.storage.beside(),
            published: upstream.published.clone(),
            monitor: upstream.monitor.clone(),
            fsync_mode: source.fsync_mode,
        };
        if let Some(drilling) = &self.drilling {
            let drilled = Drilled {
                folder: copy.folder.clone(),
                storage: copy.storage.beside(),
                published: copy.published.clone(),
                monitor: copy.monitor.clone(),
            };
            drilling.add(&source.name, drilled);
        }
        let archiving = archive.start(copy);
        let kept: Arc<dyn Readers> = archiving.needs();
        purger.heeds(Arc::downgrade(&kept));
        Some(archiving)
    }

    /// Ends a receiver. When its disk does not answer it stays, asked to end, and a later reload finds it.
    fn stop_one(&mut self, name: &str) -> anyhow::Result<()> {
        let Some(receiver) = self.receivers.get(name) else { return Ok(()) };
        receiver.request_end();
        if !ending::wait(&receiver.monitor, Instant::now(), || receiver.thread.is_finished()) {
            anyhow::bail!("{}", ending::not_known(&receiver.monitor));
        }
        self.retention.remove(name);
        if let Some(indexing) = &self.indexing {
            indexing.remove(name);
        }
        if let Some(drilling) = &self.drilling {
            drilling.remove(name);
        }
        if let Some(receiver) = self.receivers.remove(name) {
            let _ = receiver.thread.join(); // A panic has been reported by the guard.
            if let Some(watch) = receiver.watch {
                watch.ended_by(Instant::now() + WATCH_END_MAX);
            }
        }
        Ok(())
    }

    /// Ends all receivers; asks all before waiting for any, so that they finish side by side. False when one could not end.
    fn stop_all(&mut self) -> bool {
        let asked = Instant::now();
        self.receivers.values().for_each(Receiver::request_end);
        let mut all_ended = true;
        let mut watches = Vec::new();
        for (name, receiver) in std::mem::take(&mut self.receivers) {
            if ending::wait(&receiver.monitor, asked, || receiver.thread.is_finished()) {
                let _ = receiver.thread.join();
            } else {
                tracing::error!(source = name, "{}", ending::not_known(&receiver.monitor));
                all_ended = false;
            }
            watches.extend(receiver.watch);
        }
        let deadline = Instant::now() + WATCH_END_MAX;
        for watch in watches {
            watch.ended_by(deadline);
        }
        all_ended
    }
}

/// As the system numbers it.
fn this_thread() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// A thread that ends says so; one that ends by an error of ours must not leave "receiving" behind.
struct EndGuard {
    monitor: Arc<SourceMonitor>,
    ended: Arc<AtomicBool>,
    purger: Arc<Purger>,
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.monitor.pulse.beat(status::Place::Rests);
        self.monitor.resources.receiving_has_ended(watch::usage::cpu_of(this_thread()));
        self.purger.receiving_has_ended();
        self.ended.store(true, Ordering::Release);
        if std::thread::panicking() {
            let reason = "an internal error of binlogd ended the receiver; see its log, restart it, and please report it";
            self.monitor.set_state(SourceState::stopped(reason.to_owned()));
        }
    }
}

/// A file that grows past RLIMIT_FSIZE ends the process without a word, unless the signal is taken; then the write fails with
/// EFBIG, which is told and survived as a full disk is.
fn outlive_file_size_limit() -> std::io::Result<()> {
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map(|_| ())
}

fn make_data_dir(path: &Path) -> anyhow::Result<()> {
    make_folder(&PosixStorage, path).with_context(|| format!("the data folder {} (data_dir)", path.display()))
}
