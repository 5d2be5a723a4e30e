//! Cells by what was measured side by side, and what is computed from them.

use super::cell::{Cell, Numbers, Setting};
use super::configuration::Configuration;
use std::collections::BTreeMap;

/// A number of a cell, where it has one.
pub type Value = fn(&Numbers) -> Option<f64>;

/// Transactions a second.
pub const TPS: Value = |numbers| Some(numbers.tps);
/// Cores of the receiver.
pub const CORES: Value = |numbers| numbers.cores;

/// All cells with the same source and load, whatever the receiver.
#[derive(Debug, Default)]
pub struct Blocks<'a> {
    /// By run and round.
    blocks: BTreeMap<(u64, usize), BTreeMap<Configuration, &'a Cell>>,
}

impl<'a> Blocks<'a> {
    /// Sorts cells by source and load.
    pub fn by_setting(cells: &'a [Cell]) -> BTreeMap<&'a Setting, Blocks<'a>> {
        let mut all: BTreeMap<&Setting, Blocks<'_>> = BTreeMap::new();
        for cell in cells {
            let blocks = &mut all.entry(&cell.setting).or_default().blocks;
            blocks.entry((cell.run, cell.round)).or_default().insert(cell.configuration, cell);
        }
        all
    }

    /// The cells of a receiver, by round, valid or not.
    pub fn cells(&self, configuration: Configuration) -> impl Iterator<Item = &'a Cell> {
        self.blocks.values().filter_map(move |block| block.get(&configuration).copied())
    }

    /// A number of its valid cells.
    pub fn values(&self, configuration: Configuration, value: Value) -> Vec<f64> {
        self.cells(configuration).filter_map(|cell| value(cell.valid()?)).collect()
    }

    /// A number against that of another receiver, from each block in which both are valid.
    pub fn ratios(&self, configuration: Configuration, against: Configuration, value: Value) -> Vec<f64> {
        let of = |block: &BTreeMap<Configuration, &Cell>, one| value(block.get(&one)?.valid()?);
        let ratio = |block| Some((of(block, configuration)?, of(block, against)?));
        let pairs = self.blocks.values().filter_map(ratio);
        pairs.filter(|(_, other)| *other > 0.0).map(|(one, other)| one / other).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::cell::tests::cell;
    use super::*;

    #[test]
    fn ratios_are_made_within_a_block_of_valid_cells() {
        use Configuration::{BareSynced, Binlogd1};
        let mut cells = vec![
            cell(BareSynced, 0, 100.0),
            cell(Binlogd1, 0, 110.0),
            cell(Binlogd1, 1, 300.0),
            cell(BareSynced, 1, 200.0),
            cell(BareSynced, 2, 100.0),
            cell(Binlogd1, 2, 900.0),
        ];
        cells[5].invalid = Some("it fell back".to_owned());
        let mut elsewhere = cell(Binlogd1, 0, 1.0);
        elsewhere.setting.threads = 2;
        cells.push(elsewhere);
        let settings = Blocks::by_setting(&cells);
        assert_eq!(settings.len(), 2);
        let blocks = &settings[&cells[0].setting];
        assert_eq!(blocks.ratios(Binlogd1, BareSynced, TPS), [1.1, 1.5]);
        assert_eq!(blocks.values(Binlogd1, TPS), [110.0, 300.0]);
        assert_eq!(blocks.cells(Binlogd1).count(), 3);
        // The same round of another run is another block.
        let mut again = cell(BareSynced, 0, 50.0);
        again.run = 2;
        cells.push(again);
        assert_eq!(
            Blocks::by_setting(&cells)[&cells[0].setting].ratios(Binlogd1, BareSynced, TPS),
            [1.1, 1.5]
        );
    }
}
