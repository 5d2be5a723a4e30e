//! The events of one transaction, for whoever wants more of it than [`Transaction`](crate::transaction::Transaction) holds.

use super::packed::{Section, Unpacker};
use super::reading::{LOAD_BYTES, Session, load_query, schema_of};
use super::window::Window;
use super::{Options, SHORT, Walk, WalkError, damaged, next_header, without_checksum};
use binlog::forks::fingerprint::unpacked::mariadb_unpacked;
use binlog::storage::ReadAt;
use codec::event::{
    ChecksumAlgorithm, EventHeader, EventType, HEADER_LEN, PEEK_BYTES_MAX, PayloadHead, RowsEvent, query_text,
};
use std::borrow::Cow;
use std::io::BufReader;

/// What is done with each event: its header; its bytes without a checksum, or `None` where it is too large to be opened.
pub(crate) type TakeEvent<'a> = dyn FnMut(&EventHeader, Option<&[u8]>) + 'a;

/// Gives the events from `at` to `end` of a file, which are whole transactions, those of packed ones unpacked.
///
/// # Errors
/// When the file cannot be read or is damaged; what came before was given.
pub fn each_event(
    file: &dyn ReadAt,
    (at, end): (u64, u64),
    opened_bytes_max: usize,
    take: &mut TakeEvent<'_>,
) -> Result<(), WalkError> {
    let checksum = Walk::open(file, end, Options::default())?.format().checksum;
    let mut window = Window::new(file, end, opened_bytes_max.max(PEEK_BYTES_MAX));
    let mut unpacker = Unpacker::default();
    let mut at = at;
    while at < end {
        let Some(header) = next_header(&mut window, at)? else { return Err(damaged(at, SHORT)) };
        let size = header.event_size as usize;
        if header.event_type == EventType::TRANSACTION_PAYLOAD {
            packed(&mut window, &mut unpacker, (at, size), checksum, opened_bytes_max, take)?;
        } else if size > opened_bytes_max {
            take(&header, None);
        } else {
            let event = window.whole(at, size)?.ok_or_else(|| damaged(at, "it ends inside an event"))?;
            take(&header, Some(without_checksum(event, checksum).ok_or_else(|| damaged(at, SHORT))?));
        }
        at += size as u64;
    }
    Ok(())
}

fn packed(
    window: &mut Window<'_>,
    unpacker: &mut Unpacker,
    (at, size): (u64, usize),
    checksum: ChecksumAlgorithm,
    opened_bytes_max: usize,
    take: &mut TakeEvent<'_>,
) -> Result<(), WalkError> {
    let head =
        PayloadHead::parse(window.view(at, size.min(PEEK_BYTES_MAX))?).map_err(|error| damaged(at, error))?;
    let end = (at + size as u64).saturating_sub(checksum.len() as u64);
    let section = Section { file: window.file(), at: (at + head.payload_at as u64).min(end), end };
    unpacker
        .each(head.compression, BufReader::new(section), opened_bytes_max, &mut |header, event, is_whole| {
            take(header, is_whole.then_some(event));
        })
        .map_err(|what| damaged(at, what))
}

/// The rows of a row event, unpacked where MariaDB has compressed them.
///
/// # Errors
/// In words, when they cannot be unpacked or are more than `bytes_max`.
pub fn rows_of<'a>(event: &RowsEvent<'a>, bytes_max: usize) -> Result<Cow<'a, [u8]>, String> {
    if !event.is_compressed {
        return Ok(Cow::Borrowed(event.rows));
    }
    unpacked(event.rows, bytes_max).map(Cow::Owned)
}

/// A statement that stands in a log: the default schema of its session, and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementText<'a> {
    /// Empty where none is stated.
    pub schema: &'a [u8],
    /// In UTF-8, as far as its character set is known; of one for people as it stands there.
    pub text: Cow<'a, [u8]>,
    /// The rows that it made follow: it stands there for people.
    pub is_for_people: bool,
}

