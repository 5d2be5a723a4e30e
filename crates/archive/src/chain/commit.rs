//! One change of the archive, as it stands in an object of its own.
//!
//! Commits are numbered from 1 on, and each names the hash of the one before. A commit is made by a conditional creation under
//! the next number, so of two writers one is told that it comes too late, whatever its clock says. Nothing counts that no
//! commit names.

use crate::chain::backup::BackupRecord;
use crate::chain::signed::{self, Signed};
use crate::keys::signing::SigningKey;
use crate::names;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The form of commits and snapshots that this version writes, and the newest that it reads. In format 1 no file had an
/// [`Index`], and the history kept all segments. Before format 3 the history kept nothing of a file that expired. Before format 4
/// there were no backups, and nobody signed; before format 5 none by CLONE.
pub const FORMAT: u32 = 5;

/// The longest commit that is read, in bytes. GTID sets make the longest.
pub(crate) const COMMIT_BYTES_MAX: u64 = 64 << 20;

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commit {
    /// [`FORMAT`] of who wrote it.
    pub format: u32,
    /// Its number; the first is 1.
    pub seq: u64,
    /// Hexadecimal SHA-256 of the bytes of the commit before; empty in the first.
    pub previous: String,
    /// Who wrote it.
    pub writer: Writer,
    /// When, by the writer's clock. Nothing is decided by it but how long what was removed is still kept.
    pub at: Timestamp,
    /// What changes, in order.
    pub changes: Vec<Change>,
    /// Who signed it; `None` for nobody. It must be the last value: what is signed are the bytes before its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<Signed>,
}

/// Who writes: one run of one process for one source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Writer {
    /// Drawn at random at its start.
    pub id: String,
    /// One more than that of the writer before it; never less than in an earlier commit.
    pub epoch: u64,
    /// The name of its machine.
    pub host: String,
    /// Of binlogd.
    pub version: String,
}

impl Writer {
    /// A new run, on a machine of this name.
    pub fn of_this_run(host: String, version: String) -> Writer {
        Writer { id: uuid::Uuid::new_v4().to_string(), epoch: 0, host, version }
    }
}

/// One thing that changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Change {
    /// A timeline begins, or its record has changed.
    Timeline {
        /// Its name in the archive, `NNNN-<server_uuid>`, which another copy may number in another way.
        timeline: String,
        /// The content of its `timeline.toml`, without what was purged on that machine.
        record: String,
    },
    /// More of a file is there.
    Grown(Grown),
    /// Nothing will be added to a file any more.
    Sealed {
        /// The timeline.
        timeline: String,
        /// The file.
        file: String,
        /// Its length in bytes.
        size: u64,
        /// Hexadecimal SHA-256 of the whole plain file.
        sha256: String,
        /// The object that lists its objects.
        list: String,
        /// The object that has its segments, which the history does not keep from then on; `None` in format 1, where it does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        index: Option<Index>,
    },
    /// Small segments have one in their place that has all of their bytes.
    Merged {
        /// The timeline.
        timeline: String,
        /// The file.
        file: String,
        /// What comes in the place of the segments in its range.
        segment: Segment,
    },
    /// Retention took files: the archive does not have them any more. Their objects go later.
    Expired {
        /// The timeline.
        timeline: String,
        /// Names of the files, the oldest first.
        files: Vec<String>,
        /// The rule that took them.
        why: String,
    },
    /// Files that retention took are there again: their objects were not deleted yet.
    Restored {
        /// The timeline.
        timeline: String,
        /// Names of the files, the oldest first: the newest that expired.
        files: Vec<String>,
    },
    /// A backup is whole.
    Backup(WholeBackup),
    /// Retention took backups: the archive does not have them any more. Their objects go later.
    BackupsExpired {
        /// Their names.
        backups: Vec<String>,
        /// The rule that took them.
        why: String,
    },
    /// There is a snapshot of everything up to an earlier commit.
    Snapshot {
        /// The number of that commit.
        through: u64,
        /// The object.
        object: String,
    },
    /// Objects that no commit up to here names are about to be deleted: none after this may name them.
    Doomed {
        /// Their names. One that ends in a slash is the folder of a file that expired: nothing else of it is left.
        objects: Vec<String>,
    },
}

/// [`Change::Backup`]: a backup is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WholeBackup {
    /// What it is.
    pub record: BackupRecord,
    /// Hexadecimal SHA-256 of the whole plain stream.
    pub sha256: String,
    /// The object that lists its objects.
    pub list: String,
    /// The object that has its pieces.
    pub index: Index,
}

