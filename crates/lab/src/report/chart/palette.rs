//! How the lines of a study look.

use crate::outline::{Chart, Line};

/// How many colours the style sheet has, and how many shapes marks have. They have no common divisor, so that forty
/// lines differ.
const COLOURS: usize = 8;
const SHAPES: usize = 5;

/// A line of the same name looks the same in all of its charts, and lines of one chart
/// look different from each other.
#[derive(Debug, Default)]
pub(crate) struct Palette(Vec<(String, usize)>);

impl Palette {
    /// Of these charts; a published line looks like the measured one of the same name.
    pub(crate) fn of<'a>(charts: impl Iterator<Item = &'a Chart>) -> Palette {
        let charts: Vec<&Chart> = charts.collect();
        let mut palette = Palette::default();
        for line in charts.iter().flat_map(|chart| &chart.lines) {
            if palette.get(&line.name).is_some() {
                continue;
            }
            let beside =
                charts.iter().filter(|chart| chart.lines.iter().any(|other| other.name == line.name));
            let taken: Vec<usize> =
                beside.flat_map(|chart| &chart.lines).filter_map(|other| palette.get(&other.name)).collect();
            let index = (0..).find(|index| !taken.contains(index)).unwrap_or_default();
            palette.0.push((line.name.clone(), index));
        }
        palette
    }

    fn get(&self, name: &str) -> Option<usize> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, index)| *index)
    }

    /// The class of the style sheet that gives the line its colour.
    pub(crate) fn colour(&self, line: &Line) -> String {
        format!("c{}", self.index(line) % COLOURS + 1)
    }

    /// The mark of the line around the current point, as commands of a path. Lines differ by it too, for who does not
    /// see the colours apart; those of published lines are smaller.
    pub(crate) fn mark(&self, line: &Line) -> String {
        let r = if line.published { 3.2 } else { 4.0 };
        match self.index(line) % SHAPES {
            0 => format!("m-{r} 0a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0-{d} 0z", d = 2.0 * r),
            1 => format!("m-{r}-{r}h{d}v{d}h-{d}z", r = 0.9 * r, d = 1.8 * r),
            2 => format!("m0-{:.1}l{:.1} {r2}h-{:.1}z", 1.2 * r, 1.15 * r, 2.3 * r, r2 = 2.0 * r),
            3 => format!("m0-{e}l{e} {e}l-{e} {e}l-{e}-{e}z", e = 1.25 * r),
            _ => format!("m0 {:.1}l{:.1}-{r2}h-{:.1}z", 1.2 * r, 1.15 * r, 2.3 * r, r2 = 2.0 * r),
        }
    }

    fn index(&self, line: &Line) -> usize {
        self.get(&line.name).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outline::Scale;

    fn chart(names: &[&str]) -> Chart {
        let line = |name: &&str| Line { name: (*name).to_owned(), published: false, points: Vec::new() };
        Chart {
            title: String::new(),
            x_label: String::new(),
            y_label: String::new(),
            x_scale: Scale::Linear,
            lines: names.iter().map(line).collect(),
        }
    }

    #[test]
    fn lines_of_one_chart_differ_and_a_name_is_always_the_same() {
        let charts = [chart(&["a", "b"]), chart(&["c", "d"]), chart(&["d", "b", "e"])];
        let palette = Palette::of(charts.iter());
        for chart in &charts {
            let mut looks: Vec<String> = chart.lines.iter().map(|line| palette.colour(line)).collect();
            looks.sort();
            looks.dedup();
            assert_eq!(looks.len(), chart.lines.len());
        }
        // The second chart begins with the first colour again: none of the first chart's lines is in it.
        assert_eq!(palette.colour(&charts[1].lines[0]), "c1");
        assert_ne!(palette.mark(&charts[0].lines[0]), palette.mark(&charts[0].lines[1]));
        let published = Line { published: true, ..charts[0].lines[0].clone() };
        assert_eq!(palette.colour(&published), "c1");
    }
}
