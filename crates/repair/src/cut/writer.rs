//! The second walk, with the bytes.

use super::choice::Judge;
use super::error::NoCut;
use super::head::{format_description, gtids_before};
use super::span::{Request, Span};
use super::tour::{Executed, Place, Visitor, tour};
use crate::history::{Copied, NoCopy};
use binlog::storage::ReadFile;
use codec::event::{BINLOG_MAGIC, EventHeader, FormatDescription, HEADER_LEN};
use points::transaction::Transaction;
use std::io::{self, Write};

/// So much is copied at once, in bytes.
const COPIED_AT_ONCE: usize = 1 << 20;

/// Writes one binary log. `progress` is told the bytes that were walked.
///
/// # Errors
/// When a file cannot be read any more, or the reader does not take it.
pub fn write(
    copied: &Copied,
    request: &Request,
    span: &Span,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<(), NoCut> {
    let files = copied.files().map_err(NoCut::Copy)?;
    let mut writer = Writer {
        span,
        judge: Judge::new(&request.choice),
        out,
        format: None,
        has_head: false,
        pending: 0..0,
        buffer: Vec::new(),
    };
    tour(copied, &files, &span.start, &mut writer, progress)?;
    writer.out.flush().map_err(NoCut::Write)
}

/// A format description, read and as it stands.
type Format = (FormatDescription, Vec<u8>);

struct Writer<'a> {
    span: &'a Span,
    judge: Judge<'a>,
    out: &'a mut dyn Write,
    /// That of the file that is walked.
    format: Option<Format>,
    has_head: bool,
    /// Bytes of the file that are to be copied.
    pending: std::ops::Range<u64>,
    buffer: Vec<u8>,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), NoCut> {
        self.out.write_all(bytes).map_err(NoCut::Write)
    }

    /// What stands before the first transaction.
    fn head(&mut self) -> Result<(), NoCut> {
        let Some((format, event)) = self.format.take() else { return Ok(()) };
        self.put(&BINLOG_MAGIC)?;
        let event = format_description(&event, format.checksum);
        self.put(&event)?;
        if let Some(before) = &self.span.before {
            let at = (BINLOG_MAGIC.len() + event.len()) as u64;
            self.put(&gtids_before(before, &format, at))?;
        }
        self.has_head = true;
        Ok(())
    }

    fn copy(&mut self, place: Place<'_>) -> Result<(), NoCut> {
        while !self.pending.is_empty() {
            let left = self.pending.end - self.pending.start;
            let len = usize::try_from(left).unwrap_or(usize::MAX).min(COPIED_AT_ONCE);
            self.buffer.resize(len, 0);
            read_exactly(place, &mut self.buffer, self.pending.start)?;
            self.out.write_all(&self.buffer).map_err(NoCut::Write)?;
            self.pending.start += len as u64;
        }
        Ok(())
    }
}

fn read_exactly(place: Place<'_>, buffer: &mut [u8], at: u64) -> Result<(), NoCut> {
    let opened: &dyn ReadFile = place.opened;
    let read = opened.read_full_at(buffer, at).and_then(|read| {
        if read == buffer.len() { Ok(()) } else { Err(io::Error::from(io::ErrorKind::UnexpectedEof)) }
    });
    read.map_err(|error| NoCut::Copy(NoCopy::Read { path: place.file.path.clone(), error }))
}

impl Visitor for Writer<'_> {
    fn file(&mut self, place: Place<'_>, format: &FormatDescription) -> Result<(), NoCut> {
        if self.has_head {
            return Ok(());
        }
        let at = BINLOG_MAGIC.len() as u64;
        let mut head = [0; HEADER_LEN];
        read_exactly(place, &mut head, at)?;
        // The walk has read it before.
        let size = EventHeader::parse(&head).map_or(HEADER_LEN, |header| header.event_size as usize);
        let mut event = vec![0; size];
        read_exactly(place, &mut event, at)?;
        self.format = Some((format.clone(), event));
        Ok(())
    }

    fn gap(&mut self, gap: NoCut) -> Result<(), NoCut> {
        Err(gap)
    }

    fn transaction(
        &mut self,
        place: Place<'_>,
        transaction: &Transaction,
        _: &Executed,
    ) -> Result<bool, NoCut> {
        if self.span.end == Some((place.number, transaction.at)) {
            return Ok(false);
        }
        if !self.judge.takes(transaction) {
            return Ok(true);
        }
        if !self.has_head {
            self.head()?;
        }
        if self.pending.end == transaction.at && !self.pending.is_empty() {
            self.pending.end = transaction.end;
        } else {
            self.copy(place)?;
            self.pending = transaction.at..transaction.end;
        }
        if self.pending.end - self.pending.start >= COPIED_AT_ONCE as u64 {
            self.copy(place)?;
        }
        Ok(true)
    }

    fn file_ends(&mut self, place: Place<'_>) -> Result<(), NoCut> {
        self.copy(place)
    }
}
