//! What a restore reads of its command line and shows, whatever its target is.

use super::args::RestoreArgs;
use crate::cli::args::time_range;
use crate::cli::{style, units};
use codec::gtid::GtidState;
use jiff::tz::TimeZone;
use repair::history::Until;
use repair::restore::Course;

/// So many XA transactions are named.
const PREPARED_SHOWN_MAX: usize = 10;

/// The point that is asked for.
pub(super) fn until(args: &RestoreArgs) -> Result<Until, String> {
    let zone = TimeZone::system();
    Until::parse(&args.until, &|text| time_range::of_point(text, &zone))
        .map_err(|why| format!("--until: {why}"))
}

/// What is applied, and where it stops.
pub(super) fn show_course(until: &Until, course: &Course) {
    outln!("point: {until}");
    match &course.last {
        Some(last) => outln!("  last that is applied:    {}", style::clean(&last.to_string())),
        None => outln!("  nothing comes before the point"),
    }
    match &course.first_left_out {
        Some(first) => outln!("  first that is left out:  {}", style::clean(&first.to_string())),
        None => outln!("  nothing is left out: the copy ends there"),
    }
    let (count, bytes) = (units::counted(course.transactions, "transaction"), units::bytes(course.bytes));
    outln!("to apply: {count}, {bytes}; the copy holds all of them");
    if !course.prepared.is_empty() {
        let shown: Vec<&str> = course.prepared.iter().take(PREPARED_SHOWN_MAX).map(String::as_str).collect();
        outln!(
            "warning: at the point {} XA transactions are prepared, and neither committed nor rolled back: {}. They stay so on the \
             target and hold locks; XA COMMIT or XA ROLLBACK is yours to decide",
            course.prepared.len(),
            style::clean(&shown.join(", "))
        );
    }
}

/// A set of GTIDs in one line.
pub(super) fn line(gtids: &GtidState) -> String {
    const CHARACTERS: usize = 300;
    let text = gtids.to_line();
    match text.char_indices().nth(CHARACTERS) {
        _ if text.is_empty() => "nothing".to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
