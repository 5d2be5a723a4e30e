//! What a run is measured on, looked at when it begins.

use crate::apart::{RECEIVER_DISK, SOURCE_DISK};
use crate::lab::Lab;
use crate::model::Fact;
use crate::results::number::time;
use anyhow::{Context, bail};
use rig::machine;
use rustix::fs::statvfs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

/// Appends, each with its fdatasync, from which the disk's sync latency is told.
const SYNCS: usize = 500;

/// Bytes of each of them.
const SYNC_LEN: usize = 4096;

/// What the fact is called that says how busy the machine is before anything is measured.
const BUSY: &str = "processor in use, cores";

/// How long that is watched. Not the load average: it remembers the run before.
const BUSY_WATCHED: Duration = Duration::from_secs(1);

/// Facts that change from start to start on the same machine, and of which no warning is due when a run is resumed.
const PASSING: [&str; 7] = [
    "memory available, MiB",
    BUSY,
    "free space, MiB",
    "write and fdatasync of 4 KiB, p50, µs",
    "write and fdatasync of 4 KiB, p95, µs",
    "write and fdatasync of 4 KiB, p99, µs",
    "command",
];

/// What was found, and what a user should know before measuring.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// In the order of a report.
    pub facts: Vec<Fact>,
    /// Whole sentences.
    pub warnings: Vec<String>,
}

impl Environment {
    /// Looks at the machine, the disks under `lab.dir` and the folders that are set apart, binlogd's binary and this
    /// program. It writes and syncs 2 MB in each folder.
    ///
    /// # Errors
    /// When a folder cannot be written, and when binlogd's binary does not run.
    pub fn look(lab: &Lab, command: &str) -> anyhow::Result<Environment> {
        let mut environment = Environment::default();
        environment.machine();
        environment.disk("disk", &lab.dir, "--dir")?;
        for (about, dir) in lab.apart.disks() {
            environment.disk(about, dir, "set apart")?;
        }
        environment.facts.extend(lab.apart.facts());
        environment.binlogd(&lab.binlogd)?;
        environment.put("lab", "version", env!("CARGO_PKG_VERSION"));
        if cfg!(debug_assertions) {
            environment
                .warn("the lab was built without --release: its loads may be slower than they should be");
        }
        environment.put("lab", "command", command);
        for warning in environment.warnings.clone() {
            environment.put("lab", "warning", warning);
        }
        Ok(environment)
    }

    fn machine(&mut self) {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let kernel = rustix::system::uname();
        self.put("machine", "processor", machine::processor().unwrap_or_else(unknown));
        self.put("machine", "cores", cores);
        self.put("machine", "virtual", if is_virtual() { "yes" } else { "no" });
        let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        for (name, field) in [("memory, MiB", "MemTotal:"), ("memory available, MiB", "MemAvailable:")] {
            let size = kib(&memory, field).map_or_else(unknown, |kib| (kib / 1024).to_string());
            self.put("machine", name, size);
        }
        self.put(
            "machine",
            "kernel",
            format!("{} {}", kernel.sysname().to_string_lossy(), kernel.release().to_string_lossy()),
        );
        let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
        self.put("machine", "distribution", distribution(&release).unwrap_or_else(unknown));
        let busy = busy_cores(cores);
        self.put("machine", BUSY, busy.map_or_else(unknown, |busy| format!("{busy:.2}")));
        if let Some(busy) = busy.filter(|busy| *busy > cores as f64 / 8.0) {
            self.warn(format!(
                "something else uses the processor: {busy:.1} of {cores} cores, and what is measured will be worse and \
                 vary more than on an idle machine"
            ));
        }
    }

    fn disk(&mut self, about: &str, dir: &Path, named: &str) -> anyhow::Result<()> {
        let failed = || format!("cannot measure in {} ({named})", dir.display());
        let place = dir.canonicalize().with_context(failed)?;
        let mount = machine::mount(&place);
        let mount = |part: fn(machine::Mount) -> String| mount.clone().map_or_else(unknown, part);
        self.put(about, "folder", place.display());
        self.put(about, "file system", mount(|mount| mount.kind));
        self.put(about, "mount options", mount(|mount| mount.options));
        self.put(about, "device", mount(|mount| mount.device));
        let space = statvfs(&place).with_context(failed)?;
        self.put(about, "free space, MiB", space.f_bavail * space.f_frsize / (1 << 20));
        let sync = machine::write_and_sync(&place, SYNC_LEN, SYNCS).with_context(failed)?.percentiles();
        for (percentile, value) in [("p50", sync.p50), ("p95", sync.p95), ("p99", sync.p99)] {
            self.put(
                about,
                &format!("write and fdatasync of 4 KiB, {percentile}, µs"),
                format!("{value:.0}"),
            );
        }
        Ok(())
    }

    fn binlogd(&mut self, binary: &Path) -> anyhow::Result<()> {
        let failed = || format!("cannot run {} (--binlogd)", binary.display());
        let output = Command::new(binary).arg("--version").output().with_context(failed)?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if !output.status.success() || !version.starts_with("binlogd ") {
            bail!(
                "{} (--binlogd) is no binlogd: asked for its version, it says {version:?}",
                binary.display()
            );
        }
        let metadata = std::fs::metadata(binary).with_context(failed)?;
        let built = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let built = built.map_or(0, |time| time.as_secs());
        self.put("binlogd", "version", version);
        self.put("binlogd", "binary", format!("{} bytes, written {}", metadata.len(), time(built)));
        let commit = Commit::of(binary);
        self.put("binlogd", "commit", commit.as_ref().map_or_else(unknown, |commit| commit.name.clone()));
        if commit.is_some_and(|commit| built < commit.time) {
            self.warn(
                "binlogd's binary is older than its sources at the commit that is checked out; `cargo build \
                --release -p binlogd` makes a new one",
            );
        }
        Ok(())
    }

