//! What an operator decides: typed keys with units, ranges and defaults.
//!
//! Every key is described once, in [`keys`]: its default, its allowed values, its text in `binlogd config example`, its
//! flag of `binlogd run`, and what a reload does with it. A configuration file ([`mod@file`]) and a command line become the
//! same [`given::Document`] of values that know where they stand, and [`load`] turns that into a [`Config`], gathering
//! every problem rather than stopping at the first.

mod archive;
pub mod duration;
pub mod error;
pub mod example;
mod file;
pub mod given;
mod include;
pub mod key;
pub mod keys;
pub mod load;
pub mod password;
mod point;
mod privileges;
mod reader;
mod reload;
mod settings;
mod space;
pub mod value;

#[cfg(test)]
mod tests;

pub use error::ConfigError;
pub use key::ReloadEffect;
pub use load::Loaded;
pub use point::{Point, PointPlace};
pub use privileges::Privileges;
pub use reload::{changed_global_keys, changed_keys, reload_effect};
pub use settings::{AckTimeoutAction, FsyncMode, OnFork, OnGap, OnStranger, SourceConfig};
pub use settings::{
    AdminConfig, AdminUser, ArchiveConfig, Bounds, Config, LogConfig, LogFormat, LogLevel, Proof,
    RetentionConfig, ServeConfig, ServeUser,
};
pub use space::DiskWarn;
pub use value::{HostPort, Start};
