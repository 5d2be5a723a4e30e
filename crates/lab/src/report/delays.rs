//! Runs that differ in the delay of their network alone, side by side: what a report begins with where it shows such.

use super::csv;
use crate::apart::{self, Apart};
use crate::model::Order;
use crate::outline::{Chart, Entry, Line, Part, Scale, Table};
use crate::parts::sweep::{RATIO_DIGITS, dot, entry};
use crate::point::{Configuration, Panel};
use crate::results::run::Run;
use crate::results::statistics::{Figures, Missing, Spread};
use crate::study::{ByDelay, catalogue};
use std::fmt::Write;
use std::time::Duration;

/// The runs of one study with the same order, but for the delay.
#[derive(Debug)]
pub(super) struct Delays<'a> {
    shown: ByDelay,
    /// In ascending order of the delay.
    runs: Vec<(Duration, Figures<'a>)>,
}

impl<'a> Delays<'a> {
    /// All that there are among these runs, of studies that show something over the delay. Of two runs with the same delay
    /// the newer one counts.
    pub(super) fn of(runs: impl Iterator<Item = &'a Run>) -> Vec<Delays<'a>> {
        let mut groups: Vec<(Order, Delays<'a>)> = Vec::new();
        for run in runs {
            let Some(network) = run.order.apart.network else { continue };
            let Some(shown) = catalogue::named(&run.study).ok().and_then(|study| study.by_delay()) else {
                continue;
            };
            let order = without_network(&run.order);
            let is_same = |(of_group, delays): &&mut (Order, Delays<'_>)| {
                *of_group == order && delays.newest().study == run.study
            };
            let delays = match groups.iter_mut().find(is_same) {
                Some((_, delays)) => delays,
                None => {
                    groups.push((order, Delays { shown, runs: Vec::new() }));
                    let Some((_, delays)) = groups.last_mut() else { continue };
                    delays
                }
            };
            delays.add(network.delay, run);
        }
        groups.into_iter().map(|(_, delays)| delays).filter(|delays| delays.runs.len() > 1).collect()
    }

    fn add(&mut self, delay: Duration, run: &'a Run) {
        match self.runs.binary_search_by_key(&delay, |(delay, _)| *delay) {
            Ok(index) if self.runs[index].1.run().id > run.id => {}
            Ok(index) => self.runs[index].1 = Figures::of(run),
            Err(index) => self.runs.insert(index, (delay, Figures::of(run))),
        }
    }

    /// By which program and reader find its charts and tables.
    pub(super) fn newest(&self) -> &'a Run {
        let runs = self.runs.iter().map(|(_, figures)| figures.run());
        runs.max_by_key(|run| run.id).expect("a group begins with a run")
    }

    /// What it is about.
    pub(super) fn title(&self) -> &'static str {
        self.shown.title
    }

    /// Which runs, in a sentence or two.
    pub(super) fn lead(&self) -> String {
        let runs: Vec<String> = self.runs.iter().map(|(_, figures)| figures.run().id.to_string()).collect();
        format!(
            "Runs {} side by side: they were asked for the same, but for the delay of the network between the source and \
             what receives. A ratio is made within one round of one run, so that whatever else changed from run to \
             run changed both of its sides.",
            runs.join(", ")
        )
    }

