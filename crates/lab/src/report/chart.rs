//! A line chart as SVG. Colours and sizes of text are the page's style sheet's.

use super::html::{Marks, escaped};
use super::number;
use super::outline::{Chart, Dot, Line, Scale};
use std::fmt::Write;

/// Size of the picture in its own units, and the plot within it. The page scales it to its width; the margins have room
/// for the larger text that narrow screens get.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 622.0;
const TOP: f64 = 38.0;
const BOTTOM: f64 = 308.0;

/// Least distance of two labels of the horizontal axis.
const LABEL_WIDTH: f64 = 46.0;

/// A line with more points is drawn without a mark on each.
const MAX_MARKS: usize = 40;

/// How many colours the style sheet has, and how many shapes marks have.
const COLOURS: usize = 8;
const SHAPES: usize = 5;

/// The names of a study's lines, so that a configuration has the same colour in all of its charts.
#[derive(Debug, Default)]
pub(super) struct Palette(Vec<String>);

impl Palette {
    /// Of these charts; a published line has the colour of the measured one of the same name.
    pub(super) fn of<'a>(charts: impl Iterator<Item = &'a Chart>) -> Palette {
        let mut names: Vec<String> = Vec::new();
        for line in charts.flat_map(|chart| &chart.lines) {
            if !names.contains(&line.name) {
                names.push(line.name.clone());
            }
        }
        Palette(names)
    }

    fn index(&self, line: &Line) -> usize {
        self.0.iter().position(|name| *name == line.name).unwrap_or(0)
    }
}

/// The chart as a figure of the page, with its legend.
pub(super) fn figure(chart: &Chart, palette: &Palette, marks: &Marks) -> String {
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
        html += &band(line, &axes, palette.index(line));
    }
    for published in [true, false] {
        for line in chart.lines.iter().filter(drawn).filter(|line| line.published == published) {
            html += &curve(chart, line, &axes, palette.index(line));
        }
    }
    html += "</svg>\n";
    html += &legend(chart, palette);
    html + "</figure>\n"
}

/// A line as the legend calls it.
fn name(line: &Line) -> String {
    if line.published { format!("{}, published", line.name) } else { line.name.clone() }
}

/// Where numbers lie in the picture.
struct Axes {
    scale: Scale,
    x: (f64, f64),
    /// The vertical axis begins at 0.
    top: f64,
    step: f64,
}

impl Axes {
    fn of(chart: &Chart) -> Axes {
        let dots = || chart.lines.iter().flat_map(|line| &line.points);
        let x = (
            dots().map(|dot| dot.x).reduce(f64::min).unwrap_or(1.0),
            dots().map(|dot| dot.x).reduce(f64::max).unwrap_or(1.0),
        );
        let highest =
            dots().map(|dot| dot.spread.map_or(dot.y, |(_, high)| high.max(dot.y))).fold(0.0, f64::max);
        let step = step(if highest > 0.0 { highest } else { 1.0 } / 5.0);
        Axes { scale: chart.x_scale, x, top: (highest / step).ceil().max(1.0) * step, step }
    }

    fn place(&self, x: f64) -> f64 {
        let (low, high, x) = match self.scale {
            // Nothing that a logarithmic axis is for is 0 or less; what is, stays at the left.
            Scale::Logarithmic => (self.x.0.max(0.1).log2(), self.x.1.max(0.1).log2(), x.max(0.1).log2()),
            Scale::Linear => (self.x.0, self.x.1, x),
        };
        if high <= low { (LEFT + RIGHT) / 2.0 } else { LEFT + (x - low) / (high - low) * (RIGHT - LEFT) }
    }

    fn height(&self, y: f64) -> f64 {
        BOTTOM - y / self.top * (BOTTOM - TOP)
    }

