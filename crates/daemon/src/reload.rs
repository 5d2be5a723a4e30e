//! SIGHUP: what another configuration changes in a daemon that runs. A source that is in both and the same is not touched:
//! its connection, its thread and its acknowledgements go on.

use super::{Daemon, Receiver, Reload};
use crate::notifying::Notifying;
use crate::watch::descriptors::TooFew;
use config::{
    AdminConfig, Config, ReloadEffect, ServeConfig, SourceConfig, changed_global_keys, changed_keys,
    reload_effect,
};
use serve::Users;
use status::SourceMonitor;
use std::sync::Arc;

/// What became of a source that is in the new configuration.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    Added,
    Again,
}

impl Daemon {
    /// Reads the configuration again. One that cannot be used changes nothing.
    pub(super) fn reload(&mut self, reload: &Reload<'_>) {
        let loaded = match (reload.read)() {
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
        // Before new sources are started, so that readers leave them what they need.
        if let Some(serve) = &self.serve {
            serve.shared().set_room(self.room_for_readers(&new));
        }
        let mut restart = changed_global_keys(&self.config, &new);
        self.reload_notifying(&new);
        restart.retain(|key| key != "disk_warn" && key != "[notify]");
        self.config.disk_warn = new.disk_warn;
        self.monitor.disk.set_warn(new.disk_warn);
        if !restart.is_empty() {
            tracing::warn!("changed, but in force only after a restart: {}", restart.join(", "));
        }
        let removed = self.remove_others(&new);
        let (added, again) = self.take_up(&new.sources);
        let names: Vec<&str> = new.sources.iter().map(|source| source.name.as_str()).collect();
        self.monitor.arrange(&names);
        let is_another = self.config.sources != new.sources;
        self.config.sources = new.sources;
        self.config.retention = new.retention;
        self.retention.set_rules(new.retention);
        self.reload_admin(new.admin);
        self.reload_serving(new.serve);
        if reload.file.is_some() {
            let sources = self.config.sources.len();
            tracing::info!(sources, added, removed, started_again = again, "configuration reloaded");
        } else if !is_another {
            tracing::warn!(
                "SIGHUP: binlogd was started with flags and not with --config, so nothing could be reloaded; everything goes \
                 on as before. Restart it with other flags, or use a configuration file"
            );
        }
    }

    /// Stops the sources that `new` does not name; how many those were. Their files stay.
    fn remove_others(&mut self, new: &Config) -> usize {
        let is_gone = |name: &&String| new.sources.iter().all(|source| source.name != **name);
        let gone: Vec<String> = self.receivers.keys().filter(is_gone).cloned().collect();
        for name in &gone {
            if let Some(serve) = &self.serve {
                serve.shared().dismiss_readers_of(name);
            }
            // All are asked before any is waited for, so that they finish side by side.
            self.receivers.get(name).into_iter().for_each(Receiver::request_end);
        }
        let mut removed = Vec::new();
        for name in gone {
            match self.stop_one(&name) {
                Ok(()) => {
                    self.monitor.remove(&name);
                    self.controls.remove(&name);
                    let folder = self.monitor.data_dir().join(&name);
                    tracing::info!(
                        source = name,
                        "no longer configured: stopped; its files stay in {}",
                        folder.display()
                    );
                    removed.push(name);
                }
                Err(error) => tracing::error!(source = name, "no longer configured, but {error:#}"),
            }
        }
        if let Some(serve) = self.serve.as_ref().filter(|_| !removed.is_empty()) {
            serve.shared().remove_sources(&removed);
        }
        removed.len()
    }

    /// Starts sources that are new, and again those that changed; how many of each.
    fn take_up(&mut self, sources: &[SourceConfig]) -> (usize, usize) {
        // Those that are received keep their descriptors, wherever others stand in the configuration.
        let runs = |source: &&SourceConfig| {
            self.receivers.get(&source.name).is_some_and(|receiver| !receiver.thread.is_finished())
        };
        let (running, others): (Vec<&SourceConfig>, Vec<&SourceConfig>) = sources.iter().partition(runs);
        let in_order: Vec<SourceConfig> = running.into_iter().chain(others).cloned().collect();
        let too_few = self.too_few_descriptors(&in_order);
        if let Some(TooFew { served, .. }) = too_few {
            let names: Vec<&str> = in_order[served..].iter().map(|source| source.name.as_str()).collect();
            tracing::error!("not received for want of file descriptors: {}", names.join(", "));
        }
        let (mut added, mut again) = (0, 0);
        for (index, source) in in_order.iter().enumerate() {
            let too_few = too_few.filter(|too_few| index >= too_few.served);
            match self.reload_source(source, too_few) {
                Ok(Change::None) => {}
                Ok(Change::Added) => added += 1,
                Ok(Change::Again) => again += 1,
                Err(error) => tracing::error!(source = source.name, "not started again: {error:#}"),
            }
        }
        (added, again)
    }

    /// Takes up other receivers, which are told the state of each source once.
    fn reload_notifying(&mut self, new: &Config) {
        if self.config.notify != new.notify {
            // Those before end first: what they say is not of the new ones.
            self.notifying = None;
            self.notifying = Some(Notifying::start(new.notify.as_ref(), &self.monitor));
            self.config.notify = new.notify.clone();
        }
    }

    /// Takes up other users and certificates of the admin address. Who listens to a page goes on.
    fn reload_admin(&mut self, new: AdminConfig) {
        let Some((admin, _)) = &self.admin else { return };
        match admin.reload(&new) {
            Ok(restart) if restart.is_empty() => {}
            Ok(restart) => {
                tracing::warn!("changed, but in force only after a restart: {}", restart.join(", "));
            }
            Err(error) => {
                tracing::error!(
                    "the admin address goes on with the certificate, users and rights that it had: {error}"
                );
                return;
            }
        }
        // As of [serve].
        self.config.admin = AdminConfig { listen: self.config.admin.listen, ..new };
    }

    /// Takes up other users, limits and certificates. Readers that are connected stay.
    fn reload_serving(&mut self, new: ServeConfig) {
        if let Some(serve) = &self.serve {
            let users = Users::new(&new, &self.config.sources);
            if let Err(error) = serve.reload(&new, users) {
                tracing::error!("readers are served as before: {error}");
                return;
            }
        }
        // What is listened on stays what it is until a restart, and is what the next reload is compared with.
        self.config.serve = ServeConfig { listen: self.config.serve.listen, ..new };
    }

    fn reload_source(&mut self, source: &SourceConfig, too_few: Option<TooFew>) -> anyhow::Result<Change> {
        let mut halted = None;
        let (monitor, change) = match self.receivers.get(&source.name) {
            None => {
                let monitor = Arc::new(SourceMonitor::new(&source.name));
                self.monitor.add(monitor.clone());
                tracing::info!(source = source.name, "newly configured: starting");
                (monitor, Change::Added)
            }
            Some(receiver) => {
                let changed = changed_keys(&receiver.config, source);
                // One that could not end, because its disk hung, was taken out and is wanted again.
                let stopped = receiver.thread.is_finished() || receiver.stop.is_requested();
                if !stopped && reload_effect(&changed).is_none_or(|effect| effect < ReloadEffect::Reconnect) {
                    return Ok(Change::None);
                }
                let names: Vec<&str> = changed.iter().map(|key| key.name).collect();
                tracing::info!(source = source.name, changed = names.join(", "), "starting again");
                let monitor = receiver.monitor.clone();
                let stop = receiver.stop.clone();
                self.stop_one(&source.name)?;
                // What an operator has stopped by a statement stays so until a restart. That may have come while the thread ended.
                halted = stop.halted();
                (monitor, Change::Again)
            }
        };
        self.start(source, monitor, too_few, halted)?;
        Ok(change)
    }
}
