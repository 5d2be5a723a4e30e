//! The studies: what each plans, how it measures a cell, and what its report shows. Which there are says `catalogue.rs`.

pub mod binlog_compression;
pub mod catalogue;
pub mod rotation_stall;
pub mod semi_sync_cost;
pub mod sync_binlog;
pub mod virtual_replica;

use crate::lab::Lab;
use crate::model::{Fact, Measured, Order, Profile, ServerChoice, Settings};
use crate::outline::Part;
use crate::point::{CellKey, Configuration, Panel, Point};
use crate::results::run::Run;
use anyhow::Context;

/// The server that a study measures unless others are asked for.
const SERVER: &str = "mysql-9.7";

/// One of the published studies, made to run anywhere.
pub trait Study: Sync {
    /// Name on the command line.
    fn name(&self) -> &'static str;

    /// Title of its report.
    fn title(&self) -> &'static str;

    /// What it asks and how, in one or two sentences, for `binlogd-lab list`.
    fn summary(&self) -> &'static str;

    /// What `--set` may change, with the values that `profile` gives.
    fn settings(&self, profile: Profile) -> Settings;

    /// The cells of a run in the order of measuring. It changes nothing and starts nothing, and gives the same plan for
    /// the same order, so that an interrupted run can be resumed.
    ///
    /// # Errors
    /// When a setting has no sense or a server does not fit the study; the error says which.
    fn plan(&self, order: &Order) -> anyhow::Result<Plan>;

    /// Starts and fills everything that the scene needs. What it starts is stopped when the result is dropped.
    ///
    /// # Errors
    /// [`Skip`](crate::lab::Skip) when something is missing on this machine, then the run goes on without the scene.
    /// Any other error ends the run: a server, a load or binlogd does not work, or the run is broken off.
    fn set_up(&self, order: &Order, scene: &Scene, lab: &Lab) -> anyhow::Result<Box<dyn Stage>>;

    /// What the report shows of a run, from its cells alone.
    fn outline(&self, run: &Run) -> Vec<Part>;

    /// The configurations that figures of this one are shown as ratios to, where a run is exported as lines.
    fn baselines(&self, _configuration: &Configuration) -> Vec<Configuration> {
        self.headline().baseline.into_iter().collect()
    }

    /// What a report begins with where it shows runs that differ in the delay of their network; nothing without it.
    fn by_delay(&self) -> Option<ByDelay> {
        None
    }

    /// What `binlogd-lab compare` compares.
    fn headline(&self) -> Headline {
        Headline { values: &[], baseline: None }
    }
}

/// What two runs of a study are compared by: ratios of these values, made within each block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headline {
    /// Names of values of the cells; none for all that they have.
    pub values: &'static [&'static str],
    /// The configuration that ratios are made to; without one, that which was measured first in the panel.
    pub baseline: Option<Configuration>,
}

/// What is shown over the delay of the network between the source and what receives.
#[derive(Debug, Clone, PartialEq)]
pub struct ByDelay {
    /// Above it.
    pub title: &'static str,
    /// Name of the value in the cells, of which more is better.
    pub value: &'static str,
    /// What the value is called, such as `Transactions a second`.
    pub quantity: &'static str,
    /// The configuration that no network is waited for in: ratios are made to it.
    pub baseline: Configuration,
    /// What is shown beside it, in the order of the legend. What a run lacks is left out.
    pub lines: Vec<Configuration>,
    /// What is compared with what beside that.
    pub against: Vec<(Configuration, Configuration)>,
    /// What is shown over the number of clients too, and its published ratios to the baseline by that number.
    pub growth: Option<(Configuration, Vec<(u32, f64)>)>,
}

/// What a run will do.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// One after the other.
    pub scenes: Vec<Scene>,
    /// Seconds of a cell, about, with what is around the load; for the first estimate of the remaining time.
    pub cell_seconds: f64,
}

/// Cells that need the same servers and data. Within it configurations take turns.
#[derive(Debug, Clone, PartialEq)]
pub struct Scene {
    /// Unique within the plan, shown while it is set up.
    pub name: String,
    /// What it measures.
    pub servers: Vec<ServerChoice>,
    /// In the order of measuring.
    pub cells: Vec<CellKey>,
}

impl Scene {
    /// The one that it measures.
    ///
    /// # Errors
    /// When it has none.
    pub fn server(&self) -> anyhow::Result<&ServerChoice> {
        self.servers.first().with_context(|| format!("the scene {} has no server", self.name))
    }

