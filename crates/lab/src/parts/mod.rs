//! Parts of a report that several studies show.
//!
//! | file | noun |
//! |---|---|
//! | `sweep.rs` | a value over numbers of threads, its ratios, and what was published of it |
//! | `times.rs` | how long transactions took |

pub mod sweep;
pub mod times;
