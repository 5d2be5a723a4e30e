//! The disk of the copy.

use super::finding::Finding;

/// With less than this a session is not begun; see `SESSION_BYTES_MIN` of `receive/attempt/life.rs`.
const FULL_BELOW: u64 = 1 << 20;

/// Judges the file system of `folder`: bytes that an ordinary user can write, of how many, and below how many to warn (`disk_warn`).
pub fn examine(folder: &str, free: u64, size: u64, warn_below: Option<u64>) -> Finding {
    let what = format!("disk: {} MiB of {} MiB are free for {folder}", free >> 20, size >> 20);
    if free < FULL_BELOW {
        return Finding::error(what).because(
            "on a full disk nothing is stored and nothing acknowledged, and commits of a source with semi-sync wait for its \
             timeout: make the file system larger, or move old files away (docs/running/data.md, \"Making room\")",
        );
    }
    match warn_below.filter(|threshold| free < *threshold) {
        Some(threshold) => Finding::warning(what).because(format!(
            "less than disk_warn, which is {} MiB: make the file system larger, or move old files away (docs/running/data.md, \
             \"Making room\")",
            threshold >> 20
        )),
        None => Finding::ok(what),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn a_full_disk_is_an_error_and_a_low_one_a_warning() {
        let level = |free: u64, warn| examine("/d", free << 10, 100 << 20, warn).level;
        assert_eq!(level(0, None), Level::Error);
        assert_eq!(level(1023, None), Level::Error);
        assert_eq!(level(1024, None), Level::Ok);
        assert_eq!(level(2048, Some(10 << 20)), Level::Warning);
        assert!(examine("/d", 0, 100 << 20, None).what.contains("0 MiB of 100 MiB are free for /d"));
    }
}
