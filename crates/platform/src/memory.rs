//! How the C library hands out memory, set for a process of long life.
//!
//! glibc gives a block that is large enough to a mapping of its own, and the mapping goes when the block is freed. But each such
//! block that is freed raises the limit to its own size, up to 32 MiB: from then on large blocks come from arenas, of which each
//! thread may have its own, and what is freed in the middle of an arena stays with the process. A daemon that makes segments of
//! 4 MiB on several threads keeps three times the memory that it ever uses at once (docs/measured/benchmarks.md).
//!
//! Source of the facts: mallopt(3), `M_MMAP_THRESHOLD`.

/// Blocks of so many bytes and more have a mapping of their own, whatever was freed before. Below is what is made and freed often:
/// a mapping costs some microseconds, and each of its pages a fault.
pub const OWN_MAPPING_BYTES: usize = 256 << 10;

/// Lets blocks of [`OWN_MAPPING_BYTES`] and more go back to the system when they are freed, for the whole process and from then
/// on. False when the C library would not; other libraries than glibc are left as they are, and the answer is true: musl does
/// the same by itself.
pub fn give_large_blocks_back() -> bool {
    imp::give_large_blocks_back()
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod imp {
    #[expect(unsafe_code, reason = "a function of the C library that no crate wraps")]
    pub(super) fn give_large_blocks_back() -> bool {
        let bytes = libc::c_int::try_from(super::OWN_MAPPING_BYTES).expect("a few KiB");
        // SAFETY: mallopt takes two numbers and touches no memory of ours. It changes a parameter that other threads read without
        // a lock (mallopt(3): MT-Unsafe init const:mallopt), so the daemon calls it before it has threads.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, bytes) == 1 }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod imp {
    pub(super) fn give_large_blocks_back() -> bool {
        true
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    /// Blocks with a mapping of their own, now.
    #[expect(unsafe_code, reason = "a function of the C library that no crate wraps")]
    fn mappings() -> usize {
        // SAFETY: it takes nothing and gives numbers.
        unsafe { libc::mallinfo2() }.hblks
    }

    #[test]
    fn a_large_block_has_a_mapping_of_its_own_whatever_was_freed_before() {
        let block = |bytes: usize| std::hint::black_box(vec![1_u8; bytes]);
        let has_its_own = |bytes: usize| {
            let before = mappings();
            let block = block(bytes);
            let found = mappings() > before;
            drop(block);
            found
        };
        assert!(give_large_blocks_back());
        // Without the call this raises the limit.
        drop(block(8 << 20));
        assert!(has_its_own(4 << 20));
        assert!(has_its_own(OWN_MAPPING_BYTES));
        assert!(!has_its_own(OWN_MAPPING_BYTES / 2));
    }
}
