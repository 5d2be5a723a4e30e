//! What is compared: a value of `sync_binlog`, or no binary log.

use crate::model::Settings;
use anyhow::Context;
use std::fmt;

/// The baseline of all ratios, as it is printed.
pub(super) const NO_BINARY_LOG: &str = "no binary log";
const WITH_BINLOGD: &str = ", binlogd attached";

/// How the source writes its binary log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Configuration {
    /// It writes none.
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
    pub(super) fn all(settings: &Settings, semi_sync: bool) -> anyhow::Result<Vec<Configuration>> {
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

    /// As it is printed.
    ///
    /// # Errors
    /// When there is none of that name.
    pub(super) fn named(name: &str) -> anyhow::Result<Configuration> {
        if name == NO_BINARY_LOG {
            return Ok(Configuration::NoBinaryLog);
        }
        let value = name.strip_suffix(WITH_BINLOGD).unwrap_or(name).strip_prefix("sync_binlog ");
        let every = value.and_then(|value| value.parse().ok());
        let every = every.with_context(|| format!("this study has no configuration {name:?}"))?;
        Ok(Configuration::Sync { every, attached: name.ends_with(WITH_BINLOGD) })
    }

    /// binlogd is attached.
    pub(super) fn attached(self) -> bool {
        matches!(self, Configuration::Sync { attached: true, .. })
    }

    /// As the published study names it: the value, or `off`.
    pub(super) fn published(self) -> String {
        match self {
            Configuration::NoBinaryLog => "off".to_owned(),
            Configuration::Sync { every, .. } => every.to_string(),
        }
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
            assert_eq!(Configuration::named(name).unwrap(), *configuration);
        }
        assert!(Configuration::named("sync_binlog").is_err());
        assert_eq!(Configuration::all(&settings, false).unwrap().len(), 3);
    }
}
