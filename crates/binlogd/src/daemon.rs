//! The process: the only place that wires the modules together, and the order in which they start and stop.
//!
//! Start: data folder, copies (locked and recovered), the watch over the disk, admin server, one thread a source. Stop, on SIGTERM or SIGINT: the
//! receiver threads finish their batch, sync, acknowledge and close; then the admin server. SIGHUP rereads the
//! configuration.

mod disk_watch;

use crate::admin::{AddressFile, AdminServer};
use crate::config::{
    Config, ConfigError, Loaded, LogConfig, LogFormat, LogLevel, ReloadEffect, SourceConfig,
};
use crate::config::{changed_global_keys, changed_keys, reload_effect};
use crate::log::folder::make_folder;
use crate::log::storage::PosixStorage;
use crate::status::{DaemonMonitor, SourceMonitor, SourceState};
use crate::upstream::Upstream;
use crate::upstream::clock::SystemClock;
use crate::upstream::copy::HeldCopy;
use crate::upstream::stop::StopSignal;
use crate::wire::Tcp;
use anyhow::Context;
use disk_watch::DiskWatch;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use tracing_subscriber::filter::LevelFilter;

/// Runs until a signal asks for the end. `reload` reads the configuration again.
///
/// # Errors
/// When something that is needed from the start cannot be had: the data folder, a copy in it, the admin address.
pub fn run(config: Config, reload: &dyn Fn() -> Result<Loaded, ConfigError>) -> anyhow::Result<()> {
    start_logging(config.log);
    // Before any thread: a signal that arrives early must not end the process without a word.
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).context("cannot take signals")?;
    make_data_dir(&config.data_dir)?;
    let monitor = Arc::new(DaemonMonitor::new(&config.data_dir));
    let mut daemon = Daemon { config, monitor, receivers: BTreeMap::new() };
    let opened = daemon.open_copies()?;
    daemon.monitor.disk.set_warn(daemon.config.disk_warn);
    let disk_watch = DiskWatch::start(daemon.monitor.clone()).context("cannot watch the disk")?;
    let admin = daemon.start_admin()?;
    for (upstream, copy) in opened {
        daemon.start(upstream, copy)?;
    }
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        data_dir = %daemon.monitor.data_dir().display(),
        sources = daemon.receivers.len(),
        "binlogd is running"
    );
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    for signal in &mut signals {
        if signal == SIGHUP {
            daemon.reload(reload);
        } else {
            tracing::info!("stopping: finishing what has arrived");
            break;
        }
    }
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
    daemon.stop_all();
    drop((admin, disk_watch));
    tracing::info!("stopped");
    Ok(())
}

/// One source's thread.
struct Receiver {
    config: SourceConfig,
    stop: Arc<StopSignal>,
    monitor: Arc<SourceMonitor>,
    thread: JoinHandle<()>,
}

struct Daemon {
    config: Config,
    monitor: Arc<DaemonMonitor>,
    receivers: BTreeMap<String, Receiver>,
}

impl Daemon {
    /// Opens every copy before anything is started, so that a folder that is in use is told at once.
    fn open_copies(&self) -> anyhow::Result<Vec<(Upstream, HeldCopy)>> {
        let mut opened = Vec::new();
        for source in &self.config.sources {
            let upstream = self.upstream(source, Arc::new(SourceMonitor::new(&source.name)))?;
            let copy = upstream.open().with_context(|| format!("source {}", source.name))?;
            opened.push((upstream, copy));
        }
        Ok(opened)
    }

    fn upstream(&self, source: &SourceConfig, monitor: Arc<SourceMonitor>) -> anyhow::Result<Upstream> {
        Ok(Upstream {
            config: source.clone(),
            data_dir: self.config.data_dir.clone(),
            storage: Arc::new(PosixStorage),
            network: Arc::new(Tcp),
            clock: Arc::new(SystemClock),
            monitor,
            stop: Arc::new(StopSignal::new().context("cannot make an eventfd")?),
        })
    }

    fn start_admin(&self) -> anyhow::Result<Option<(AdminServer, Option<AddressFile>)>> {
        let Some(listen) = self.config.admin.listen else { return Ok(None) };
        let server = AdminServer::start(listen, self.monitor.clone())?;
        let address = server.local_addr();
        let data_dir = &self.config.data_dir;
        // A help for `binlogd status` only: a full disk must not keep binlogd from starting.
        let file = AddressFile::publish(data_dir, address).inspect_err(|error| {
            tracing::warn!(
                "cannot write the admin address into {}: {error}; ask with binlogd status --admin {address}",
                data_dir.display()
            );
        });
        tracing::info!(%address, "status, metrics and health over HTTP");
        Ok(Some((server, file.ok())))
    }

