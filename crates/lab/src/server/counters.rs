//! A source's counters of semi-sync.

use wire::ResultSet;

/// The source's counters of semi-sync.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SemiSync {
    /// It waits for acknowledgements.
    pub on: bool,
    /// Semi-sync receivers that are attached.
    pub clients: u64,
    /// Commits that were not acknowledged.
    pub no_tx: u64,
    /// Commits that were; MySQL counts a group as one.
    pub yes_tx: u64,
    /// Waits for an acknowledgement; MySQL counts a group as one.
    pub waits: u64,
    /// What they took together, in µs.
    pub wait_us: u64,
    /// Acknowledgements. MySQL does not count them as such; there it asks for one a group, so this is `yes_tx`.
    pub acknowledgements: u64,
}

impl SemiSync {
    /// From the rows of `SHOW GLOBAL STATUS LIKE 'rpl_semi_sync_%'`; `prefix` is what they begin with for the
    /// source's side: `rpl_semi_sync_source_`, or before MySQL 8.4 and in MariaDB `rpl_semi_sync_master_`.
    pub fn read(rows: &ResultSet, prefix: &str) -> SemiSync {
        let (mut counters, mut counted) = (SemiSync::default(), None);
        for index in 0..rows.rows.len() {
            let name = rows.get(index, "Variable_name").unwrap_or_default().to_ascii_lowercase();
            let value = rows.get(index, "Value").unwrap_or_default();
            let number = value.parse().unwrap_or(0);
            match name.strip_prefix(prefix) {
                Some("status") => counters.on = value == "ON",
                Some("clients") => counters.clients = number,
                Some("no_tx") => counters.no_tx = number,
                Some("yes_tx") => counters.yes_tx = number,
                Some("get_ack") => counted = Some(number),
                Some("tx_waits") => counters.waits = number,
                Some("tx_wait_time") => counters.wait_us = number,
                _ => {}
            }
        }
        counters.acknowledgements = counted.unwrap_or(counters.yes_tx);
        counters
    }

    /// Why not every commit since `before` was acknowledged, or where none was `wanted` none, if so.
    pub fn not_acknowledged(&self, before: &SemiSync, wanted: bool) -> Option<String> {
        let (yes, no) = (self.yes_tx.saturating_sub(before.yes_tx), self.no_tx.saturating_sub(before.no_tx));
        match wanted {
            false => (yes > 0).then(|| format!("{yes} commits were acknowledged, by whomever")),
            true if no > 0 => Some(format!("{no} commits went without an acknowledgement")),
            true => (yes == 0).then(|| "the source counts no commit as acknowledged".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_counts_only_when_all_of_it_was_acknowledged() {
        let counters = |yes_tx, no_tx| SemiSync { yes_tx, no_tx, ..SemiSync::default() };
        let judge = |wanted, before, after: SemiSync| after.not_acknowledged(&before, wanted);
        assert_eq!(judge(true, counters(1, 3), counters(9, 3)), None);
        assert!(judge(true, counters(1, 3), counters(9, 4)).is_some());
        assert!(judge(true, counters(1, 3), counters(1, 3)).is_some());
        assert_eq!(judge(false, counters(0, 0), counters(0, 9)), None);
        assert!(judge(false, counters(0, 0), counters(1, 0)).is_some());
    }

    #[test]
    fn counters_are_read_in_the_words_of_both() {
        for (begins, prefix) in [
            ("rpl_semi_sync_source_", "Rpl_semi_sync_source_"),
            ("rpl_semi_sync_master_", "Rpl_semi_sync_master_"),
        ] {
            let row = |name: &str, value: &str| {
                vec![Some(format!("{prefix}{name}").into_bytes()), Some(value.as_bytes().to_vec())]
            };
            let rows = ResultSet {
                columns: vec!["Variable_name".to_owned(), "Value".to_owned()],
                rows: vec![row("status", "ON"), row("clients", "1"), row("no_tx", "7"), row("tx_waits", "9")],
            };
            let counters = SemiSync::read(&rows, begins);
            assert_eq!(
                counters,
                SemiSync { on: true, clients: 1, no_tx: 7, waits: 9, ..SemiSync::default() }
            );
        }
    }
}
