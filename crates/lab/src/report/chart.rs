//! A line chart as SVG. Colours and sizes of text are the page's style sheet's.

use super::axes::{Axes, HEIGHT, WIDTH};
use super::html::{Marks, escaped};
use super::number;
use super::outline::{Chart, Dot, Line};
use super::palette::Palette;
use std::fmt::Write;

/// A line with more points is drawn thin and without a visible mark on each.
const MAX_MARKS: usize = 40;

/// The chart as a figure of the page, with its legend.
pub(super) fn figure(chart: &Chart, palette: &Palette, marks: &Marks) -> String {
    let chart = &drawable(chart);
    let mut html = format!("<figure {}>\n", marks.of(&chart.title));
    let _ = writeln!(html, "<figcaption>{}</figcaption>", escaped(&chart.title));
    let names: Vec<String> = chart.lines.iter().map(name).collect();
    let label = format!("Line chart: {} over {}. Lines: {}.", chart.y_label, chart.x_label, names.join("; "));
    let _ = writeln!(
        html,
        "<svg role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\">",
        escaped(&label)
    );
    let axes = Axes::of(chart);
    html += &axes.drawn(chart);
    // Published lines lie below the measured ones, bands below all.
    let drawn = |line: &&Line| !line.points.is_empty();
    for line in chart.lines.iter().filter(drawn) {
        html += &band(line, &axes, &palette.colour(line));
    }
    for published in [true, false] {
        for line in chart.lines.iter().filter(drawn).filter(|line| line.published == published) {
            html += &curve(chart, line, &axes, palette);
        }
    }
    html += "</svg>\n";
    html += &legend(chart, palette);
    html + "</figure>\n"
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
fn band(line: &Line, axes: &Axes, colour: &str) -> String {
    if line.points.iter().all(|dot| dot.spread.is_none()) {
        return String::new();
    }
    let end = |dot: &Dot, is_high: bool| {
        let (low, high) = dot.spread.unwrap_or((dot.y, dot.y));
        format!("{:.1} {:.1}", axes.place(dot.x), axes.height(if is_high { high } else { low }))
    };
    if let [dot] = line.points.as_slice() {
        return format!("<path class=\"bar {colour}\" d=\"M{}L{}\"/>\n", end(dot, false), end(dot, true));
    }
    let mut path: Vec<String> = line.points.iter().map(|dot| end(dot, true)).collect();
    path.extend(line.points.iter().rev().map(|dot| end(dot, false)));
    format!("<path class=\"band {colour}\" d=\"M{}Z\"/>\n", path.join("L"))
}

fn curve(chart: &Chart, line: &Line, axes: &Axes, palette: &Palette) -> String {
    let place = |dot: &Dot| format!("{:.1} {:.1}", axes.place(dot.x), axes.height(dot.y));
    let path: Vec<String> = line.points.iter().map(place).collect();
    let name = name(line);
    let (class, mark) = (class(line, palette), palette.mark(line));
    let mut svg = format!("<g class=\"{class}\" data-line=\"{}\">\n", escaped(&name));
    let _ = writeln!(svg, "<path class=\"stroke\" d=\"M{}\"/>", path.join("L"));
    for dot in &line.points {
        let mut title = format!("{name}: {} at {} {}", shown(dot.y), dot.x, chart.x_label);
        if let Some((low, high)) = dot.spread {
            let _ = write!(title, ", rounds from {} to {}", shown(low), shown(high));
        }
        let _ = writeln!(
            svg,
            "<path class=\"mark\" data-x=\"{}\" data-y=\"{}\" d=\"M{}{mark}\"><title>{}</title></path>",
            dot.x,
            dot.y,
            place(dot),
            escaped(&title)
        );
    }
    svg + "</g>\n"
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
fn legend(chart: &Chart, palette: &Palette) -> String {
    let is_measured =
        |line: &Line| chart.lines.iter().any(|other| !other.published && other.name == line.name);
    let has_measured = chart.lines.iter().any(|line| !line.published);
    let sample = |class: &str, mark: &str| {
        format!(
            "<svg aria-hidden=\"true\" viewBox=\"0 0 34 14\"><g class=\"{class}\"><path class=\"stroke\" d=\"M1 7H33\"/>\
             <path class=\"mark\" d=\"M17 7{mark}\"/></g></svg>"
        )
    };
    let mut html = "<ul class=\"legend\">\n".to_owned();
    for line in chart.lines.iter().filter(|line| !line.published || !is_measured(line)) {
        let sample = sample(&class(line, palette), &palette.mark(line));
        let none = if line.points.is_empty() { " (no figure)" } else { "" };
        let name = if has_measured { name(line) } else { line.name.clone() };
        let _ = writeln!(html, "<li>{sample}<span>{}{none}</span></li>", escaped(&name));
    }
    if let Some(line) = chart.lines.iter().find(|line| line.published && is_measured(line)) {
        let sample = sample("line published", &palette.mark(line));
        let _ = writeln!(html, "<li>{sample}<span>dashed: as published</span></li>");
    }
    html + "</ul>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::outline::Scale;

    fn chart(points: &[(f64, f64)], x_scale: Scale) -> Chart {
        let points = points.iter().map(|(x, y)| Dot { x: *x, y: *y, spread: None }).collect();
        Chart {
            title: "a <title>".to_owned(),
            x_label: "threads".to_owned(),
            y_label: "tps".to_owned(),
            x_scale,
            lines: vec![Line { name: "a & b".to_owned(), published: false, points }],
        }
    }

    #[test]
    fn a_point_carries_its_numbers_and_text_is_escaped() {
        let chart = chart(&[(2.0, 1234.5678)], Scale::Logarithmic);
        let html = figure(&chart, &Palette::of([&chart].into_iter()), &Marks { study: "s", run: 3 });
        assert!(html.contains("data-x=\"2\" data-y=\"1234.5678\""), "{html}");
        assert!(html.contains("data-title=\"a &lt;title&gt;\"") && html.contains("a &amp; b"), "{html}");
        assert!(!html.contains("<title>a") || html.contains("a &amp; b: 1235 at 2 threads"), "{html}");
    }

    #[test]
    fn what_is_no_number_is_not_drawn() {
        let chart = chart(&[(2.0, f64::NAN), (4.0, f64::INFINITY), (8.0, 3.0)], Scale::Logarithmic);
        let html = figure(&chart, &Palette::of([&chart].into_iter()), &Marks { study: "s", run: 3 });
        assert_eq!(html.matches("data-x=").count(), 1);
        assert!(!html.contains("NaN") && !html.contains("inf"), "{html}");
    }

    #[test]
    fn the_legend_names_a_configuration_once() {
        let mut chart = chart(&[(2.0, 1.0)], Scale::Logarithmic);
        let published = Line { published: true, ..chart.lines[0].clone() };
        let other = Line { name: "c".to_owned(), points: Vec::new(), ..published.clone() };
        chart.lines.extend([published, other]);
        let html = legend(&chart, &Palette::of([&chart].into_iter()));
        let items: Vec<&str> =
            html.split("</svg>").skip(1).map(|item| &item[..item.find("</li>").unwrap()]).collect();
        assert_eq!(
            items,
            ["a &amp; b", "c, published (no figure)", "dashed: as published"]
                .map(|name| format!("<span>{name}</span>"))
        );
    }
}
