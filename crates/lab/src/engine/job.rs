//! What is to be run.

use crate::model::{Fact, Order};
use crate::study::Study;

/// How a run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// A new run.
    New,
    /// The run of that number goes on.
    Resume(i64),
}

/// What is to be run.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// Which study.
    pub study: &'a dyn Study,
    /// What is asked of it.
    pub order: &'a Order,
    /// The command line, passwords removed.
    pub command: &'a str,
    /// What it is measured on.
    pub facts: &'a [Fact],
    /// A new run, or one that was interrupted.
    pub begin: Begin,
}
