//! The published figures that the studies are compared with, transcribed whole, and where they come from.
//!
//! Absolute numbers of other machines say nothing about this one: they are shown as they were published and nowhere
//! else. What is compared are ratios, each to the baseline of its own study.

pub mod binlog_compression;
pub mod publication;
pub mod rotation_stall;
pub mod semi_sync_cost;
pub mod sync_binlog;
pub mod virtual_replica;

use publication::Publication;

/// The publication that this study of the lab repeats.
pub fn publication(study: &str) -> Option<Publication> {
    match study {
        "virtual-replica" => Some(virtual_replica::publication()),
        "semi-sync-cost" => Some(semi_sync_cost::publication()),
        "sync-binlog" => Some(sync_binlog::publication()),
        "rotation-stall" => Some(rotation_stall::publication()),
        "binlog-compression" => Some(binlog_compression::publication()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_study_has_its_publication() {
        for study in
            ["virtual-replica", "semi-sync-cost", "sync-binlog", "rotation-stall", "binlog-compression"]
        {
            let publication = publication(study).unwrap();
            assert!(!publication.figures.is_empty() && !publication.conclusions.is_empty(), "{study}");
        }
        assert_eq!(publication("another"), None);
    }
}
