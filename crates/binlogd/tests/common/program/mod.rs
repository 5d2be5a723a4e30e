//! The built binary, as an operator runs it, and what it says.

pub mod alert;
pub mod daemon;
pub mod doctor;
pub mod metrics;
pub mod rules;
pub mod verbs;
