//! The axes of a chart: where numbers lie, and grid and labels as SVG.

use crate::outline::{Chart, Scale};
use maud::{Markup, html};

/// Size of the picture in its own units, and the plot within it. The page scales it to its width; the margins have room
/// for the larger text that narrow screens get.
pub(super) const WIDTH: f64 = 640.0;
pub(super) const HEIGHT: f64 = 360.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 622.0;
const TOP: f64 = 38.0;
const BOTTOM: f64 = 308.0;

/// Least distance of two labels of the horizontal axis.
const LABEL_WIDTH: f64 = 46.0;

/// Where numbers lie in the picture.
pub(super) struct Axes {
    scale: Scale,
    x: (f64, f64),
    /// The vertical axis begins at 0.
    top: f64,
    step: f64,
}

impl Axes {
    /// Of what the chart has to show.
    pub(super) fn of(chart: &Chart) -> Axes {
        let dots = || chart.lines.iter().flat_map(|line| &line.points);
        let x = (
            dots().map(|dot| dot.x).reduce(f64::min).unwrap_or(1.0),
            dots().map(|dot| dot.x).reduce(f64::max).unwrap_or(1.0),
        );
        let highest =
            dots().map(|dot| dot.spread.map_or(dot.y, |(_, high)| high.max(dot.y))).fold(0.0, f64::max);
        // A chart of zeros has an axis too.
        let highest = if highest > 0.0 { highest } else { 1.0 };
        let step = step(highest / 6.0);
        Axes { scale: chart.x_scale, x, top: (highest / step).ceil().max(1.0) * step, step }
    }

    /// Where a number of the horizontal axis lies.
    pub(super) fn place(&self, x: f64) -> f64 {
        let (low, high, x) = match self.scale {
            // Nothing that a logarithmic axis is for is 0 or less; what is, stays at the left.
            Scale::Logarithmic => (self.x.0.max(0.1).log2(), self.x.1.max(0.1).log2(), x.max(0.1).log2()),
            Scale::Linear => (self.x.0, self.x.1, x),
        };
        if high <= low { (LEFT + RIGHT) / 2.0 } else { LEFT + (x - low) / (high - low) * (RIGHT - LEFT) }
    }

    /// Where a number of the vertical axis lies.
    pub(super) fn height(&self, y: f64) -> f64 {
        BOTTOM - y / self.top * (BOTTOM - TOP)
    }

    /// Grid, labels and names of both axes.
    pub(super) fn drawn(&self, chart: &Chart) -> Markup {
        let mut ticks = Vec::new();
        let mut tick = 0.0;
        while tick <= self.top + self.step / 2.0 {
            ticks.push(tick);
            tick += self.step;
        }
        let text = |x: f64| match self.scale {
            Scale::Logarithmic => x.to_string(),
            Scale::Linear => label(x, self.x.1, self.even_step()),
        };
        html! {
            @for tick in ticks {
                @let y = format!("{:.1}", self.height(tick));
                path class=(if tick == 0.0 { "axis" } else { "grid" }) d={ "M" (LEFT) " " (y) "H" (RIGHT) } {}
                text class="y" x=(LEFT - 8.0) y=(y) dy=".35em" { (label(tick, self.top, self.step)) }
            }
            @for x in self.labelled(chart) {
                @let place = format!("{:.1}", self.place(x));
                path class="axis" d={ "M" (place) " " (BOTTOM) "v5" } {}
                text class="x" x=(place) y=(BOTTOM + 9.0) dy=".8em" { (text(x)) }
            }
            text class="name" x="4" y="20" { (chart.y_label) }
            text class="name end" x=(RIGHT) y=(HEIGHT - 8.0) { (chart.x_label) }
        }
    }

    /// Of the labels of a linear horizontal axis.
    fn even_step(&self) -> f64 {
        let length = self.x.1 - self.x.0;
        let length = if length > 0.0 { length } else { 1.0 };
        step(length / 6.0)
    }

    /// The places of the horizontal axis that get a label: on a logarithmic axis those where something was measured, as
    /// far as they have room, then published ones; on a linear axis even steps.
    fn labelled(&self, chart: &Chart) -> Vec<f64> {
        if self.scale == Scale::Linear {
            let step = self.even_step();
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

/// 1, 2, 2.5 or 5 times a power of ten, not below `least`.
fn step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|factor| factor * power >= least * 0.999_999);
    factor.unwrap_or(10.0) * power
}

/// A label of the vertical axis, all of one axis with the same unit and as many digits as the step needs.
fn label(value: f64, top: f64, step: f64) -> String {
    let (unit, suffix) = match top {
        2e6.. => (1e6, "M"),
        1e4.. => (1e3, "k"),
        _ => (1.0, ""),
    };
    let is_whole = |digits: &i32| {
        let step = step / unit * 10f64.powi(*digits);
        (step - step.round()).abs() < 1e-6 * step
    };
    let digits = (0..6).find(is_whole).unwrap_or(6) as usize;
    if value == 0.0 { "0".to_owned() } else { format!("{:.digits$}{suffix}", value / unit) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example::chart;

    #[test]
    fn ticks_are_round_and_labels_short() {
        assert_eq!((step(0.2), step(0.21), step(7.0), step(50_000.0)), (0.2, 0.25, 10.0, 50_000.0));
        assert_eq!((label(0.25, 1.0, 0.25), label(1.0, 1.0, 0.25)), ("0.25".into(), "1.00".into()));
        assert_eq!(label(0.6000000001, 1.0, 0.2), "0.6");
        assert_eq!(label(150_000.0, 300_000.0, 50_000.0), "150k");
        assert_eq!(label(5_000.0, 15_000.0, 2_500.0), "5.0k");
        assert_eq!(label(0.0, 10_000.0, 500.0), "0");
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
        let fractions = chart(&[(0.0, 1.0), (0.5, 1.0)], Scale::Linear);
        assert!(Axes::of(&fractions).drawn(&fractions).0.contains(">0.3</text>"));
    }
}
