//! The archive: how fast a backlog gets into a store, beside the programs that every system has, what memory that takes, and
//! how fast it comes back to a reader.
//!
//! | file | noun |
//! |---|---|
//! | `args.rs` | what it is asked for |
//! | `scene.rs` | a source with a backlog, copies of it, a store |
//! | `archiving.rs` | binlogd that archives a copy to its end |
//! | `pipeline.rs` | `zstd \| age \| aws s3 cp` of the same files |
//! | `speed.rs` | both in turn |
//! | `memory.rs` | several sources in one process, with and without an archive |
//! | `read.rs` | a backlog sent to a reader, from the disk and from the archive |

mod archiving;
mod args;
mod memory;
mod pipeline;
mod read;
mod scene;
mod speed;

pub use args::{ArchiveArgs, Part};

use scene::Scene;

/// Runs it and prints its tables.
///
/// # Errors
/// When a program does not do its work, or what is in the store is not the source's log. No number is an error.
pub fn run(args: &ArchiveArgs) -> anyhow::Result<()> {
    let dir = tempfile::Builder::new().prefix("binlogd-archive-").tempdir_in(&args.common.dir)?;
    let scene = Scene::make(args, &dir.path().canonicalize()?)?;
    if args.parts.contains(&Part::Speed) {
        speed::run(args, &scene)?;
    }
    if args.parts.contains(&Part::Memory) {
        memory::run(args, &scene)?;
    }
    if args.parts.contains(&Part::Read) {
        read::run(args, &scene)?;
    }
    Ok(())
}
