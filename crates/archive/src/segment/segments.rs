//! The segments of a finished file as an object of their own, so that the history of years fits memory and snapshots.
//!
//! A file's segments take about 450 bytes for each 4 MiB of it. While it grows, commits name them and the history keeps them. The
//! commit that seals it names an object that has them all ([`Index`]); from then on whoever needs them reads that object
//! ([`Reader::segments`](crate::reader::Reader::segments)). It is JSON in frames of zstd, `zstd -d` shows it, and it is not encrypted, as commits are not.
//!
//! The index says of the segments what is asked most, and the hash of the JSON. Whoever applies the commit has the segments, makes
//! the same JSON of them, and refuses an index that says otherwise; so what is read by it later is what was committed.

use crate::chain::commit::{Index, Segment};
use crate::frames;
use crate::frames::{FramesError, Packer};
use crate::names;
use crate::segment::SEGMENT_BYTES_MAX;
use crate::writer::upload::Owner;
use bytes::Bytes;

/// The longest index that is read, unpacked, in bytes: that of a file of 8 TiB.
const INDEX_BYTES_MAX: u64 = 1 << 30;

/// Level at which an index is compressed.
const INDEX_LEVEL: i32 = 3;

impl Index {
    /// What a commit says of these segments; they stand in `object`.
    pub fn of(segments: &[Segment], object: String) -> Index {
        Index::of_json(segments, &json(segments), object)
    }

    fn of_json(segments: &[Segment], json: &[u8], object: String) -> Index {
        Index {
            object,
            bytes: json.len() as u64,
            sha256: names::sha256(json),
            end: segments.last().map_or(0, |last| last.to),
            segments: segments.len() as u64,
            stored: segments.iter().map(|segment| segment.stored).sum(),
            keys: segments.iter().flat_map(|segment| &segment.keys).cloned().collect(),
        }
    }
}

fn json(segments: &[Segment]) -> Vec<u8> {
    // Only maps with keys that are no text, and numbers that are none, cannot be written.
    serde_json::to_vec(segments).expect("segments can be written as JSON")
}

/// The index of a file's segments, and its object. Two of the same segments have two names: one that was made for a commit that
/// came too late may be about to be deleted.
///
/// # Errors
/// When zstd has no memory left, or the system no random bytes.
pub fn pack(owner: Owner<'_>, segments: &[Segment]) -> Result<(Index, Bytes), FramesError> {
    let json = json(segments);
    let mut stored = Vec::new();
    Packer::new(INDEX_LEVEL)?.pack(&json, &[], &mut stored)?;
    let object = names::index(owner.source, owner.timeline, owner.file, &names::sha256(&stored));
    Ok((Index::of_json(segments, &json, object), stored.into()))
}

/// The segments in an index's object.
///
/// # Errors
/// In words, when it is not the object that the commit names, or cannot be one.
pub fn unpack(index: &Index, stored: &[u8]) -> Result<Vec<Segment>, String> {
    if !names::is_of_content(&index.object, &names::sha256(stored)) {
        return Err(
            "its bytes are not those that its name says: it was damaged or replaced in the store".into()
        );
    }
    let len = usize::try_from(index.bytes).ok().filter(|_| index.bytes <= INDEX_BYTES_MAX);
    let len =
        len.ok_or_else(|| format!("it has {} bytes, and none has more than {INDEX_BYTES_MAX}", index.bytes))?;
    let json = frames::unpack(stored, len).map_err(|error| error.to_string())?;
    if names::sha256(&json) != index.sha256 {
        return Err("what is in it is not what the commit says".into());
    }
    let segments: Vec<Segment> =
        serde_json::from_slice(&json).map_err(|error| format!("it has no segments: {error}"))?;
    let folder = names::folder_of(&index.object);
    if let Some(other) = segments.iter().find(|segment| names::folder_of(&segment.object) != folder) {
        return Err(format!("it names {}, which is another file's", other.object));
    }
    let end = check(&segments)?;
    if end != index.end {
        return Err(format!("its segments end at {end}, and the file at {}", index.end));
    }
    Ok(segments)
}

/// Whether segments are the pieces of one file from its beginning on, one behind the other; where they end.
///
/// # Errors
/// In words, what cannot be.
pub(crate) fn check(segments: &[Segment]) -> Result<u64, String> {
    let mut end = 0;
    for segment in segments {
        if segment.from != end {
            return Err(format!("there is a hole or an overlap at {end}"));
        }
        check_one(segment)?;
        end = segment.to;
    }
    Ok(end)
}

/// Whether a segment can be one, and its object has the name of its content.
pub(crate) fn check_one(segment: &Segment) -> Result<(), String> {
    if segment.is_empty() || segment.len() > SEGMENT_BYTES_MAX as u64 {
        return Err(format!(
            "{} has the bytes {}..{}, which no segment has",
            segment.object, segment.from, segment.to
        ));
    }
    check_object(&segment.object)?;
    if names::is_of_content(&segment.object, &segment.stored_sha256) {
        return Ok(());
    }
    Err(format!("{} does not have the name of its content, {}", segment.object, segment.stored_sha256))
}

/// The name of an object comes from elsewhere, and may be one that leads elsewhere.
pub(crate) fn check_object(object: &str) -> Result<(), String> {
    if object.split('/').all(names::is_part) {
        return Ok(());
    }
    Err(format!("{object:?} is no name of an object"))
}

/// The segment of a file that has byte `at`; `None` behind the end.
pub(crate) fn segment_at(segments: &[Segment], at: u64) -> Option<&Segment> {
    segments.get(segments.partition_point(|segment| segment.to <= at))
}
