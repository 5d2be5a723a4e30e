//! The report as one page of HTML that needs nothing else: no network, no script.

use super::chart;
use super::chart::palette::Palette;
use super::delays::Delays;
use super::marks::Marks;
use super::section::{INTRODUCTION, Section, describe};
use super::table;
use crate::model::Fact;
use crate::outline::Part;
use crate::reference::publication::Publication;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// A longer list of invalid cells is folded.
const MAX_INVALID: usize = 12;

/// The whole page.
pub(super) fn page(sections: &[Section]) -> String {
    let machines: Vec<String> = sections.iter().map(Section::machine).collect();
    let same_machine = machines.first().filter(|first| machines.iter().all(|machine| machine == *first));
    let delays = Delays::of(sections.iter().map(|section| section.run));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                title { "What a durable binary log costs" }
                style { (PreEscaped(chart::STYLE)) (PreEscaped(include_str!("style.css"))) }
            }
            body {
                header {
                    p.eyebrow { "binlogd-lab" }
                    h1 { "What a durable binary log costs" }
                    p { (INTRODUCTION) }
                    @if let Some(machine) = same_machine { p.machine { (machine) } }
                    nav aria-label="Studies" {
                        ol {
                            @for delays in &delays {
                                li { a href={ "#delays-" (delays.newest().id) } { (delays.title()) } }
                            }
                            @for section in sections {
                                li {
                                    a href={ "#run-" (section.run.id) } { (section.title) }
                                    @if let Some(network) = section.run.order.apart.network { ", " (network) }
                                    " " small { (section.extent().pop().unwrap_or_default()) }
                                }
                            }
                        }
                    }
                }
                main {
                    @for delays in &delays { (of_delays(delays)) }
                    @for section in sections { (of(section, same_machine.is_none())) }
                }
            }
        }
    };
    page.into_string()
}

/// Runs side by side.
fn of_delays(delays: &Delays) -> Markup {
    let run = delays.newest();
    html! {
        section.study id={ "delays-" (run.id) } {
            h2 { (delays.title()) }
            p.lead { (delays.lead()) }
            (of_parts(&delays.parts(), &Marks { study: &run.study, run: run.id }))
        }
    }
}

/// One study.
fn of(section: &Section, shows_machine: bool) -> Markup {
    let marks = Marks { study: &section.run.study, run: section.run.id };
    html! {
        section.study id={ "run-" (section.run.id) } {
            h2 { (section.title) }
            p.lead { (section.summary) }
            p.extent { (section.extent().join(" · ")) }
            @if shows_machine { p.machine { (section.machine()) } }
            @for sentence in section.apart() { p.apart { (sentence) } }
            @for warning in section.warnings() { p.warning { strong { "Warning:" } " " (warning) } }
            (of_parts(&section.parts, &marks))
            (not_counted(section))
            @if let Some(publication) = &section.publication { (of_publication(publication, &marks)) }
            h3 { "To run it again" }
            pre { code { (section.run.command) } }
            (environment(&section.run.facts))
        }
    }
}

fn of_parts(parts: &[Part], marks: &Marks) -> Markup {
    let charts = parts.iter().filter_map(|part| match part {
        Part::Chart(chart) => Some(chart),
        _ => None,
    });
    let palette = &Palette::of(charts);
    html! {
        @for part in parts {
            @match part {
                Part::Heading(heading) => h3 { (heading) },
                Part::Text(text) => p { (text) },
                Part::Chart(chart) => (chart::figure(chart, palette, marks)),
                Part::Table(table) => (table::folded(table, marks)),
            }
        }
    }
}

/// Cells that do not count, and what was left out.
fn not_counted(section: &Section) -> Markup {
    let invalid: Vec<_> = section.invalid().collect();
    let list = html! {
        ul.invalid { @for (cell, reason) in &invalid { li { (describe(cell)) ": " (reason) } } }
    };
    html! {
        @if !invalid.is_empty() {
            h3 { "Cells that do not count" }
            @if invalid.len() > MAX_INVALID {
                details { summary { (invalid.len()) " cells with the reasons" } (list) }
            } @else {
                (list)
            }
        }
        @if !section.run.skipped.is_empty() {
            h3 { "Not measured here" }
            ul.skipped { @for skipped in &section.run.skipped { li { (skipped) } } }
        }
    }
}

fn of_publication(publication: &Publication, marks: &Marks) -> Markup {
    html! {
        aside.publication {
            h3 { "The published study: " (publication.title) }
            dl {
                dt { "Origin" } dd { (publication.origin) }
                dt { "Software" } dd { (publication.software) }
                dt { "Hardware" } dd { (publication.hardware) }
                dt { "It concludes" } dd { ul { @for item in publication.conclusions { li { (item) } } } }
                dt { "Remarks" } dd { ul { @for item in publication.remarks { li { (item) } } } }
            }
            (of_parts(&publication.figures, marks))
        }
    }
}

