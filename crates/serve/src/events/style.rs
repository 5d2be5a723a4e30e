//! Whose words the rows of SHOW BINLOG EVENTS have.

use crate::sql::version_number;
use codec::ServerKind;

/// Whose words are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    pub(super) kind: ServerKind,
    /// As [`version_number`] has it.
    pub(super) version: u32,
}

impl Style {
    pub(super) fn of(kind: ServerKind, version: &str) -> Style {
        Style { kind, version: version_number(version) }
    }
}

/// `append_identifier` in backticks.
pub(super) fn quoted(name: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'`'];
    for byte in name {
        quoted.extend(std::iter::repeat_n(*byte, if *byte == b'`' { 2 } else { 1 }));
    }
    quoted.push(b'`');
    quoted
}
