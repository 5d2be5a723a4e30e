//! Numbers as a person reads them: the words of the status, for every verb.

pub(super) use status::units::{bytes, count, counted, counted_were, duration, latency};
