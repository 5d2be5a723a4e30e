//! The head of an index: what of the whole file tells whether it need be looked at.

use super::bytes::{Bytes, Writing};
use super::error::IndexError;
use super::identity::Identity;
use super::origins::GtidRanges;
use crate::effects::Effects;

/// What is known of the file as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Of which file.
    pub identity: Identity,
    /// Complete transactions in it.
    pub transactions: u64,
    /// Where the last of them ends.
    pub end: u64,
    /// When the first was committed and when the last, by the clock: times are not in order. In microseconds since 1970; of no
    /// meaning without transactions.
    pub committed: (i64, i64),
    /// Their GTIDs.
    pub gtids: GtidRanges,
    /// What they do, together.
    pub effects: Effects,
    /// Rows of the transaction with the most; `u64::MAX` where one cannot be counted.
    pub most_rows: u64,
    /// Bytes of the biggest transaction.
    pub most_bytes: u64,
    /// A part of a transaction could not be looked at.
    pub has_unread: bool,
    /// The list of tables is not all of them: blocks that have others say so.
    pub has_more_tables: bool,
}

impl Head {
    pub(super) fn write(&self, out: &mut Writing) {
        self.identity.write(out);
        out.number(self.transactions);
        out.number(self.end);
        out.signed(self.committed.0);
        out.signed(self.committed.1);
        self.gtids.write(out);
        out.number(u64::from(self.effects.bits()));
        out.number(self.most_rows);
        out.number(self.most_bytes);
        out.flag(self.has_unread);
        out.flag(self.has_more_tables);
    }

    pub(super) fn read(section: &[u8]) -> Result<Head, IndexError> {
        let mut bytes = Bytes(section);
        let head = Head {
            identity: Identity::read(&mut bytes)?,
            transactions: bytes.number()?,
            end: bytes.number()?,
            committed: (bytes.signed()?, bytes.signed()?),
            gtids: GtidRanges::read(&mut bytes)?,
            effects: read_effects(&mut bytes)?,
            most_rows: bytes.number()?,
            most_bytes: bytes.number()?,
            has_unread: bytes.flag()?,
            has_more_tables: bytes.flag()?,
        };
        bytes.end()?;
        Ok(head)
    }
}

pub(super) fn read_effects(bytes: &mut Bytes<'_>) -> Result<Effects, IndexError> {
    let bits = u16::try_from(bytes.number()?).map_err(|_| IndexError::Damaged("a set of kinds is none"))?;
    Ok(Effects::from_bits(bits))
}
