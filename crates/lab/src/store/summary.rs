//! A run without its cells.

use crate::model::Order;

/// A run without its cells.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Counts up from 1.
    pub id: i64,
    /// Name of the study.
    pub study: String,
    /// What was asked for, passwords removed.
    pub order: Order,
    /// The command line, passwords removed.
    pub command: String,
    /// Seconds since 1970.
    pub started: u64,
    /// Seconds since 1970; absent while it runs and when it was interrupted.
    pub finished: Option<u64>,
    /// Cells that were measured.
    pub cells: u64,
    /// Of `cells`, those that do not count.
    pub invalid: u64,
    /// Scenes that could not be measured.
    pub skipped: u64,
    /// Measured elsewhere, and taken in from a report.
    pub imported: bool,
}
