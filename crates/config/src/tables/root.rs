//! The top level, and all that a configuration is.

use super::super::document::Document;
use super::super::entry::Unread;
use super::super::error::Findings;
use super::super::key::ReloadEffect::{AtOnce, Restart};
use super::super::key::{Kind, Section, default, unset};
use super::super::table::table;
use super::super::value::DiskWarn;
use super::admin::{self, AdminConfig};
use super::archive::{self, ArchiveConfig};
use super::backup::{self, BackupConfig};
use super::drill::{self, DrillConfig};
use super::log::{LogConfig, LogKeys};
use super::notify::{self, NotifyConfig};
use super::password::Environment;
use super::retention::{RetentionConfig, RetentionKeys};
use super::serve::{self, ServeConfig, ServeKeys};
use super::source::{self, SourceConfig, SourceKeys};
use std::path::PathBuf;

table! {
    /// The top level.
    struct Config, RootKeys for Section::Root, AtOnce;

    /// Folder of the copies, one folder a source inside. It is created when it does not exist.
    ///
    /// A relative path in a configuration file counts from the file's own folder.
    data_dir: PathBuf = default("\"./data\"").flag("data-dir").on_reload(Restart);
    /// Free space of the file system of data_dir below which the log warns, once, and status, /status and
    /// /metrics show it. When the disk is full nothing is acknowledged any more.
    disk_warn: DiskWarn = default("\"10%\"").flag("disk-warn");
    /// Whether finished files get search indexes, in the background and slowly: with them binlogd find passes
    /// over files and parts of files. They take 0.5 % of the log's space at most. Without them binlogd find
    /// makes what it lacks.
    search_index: bool = default("true").flag("search-index").on_reload(Restart);
    /// Further files with [[source]] tables, and [[serve.user]] tables for their readers, and nothing else: a
    /// path, a pattern with * or ?, or a list of them, counted from this file's folder. Files of a pattern
    /// are read in the order of their names; hidden ones are left out. A pattern may match nothing; a file
    /// that is named must be there, and so must the folder. Paths inside such a file count from that file's
    /// own folder. SIGHUP starts sources that are new, and stops those that are gone; their files stay.
    key include: Unread = unset("\"conf.d/*.toml\"").kind(Kind::PATTERNS);
    /// Status, metrics and health over HTTP.
    field admin: AdminConfig;
    /// What binlogd writes to standard error about itself.
    field log: LogConfig;
    /// Replicas and log readers.
    field serve: ServeConfig;
    /// When old files are deleted.
    field retention: RetentionConfig;
    /// Where history is kept for good; `None` when nowhere.
    field archive: Option<ArchiveConfig>;
    /// How long backups stay there.
    field backup: BackupConfig;
    /// When the way back is tried; `None` for never.
    field drill: Option<DrillConfig>;
    /// Who is told of changes; `None` for nobody.
    field notify: Option<NotifyConfig>;
    /// The servers to copy. Never empty; names are unique.
    field sources: Vec<SourceConfig>;
}

/// Checks every value of `document`; `None` when there was an error, which `findings` then holds.
pub(crate) fn build(
    document: &Document,
    environment: Environment<'_>,
    findings: &mut Findings,
) -> Option<Config> {
    let root = RootKeys::read(&document.one(Section::Root), findings);
    let admin = admin::build(document, environment, findings);
    let log = LogKeys::read(&document.one(Section::Log), findings).whole();
    let serving = ServeKeys::read(&document.one(Section::Serve), findings);
    let sources: Vec<SourceKeys> =
        document.all(Section::Source).map(|table| SourceKeys::read(table, findings)).collect();
    if sources.is_empty() {
        findings.error(&document.place, "there is no [[source]]: add one table for each server to copy");
    }
    source::check_unique(&sources, findings);
    // A wrong address is told by itself, and taken for one that is given.
    let serves = serving.listen.value.is_none_or(|listen| listen.is_some());
    let listen = serving.listen.value.flatten();
    let serve = serve::build(serving, document, environment, &sources, findings);
    let retention = RetentionKeys::read(&document.one(Section::Retention), findings).whole();
    let archive = archive::build(document, &sources, findings);
    let backup = backup::build(document, archive.as_ref(), &sources, findings);
    let drill = drill::build(document, archive.as_ref(), findings);
    let notify = notify::build(document, findings);
    let sources: Vec<Option<SourceConfig>> = sources
        .into_iter()
        .map(|keys| source::build(keys, environment, (serves, listen), findings))
        .collect();
    root.whole(admin, log, serve, retention, archive, backup, drill, notify, sources.into_iter().collect())
}