    fn put(&mut self, about: &str, name: &str, value: impl ToString) {
        self.facts.push(Fact::new(about, name, value));
    }

    fn warn(&mut self, text: impl Into<String>) {
        self.warnings.push(text.into());
    }
}

/// Whether a fact is the same at each start on the same machine, so that a run should not go on when it has changed.
pub fn is_lasting(fact: &Fact) -> bool {
    matches!(fact.about.as_str(), "machine" | "disk" | "binlogd" | "lab" | SOURCE_DISK | RECEIVER_DISK)
        && fact.name != "warning"
        && !PASSING.contains(&fact.name.as_str())
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// A virtual machine's processor says that it is one.
fn is_virtual() -> bool {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut flags = text.lines().filter(|line| line.starts_with("flags"));
    flags.any(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// A size of `/proc/meminfo`.
fn kib(memory: &str, field: &str) -> Option<u64> {
    let line = memory.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The name in `/etc/os-release`.
fn distribution(release: &str) -> Option<String> {
    let value = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim_matches('"').to_owned())
}

/// What is checked out where a binary was built.
struct Commit {
    /// Its hash, with `-dirty` when files differ from it.
    name: String,
    /// When the product last changed in it, seconds since 1970.
    time: u64,
}

impl Commit {
    /// Of the work tree of binlogd that `binary` lies in; none for a binary that was installed.
    fn of(binary: &Path) -> Option<Commit> {
        let binary = binary.canonicalize().ok()?;
        let folder = binary.parent()?;
        // Another repository may hold the binary, such as that of somebody's home.
        let root = git(folder, &["rev-parse", "--show-toplevel"])?;
        if !Path::new(&root).join("crates/binlogd/Cargo.toml").is_file() {
            return None;
        }
        let name = git(folder, &["describe", "--always", "--dirty", "--exclude=*", "--abbrev=40"])?;
        let product = [
            ":/crates/binlogd/src",
            ":/crates/codec/src",
            ":/crates/binlog/src",
            ":/crates/wire/src",
            ":/Cargo.lock",
        ];
        let time =
            git(folder, &[&["log", "-1", "--format=%ct", "--"], &product[..]].concat())?.parse().ok()?;
        Some(Commit { name, time })
    }
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// Cores in use by anybody, over a second (the first line of /proc/stat, see proc_stat(5)).
fn busy_cores(cores: usize) -> Option<f64> {
    let times = || {
        let text = std::fs::read_to_string("/proc/stat").ok()?;
        let times: Option<Vec<u64>> =
            text.lines().next()?.split_whitespace().skip(1).take(8).map(|time| time.parse().ok()).collect();
        let times = times?;
        // idle and iowait
        let idle = times.get(3)? + times.get(4)?;
        Some((times.iter().sum::<u64>(), idle))
    };
    let before = times()?;
    std::thread::sleep(BUSY_WATCHED);
    let after = times()?;
    let (all, idle) = (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
    (all > 0).then(|| all.saturating_sub(idle) as f64 / all as f64 * cores as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_and_the_disk_are_known_and_the_disk_is_left_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let mut environment = Environment::default();
        environment.machine();
        environment.disk("disk", dir.path(), "--dir").unwrap();
        let value = |name: &str| {
            let fact = environment.facts.iter().find(|fact| fact.name == name);
            fact.unwrap_or_else(|| panic!("no fact {name}")).value.clone()
        };
        for number in ["cores", "memory, MiB", "free space, MiB", "write and fdatasync of 4 KiB, p50, µs"] {
            assert!(value(number).parse::<u64>().unwrap() > 0, "{number}: {}", value(number));
        }
        assert_ne!(value("file system"), "unknown");
        let sync = |percentile: &str| -> u64 {
            value(&format!("write and fdatasync of 4 KiB, {percentile}, µs")).parse().unwrap()
        };
        assert!(sync("p50") <= sync("p95") && sync("p95") <= sync("p99"));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn only_facts_that_last_are_compared_when_a_run_goes_on() {
        let fact = |about: &str, name: &str| Fact::new(about, name, "");
        assert!(is_lasting(&fact("machine", "kernel")) && is_lasting(&fact("binlogd", "commit")));
        assert!(!is_lasting(&fact("disk", "free space, MiB")) && !is_lasting(&fact("lab", "warning")));
        assert!(!is_lasting(&fact("server mysql-9.7", "port")));
        for name in PASSING {
            assert!(!is_lasting(&fact("machine", name)));
        }
    }

    #[test]
    fn another_program_is_not_taken_for_binlogd() {
        let mut environment = Environment::default();
        let error = environment.binlogd(Path::new("/bin/true")).unwrap_err().to_string();
        assert!(error.contains("/bin/true") && error.contains("--binlogd"), "{error}");
        assert!(environment.binlogd(Path::new("/nowhere/binlogd")).is_err());
    }

    #[test]
    fn files_of_the_system_are_read() {
        assert_eq!(kib("MemTotal:       16384 kB\nMemFree: 1 kB\n", "MemTotal:"), Some(16384));
        let release = "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        assert_eq!(distribution(release).unwrap(), "Debian GNU/Linux 12 (bookworm)");
    }
}
