//! TRANSACTION_PAYLOAD: a transaction's events in one, compressed (MySQL 8.0.20 and later).

use super::error::EventError;
use super::fields::packed_integer;
use super::header::HEADER_LEN;

const CUT: EventError = EventError::Malformed("a TRANSACTION_PAYLOAD event is cut short");

/// How the events inside are compressed (`transaction::compression::type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadCompression {
    /// Zstandard.
    Zstd,
    /// Not at all.
    None,
}

/// A TRANSACTION_PAYLOAD event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionPayload<'a> {
    /// How it is compressed.
    pub compression: PayloadCompression,
    /// Bytes of the events inside, as the writer says. Not to be trusted: allocate as the data comes.
    pub uncompressed_len: Option<u64>,
    /// The compressed events. They carry no checksums.
    pub payload: &'a [u8],
}

/// What stands before the events in a TRANSACTION_PAYLOAD event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PayloadHead {
    /// How they are compressed.
    pub compression: PayloadCompression,
    /// Bytes of the events inside, as the writer says.
    pub uncompressed_len: Option<u64>,
    /// Bytes that they take here, as the writer says.
    pub payload_len: Option<u64>,
    /// Where in the event they begin.
    pub payload_at: usize,
}

impl PayloadHead {
    /// Longest head, in bytes: no server writes more than these fields of at most nine bytes, each with its type and length.
    pub const BYTES_MAX: usize = HEADER_LEN + 64;

    /// Reads the head of an event, which may be cut behind it.
    ///
    /// Layout (`Transaction_payload_event`, `libs/mysql/binlog/event/control_events.h`): fields of a type, a length and a
    /// value, where types, lengths and values are packed integers; type 0 ends them, 1 is the payload's size, 2 the
    /// compression (0 Zstandard, 255 none), 3 the uncompressed size. The payload follows.
    ///
    /// # Errors
    /// When a field is cut short, or the compression is not known.
    pub fn parse(event: &[u8]) -> Result<PayloadHead, EventError> {
        let mut rest = event.get(HEADER_LEN..).ok_or(CUT)?;
        let (mut payload_len, mut compression, mut uncompressed_len) = (None, PayloadCompression::Zstd, None);
        loop {
            let field = packed_integer(&mut rest)?;
            if field == 0 {
                break;
            }
            let len = usize::try_from(packed_integer(&mut rest)?).map_err(|_| CUT)?;
            let (mut value, after) = rest.split_at_checked(len).ok_or(CUT)?;
            rest = after;
            match field {
                1 => payload_len = Some(packed_integer(&mut value)?),
                2 => {
                    compression = match packed_integer(&mut value)? {
                        0 => PayloadCompression::Zstd,
                        255 => PayloadCompression::None,
                        _ => {
                            return Err(EventError::Malformed(
                                "a TRANSACTION_PAYLOAD of unknown compression",
                            ));
                        }
                    }
                }
                3 => uncompressed_len = Some(packed_integer(&mut value)?),
                _ => {} // A reader may skip what it does not know.
            }
        }
        let payload_at = event.len() - rest.len();
        Ok(PayloadHead { compression, uncompressed_len, payload_len, payload_at })
    }
}

impl<'a> TransactionPayload<'a> {
    /// Reads a whole event without its checksum; see [`PayloadHead::parse`].
    ///
    /// # Errors
    /// When a field is cut short, the compression is not known or the payload is not as long as stated.
    pub fn parse(event: &'a [u8]) -> Result<TransactionPayload<'a>, EventError> {
        let head = PayloadHead::parse(event)?;
        let payload = &event[head.payload_at..];
        if head.payload_len.is_some_and(|len| len != payload.len() as u64) {
            return Err(CUT);
        }
        let PayloadHead { compression, uncompressed_len, .. } = head;
        Ok(TransactionPayload { compression, uncompressed_len, payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event(fields: &[u8], payload: &[u8]) -> Vec<u8> {
        [&[0; HEADER_LEN][..], fields, payload].concat()
    }

    #[test]
    fn the_fields_are_read() {
        let bytes = event(&[2, 1, 0, 9, 1, 5, 3, 3, 252, 0x10, 0x27, 1, 1, 4, 0], b"zstd");
        let payload = TransactionPayload::parse(&bytes).unwrap();
        assert_eq!(payload.compression, PayloadCompression::Zstd);
        assert_eq!((payload.uncompressed_len, payload.payload), (Some(10_000), &b"zstd"[..]));
        let plain = event(&[2, 3, 252, 255, 0, 0], b"");
        assert_eq!(TransactionPayload::parse(&plain).unwrap().compression, PayloadCompression::None);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for fields in [&[1, 1, 5, 0][..], &[2, 1, 7, 0], &[1], &[1, 200, 1], &[255], &[]] {
            assert!(TransactionPayload::parse(&event(fields, b"zstd")[..HEADER_LEN + fields.len()]).is_err());
        }
        assert!(TransactionPayload::parse(&event(&[1, 1, 5, 0], b"zstd")).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = TransactionPayload::parse(&bytes);
        }
    }
}
