//! `binlogd status --watch`: the status again and again.

use crate::cli::exit::EXIT_OK;
use jiff::Timestamp;
use ratatui::crossterm::terminal;
use status::human_time;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// To the upper left corner.
const HOME: &str = "\x1b[H";
/// Clears to the end of the line.
const CLEAR_LINE: &str = "\x1b[K";
/// Clears what is below.
const CLEAR_BELOW: &str = "\x1b[J";

/// Prints what `look` gives every `seconds`, until a signal or until nobody reads any more. A terminal is written over;
/// elsewhere each time is a block of its own, and JSON a line. What goes wrong is told, and it is tried again: who watches
/// wants to see the end of it.
pub(super) fn run(
    seconds: u64,
    is_json: bool,
    look: impl Fn(Timestamp) -> anyhow::Result<String>,
) -> ExitCode {
    let (interval, is_terminal) = (Duration::from_secs(seconds), io::stdout().is_terminal());
    loop {
        let (began, now) = (Instant::now(), Timestamp::now());
        let text = match look(now) {
            Ok(text) if is_json => text,
            Err(error) if is_json => {
                errln!("error: {error:#}");
                String::new()
            }
            looked => {
                let text = looked.unwrap_or_else(|error| format!("{error:#}\n"));
                let height =
                    is_terminal.then(|| terminal::size().map_or(usize::MAX, |(_, rows)| rows.into()));
                page(&text, seconds, now, height)
            }
        };
        let mut out = io::stdout().lock();
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            return ExitCode::from(EXIT_OK);
        }
        drop(out);
        std::thread::sleep(interval.saturating_sub(began.elapsed()));
    }
}

/// The text with the time at which it holds. `height`: the lines of the terminal, if it is one.
fn page(text: &str, seconds: u64, now: Timestamp, height: Option<usize>) -> String {
    let now = human_time(now);
    let Some(height) = height else { return format!("--- {now}\n{text}\n") };
    let title = format!("every {seconds} s, {now}");
    let mut lines: Vec<String> =
        [title, String::new()].into_iter().chain(text.lines().map(str::to_owned)).collect();
    // What does not fit would scroll away what is worst.
    let room = height.saturating_sub(1).max(1);
    if lines.len() > room {
        let more = lines.len() - room + 1;
        lines.truncate(room - 1);
        lines.push(format!("… {more} more lines"));
    }
    let lines: String = lines.iter().map(|line| format!("{line}{CLEAR_LINE}\n")).collect();
    format!("{HOME}{lines}{CLEAR_BELOW}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_written_over_and_a_file_gets_blocks() {
        let page = |height| page("one\ntwo\nthree\n", 2, Timestamp::UNIX_EPOCH, height);
        assert_eq!(page(None), "--- 1970-01-01 00:00:00 UTC\none\ntwo\nthree\n\n");
        let title = "\x1b[Hevery 2 s, 1970-01-01 00:00:00 UTC\x1b[K\n\x1b[K\none\x1b[K\n";
        assert_eq!(page(Some(24)), format!("{title}two\x1b[K\nthree\x1b[K\n\x1b[J"));
        assert_eq!(page(Some(5)), format!("{title}… 2 more lines\x1b[K\n\x1b[J"));
        assert!(page(Some(0)).lines().count() < 3);
    }
}
