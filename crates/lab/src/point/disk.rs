//! What a cell is measured under: how fast the disk is.

use anyhow::{Context, ensure};
use std::fmt;
use std::str::FromStr;

const HERE: &str = "the disk as it is";
const LIMITED: &str = "a disk limited to ";
const UNIT: &str = " MB/s";

/// The disk that the source's files are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Disk {
    /// That of the lab's folder.
    Here,
    /// ext4 in an image there, to which no more may be written in a second.
    Limited {
        /// 10⁶ bytes a second.
        mb_s: u32,
    },
}

impl Disk {
    /// As in the setting `disks`: `here`, or MB/s.
    ///
    /// # Errors
    /// When it is neither.
    pub fn of_setting(text: &str) -> anyhow::Result<Disk> {
        if text == "here" {
            return Ok(Disk::Here);
        }
        let mb_s = text.parse().ok().with_context(|| format!("--set disks={text}: here, or MB/s, as 100"))?;
        ensure!(mb_s > 0, "--set disks={text}: a disk that takes nothing");
        Ok(Disk::Limited { mb_s })
    }
}

impl fmt::Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Disk::Here => f.write_str(HERE),
            Disk::Limited { mb_s } => write!(f, "{LIMITED}{mb_s}{UNIT}"),
        }
    }
}

impl FromStr for Disk {
    type Err = anyhow::Error;

    /// As it is printed.
    fn from_str(text: &str) -> anyhow::Result<Disk> {
        if text == HERE {
            return Ok(Disk::Here);
        }
        let number = text.strip_prefix(LIMITED).and_then(|rest| rest.strip_suffix(UNIT));
        let mb_s = number.and_then(|number| number.parse().ok());
        Ok(Disk::Limited { mb_s: mb_s.with_context(|| format!("rotation-stall has no condition {text:?}"))? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_read_as_a_setting_and_as_it_is_printed() {
        for (setting, printed) in [("here", "the disk as it is"), ("100", "a disk limited to 100 MB/s")] {
            let disk = Disk::of_setting(setting).unwrap();
            assert_eq!(disk.to_string(), printed);
            assert_eq!(printed.parse::<Disk>().unwrap(), disk);
        }
        assert!(Disk::of_setting("0").is_err() && Disk::of_setting("fast").is_err());
        assert!("100".parse::<Disk>().is_err());
    }
}
