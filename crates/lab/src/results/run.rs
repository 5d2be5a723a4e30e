//! A run and its cells, as the store keeps them.

use crate::model::{Fact, Measured, Order};
use crate::point::CellKey;
use std::fmt;

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
    /// What could not be measured here.
    pub skipped: Vec<Skipped>,
}

/// A scene that could not be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its name.
    pub scene: String,
    /// Why: a file system is missing, a server does not start.
    pub reason: String,
}

impl Skipped {
    /// From both.
    pub fn new(scene: impl Into<String>, reason: impl Into<String>) -> Skipped {
        Skipped { scene: scene.into(), reason: reason.into() }
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.scene, self.reason)
    }
}
