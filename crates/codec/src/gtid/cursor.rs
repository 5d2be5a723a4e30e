//! A reader of bounded bytes that remembers where it is, for errors that say where.

use super::error::GtidError;

/// Reads little-endian fields from the front of a slice and never beyond its end.
pub(super) struct Cursor<'a> {
    what: &'static str,
    /// Bytes not read yet.
    rest: &'a [u8],
    /// Bytes read so far.
    at: usize,
}

impl<'a> Cursor<'a> {
    /// A reader of `bytes`; `what` names the structure in errors.
    pub(super) fn new(what: &'static str, bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { what, rest: bytes, at: 0 }
    }

    /// Bytes not read yet.
    pub(super) fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Bytes read so far.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// An error about the field at the present position.
    pub(super) fn error(&self, problem: &'static str) -> GtidError {
        self.error_at(self.at, problem)
    }

    /// An error about the field at offset `at`.
    pub(super) fn error_at(&self, at: usize, problem: &'static str) -> GtidError {
        GtidError::Bytes { what: self.what, at, problem }
    }

    pub(super) fn bytes(&mut self, length: usize) -> Result<&'a [u8], GtidError> {
        let (head, tail) =
            self.rest.split_at_checked(length).ok_or_else(|| self.error("it ends too early"))?;
        self.rest = tail;
        self.at += length;
        Ok(head)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], GtidError> {
        Ok(self.bytes(N)?.try_into().expect("as many bytes as asked for"))
    }

    pub(super) fn u32(&mut self) -> Result<u32, GtidError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, GtidError> {
        self.array().map(u64::from_le_bytes)
    }

    /// An unsigned variable-length integer of MySQL's serialization library, 1 to 9 bytes.
    ///
    /// As many trailing ones as the first byte has, so many more bytes follow; up to eight bytes in all, a zero bit ends
    /// the ones and the value begins right above it, low bits first. A first byte of 0xFF is followed by a full 64-bit
    /// value. Source: `libs/mysql/serialization/readme.md`, "Variable-length integers".
    pub(super) fn varint(&mut self) -> Result<u64, GtidError> {
        let start = self.at;
        let [first] = self.array()?;
        let more = first.trailing_ones() as usize;
        let mut high = [0; 8];
        let read =
            self.bytes(more).map_err(|_| self.error_at(start, "a variable-length integer ends too early"))?;
        high[..more].copy_from_slice(read);
        let high = u64::from_le_bytes(high);
        // The first byte holds `7 - more` bits of the value; none at all if it is all ones.
        Ok(match more {
            8 => high,
            _ => high << (7 - more) | u64::from(first) >> (more + 1),
        })
    }

    /// A signed variable-length integer: the sign in the lowest bit, the magnitude (of `-1 - x` if negative) above it.
    pub(super) fn varint_signed(&mut self) -> Result<i64, GtidError> {
        let raw = self.varint()?;
        Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    /// A variable-length integer that fits `T`.
    pub(super) fn varint_as<T: TryFrom<u64>>(&mut self) -> Result<T, GtidError> {
        let start = self.at;
        T::try_from(self.varint()?).map_err(|_| self.error_at(start, "a number is too large for its field"))
    }

    /// Ends the reading; bytes left over are an error.
    pub(super) fn finish(self) -> Result<(), GtidError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.error("bytes follow its end")) }
    }
}

/// Appends an unsigned variable-length integer; the counterpart of [`Cursor::varint`].
#[cfg(test)]
pub(super) fn put_varint(out: &mut Vec<u8>, value: u64) {
    let bits = 64 - value.leading_zeros() as usize;
    let length = (bits.max(1).div_ceil(7)).min(9);
    let first = if length == 9 { 0xff } else { (((1u64 << (length - 1)) - 1) | (value << length)) as u8 };
    let rest = if length == 9 { value } else { value >> (8 - length) };
    out.push(first);
    out.extend_from_slice(&rest.to_le_bytes()[..length - 1]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> Result<u64, GtidError> {
        let mut cursor = Cursor::new("test", bytes);
        let value = cursor.varint()?;
        cursor.finish()?;
        Ok(value)
    }

    #[test]
    fn examples_of_the_readme() {
        assert_eq!(read(&[0b1111_1011, 0xff, 0b0000_0111]), Ok(65535));
        let signed = |bytes| Cursor::new("test", bytes).varint_signed();
        assert_eq!(signed(&[0b1111_0011, 0xff, 0b0000_1111]), Ok(65535));
        assert_eq!(signed(&[0b1110_1011, 0xff, 0b0000_1111]), Ok(-65535));
        assert_eq!(signed(&[0b1111_1011, 0xff, 0b0000_1111]), Ok(-65536));
    }

    #[test]
    fn a_cut_integer_is_refused() {
        assert!(read(&[]).is_err());
        assert!(read(&[0b0000_0111, 1, 2]).is_err());
        assert!(read(&[0xff, 1, 2, 3, 4, 5, 6, 7]).is_err());
        assert_eq!(read(&[0xff, 1, 0, 0, 0, 0, 0, 0, 0x80]), Ok(1 << 63 | 1));
    }

    proptest! {
        #[test]
        fn round_trip(value: u64, shift in 0u32..64) {
            let value = value >> shift;
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            prop_assert_eq!(read(&bytes), Ok(value));
        }
    }
}
