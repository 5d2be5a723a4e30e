//! The last hour as SVG. Words stand beside it as text, so that they keep their size on a phone and are read aloud.

use maud::{Markup, html};
use std::fmt::Write;

/// Longest and shortest time that is shown, in seconds.
const SPAN_SECONDS: (i64, i64) = (300, 3600);
/// Size of the picture in its own units; it is stretched to its place.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 100.0;
/// Samples farther apart than this are not joined by a line.
const JOINED_SECONDS_MAX: i64 = 35;
/// Width and height of a chart within a row.
const SPARK: (f64, f64) = (120.0, 24.0);

/// One line of a chart.
pub(super) struct Series<'a> {
    /// In the legend; empty where there is one line.
    pub(super) name: &'a str,
    /// Values beside the times of the chart; `None` where nothing is known.
    pub(super) values: Vec<Option<f64>>,
}

/// A chart with its title and the newest and the largest values in words. `at`: when, in seconds since 1970.
pub(super) fn chart(
    title: &str,
    at: &[i64],
    now: i64,
    series: &[Series<'_>],
    words: impl Fn(f64) -> String,
) -> Markup {
    let span = at.first().map_or(SPAN_SECONDS.1, |first| (now - first).clamp(SPAN_SECONDS.0, SPAN_SECONDS.1));
    let most = series.iter().flat_map(|series| series.values.iter().flatten()).copied().fold(0.0, f64::max);
    let newest = |series: &Series<'_>| series.values.last().copied().flatten().map_or("–".to_owned(), &words);
    let told = series.iter().map(|series| format!("{} {}", series.name, newest(series)).trim().to_owned());
    let told = told.collect::<Vec<_>>().join(", ");
    let label = format!("{title} over the last hour: now {told}; at most {}", words(most));
    html! {
        figure class="chart" {
            figcaption {
                span class="title" { (title) }
                span class="legend" {
                    @for (index, series) in series.iter().enumerate() {
                        span class=(format!("line-{index}")) { (series.name) " " b { (newest(series)) } } " "
                    }
                }
                @if most > 0.0 { span class="dim" { "most " (words(most)) } }
            }
            svg role="img" aria-label=(label) viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" {
                path class="grid" d=(format!("M0 {0}H{WIDTH}M0 {1}H{WIDTH}M{2} 0V{HEIGHT}", HEIGHT - 0.5, HEIGHT / 2.0, WIDTH / 2.0)) {}
                @for (index, series) in series.iter().enumerate() {
                    path class=(format!("line line-{index}")) d=(path((at, now, span), &series.values, most)) {}
                }
            }
            div class="axis" aria-hidden="true" { span { (span / 60) " min ago" } span { (span / 120) " min" } span { "now" } }
        }
    }
}

/// Of values beside their times, as of a moment, with so many seconds before it.
fn path((at, now, span): (&[i64], i64, i64), values: &[Option<f64>], most: f64) -> String {
    let mut path = String::new();
    let mut before: Option<i64> = None;
    for (at, value) in at.iter().zip(values) {
        let ago = now - at;
        let Some(value) = value.filter(|_| (0..=span).contains(&ago)) else {
            before = None;
            continue;
        };
        let x = WIDTH * (1.0 - ago as f64 / span as f64);
        let y = if most > 0.0 { (HEIGHT - 2.0) * (1.0 - value / most) + 1.0 } else { HEIGHT - 1.0 };
        let is_joined = before.is_some_and(|before| at - before <= JOINED_SECONDS_MAX);
        // Writing to a String does not fail. A lone point is a short line, or it would not be seen.
        let _ = match is_joined {
            true => write!(path, "L{x:.1} {y:.1}"),
            false => write!(path, "M{x:.1} {y:.1}h1"),
        };
        before = Some(*at);
    }
    path
}

/// A small chart of what is told beside it, which nobody has to read aloud.
pub(super) fn spark(values: &[f32]) -> Markup {
    let (width, height) = SPARK;
    let most = values.iter().copied().fold(0.0, f32::max);
    let mut path = String::new();
    let step = width / values.len().saturating_sub(1).max(1) as f64;
    for (index, value) in values.iter().enumerate() {
        let share = if most > 0.0 { f64::from(value / most) } else { 0.0 };
        let _ = write!(
            path,
            "{}{:.1} {:.1}",
            if index == 0 { 'M' } else { 'L' },
            step * index as f64,
            (height - 2.0) * (1.0 - share) + 1.0
        );
    }
    html! {
        svg class="spark" aria-hidden="true" viewBox=(format!("0 0 {width} {height}")) preserveAspectRatio="none" {
            path class="line line-0" d=(path) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_in_the_samples_is_a_hole_in_the_line() {
        let drawn =
            path((&[1000, 1010, 1020, 1100], 1100, 3600), &[Some(1.0), Some(2.0), None, Some(2.0)], 2.0);
        assert_eq!(drawn, "M700.0 50.0h1L702.0 1.0M720.0 1.0h1");
        assert_eq!(path((&[1], 5000, 3600), &[Some(1.0)], 1.0), "", "older than an hour");
    }

    #[test]
    fn a_chart_is_told_in_words() {
        let series = [Series { name: "median", values: vec![Some(1.0), None] }];
        let shown = chart("<b>", &[990, 1000], 1000, &series, |value| format!("{value} ms")).into_string();
        assert!(
            shown.contains(r#"aria-label="&lt;b&gt; over the last hour: now median –; at most 1 ms""#),
            "{shown}"
        );
    }
}
