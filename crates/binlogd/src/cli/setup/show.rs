//! A plan on the screen.

use super::super::style;
use setup::doctor::{Finding, Level};
use setup::{Act, Plan, Server, State, Step, Wish};
use std::fmt::Write;

/// Columns of the text.
const COLUMNS: usize = 110;
/// Columns before what belongs to a step.
const INDENT: usize = 15;

/// Who has answered.
pub(super) fn head(wish: &Wish, server: &Server) -> String {
    let facts = &server.facts;
    let tls = match &facts.tls_version {
        Some(version) => version.as_str(),
        None => "no TLS",
    };
    let seen = format!(
        "{}: {} {}, {tls}; accounts of this machine are those of '{}'",
        wish.host, facts.kind, facts.version, server.pattern
    );
    style::clean(&seen)
}

/// Every step with its statements and its reason.
pub(super) fn plan(plan: &Plan) -> String {
    let colored = style::stdout_is_colored();
    let mut text = String::new();
    for (index, step) in plan.steps.iter().enumerate() {
        let (word, color) = match &step.state {
            State::There => ("there", style::GREEN),
            State::ToDo => ("to do", style::YELLOW),
            State::Yours => ("you", style::YELLOW),
            State::Waits(_) => ("later", style::YELLOW),
        };
        text.push_str(&line(index + 1, word, color, &step.what, colored));
        for line in details(step) {
            text.push_str(format!("{:INDENT$}{}", "", style::clean(&line)).trim_end());
            text.push('\n');
        }
        if !step.why.is_empty() {
            text.push_str(&wrapped(&format!("why: {}", step.why), INDENT));
        }
    }
    text
}

/// `  3  done     Make the account …`
pub(super) fn line(number: usize, word: &str, color: u8, what: &str, colored: bool) -> String {
    let word = style::paint(&format!("{word:<8}"), color, colored);
    format!("{number:>3}  {word}  {}\n", style::clean(what))
}

/// What exactly is done.
fn details(step: &Step) -> Vec<String> {
    if step.state == State::There {
        return Vec::new();
    }
    match &step.act {
        Act::Sql(statements) => statements.iter().map(setup::Statement::shown).collect(),
        Act::Write { text, .. } | Act::Text(text) => text.lines().map(str::to_owned).collect(),
        Act::SwitchOn { on, .. } => vec![on.shown()],
        Act::Nothing | Act::MakePassword(_) | Act::MakeFolder(_) | Act::LogIn => Vec::new(),
    }
}

/// What else was seen, and what the server forgets.
pub(super) fn remarks(plan: &Plan, wish: &Wish) -> String {
    let mut text = String::new();
    if !plan.option_lines.is_empty() {
        let head = format!(
            "SET GLOBAL does not outlast a restart of {}: put into its option file (my.cnf)",
            wish.host
        );
        writeln!(text, "\n{head}").expect("a text");
        for line in &plan.option_lines {
            writeln!(text, "    {line}").expect("a text");
        }
    }
    if !plan.notes.is_empty() {
        writeln!(text, "\nSeen on {} too, and not changed by setup:", wish.host).expect("a text");
        text.extend(plan.notes.iter().map(note));
    }
    text
}

fn note(finding: &Finding) -> String {
    let word = if finding.level == Level::Ok { "" } else { finding.level.word() };
    let why = if finding.why.is_empty() { String::new() } else { format!(": {}", finding.why) };
    let mut text = wrapped(&format!("{word} {}{why}", finding.what), 4);
    for line in finding.sql.iter().flat_map(|sql| sql.lines()) {
        text.push_str(&format!("        {}\n", style::clean(line)));
    }
    text
}

/// Why nothing is done. Lines that begin with blanks keep their shape.
pub(super) fn refusals(refusals: &[String]) -> Vec<String> {
    refusals.iter().flat_map(|refusal| refusal.lines()).map(style::clean).collect()
}

/// Lines of words, with so many blanks in front.
fn wrapped(text: &str, indent: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in style::clean(text).split_whitespace() {
        let width = word.chars().count();
        if column > 0 && indent + column + 1 + width > COLUMNS {
            out.push('\n');
            column = 0;
        }
        match column {
            0 => out.push_str(&" ".repeat(indent)),
            _ => out.push(' '),
        }
        column += width + usize::from(column > 0);
        out.push_str(word);
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_reasons_are_wrapped_and_lose_nothing() {
        let text = "word ".repeat(60);
        let out = wrapped(&text, 4);
        assert!(
            out.lines().count() == 3
                && out.lines().all(|line| line.len() <= COLUMNS && line.starts_with("    w"))
        );
        assert_eq!(out.split_whitespace().count(), 60);
    }
}
