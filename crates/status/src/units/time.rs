//! Times as they are shown.

use jiff::{Timestamp, Unit};

/// A time as people read it, in UTC to the second.
pub fn human_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// The time to the millisecond, which is what status shows.
pub(crate) fn now_in_milliseconds() -> Timestamp {
    let now = Timestamp::now();
    now.round(Unit::Millisecond).unwrap_or(now)
}
