//! What every benchmark needs.

use anyhow::bail;
use rig::machine;
use std::ffi::OsStr;
use std::path::PathBuf;

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
        machine::print(&self.dir)
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

    /// The arguments of a benchmark with these common ones, and all else by default.
    ///
    /// # Errors
    /// When a benchmark has an argument without a default.
    pub fn of<A: clap::Args>(&self) -> anyhow::Result<A> {
        let rounds = self.rounds.to_string();
        let words: [&OsStr; 6] = [
            "--binlogd".as_ref(),
            self.binlogd.as_ref(),
            "--rounds".as_ref(),
            rounds.as_ref(),
            "--dir".as_ref(),
            self.dir.as_ref(),
        ];
        let command = A::augment_args(clap::Command::new("all").no_binary_name(true));
        Ok(A::from_arg_matches(&command.try_get_matches_from(words)?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acknowledge::AckArgs;

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

    #[test]
    fn the_common_arguments_are_handed_on_as_they_are() {
        let args: AckArgs = common().of().unwrap();
        let Common { binlogd, rounds, dir } = args.common;
        assert_eq!((binlogd, rounds, dir), (PathBuf::from("a b"), 3, PathBuf::from("c")));
        assert_eq!((args.bytes, args.groups), (vec![600, 4096, 16384], 2000));
    }
}
