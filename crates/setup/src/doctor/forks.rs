//! GTIDs under which the copy holds two transactions.

use super::finding::Finding;

/// Judges `count` GTIDs, `gtids`, that a source gave twice and about which nobody has decided; `None` for none.
pub fn examine(count: u64, gtids: &str) -> Option<Finding> {
    let finding = || {
        let were = if count == 1 { "GTID was" } else { "GTIDs were" };
        Finding::error(format!("history: {count} {were} given twice: {gtids}")).because(
            "the source lost transactions that the copy holds and gave their GTIDs to others: binlogd forks DATA_DIR lists \
             both, and records with --settle that the data is as it should be",
        )
    };
    (count > 0).then(finding)
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn only_what_is_open_is_told() {
        assert!(examine(0, "").is_none());
        let finding = examine(2, "3e11fa47-71ca-11e1-9e33-c80aa9429562:5-6").unwrap();
        assert_eq!(finding.level, Level::Error);
        assert!(finding.what.contains("2 GTIDs") && finding.why.contains("--settle"));
    }
}