    /// Charts and tables.
    pub(super) fn parts(&self) -> Vec<Part> {
        let panels = self.panels();
        let of_panel = |panel: &&'a Panel| {
            let suffix = if panels.len() > 1 { format!(" ({panel})") } else { String::new() };
            self.of_panel(panel, &suffix)
        };
        let mut parts: Vec<Part> = panels.iter().flat_map(of_panel).collect();
        parts.push(Part::Table(self.networks()));
        parts
    }

    fn of_panel(&self, panel: &Panel, suffix: &str) -> Vec<Part> {
        let ByDelay { value, quantity, baseline, .. } = &self.shown;
        let threads = self.threads(panel);
        // Where one waits for every answer, and where most answers are waited for together.
        let mut shown =
            [threads.first(), threads.last()].into_iter().flatten().copied().collect::<Vec<u32>>();
        shown.dedup();
        let charts = shown.into_iter().map(|threads| {
            let line = |configuration: &Configuration| {
                let ratio = |figures: &Figures<'_>| {
                    figures.ratio(&panel.point(configuration, threads), baseline, value)
                };
                self.line(configuration.to_string(), ratio)
            };
            Part::Chart(Chart {
                title: format!("{quantity} by delay, ratio to {baseline}, {}{suffix}", clients(threads)),
                x_label: "delay each way (ms)".to_owned(),
                y_label: format!("ratio to {baseline}"),
                x_scale: Scale::Linear,
                lines: self.shown.lines.iter().map(line).filter(|line| !line.points.is_empty()).collect(),
            })
        });
        let mut parts: Vec<Part> = charts.collect();
        let against =
            self.shown.against.iter().map(|(one, other)| (format!("{one}, to {other}"), one, other));
        parts.push(Part::Table(self.table(
            format!("{quantity} by delay, one against the other{suffix}"),
            panel,
            &against.collect::<Vec<_>>(),
        )));
        let lines = self.shown.lines.iter().map(|one| (one.to_string(), one, baseline));
        parts.push(Part::Table(self.table(
            format!("{quantity} by delay, ratios to {baseline}{suffix}"),
            panel,
            &lines.collect::<Vec<_>>(),
        )));
        parts.extend(self.growth(panel, suffix));
        parts
    }

    /// Over the number of clients, a line for each delay.
    fn growth(&self, panel: &Panel, suffix: &str) -> Option<Part> {
        let (configuration, published) = self.shown.growth.as_ref()?;
        let ByDelay { value, quantity, baseline, .. } = &self.shown;
        let mut lines: Vec<Line> = self
            .runs
            .iter()
            .map(|(delay, figures)| {
                let dots = self.threads(panel).into_iter().filter_map(|threads| {
                    let ratio = figures.ratio(&panel.point(configuration, threads), baseline, value).ok()?;
                    Some(dot(f64::from(threads), &ratio))
                });
                Line { name: format!("{} ms each way", ms(*delay)), published: false, points: dots.collect() }
            })
            .collect();
        let points = published.iter().map(|(threads, ratio)| {
            dot(f64::from(*threads), &Spread { median: *ratio, range: (*ratio, *ratio), rounds: 1 })
        });
        lines.push(Line { name: "as published".to_owned(), published: true, points: points.collect() });
        Some(Part::Chart(Chart {
            title: format!("{quantity} by clients and delay, {configuration}{suffix}"),
            x_label: "threads".to_owned(),
            y_label: format!("ratio to {baseline}"),
            x_scale: Scale::Logarithmic,
            lines,
        }))
    }

    /// A point for each delay that has a figure.
    fn line(&self, name: String, figure: impl Fn(&Figures<'_>) -> Result<Spread, Missing>) -> Line {
        let dots =
            self.runs.iter().filter_map(|(delay, figures)| Some(dot(ms(*delay), &figure(figures).ok()?)));
        Line { name, published: false, points: dots.collect() }
    }

    /// A row for each number of clients and each pair, which is one configuration to another one; a column for each delay.
    fn table(
        &self,
        title: String,
        panel: &Panel,
        pairs: &[(String, &Configuration, &Configuration)],
    ) -> Table {
        let delays = self.runs.iter().map(|(delay, _)| format!("{} ms", ms(*delay)));
        let columns = ["threads", "configuration"].map(str::to_owned).into_iter().chain(delays).collect();
        let row = |threads: u32, (name, one, other): &(String, &Configuration, &Configuration)| {
            let ratio = |(_, figures): &(Duration, Figures<'_>)| {
                let ratio = figures.ratio(&panel.point(*one, threads), *other, self.shown.value);
                entry(ratio, RATIO_DIGITS)
            };
            let head = [Entry::Number(f64::from(threads), 0), Entry::Text(name.clone())];
            head.into_iter().chain(self.runs.iter().map(ratio)).collect::<Vec<Entry>>()
        };
        let threads = self.threads(panel);
        let rows = threads.iter().flat_map(|threads| pairs.iter().map(|pair| row(*threads, pair))).collect();
        let notes = vec!["A ratio above 1 is quicker. The delay is that of each way.".to_owned()];
        Table { title, columns, rows, notes }
    }

    /// What was measured of the networks, and of the baseline behind each: it has none, and should be the same.
    fn networks(&self) -> Table {
        let ByDelay { value, quantity, baseline, .. } = &self.shown;
        let points: Vec<_> = self
            .panels()
            .into_iter()
            .flat_map(|panel| self.threads(panel).into_iter().map(|threads| panel.point(baseline, threads)))
            .collect();
        let is_named = self.panels().len() > 1;
        let row = |(delay, figures): &(Duration, Figures<'_>)| {
            let run = figures.run();
            let fact = |name: &str| apart::fact(&run.facts, name);
            let number = |name: &str| match fact(name).and_then(|value| value.parse().ok()) {
                Some(value) => Entry::Number(value, 0),
                None => Entry::Missing("was not measured".to_owned()),
            };
            let by = fact(apart::DELAYED_BY).unwrap_or("not known");
            let head = [
                Entry::Number(ms(*delay), 3),
                Entry::Number(run.id as f64, 0),
                Entry::Text(by.to_owned()),
                number(apart::ROUND_TRIP_P50),
                number(apart::ROUND_TRIP_P99),
            ];
            head.into_iter()
                .chain(points.iter().map(|point| entry(figures.median(point, value), 0)))
                .collect()
        };
        let heads =
            ["delay each way (ms)", "run", "delayed by", "round trip, p50 (µs)", "round trip, p99 (µs)"];
        let of_points = points.iter().map(|point| {
            let panel = if is_named { format!("{}, ", point.panel) } else { String::new() };
            format!("{panel}{baseline}, {}", clients(point.threads))
        });
        Table {
            title: format!("The networks, and {} of {baseline} beside each", quantity.to_lowercase()),
            columns: heads.map(str::to_owned).into_iter().chain(of_points).collect(),
            rows: self.runs.iter().map(row).collect(),
            notes: vec![
                "The round trip is that of a small message by TCP, before the load. The baseline waits for no network; where \
                 it differs from run to run, the machine was another one then."
                    .to_owned(),
            ],
        }
    }

    fn panels(&self) -> Vec<&'a Panel> {
        let mut panels: Vec<&Panel> = self.runs.iter().flat_map(|(_, figures)| figures.panels()).collect();
        panels.sort();
        panels.dedup();
        panels
    }

    fn threads(&self, panel: &Panel) -> Vec<u32> {
        let mut threads: Vec<u32> =
            self.runs.iter().flat_map(|(_, figures)| figures.threads(panel)).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    /// Every ratio of the tables as CSV, without the head.
    fn csv(&self) -> String {
        let baseline = &self.shown.baseline;
        let to_baseline = self.shown.lines.iter().map(|one| (one, baseline));
        let pairs: Vec<_> =
            self.shown.against.iter().map(|(one, other)| (one, other)).chain(to_baseline).collect();
        let mut text = String::new();
        for panel in self.panels() {
            for (threads, (one, other)) in
                self.threads(panel).iter().flat_map(|threads| pairs.iter().map(move |pair| (*threads, *pair)))
            {
                for (delay, figures) in &self.runs {
                    let point = panel.point(one, threads);
                    let Ok(ratio) = figures.ratio(&point, other, self.shown.value) else { continue };
                    let fields = [
                        figures.run().study.clone(),
                        figures.run().id.to_string(),
                        ms(*delay).to_string(),
                        panel.server.clone(),
                        panel.condition.to_string(),
                        threads.to_string(),
                        one.to_string(),
                        other.to_string(),
                        self.shown.value.to_owned(),
                        ratio.median.to_string(),
                        ratio.range.0.to_string(),
                        ratio.range.1.to_string(),
                        ratio.rounds.to_string(),
                    ];
                    let _ = write!(text, "{}", csv::line(fields.into_iter()));
                }
            }
        }
        text
    }
}

