//! The report as one page of HTML that needs nothing else: no network, no script.

use super::chart;
use super::outline::Part;
use super::palette::Palette;
use super::section::{INTRODUCTION, Section, describe};
use super::table;
use crate::model::Fact;
use crate::reference::Publication;
use std::fmt::Write;

/// A longer list of invalid cells is folded.
const MAX_INVALID: usize = 12;

/// What a program finds charts and tables by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marks<'a> {
    pub(super) study: &'a str,
    pub(super) run: i64,
}

impl Marks<'_> {
    /// The attributes of the chart or table with this title.
    pub(super) fn of(&self, title: &str) -> String {
        let (study, title) = (escaped(self.study), escaped(title));
        format!("data-study=\"{study}\" data-run=\"{}\" data-title=\"{title}\"", self.run)
    }
}

/// The whole page.
pub(super) fn page(sections: &[Section]) -> String {
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>What a durable binary log costs</title>\n<style>\n{}</style>\n</head>\n<body>\n<header>\n\
         <p class=\"eyebrow\">binlogd-lab</p>\n<h1>What a durable binary log costs</h1>\n<p>{}</p>\n",
        include_str!("style.css"),
        escaped(INTRODUCTION)
    );
    let machines: Vec<String> = sections.iter().map(Section::machine).collect();
    let same_machine = machines.first().filter(|first| machines.iter().all(|machine| machine == *first));
    if let Some(machine) = same_machine {
        let _ = writeln!(html, "<p class=\"machine\">{}</p>", escaped(machine));
    }
    html += "<nav aria-label=\"Studies\">\n<ol>\n";
    for section in sections {
        let extent = section.extent().pop().unwrap_or_default();
        let _ = writeln!(
            html,
            "<li><a href=\"#run-{}\">{}</a> <small>{}</small></li>",
            section.run.id,
            escaped(&section.title),
            escaped(&extent)
        );
    }
    html += "</ol>\n</nav>\n</header>\n<main>\n";
    for section in sections {
        html += &of(section, same_machine.is_none());
    }
    html + "</main>\n</body>\n</html>\n"
}

/// One study.
fn of(section: &Section, shows_machine: bool) -> String {
    let marks = Marks { study: &section.run.study, run: section.run.id };
    let mut html = format!("<section id=\"run-{}\" class=\"study\">\n", section.run.id);
    let _ = writeln!(html, "<h2>{}</h2>", escaped(&section.title));
    let _ = writeln!(html, "<p class=\"lead\">{}</p>", escaped(&section.summary));
    let _ = writeln!(html, "<p class=\"extent\">{}</p>", escaped(&section.extent().join(" · ")));
    if shows_machine {
        let _ = writeln!(html, "<p class=\"machine\">{}</p>", escaped(&section.machine()));
    }
    for warning in section.warnings() {
        let _ = writeln!(html, "<p class=\"warning\"><strong>Warning:</strong> {}</p>", escaped(warning));
    }
    html += &of_parts(&section.parts, &marks);
    html += &not_counted(section);
    if let Some(publication) = &section.publication {
        html += &of_publication(publication, &marks);
    }
    let command = escaped(&section.run.command);
    let _ = writeln!(html, "<h3>To run it again</h3>\n<pre><code>{command}</code></pre>");
    html += &environment(&section.run.facts);
    html + "</section>\n"
}

fn of_parts(parts: &[Part], marks: &Marks) -> String {
    let charts = parts.iter().filter_map(|part| match part {
        Part::Chart(chart) => Some(chart),
        _ => None,
    });
    let palette = &Palette::of(charts);
    let part = |part: &Part| match part {
        Part::Heading(heading) => format!("<h3>{}</h3>\n", escaped(heading)),
        Part::Text(text) => format!("<p>{}</p>\n", escaped(text)),
        Part::Chart(chart) => chart::figure(chart, palette, marks),
        Part::Table(table) => table::folded(table, marks),
    };
    parts.iter().map(part).collect()
}

/// Cells that do not count, and what was left out.
fn not_counted(section: &Section) -> String {
    let mut html = String::new();
    let invalid: Vec<String> = section
        .invalid()
        .map(|(cell, reason)| format!("<li>{}: {}</li>\n", escaped(&describe(cell)), escaped(reason)))
        .collect();
    if !invalid.is_empty() {
        let list = format!("<ul class=\"invalid\">\n{}</ul>\n", invalid.concat());
        html += "<h3>Cells that do not count</h3>\n";
        html += &if invalid.len() > MAX_INVALID {
            format!(
                "<details>\n<summary>{} cells with the reasons</summary>\n{list}</details>\n",
                invalid.len()
            )
        } else {
            list
        };
    }
    if !section.run.skipped.is_empty() {
        html += "<h3>Not measured here</h3>\n<ul class=\"skipped\">\n";
        section.run.skipped.iter().for_each(|reason| html += &format!("<li>{}</li>\n", escaped(reason)));
        html += "</ul>\n";
    }
    html
}

fn of_publication(publication: &Publication, marks: &Marks) -> String {
    let mut html = "<aside class=\"publication\">\n".to_owned();
    let _ = writeln!(html, "<h3>The published study: {}</h3>\n<dl>", escaped(publication.title));
    for (name, value) in [
        ("Origin", publication.origin),
        ("Software", publication.software),
        ("Hardware", publication.hardware),
    ] {
        let _ = writeln!(html, "<dt>{name}</dt><dd>{}</dd>", escaped(value));
    }
    for (name, list) in [("It concludes", publication.conclusions), ("Remarks", publication.remarks)] {
        let items: Vec<String> = list.iter().map(|item| format!("<li>{}</li>", escaped(item))).collect();
        let _ = writeln!(html, "<dt>{name}</dt><dd><ul>{}</ul></dd>", items.concat());
    }
    html += "</dl>\n";
    html += &of_parts(&publication.figures, marks);
    html + "</aside>\n"
}

/// All facts, grouped by what they are about.
fn environment(facts: &[Fact]) -> String {
    if facts.is_empty() {
        return String::new();
    }
    let mut html = format!(
        "<details>\n<summary>Environment <small>{} facts</small></summary>\n<div class=\"scroll\" tabindex=\"0\" \
         role=\"region\" aria-label=\"Environment\">\n<table class=\"facts\">\n",
        facts.len()
    );
    let mut about = "";
    for fact in facts {
        if fact.about != about {
            about = &fact.about;
            let _ = writeln!(html, "<tr><th colspan=\"2\" scope=\"rowgroup\">{}</th></tr>", escaped(about));
        }
        let _ = writeln!(html, "<tr><td>{}</td><td>{}</td></tr>", escaped(&fact.name), escaped(&fact.value));
    }
    html + "</table>\n</div>\n</details>\n"
}

/// The text with what HTML would take for markup replaced, for content and for attributes in double quotes.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Run;
    use crate::report::example;
    use crate::statistics::Figures;

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
                if configuration != "source alone" {
                    let ratio = figures.ratio(&point, "source alone", "qps").unwrap();
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
        assert!(
            table.contains("<ol class=\"reasons\">\n<li>invalid: semi-sync &lt;fell back&gt;</li>\n</ol>")
        );
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
