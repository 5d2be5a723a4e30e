//! A position as the status has it in JSON: `{"file": "mysql-bin.000003", "position": 1234}`, or null.

use codec::Position;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

#[derive(Serialize)]
struct Shown<'a> {
    file: &'a str,
    position: u64,
}

#[derive(Deserialize)]
struct Read {
    file: Arc<str>,
    position: u64,
}

pub(crate) fn serialize<S: Serializer>(at: &Option<Position>, serializer: S) -> Result<S::Ok, S::Error> {
    let shown = at.as_ref().map(|at| Shown { file: &at.file, position: at.offset });
    shown.serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Position>, D::Error> {
    let read = Option::<Read>::deserialize(deserializer)?;
    Ok(read.map(|read| Position { file: read.file, offset: read.position }))
}
