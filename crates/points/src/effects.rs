//! What a transaction does, as a set of kinds.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// A set of kinds of change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effects(u32);

/// Name and bit of each kind. The bits stand in search indexes.
const NAMES: [(Effects, &str); 12] = [
    (Effects::INSERT, "insert"),
    (Effects::UPDATE, "update"),
    (Effects::DELETE, "delete"),
    (Effects::DDL, "ddl"),
    (Effects::TRUNCATE, "truncate"),
    (Effects::DROP, "drop"),
    (Effects::STATEMENT, "statement"),
    (Effects::XA_PREPARE, "xa prepare"),
    (Effects::XA_COMMIT, "xa commit"),
    (Effects::XA_ROLLBACK, "xa rollback"),
    (Effects::ALTER_START, "alter start"),
    (Effects::ALTER_ROLLBACK, "alter rollback"),
];

/// Those bits of a search index that there are.
const INDEXED: u32 = (1 << NAMES.len()) - 1;

impl Effects {
    /// Nothing.
    pub const NONE: Effects = Effects(0);
    /// Rows are written: by row events, or by an INSERT, REPLACE or LOAD DATA.
    pub const INSERT: Effects = Effects(1);
    /// Rows are updated.
    pub const UPDATE: Effects = Effects(2);
    /// Rows are deleted.
    pub const DELETE: Effects = Effects(4);
    /// A definition changes: of a table, a schema, an account.
    pub const DDL: Effects = Effects(8);
    /// A TRUNCATE, which is a definition too.
    pub const TRUNCATE: Effects = Effects(16);
    /// A DROP, which is a definition too.
    pub const DROP: Effects = Effects(32);
    /// A statement that changes rows stands as text in the log: how many it changed is not known.
    pub const STATEMENT: Effects = Effects(64);
    /// An XA transaction is prepared: whether it was committed another transaction says.
    pub const XA_PREPARE: Effects = Effects(128);
    /// A prepared XA transaction is committed.
    pub const XA_COMMIT: Effects = Effects(256);
    /// A prepared XA transaction is rolled back.
    pub const XA_ROLLBACK: Effects = Effects(512);
    /// MariaDB has begun an ALTER that it logs in two phases: nothing is changed yet, and the other half is the definition.
    pub(crate) const ALTER_START: Effects = Effects(1024);
    /// An ALTER that was begun so has failed, and nothing was changed.
    pub(crate) const ALTER_ROLLBACK: Effects = Effects(2048);

    // What a definition is of, and its verb. No search index has these, so that they are found by a walk only.
    /// CREATE.
    pub const CREATES: Effects = Effects(1 << 16);
    /// ALTER.
    pub const ALTERS: Effects = Effects(1 << 17);
    /// RENAME.
    pub const RENAMES: Effects = Effects(1 << 18);
    /// A table.
    pub const OF_TABLE: Effects = Effects(1 << 19);
    /// A view.
    pub const OF_VIEW: Effects = Effects(1 << 20);
    /// A whole schema.
    pub const OF_SCHEMA: Effects = Effects(1 << 21);

    /// Of the bits that stand in a search index.
    pub(crate) const fn from_bits(bits: u16) -> Effects {
        Effects(bits as u32 & INDEXED)
    }

    /// The bits that stand in a search index.
    pub(crate) const fn bits(self) -> u16 {
        (self.0 & INDEXED) as u16
    }

    /// What of it stands in a search index.
    pub(crate) const fn indexed(self) -> Effects {
        Effects(self.0 & INDEXED)
    }

    /// Whether something is changed, or may be when another transaction says so: all but the halves of an ALTER that change nothing.
    pub(crate) const fn changes_something(self) -> bool {
        self.0 & INDEXED & !(Effects::ALTER_START.0 | Effects::ALTER_ROLLBACK.0) != 0
    }

    /// Whether it has all of `other`.
    pub const fn contains(self, other: Effects) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether it has any of `other`.
    pub const fn intersects(self, other: Effects) -> bool {
        self.0 & other.0 != 0
    }

    /// The names of those that are in it.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.iter().filter(move |(effect, _)| self.contains(*effect)).map(|(_, name)| *name)
    }
}

impl BitOr for Effects {
    type Output = Effects;

    fn bitor(self, other: Effects) -> Effects {
        Effects(self.0 | other.0)
    }
}

impl BitOrAssign for Effects {
    fn bitor_assign(&mut self, other: Effects) {
        self.0 |= other.0;
    }
}

impl fmt::Display for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_joined_and_named() {
        let mut effects = Effects::DDL | Effects::DROP;
        assert!(effects.contains(Effects::DROP) && !effects.intersects(Effects::TRUNCATE | Effects::INSERT));
        effects |= Effects::INSERT;
        assert_eq!(effects.to_string(), "insert, ddl, drop");
        assert_eq!(Effects::from_bits(effects.bits()), effects);
        assert_eq!(Effects::NONE.to_string(), "");
    }
}
