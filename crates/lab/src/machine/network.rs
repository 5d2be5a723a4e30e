//! A network between source and receivers, on one machine.

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How the network between source and receivers is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Network {
    /// What each packet takes longer, in either direction.
    pub delay: Duration,
}

/// What a right value looks like.
const WANTED: &str = "delay=0.5ms is wanted, a time in us or ms, of at most 10000ms";
/// A longer one is a slip of the pen: a source stops waiting for its receiver after ten seconds.
const DELAY_US_MAX: f64 = 10e6;

impl FromStr for Network {
    type Err = anyhow::Error;

    /// `delay=0.5ms`.
    fn from_str(text: &str) -> anyhow::Result<Network> {
        let failed = || format!("{text:?} is no network: {WANTED}");
        let time = text.trim().strip_prefix("delay=").with_context(failed)?;
        let (number, us) = match (time.strip_suffix("us"), time.strip_suffix("ms")) {
            (Some(number), _) => (number, 1.0),
            (_, Some(number)) => (number, 1e3),
            _ => bail!(failed()),
        };
        let us = number.parse::<f64>().with_context(failed)? * us;
        if !(0.0..=DELAY_US_MAX).contains(&us) {
            bail!(failed());
        }
        Ok(Network { delay: Duration::from_micros(us.round() as u64) })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "delay={}ms", self.delay.as_micros() as f64 / 1e3)
    }
}

impl TryFrom<String> for Network {
    type Error = anyhow::Error;

    fn try_from(text: String) -> anyhow::Result<Network> {
        text.parse()
    }
}

impl From<Network> for String {
    fn from(network: Network) -> String {
        network.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_read_and_printed() {
        for (text, printed) in
            [("delay=0.5ms", "delay=0.5ms"), ("delay=100us", "delay=0.1ms"), ("delay=0ms", "delay=0ms")]
        {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), printed);
        }
        for text in
            ["", "0.5ms", "delay=", "delay=5", "delay=-1ms", "delay=NaNms", "delay=1h", "delay=11000ms"]
        {
            let error = text.parse::<Network>().unwrap_err().to_string();
            assert!(error.contains("delay=0.5ms is wanted"), "{text}: {error}");
        }
    }
}
