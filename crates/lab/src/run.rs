//! A run and its cells, as the store keeps them.

use crate::model::{Fact, Measured, Order};
use crate::point::CellKey;

/// A cell that was measured, as the store keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Which.
    pub key: CellKey,
    /// Seconds since 1970 when it began.
    pub started: u64,
    /// Seconds that it took, with everything around the load.
    pub took: f64,
    /// What it came to.
    pub measured: Measured,
}

/// A run, as the store keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Counts up from 1.
    pub id: i64,
    /// Name of the study.
    pub study: String,
    /// What was asked for.
    pub order: Order,
    /// The command line, passwords removed.
    pub command: String,
    /// Seconds since 1970.
    pub started: u64,
    /// Seconds since 1970; absent while it runs and when it was interrupted.
    pub finished: Option<u64>,
    /// What it was measured on.
    pub facts: Vec<Fact>,
    /// The cells that were measured, in the order of measuring.
    pub cells: Vec<Cell>,
    /// What could not be measured here, and why: a file system that is missing, a server that does not start.
    pub skipped: Vec<String>,
}
