//! Why no file of the copy holds a transaction.

use binlog::timeline::held::HeldTimeline;
use codec::gtid::GtidState;

/// What no timeline ever held.
pub(in crate::rescue) fn never_copied(history: &[HeldTimeline]) -> GtidState {
    let mut never = GtidState::default();
    for timeline in history {
        // Of the other kind of server, from before a migration, it says nothing.
        let _ = never.union_with(&timeline.info.never_held());
    }
    never
}

/// What is in both. For MariaDB those of the one whose servers have come so far in the other.
pub(in crate::rescue) fn in_both(one: &GtidState, other: &GtidState) -> GtidState {
    match (one, other) {
        (GtidState::Mysql(one), GtidState::Mysql(other)) => GtidState::Mysql(one.intersect(other)),
        (GtidState::Mariadb(one), GtidState::Mariadb(other)) => {
            let mut both = codec::gtid::MariadbGtidState::new();
            one.list().filter(|id| other.contains(id)).for_each(|id| both.insert(id));
            GtidState::Mariadb(both)
        }
        _ => GtidState::empty(one.kind()),
    }
}
