//! `timeline.toml`: why a timeline began and what is known to be missing before it.

pub mod beginning;
pub mod described;
pub mod extent;
pub mod file_identity;
pub mod files;
pub mod gaps;
pub mod held;
pub mod index;
pub mod offline;

use super::format::read_toml;
use super::storage::Storage;
use crate::purge::purged::Purged;
use crate::timeline::index::replace_file;
use codec::ServerKind;
use codec::gtid::GtidState;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// Name of the description in a timeline's folder.
pub const TIMELINE_FILE: &str = "timeline.toml";

/// Why a timeline began beside the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The folder was empty.
    First,
    /// Another server answers: a failover or a switch-over.
    SourceChanged,
    /// The same server began its logs anew (RESET BINARY LOGS AND GTIDS, RESET MASTER) or was rebuilt.
    SourceReset,
    /// The source lacks transactions that the copy holds: it crashed and cut its tail, or a failover lost them.
    Fork,
    /// The source purged logs before they were copied, or cannot read the end of a file that it wrote.
    Gap,
    /// Another server answers that has nothing in common with the copy, and the operator wants it followed.
    Stranger,
}

impl Reason {
    /// As `timeline.toml` has it.
    pub fn word(self) -> &'static str {
        match self {
            Reason::First => "first",
            Reason::SourceChanged => "source-changed",
            Reason::SourceReset => "source-reset",
            Reason::Fork => "fork",
            Reason::Gap => "gap",
            Reason::Stranger => "stranger",
        }
    }

    /// In words, for people.
    pub fn words(self) -> &'static str {
        match self {
            Reason::First => "the first copy of this source",
            Reason::SourceChanged => "another server answers as the source",
            Reason::SourceReset => "the source began its logs anew",
            Reason::Fork => "the source lacks transactions that the copy holds",
            Reason::Gap => "a gap: the source purged logs before they were copied, or cannot read them",
            Reason::Stranger => "a server answers that shares no history with the copy",
        }
    }
}

/// The content of `timeline.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// UTC, RFC 3339.
    pub began_at: String,
    /// Why.
    pub reason: Reason,
    /// `@@server_uuid`; for MariaDB, which has none, `mariadb-<server_id>`.
    pub server_uuid: String,
    /// `@@version`.
    pub server_version: String,
    /// `mysql` or `mariadb`.
    #[serde(with = "kind_name")]
    pub server_kind: ServerKind,
    /// Name of the timeline's first file.
    pub first_file: String,
    /// GTIDs of the history that the copy held when the timeline began, whichever older timelines hold them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gtid_before: String,
    /// GTIDs that the copy holds on older timelines and the source lacks (a fork).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source_lacks: String,
    /// MariaDB: of the servers in `source_lacks`, the newest transactions that the source has all the same, by its
    /// `gtid_slave_pos`. Its files need not say so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source_shares: String,
    /// GTIDs that no timeline holds because the source had purged them, or cannot read them (a gap).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub missing: String,
    /// Where the source could not read its own file any further, which was the reason of the gap: the end of the timeline before.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unreadable: String,
    /// Folder name of the timeline before this one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub previous: String,
    /// What was purged from it, the oldest first. Written by [`carry_out`](super::purge::carry_out).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub purged: Vec<Purged>,
}

/// The kind of a server by its name: `codec` knows nothing of serde.
pub mod kind_name {
    use codec::ServerKind;
    use serde::{Deserialize, Deserializer, Serializer, de};

    /// Writes the name.
    ///
    /// # Errors
    /// Those of the format.
    pub fn serialize<S: Serializer>(kind: &ServerKind, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(kind.name())
    }

    /// Reads the name.
    ///
    /// # Errors
    /// When it is none.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ServerKind, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl Timeline {
    /// GTIDs of the history before this timeline that its source shares with the older ones. With those of the timeline's
    /// own files they are what a successor must have. Empty where the source began its logs anew, for it may give the
    /// same GTIDs to other transactions.
    pub fn shared_before(&self) -> GtidState {
        let kind = self.server_kind;
        if matches!(self.reason, Reason::First | Reason::SourceReset | Reason::Stranger) {
            return GtidState::empty(kind);
        }
        self.read_set(&self.gtid_before).subtract(&self.read_set(&self.source_lacks))
    }

    /// A set that is not of this kind of server's form is of the other kind's, as [`Timeline::read`] made sure, so that nothing
    /// of it is shared.
    fn read_set(&self, text: &str) -> GtidState {
        let kind = self.server_kind;
        GtidState::parse(kind, text).unwrap_or_else(|_| GtidState::empty(kind))
    }

