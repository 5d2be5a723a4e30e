//! The events of a packed transaction, unpacked as a stream.

use binlog::storage::ReadAt;
use codec::event::{EventHeader, HEADER_LEN, PEEK_BYTES_MAX, PayloadCompression};
use std::io::{self, BufRead, Read};

/// What unpacks. It is made once a walk: it holds memory that is dear to make.
#[derive(Default)]
pub(super) struct Unpacker {
    context: Option<zstd::zstd_safe::DCtx<'static>>,
    /// One event.
    event: Vec<u8>,
}

/// What is done with an event: its header, its bytes, and whether these are all of it.
pub(super) type Take<'a> = dyn FnMut(&EventHeader, &[u8], bool) + 'a;

/// Memory of one event is kept for the next up to so many bytes.
const KEPT_BYTES_MAX: usize = 1 << 20;

impl Unpacker {
    /// Gives the events one after another. Of those above `opened_bytes_max` only the beginning is given.
    ///
    /// # Errors
    /// What cannot be unpacked, in words.
    pub(super) fn each(
        &mut self,
        compression: PayloadCompression,
        mut payload: impl BufRead,
        opened_bytes_max: usize,
        take: &mut Take<'_>,
    ) -> Result<(), String> {
        let result = match compression {
            PayloadCompression::None => each_event(&mut payload, &mut self.event, opened_bytes_max, take),
            PayloadCompression::Zstd => {
                let context = self.context.get_or_insert_with(zstd::zstd_safe::DCtx::create);
                // What an earlier one that broke off has left.
                context
                    .reset(zstd::zstd_safe::ResetDirective::SessionOnly)
                    .map_err(|code| zstd::zstd_safe::get_error_name(code).to_owned())?;
                let mut events = zstd::stream::read::Decoder::with_context(payload, context);
                each_event(&mut events, &mut self.event, opened_bytes_max, take)
            }
        };
        if self.event.capacity() > KEPT_BYTES_MAX {
            self.event = Vec::new();
        }
        result
    }
}

fn each_event(
    events: &mut dyn Read,
    event: &mut Vec<u8>,
    opened_bytes_max: usize,
    take: &mut Take<'_>,
) -> Result<(), String> {
    const CUT: &str = "an event inside a packed transaction is cut short";
    let broken = |error: io::Error| format!("a packed transaction cannot be unpacked: {error}");
    loop {
        event.clear();
        let read = (&mut *events).take(HEADER_LEN as u64).read_to_end(event).map_err(broken)?;
        if read == 0 {
            return Ok(());
        }
        let header = EventHeader::parse(event).map_err(|error| error.to_string())?;
        let body = header.event_size as usize - HEADER_LEN;
        let is_whole = header.event_size as usize <= opened_bytes_max;
        let wanted = if is_whole { body } else { body.min(PEEK_BYTES_MAX) };
        let read = (&mut *events).take(wanted as u64).read_to_end(event).map_err(broken)?;
        if read != wanted {
            return Err(CUT.to_owned());
        }
        take(&header, event, is_whole);
        let left = (body - wanted) as u64;
        if left > 0 && io::copy(&mut (&mut *events).take(left), &mut io::sink()).map_err(broken)? != left {
            return Err(CUT.to_owned());
        }
    }
}

/// A part of a file, read in order.
pub(super) struct Section<'a> {
    pub(super) file: &'a dyn ReadAt,
    pub(super) at: u64,
    pub(super) end: u64,
}

impl Read for Section<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let len = buffer.len().min(left);
        let read = self.file.read_at(&mut buffer[..len], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
