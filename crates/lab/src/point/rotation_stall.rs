//! What is compared: when the log is synced, how large its files are, and what else is done against the stall.

use crate::model::Settings;
use anyhow::{Context, ensure};
use std::fmt;
use std::str::FromStr;

const BINLOGD: &str = "binlogd attached";
const DIRTY: &str = "vm.dirty_bytes of ";
const SYNC: &str = "sync_binlog ";
const FILES: &str = "files of ";
const MIB: &str = " MiB";

/// A configuration. `innodb_flush_log_at_trx_commit` is 2 in all: what differs is the binary log's sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Configuration {
    /// `sync_binlog`.
    pub every: u32,
    /// MiB of a log file: `max_binlog_size`.
    pub file_mib: u32,
    /// What is beside it.
    pub beside: Beside,
}

/// What is beside the source's own variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Beside {
    /// Nothing.
    Nothing,
    /// binlogd by semi-sync (AFTER_SYNC, `fsync_mode` 1): the source may be as relaxed as it is.
    Binlogd,
    /// The kernel lets no more than this be dirty, and begins to write at an eighth of it.
    DirtyBytes {
        /// `vm.dirty_bytes` in MiB.
        mib: u32,
    },
}

impl Configuration {
    /// Those that the settings name. The first is what the others are to be better than.
    ///
    /// # Errors
    /// When a setting has no sense.
    pub fn all(settings: &Settings, semi_sync: bool) -> anyhow::Result<Vec<Configuration>> {
        let file_mib =
            mib(settings, "file_mib", 1024)?.context("--set file_mib=none: files have some size")?;
        let plain = |every| Configuration { every, file_mib, beside: Beside::Nothing };
        let mut all: Vec<Configuration> = settings.list("sync_binlog")?.into_iter().map(plain).collect();
        if let Some(file_mib) = mib(settings, "small_file_mib", 1024)? {
            all.push(Configuration { file_mib, ..plain(0) });
        }
        if let Some(mib) = mib(settings, "dirty_mib", 1 << 20)? {
            all.push(Configuration { beside: Beside::DirtyBytes { mib }, ..plain(0) });
        }
        let attached: String = settings.get("attached")?;
        ensure!(["yes", "no"].contains(&attached.as_str()), "--set attached={attached}: yes or no");
        if semi_sync && attached == "yes" {
            all.push(Configuration { beside: Beside::Binlogd, ..plain(0) });
        }
        Ok(all)
    }

    /// Bytes of a log file.
    pub fn file_bytes(self) -> u64 {
        u64::from(self.file_mib) << 20
    }

    /// The dirty bytes at which the kernel begins to write, and those at which it holds writers back, where they are set.
    pub fn dirty_bytes(self) -> Option<(u64, u64)> {
        let Beside::DirtyBytes { mib } = self.beside else { return None };
        let most = u64::from(mib) << 20;
        Some((most / 8, most))
    }
}

/// A setting in MiB; none for `none`.
fn mib(settings: &Settings, name: &str, most: u32) -> anyhow::Result<Option<u32>> {
    if settings.get::<String>(name)? == "none" {
        return Ok(None);
    }
    let size = settings.get(name)?;
    ensure!((1..=most).contains(&size), "--set {name}={size}: from 1 to {most}, in MiB");
    Ok(Some(size))
}

impl fmt::Display for Configuration {
    /// In another order than the configurations of `sync-binlog`, whose names must differ.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Configuration { every, file_mib, beside } = self;
        write!(f, "{SYNC}{every}, {FILES}{file_mib}{MIB}")?;
        match beside {
            Beside::Nothing => Ok(()),
            Beside::Binlogd => write!(f, ", {BINLOGD}"),
            Beside::DirtyBytes { mib } => write!(f, ", {DIRTY}{mib}{MIB}"),
        }
    }
}

impl FromStr for Configuration {
    type Err = anyhow::Error;

    /// As it is printed.
    fn from_str(text: &str) -> anyhow::Result<Configuration> {
        let read = || {
            let mut parts = text.splitn(3, ", ");
            let every = parts.next()?.strip_prefix(SYNC)?.parse().ok()?;
            let mib = |part: &str, begins| part.strip_prefix(begins)?.strip_suffix(MIB)?.parse().ok();
            let file_mib = mib(parts.next()?, FILES)?;
            let beside = match parts.next() {
                None => Beside::Nothing,
                Some(BINLOGD) => Beside::Binlogd,
                Some(part) => Beside::DirtyBytes { mib: mib(part, DIRTY)? },
            };
            Some(Configuration { every, file_mib, beside })
        };
        read().with_context(|| format!("rotation-stall has no configuration {text:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(small_file_mib: &'static str) -> Settings {
        Settings::of([
            ("sync_binlog", "0,1000"),
            ("file_mib", "1024"),
            ("small_file_mib", small_file_mib),
            ("dirty_mib", "128"),
            ("attached", "yes"),
        ])
    }

    #[test]
    fn names_are_read_back() {
        let all = Configuration::all(&settings("64"), true).unwrap();
        let names: Vec<String> = all.iter().map(Configuration::to_string).collect();
        assert_eq!(
            names,
            [
                "sync_binlog 0, files of 1024 MiB",
                "sync_binlog 1000, files of 1024 MiB",
                "sync_binlog 0, files of 64 MiB",
                "sync_binlog 0, files of 1024 MiB, vm.dirty_bytes of 128 MiB",
                "sync_binlog 0, files of 1024 MiB, binlogd attached",
            ]
        );
        for (name, configuration) in names.iter().zip(&all) {
            assert_eq!(name.parse::<Configuration>().unwrap(), *configuration);
        }
        assert_eq!(all[3].dirty_bytes(), Some((16 << 20, 128 << 20)));
        assert!("sync_binlog 0".parse::<Configuration>().is_err());
        assert!("sync_binlog 0, files of 1 MiB, something".parse::<Configuration>().is_err());
    }

    #[test]
    fn what_is_left_out_and_what_cannot_be() {
        assert_eq!(Configuration::all(&settings("none"), false).unwrap().len(), 3);
        let error = Configuration::all(&settings("1025"), true).unwrap_err().to_string();
        assert!(error.contains("small_file_mib=1025"), "{error}");
    }
}
