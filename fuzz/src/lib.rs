//! The bodies of the fuzz targets, one module each.
//!
//! They stand in a library so that `cargo test` replays the committed seeds and regressions on a stable toolchain, and
//! so that a finding can be stepped through in a debugger. `docs/internals/fuzzing.md` says what each target holds true.
//!
//! A target that needs structure (checksums that are right, lengths that fit) reads a small script from the fuzzer's
//! bytes through [`input::Input`], which never runs out: every byte string is a valid script.

pub mod binlog;
pub mod client;
pub mod cursor;
pub mod dump_framer;
pub mod event_peek;
pub mod gtid_set;
pub mod input;
pub mod recover_tail;
pub mod rows;
pub mod script;
pub mod search_index;
pub mod session;
pub mod sql;

/// A target's name, which is also that of its folders, and its body.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("client", client::run),
    ("cursor", cursor::run),
    ("dump_framer", dump_framer::run),
    ("event_peek", event_peek::run),
    ("gtid_set", gtid_set::run),
    ("recover_tail", recover_tail::run),
    ("rows", rows::run),
    ("search_index", search_index::run),
    ("session", session::run),
    ("sql", sql::run),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};

    /// The files of `<folder>/<target>` beside this crate's manifest; none when the folder does not exist.
    fn inputs(folder: &str, target: &str) -> Vec<PathBuf> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(target);
        let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    fn replay(folder: &str) -> usize {
        let mut replayed = 0;
        for (name, run) in TARGETS {
            for file in inputs(folder, name) {
                println!("{}", file.display()); // Shown only when it fails: the last line names the input.
                run(&std::fs::read(&file).unwrap());
                replayed += 1;
            }
        }
        replayed
    }

    #[test]
    fn regressions_stay_fixed() {
        replay("regressions");
    }

    #[test]
    fn seeds_pass() {
        assert!(
            replay("corpus") >= TARGETS.len(),
            "every target has seeds; make them with: cargo run --example seeds"
        );
    }

    #[test]
    fn every_target_takes_any_bytes() {
        for (_, run) in TARGETS {
            run(&[]);
            run(&[0]);
            run(&[0xff; 300]);
        }
    }
}
