//! How far a run is: a bar on a terminal, else one line a cell.

use crate::point::{CellKey, Point};
use crate::results::run::Cell;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The bar that is shown now, for [`say`].
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Names of values of which the first that a cell has is shown as it comes in, and how they are read.
const SHOWN_VALUES: [(&str, &str); 3] = [("tpmc", "TpmC"), ("tps", "transactions/s"), ("qps", "queries/s")];

/// Prints a line on standard error, above the bar when there is one.
pub fn say(text: &str) {
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    match &*shown {
        Some(bar) => bar.println(text),
        None => eprintln!("{text}"),
    }
}

/// Seconds that are left, from what was measured so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    cells_left: usize,
    scenes_left: usize,
    /// Of a cell, from the plan; used until one was measured.
    planned: f64,
    cells: Mean,
    set_ups: Mean,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Mean {
    sum: f64,
    count: u32,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    fn get(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }
}

impl Estimate {
    /// For so many cells in so many scenes, of which one is thought to take `planned` seconds.
    pub fn new(cells_left: usize, scenes_left: usize, planned: f64) -> Estimate {
        Estimate { cells_left, scenes_left, planned, cells: Mean::default(), set_ups: Mean::default() }
    }

    /// A cell that an earlier part of the run measured.
    pub fn known(&mut self, seconds: f64) {
        self.cells.add(seconds);
    }

    /// A scene was set up in `seconds`.
    pub fn set_up(&mut self, seconds: f64) {
        self.scenes_left = self.scenes_left.saturating_sub(1);
        self.set_ups.add(seconds);
    }

    /// A scene is skipped with its cells.
    pub fn skipped(&mut self, cells: usize) {
        self.scenes_left = self.scenes_left.saturating_sub(1);
        self.cells_left = self.cells_left.saturating_sub(cells);
    }

    /// A cell was measured in `seconds`.
    pub fn measured(&mut self, seconds: f64) {
        self.cells_left = self.cells_left.saturating_sub(1);
        self.cells.add(seconds);
    }

    /// What is left. The set-up of scenes is not known before the first, and left out then.
    pub fn left(&self) -> Duration {
        let cell = self.cells.get().unwrap_or(self.planned);
        let set_up = self.set_ups.get().unwrap_or(0.0);
        Duration::from_secs_f64((cell * self.cells_left as f64 + set_up * self.scenes_left as f64).max(0.0))
    }
}

/// The progress of one run, shown until it is dropped.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    /// Of cells.
    total: usize,
    done: usize,
    estimate: Estimate,
    began: Instant,
    /// When it will be over, as the bar counts down to it.
    end: Arc<Mutex<Instant>>,
}

impl Progress {
    /// For a run of `total` cells, of which `done` are there already.
    pub fn begin(title: &str, total: usize, done: usize, estimate: Estimate) -> Progress {
        let end = Arc::new(Mutex::new(Instant::now() + estimate.left()));
        let bar = std::io::stderr().is_terminal().then(|| bar(title, total, end.clone()));
        if let Some(bar) = &bar {
            bar.set_position(done as u64);
            *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
        }
        Progress { bar, total, done, estimate, began: Instant::now(), end }
    }

