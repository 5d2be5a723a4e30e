//! What every benchmark needs.

use anyhow::bail;
use rig::machine;
use std::path::{Path, PathBuf};

/// Arguments of every benchmark.
#[derive(Debug, Clone, clap::Args)]
pub struct Common {
    /// The binary under test, built for release.
    #[arg(long, default_value = "target/release/binlogd")]
    pub binlogd: PathBuf,
    /// How often everything is measured.
    #[arg(long, default_value_t = 9)]
    pub rounds: usize,
    /// Folder on the disk to use; a temporary folder is made in it and removed.
    #[arg(long, default_value = "target")]
    pub dir: PathBuf,
}

impl Common {
    /// Looks whether it can begin, and prints what it is measured on.
    ///
    /// # Errors
    /// When binlogd was not built, or the disk cannot be written.
    pub fn begin(&self) -> anyhow::Result<()> {
        if !self.binlogd.is_file() {
            bail!(
                "{} is not there: build it with `cargo build --release`, or name it with --binlogd",
                self.binlogd.display()
            );
        }
        if cfg!(debug_assertions) {
            eprintln!(
                "this benchmark was built without --release: the source is then slower than it should be"
            );
        }
        print_machine(&self.dir)
    }

    /// Measures each of `what` once a round, in another order in each, so that no program always follows the same one.
    /// Gives the results of each by rounds. `measure` is told the number of the round, from 0.
    ///
    /// # Errors
    /// The first of `measure`.
    pub fn in_turn<K: Copy, R>(
        &self,
        what: &[K],
        mut measure: impl FnMut(usize, K) -> anyhow::Result<R>,
    ) -> anyhow::Result<Vec<Vec<R>>> {
        let mut results: Vec<Vec<R>> = what.iter().map(|_| Vec::new()).collect();
        for round in 0..self.rounds {
            for turn in 0..what.len() {
                let index = (turn + round) % what.len();
                results[index].push(measure(round, what[index])?);
            }
        }
        Ok(results)
    }
}

/// Prints processor, kernel, the disk's file system, and what an fdatasync takes there now.
///
/// # Errors
/// When the disk cannot be written.
fn print_machine(dir: &Path) -> anyhow::Result<()> {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = rustix::system::uname();
    println!("processor    {cores} × {}", machine::processor().unwrap_or_else(|| "unknown".to_owned()));
    println!("kernel       {} {}", kernel.sysname().to_string_lossy(), kernel.release().to_string_lossy());
    let mount = machine::mount(dir).map(|mount| format!("{} ({})", mount.kind, mount.options));
    println!("file system  {}", mount.unwrap_or_else(|| "unknown".to_owned()));
    let sync = machine::write_and_sync(dir, 600, 1000)?.percentiles();
    println!(
        "fdatasync    of an append of 600 bytes: median {:.0} µs, p95 {:.0} µs, p99 {:.0} µs",
        sync.p50, sync.p95, sync.p99
    );
    println!();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn common() -> Common {
        Common { binlogd: "a b".into(), rounds: 3, dir: "c".into() }
    }

    #[test]
    fn another_order_in_each_round() {
        let mut order = Vec::new();
        let by_kind = common().in_turn(&['a', 'b', 'c'], |round, kind| {
            order.push(kind);
            Ok((round, kind))
        });
        assert_eq!(order.into_iter().collect::<String>(), "abcbcacab");
        assert_eq!(by_kind.unwrap()[1], [(0, 'b'), (1, 'b'), (2, 'b')]);
    }
}
