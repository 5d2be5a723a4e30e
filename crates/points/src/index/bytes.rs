//! Numbers and texts as an index writes them: numbers in groups of seven bits, the lowest first; texts with their length before.

use super::error::IndexError;

/// What an index is written into.
#[derive(Debug, Default)]
pub(super) struct Writing(pub(super) Vec<u8>);

impl Writing {
    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// A number that may be below zero: small ones of either sign are short.
    pub(super) fn signed(&mut self, number: i64) {
        self.number(((number << 1) ^ (number >> 63)) as u64);
    }

    pub(super) fn flag(&mut self, flag: bool) {
        self.0.push(u8::from(flag));
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

/// What an index is read from. Total: any bytes give values or an error.
#[derive(Debug)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

const CUT: IndexError = IndexError::Damaged("a value is cut short");

impl<'a> Bytes<'a> {
    pub(super) fn number(&mut self) -> Result<u64, IndexError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(CUT)?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(IndexError::Damaged("a number is too long"))
    }

    pub(super) fn signed(&mut self) -> Result<i64, IndexError> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    pub(super) fn small(&mut self) -> Result<u32, IndexError> {
        u32::try_from(self.number()?).map_err(|_| IndexError::Damaged("a number is too large"))
    }

    /// How many of something follow. Each takes a byte at least, so what is claimed is bounded by what is there.
    pub(super) fn count(&mut self) -> Result<usize, IndexError> {
        let count = self.number()?;
        usize::try_from(count)
            .ok()
            .filter(|count| *count <= self.0.len())
            .ok_or(IndexError::Damaged("it claims more than it holds"))
    }

    pub(super) fn flag(&mut self) -> Result<bool, IndexError> {
        Ok(self.raw(1)?[0] != 0)
    }

    pub(super) fn text(&mut self) -> Result<String, IndexError> {
        let len = self.count()?;
        let bytes = self.raw(len)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| IndexError::Damaged("a text is no UTF-8"))
    }

    pub(super) fn raw(&mut self, len: usize) -> Result<&'a [u8], IndexError> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(CUT)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn end(&self) -> Result<(), IndexError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(IndexError::Damaged("a section is longer than its values"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(number in any::<u64>(), signed in any::<i64>(), flag in any::<bool>(), text in ".{0,20}") {
            let mut writing = Writing::default();
            writing.number(number);
            writing.signed(signed);
            writing.flag(flag);
            writing.text(&text);
            let mut bytes = Bytes(&writing.0);
            prop_assert_eq!((bytes.number().unwrap(), bytes.signed().unwrap()), (number, signed));
            prop_assert_eq!((bytes.flag().unwrap(), bytes.text().unwrap()), (flag, text));
            prop_assert!(bytes.end().is_ok());
            prop_assert!(Bytes(&writing.0[..writing.0.len() - 1]).number().is_ok());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..30)) {
            let _ = Bytes(&bytes).number();
            let _ = Bytes(&bytes).signed();
            let _ = Bytes(&bytes).small();
            let _ = Bytes(&bytes).text();
            let _ = Bytes(&bytes).count();
        }
    }
}
