//! Elements of DER, as far as keys and certificates are looked into here (ITU-T X.690).

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;
/// The first optional part of a sequence, explicitly tagged.
pub(crate) const PART_0: u8 = 0xA0;

/// Content of the first element, which must have `tag`, and what follows it.
pub(crate) fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = any_element(der)?;
    (found == tag).then_some((content, rest))
}

/// Tag and content of the first element, and what follows it. Of lengths those below 64 KiB are known.
pub(crate) fn any_element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match *first {
        short @ 0..=0x7F => (usize::from(short), rest),
        0x81 => (usize::from(*rest.first()?), &rest[1..]),
        0x82 => {
            let (bytes, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*bytes)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}
