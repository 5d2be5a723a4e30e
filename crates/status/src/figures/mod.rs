//! Numbers: counts, rates, latencies, and the last hour of them.

pub(crate) mod counters;
pub(crate) mod history;
pub(crate) mod known_count;
pub(crate) mod latency;
pub(crate) mod rate;
pub(crate) mod resources;
