//! Gaps that were recorded and passed: what the copy never had.

use super::finding::Finding;

/// Judges one. `after` and `before`: where the copy ends and goes on, in words. `missing`: by GTID, empty where there are none.
pub fn examine(after: Option<&str>, before: &str, missing: &str) -> Finding {
    let after = after.map_or(String::new(), |after| format!("after {after} and "));
    let what = match missing {
        "" => String::new(),
        missing => format!(": {missing}"),
    };
    Finding::warning(format!("history: a gap {after}before {before}: transactions that were never copied{what}")).because(
        "nothing can be replayed over it from this copy. Take a new backup of the source, if none is from behind the gap, then \
         move the timelines before it away (docs/running/data.md, \"A recorded gap\"): that ends this warning",
    )
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn a_gap_is_told_with_and_without_gtids() {
        let by_gtid = examine(Some("b.000001:400"), "b.000004 of 0002-u", "u:5-6");
        assert_eq!(by_gtid.level, Level::Warning);
        assert_eq!(
            by_gtid.what,
            "history: a gap after b.000001:400 and before b.000004 of 0002-u: transactions that were never copied: u:5-6"
        );
        let by_file = examine(None, "b.000004 of 0002-u", "");
        assert!(by_file.what.ends_with("before b.000004 of 0002-u: transactions that were never copied"));
    }
}
