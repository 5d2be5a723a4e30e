//! A page of 80 columns: names at the left, texts that are wrapped beside them.

use crate::cli::style::{clean, paint};
use crate::cli::units;
use jiff::Timestamp;
use std::fmt::{Result, Write};

/// Width of a page that is printed.
pub(in crate::cli) const WIDTH: usize = 80;
/// A page is never narrower: words need some room.
const WIDTH_MIN: usize = 40;
/// Width of the names at the left, with their margin.
const MARGIN: usize = 16;
/// Most lines given to one GTID set; JSON has all of it.
const GTID_LINES_MAX: usize = 4;

/// The page as far as it is written. Texts of a server are shown without control characters, so that none can drive the
/// terminal.
pub(super) struct Page {
    pub(super) text: String,
    pub(super) colored: bool,
    pub(super) now: Timestamp,
    /// Columns.
    pub(super) width: usize,
}

impl Page {
    /// An empty page of `width` columns, or of the least that a page needs.
    pub(super) fn new(width: usize, colored: bool, now: Timestamp) -> Page {
        Page { text: String::new(), colored, now, width: width.max(WIDTH_MIN) }
    }

    /// A name and a text, wrapped. Nothing when there is no text.
    pub(super) fn line(&mut self, name: &str, text: Option<&str>) -> Result {
        let Some(text) = text else { return Ok(()) };
        let mut name = name;
        for line in wrapped(&clean(text), self.width - MARGIN) {
            writeln!(self.text, "  {name:<width$}{line}", width = MARGIN - 2)?;
            name = "";
        }
        Ok(())
    }

    /// A set of GTIDs, as much of it as there is room for.
    pub(super) fn gtid(&mut self, name: &str, set: &str) -> Result {
        if set.is_empty() {
            return self.line(name, Some("none"));
        }
        let mut lines = wrapped_set(&clean(set), self.width - MARGIN);
        if lines.len() > GTID_LINES_MAX {
            lines.truncate(GTID_LINES_MAX - 1);
            lines.push(format!(
                "… {} characters in all, see --json",
                units::count(set.chars().count() as u64)
            ));
        }
        for (index, line) in lines.iter().enumerate() {
            self.line(if index == 0 { name } else { "" }, Some(line))?;
        }
        Ok(())
    }

    /// Bold, in a colour of the terminal, where colours are wanted.
    pub(super) fn painted(&self, text: &str, color: u8) -> String {
        paint(&clean(text), color, self.colored)
    }
}

/// Lines of at most `width` characters, broken at spaces where there are some.
pub(in crate::cli) fn wrapped(text: &str, width: usize) -> Vec<String> {
    wrap(text.split_inclusive(' '), width)
}

/// As [`wrapped`], broken after the commas between UUIDs and before the colons between intervals.
fn wrapped_set(set: &str, width: usize) -> Vec<String> {
    let parts = set.split_inclusive(',').flat_map(|member| {
        let colons: Vec<usize> = member.match_indices(':').map(|(index, _)| index).collect();
        let starts = [0].into_iter().chain(colons.clone());
        let ends = colons.into_iter().chain([member.len()]);
        starts.zip(ends).map(|(start, end)| &member[start..end]).collect::<Vec<_>>()
    });
    wrap(parts, width)
}

fn wrap<'a>(parts: impl Iterator<Item = &'a str>, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut used = width;
    for part in parts {
        if used + part.trim_end().chars().count() > width || lines.is_empty() {
            lines.push(String::new());
            used = 0;
        }
        for character in part.chars() {
            if used == width && character != ' ' {
                lines.push(String::new());
                used = 0;
            }
            lines.last_mut().expect("a line was begun").push(character);
            used += 1;
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_loses_nothing() {
        for width in 1..40 {
            let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
            let set = format!("{uuid}:1-7:9,{uuid}:tag:1-3");
            let lines = wrapped_set(&set, width);
            assert_eq!(lines.concat(), set);
            assert!(lines.iter().all(|line| line.chars().count() <= width));
        }
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("", 7), [""; 0]);
    }
}