    /// A scene is being set up.
    pub fn scene(&self, name: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(format!("setting up {name}")),
            None => eprintln!("setting up {name}"),
        }
    }

    /// It was set up in `seconds`.
    pub fn scene_is_set_up(&mut self, seconds: f64) {
        self.estimate.set_up(seconds);
        self.look_ahead();
    }

    /// It cannot be set up, and `cells` are not measured.
    pub fn scene_is_skipped(&mut self, name: &str, cells: usize, reason: &str) {
        say(&format!("skipped: {name}, {cells} cells: {reason}"));
        self.total -= cells;
        self.estimate.skipped(cells);
        if let Some(bar) = &self.bar {
            bar.set_length(self.total as u64);
        }
        self.look_ahead();
    }

    /// A cell begins.
    pub fn cell_begins(&self, key: &CellKey) {
        if let Some(bar) = &self.bar {
            bar.set_message(label(key));
        }
    }

    /// A cell was measured, in `seconds` with all attempts.
    pub fn cell_ends(&mut self, cell: &Cell, seconds: f64) {
        self.done += 1;
        self.estimate.measured(seconds);
        self.look_ahead();
        let result = result(cell);
        match &self.bar {
            Some(bar) => {
                bar.set_position(self.done as u64);
                if cell.measured.invalid.is_some() {
                    say(&format!("{}: {result}", label(&cell.key)));
                }
            }
            None => eprintln!(
                "cell {} of {} · {} elapsed, about {} left · {}: {result}",
                self.done,
                self.total,
                clock(self.began.elapsed()),
                clock(self.estimate.left()),
                label(&cell.key),
            ),
        }
    }

    fn look_ahead(&self) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + self.estimate.left();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = None;
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(title: &str, total: usize, end: Arc<Mutex<Instant>>) -> ProgressBar {
    let left = move |_: &ProgressState, text: &mut dyn std::fmt::Write| {
        let end = *end.lock().unwrap_or_else(PoisonError::into_inner);
        // A failed write here only spoils the line.
        let _ = text.write_str(&clock(end.saturating_duration_since(Instant::now())));
    };
    let elapsed = |state: &ProgressState, text: &mut dyn std::fmt::Write| {
        let _ = text.write_str(&clock(state.elapsed()));
    };
    // A line for the cell alone: its name is long, and what tells it from the last one stands at its end.
    let template = "{prefix} {bar:16} {pos}/{len} · {spent} elapsed, about {left} left\n  {wide_msg}";
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let style = style.with_key("left", left).with_key("spent", elapsed);
    let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
    bar.set_style(style);
    bar.set_prefix(title.to_owned());
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// A cell in words.
pub fn label(key: &CellKey) -> String {
    let Point { panel, configuration, threads } = &key.point;
    format!("{panel}: {configuration}, {threads} threads, round {}", key.round + 1)
}

fn result(cell: &Cell) -> String {
    let value = |(name, unit): &(&str, &str)| {
        let value = cell.measured.values.get(*name)?;
        Some(format!("{value:.0} {unit}"))
    };
    let number = SHOWN_VALUES.iter().find_map(value).unwrap_or_else(|| "measured".to_owned());
    match &cell.measured.invalid {
        Some(reason) => format!("INVALID: {reason}"),
        None => number,
    }
}

/// `1:02:03`, or `2:03` below an hour.
pub fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        hours => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Measured;
    use crate::point::virtual_replica::Configuration;
    use crate::point::{Condition, Panel};

    #[test]
    fn the_remaining_time_follows_what_was_measured() {
        let mut estimate = Estimate::new(10, 2, 5.0);
        assert_eq!(estimate.left(), Duration::from_secs(50));
        estimate.set_up(30.0);
        assert_eq!(estimate.left(), Duration::from_secs(80));
        estimate.measured(7.0);
        estimate.measured(9.0);
        assert_eq!(estimate.left(), Duration::from_secs(8 * 8 + 30));
        estimate.skipped(5);
        assert_eq!(estimate.left(), Duration::from_secs(3 * 8));
        let mut resumed = Estimate::new(3, 1, 5.0);
        resumed.known(7.0);
        assert_eq!(resumed.left(), Duration::from_secs(21));
    }

    #[test]
    fn a_cell_and_what_it_came_to_are_told_in_words() {
        let panel = Panel { server: "mysql-9.7".to_owned(), condition: Condition::Plain };
        let key = CellKey { point: panel.point(Configuration::Alone, 8), round: 0 };
        assert_eq!(label(&key), "mysql-9.7: source alone, 8 threads, round 1");
        let mut measured = Measured::default();
        measured.put("p95_ms", 3.0);
        measured.put("tps", 411.6);
        let mut cell = Cell { key, started: 0, took: 1.0, measured };
        assert_eq!(result(&cell), "412 transactions/s");
        cell.measured.refuse("semi-sync fell back");
        assert_eq!(result(&cell), "INVALID: semi-sync fell back");
        assert_eq!(clock(Duration::from_secs(3723)), "1:02:03");
    }
}
