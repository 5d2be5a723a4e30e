//! A timeline's description, as whoever reads the past of a copy is to see it: what the archive still has was not purged.

use super::view::Here;
use binlog::purge::purged::Purged;
use binlog::timeline::Timeline;
use codec::BinlogName;

/// The description with a record of only those files that are neither here nor in the archive; `None` where it cannot be
/// understood, which whoever reads it tells.
pub(super) fn with_past(bytes: &[u8], here: &Here) -> Option<Vec<u8>> {
    let mut timeline = Timeline::parse(std::str::from_utf8(bytes).ok()?).ok()?;
    timeline.purged = before(&timeline, here).into_iter().collect();
    Some(timeline.to_text().ok()?.into_bytes())
}

/// What stood before the oldest file that there still is.
fn before(timeline: &Timeline, here: &Here) -> Option<Purged> {
    let first = here.first();
    let through = predecessor(&first.name).filter(|_| first.name != timeline.first_file)?;
    let newest = timeline.purged.last()?;
    Some(Purged {
        from: timeline.first_file.clone(),
        through,
        gtid_before: timeline.purged.first().and_then(|line| line.gtid_before.clone()),
        gtids: first.gtids_before.clone().unwrap_or_default(),
        ..newest.clone()
    })
}

/// The name with the number before.
fn predecessor(name: &str) -> Option<String> {
    let parsed = BinlogName::parse(name).ok()?;
    let number = parsed.number().checked_sub(1)?;
    let digits = name.len() - parsed.base().len() - 1;
    Some(format!("{}.{number:0digits$}", parsed.base()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_before_has_as_many_digits() {
        assert_eq!(predecessor("mysql-bin.000100").as_deref(), Some("mysql-bin.000099"));
        assert_eq!(predecessor("b.1.1000000").as_deref(), Some("b.1.0999999"));
        assert_eq!(predecessor("b.000000"), None);
    }
}