    /// Grid, labels and names of both axes.
    fn drawn(&self, chart: &Chart) -> String {
        let mut svg = String::new();
        let mut tick = 0.0;
        while tick <= self.top + self.step / 2.0 {
            let y = self.height(tick);
            let class = if tick == 0.0 { "axis" } else { "grid" };
            let _ = writeln!(svg, "<path class=\"{class}\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/>");
            let label = label(tick, self.top, self.step);
            let _ = writeln!(
                svg,
                "<text class=\"y\" x=\"{}\" y=\"{y:.1}\" dy=\".35em\">{label}</text>",
                LEFT - 8.0
            );
            tick += self.step;
        }
        for x in self.labelled(chart) {
            let place = self.place(x);
            let _ = writeln!(svg, "<path class=\"axis\" d=\"M{place:.1} {BOTTOM}v5\"/>");
            let _ = writeln!(
                svg,
                "<text class=\"x\" x=\"{place:.1}\" y=\"{}\" dy=\".8em\">{x}</text>",
                BOTTOM + 9.0
            );
        }
        let _ = writeln!(svg, "<text class=\"name\" x=\"4\" y=\"20\">{}</text>", escaped(&chart.y_label));
        let _ = writeln!(
            svg,
            "<text class=\"name end\" x=\"{RIGHT}\" y=\"{}\">{}</text>",
            HEIGHT - 8.0,
            escaped(&chart.x_label)
        );
        svg
    }

    /// The places of the horizontal axis that get a label: on a logarithmic axis those where something was measured, as
    /// far as they have room, then published ones; on a linear axis even steps.
    fn labelled(&self, chart: &Chart) -> Vec<f64> {
        if self.scale == Scale::Linear {
            let step = step((self.x.1 - self.x.0).max(f64::MIN_POSITIVE) / 6.0);
            let first = (self.x.0 / step).ceil();
            let count = ((self.x.1 / step).floor() - first).clamp(0.0, 20.0) as u32;
            return (0..=count).map(|index| (first + f64::from(index)) * step).collect();
        }
        let mut chosen: Vec<f64> = Vec::new();
        for published in [false, true] {
            let lines = chart.lines.iter().filter(|line| line.published == published);
            let mut candidates: Vec<f64> = lines.flat_map(|line| &line.points).map(|dot| dot.x).collect();
            candidates.sort_by(f64::total_cmp);
            // The ends first, so that the axis says how far it goes.
            let last = candidates.len().min(1);
            candidates.rotate_right(last);
            for x in candidates {
                let is_free =
                    chosen.iter().all(|other| (self.place(*other) - self.place(x)).abs() >= LABEL_WIDTH);
                if is_free {
                    chosen.push(x);
                }
            }
        }
        chosen
    }
}

/// 1, 2 or 5 times a power of ten, not below `least`.
fn step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= least * 0.999_999);
    factor.unwrap_or(10.0) * power
}

/// A label of the vertical axis, all of one axis with the same unit and as many digits as the step needs.
fn label(value: f64, top: f64, step: f64) -> String {
    let (unit, suffix) = match top {
        2e6.. => (1e6, "M"),
        1e4.. => (1e3, "k"),
        _ => (1.0, ""),
    };
    let digits = (-(step / unit).log10().floor()).max(0.0) as usize;
    if value == 0.0 { "0".to_owned() } else { format!("{:.digits$}{suffix}", value / unit) }
}

/// The range of the rounds: an area, or a bar where there is one point only.
fn band(line: &Line, axes: &Axes, index: usize) -> String {
    if line.points.iter().all(|dot| dot.spread.is_none()) {
        return String::new();
    }
    let end = |dot: &Dot, is_high: bool| {
        let (low, high) = dot.spread.unwrap_or((dot.y, dot.y));
        format!("{:.1} {:.1}", axes.place(dot.x), axes.height(if is_high { high } else { low }))
    };
    let colour = index % COLOURS + 1;
    if let [dot] = line.points.as_slice() {
        return format!("<path class=\"bar c{colour}\" d=\"M{}L{}\"/>\n", end(dot, false), end(dot, true));
    }
    let mut path: Vec<String> = line.points.iter().map(|dot| end(dot, true)).collect();
    path.extend(line.points.iter().rev().map(|dot| end(dot, false)));
    format!("<path class=\"band c{colour}\" d=\"M{}Z\"/>\n", path.join("L"))
}

