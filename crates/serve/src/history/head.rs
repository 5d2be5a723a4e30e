//! The beginning of a file: its format description, and what was executed before it.

use binlog::storage::{ReadAt, ReadFile, Storage};
use binlog::writer::admission;
use codec::event::{
    BINLOG_MAGIC, ChecksumAlgorithm, EventHeader, EventType, FormatDescription, GtidEvent, HEADER_LEN,
};
use codec::gtid::{GtidState, TransactionId};
use std::io;
use std::path::Path;

/// No format description is longer, in bytes.
const FORMAT_BYTES_MAX: u32 = FormatDescription::END_MAX as u32;
/// The longest event that states GTIDs, in bytes; recovery admits no longer one.
const STATE_BYTES_MAX: u32 = 64 << 20;
/// The longest GTID event, in bytes: its longest fields are a tag and the timestamps.
const GTID_BYTES_MAX: u32 = 4096;

/// What a file says of itself.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) file: Box<dyn ReadFile>,
    /// The format description as it stands in the file, checksum included.
    pub(crate) format_event: Vec<u8>,
    pub(crate) format: FormatDescription,
    /// End of the format description.
    pub(crate) format_end: u64,
    /// MariaDB: the event behind it says how the server's own file is encrypted.
    pub(crate) encryption_event: Option<Vec<u8>>,
    /// What was executed before the file, by its own word. `None` where no such event stands in its place.
    pub(crate) gtids_before: Option<GtidState>,
    /// End of the events that were read here.
    end: u64,
}

impl Head {
    /// Opens a file and reads its first events up to `limit`, the end of what readers may have of it.
    ///
    /// # Errors
    /// When reading fails, or with `InvalidData` when the file does not begin as a binary log.
    pub(crate) fn read(storage: &dyn Storage, path: &Path, limit: u64) -> io::Result<Head> {
        let file = storage.open_read(path)?;
        let mut magic = [0; BINLOG_MAGIC.len()];
        if file.read_full_at(&mut magic, 0)? < magic.len() || magic != BINLOG_MAGIC {
            return Err(damaged("the file does not begin as a binary log"));
        }
        let first = event_at(&*file, 4, limit, FORMAT_BYTES_MAX)?;
        let Some((header, format_event)) =
            first.filter(|(header, _)| header.event_type == EventType::FORMAT_DESCRIPTION)
        else {
            return Err(damaged("the file does not begin with a format description"));
        };
        let format = FormatDescription::parse(&format_event).map_err(|error| damaged(&error.to_string()))?;
        let format_end = 4 + u64::from(header.event_size);
        let mut head = Head {
            file,
            format_event,
            format,
            format_end,
            encryption_event: None,
            gtids_before: None,
            end: format_end,
        };
        head.read_state(limit)?;
        Ok(head)
    }

    fn read_state(&mut self, limit: u64) -> io::Result<()> {
        while let Some(header) = header_at(&*self.file, self.end, limit)? {
            match header.event_type {
                EventType::MARIADB_START_ENCRYPTION => {
                    self.encryption_event =
                        event_at(&*self.file, self.end, limit, GTID_BYTES_MAX)?.map(|(_, event)| event);
                }
                EventType::PREVIOUS_GTIDS | EventType::MARIADB_GTID_LIST => {
                    let Some((_, mut event)) = event_at(&*self.file, self.end, limit, STATE_BYTES_MAX)?
                    else {
                        return Ok(());
                    };
                    let len = event.len().saturating_sub(self.format.checksum.len());
                    event.truncate(len);
                    let body = event.get(HEADER_LEN..).unwrap_or_default();
                    let state = admission::gtids_before(header.event_type, body);
                    self.gtids_before = Some(state.map_err(|error| damaged(&error.to_string()))?);
                    self.end += u64::from(header.event_size);
                    return Ok(());
                }
                _ => return Ok(()),
            }
            self.end += u64::from(header.event_size);
        }
        Ok(())
    }

    /// The first transaction in the file that has a GTID.
    ///
    /// # Errors
    /// As [`Head::read`].
    pub(crate) fn first_gtid(&self, limit: u64) -> io::Result<Option<TransactionId>> {
        Ok(self.next_gtid(&mut { self.end }, limit)?.map(|(_, id)| id))
    }

    /// The first transaction with a GTID from `boundary` on whose GTID event ends before `limit`.
    ///
    /// # Errors
    /// As [`Head::read`].
    pub(crate) fn gtid_behind(&self, boundary: u64, limit: u64) -> io::Result<Option<TransactionId>> {
        Ok(self.next_gtid(&mut { boundary }, limit)?.map(|(_, id)| id))
    }

    /// The next transaction with a GTID from `at` on, and where it begins; `at` moves behind its GTID event.
    fn next_gtid(&self, at: &mut u64, limit: u64) -> io::Result<Option<(u64, TransactionId)>> {
        while let Some(header) = header_at(&*self.file, *at, limit)? {
            let begins = *at;
            *at += u64::from(header.event_size);
            if GtidEvent::is_gtid(header.event_type) && header.event_type != EventType::ANONYMOUS_GTID {
                let Some((_, event)) = event_at(&*self.file, begins, limit, GTID_BYTES_MAX)? else {
                    return Ok(None);
                };
                let event = &event[..event.len().saturating_sub(self.format.checksum.len())];
                let gtid = GtidEvent::parse(&header, event).map_err(|error| damaged(&error.to_string()))?;
                if let Some(id) = gtid.id {
                    return Ok(Some((begins, id)));
                }
            }
        }
        Ok(None)
    }

    /// Where the first transaction begins whose GTID is `wanted`.
    ///
    /// # Errors
    /// As [`Head::read`].
    pub(crate) fn find(
        &self,
        limit: u64,
        wanted: impl Fn(&TransactionId) -> bool,
    ) -> io::Result<Option<u64>> {
        let mut at = self.end;
        while let Some((begins, id)) = self.next_gtid(&mut at, limit)? {
            if wanted(&id) {
                return Ok(Some(begins));
            }
        }
        Ok(None)
    }

    /// `binlog_checksum` of the file's events.
    pub(crate) fn checksum(&self) -> ChecksumAlgorithm {
        self.format.checksum
    }
}

/// The header of the event at `at`; `None` at the end.
fn header_at(file: &dyn ReadAt, at: u64, limit: u64) -> io::Result<Option<EventHeader>> {
    let mut head = [0; HEADER_LEN];
    if limit.saturating_sub(at) < HEADER_LEN as u64 || file.read_full_at(&mut head, at)? < HEADER_LEN {
        return Ok(None);
    }
    EventHeader::parse(&head).map(Some).map_err(|error| damaged(&error.to_string()))
}

/// The whole event at `at`, which must be one that is read whole; `None` where the file ends before it does.
fn event_at(
    file: &dyn ReadAt,
    at: u64,
    limit: u64,
    len_max: u32,
) -> io::Result<Option<(EventHeader, Vec<u8>)>> {
    let Some(header) = header_at(file, at, limit)? else { return Ok(None) };
    if header.event_size > len_max {
        return Err(damaged("an event at the beginning of the file is too long"));
    }
    if at + u64::from(header.event_size) > limit {
        return Ok(None);
    }
    let mut event = vec![0; header.event_size as usize];
    let read = file.read_full_at(&mut event, at)?;
    Ok((read == event.len()).then_some((header, event)))
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}
