//! What is compared: a value of `sync_binlog`, or no binary log.

use crate::model::Settings;
use anyhow::Context;
use std::fmt;
use std::str::FromStr;

const NO_BINARY_LOG: &str = "no binary log";
const WITH_BINLOGD: &str = ", binlogd attached";

/// How the source writes its binary log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Configuration {
    /// It writes none: the baseline of all ratios.
    NoBinaryLog,
    /// It syncs it after so many groups of commits; 0: never but at a rotation.
    Sync {
        /// `sync_binlog`.
        every: u32,
        /// binlogd is attached by semi-sync (AFTER_SYNC, `fsync_mode` 1).
        attached: bool,
    },
}

impl Configuration {
    /// Those that the settings name: `sync_binlog`, and of `attached` with binlogd, where `none` is none.
    ///
    /// # Errors
    /// When a setting has no sense.
    pub fn all(settings: &Settings, semi_sync: bool) -> anyhow::Result<Vec<Configuration>> {
        let mut all = Vec::new();
        for every in settings.list("sync_binlog")? {
            all.push(Configuration::Sync { every, attached: false });
        }
        all.push(Configuration::NoBinaryLog);
        if semi_sync && settings.get::<String>("attached")?.trim() != "none" {
            for every in settings.list("attached")? {
                all.push(Configuration::Sync { every, attached: true });
            }
        }
        Ok(all)
    }

    /// binlogd is attached.
    pub fn attached(self) -> bool {
        matches!(self, Configuration::Sync { attached: true, .. })
    }

    /// As the published study names it: the value, or `off`.
    pub fn published(self) -> String {
        match self {
            Configuration::NoBinaryLog => "off".to_owned(),
            Configuration::Sync { every, .. } => every.to_string(),
        }
    }
}

impl FromStr for Configuration {
    type Err = anyhow::Error;

    /// As it is printed.
    fn from_str(text: &str) -> anyhow::Result<Configuration> {
        if text == NO_BINARY_LOG {
            return Ok(Configuration::NoBinaryLog);
        }
        let value = text.strip_suffix(WITH_BINLOGD).unwrap_or(text).strip_prefix("sync_binlog ");
        let every = value.and_then(|value| value.parse().ok());
        let every = every.with_context(|| format!("sync-binlog has no configuration {text:?}"))?;
        Ok(Configuration::Sync { every, attached: text.ends_with(WITH_BINLOGD) })
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Configuration::NoBinaryLog => f.write_str(NO_BINARY_LOG),
            Configuration::Sync { every, attached } => {
                write!(f, "sync_binlog {every}{}", if *attached { WITH_BINLOGD } else { "" })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        let settings = Settings::of([("sync_binlog", "0,1000"), ("attached", "1")]);
        let all = Configuration::all(&settings, true).unwrap();
        let names: Vec<String> = all.iter().map(Configuration::to_string).collect();
        assert_eq!(
            names,
            ["sync_binlog 0", "sync_binlog 1000", "no binary log", "sync_binlog 1, binlogd attached"]
        );
        for (name, configuration) in names.iter().zip(&all) {
            assert_eq!(name.parse::<Configuration>().unwrap(), *configuration);
        }
        assert!("sync_binlog".parse::<Configuration>().is_err());
        assert_eq!(Configuration::all(&settings, false).unwrap().len(), 3);
    }
}