fn curve(chart: &Chart, line: &Line, axes: &Axes, index: usize) -> String {
    let place = |dot: &Dot| format!("{:.1} {:.1}", axes.place(dot.x), axes.height(dot.y));
    let path: Vec<String> = line.points.iter().map(place).collect();
    let published = if line.published { " published" } else { "" };
    let name = name(line);
    let mut svg =
        format!("<g class=\"line{published} c{}\" data-line=\"{}\">\n", index % COLOURS + 1, escaped(&name));
    let _ = writeln!(svg, "<path class=\"stroke\" d=\"M{}\"/>", path.join("L"));
    for dot in &line.points {
        let mut title = format!("{name}: {} at {} {}", shown(dot.y), dot.x, chart.x_label);
        if let Some((low, high)) = dot.spread {
            let _ = write!(title, ", rounds from {} to {}", shown(low), shown(high));
        }
        let shape =
            if line.points.len() > MAX_MARKS { "m0-1a1 1 0 1 0 .01 0z".to_owned() } else { shape(index) };
        let _ = writeln!(
            svg,
            "<path class=\"mark\" data-x=\"{}\" data-y=\"{}\" d=\"M{}{shape}\"><title>{}</title></path>",
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

/// A mark around the current point; lines differ by it too, for who does not see the colours apart.
fn shape(index: usize) -> String {
    match index % SHAPES {
        0 => "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
        1 => "m-3.6-3.6h7.2v7.2h-7.2z",
        2 => "m0-4.8l4.6 8h-9.2z",
        3 => "m0-5l5 5l-5 5l-5-5z",
        _ => "m0 4.8l4.6-8h-9.2z",
    }
    .to_owned()
}

fn legend(chart: &Chart, palette: &Palette) -> String {
    let mut html = "<ul class=\"legend\">\n".to_owned();
    for line in &chart.lines {
        let index = palette.index(line);
        let published = if line.published { " published" } else { "" };
        let none = if line.points.is_empty() { " (no figure)" } else { "" };
        let _ = writeln!(
            html,
            "<li><svg aria-hidden=\"true\" viewBox=\"0 0 34 14\"><g class=\"line{published} c{}\"><path class=\"stroke\" \
             d=\"M1 7H33\"/><path class=\"mark\" d=\"M17 7{}\"/></g></svg>{}{none}</li>",
            index % COLOURS + 1,
            shape(index),
            escaped(&name(line))
        );
    }
    html + "</ul>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_labels_short() {
        assert_eq!((step(0.2), step(0.21), step(7.0), step(50_000.0)), (0.2, 0.5, 10.0, 50_000.0));
        assert_eq!(label(0.6000000001, 1.0, 0.2), "0.6");
        assert_eq!(label(150_000.0, 300_000.0, 50_000.0), "150k");
        assert_eq!(label(500.0, 10_000.0, 500.0), "0.5k");
        assert_eq!(label(0.0, 10_000.0, 500.0), "0");
    }

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
    fn labels_of_crowded_threads_leave_room() {
        let threads: Vec<(f64, f64)> =
            [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 266.0, 276.0, 386.0].map(|x| (x, 1.0)).to_vec();
        let chart = chart(&threads, Scale::Logarithmic);
        let axes = Axes::of(&chart);
        let mut labels = axes.labelled(&chart);
        labels.sort_by(f64::total_cmp);
        assert_eq!(labels, [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 386.0]);
    }

    #[test]
    fn a_doubling_takes_the_same_room_and_the_axis_begins_at_0() {
        let axes = Axes::of(&chart(&[(2.0, 10.0), (8.0, 95.0), (32.0, 50.0)], Scale::Logarithmic));
        assert_eq!((axes.place(2.0), axes.place(8.0), axes.place(32.0)), (LEFT, (LEFT + RIGHT) / 2.0, RIGHT));
        assert_eq!((axes.height(0.0), axes.top), (BOTTOM, 100.0));
        let single = Axes::of(&chart(&[(8.0, 0.0)], Scale::Logarithmic));
        assert_eq!((single.place(8.0), single.height(0.0)), ((LEFT + RIGHT) / 2.0, BOTTOM));
        let linear = chart(&[(0.0, 1.0), (59.0, 1.0)], Scale::Linear);
        assert_eq!(Axes::of(&linear).labelled(&linear), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
    }

    #[test]
    fn a_point_carries_its_numbers_and_text_is_escaped() {
        let chart = chart(&[(2.0, 1234.5678)], Scale::Logarithmic);
        let html = figure(&chart, &Palette::of([&chart].into_iter()), &Marks { study: "s", run: 3 });
        assert!(html.contains("data-x=\"2\" data-y=\"1234.5678\""), "{html}");
        assert!(html.contains("data-title=\"a &lt;title&gt;\"") && html.contains("a &amp; b"), "{html}");
        assert!(!html.contains("<title>a") || html.contains("a &amp; b: 1235 at 2 threads"), "{html}");
    }
}
