//! What stands between a receiver and its source.

pub mod forward;
pub mod proxy;
pub mod tap;
