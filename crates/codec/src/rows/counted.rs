//! Bytes with their length before them.

use crate::event::packed_integer;

/// Takes them off the front, behind a length-encoded integer. `None` when they are cut short.
pub(super) fn counted<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(packed_integer(rest).ok()?).ok()?;
    let (own, behind) = rest.split_at_checked(len)?;
    *rest = behind;
    Some(own)
}
