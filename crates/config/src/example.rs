//! The text of `binlogd config example`, and comments in configuration files.

use super::key::{Absent, Key, Kind, Section};
use super::tables::{declared, keys_of};

/// Columns of a comment.
const COLUMNS: usize = 110;

const HEAD: &str = "\
Configuration of binlogd: binlogd run --config binlogd.toml
A line \"#key = value\" shows a default, a line \"# key = value\" an example for a key that has none. Only hosts and user \
of each source must be given. Check a changed file with: binlogd config check binlogd.toml
Durations are whole numbers with a unit: 250ms, 5s, 1m30s, 2h, 30d.";

/// A commented configuration that means exactly the defaults, with every key.
pub fn example() -> String {
    let mut text = comment(HEAD);
    for section in Section::ALL {
        if section != Section::Root {
            text.push('\n');
            text.push_str(&section_head(section));
        }
        for key in keys_of(section) {
            text.push('\n');
            text.push_str(&comment(&key.about()));
            text.push_str(&comment(&allowed(key)));
            text.push_str(&match key.absent {
                Absent::Required(value) => format!("{} = {value}\n", key.name),
                Absent::Default(value) => format!("#{} = {value}\n", key.name),
                Absent::Unset(value) => format!("# {} = {value}\n", key.name),
            });
        }
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
    // A user, an archive, a drill and who is told are examples; every other section is there with its defaults.
    let mark = if matches!(
        section,
        Section::ServeUser | Section::AdminUser | Section::Archive | Section::Drill | Section::Notify
    ) {
        "# "
    } else {
        ""
    };
    format!("{}{mark}{}\n", comment(&declared(section).about()), section.title())
}

/// The allowed values, where the explanation does not say them: choices one a line, ranges in a sentence.
fn allowed(key: &Key) -> String {
    match key.kind {
        Kind::Choice(choices) | Kind::Choices(choices) => {
            let width = choices.iter().map(|(word, _)| word.len()).max().unwrap_or(0);
            let lines = choices.iter().map(|(word, meaning)| format!("  {word:width$}   {meaning}"));
            lines.collect::<Vec<_>>().join("\n")
        }
        Kind::NAME | Kind::SPACE | Kind::BYTES | Kind::Number { .. } | Kind::Duration { .. } => {
            format!("It must be {}.", key.allowed())
        }
        Kind::Form { .. } => String::new(),
    }
}

#[cfg(test)]
mod tests {

    use super::super::tables::all_keys;
    use super::super::tests::{SOURCE, defaults, parse};
    use super::super::{Config, Loaded};
    use super::*;

    #[test]
    fn the_example_means_the_defaults() {
        assert_eq!(parse(&example()).unwrap(), Loaded { config: defaults(), warnings: vec![] });
    }

    #[test]
    fn the_example_with_every_default_written_out_means_the_same() {
        let uncommented: String = example()
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(rest) if !rest.starts_with(' ') => format!("{rest}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        let written = all_keys().filter(|key| !matches!(key.absent, Absent::Unset(_))).count();
        assert_eq!(
            uncommented.lines().filter(|line| line.contains(" = ") && !line.starts_with('#')).count(),
            written
        );
        assert_eq!(parse(&uncommented).unwrap().config, defaults());
    }

    #[test]
    fn the_example_shows_every_key_and_its_lines_fit() {
        let example = example();
        for key in all_keys() {
            let line = match key.absent {
                Absent::Required(value) => format!("{} = {value}", key.name),
                Absent::Default(value) => format!("#{} = {value}", key.name),
                Absent::Unset(value) => format!("# {} = {value}", key.name),
            };
            assert_eq!(example.lines().filter(|shown| *shown == line).count(), 1, "{line}");
        }
        for line in example.lines() {
            assert!(line.chars().count() <= 110, "{line}");
        }
    }

    #[test]
    fn every_example_of_a_key_is_accepted() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["binlogd.password", "ca.pem", "client-cert.pem", "client-key.pem"] {
            std::fs::write(folder.path().join(file), "x\n").unwrap();
        }
        for key in keys_of(Section::Source) {
            let Absent::Unset(value) = key.absent else { continue };
            let companions = match key.name {
                "tls_ca" => "tls = \"verify-ca\"\n",
                "tls_cert" => "tls_key = \"client-key.pem\"\n",
                "tls_key" => "tls_cert = \"client-cert.pem\"\n",
                "quorum" => "password = \"x\"\n[serve]\nlisten = \"127.0.0.1:0\"\n",
                _ => "",
            };
            let text = format!("{SOURCE}{} = {value}\n{companions}", key.name);
            let environment = |_: &str| Some(Ok("from-env".to_owned()));
            Config::parse(&text, &folder.path().join("b.toml"), &environment)
                .unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
