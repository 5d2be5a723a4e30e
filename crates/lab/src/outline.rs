//! What a study's report consists of, before it becomes HTML or Markdown.

/// A part of a report, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// A heading of the study's second level.
    Heading(String),
    /// A paragraph of plain text.
    Text(String),
    /// Lines over an axis.
    Chart(Chart),
    /// A table.
    Table(Table),
}

/// A line chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Above it. Unique within the study.
    pub title: String,
    /// Of the horizontal axis, with its unit.
    pub x_label: String,
    /// Of the vertical axis, with its unit. The axis begins at 0.
    pub y_label: String,
    /// How the horizontal axis is divided.
    pub x_scale: Scale,
    /// The lines, in the order of the legend.
    pub lines: Vec<Line>,
}

/// How an axis is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// Each doubling takes the same room; for numbers of threads.
    Logarithmic,
}

/// A line of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// In the legend.
    pub name: String,
    /// True for figures of the published study, which are drawn dashed.
    pub published: bool,
    /// In order of `x`.
    pub points: Vec<Dot>,
}

/// A point of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dot {
    /// On the horizontal axis.
    pub x: f64,
    /// The median of the rounds.
    pub y: f64,
    /// The lowest and the highest round, drawn as a band; absent where there is one figure only.
    pub spread: Option<(f64, f64)>,
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Above it. Unique within the study.
    pub title: String,
    /// Heads of the columns.
    pub columns: Vec<String>,
    /// Each as long as `columns`.
    pub rows: Vec<Vec<Entry>>,
    /// Below it, what a reader must know to read it right; may be empty.
    pub notes: Vec<String>,
}

impl Table {
    /// One whose columns and notes are known beforehand.
    pub fn new(title: impl Into<String>, columns: &[&str], rows: Vec<Vec<Entry>>, notes: &[&str]) -> Table {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Table { title: title.into(), columns: owned(columns), rows, notes: owned(notes) }
    }
}

/// What stands at one place of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// Words; aligned to the left.
    Text(String),
    /// A number, and how many digits after the point are shown; aligned to the right.
    Number(f64, usize),
    /// The median of rounds with their range.
    Median {
        /// The median.
        median: f64,
        /// The lowest and the highest round.
        range: (f64, f64),
        /// Digits shown after the point.
        digits: usize,
    },
    /// Not measured, or not valid; the reason is shown on hover and in Markdown.
    Missing(String),
}
