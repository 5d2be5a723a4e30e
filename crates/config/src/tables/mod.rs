//! The tables of the configuration file: each key is declared once, and the declaration gives its type, range, default, flag,
//! what a reload does with it, and its text in the example, the reference and `--help`. See `table!` in table.rs.

mod admin;
mod archive;
mod backup;
mod drill;
mod log;
mod notify;
pub mod password;
mod retention;
mod root;
mod serve;
mod source;
mod tls;
mod users;

pub use admin::{AdminConfig, AdminKeys, AdminUser, AdminUserKeys};
pub use archive::{ArchiveConfig, ArchiveKeys};
pub use backup::{BackupConfig, BackupKeys};
pub use drill::{DrillBackup, DrillConfig, DrillKeys};
pub use log::{LogConfig, LogFormat, LogKeys, LogLevel};
pub use notify::{NotifyConfig, NotifyKeys};
pub use retention::{RetentionConfig, RetentionKeys};
pub(crate) use root::build;
pub use root::{Config, RootKeys};
pub use serve::{Bounds, ServeConfig, ServeKeys, ServeUser, ServeUserKeys};
pub use source::{AckTimeoutAction, FsyncMode, OnFork, OnGap, OnStranger, SourceConfig, SourceKeys};
pub use users::Proof;

use super::key::{Key, Section};
use super::table::Declared;

/// What is declared of a table.
pub fn declared(section: Section) -> Declared {
    match section {
        Section::Root => RootKeys::DECLARED,
        Section::Admin => AdminKeys::DECLARED,
        Section::AdminUser => AdminUserKeys::DECLARED,
        Section::Log => LogKeys::DECLARED,
        Section::Serve => ServeKeys::DECLARED,
        Section::ServeUser => ServeUserKeys::DECLARED,
        Section::Retention => RetentionKeys::DECLARED,
        Section::Archive => ArchiveKeys::DECLARED,
        Section::Backup => BackupKeys::DECLARED,
        Section::Drill => DrillKeys::DECLARED,
        Section::Notify => NotifyKeys::DECLARED,
        Section::Source => SourceKeys::DECLARED,
    }
}

/// The keys of a section, in the order of the example.
pub fn keys_of(section: Section) -> &'static [Key] {
    declared(section).keys
}

/// Every key, in the order of the example.
pub fn all_keys() -> impl Iterator<Item = &'static Key> {
    Section::ALL.into_iter().flat_map(keys_of)
}
