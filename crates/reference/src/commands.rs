//! The page of the commands.

use std::collections::BTreeMap;
use std::fmt::Write;

use binlogd::reference::{KeyText, sections};
use clap::{Arg, Command};

use crate::markdown::{cell, code, head, plain};

const ABOUT: &str = "\
The verbs of `binlogd`, in the shortest form of each, and their arguments. `binlogd --help` and the man pages have the same, and explain each verb.
The exit code is 2 when the command line or the configuration is wrong, and unless a verb says otherwise 0 when all is well, 1 when a problem was found.";

/// The text of the page.
pub(crate) fn page() -> String {
    let mut command = binlogd::cli::command();
    command.build();
    let mut page = head("Commands", ABOUT);
    let mut rows = BTreeMap::new();
    visible(&command).for_each(|verb| count_rows(&mut rows, verb));
    keep_shared(&mut rows);
    page.push_str("\n## Arguments of several verbs\n\nEach verb below names those that it shares.\n");
    table(&mut page, rows.keys());
    for verb in visible(&command) {
        verb_text(&mut page, verb, &rows);
    }
    page
}

/// An argument that so many verbs have, in the same words, is explained once.
const SHARED: usize = 2;

/// Leaves the rows that enough verbs have; of those with one spelling, the one that most have.
fn keep_shared(rows: &mut BTreeMap<String, usize>) {
    let spelled = |row: &str| row.split(" | ").next().unwrap_or_default().to_owned();
    let mut most = BTreeMap::new();
    for (row, verbs) in rows.iter() {
        let best: &mut usize = most.entry(spelled(row)).or_default();
        *best = (*verbs).max(*best);
    }
    rows.retain(|row, verbs| {
        // Of two that are had as often the first one is shared, and then no other of that spelling.
        let spelling = spelled(row);
        let is_shared = *verbs >= SHARED && most.get(&spelling) == Some(verbs);
        is_shared && most.remove(&spelling).is_some()
    });
}

/// Counts the verbs that have an argument, by its row.
fn count_rows(rows: &mut BTreeMap<String, usize>, verb: &Command) {
    let own = verb.get_arguments().filter(|arg| is_shown(arg) && !is_of_key(arg));
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
    let usage = usage(verb);
    if usage != name {
        let _ = write!(page, "\n```text\n{usage}\n```\n");
    }
    let (of_keys, own): (Vec<_>, Vec<_>) =
        verb.get_arguments().filter(|arg| is_shown(arg)).partition(|arg| is_of_key(arg));
    let (shared, own): (Vec<_>, Vec<_>) = own.into_iter().partition(|arg| shared.contains_key(&row(arg)));
    if !own.is_empty() {
        table(page, own.into_iter().map(row).collect::<Vec<_>>().iter());
    }
    if !shared.is_empty() {
        let names: Vec<String> = shared
            .into_iter()
            .map(|arg| code(&arg.get_long().map_or_else(|| spelling(arg), |long| format!("--{long}"))))
            .collect();
        let _ = write!(page, "\nShared: {}.\n", names.join(", "));
    }
    if !of_keys.is_empty() {
        page.push_str("\nIt takes the [flags of the keys](keys.md) of the configuration, too.\n");
    }
    let after = verb.get_after_long_help().or(verb.get_after_help()).map(ToString::to_string);
    page.push_str(&closing(after.as_deref().unwrap_or_default()));
}

/// What the head of the page says of all verbs.
const USUAL: &str = ", 2 the command line is wrong.";

/// Of what stands behind the arguments in `--help`, the examples and the exit codes: the pages of the verbs explain the rest.
fn closing(after: &str) -> String {
    let mut text = String::new();
    for paragraph in after.split("\n\n").map(str::trim) {
        let lines: Vec<&str> = paragraph.lines().map(str::trim).collect();
        if !lines.is_empty() && lines.iter().all(|line| line.starts_with("binlogd ") && !line.ends_with('.'))
        {
            let _ = write!(text, "\n```sh\n{}\n```\n", lines.join("\n"));
        } else if paragraph.starts_with("Exit codes: ") {
            let codes = paragraph.strip_suffix(USUAL).map(|codes| format!("{codes}."));
            let _ = write!(text, "\n{}\n", plain(codes.as_deref().unwrap_or(paragraph)));
        }
    }
    text
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

/// Whether it is the flag of a key of the configuration. Other arguments may have such a name; those of keys take their
/// text from the key.
fn is_of_key(arg: &Arg) -> bool {
    let (Some(long), Some(help)) = (arg.get_long(), arg.get_long_help()) else { return false };
    let help = help.to_string();
    let is_flag = |key: &KeyText| key.flag == Some(long) && help.starts_with(&key.about);
    sections().iter().flat_map(|section| &section.keys).any(is_flag)
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
        assert!(page.contains("[flags of the keys](keys.md)"), "{page}");
        assert!(!page.contains("`--on-gap"), "{page}");
        assert!(page.contains("| `--to URL` | The server to complete"), "{page}");
        assert!(page.contains("Exit codes: 0 nothing is open"), "{page}");
    }

    #[test]
    fn examples_and_exit_codes_close_a_verb() {
        assert_eq!(super::closing(""), "");
        let after = "Explained elsewhere.\n\nbinlogd a b\n  binlogd c\n\nbinlogd may run.\n\nExit codes: 0 done, 2 the command line is wrong.";
        assert_eq!(super::closing(after), "\n```sh\nbinlogd a b\nbinlogd c\n```\n\nExit codes: 0 done.\n");
    }

    #[test]
    fn one_row_of_a_spelling_is_shared() {
        let row = |spelling: &str, meaning: &str| format!("| `{spelling}` | {meaning} |");
        let had = [("--a", "of more"), ("--a", "of two"), ("--b", "of one"), ("--c", "x"), ("--c", "y")];
        let mut rows =
            had.map(|(spelling, meaning)| row(spelling, meaning)).into_iter().zip([2, 3, 1, 2, 2]).collect();
        super::keep_shared(&mut rows);
        assert_eq!(rows.into_keys().collect::<Vec<_>>(), [row("--a", "of two"), row("--c", "x")]);
    }
}
