//! The page of the configuration keys.

use std::fmt::Write;

use binlogd::reference::{Default, KeyText, SectionText, sections};

use crate::markdown::{code, head, plain};

const ABOUT: &str = "\
Every key of `binlogd.toml`, as `binlogd config example` prints them. Only `hosts` and `user` of each `[[source]]` must be
given. `binlogd config check` tells what is wrong with a file, all at once. Durations are whole numbers with a unit: `250ms`,
`5s`, `1m30s`, `2h`, `30d`. A key that names no default has none. Most keys have a flag of `binlogd run`, for one source without
a file. *SIGHUP*: a reload takes up a change at once; *SIGHUP, connects again*: with a new connection to the source; *restart*: a change needs one.";

/// The text of the page.
pub(crate) fn page() -> String {
    let mut page = head("Configuration keys", ABOUT);
    for section in sections() {
        let (title, about) = match section.title.starts_with('[') {
            true => (code(section.title), section.about.as_str()),
            false => ("The top level".to_owned(), "Above the first table of the file."),
        };
        // Writing to a text does not fail, here and below.
        let _ = write!(page, "\n## {title}\n\n{}\n", plain(about));
        for key in &section.keys {
            let _ = write!(page, "\n### {}\n\n{}", heading(&section, key), body(key));
        }
    }
    page
}

/// The section stands in the heading, because several sections have a key of one name.
fn heading(section: &SectionText, key: &KeyText) -> String {
    if section.title.starts_with('[') {
        code(&format!("{} {}", section.title, key.name))
    } else {
        code(key.name)
    }
}

fn body(key: &KeyText) -> String {
    let mut text = about(&key.about);
    if key.choices.is_empty() {
        let _ = write!(text, "\nValue: {}. ", plain(&key.allowed));
    } else {
        text.push('\n');
        for (word, meaning) in key.choices {
            let _ = writeln!(text, "- `{word}`: {}", plain(meaning));
        }
        text.push('\n');
    }
    let default = match key.default {
        Default::Value(value) => format!("Default: `{value}`"),
        Default::None(example) => format!("Example: `{example}`"),
        Default::Required(example) => format!("Must be given; example: `{example}`"),
    };
    let flag = key.flag.map_or(String::new(), |flag| format!(" · flag `--{flag}`"));
    let _ = writeln!(text, "{default}{flag} · {}", reload(key.reload));
    text
}

/// The head of the page says once what the usual answers mean.
fn reload(text: &str) -> &str {
    match text {
        "SIGHUP takes up a change at once" => "SIGHUP",
        "a change needs a restart" => "restart",
        "SIGHUP takes up a change, with a new connection to the source" => "SIGHUP, connects again",
        other => other,
    }
}

/// One paragraph a line; lines that keep their shape become a block.
fn about(text: &str) -> String {
    let (mut out, mut in_block) = (String::new(), false);
    for line in text.lines() {
        let keeps_shape = line.starts_with("  ");
        if keeps_shape != in_block {
            out.push_str(if keeps_shape { "\n```text\n" } else { "```\n" });
            in_block = keeps_shape;
        }
        if keeps_shape {
            let _ = writeln!(out, "{}", line.trim_start_matches("  "));
        } else {
            let gap = if out.is_empty() { "" } else { "\n" };
            let _ = writeln!(out, "{gap}{}", plain(line));
        }
    }
    if in_block { out + "```\n" } else { out }
}

#[cfg(test)]
mod tests {
    #[test]
    fn lines_that_keep_their_shape_become_a_block() {
        let text = super::about("One:\n  <a>   b\n  c     d\nTwo <x>.");
        assert_eq!(text, "One:\n\n```text\n<a>   b\nc     d\n```\n\nTwo \\<x>.\n");
    }

    #[test]
    fn every_key_of_the_example_has_its_heading() {
        let page = super::page();
        for (heading, count) in
            [("### `[serve] listen`", 1), ("### `data_dir`", 1), ("### `[[source]] on_gap`", 1)]
        {
            assert_eq!(page.lines().filter(|line| *line == heading).count(), count, "{heading}");
        }
    }
}
