//! A forward-only view of a packet's payload in which every read is bounded by what is really there.

/// The payload is shorter than a field that it announces, or a field is not of its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the packet is malformed: {field} does not fit at byte {at}")]
pub struct MalformedPacket {
    /// The field that could not be read.
    pub field: &'static str,
    /// Offset in the payload at which the field begins, in bytes.
    pub at: usize,
}

/// Reads fields off the front of a payload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload, at: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn malformed(&self, field: &'static str) -> MalformedPacket {
        MalformedPacket { field, at: self.at }
    }

    /// The next `length` bytes. `length` may be any number that a peer sent.
    pub(super) fn bytes(&mut self, length: u64, field: &'static str) -> Result<&'a [u8], MalformedPacket> {
        let length = usize::try_from(length).map_err(|_| self.malformed(field))?;
        let (head, tail) = self.rest.split_at_checked(length).ok_or(self.malformed(field))?;
        self.rest = tail;
        self.at += length;
        Ok(head)
    }

    pub(super) fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], MalformedPacket> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or(self.malformed(field))?;
        self.rest = tail;
        self.at += N;
        Ok(*head)
    }

    pub(super) fn u8(&mut self, field: &'static str) -> Result<u8, MalformedPacket> {
        Ok(self.array::<1>(field)?[0])
    }

    pub(super) fn u16(&mut self, field: &'static str) -> Result<u16, MalformedPacket> {
        Ok(u16::from_le_bytes(self.array(field)?))
    }

    pub(super) fn u32(&mut self, field: &'static str) -> Result<u32, MalformedPacket> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    pub(super) fn u64(&mut self, field: &'static str) -> Result<u64, MalformedPacket> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    /// A length-encoded integer; `None` stands for the NULL marker 0xFB of a text row.
    ///
    /// Source: MySQL Source Code Documentation, "Protocol::LengthEncodedInteger".
    pub(super) fn length_encoded(&mut self, field: &'static str) -> Result<Option<u64>, MalformedPacket> {
        let start = *self;
        let value = match self.u8(field)? {
            small @ 0..=0xFA => u64::from(small),
            0xFB => return Ok(None),
            0xFC => u64::from(self.u16(field)?),
            0xFD => {
                let [a, b, c] = self.array(field)?;
                u64::from(u32::from_le_bytes([a, b, c, 0]))
            }
            0xFE => u64::from_le_bytes(self.array(field)?),
            0xFF => return Err(start.malformed(field)),
        };
        Ok(Some(value))
    }

    /// A length-encoded integer where NULL has no meaning.
    pub(super) fn length_encoded_integer(&mut self, field: &'static str) -> Result<u64, MalformedPacket> {
        let start = *self;
        self.length_encoded(field)?.ok_or(start.malformed(field))
    }

    /// A length-encoded string; `None` stands for NULL.
    pub(super) fn length_encoded_string(
        &mut self,
        field: &'static str,
    ) -> Result<Option<&'a [u8]>, MalformedPacket> {
        match self.length_encoded(field)? {
            Some(length) => self.bytes(length, field).map(Some),
            None => Ok(None),
        }
    }

    /// The bytes before the next NUL, which is consumed too.
    pub(super) fn null_terminated(&mut self, field: &'static str) -> Result<&'a [u8], MalformedPacket> {
        let length = self.rest.iter().position(|byte| *byte == 0).ok_or(self.malformed(field))?;
        let text = &self.rest[..length];
        self.rest = &self.rest[length + 1..];
        self.at += length + 1;
        Ok(text)
    }

    /// The bytes before the next NUL, which is consumed too, or everything that is left where there is none.
    pub(super) fn null_terminated_or_rest(&mut self) -> &'a [u8] {
        self.null_terminated("a text").unwrap_or_else(|_| self.remaining())
    }

    /// Everything that is left.
    pub(super) fn remaining(&mut self) -> &'a [u8] {
        let rest = self.rest;
        self.at += rest.len();
        self.rest = &[];
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_encoded_integers_of_every_width() {
        let read = |bytes: &[u8]| Cursor::new(bytes).length_encoded("n");
        assert_eq!(read(&[0xFA]), Ok(Some(0xFA)));
        assert_eq!(read(&[0xFB]), Ok(None));
        assert_eq!(read(&[0xFC, 0x01, 0x02]), Ok(Some(0x0201)));
        assert_eq!(read(&[0xFD, 1, 2, 3]), Ok(Some(0x03_0201)));
        assert_eq!(read(&[0xFE, 1, 0, 0, 0, 0, 0, 0, 0x80]), Ok(Some(0x8000_0000_0000_0001)));
        assert_eq!(read(&[0xFF]), Err(MalformedPacket { field: "n", at: 0 }));
        assert_eq!(read(&[0xFD, 1, 2]), Err(MalformedPacket { field: "n", at: 1 }));
    }

    #[test]
    fn a_length_beyond_the_payload_is_an_error() {
        let mut cursor = Cursor::new(&[0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, b'x']);
        assert_eq!(cursor.length_encoded_string("s"), Err(MalformedPacket { field: "s", at: 9 }));
    }
}
