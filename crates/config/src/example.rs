//! The text of `binlogd config example`, and comments in configuration files.

use super::key::{Absent, Key, Kind, Section};
use super::keys::KEYS;

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

/// What a section is for.
pub fn section_about(section: Section) -> &'static str {
    match section {
        Section::Root => "The top level.",
        Section::Admin => "The web page, status, metrics and health over HTTP.",
        Section::AdminUser => {
            "Who may see them. Repeat this table for each further user. Without any, whoever reaches the address."
        }
        Section::Log => "What binlogd says about itself.",
        Section::Serve => "Replicas and log readers.",
        Section::ServeUser => {
            "Who may read. Repeat this table for each further user. Without any, the accounts of the sources count."
        }
        Section::Retention => {
            "When old files are deleted, of each source. Without a rule nothing is ever deleted. What somebody still needs stays \
             whatever the rules say: binlogd purge --dry-run tells."
        }
        Section::Archive => {
            "History in an object store or in another folder, of all sources. Without url nothing is archived. Credentials come from the \
             environment and the usual files (AWS_*, ~/.aws/credentials, GOOGLE_APPLICATION_CREDENTIALS, AZURE_*)."
        }
        Section::Source => "A server to copy. Repeat this table for each further one.",
    }
}

fn section_head(section: Section) -> String {
    let about = section_about(section);
    // A user and an archive are examples; every other section is there with its defaults.
    let mark =
        if matches!(section, Section::ServeUser | Section::AdminUser | Section::Archive) { "# " } else { "" };
    format!("{}{mark}{}\n", comment(about), section.title())
}

/// The allowed values, where the explanation does not say them: choices one a line, ranges in a sentence.
fn allowed(key: &Key) -> String {
    match key.kind {
        Kind::Choice(choices) | Kind::Choices(choices) => {
            let width = choices.iter().map(|(word, _)| word.len()).max().unwrap_or(0);
            let lines = choices.iter().map(|(word, meaning)| format!("  {word:width$}   {meaning}"));
            lines.collect::<Vec<_>>().join("\n")
        }
        Kind::Name | Kind::Number { .. } | Kind::Duration { .. } | Kind::Space | Kind::Bytes => {
            format!("It must be {}.", key.allowed())
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::tests::{SOURCE, defaults, parse};
    use crate::{Config, Loaded};

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
        let written = KEYS.iter().filter(|key| !matches!(key.absent, Absent::Unset(_))).count();
        assert_eq!(
            uncommented.lines().filter(|line| line.contains(" = ") && !line.starts_with('#')).count(),
            written
        );
        assert_eq!(parse(&uncommented).unwrap().config, defaults());
    }

    #[test]
    fn the_example_shows_every_key_and_its_lines_fit() {
        let example = example();
        for key in KEYS {
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
        for key in KEYS.iter().filter(|key| key.section == Section::Source) {
            let Absent::Unset(value) = key.absent else { continue };
            let companions = match key.name {
                "tls_ca" => "tls = \"verify-ca\"\n",
                "tls_cert" => "tls_key = \"client-key.pem\"\n",
                "tls_key" => "tls_cert = \"client-cert.pem\"\n",
                _ => "",
            };
            let text = format!("{SOURCE}{} = {value}\n{companions}", key.name);
            let environment = |_: &str| Some(Ok("from-env".to_owned()));
            Config::parse(&text, &folder.path().join("b.toml"), &environment)
                .unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
