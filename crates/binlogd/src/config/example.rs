//! The text of `binlogd config example`, and comments in configuration files.

use super::keys::{Absent, KEYS, Key, Kind, Section};

/// Columns of a comment.
const COLUMNS: usize = 110;

const HEAD: &str = "\
Configuration of binlogd: binlogd run --config binlogd.toml
A line \"#key = value\" shows a default, a line \"# key = value\" an example for a key that has none. Only hosts and user \
of each source must be given. Check a changed file with: binlogd config check binlogd.toml
Durations are whole numbers with a unit: 250ms, 5s, 1m30s, 2h.";

/// A commented configuration that means exactly the defaults, with every key.
pub fn example() -> String {
    let mut text = comment(HEAD);
    let mut section = Section::Root;
    for key in KEYS {
        if key.section != section {
            section = key.section;
            text.push('\n');
            text.push_str(&section_head(section));
        }
        text.push('\n');
        text.push_str(&comment(key.about));
        text.push_str(&comment(&allowed(key)));
        text.push_str(&match key.absent {
            Absent::Required(value) => format!("{} = {value}\n", key.name),
            Absent::Default(value) => format!("#{} = {value}\n", key.name),
            Absent::Unset(value) => format!("# {} = {value}\n", key.name),
        });
    }
    text
}

/// `text` as comment lines, wrapped. A line that begins with two blanks keeps its shape.
pub fn comment(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut column = 0;
        let words = if line.starts_with("  ") { vec![line] } else { line.split_whitespace().collect() };
        for word in words {
            let width = word.chars().count();
            if column == 0 || column + 1 + width > COLUMNS {
                if column > 0 {
                    out.push('\n');
                }
                out.push('#');
                column = 1;
            }
            out.push(' ');
            out.push_str(word);
            column += 1 + width;
        }
        out.push('\n');
    }
    out
}

fn section_head(section: Section) -> String {
    let about = match section {
        Section::Root => "The top level.",
        Section::Admin => "Status, metrics and health over HTTP.",
        Section::Log => "What binlogd says about itself.",
        Section::Source => "A server to copy. Repeat this table for each further one.",
    };
    format!("{}{}\n", comment(about), section.title())
}

/// The allowed values, where the explanation does not say them: choices one a line, ranges in a sentence.
fn allowed(key: &Key) -> String {
    match key.kind {
        Kind::Choice(choices) => {
            let width = choices.iter().map(|(word, _)| word.len()).max().unwrap_or(0);
            let lines = choices.iter().map(|(word, meaning)| format!("  {word:width$}   {meaning}"));
            lines.collect::<Vec<_>>().join("\n")
        }
        Kind::Name | Kind::Number { .. } | Kind::Duration { .. } => format!("It must be {}.", key.allowed()),
        _ => String::new(),
    }
}