/// All facts, grouped by what they are about.
fn environment(facts: &[Fact]) -> Markup {
    html! {
        @if !facts.is_empty() {
            details {
                summary { "Environment " small { (facts.len()) " facts" } }
                div.scroll tabindex="0" role="region" aria-label="Environment" {
                    table.facts {
                        @for facts in facts.chunk_by(|one, next| one.about == next.about) {
                            tr { th colspan="2" scope="rowgroup" { (facts[0].about) } }
                            @for fact in facts { tr { td { (fact.name) } td { (fact.value) } } }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;
    use crate::results::run::Run;
    use crate::results::statistics::Figures;

    fn damaged() -> Run {
        let mut run = example::virtual_replica();
        example::damage(&mut run);
        run
    }

    /// The part of the page between two texts.
    fn between<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
        let start = page.find(from).unwrap_or_else(|| panic!("{from} is not on the page"));
        let rest = &page[start..];
        &rest[..rest.find(to).unwrap_or_else(|| panic!("nothing ends {from}"))]
    }

    #[test]
    fn the_numbers_are_those_of_the_run() {
        let run = damaged();
        let section = example::section(&run);
        let page = page(std::slice::from_ref(&section));
        let figures = Figures::of(&run);
        let panel = &figures.panels()[0];
        let medians = between(&page, "data-title=\"Queries a second, figures\"", "</table>");
        let ratios = between(&page, "data-title=\"Queries a second, ratios to source alone\"", "</table>");
        let chart = between(
            &page,
            "<figure data-study=\"virtual-replica\" data-run=\"7\" data-title=\"Queries a second\"",
            "</figure>",
        );
        let mut points = 0;
        for configuration in figures.configurations(panel) {
            for threads in figures.threads(panel) {
                let point = panel.point(configuration, threads);
                let Ok(spread) = figures.median(&point, "qps") else { continue };
                points += 1;
                let (low, high) = spread.range;
                let value =
                    format!("data-value=\"{}\" data-low=\"{low}\" data-high=\"{high}\"", spread.median);
                assert!(medians.contains(&value), "{configuration} {threads}: {value}");
                assert!(chart.contains(&format!("data-x=\"{threads}\" data-y=\"{}\"", spread.median)));
                if *configuration != example::ALONE {
                    let ratio = figures.ratio(&point, &example::ALONE, "qps").unwrap();
                    assert!(
                        ratios.contains(&format!("data-value=\"{}\"", ratio.median)),
                        "{configuration} {threads}"
                    );
                }
            }
        }
        // Five configurations at eight numbers of threads, of which one point has no valid cell.
        assert_eq!((points, chart.matches("data-x=").count()), (39, 39));
        let published = 152_543.0 / 253_959.0;
        assert!(
            page.contains(&format!("data-x=\"386\" data-y=\"{published}\"")),
            "the published ratios are drawn"
        );
    }

    #[test]
    fn what_is_missing_shows_its_reason() {
        let run = damaged();
        let page = page(&[example::section(&run)]);
        let table = between(&page, "data-title=\"Queries a second, figures\"", "<h4>");
        assert!(table.contains("title=\"invalid: semi-sync &lt;fell back&gt;\">—<sup>1</sup>"), "{table}");
        assert!(table.contains("<ol class=\"reasons\"><li>invalid: semi-sync &lt;fell back&gt;</li></ol>"));
        let invalid = between(&page, "<ul class=\"invalid\">", "</ul>");
        assert_eq!(invalid.matches("<li>").count(), 4);
        assert!(invalid.contains("mysql-9.7, source alone, 4 threads, round 2: 3 errors"), "{invalid}");
        assert!(page.contains("120 cells, 4 of them not valid"));
        assert!(page.contains("<li>xfs: mkfs.xfs is not installed &lt;here&gt;</li>"));
    }

    #[test]
    fn every_chart_and_table_is_there_once() {
        let run = example::virtual_replica();
        let section = example::section(&run);
        let page = page(std::slice::from_ref(&section));
        let published = &section.publication.as_ref().unwrap().figures;
        for part in section.parts.iter().chain(published) {
            let (tag, title) = match part {
                Part::Chart(chart) => ("figure", &chart.title),
                Part::Table(table) => ("table", &table.title),
                _ => continue,
            };
            let start =
                format!("<{tag} data-study=\"virtual-replica\" data-run=\"7\" data-title=\"{title}\">");
            assert_eq!(page.matches(&start).count(), 1, "{start}");
        }
    }

    #[test]
    fn the_page_needs_nothing_else() {
        let run = damaged();
        let page = page(&[example::section(&run)]);
        for reference in
            ["http:", "https:", "src=", "url(", "@import", "<script", "<link", "<img", "<iframe", "//"]
        {
            assert!(!page.contains(reference), "{reference}");
        }
    }

    /// Tags that open are closed, in order, and no text of a run became a tag.
    #[test]
    fn the_markup_is_well_formed() {
        let run = damaged();
        let page = page(&[example::section(&run)]);
        let mut open: Vec<&str> = Vec::new();
        for tag in page.split('<').skip(1) {
            let (tag, _) = tag.split_once('>').unwrap_or_else(|| panic!("a tag does not end: {tag}"));
            let name = tag.split_whitespace().next().unwrap_or_default();
            match name.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name)),
                None if tag.ends_with('/') || ["!DOCTYPE", "meta"].contains(&name) => {}
                None => open.push(name),
            }
        }
        assert!(open.is_empty(), "{open:?}");
        assert!(!page.contains("<b>") && page.contains("&lt;b&gt;markup&lt;/b&gt; &amp; &quot;quotes&quot;"));
    }
}
