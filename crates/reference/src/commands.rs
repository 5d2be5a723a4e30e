//! The page of the commands.

use std::collections::BTreeMap;
use std::fmt::Write;

use clap::{Arg, Command};

use crate::keys;
use crate::markdown::{cell, code, head, plain};

const ABOUT: &str = "\
Every verb of `binlogd`, in the form that must at least be given, and its arguments; `binlogd --help` and the man pages have the same. Unless a verb says otherwise, the
exit code is 0 when all is well, 1 when a problem was found, and 2 when the command line or the configuration is wrong.";

/// The text of the page.
pub(crate) fn page() -> String {
    let mut command = binlogd::cli::command();
    command.build();
    let mut page = head("Commands", ABOUT);
    let mut rows = BTreeMap::new();
    visible(&command).for_each(|verb| count_rows(&mut rows, verb));
    rows.retain(|_, verbs| *verbs >= SHARED);
    page.push_str("\n## Options of several verbs\n");
    table(&mut page, rows.keys());
    for verb in visible(&command) {
        verb_text(&mut page, verb, &rows);
    }
    page
}

/// An option that so many verbs have, in the same words, is explained once.
const SHARED: usize = 4;

/// Counts the verbs that have an argument, by its row.
fn count_rows(rows: &mut BTreeMap<String, usize>, verb: &Command) {
    let own = verb.get_arguments().filter(|arg| is_shown(arg) && key(arg).is_none() && !arg.is_positional());
    own.for_each(|arg| *rows.entry(row(arg)).or_default() += 1);
    visible(verb).for_each(|inner| count_rows(rows, inner));
}

/// A row of a table of arguments.
fn row(arg: &Arg) -> String {
    format!("| {} | {} |", cell(&code(&spelling(arg))), cell(&meaning(arg)))
}

fn table<'a>(page: &mut String, rows: impl Iterator<Item = &'a String>) {
    page.push_str("\n| argument | meaning |\n|---|---|\n");
    rows.for_each(|row| {
        let _ = writeln!(page, "{row}");
    });
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help")
}

/// One verb, and its own verbs behind it.
fn verb_text(page: &mut String, verb: &Command, shared: &BTreeMap<String, usize>) {
    let name = verb.get_bin_name().unwrap_or(verb.get_name());
    let about = verb.get_long_about().or(verb.get_about()).map(ToString::to_string).unwrap_or_default();
    // Writing to a text does not fail, here and below.
    let _ = writeln!(page, "\n## {name}");
    for paragraph in about.split("\n\n") {
        let _ = write!(page, "\n{}.\n", plain(paragraph.trim().trim_end_matches('.')));
    }
    if verb.has_subcommands() {
        for inner in visible(verb) {
            verb_text(page, inner, shared);
        }
        return;
    }
    let _ = write!(page, "\n```text\n{}\n```\n", usage(verb));
    let (of_keys, own): (Vec<_>, Vec<_>) =
        verb.get_arguments().filter(|arg| is_shown(arg)).partition(|arg| key(arg).is_some());
    let (shared, own): (Vec<_>, Vec<_>) = own.into_iter().partition(|arg| shared.contains_key(&row(arg)));
    if !own.is_empty() {
        table(page, own.into_iter().map(row).collect::<Vec<_>>().iter());
    }
    if !shared.is_empty() {
        let names: Vec<String> = shared.into_iter().map(|arg| code(&spelling(arg))).collect();
        let _ =
            write!(page, "\nAnd, as [several verbs](#options-of-several-verbs) do: {}.\n", names.join(", "));
    }
    if !of_keys.is_empty() && name != "binlogd run" {
        page.push_str("\nIt takes the flags of keys of the configuration, as [binlogd run](#binlogd-run).\n");
    } else if !of_keys.is_empty() {
        let flags: Vec<String> = of_keys
            .iter()
            .filter_map(|arg| Some((arg, key(arg)?.0)))
            .map(|(arg, place)| format!("[`--{}`]({place})", arg.get_long().unwrap_or_default()))
            .collect();
        let _ = write!(
            page,
            "\nThe flags of keys of the configuration, each explained there: {}.\n",
            flags.join(", ")
        );
    }
    if let Some(after) = verb.get_after_long_help().or(verb.get_after_help()) {
        for paragraph in after.to_string().split("\n\n") {
            let _ = write!(page, "\n{}\n", plain(paragraph.trim()));
        }
    }
}

/// `binlogd rescue --to URL DATA_DIR`: what must be given.
fn usage(verb: &Command) -> String {
    let mut words = vec![verb.get_bin_name().unwrap_or(verb.get_name()).to_owned()];
    let required = || verb.get_arguments().filter(|arg| is_shown(arg) && arg.is_required_set());
    words.extend(required().filter(|arg| !arg.is_positional()).map(spelling));
    words.extend(required().filter(|arg| arg.is_positional()).map(spelling));
    words.join(" ")
}

fn is_shown(arg: &Arg) -> bool {
    !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str())
}

/// The key of the configuration whose flag it is: where that is explained, and its name.
fn key(arg: &Arg) -> Option<(String, String)> {
    // Arguments of other verbs may have the name of a key's flag; those of keys take their text from the key.
    let (place, name) = keys::of_flag(arg.get_long()?)?;
    let is_of_key = arg.get_long_help().is_some_and(|help| {
        let help = help.to_string();
        binlogd::reference::sections()
            .iter()
            .flat_map(|section| &section.keys)
            .any(|key| key.flag == arg.get_long() && help.starts_with(&key.about))
    });
    is_of_key.then_some((place, name))
}

/// `--to URL`, or `DATA_DIR`.
fn spelling(arg: &Arg) -> String {
    let values = || {
        let names = arg.get_value_names().unwrap_or_default();
        names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    match arg.get_long() {
        Some(long) if arg.get_action().takes_values() => format!("--{long} {}", values()),
        Some(long) => format!("--{long}"),
        None => values(),
    }
}

fn meaning(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let sentences = help.split("\n\n").map(|part| part.trim().trim_end_matches('.'));
    let mut text = plain(&sentences.collect::<Vec<_>>().join(". "));
    let choices = arg.get_possible_values();
    if arg.get_action().takes_values() && !choices.is_empty() {
        let each =
            choices.iter().filter(|choice| !choice.is_hide_set()).map(|choice| match choice.get_help() {
                Some(help) => format!("`{}` ({})", choice.get_name(), plain(&help.to_string())),
                None => code(choice.get_name()),
            });
        let _ = write!(text, ". One of {}", each.collect::<Vec<_>>().join(", "));
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if arg.get_action().takes_values() && !defaults.is_empty() && !arg.is_hide_default_value_set() {
        let _ = write!(text, ". Default: `{}`", defaults.join(" "));
    }
    if let Some(variable) = arg.get_env() {
        let _ = write!(text, ". Without it the environment variable `{}` counts", variable.to_string_lossy());
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_verb_is_there() {
        let page = super::page();
        for heading in ["## binlogd run", "## binlogd config check", "## binlogd rescue", "## binlogd status"]
        {
            assert!(page.lines().any(|line| line == heading), "{heading} in\n{page}");
        }
        assert!(page.contains("[`--on-gap`](keys.md#source-on_gap)"), "{page}");
        assert!(page.contains("| `--to URL` | The server to complete"), "{page}");
        assert!(page.contains("Exit codes: 0 nothing is open"), "{page}");
    }
}
