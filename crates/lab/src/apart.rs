//! What is set apart of what is measured: source, receivers and load on disks and processors of their own, as far as one
//! machine has them.

use crate::machine::cpus::{Cpus, ROLES, Role};
use crate::machine::network::Network;
use crate::results::fact::Fact;
use anyhow::bail;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the facts are about that say what was set apart.
pub const ABOUT: &str = "set apart";
/// What the fact is called that says what delayed packets.
pub const DELAYED_BY: &str = "packets delayed by";
/// What the fact is called that says how long a message took between source and receivers and back, before anything was
/// measured.
pub const ROUND_TRIP_P50: &str = "round trip measured, p50, µs";
/// The same of the slowest hundredth.
pub const ROUND_TRIP_P99: &str = "round trip measured, p99, µs";
/// What the facts are about that say of the disk of the source, where it has one of its own.
pub const SOURCE_DISK: &str = "disk of the source";
/// The same of the receivers.
pub const RECEIVER_DISK: &str = "disk of the receivers";

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Apart {
    /// Folder for the source's files; none for that of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_dir: Option<PathBuf>,
    /// Folder for the files of binlogd, of real replicas and of yardsticks; none for that of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver_dir: Option<PathBuf>,
    /// The processors of each.
    #[serde(skip_serializing_if = "Cpus::is_nothing")]
    pub cpus: Cpus,
    /// What lies between source and receivers; none for the loopback interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
}

impl Apart {
    /// Whether all share everything.
    pub fn is_nothing(&self) -> bool {
        *self == Apart::default()
    }

    /// Whether it can be done with that source.
    ///
    /// # Errors
    /// When the source is one of the user's, which is where it is.
    pub fn check(&self, is_users_source: bool) -> anyhow::Result<()> {
        let of_source = [
            ("--source-dir", self.source_dir.is_some()),
            ("--network", self.network.is_some()),
            ("--cpus source=…", self.cpus.of(Role::Source).is_some()),
        ];
        if let Some((option, _)) = of_source.iter().find(|(_, is_set)| is_users_source && *is_set) {
            bail!("{option}: the source is a server of yours, and stays where it is");
        }
        Ok(())
    }

    /// Whether source and receivers write into different folders, which are on different disks if their owner has seen
    /// to that.
    pub fn has_folders(&self) -> bool {
        self.source_dir != self.receiver_dir
    }

