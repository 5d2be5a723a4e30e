//! The kernel's limits of dirty pages: how much may wait in memory to be written to disks.

use crate::lab::{Lab, Skip};
use crate::machine::changes::{Change, MachineChanges};
use crate::model::Fact;
use anyhow::Context;
use std::path::Path;

/// Where the kernel has them.
const FOLDER: &str = "/proc/sys/vm";
/// What the kernel begins to write at, and what holds writers back; each in bytes and, where that is 0, as a share of the
/// memory in per cent.
const LIMITS: [(&str, &str); 2] =
    [("dirty_background_bytes", "dirty_background_ratio"), ("dirty_bytes", "dirty_ratio")];

/// Limits that hold for the whole machine. Dropping them sets back those from before.
#[derive(Debug)]
pub struct DirtyPages {
    changes: MachineChanges,
}

impl DirtyPages {
    /// Whether they may be set here.
    ///
    /// # Errors
    /// [`Skip`] where they may not; it says why.
    pub fn may_be_limited() -> anyhow::Result<()> {
        let why = match std::fs::OpenOptions::new().write(true).open(Path::new(FOLDER).join(LIMITS[1].0)) {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        Err(Skip::lacks(format!("vm.dirty_bytes cannot be set here, which takes root: {why}")).into())
    }

    /// Lets the kernel begin to write when `background` bytes are dirty, and hold writers back at `most`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn limit(lab: &Lab, background: u64, most: u64) -> anyhow::Result<DirtyPages> {
        let mut changes = MachineChanges::begin(&lab.journals, lab.say)?;
        for (limit, bytes) in LIMITS.into_iter().zip([background, most]) {
            changes.make(change(Path::new(FOLDER), limit, bytes)?)?;
        }
        Ok(DirtyPages { changes })
    }

    /// Why they do not hold any more, if they do not.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn not_in_force(&self) -> anyhow::Result<Option<String>> {
        self.changes.not_in_force()
    }
}

/// All of them as they are now.
pub fn facts() -> Vec<Fact> {
    let names = LIMITS.into_iter().flat_map(|(bytes, ratio)| [bytes, ratio]);
    let names = names.chain(["dirty_expire_centisecs", "dirty_writeback_centisecs"]);
    names.map(|name| Fact::new("machine", &format!("vm.{name}"), value(Path::new(FOLDER), name))).collect()
}

fn value(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).map_or("unknown".to_owned(), |text| text.trim().to_owned())
}

/// Setting a limit in bytes, and how that is undone: where it was a share before, by setting that, which puts the bytes
/// out of force.
fn change(folder: &Path, (in_bytes, ratio): (&str, &str), bytes: u64) -> anyhow::Result<Change> {
    let read = |name: &str| {
        let text =
            std::fs::read_to_string(folder.join(name)).with_context(|| format!("reading vm.{name}"))?;
        anyhow::Ok(text.trim().to_owned())
    };
    let before = read(in_bytes)?;
    let (back_name, back) = if before == "0" { (ratio, read(ratio)?) } else { (in_bytes, before) };
    Ok(Change {
        file: folder.join(in_bytes),
        new: bytes.to_string(),
        back_file: folder.join(back_name),
        back,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_a_share_is_set_back_as_one() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write("dirty_bytes", "0\n");
        write("dirty_ratio", "20\n");
        let made = change(dir.path(), LIMITS[1], 1000).unwrap();
        assert_eq!((made.new.as_str(), made.back.as_str()), ("1000", "20"));
        assert!(made.back_file.ends_with("dirty_ratio"));
        write("dirty_bytes", "4096\n");
        let made = change(dir.path(), LIMITS[1], 1000).unwrap();
        assert!(made.back == "4096" && made.back_file.ends_with("dirty_bytes"));
    }
}