/// The statement of an event; `None` of an event that is none.
///
/// # Errors
/// In words, when it is damaged or more than `bytes_max`.
pub fn statement_of<'a>(
    event_type: EventType,
    event: &'a [u8],
    bytes_max: usize,
) -> Result<Option<StatementText<'a>>, String> {
    let cut = || format!("a {event_type} event is cut short");
    let is_for_people = matches!(event_type, EventType::ROWS_QUERY | EventType::MARIADB_ANNOTATE_ROWS);
    let (schema, text) = match event_type {
        EventType::QUERY => {
            (schema_of(event).ok_or_else(cut)?, Cow::Borrowed(query_text(event).ok_or_else(cut)?))
        }
        EventType::MARIADB_QUERY_COMPRESSED => {
            let packed = query_text(event).ok_or_else(cut)?;
            (schema_of(event).ok_or_else(cut)?, Cow::Owned(unpacked(packed, bytes_max)?))
        }
        EventType::EXECUTE_LOAD_QUERY => {
            let (schema, text) = load_query(event).ok_or_else(cut)?;
            (schema, Cow::Borrowed(text))
        }
        // A byte before the text counts for nothing.
        EventType::ROWS_QUERY => (&[][..], Cow::Borrowed(event.get(HEADER_LEN + 1..).unwrap_or_default())),
        EventType::MARIADB_ANNOTATE_ROWS => {
            (&[][..], Cow::Borrowed(event.get(HEADER_LEN..).unwrap_or_default()))
        }
        _ => return Ok(None),
    };
    let own_bytes = if event_type == EventType::EXECUTE_LOAD_QUERY { LOAD_BYTES } else { 0 };
    let text = match text {
        text if is_for_people => text,
        Cow::Borrowed(text) => Session::of(event, own_bytes).client.to_utf8(text),
        Cow::Owned(text) => Cow::Owned(Session::of(event, own_bytes).client.to_utf8(&text).into_owned()),
    };
    Ok(Some(StatementText { schema, text, is_for_people }))
}

fn unpacked(packed: &[u8], bytes_max: usize) -> Result<Vec<u8>, String> {
    let bytes = mariadb_unpacked(packed, bytes_max as u64 + 1)?;
    if bytes.len() > bytes_max {
        return Err(format!("it is more than {bytes_max} bytes unpacked, too large to be opened"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bytes, insert, statement};
    use binlog::testing::FileBuilder;

    #[test]
    fn the_events_of_one_transaction_are_given() {
        let mut file = FileBuilder::new();
        insert(&mut file, 1, "orders", 3);
        statement(&mut file, 2, "DROP TABLE orders");
        let bytes = Bytes(file.bytes().to_vec());
        let len = bytes.0.len() as u64;
        let mut walk = Walk::open(&bytes, len, Options::default()).unwrap();
        let first = walk.next_transaction().unwrap().map(|one| (one.at, one.end)).unwrap();
        let second = walk.next_transaction().unwrap().map(|one| (one.at, one.end)).unwrap();
        let types = |range, most| {
            let mut types = Vec::new();
            each_event(&bytes, range, most, &mut |header, event| {
                types.push((header.event_type.0, event.is_some()))
            })
            .unwrap();
            types
        };
        assert_eq!(types(first, 1 << 20), [(33, true), (2, true), (19, true), (30, true), (16, true)]);
        assert_eq!(types(second, 1 << 20), [(33, true), (2, true)]);
        assert_eq!(types(first, 40), [(33, false), (2, false), (19, false), (30, false), (16, true)]);
        let mut text = Vec::new();
        each_event(&bytes, second, 1 << 20, &mut |header, event| {
            if let Ok(Some(one)) = statement_of(header.event_type, event.unwrap(), 100) {
                text.push((one.schema.to_vec(), one.text.into_owned()));
            }
        })
        .unwrap();
        assert_eq!(text, [(b"shop".to_vec(), b"DROP TABLE orders".to_vec())]);
    }
}