    /// The options that set it, each with its value, or in words what holds without it.
    pub fn options(&self) -> [(&'static str, String); 4] {
        let folder = |dir: &Option<PathBuf>| {
            dir.as_ref().map_or_else(|| "as --dir".to_owned(), |dir| dir.display().to_string())
        };
        let cpus = if self.cpus.is_nothing() { "all for all".to_owned() } else { self.cpus.to_string() };
        [
            ("--source-dir", folder(&self.source_dir)),
            ("--receiver-dir", folder(&self.receiver_dir)),
            ("--cpus", cpus),
            ("--network", self.network.map_or_else(|| "none".to_owned(), |network| network.to_string())),
        ]
    }

    /// What was set, told whether it was or not, so that two runs are told apart by it.
    pub fn facts(&self) -> Vec<Fact> {
        self.options().map(|(option, value)| Fact::new(ABOUT, option, value)).to_vec()
    }

    /// The folders that are set, each with what the facts of its disk are about.
    pub fn disks(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let disks = [(SOURCE_DISK, &self.source_dir), (RECEIVER_DISK, &self.receiver_dir)];
        disks.into_iter().filter_map(|(about, dir)| Some((about, dir.as_deref()?)))
    }

    /// What a reader of a report must know of it, in whole sentences; `facts` are those of the run.
    pub fn sentences(&self, facts: &[Fact]) -> Vec<String> {
        let mut sentences = Vec::new();
        for (about, dir) in self.disks() {
            let fact = |name: &str| {
                let found = facts.iter().find(|fact| fact.about == about && fact.name == name);
                found.map_or("unknown", |fact| fact.value.as_str())
            };
            let kind = fact("file system");
            let memory =
                if kind == "tmpfs" { ": they are in memory, where a sync costs nothing" } else { "" };
            let whose = about.strip_prefix("disk of ").unwrap_or(about);
            sentences.push(format!(
                "The files of {whose} were in {} ({kind} on {}, {} µs to write and sync 4 KiB){memory}.",
                dir.display(),
                fact("device"),
                fact("write and fdatasync of 4 KiB, p50, µs")
            ));
        }
        let lists = ROLES.into_iter().filter_map(|(role, name)| Some((name, self.cpus.of(role)?)));
        let lists: Vec<String> = lists.map(|(name, list)| format!("{name} on {list}")).collect();
        if !lists.is_empty() {
            sentences.push(format!(
                "Processors were set apart: {}; whoever is not named could use all.",
                lists.join(", ")
            ));
        }
        if let Some(Network { delay }) = self.network {
            let ms = |delay: Duration| delay.as_micros() as f64 / 1e3;
            let fact = |name: &str| fact(facts, name);
            let measured = match (fact(ROUND_TRIP_P50), fact(ROUND_TRIP_P99)) {
                (Some(p50), Some(p99)) => {
                    format!("; a message by TCP and its answer took {p50} µs (p99 {p99} µs) before the load")
                }
                _ => String::new(),
            };
            let by = fact(DELAYED_BY).map_or_else(String::new, |by| format!(", by {by}"));
            let between = "Between the source and what receives lay";
            sentences.push(if delay.is_zero() {
                format!("{between} a network without a delay{measured}.")
            } else {
                format!(
                    "{between} a network that takes {} ms longer each way{by}. That is {} ms for a round trip{measured}.",
                    ms(delay),
                    ms(delay * 2)
                )
            });
        }
        sentences
    }
}

/// What is known under that name of what was set apart.
pub fn fact<'a>(facts: &'a [Fact], name: &str) -> Option<&'a str> {
    let found = facts.iter().find(|fact| fact.about == ABOUT && fact.name == name);
    found.map(|fact| fact.value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_of_an_older_lab_has_nothing_set_apart_and_what_is_set_is_kept() {
        assert_eq!(serde_json::from_str::<Apart>("{}").unwrap(), Apart::default());
        assert_eq!(serde_json::to_string(&Apart::default()).unwrap(), "{}");
        let apart = Apart {
            source_dir: Some("/memory".into()),
            cpus: "source=0,load=1".parse().unwrap(),
            ..Apart::default()
        };
        let kept = serde_json::to_string(&apart).unwrap();
        assert_eq!(serde_json::from_str::<Apart>(&kept).unwrap(), apart);
        assert!(apart.has_folders() && !apart.is_nothing() && !Apart::default().has_folders());
    }

    #[test]
    fn what_is_set_is_told() {
        let nothing = Apart::default();
        assert_eq!(nothing.sentences(&[]), Vec::<String>::new());
        assert_eq!(nothing.facts()[2], Fact::new(ABOUT, "--cpus", "all for all"));
        let apart = Apart {
            source_dir: Some("/memory".into()),
            receiver_dir: Some("/disk".into()),
            cpus: "source=0,load=1".parse().unwrap(),
            network: Some("delay=0.5ms".parse().unwrap()),
        };
        let facts = [
            Fact::new(SOURCE_DISK, "file system", "tmpfs"),
            Fact::new(SOURCE_DISK, "device", "tmpfs"),
            Fact::new(SOURCE_DISK, "write and fdatasync of 4 KiB, p50, µs", "1"),
            Fact::new(ABOUT, DELAYED_BY, "netem"),
            Fact::new(ABOUT, ROUND_TRIP_P50, "1060"),
            Fact::new(ABOUT, ROUND_TRIP_P99, "1100"),
        ];
        assert_eq!(
            apart.sentences(&facts),
            [
                "The files of the source were in /memory (tmpfs on tmpfs, 1 µs to write and sync 4 KiB): they are in \
                 memory, where a sync costs nothing.",
                "The files of the receivers were in /disk (unknown on unknown, unknown µs to write and sync 4 KiB).",
                "Processors were set apart: source on 0, load on 1; whoever is not named could use all.",
                "Between the source and what receives lay a network that takes 0.5 ms longer each way, by netem. That is 1 ms \
                 for a round trip; a message by TCP and its answer took 1060 µs (p99 1100 µs) before the load."
            ]
        );
        apart.check(false).unwrap();
        let refused = apart.check(true).unwrap_err().to_string();
        assert!(refused.starts_with("--source-dir: the source is a server of yours"), "{refused}");
        assert_eq!(apart.facts()[0], Fact::new(ABOUT, "--source-dir", "/memory"));
    }
}
