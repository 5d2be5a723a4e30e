//! Frames of zstd that are written without zstd: of bytes as they are, and such that a reader skips.
//!
//! Source of the layout: RFC 8878, sections 3.1.1 and 3.1.2.

/// Begins a frame (`Magic_Number`).
const MAGIC: u32 = 0xFD2F_B528;

/// Begins a frame that every reader skips: the first of sixteen such numbers.
const SKIPPABLE_MAGIC: u32 = 0x184D_2A50;

/// `Frame_Header_Descriptor`: the content's size stands in the header in 4 bytes (2 in the top bits), and the window is as long as
/// the content (`Single_Segment_flag`). No checksum of the content: its SHA-256 stands in the commit, and the hash would take the
/// time that these frames are there to save.
const DESCRIPTOR: u8 = 0b1010_0000;

/// The most that a block may hold (`Block_Maximum_Size`).
const BLOCK_BYTES_MAX: usize = 128 << 10;

/// Adds a frame with `content` as it is.
///
/// # Panics
/// When `content` has 4 GiB or more.
pub(super) fn append(content: &[u8], out: &mut Vec<u8>) {
    let len = u32::try_from(content.len()).expect("a segment has some MiB");
    out.extend(MAGIC.to_le_bytes());
    out.push(DESCRIPTOR);
    out.extend(len.to_le_bytes());
    let mut rest = content;
    loop {
        let (block, after) = rest.split_at(rest.len().min(BLOCK_BYTES_MAX));
        let is_last = after.is_empty();
        // Block_Size above two bits of Block_Type (0: raw) and one that says whether it is the last; three bytes of it.
        let header = u32::try_from(block.len()).expect("bounded above") << 3 | u32::from(is_last);
        out.extend(&header.to_le_bytes()[..3]);
        out.extend_from_slice(block);
        if is_last {
            return;
        }
        rest = after;
    }
}

/// Adds a frame that readers skip, with `content`.
///
/// # Panics
/// When `content` has 4 GiB or more.
pub(super) fn append_skippable(content: &[u8], out: &mut Vec<u8>) {
    out.extend(SKIPPABLE_MAGIC.to_le_bytes());
    out.extend(u32::try_from(content.len()).expect("a few bytes").to_le_bytes());
    out.extend_from_slice(content);
}

/// The most that [`append`] adds to the content's own length.
pub(super) fn overhead(len: usize) -> usize {
    4 + 1 + 4 + 3 * (len / BLOCK_BYTES_MAX + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use zstd::zstd_safe;

    #[test]
    fn zstd_reads_frames_of_every_length() {
        for len in [0, 1, 255, BLOCK_BYTES_MAX - 1, BLOCK_BYTES_MAX, BLOCK_BYTES_MAX + 1, 3 * BLOCK_BYTES_MAX]
        {
            let content: Vec<u8> = (0..len).map(|at| ((at * at) >> 5) as u8).collect();
            let mut frame = Vec::new();
            append(&content, &mut frame);
            assert!(frame.len() <= len + overhead(len), "{len}");
            assert_eq!(zstd_safe::find_frame_compressed_size(&frame), Ok(frame.len()), "{len}");
            assert_eq!(zstd_safe::get_frame_content_size(&frame).unwrap(), Some(len as u64));
            append_skippable(b"whatever", &mut frame);
            assert_eq!(zstd::stream::decode_all(&frame[..]).unwrap(), content, "{len}");
        }
    }
}
