//! What of a file is worth listing: definitions, the biggest and the longest transactions, writes over time.

use super::bytes::{Bytes, Writing};
use super::error::IndexError;
use super::head::read_effects;
use super::tables::{read_rows, write_rows};
use crate::effects::Effects;
use crate::table::RowCounts;
use crate::transaction::CommitTime;

/// A transaction that defines something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Where it begins in the file.
    pub at: u64,
    /// Where it ends.
    pub end: u64,
    /// When it was committed.
    pub committed: CommitTime,
    /// What it does.
    pub effects: Effects,
    /// The beginning of its statement, without secrets.
    pub text: String,
}

/// A transaction that stands out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peak {
    /// Its identifier; empty for an anonymous one.
    pub gtid: String,
    /// Where it begins in the file.
    pub at: u64,
    /// Where it ends.
    pub end: u64,
    /// When it was committed.
    pub committed: CommitTime,
    /// Whole seconds from its first statement's beginning to its commit; 0 where that is not known.
    pub lasted: u64,
    /// Its rows.
    pub rows: RowCounts,
    /// Some of its tables, by their numbers in the list of tables.
    pub tables: Vec<u32>,
}

/// What was written in some minutes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bucket {
    /// Minutes since 1970 at which it begins.
    pub minute: i64,
    /// Transactions that were committed then.
    pub transactions: u64,
    /// Their rows, as far as they are counted.
    pub rows: u64,
    /// Their bytes in the log.
    pub bytes: u64,
}

/// Writes over time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Minutes of each bucket.
    pub step: u32,
    /// Buckets in which something was written, in order.
    pub buckets: Vec<Bucket>,
}

/// All of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// Definitions, in the order of the file.
    pub definitions: Vec<Definition>,
    /// There are more definitions than are listed.
    pub has_more_definitions: bool,
    /// The biggest transactions, the biggest first.
    pub biggest: Vec<Peak>,
    /// Those that took longest, the longest first.
    pub longest: Vec<Peak>,
    /// Writes over time.
    pub histogram: Histogram,
}

impl Details {
    pub(super) fn write(&self, out: &mut Writing) {
        out.number(self.definitions.len() as u64);
        for definition in &self.definitions {
            write_place(definition.at, definition.end, &definition.committed, out);
            out.number(u64::from(definition.effects.bits()));
            out.text(&definition.text);
        }
        out.flag(self.has_more_definitions);
        for peaks in [&self.biggest, &self.longest] {
            out.number(peaks.len() as u64);
            peaks.iter().for_each(|peak| write_peak(peak, out));
        }
        out.number(u64::from(self.histogram.step));
        out.number(self.histogram.buckets.len() as u64);
        let mut before = 0;
        for bucket in &self.histogram.buckets {
            out.signed(bucket.minute - before);
            before = bucket.minute;
            out.number(bucket.transactions);
            out.number(bucket.rows);
            out.number(bucket.bytes);
        }
    }

    pub(super) fn read(section: &[u8]) -> Result<Details, IndexError> {
        let mut bytes = Bytes(section);
        let mut details = Details::default();
        for _ in 0..bytes.count()? {
            let (at, end, committed) = read_place(&mut bytes)?;
            let (effects, text) = (read_effects(&mut bytes)?, bytes.text()?);
            details.definitions.push(Definition { at, end, committed, effects, text });
        }
        details.has_more_definitions = bytes.flag()?;
        for peaks in [&mut details.biggest, &mut details.longest] {
            for _ in 0..bytes.count()? {
                peaks.push(read_peak(&mut bytes)?);
            }
        }
        details.histogram.step = bytes.small()?;
        let mut minute = 0_i64;
        for _ in 0..bytes.count()? {
            minute = minute.checked_add(bytes.signed()?).ok_or(IndexError::Damaged("a minute is none"))?;
            details.histogram.buckets.push(Bucket {
                minute,
                transactions: bytes.number()?,
                rows: bytes.number()?,
                bytes: bytes.number()?,
            });
        }
        bytes.end()?;
        Ok(details)
    }
}

fn write_place(at: u64, end: u64, committed: &CommitTime, out: &mut Writing) {
    out.number(at);
    out.number(end - at);
    out.signed(committed.micros);
    out.flag(committed.is_exact);
}

fn read_place(bytes: &mut Bytes<'_>) -> Result<(u64, u64, CommitTime), IndexError> {
    let at = bytes.number()?;
    let end = at.checked_add(bytes.number()?).ok_or(IndexError::Damaged("a place is too large"))?;
    Ok((at, end, CommitTime { micros: bytes.signed()?, is_exact: bytes.flag()? }))
}

fn write_peak(peak: &Peak, out: &mut Writing) {
    out.text(&peak.gtid);
    write_place(peak.at, peak.end, &peak.committed, out);
    out.number(peak.lasted);
    write_rows(&peak.rows, out);
    out.number(peak.tables.len() as u64);
    peak.tables.iter().for_each(|table| out.number(u64::from(*table)));
}

fn read_peak(bytes: &mut Bytes<'_>) -> Result<Peak, IndexError> {
    let gtid = bytes.text()?;
    let (at, end, committed) = read_place(bytes)?;
    let (lasted, rows) = (bytes.number()?, read_rows(bytes)?);
    let mut tables = Vec::new();
    for _ in 0..bytes.count()? {
        tables.push(bytes.small()?);
    }
    Ok(Peak { gtid, at, end, committed, lasted, rows, tables })
}
