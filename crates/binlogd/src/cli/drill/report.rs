//! What a drill has shown, for people and for programs.

use crate::cli::exit::print_result;
use crate::cli::{style, units};
use ::backup::drill::{Proof, Report};
use jiff::Timestamp;
use serde::Serialize;

/// The whole answer in JSON, on one line.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    source: &'a str,
    backup: &'a str,
    started: Timestamp,
    finished: Timestamp,
    seconds: f64,
    until: &'a str,
    until_time: Option<Timestamp>,
    proof: &'static str,
    proof_in_words: &'a str,
    tables: u64,
    bytes: u64,
    passed: bool,
    fault: &'a str,
    notes: &'a [String],
    steps: Vec<Step>,
}

#[derive(Debug, Serialize)]
struct Step {
    name: &'static str,
    seconds: f64,
}

/// Prints it for a program.
pub(super) fn json(report: &Report) {
    let answer = Answer {
        source: &report.source,
        backup: &report.backup,
        started: report.started,
        finished: report.finished,
        seconds: report.took.as_secs_f64(),
        until: &report.until,
        until_time: report.until_time,
        proof: match report.proof {
            Some(Proof::NextBackup) => "next-backup",
            Some(Proof::GtidsAndCheck) => "gtids-and-check",
            None => "",
        },
        proof_in_words: &report.proof_in_words,
        tables: report.tables,
        bytes: report.bytes,
        passed: report.fault.is_none(),
        fault: report.fault.as_deref().unwrap_or_default(),
        notes: &report.notes,
        steps: report.steps.iter().map(|(name, took)| Step { name, seconds: took.as_secs_f64() }).collect(),
    };
    let json = serde_json::to_string(&answer).expect("the answer can be written as JSON");
    print_result(&format!("{json}\n"));
}

/// Prints it for a person.
pub(super) fn text(report: &Report) {
    let source = style::clean(&report.source);
    if !report.backup.is_empty() {
        outln!("{source}: backup {}", style::clean(&report.backup));
    }
    for (name, took) in &report.steps {
        outln!("  {name:<32}{:>9.1} s", took.as_secs_f64());
    }
    if !report.until.is_empty() {
        let when = report.until_time.map_or_else(String::new, |time| format!(", {time:.0}"));
        outln!("  reached {}{when}", style::clean(&report.until));
        let (tables, bytes) = (units::counted(report.tables, "table"), units::bytes(report.bytes));
        outln!("  there were {tables}, {bytes}");
    }
    report.notes.iter().for_each(|note| errln!("note: {}", style::clean(note)));
    let took = units::duration(report.took.as_secs());
    match &report.fault {
        None => outln!("{source}: the drill has passed, {took}: {}", style::clean(&report.proof_in_words)),
        Some(fault) => {
            outln!("{source}: the drill has FAILED, {took}");
            fault.lines().for_each(|line| errln!("error: {}", style::clean(line)));
        }
    }
}
