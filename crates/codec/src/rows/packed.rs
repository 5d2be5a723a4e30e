//! Values of COMPRESSED columns of MariaDB.
//!
//! Layout (MariaDB, `sql/field_comp.cc`): a byte whose high half is the method, 0 for none and 8 for zlib. Of zlib its three low bits
//! are the number of bytes in which the unpacked length follows, big-endian, and its fourth says that the stream has neither
//! zlib's head nor its check sum (`column_compression_zlib_wrap = OFF`). An empty value has no bytes at all.

use flate2::read::{DeflateDecoder, ZlibDecoder};
use std::borrow::Cow;
use std::io::Read;

/// Longest value that is unpacked, in bytes. A server packs values of up to `max_allowed_packet`, which is 16 MiB where nobody says more.
const UNPACKED_BYTES_MAX: u64 = 256 << 20;

/// The value; why it cannot be told.
pub(super) fn unpacked(bytes: &[u8]) -> Result<Cow<'_, [u8]>, &'static str> {
    let Some((head, rest)) = bytes.split_first() else { return Ok(Cow::Borrowed(bytes)) };
    match head >> 4 {
        0 => Ok(Cow::Borrowed(rest)),
        8 => zlib(usize::from(head & 7), head & 8 != 0, rest).map(Cow::Owned),
        _ => Err("a value of a COMPRESSED column is packed in a way that is not known"),
    }
}

fn zlib(len_bytes: usize, is_bare: bool, rest: &[u8]) -> Result<Vec<u8>, &'static str> {
    const DAMAGED: &str = "a packed value of a COMPRESSED column is damaged";
    let (len, stream) = rest.split_at_checked(len_bytes).ok_or(DAMAGED)?;
    let len = len.iter().fold(0_u64, |len, byte| len << 8 | u64::from(*byte));
    if len > UNPACKED_BYTES_MAX {
        return Err("a packed value of a COMPRESSED column is more than 256 MiB");
    }
    // The length is not to be trusted: what is allocated grows with what is unpacked.
    let mut unpacked = Vec::new();
    let read = match is_bare {
        true => DeflateDecoder::new(stream).take(len + 1).read_to_end(&mut unpacked),
        false => ZlibDecoder::new(stream).take(len + 1).read_to_end(&mut unpacked),
    };
    match read {
        Ok(read) if read as u64 == len => Ok(unpacked),
        _ => Err(DAMAGED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 40 times `b`, as MariaDB packs them.
    const BARE: [u8; 8] = [0x89, 40, 0x4b, 0x4a, 0x22, 0x0e, 0, 0];

    #[test]
    fn packed_values_are_unpacked_and_damaged_ones_refused() {
        assert_eq!(unpacked(&[]).unwrap(), &b""[..]);
        assert_eq!(unpacked(b"\0ab").unwrap(), &b"ab"[..]);
        assert_eq!(unpacked(&BARE).unwrap(), b"b".repeat(40));
        let mut zlib = flate2::write::ZlibEncoder::new(vec![0x82, 1, 44], flate2::Compression::fast());
        std::io::Write::write_all(&mut zlib, &[b'x'; 300]).unwrap();
        assert_eq!(unpacked(&zlib.finish().unwrap()).unwrap(), b"x".repeat(300));
        let with = |at: usize, byte: u8| {
            let mut own = BARE;
            own[at] = byte;
            unpacked(&own).map(Cow::into_owned)
        };
        assert!(with(1, 39).unwrap_err().contains("damaged"), "longer than it says");
        assert!(with(1, 41).unwrap_err().contains("damaged"), "shorter");
        assert!(with(0, 0x99).unwrap_err().contains("not known"));
        assert!(unpacked(&[0x8c, 0xff, 0xff, 0xff, 0xff]).unwrap_err().contains("256 MiB"));
        for len in 1..BARE.len() - 2 {
            assert!(unpacked(&BARE[..len]).is_err(), "{len}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = unpacked(&bytes);
        }
    }
}
