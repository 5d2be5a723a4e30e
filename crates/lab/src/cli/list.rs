//! `binlogd-lab list`.
use crate::engine;
use crate::model::{Order, Profile};
use crate::progress::clock;
use crate::study::Study;
use clap::ValueEnum;
use std::time::Duration;

/// Columns of a line of text.
const WIDTH: usize = 100;

/// Prints what there is to run.
pub(super) fn print(studies: &[&dyn Study]) -> anyhow::Result<()> {
    let texts: Vec<String> = studies.iter().map(|study| described(*study)).collect();
    println!("{}", texts.join("\n"));
    Ok(())
}

fn described(study: &dyn Study) -> String {
    let profiles = Profile::value_variants();
    let orders: Vec<Order> =
        profiles.iter().map(|profile| Order::new(*profile, study.settings(*profile))).collect();
    let mut rows =
        vec![["".to_owned()].into_iter().chain(profiles.iter().map(|profile| name(*profile))).collect()];
    for setting in
        orders.iter().flat_map(|order| order.settings.0.keys()).collect::<std::collections::BTreeSet<_>>()
    {
        let value = |order: &Order| order.settings.0.get(setting).cloned().unwrap_or_default();
        rows.push(std::iter::once(setting.clone()).chain(orders.iter().map(value)).collect());
    }
    let sizes: Vec<(String, String)> = orders.iter().map(|order| size(study, order)).collect();
    rows.push(
        std::iter::once("cells".to_owned()).chain(sizes.iter().map(|(cells, _)| cells.clone())).collect(),
    );
    rows.push(std::iter::once("time".to_owned()).chain(sizes.iter().map(|(_, time)| time.clone())).collect());
    format!("{}: {}\n{}\n{}", study.name(), study.title(), wrapped(study.summary()), columns(&rows))
}

/// Cells of an order, and the time that they take about, without setting up.
fn size(study: &dyn Study, order: &Order) -> (String, String) {
    match engine::planned(study, order) {
        Ok(plan) => {
            let cells: usize = plan.scenes.iter().map(|scene| scene.cells.len()).sum();
            let time = Duration::from_secs_f64(cells as f64 * plan.cell_seconds);
            (cells.to_string(), format!("{} + set-up", clock(time)))
        }
        Err(error) => (format!("{error:#}"), String::new()),
    }
}

/// As it is typed.
pub(super) fn name(profile: Profile) -> String {
    profile.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn wrapped(text: &str) -> String {
    let (mut lines, mut line) = (Vec::new(), String::from("   "));
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(std::mem::replace(&mut line, String::from("   ")));
        }
        line.push(' ');
        line.push_str(word);
    }
    lines.push(line);
    lines.join("\n") + "\n"
}

/// Rows with their columns below each other.
pub(super) fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|text| text.chars().count()).max();
    let widths: Vec<usize> = (0..count).map(|column| width(column).unwrap_or_default()).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(text, width)| format!("{text:<width$}")).collect();
        format!("    {}\n", cells.join("   ")).replace(" \n", "\n")
    };
    rows.iter().map(line).map(|line| format!("{}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_long_text_is_wrapped() {
        let rows = [vec!["a".to_owned(), "b".to_owned()], vec!["long".to_owned(), "c".to_owned()]];
        assert_eq!(columns(&rows), "    a      b\n    long   c\n");
        let text = wrapped(&"word ".repeat(30));
        assert!(
            text.lines().count() == 2 && text.lines().all(|line| line.chars().count() <= WIDTH),
            "{text}"
        );
    }
}