    fn start(&mut self, upstream: Upstream, copy: HeldCopy) -> anyhow::Result<()> {
        let name = upstream.config.name.clone();
        let (config, stop, monitor) =
            (upstream.config.clone(), upstream.stop.clone(), upstream.monitor.clone());
        self.monitor.add(monitor.clone());
        let guard = PanicGuard(monitor.clone());
        let thread = std::thread::Builder::new()
            .name(format!("recv-{name}"))
            .spawn(move || {
                let _guard = guard;
                upstream.run(copy);
            })
            .context("cannot start a thread")?;
        self.receivers.insert(name, Receiver { config, stop, monitor, thread });
        Ok(())
    }

    fn reload(&mut self, reload: &dyn Fn() -> Result<Loaded, ConfigError>) {
        let loaded = match reload() {
            Ok(loaded) => loaded,
            Err(error) => {
                tracing::error!("the configuration was not reloaded, everything goes on as before: {error}");
                return;
            }
        };
        for warning in &loaded.warnings {
            tracing::warn!("{warning}");
        }
        let new = loaded.config;
        let mut restart = changed_global_keys(&self.config, &new);
        restart.retain(|key| *key != "disk_warn");
        self.config.disk_warn = new.disk_warn;
        self.monitor.disk.set_warn(new.disk_warn);
        if !restart.is_empty() {
            tracing::warn!("changed, but in force only after a restart: {}", restart.join(", "));
        }
        let gone: Vec<String> = self
            .receivers
            .keys()
            .filter(|name| new.sources.iter().all(|source| source.name != **name))
            .cloned()
            .collect();
        for name in gone {
            self.stop_one(&name);
            self.monitor.remove(&name);
            tracing::info!(source = name, "no longer configured: stopped, its files are kept");
        }
        for source in &new.sources {
            if let Err(error) = self.reload_source(source) {
                tracing::error!(source = source.name, "{error:#}");
            }
        }
        self.config.sources = new.sources;
        tracing::info!("configuration reloaded");
    }

    fn reload_source(&mut self, source: &SourceConfig) -> anyhow::Result<()> {
        let monitor = match self.receivers.get(&source.name) {
            None => Arc::new(SourceMonitor::new(&source.name)),
            Some(receiver) => {
                let changed = changed_keys(&receiver.config, source);
                let stopped = receiver.thread.is_finished();
                if !stopped && reload_effect(&changed).is_none_or(|effect| effect < ReloadEffect::Reconnect) {
                    return Ok(());
                }
                tracing::info!(source = source.name, changed = changed.join(", "), "starting again");
                let monitor = receiver.monitor.clone();
                self.stop_one(&source.name);
                monitor
            }
        };
        let upstream = self.upstream(source, monitor)?;
        let copy = upstream.open()?;
        self.start(upstream, copy)
    }

    fn stop_one(&mut self, name: &str) {
        if let Some(receiver) = self.receivers.remove(name) {
            receiver.stop.request();
            let _ = receiver.thread.join(); // A panic has been reported by the guard.
        }
    }

    /// Asks all before waiting for any, so that they finish side by side.
    fn stop_all(&mut self) {
        for receiver in self.receivers.values() {
            receiver.stop.request();
        }
        for (_, receiver) in std::mem::take(&mut self.receivers) {
            let _ = receiver.thread.join();
        }
    }
}

/// A thread that ends by an error of ours must not leave "receiving" behind.
struct PanicGuard(Arc<SourceMonitor>);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let reason = "an internal error of binlogd ended the receiver; see its log, restart it, and please report it";
            self.0.set_state(SourceState::Stopped { reason: reason.to_owned() });
        }
    }
}

fn make_data_dir(path: &Path) -> anyhow::Result<()> {
    make_folder(&PosixStorage, path)
        .with_context(|| format!("cannot create the data folder {} (data_dir)", path.display()))
}

fn start_logging(config: LogConfig) {
    let level = match config.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let builder =
        tracing_subscriber::fmt().with_max_level(level).with_target(false).with_writer(std::io::stderr);
    // Only fails when a log is set already, as in tests.
    let _ = match config.format {
        LogFormat::Json => builder.json().try_init(),
        LogFormat::Text => {
            use std::io::IsTerminal;
            let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            builder.with_ansi(colour).try_init()
        }
    };
}
