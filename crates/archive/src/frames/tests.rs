#![expect(clippy::single_range_in_vec_init, reason = "lists of ranges are what these tests are about")]

use super::*;
use crate::stock;
use proptest::prelude::*;

/// Bytes that compress to about half.
fn text(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..len).map(|_| b"etaoin shrdlu,.7"[(next() % 16) as usize]).collect()
}

fn packed(level: i32, plain: &[u8], ranges: &[Range<usize>]) -> Vec<u8> {
    let mut out = Vec::new();
    Packer::new(level).unwrap().pack(plain, ranges, &mut out).unwrap();
    out
}

#[test]
fn stock_zstd_reads_all_kinds_of_frames() {
    let plain = text(1_000_000, 7);
    for ranges in [vec![], vec![0..1_000_000], vec![70_000..400_000, 400_100..600_000, 990_000..1_000_000]] {
        let frames = packed(3, &plain, &ranges);
        let raw = frames.windows(1000).any(|window| window == &plain[300_000..301_000]);
        assert_eq!(raw, !ranges.is_empty(), "what is compressed already is stored as it is");
        let Some(read) = stock::zstd(&["-d", "-c"], &frames) else { return };
        assert!(read == plain, "{ranges:?}");
        assert_eq!(stock::zstd(&["-t", "-q"], &frames), Some(Vec::new()));
    }
}

#[test]
fn the_same_bytes_never_give_the_same_object() {
    let mut packer = Packer::new(1).unwrap();
    let (mut one, mut two) = (Vec::new(), Vec::new());
    packer.pack(b"the same", &[], &mut one).unwrap();
    packer.pack(b"the same", &[], &mut two).unwrap();
    assert_ne!(one, two);
    assert_eq!(one.len(), two.len());
}

/// A frame of blocks that each stand for 128 KiB by one byte, `len` bytes in all.
fn bomb(len: usize) -> Vec<u8> {
    // Window_Descriptor of 128 KiB; no content size, so that nothing warns.
    let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0, 0x38];
    let blocks = len / (128 << 10);
    for block in 1..=blocks {
        // Block_Type 1: one byte, repeated.
        let header = (128u32 << 10) << 3 | 1 << 1 | u32::from(block == blocks);
        frame.extend(&header.to_le_bytes()[..3]);
        frame.push(0x55);
    }
    frame
}

#[test]
fn no_more_is_unpacked_than_was_promised() {
    let whole = bomb(1 << 20);
    assert_eq!(unpack(&whole, 1 << 20).unwrap(), vec![0x55; 1 << 20], "that frame is sound");
    let huge = bomb(16 << 30);
    assert!(huge.len() < 1 << 20);
    // Unpacking ends there; what is counted only afterwards would have been unpacked by then.
    let two = [&whole[..], &whole].concat();
    for (frames, len) in
        [(&huge, 1 << 20), (&two, 1 << 20), (&whole, (1 << 20) - 1), (&packed(1, &[0; 5000], &[]), 4999)]
    {
        let error = unpack(frames, len).unwrap_err().to_string();
        assert!(error.contains(&format!("cannot be unpacked to {len} bytes")), "{error}");
    }
    let error = unpack(&packed(1, &[0; 5000], &[]), 5001).unwrap_err();
    assert!(error.to_string().contains("hold 5000 bytes and not 5001"), "{error}");
}

#[test]
fn what_was_cut_is_not_unpacked() {
    let plain = text(300, 3);
    for ranges in [vec![], vec![0..300]] {
        let frames = packed(1, &plain, &ranges);
        let salt = frames.len() - SALT_BYTES - 8;
        for len in (0..frames.len()).filter(|len| *len != salt) {
            assert!(unpack(&frames[..len], plain.len()).is_err(), "{len} of {} bytes", frames.len());
        }
        let trailing = [&frames[..], b"more"].concat();
        assert!(unpack(&trailing, plain.len()).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_was_packed_is_unpacked(
        len in prop_oneof![0..300_usize, 60_000..70_000_usize, 0..700_000_usize],
        level in prop_oneof![4 => 1..=6_i32, 1 => 7..=19_i32],
        cuts in proptest::collection::vec(0.0..1.0_f64, 0..12),
        seed in any::<u64>(),
    ) {
        let plain = text(len, seed);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| (len as f64 * cut) as usize).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let ranges: Vec<_> = cuts.chunks_exact(2).map(|two| two[0]..two[1]).collect();
        let frames = packed(level, &plain, &ranges);
        prop_assert!(unpack(&frames, len).unwrap() == plain);
    }
}
