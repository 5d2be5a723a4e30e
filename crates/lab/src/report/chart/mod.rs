//! A line chart as SVG, on the page and as a file of its own.

mod axes;
pub(super) mod palette;

use self::axes::{Axes, HEIGHT, WIDTH};
use self::palette::Palette;
use super::marks::Marks;
use crate::outline::{Chart, Dot, Line};
use crate::results::number;
use maud::{Markup, PreEscaped, html};

/// Colours and strokes of charts.
pub(super) const STYLE: &str = include_str!("chart.css");

/// Of a file: room above the axes for the title, and for each line of the legend below them.
const TITLE_HEIGHT: f64 = 26.0;
const LEGEND_HEIGHT: f64 = 18.0;

/// A line with more points is drawn thin and without a visible mark on each.
const MAX_MARKS: usize = 40;

/// The chart as a figure of the page, with its legend.
pub(super) fn figure(chart: &Chart, palette: &Palette, marks: &Marks) -> Markup {
    let chart = &drawable(chart);
    html! {
        figure data-study=(marks.study) data-run=(marks.run) data-title=(chart.title) {
            figcaption { (chart.title) }
            svg role="img" aria-label=(described(chart)) viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } {
                (drawn(chart, palette, true))
            }
            (legend(chart, palette))
        }
    }
}

/// The chart as a file that needs nothing else, with title and legend.
pub(super) fn file(chart: &Chart, palette: &Palette) -> String {
    let chart = &drawable(chart);
    let items = items(chart, palette);
    let below = TITLE_HEIGHT + HEIGHT;
    let height = below + LEGEND_HEIGHT * (items.len() as f64 + 0.5);
    let file = html! {
        svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label=(described(chart)) width=(WIDTH) height=(height)
            viewBox={ "0 0 " (WIDTH) " " (height) } {
            style {
                (PreEscaped(STYLE)) "svg .title { fill: var(--text); font-size: 13px; font-weight: 600; }"
            }
            rect width="100%" height="100%" fill="var(--card)" {}
            text class="title" x="4" y="18" { (chart.title) }
            g transform={ "translate(0 " (TITLE_HEIGHT) ")" } { (drawn(chart, palette, false)) }
            @for (index, item) in items.iter().enumerate() {
                g transform={ "translate(66 " (below + LEGEND_HEIGHT * index as f64) ")" } {
                    (item.sample())
                    text x="42" y="10" { (item.name) }
                }
            }
        }
    };
    file.into_string()
}

/// For who does not see it.
fn described(chart: &Chart) -> String {
    let names: Vec<String> = chart.lines.iter().map(name).collect();
    format!("Line chart: {} over {}. Lines: {}.", chart.y_label, chart.x_label, names.join("; "))
}

/// Axes and lines. `is_told`: each point says its numbers to who points at it, and to programs.
fn drawn(chart: &Chart, palette: &Palette, is_told: bool) -> Markup {
    let axes = Axes::of(chart);
    let drawn = || chart.lines.iter().filter(|line| !line.points.is_empty());
    let curve = |line: &Line| curve(chart, line, &axes, palette, is_told);
    html! {
        (axes.drawn(chart))
        // Published lines lie below the measured ones, bands below all.
        @for line in drawn() { (band(line, &axes, &palette.colour(line))) }
        @for line in drawn().filter(|line| line.published) { (curve(line)) }
        @for line in drawn().filter(|line| !line.published) { (curve(line)) }
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

fn curve(chart: &Chart, line: &Line, axes: &Axes, palette: &Palette, is_told: bool) -> Markup {
    let place = |dot: &Dot| format!("{:.1} {:.1}", axes.place(dot.x), axes.height(dot.y));
    let path: Vec<String> = line.points.iter().map(place).collect();
    let name = name(line);
    html! {
        g class=(class(line, palette)) data-line=(name) {
            path class="stroke" d={ "M" (path.join("L")) } {}
            @for dot in &line.points {
                @let mark = format!("M{}{}", place(dot), palette.mark(line));
                @if is_told {
                    path class="mark" data-x=(dot.x) data-y=(dot.y) d=(mark) {
                        title { (told(chart, &name, dot)) }
                    }
                } @else {
                    path class="mark" d=(mark) {}
                }
            }
        }
    }
}

/// `binlogd, fsync_mode 1: 1235 at 2 threads, rounds from 1100 to 1300`.
fn told(chart: &Chart, name: &str, dot: &Dot) -> String {
    let rounds = dot.spread.map(|(low, high)| format!(", rounds from {} to {}", shown(low), shown(high)));
    format!("{name}: {} at {} {}{}", shown(dot.y), dot.x, chart.x_label, rounds.unwrap_or_default())
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

/// An item of a legend.
struct Item {
    class: String,
    mark: String,
    name: String,
    is_drawn: bool,
}

impl Item {
    /// A piece of the line with a mark, 34 by 14.
    fn sample(&self) -> Markup {
        html! {
            g class=(self.class) {
                path class="stroke" d="M1 7H33" {}
                path class="mark" d={ "M17 7" (self.mark) } {}
            }
        }
    }
}

/// The names of the lines. A published line that is drawn beside the measured one of the same name is not named again:
/// the last item says what dashes mean. Where all lines are published, none needs to say so.
fn items(chart: &Chart, palette: &Palette) -> Vec<Item> {
    let is_measured =
        |line: &Line| chart.lines.iter().any(|other| !other.published && other.name == line.name);
    let has_measured = chart.lines.iter().any(|line| !line.published);
    let item = |line: &Line| Item {
        class: class(line, palette),
        mark: palette.mark(line),
        name: if has_measured { name(line) } else { line.name.clone() },
        is_drawn: !line.points.is_empty(),
    };
    let named = chart.lines.iter().filter(|line| !line.published || !is_measured(line));
    let mut items: Vec<Item> = named.map(item).collect();
    let dashed = chart.lines.iter().find(|line| line.published && is_measured(line));
    items.extend(dashed.map(|line| Item {
        class: "line published".to_owned(),
        mark: palette.mark(line),
        name: "dashed: as published".to_owned(),
        is_drawn: true,
    }));
    items
}

fn legend(chart: &Chart, palette: &Palette) -> Markup {
    html! {
        ul.legend {
            @for item in items(chart, palette) {
                li {
                    svg aria-hidden="true" viewBox="0 0 34 14" { (item.sample()) }
                    span { (item.name) @if !item.is_drawn { " (no figure)" } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outline::Scale;
    use crate::report::example::chart;

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
