//! The page of the metrics, read from a scrape in which all of them are.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{Context, ensure};

use crate::markdown::{cell, code, head, plain};

const ABOUT: &str = "\
Every metric of `/metrics`, with its labels. Names are added, none is renamed, removed or given another meaning. What is not
known is absent, never 0. A histogram has the series `_bucket` (label `le`), `_sum` and `_count`; each bucket is twice as wide
as the one before. [Status, metrics, health](../status.md) says what the values mean together, and which of them to alert on.";

/// A family of metrics.
#[derive(Debug, Default)]
struct Family {
    /// As the exposition names it, without `_total` and the like.
    name: String,
    kind: String,
    help: String,
    /// Names of the labels of its series, in the order of the exposition.
    labels: Vec<String>,
}

impl Family {
    /// The name of its series: what stands in a query.
    fn series(&self) -> String {
        match self.kind.as_str() {
            "counter" => format!("{}_total", self.name),
            "info" => format!("{}_info", self.name),
            _ => self.name.clone(),
        }
    }

    /// Whose it is. A label says so, and for what has none the name.
    fn group(&self) -> &'static str {
        let has = |label: &str| self.labels.iter().any(|one| one == label);
        if has("slot") {
            "Each slot"
        } else if has("user") {
            "Each reader"
        } else if has("node") {
            "Each other node of a quorum"
        } else if has("peer") {
            "Each peer"
        } else if has("source") {
            "Each source"
        } else if self.name.starts_with("binlogd_serve") {
            "The port for readers"
        } else {
            "The daemon"
        }
    }
}

/// The text of the page.
///
/// # Errors
///
/// The scrape is not the OpenMetrics text that is expected.
pub(crate) fn page() -> anyhow::Result<String> {
    let families = families(&binlogd::reference::metrics())?;
    ensure!(families.len() > 40, "only {} families of metrics were found", families.len());
    let mut groups: Vec<(&str, Vec<&Family>)> = Vec::new();
    for family in &families {
        match groups.iter_mut().find(|(group, _)| *group == family.group()) {
            Some((_, of_group)) => of_group.push(family),
            None => groups.push((family.group(), vec![family])),
        }
    }
    let mut page = head("Metrics", ABOUT);
    for (group, families) in groups {
        // Writing to a text does not fail, here and below.
        let _ = writeln!(page, "\n## {group}\n");
        let of_all: Vec<&String> = families[0]
            .labels
            .iter()
            .filter(|label| families.iter().all(|family| family.labels.contains(label)))
            .collect();
        if !of_all.is_empty() {
            let _ = writeln!(page, "Each has {}.\n", labels_in_words(of_all.iter().copied()));
        }
        let _ = writeln!(page, "| name | type | meaning |\n|---|---|---|");
        for family in families {
            let further = family.labels.iter().filter(|label| !of_all.contains(label));
            let labels = labels_in_words(further);
            let labels = if labels.is_empty() { labels } else { format!("; {labels}") };
            let _ = writeln!(
                page,
                "| {} | {}{labels} | {} |",
                code(&family.series()),
                family.kind,
                cell(&plain(&family.help))
            );
        }
    }
    Ok(page)
}

/// How the page names labels; nothing for none.
fn labels_in_words<'a>(labels: impl Iterator<Item = &'a String>) -> String {
    let labels: Vec<String> = labels.map(|label| code(label)).collect();
    match labels.len() {
        0 => String::new(),
        1 => format!("the label {}", labels[0]),
        _ => format!("the labels {}", labels.join(", ")),
    }
}

/// Reads the families from OpenMetrics text, in its order.
fn families(text: &str) -> anyhow::Result<Vec<Family>> {
    let mut families: Vec<Family> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').context("a HELP without a text")?;
            let help = help.replace("\\\"", "\"").replace("\\\\", "\\");
            places.insert(name.to_owned(), families.len());
            families.push(Family { name: name.to_owned(), help, ..Family::default() });
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').context("a TYPE without a type")?;
            let place = places.get(name).with_context(|| format!("{name} has no HELP"))?;
            families[*place].kind = kind.to_owned();
        } else if !line.starts_with('#') {
            let family = families.last_mut().with_context(|| format!("{line} belongs to no family"))?;
            ensure!(line.starts_with(&family.name), "{line} under {}", family.name);
            for label in labels(line) {
                if label != "le" && !family.labels.contains(&label) {
                    family.labels.push(label);
                }
            }
        }
    }
    for family in &families {
        ensure!(!family.kind.is_empty() && !family.help.is_empty(), "{} has no type or no help", family.name);
    }
    Ok(families)
}

/// The names of the labels of a series.
fn labels(line: &str) -> Vec<String> {
    let Some((_, rest)) = line.split_once('{') else { return Vec::new() };
    let (mut names, mut name, mut in_value, mut escaped) = (Vec::new(), String::new(), false, false);
    for c in rest.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => in_value = !in_value,
            _ if in_value => {}
            '=' => names.push(std::mem::take(&mut name)),
            '}' => break,
            ',' => {}
            _ => name.push(c),
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_found_whatever_their_values() {
        assert_eq!(labels(r#"a_b{source="o=\"}{,x",rung="durable"} 1"#), ["source", "rung"]);
        assert_eq!(labels("a_b 1"), Vec::<String>::new());
    }

    #[test]
    fn series_have_the_names_of_queries_and_their_group() {
        let page = page().unwrap();
        for line in [
            "| `binlogd_events_total` | counter | ",
            "| `binlogd_build_info` | info; the label `version` |",
            "Each has the labels `source`, `slot`.",
        ] {
            assert!(page.contains(line), "{line} in\n{page}");
        }
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} in\n{page}"));
        assert!(at("## Each slot") < at("`binlogd_slot_released`"));
    }
}