    /// The configurations of its cells, as those of the study.
    ///
    /// # Errors
    /// When one is of another study.
    pub fn configurations<'a, T>(&'a self) -> anyhow::Result<Vec<T>>
    where
        T: TryFrom<&'a Configuration, Error = anyhow::Error>,
    {
        self.cells.iter().map(|cell| (&cell.point.configuration).try_into()).collect()
    }
}

/// A scene that is set up.
pub trait Stage {
    /// What is known of the servers now: version, and each variable that differs from its default.
    ///
    /// # Errors
    /// When a server does not answer.
    fn facts(&mut self) -> anyhow::Result<Vec<Fact>>;

    /// Measures one cell.
    ///
    /// # Errors
    /// When the source does not work any more, and when the run is broken off. Whatever else is wrong makes the cell
    /// invalid.
    fn measure(&mut self, point: &Point, round: u32) -> anyhow::Result<Measured>;
}

/// The order of measuring: in each round every block, in a block every configuration once, in an order in which each has
/// another predecessor from block to block and from round to round: what one leaves behind (dirty pages, a log to be
/// flushed) must not always fall on the same other. Each panel is measured with all numbers of threads.
pub fn interleaved<C: Clone + Into<Configuration>>(
    panels: &[Panel],
    threads: &[u32],
    configurations: &[C],
    rounds: u32,
) -> Vec<CellKey> {
    let blocks: Vec<_> =
        panels.iter().flat_map(|panel| threads.iter().map(move |one| (panel, *one))).collect();
    let mut cells = Vec::with_capacity(blocks.len() * configurations.len() * rounds as usize);
    for round in 0..rounds {
        for (number, (panel, threads)) in blocks.iter().enumerate() {
            for turn in turns(configurations.len(), number + round as usize) {
                cells.push(CellKey { point: panel.point(configurations[turn].clone(), *threads), round });
            }
        }
    }
    cells
}

/// Row `row` of a Williams design (Williams 1949): over `count` rows, twice as many for an odd number, each of `count`
/// things follows each other one equally often. In row 0 they stand in their own order.
fn turns(count: usize, row: usize) -> Vec<usize> {
    // 0, 1, last, 2, last but one, …
    let zigzag: Vec<usize> = (0..count)
        .map(|index| if index % 2 == 1 { index.div_ceil(2) } else { (count - index / 2) % count })
        .collect();
    // For an odd number the mirror images are needed too.
    let shift = if count.is_multiple_of(2) { row } else { row / 2 };
    let thing = |number: usize| zigzag.iter().position(|other| *other == number).unwrap_or(number);
    let mut turns: Vec<usize> = zigzag.iter().map(|number| thing((number + shift) % count)).collect();
    if count % 2 == 1 && row % 2 == 1 {
        turns.reverse();
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::Condition;

    #[test]
    fn configurations_take_turns() {
        let panel = Panel { server: "mysql-9.7".to_owned(), condition: Condition::Plain };
        let all = crate::point::semi_sync_cost::ALL[..3].iter().copied().map(Configuration::from);
        let all: Vec<Configuration> = all.collect();
        let cells = interleaved(&[panel], &[2, 8], &all, 2);
        let letter =
            |cell: &CellKey| "abc".chars().zip(&all).find(|(_, one)| **one == cell.point.configuration);
        let order: String = cells.iter().map(|cell| letter(cell).unwrap().0).collect();
        assert_eq!(order, "abccbacbabca");
        let threads: Vec<u32> = cells.iter().map(|cell| cell.point.threads).collect();
        assert_eq!(threads, [2, 2, 2, 8, 8, 8, 2, 2, 2, 8, 8, 8]);
    }

    #[test]
    fn each_configuration_follows_each_other_equally_often() {
        for count in [2_usize, 3, 4, 7, 8, 11] {
            let rows = if count % 2 == 0 { count } else { 2 * count };
            let mut follows = std::collections::BTreeMap::new();
            for row in 0..rows {
                let turns = turns(count, row);
                let mut sorted = turns.clone();
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..count), "{turns:?}");
                turns.windows(2).for_each(|pair| *follows.entry((pair[0], pair[1])).or_insert(0) += 1);
            }
            assert_eq!(follows.len(), count * (count - 1), "{count}");
            let wanted = rows / count;
            assert!(follows.values().all(|times| *times == wanted), "{count}: {follows:?}");
        }
        assert_eq!((turns(1, 5), turns(0, 0)), (vec![0], vec![]));
        assert!(turns(8, 0).into_iter().eq(0..8) && turns(7, 0).into_iter().eq(0..7));
    }
}
