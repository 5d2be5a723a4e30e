//! Each chart of a report as a file, for pages that show one of them.

use super::chart;
use super::chart::palette::Palette;
use super::section::Section;
use crate::outline::{Chart, Part};

/// Names below the folder of the report, and the SVG. A chart without a point has none.
pub(super) fn of(sections: &[Section]) -> Vec<(String, String)> {
    sections.iter().flat_map(of_section).collect()
}

fn of_section(section: &Section) -> Vec<(String, String)> {
    let charts = || {
        section.parts.iter().filter_map(|part| if let Part::Chart(chart) = part { Some(chart) } else { None })
    };
    let palette = Palette::of(charts());
    let has_point =
        |chart: &&Chart| chart.lines.iter().any(|line| !line.published && !line.points.is_empty());
    let file = |chart: &Chart| {
        (format!("charts/run-{}-{}.svg", section.run.id, plain(&chart.title)), chart::file(chart, &palette))
    };
    charts().filter(has_point).map(file).collect()
}

/// A title as a part of a file's name: `queries-a-second-ratio-to-source-alone`.
fn plain(title: &str) -> String {
    let words = title.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("-")
}
