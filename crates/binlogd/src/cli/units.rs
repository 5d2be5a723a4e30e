//! Numbers as a person reads them: the words of the status, for every verb.

pub(super) use crate::status::units::{bytes, count, counted, duration, latency};
