//! What was published, as it is transcribed.

use crate::outline::Part;
use crate::point::Configuration;
use std::str::FromStr;

/// Published figures of one configuration over numbers of threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// The lab's configuration that they are compared with.
    pub configuration: Configuration,
    /// Threads and figure, in ascending order of threads.
    pub points: Vec<(u32, f64)>,
}

impl Curve {
    /// The figure at that number of threads, if it was published.
    pub fn at(&self, threads: u32) -> Option<f64> {
        self.points.iter().find(|(published, _)| *published == threads).map(|(_, figure)| *figure)
    }

    /// The ratios to another curve, at the numbers of threads that both have.
    pub fn relative_to(&self, baseline: &Curve) -> Curve {
        let ratio = |(threads, figure): &(u32, f64)| Some((*threads, figure / baseline.at(*threads)?));
        Curve {
            configuration: self.configuration.clone(),
            points: self.points.iter().filter_map(ratio).collect(),
        }
    }
}

/// A published study.
#[derive(Debug, Clone, PartialEq)]
pub struct Publication {
    /// Its title, in English where it was published in another language.
    pub title: &'static str,
    /// Where and when it was published, as far as it says.
    pub origin: &'static str,
    /// What was measured: software with versions, load and data.
    pub software: &'static str,
    /// What it was measured on.
    pub hardware: &'static str,
    /// What it concluded, in its own terms.
    pub conclusions: &'static [&'static str],
    /// What is unclear or contradictory in it.
    pub remarks: &'static [&'static str],
    /// Its figures.
    pub figures: Vec<Part>,
}

/// The rows of a table of this folder without its head, each as long as the head.
pub(super) fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    let columns = table.lines().next().map_or(0, |head| head.split('\t').count());
    table.lines().skip(1).map(move |line| {
        let row: Vec<&str> = line.split('\t').collect();
        assert_eq!(
            row.len(),
            columns,
            "a row of the reference data has another length than its head: {line}"
        );
        row
    })
}

/// One field of the reference data, which is part of the program: a field that cannot be read is a defect of it.
pub(super) fn field<T: FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("the reference data has {text:?} where a number is due"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::semi_sync_cost;

    #[test]
    fn a_curve_relative_to_another_has_the_points_of_both() {
        let curve = |points: &[(u32, f64)]| Curve {
            configuration: semi_sync_cost::Configuration::Asynchronous.into(),
            points: points.to_vec(),
        };
        let ratio = curve(&[(2, 5.0), (4, 3.0)]).relative_to(&curve(&[(4, 2.0), (8, 1.0)]));
        assert_eq!(ratio.points, [(4, 1.5)]);
        assert_eq!((ratio.at(4), ratio.at(8)), (Some(1.5), None));
    }
}
