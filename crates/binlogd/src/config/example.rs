//! The text of `binlogd config example`.

use super::keys::{Absent, KEYS, Key, Section};

const HEAD: &str = "\
# Configuration of binlogd: binlogd run --config binlogd.toml
#
# A line \"#key = value\" shows the default; a line \"# key = value\" shows a key that has none. Only [[source]] with hosts
# and user must be given. Check a changed file with: binlogd config check binlogd.toml
# Durations are whole numbers with a unit: 250ms, 5s, 1m30s, 2h.
";

/// A commented configuration that means exactly the defaults, with every key.
pub fn example() -> String {
    let mut text = HEAD.to_owned();
    let mut section = Section::Root;
    for key in KEYS {
        if key.section != section {
            section = key.section;
            text.push_str(&format!("\n{}\n", section_head(section)));
        }
        text.push('\n');
        for line in key.about.lines() {
            text.push_str(&format!("# {line}\n"));
        }
        if !says_allowed(key) {
            text.push_str(&format!("# Allowed: {}.\n", key.allowed()));
        }
        text.push_str(&match key.absent {
            Absent::Required(value) => format!("{} = {value}\n", key.name),
            Absent::Default(value) => format!("#{} = {value}\n", key.name),
            Absent::Unset(value) => format!("# {} = {value}\n", key.name),
        });
    }
    text
}

fn section_head(section: Section) -> String {
    let about = match section {
        Section::Root => unreachable!("the top level has no heading"),
        Section::Admin => "# Status, metrics and health over HTTP.",
        Section::Log => "# What binlogd says about itself.",
        Section::Source => "# A server to copy. Repeat this table for each further one.",
    };
    format!("{about}\n{}", section.title())
}

/// Whether the explanation lists the allowed values already, or they go without saying.
fn says_allowed(key: &Key) -> bool {
    use super::keys::Kind;
    matches!(key.kind, Kind::Text | Kind::Secret | Kind::Path | Kind::Start | Kind::Listen)
        || (key.name == "fsync_mode")
}
