//! A page of 80 columns: names at the left, texts that are wrapped beside them.

use super::rank::color;
use crate::cli::style::{clean, paint};
use crate::cli::units;
use jiff::Timestamp;
use status::view::{Piece, Row};
use status::{Level, human_time};
use std::fmt::{Result, Write};

/// Width of a page that is printed.
pub(in crate::cli) const WIDTH: usize = 80;
/// A page is never narrower: words need some room.
const WIDTH_MIN: usize = 40;
/// Width of the names at the left, with their margin.
const MARGIN: usize = 16;
/// Most lines given to one GTID set; JSON has all of it.
const GTID_LINES_MAX: usize = 4;

/// What stands at the left of the first line of a row.
struct Name<'a> {
    text: &'a str,
    level: Level,
}

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

    /// Rows, each with its name at the left.
    pub(super) fn rows(&mut self, rows: &[Row]) -> Result {
        rows.iter().try_for_each(|row| self.row(row))
    }

    /// A row: its name, in the colour of its level where somebody is needed, and what it says.
    pub(super) fn row(&mut self, row: &Row) -> Result {
        let mut name = Name { text: row.name, level: row.level };
        let mut text = String::new();
        for piece in &row.pieces {
            match piece {
                Piece::Text(words) => text += words,
                Piece::At(at) => text += &human_time(*at),
                Piece::Ago(at) => {
                    let ago = u64::try_from(self.now.as_second() - at.as_second()).unwrap_or(0);
                    write!(text, " ({} ago)", units::duration(ago))?;
                }
                Piece::Gtids(set) => {
                    self.wrapped(&mut name, &std::mem::take(&mut text))?;
                    self.set(&mut name, set)?;
                }
                Piece::Line => self.wrapped(&mut name, &std::mem::take(&mut text))?,
            }
        }
        self.wrapped(&mut name, &text)
    }

    /// A name and a text, wrapped. Nothing when there is no text.
    pub(super) fn line(&mut self, name: &str, text: Option<&str>) -> Result {
        self.wrapped(&mut Name { text: name, level: Level::Ok }, text.unwrap_or_default())
    }

    fn wrapped(&mut self, name: &mut Name<'_>, text: &str) -> Result {
        wrapped(&clean(text), self.width - MARGIN).iter().try_for_each(|line| self.beside(name, line))
    }

    /// A set of GTIDs, as much of it as there is room for.
    fn set(&mut self, name: &mut Name<'_>, set: &str) -> Result {
        if set.is_empty() {
            return self.beside(name, "none");
        }
        let mut lines = wrapped_set(&clean(set), self.width - MARGIN);
        if lines.len() > GTID_LINES_MAX {
            lines.truncate(GTID_LINES_MAX - 1);
            let all = units::count(set.chars().count() as u64);
            lines.push(format!("… {all} characters in all, see --json"));
        }
        lines.iter().try_for_each(|line| self.beside(name, line))
    }

    /// A line beside the name, which only the first one has.
    fn beside(&mut self, name: &mut Name<'_>, line: &str) -> Result {
        let padded = format!("{:width$}", name.text, width = MARGIN - 2);
        let shown = match name.level {
            level if level >= Level::Warning && !name.text.is_empty() => self.painted(&padded, color(level)),
            _ => padded,
        };
        name.text = "";
        writeln!(self.text, "  {shown}{line}")
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
