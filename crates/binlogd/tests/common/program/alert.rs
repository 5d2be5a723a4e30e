//! The packaged alerts, evaluated against scraped metrics as Prometheus would.

use std::collections::BTreeMap;

/// One scrape: each series with its labels, and its value.
pub struct Scrape(BTreeMap<String, f64>);

impl Scrape {
    /// Fetches `/metrics` of a running daemon.
    #[track_caller]
    pub fn of(admin_address: &str) -> Self {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .timeout_global(Some(std::time::Duration::from_secs(30)))
            .build()
            .into();
        let mut answer = agent.get(format!("http://{admin_address}/metrics")).call().expect("metrics");
        let text = answer.body_mut().read_to_string().expect("text");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let series = lines.filter_map(|line| line.rsplit_once(' '));
        Self(series.map(|(key, value)| (key.to_owned(), value.parse().expect("a number"))).collect())
    }

    /// The value of a metric of the one source; `None` when it is absent.
    pub fn value(&self, metric: &str) -> Option<f64> {
        let prefix = format!("{metric}{{");
        self.0.iter().find(|(key, _)| key.starts_with(&prefix)).map(|(_, value)| *value)
    }
}

/// What the packaged alert of this name asks, word for word.
#[track_caller]
pub fn alert(name: &str) -> String {
    let rules = crate::common::rules::rules(&crate::common::workspace());
    let rule = rules.into_iter().find(|rule| rule.name == name);
    rule.unwrap_or_else(|| panic!("no alert {name}")).expr
}

/// Whether the alert fires, from a scrape at the beginning of its range and one of now. It knows comparisons of metrics and
/// of `increase(…)` with numbers, `and`, `unless`, `or` and no parentheses but those of `increase`: `and` and `unless` bind more
/// tightly than `or`, from the left. The scrapes are of one source, so that the labels of both sides are the same.
#[track_caller]
pub fn fires(alert: &str, before: &Scrape, now: &Scrape) -> bool {
    let holds = |comparison: &str| holds(comparison.trim(), before, now);
    alert.split(" or ").any(|part| {
        part.split(" and ").all(|joined| {
            let mut comparisons = joined.split(" unless ");
            // What is in both sides of `unless` is left out. A part behind an `and` that follows it still has to hold.
            comparisons.next().is_some_and(holds) && !comparisons.any(holds)
        })
    })
}

#[track_caller]
fn holds(comparison: &str, before: &Scrape, now: &Scrape) -> bool {
    let words: Vec<&str> = comparison.split(' ').collect();
    let [left, operator, right] = words[..] else { panic!("cannot evaluate {comparison:?}") };
    let right: f64 = right.parse().expect("a number");
    let value = match left.strip_prefix("increase(").and_then(|rest| rest.strip_suffix("])")) {
        Some(counter) => {
            let (metric, _range) = counter.split_once('[').expect("a range");
            assert!(metric.ends_with("_total"), "{metric} is no counter");
            // Without a sample at the beginning Prometheus sees no increase.
            now.value(metric).zip(before.value(metric)).map(|(now, before)| now - before)
        }
        None => now.value(left),
    };
    // A comparison of what is absent is absent.
    value.is_some_and(|value| match operator {
        "==" => value == right,
        ">" => value > right,
        "<" => value < right,
        _ => panic!("cannot evaluate {comparison:?}"),
    })
}
