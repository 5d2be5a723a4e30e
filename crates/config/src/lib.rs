//! What an operator decides: typed keys with units, ranges and defaults.
//!
//! Every key is declared once, in [`tables`]: its type, default and range, its text in `binlogd config example`, its flag of
//! `binlogd run`, and what a reload does with it. A configuration file and a command line become the same
//! [`document::Document`] of values that know where they stand, and [`load`] turns that into a [`Config`], gathering every
//! problem rather than stopping at the first.

#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::panic, clippy::unwrap_used))]
#![allow(clippy::disallowed_methods, reason = "the operator's files")]

pub mod document;
pub mod entry;
pub mod error;
pub mod example;
pub mod key;
pub mod load;
mod reload;
mod table;
pub mod tables;
pub mod value;

#[cfg(test)]
mod tests;

pub use error::ConfigError;
pub use key::ReloadEffect;
pub use load::Loaded;
pub use reload::{changed_global_keys, changed_keys, reload_effect};
pub use tables::{
    AckTimeoutAction, AdminConfig, AdminUser, ArchiveConfig, BackupConfig, Bounds, Config, DrillBackup,
    DrillConfig, FsyncMode, LogConfig, LogFormat, LogLevel, NotifyConfig, OnFork, OnGap, OnStranger, Proof,
    RetentionConfig, ServeConfig, ServeUser, SourceConfig, password,
};
pub use value::{DiskWarn, HostPort, Point, PointPlace, Privileges, Start, duration};
