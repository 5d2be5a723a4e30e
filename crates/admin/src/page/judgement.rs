//! The headline, and what is wrong with what helps.

use super::parts::{View, sign};
use maud::{Markup, html};
use status::{DaemonStatus, Level, SourceStatus, Verdict, Worry};

/// More problems than this are in the table of sources, which is sorted by them.
const PROBLEMS_MAX: usize = 12;

/// Puts the headline and the problems of a source.
pub(super) fn of_source(view: &mut View, source: &SourceStatus) {
    headline(view, &source.verdict);
    let problems = source.verdict.problems.iter().map(|problem| (None, problem));
    view.put("problems", listed(problems.collect(), "problem"));
}

/// Puts those of all.
pub(super) fn of_all(view: &mut View, status: &DaemonStatus) {
    headline(view, &status.verdict);
    let is_told = |problem: &&Worry| problem.level >= Level::Warning || status.sources.len() == 1;
    let mut problems: Vec<(Option<&str>, &Worry)> =
        status.verdict.problems.iter().filter(is_told).map(|problem| (None, problem)).collect();
    for source in &status.sources {
        let own = source.verdict.problems.iter().filter(is_told);
        problems.extend(own.map(|problem| (Some(source.name.as_str()), problem)));
    }
    problems.sort_by_key(|(_, problem)| std::cmp::Reverse(problem.level));
    view.put("problems", listed(problems, "problem-all"));
}

fn headline(view: &mut View, verdict: &Verdict) {
    view.put("headline", html! { (sign(verdict.level)) span { (verdict.headline) } });
}

fn listed(problems: Vec<(Option<&str>, &Worry)>, id: &str) -> Markup {
    let more = problems.len().saturating_sub(PROBLEMS_MAX);
    html! {
        @if !problems.is_empty() {
            ul class="problems" {
                @for (index, (source, problem)) in problems.iter().take(PROBLEMS_MAX).enumerate() {
                    li class=(problem.level.word()) {
                        (sign(problem.level))
                        div {
                            @if let Some(source) = source {
                                a href=(format!("/source/{source}")) { (source) } ": "
                            }
                            (problem.text)
                            @if !problem.advice.is_empty() { p class="advice" { (problem.advice) } }
                            @if !problem.command.is_empty() { (command(&problem.command, &format!("{id}-{index}"))) }
                        }
                    }
                }
            }
            @if more > 0 { p class="dim" { "and " (more) " more: the sources below stand in order, the worst first." } }
        }
    }
}

/// A command to copy. The button is there with script alone.
fn command(text: &str, id: &str) -> Markup {
    html! {
        div class="command" {
            code id=(id) tabindex="0" { (text) }
            button type="button" data-copy=(id) hidden { "Copy" }
        }
    }
}
