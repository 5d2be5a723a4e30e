//! A line chart as SVG. Colours and sizes of text are the page's style sheet's.

use super::axes::{Axes, HEIGHT, WIDTH};
use super::marks::Marks;
use super::number;
use super::outline::{Chart, Dot, Line};
use super::palette::Palette;
use maud::{Markup, html};

/// A line with more points is drawn thin and without a visible mark on each.
const MAX_MARKS: usize = 40;

/// The chart as a figure of the page, with its legend.
pub(super) fn figure(chart: &Chart, palette: &Palette, marks: &Marks) -> Markup {
    let chart = &drawable(chart);
    let names: Vec<String> = chart.lines.iter().map(name).collect();
    let axes = Axes::of(chart);
    let drawn = || chart.lines.iter().filter(|line| !line.points.is_empty());
    html! {
        figure data-study=(marks.study) data-run=(marks.run) data-title=(chart.title) {
            figcaption { (chart.title) }
            svg role="img"
                aria-label={
                    "Line chart: " (chart.y_label) " over " (chart.x_label) ". Lines: " (names.join("; ")) "."
                }
                viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } {
                (axes.drawn(chart))
                // Published lines lie below the measured ones, bands below all.
                @for line in drawn() { (band(line, &axes, &palette.colour(line))) }
                @for line in drawn().filter(|line| line.published) { (curve(chart, line, &axes, palette)) }
                @for line in drawn().filter(|line| !line.published) { (curve(chart, line, &axes, palette)) }
            }
            (legend(chart, palette))
        }
    }
}

/// The chart without points that have no place: what is divided by zero is no number.
fn drawable(chart: &Chart) -> Chart {
    let mut chart = chart.clone();
    for line in &mut chart.lines {
        line.points.retain(|dot| dot.x.is_finite() && dot.y.is_finite());
        for dot in &mut line.points {
            dot.spread = dot.spread.filter(|(low, high)| low.is_finite() && high.is_finite());
        }
    }
    chart
}

/// A line as the legend calls it.
fn name(line: &Line) -> String {
    if line.published { format!("{}, published", line.name) } else { line.name.clone() }
}

/// The range of the rounds: an area, or a bar where there is one point only.
fn band(line: &Line, axes: &Axes, colour: &str) -> Markup {
    if line.points.iter().all(|dot| dot.spread.is_none()) {
        return Markup::default();
    }
    let end = |dot: &Dot, is_high: bool| {
        let (low, high) = dot.spread.unwrap_or((dot.y, dot.y));
        format!("{:.1} {:.1}", axes.place(dot.x), axes.height(if is_high { high } else { low }))
    };
    if let [dot] = line.points.as_slice() {
        return html! { path class={ "bar " (colour) } d={ "M" (end(dot, false)) "L" (end(dot, true)) } {} };
    }
    let mut path: Vec<String> = line.points.iter().map(|dot| end(dot, true)).collect();
    path.extend(line.points.iter().rev().map(|dot| end(dot, false)));
    html! { path class={ "band " (colour) } d={ "M" (path.join("L")) "Z" } {} }
}

fn curve(chart: &Chart, line: &Line, axes: &Axes, palette: &Palette) -> Markup {
    let place = |dot: &Dot| format!("{:.1} {:.1}", axes.place(dot.x), axes.height(dot.y));
    let path: Vec<String> = line.points.iter().map(place).collect();
    let name = name(line);
    html! {
        g class=(class(line, palette)) data-line=(name) {
            path class="stroke" d={ "M" (path.join("L")) } {}
            @for dot in &line.points {
                path class="mark" data-x=(dot.x) data-y=(dot.y) d={ "M" (place(dot)) (palette.mark(line)) } {
                    title {
                        (name) ": " (shown(dot.y)) " at " (dot.x) " " (chart.x_label)
                        @if let Some((low, high)) = dot.spread {
                            ", rounds from " (shown(low)) " to " (shown(high))
                        }
                    }
                }
            }
        }
    }
}

fn shown(value: f64) -> String {
    number::grouped(value, number::digits(value))
}

/// The classes of a line.
fn class(line: &Line, palette: &Palette) -> String {
    let published = if line.published { " published" } else { "" };
    let long = if line.points.len() > MAX_MARKS { " long" } else { "" };
    format!("line{published}{long} {}", palette.colour(line))
}

/// The names of the lines. A published line that is drawn beside the measured one of the same name is not named again:
/// the last item says what dashes mean. Where all lines are published, none needs to say so.
fn legend(chart: &Chart, palette: &Palette) -> Markup {
    let is_measured =
        |line: &Line| chart.lines.iter().any(|other| !other.published && other.name == line.name);
    let has_measured = chart.lines.iter().any(|line| !line.published);
    let sample = |class: &str, line: &Line| {
        html! {
            svg aria-hidden="true" viewBox="0 0 34 14" {
                g class=(class) {
                    path class="stroke" d="M1 7H33" {}
                    path class="mark" d={ "M17 7" (palette.mark(line)) } {}
                }
            }
        }
    };
    let name = |line: &Line| if has_measured { name(line) } else { line.name.clone() };
    html! {
        ul.legend {
            @for line in chart.lines.iter().filter(|line| !line.published || !is_measured(line)) {
                li {
                    (sample(&class(line, palette), line))
                    span { (name(line)) @if line.points.is_empty() { " (no figure)" } }
                }
            }
            @if let Some(line) = chart.lines.iter().find(|line| line.published && is_measured(line)) {
                li { (sample("line published", line)) span { "dashed: as published" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example::chart;
    use crate::report::outline::Scale;

    #[test]
    fn a_point_carries_its_numbers_and_text_is_escaped() {
        let chart = chart(&[(2.0, 1234.5678)], Scale::Logarithmic);
        let html =
            figure(&chart, &Palette::of([&chart].into_iter()), &Marks { study: "s", run: 3 }).into_string();
        assert!(html.contains("data-x=\"2\" data-y=\"1234.5678\""), "{html}");
        assert!(html.contains("data-title=\"a &lt;title&gt;\"") && html.contains("a &amp; b"), "{html}");
        assert!(!html.contains("<title>a") || html.contains("a &amp; b: 1235 at 2 threads"), "{html}");
    }

    #[test]
    fn what_is_no_number_is_not_drawn() {
        let chart = chart(&[(2.0, f64::NAN), (4.0, f64::INFINITY), (8.0, 3.0)], Scale::Logarithmic);
        let html =
            figure(&chart, &Palette::of([&chart].into_iter()), &Marks { study: "s", run: 3 }).into_string();
        assert_eq!(html.matches("data-x=").count(), 1);
        assert!(!html.contains("NaN") && !html.contains("inf"), "{html}");
    }

    #[test]
    fn the_legend_names_a_configuration_once() {
        let mut chart = chart(&[(2.0, 1.0)], Scale::Logarithmic);
        let published = Line { published: true, ..chart.lines[0].clone() };
        let other = Line { name: "c".to_owned(), points: Vec::new(), ..published.clone() };
        chart.lines.extend([published, other]);
        let html = legend(&chart, &Palette::of([&chart].into_iter())).into_string();
        let items: Vec<&str> =
            html.split("</svg>").skip(1).map(|item| &item[..item.find("</li>").unwrap()]).collect();
        assert_eq!(
            items,
            ["a &amp; b", "c, published (no figure)", "dashed: as published"]
                .map(|name| format!("<span>{name}</span>"))
        );
    }
}
