//! What an operator decides: typed keys with units, ranges and defaults.
//!
//! Every key is described once, in [`keys`]: its default, its allowed values, its text in `binlogd config example`, its
//! flag of `binlogd run`, and what a reload does with it. A configuration file ([`mod@file`]) and a command line become the
//! same [`given::Document`] of values that know where they stand, and [`load`] turns that into a [`Config`], gathering
//! every problem rather than stopping at the first.

mod archive;
pub(crate) mod duration;
pub(crate) mod error;
pub(crate) mod example;
mod file;
pub(crate) mod given;
mod include;
pub(crate) mod key;
pub(crate) mod keys;
pub(crate) mod load;
pub(crate) mod password;
mod point;
mod privileges;
mod reader;
mod reload;
mod settings;
mod space;
pub mod value;

#[cfg(test)]
mod tests;

pub(crate) use error::ConfigError;
pub(crate) use key::ReloadEffect;
pub(crate) use load::Loaded;
pub use point::{Point, PointPlace};
pub use privileges::Privileges;
pub(crate) use reload::{changed_global_keys, changed_keys, reload_effect};
#[cfg(test)]
pub(crate) use settings::AdminUser;
pub use settings::{AckTimeoutAction, FsyncMode, OnFork, OnGap, OnStranger, SourceConfig};
pub(crate) use settings::{
    AdminConfig, ArchiveConfig, Bounds, Config, LogConfig, LogFormat, LogLevel, Proof, RetentionConfig,
    ServeConfig, ServeUser,
};
pub(crate) use space::DiskWarn;
pub use value::{HostPort, Start};