/// See [`Change::Grown`]. It begins where the file ended and ends at a boundary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grown {
    /// The timeline.
    pub timeline: String,
    /// The file.
    pub file: String,
    /// The new pieces, one after another.
    pub segments: Vec<Segment>,
    /// Hexadecimal SHA-256 of the file's format description event, by which another copy of this file is known.
    pub head: String,
    /// GTIDs executed before the file by its own word; `None` when it says nothing of that (yet).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gtids_before: Option<String>,
    /// GTIDs executed up to the end of the last segment.
    pub gtids: String,
    /// Of the last event, by the source's clock, in seconds since 1970; 0 when no event has a time.
    pub last_time: u32,
}

/// An immutable object with a piece of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// Offset in the file at which it begins.
    pub from: u64,
    /// Offset at which it ends. The end of a commit's last segment is a boundary; others may end anywhere.
    pub to: u64,
    /// Hexadecimal SHA-256 of the plain bytes.
    pub sha256: String,
    /// The object's name.
    pub object: String,
    /// The object's length in bytes.
    pub stored: u64,
    /// Hexadecimal SHA-256 of the object's bytes.
    pub stored_sha256: String,
    /// Who can decrypt it, one public key or its fingerprint each; empty when it is not encrypted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
}

impl Segment {
    /// Plain bytes in it.
    pub fn len(&self) -> u64 {
        self.to - self.from
    }

    /// True for a piece of nothing, which no sound commit has.
    pub fn is_empty(&self) -> bool {
        self.to <= self.from
    }
}

/// Where the segments of a finished file stand, and what is asked most of them ([`segments`](crate::segment::segments)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// The object: JSON, a list of [`Segment`], in frames of zstd.
    pub object: String,
    /// Length of the JSON in bytes.
    pub bytes: u64,
    /// Hexadecimal SHA-256 of the JSON.
    pub sha256: String,
    /// End of the last segment.
    pub end: u64,
    /// How many segments.
    pub segments: u64,
    /// Bytes of their objects.
    pub stored: u64,
    /// All keys of which one opens any of them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub keys: BTreeSet<String>,
}

/// A commit as it stands in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// What is uploaded.
    pub bytes: Vec<u8>,
    /// The bytes' hexadecimal SHA-256, which the next commit names.
    pub hash: String,
}

impl Commit {
    /// The bytes of the object. Equal commits give equal bytes.
    pub fn encode(&self) -> Encoded {
        // Only maps with keys that are no text, and numbers that are none, cannot be written.
        let mut bytes = serde_json::to_vec_pretty(self).expect("a commit can be written as JSON");
        bytes.push(b'\n');
        let hash = names::sha256(&bytes);
        Encoded { bytes, hash }
    }

    /// The same, signed as one of `source`.
    pub(crate) fn sign(mut self, key: &SigningKey, source: &str) -> Commit {
        let unsigned = Signed::by(key, source);
        self.signed = Some(unsigned.clone());
        let signature = signed::signature_of(&self.encode().bytes, key);
        self.signed = Some(Signed { signature, ..unsigned });
        self
    }

    /// Reads one.
    ///
    /// # Errors
    /// In words, when it is none, of a later format, or signed by another one than it says.
    pub fn decode(bytes: &[u8]) -> Result<Commit, String> {
        #[derive(Deserialize)]
        struct Form {
            format: u32,
        }
        let form: Form =
            serde_json::from_slice(bytes).map_err(|error| format!("it is no commit: {error}"))?;
        if form.format > FORMAT {
            return Err(format!(
                "it has format {}, and this version of binlogd reads up to {FORMAT}: use a newer one",
                form.format
            ));
        }
        let commit: Commit =
            serde_json::from_slice(bytes).map_err(|error| format!("it is no commit: {error}"))?;
        commit.signed.as_ref().map_or(Ok(()), |signed| signed::check(bytes, signed))?;
        Ok(commit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_read_as_it_was_written() {
        let commit = Commit {
            format: FORMAT,
            seq: 2,
            previous: "ab".into(),
            writer: Writer { id: "w".into(), epoch: 1, host: "db1".into(), version: "0".into() },
            at: Timestamp::UNIX_EPOCH,
            changes: vec![Change::Doomed { objects: vec!["a".into()] }],
            signed: None,
        };
        let encoded = commit.encode();
        assert_eq!(Commit::decode(&encoded.bytes).unwrap(), commit);
        assert_eq!(encoded.hash, names::sha256(&encoded.bytes));
    }

    #[test]
    fn what_a_later_version_wrote_is_refused_by_name() {
        let error = Commit::decode(br#"{"format": 9, "other": []}"#).unwrap_err();
        assert!(error.contains("format 9") && error.contains("newer"), "{error}");
        assert!(Commit::decode(b"{").unwrap_err().contains("no commit"));
    }
}