    /// What is recorded as lost must never be taken for nothing because a byte of it is damaged.
    fn check_sets<'a>(&'a self) -> Result<(), String> {
        let own = [
            ("gtid_before", &self.gtid_before),
            ("source_lacks", &self.source_lacks),
            ("source_shares", &self.source_shares),
            ("missing", &self.missing),
        ];
        let purged = |line: &'a Purged| {
            let before = line.gtid_before.as_ref().map(|before| ("purged.gtid_before", before));
            before.into_iter().chain([("purged.gtids", &line.gtids)])
        };
        for (key, text) in own.into_iter().chain(self.purged.iter().flat_map(purged)) {
            // One from before a migration may be of the other kind.
            if let Err(error) = GtidState::parse(self.server_kind, text)
                && GtidState::parse(self.server_kind.other(), text).is_err()
            {
                return Err(format!("{key} is no set of GTIDs: {error}"));
            }
        }
        Ok(())
    }

    /// Whether it goes on with nothing that older timelines hold: the same GTIDs may mean other transactions there, or they
    /// are of a server that has nothing to do with this one.
    pub(crate) fn begins_history(&self) -> bool {
        matches!(self.reason, Reason::First | Reason::SourceReset | Reason::Stranger)
            || self.is_old_stranger()
    }

    /// Which of `earlier`, the folders of older timelines in their order, it goes on with; `None` where it begins a history. One
    /// whose predecessor was not recorded, or was taken away by hand, goes on with the one before it.
    pub fn goes_on_with<P: AsRef<Path>>(&self, earlier: &[P]) -> Option<usize> {
        if self.begins_history() {
            return None;
        }
        let is_named = |other: &P| !self.previous.is_empty() && other.as_ref().ends_with(&self.previous);
        earlier.iter().position(is_named).or(earlier.len().checked_sub(1))
    }

    /// Before there was a [`Reason::Stranger`], one was recorded as a fork from another server that lacks all. For MariaDB the
    /// record does not tell.
    fn is_old_stranger(&self) -> bool {
        let before = self.previous.split_once('-').map(|(_, uuid)| uuid);
        self.reason == Reason::Fork
            && self.server_kind == ServerKind::MySql
            && before.is_some_and(|uuid| uuid != self.server_uuid)
            && !self.gtid_before.is_empty()
            && self.shared_before().is_empty()
    }

    /// GTIDs that older timelines hold and the source lacked; see [`Timeline::source_lacks`].
    pub fn lacked(&self) -> GtidState {
        if self.begins_history() {
            GtidState::empty(self.server_kind)
        } else {
            self.read_set(&self.source_lacks)
        }
    }

    /// See [`Timeline::source_shares`].
    pub fn shares(&self) -> GtidState {
        self.read_set(&self.source_shares)
    }

    /// GTIDs that no timeline holds, see [`Timeline::missing`].
    pub fn never_held(&self) -> GtidState {
        self.read_set(&self.missing)
    }

    /// GTIDs executed before its first file, by that file's own word, when that file was purged; `None` when it had not said so,
    /// and while nothing is [purged](Timeline::purged).
    pub(crate) fn purged_beginning(&self) -> Option<GtidState> {
        self.purged.first().and_then(|line| Some(self.read_set(line.gtid_before.as_ref()?)))
    }

    /// GTIDs executed up to the end of what was purged; `None` when nothing was.
    pub fn purged_gtids(&self) -> Option<GtidState> {
        self.purged.last().map(|line| self.read_set(&line.gtids))
    }

    /// Reads the timeline's description from its folder.
    ///
    /// # Errors
    /// When the file is missing or cannot be understood; the message names it.
    pub fn read(storage: &dyn Storage, folder: &Path) -> io::Result<Timeline> {
        let path = folder.join(TIMELINE_FILE);
        let text = storage
            .read_to_string(&path)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        Timeline::parse(&text).map_err(|error| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()))
        })
    }

    /// Reads a description from its text.
    ///
    /// # Errors
    /// In words, when it is none.
    pub fn parse(text: &str) -> Result<Timeline, String> {
        let timeline: Timeline = read_toml(text).map_err(|error| error.to_string())?;
        timeline.check_sets()?;
        Ok(timeline)
    }

    /// The description as it stands in its file.
    ///
    /// # Errors
    /// In words; for a description that was read, never.
    pub fn to_text(&self) -> Result<String, String> {
        toml::to_string(self).map_err(|error| error.to_string())
    }

    /// Makes the folder `<source_folder>/NNNN-<server_uuid>` with this description in it, durably.
    ///
    /// # Errors
    /// When there is one already, or as the operating system says.
    pub fn create(&self, storage: &dyn Storage, source_folder: &Path, number: u32) -> io::Result<PathBuf> {
        let name = format!("{number:04}-{}", self.server_uuid);
        let folder = source_folder.join(&name);
        if storage.exists(&folder)? {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} exists", folder.display())));
        }
        // Under a name that is no timeline's until its description is in it: a crash could otherwise leave a folder that
        // looks like the newest timeline and cannot be read.
        let unfinished = source_folder.join(format!(".{name}.tmp"));
        match storage.create_dir(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {} // One that a crash left behind.
        }
        self.write(storage, &unfinished)?;
        storage.rename(&unfinished, &folder)?;
        storage.sync_dir(source_folder)?;
        Ok(folder)
    }

    /// Writes the description into its folder, durably.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn write(&self, storage: &dyn Storage, folder: &Path) -> io::Result<()> {
        let text = self.to_text().map_err(io::Error::other)?;
        replace_file(storage, &folder.join(TIMELINE_FILE), text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::posix::PosixStorage;
    use crate::testing::first_timeline;

    fn sample() -> Timeline {
        Timeline {
            reason: Reason::SourceReset,
            first_file: "mysql-bin.000001".into(),
            gtid_before: "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5".into(),
            previous: "0001-3e11fa47-71ca-11e1-9e33-c80aa9429562".into(),
            ..first_timeline("3e11fa47-71ca-11e1-9e33-c80aa9429562")
        }
    }

    #[test]
    fn what_is_shared_with_older_timelines_is_what_the_source_did_not_lack() {
        let fork = Timeline {
            reason: Reason::Fork,
            source_lacks: "3e11fa47-71ca-11e1-9e33-c80aa9429562:4-5".into(),
            ..sample()
        };
        assert_eq!(fork.shared_before().to_line(), "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-3");
        assert!(sample().shared_before().is_empty(), "a reset shares nothing");
        let other_kind =
            Timeline { reason: Reason::SourceChanged, server_kind: ServerKind::MariaDb, ..sample() };
        assert!(other_kind.shared_before().is_empty());
    }

    /// As it was recorded when every server was followed.
    #[test]
    fn a_fork_from_another_server_that_lacks_all_is_a_stranger() {
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        let fork = |server_uuid: &str, lacks: &str| Timeline {
            reason: Reason::Fork,
            server_uuid: server_uuid.into(),
            source_lacks: format!("{uuid}:{lacks}"),
            ..sample()
        };
        let other = "11111111-2222-3333-4444-555555555555";
        assert!(fork(other, "1-5").begins_history() && fork(other, "1-5").lacked().is_empty());
        assert!(!fork(other, "4-5").begins_history(), "a successor");
        assert!(!fork(uuid, "1-5").begins_history(), "the same server, put back to its beginning");
        assert_eq!(fork(uuid, "1-5").lacked().to_line(), format!("{uuid}:1-5"));
    }

    #[test]
    fn what_is_created_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let timeline = sample();
        let folder = timeline.create(&PosixStorage, dir.path(), 2).unwrap();
        assert_eq!(folder.file_name().unwrap(), "0002-3e11fa47-71ca-11e1-9e33-c80aa9429562");
        assert_eq!(Timeline::read(&PosixStorage, &folder).unwrap(), timeline);
        let path = folder.join(TIMELINE_FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        let changed = text.replace("server_kind = \"mysql\"", "server_kind = \"MySQL\"");
        assert_ne!(text, changed);
        std::fs::write(&path, changed).unwrap();
        let error = Timeline::read(&PosixStorage, &folder).unwrap_err().to_string();
        assert!(error.contains("a kind of server is `mysql` or `mariadb`"), "{error}");
    }

    #[test]
    fn a_reason_has_one_word() {
        use Reason::{First, Fork, Gap, SourceChanged, SourceReset, Stranger};
        for reason in [First, SourceChanged, SourceReset, Fork, Gap, Stranger] {
            let written = toml::Value::try_from(reason).unwrap();
            assert_eq!(written.as_str(), Some(reason.word()));
        }
    }

    #[test]
    fn a_set_that_cannot_be_read_is_refused_and_not_taken_for_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut number = 0;
        let mut read = |timeline: Timeline| {
            number += 1;
            Timeline::read(&PosixStorage, &timeline.create(&PosixStorage, dir.path(), number).unwrap())
        };
        let damaged = || "3e11fa47-71ca-11e1-9e33-c80aa9429562:4-5x".to_owned();
        for (key, timeline) in [
            ("gtid_before", Timeline { gtid_before: damaged(), ..sample() }),
            ("source_lacks", Timeline { source_lacks: damaged(), ..sample() }),
            ("source_shares", Timeline { source_shares: damaged(), ..sample() }),
            ("missing", Timeline { missing: damaged(), ..sample() }),
        ] {
            let error = read(timeline).unwrap_err().to_string();
            let words = format!("timeline.toml: {key} is no set of GTIDs: \"4-5x\"");
            assert!(error.contains(&words), "{error}");
        }
        let migrated = Timeline { source_lacks: "0-1-100,0-2-130".into(), ..sample() };
        assert!(read(migrated).unwrap().lacked().is_empty(), "of the other kind of server");
    }
}
