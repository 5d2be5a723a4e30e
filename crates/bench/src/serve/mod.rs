//! Serving readers: beside the real source that has the same files, and beside nobody.
//!
//! | file | noun |
//! |---|---|
//! | `args.rs` | what it is asked for |
//! | `scene.rs` | a source with a backlog, and a binlogd that has all of it |
//! | `serving.rs` | binlogd with its port for readers |
//! | `null_reader.rs` | readers that throw away what they read, in a process of their own |
//! | `pull.rs` | a backlog: bytes a second and processor time, from the source and from binlogd |
//! | `live.rs` | the live end: the way from durable to delivered, and what readers cost the acknowledgement |
//! | `idle.rs` | memory and processor time of readers that have everything |
//! | `replica.rs` | how soon a real replica catches up |

mod args;
mod idle;
mod live;
pub mod null_reader;
mod pull;
mod replica;
mod scene;
mod serving;

pub use args::{Part, ServeArgs};

pub(crate) use replica::catch_up;
pub(crate) use serving::{PASSWORD, serve_table, serving_port};

use crate::backlog::Mix;
use scene::Scene;

/// Runs it and prints its tables.
///
/// # Errors
/// When a program does not do its work. No number is an error.
pub fn run(args: &ServeArgs) -> anyhow::Result<()> {
    let dir = tempfile::Builder::new().prefix("binlogd-serve-").tempdir_in(&args.common.dir)?;
    let dir_path = dir.path().canonicalize()?;
    let has = |part| args.parts.contains(&part);
    if has(Part::Pull) || has(Part::Replica) {
        let scene = Scene::make(args, &dir_path.join("source"), Mix::Ordinary, args.gib)?;
        if has(Part::Pull) {
            pull::run(args, &scene, "ordinary transactions")?;
        }
        if has(Part::Replica) {
            replica::run(args, &scene, &dir_path)?;
        }
    }
    if has(Part::Pull) {
        let scene = Scene::make(args, &dir_path.join("small"), Mix::Small, args.small_gib)?;
        pull::run(args, &scene, "small transactions")?;
    }
    if has(Part::Live) {
        live::run(args)?;
    }
    if has(Part::Idle) {
        idle::run(args)?;
    }
    Ok(())
}