/// All ratios of all of them as CSV: a line for each configuration, the one that it is compared with, and delay.
pub(super) fn csv(all: &[Delays<'_>]) -> Option<String> {
    const HEAD: &str = "study,run,delay_ms,server,condition,threads,configuration,compared_with,value,ratio,ratio_lowest,\
                        ratio_highest,rounds\n";
    let text: String = all.iter().map(Delays::csv).collect();
    (!all.is_empty()).then(|| HEAD.to_owned() + &text)
}

fn without_network(order: &Order) -> Order {
    Order { apart: Apart { network: None, ..order.apart.clone() }, ..order.clone() }
}

fn ms(delay: Duration) -> f64 {
    delay.as_micros() as f64 / 1e3
}

fn clients(threads: u32) -> String {
    if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::virtual_replica::{FSYNC_MODE_1, REPLICA_20};
    use crate::report::example;

    /// The longer the delay, the slower are all but the source alone.
    fn run(id: i64, network: Option<&str>) -> Run {
        let mut run = Run { id, ..example::virtual_replica() };
        run.order.apart.network = network.map(|network| network.parse().unwrap());
        let delay = run.order.apart.network.map_or(0.0, |network| network.delay.as_secs_f64() * 1e3);
        for cell in &mut run.cells {
            let tps =
                if cell.key.point.configuration == example::ALONE { 100.0 } else { 100.0 - 10.0 * delay };
            cell.measured.put("tps", tps);
        }
        run
    }

    #[test]
    fn runs_that_differ_in_the_delay_alone_are_put_side_by_side() {
        let mut other_rounds = run(9, Some("delay=2ms"));
        other_rounds.order.settings.0.insert("rounds".to_owned(), "5".to_owned());
        let runs = [
            run(1, None),
            run(2, Some("delay=1ms")),
            run(3, Some("delay=0ms")),
            run(8, Some("delay=0.5ms")),
            run(4, Some("delay=0.5ms")),
            other_rounds,
        ];
        let all = Delays::of(runs.iter());
        assert_eq!(all.len(), 1);
        let delays = &all[0];
        assert!(delays.lead().starts_with("Runs 3, 8, 2 side by side"), "{}", delays.lead());
        assert_eq!(delays.newest().id, 8);
        let parts = delays.parts();
        let charts: Vec<&Chart> = parts
            .iter()
            .filter_map(|part| match part {
                Part::Chart(chart) => Some(chart),
                _ => None,
            })
            .collect();
        let titles: Vec<&str> = charts.iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(
            titles,
            [2, 256].map(|threads| format!(
                "Transactions a second by delay, ratio to source alone, {threads} threads"
            ))
        );
        let line = charts[0].lines.iter().find(|line| line.name == FSYNC_MODE_1.to_string()).unwrap();
        let points: Vec<(f64, f64)> = line.points.iter().map(|dot| (dot.x, dot.y)).collect();
        assert_eq!(points, [(0.0, 1.0), (0.5, 0.95), (1.0, 0.9)]);
        // The test's data lack the others.
        assert!(charts[0].lines.iter().any(|line| line.name == REPLICA_20.to_string()));
        let csv = csv(&all).unwrap();
        assert!(
            csv.contains(
                "\nvirtual-replica,8,0.5,mysql-9.7,,2,\"binlogd, fsync_mode 1\",source alone,tps,0.95,0.95,0.95,3\n"
            ),
            "{csv}"
        );
        let heads = csv.lines().next().unwrap().split(',').count();
        assert_eq!(heads, 13);
    }

    #[test]
    fn one_delay_or_none_shows_nothing() {
        let runs = [run(1, None), run(2, Some("delay=1ms")), run(3, Some("delay=1ms"))];
        let all = Delays::of(runs.iter());
        assert!(all.is_empty() && csv(&all).is_none());
    }
}
