//! What a window of measurement came to.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a cell of a study came to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Numbers by name; the unit is part of the name where it is not evident: `tps`, `p95_ms`, `binlog_bytes`.
    pub values: BTreeMap<String, f64>,
    /// Numbers of each second of the load by name.
    pub series: BTreeMap<String, Vec<f64>>,
    /// Why it does not count. Then the numbers are kept but used nowhere.
    pub invalid: Option<String>,
}

impl Measured {
    /// Without numbers.
    pub fn invalid(reason: impl Into<String>) -> Measured {
        Measured { invalid: Some(reason.into()), ..Measured::default() }
    }

    /// Keeps one number.
    pub fn put(&mut self, name: &str, value: f64) {
        self.values.insert(name.to_owned(), value);
    }

    /// Adds a reason why it does not count.
    pub fn refuse(&mut self, reason: impl AsRef<str>) {
        let reasons = self.invalid.get_or_insert_default();
        if !reasons.is_empty() {
            reasons.push_str("; ");
        }
        reasons.push_str(reason.as_ref());
    }
}
