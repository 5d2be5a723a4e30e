//! The alerts of packaging/prometheus/binlogd.rules.yml, read line by line: each key of a rule stands on a line of its own.

use std::collections::BTreeSet;
use std::path::Path;

/// One alert.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// What is asked of Prometheus.
    pub expr: String,
    /// `page` or `warning`.
    pub severity: String,
    /// The sentence for a person, a template.
    pub summary: String,
    /// The page and the section that say what to do.
    pub runbook: String,
}

/// Path of the rules below the workspace.
pub const RULES: &str = "packaging/prometheus/binlogd.rules.yml";

/// All alerts, in the order of the file.
///
/// # Panics
/// When the file has a key that is not known here: then this reader is to be taught.
pub fn rules(workspace: &Path) -> Vec<Rule> {
    let text = std::fs::read_to_string(workspace.join(RULES)).expect("the rules");
    let mut rules: Vec<Rule> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (key, value) = line.trim_start_matches("- ").split_once(':').expect("a key");
        let value = value.trim().to_owned();
        if key == "alert" {
            rules.push(Rule { name: value, ..Rule::default() });
            continue;
        }
        let Some(rule) = rules.last_mut() else { continue };
        match key {
            "expr" => rule.expr = value,
            "severity" => rule.severity = value,
            "summary" => rule.summary = serde_json::from_str(&value).expect("a quoted text"),
            "runbook" => rule.runbook = value,
            "for" | "labels" | "annotations" | "name" | "rules" => {}
            other => panic!("{RULES}: nothing is known of the key {other}"),
        }
    }
    rules
}

/// Names of metrics of binlogd in an expression.
pub fn metrics_in(expr: &str) -> BTreeSet<String> {
    expr.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("binlogd_"))
        .map(str::to_owned)
        .collect()
}
