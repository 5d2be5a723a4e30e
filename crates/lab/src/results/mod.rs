//! What was measured, and the figures made of it.
//!
//! | module | noun |
//! |---|---|
//! | `run` | a run and its cells |
//! | `measured` | what a window of measurement came to |
//! | `fact` | what is known of what was measured on |
//! | `skip` | why a part of a run is left out |
//! | `statistics` | medians of rounds, and ratios within a round |
//! | `number` | numbers and times as they are shown |

pub mod fact;
pub mod measured;
pub(crate) mod number;
pub mod run;
pub mod skip;
pub mod statistics;
