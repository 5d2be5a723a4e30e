//! `zstd | age | aws s3 cp` of the same files: what every system has.

use super::archiving::Archived;
use super::scene::{self, BUCKET, Scene, bytes_below};
use anyhow::{Context, bail};
use rig::object_store::program;
use rig::usage::Usage;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Arguments: the public key, the prefix, then a file. The variables are those of [`Pipeline::command`].
const UPLOAD: &str = r#"set -o pipefail
"$ZSTD" -q -"$LEVEL" -c "$3" | "$AGE" -r "$1" |
    "$AWS" --endpoint-url "$ENDPOINT" s3 cp --only-show-errors - "$2/$(basename "$3").zst.age""#;

/// Arguments: how many at a time, then those of [`UPLOAD`] with several files. Prints the seconds on a processor.
const UPLOAD_ALL: &str = r#"TIMEFORMAT='%3U %3S'; at_once=$1 key=$2 prefix=$3; shift 3
time printf '%s\0' "$@" | xargs -0 -n 1 -P "$at_once" bash -c "$UPLOAD" upload "$key" "$prefix""#;

/// Arguments: the key's file, the object, the source's file.
const CHECK: &str = r#"set -o pipefail
"$AWS" --endpoint-url "$ENDPOINT" s3 cp --only-show-errors "$2" - | "$AGE" -d -i "$1" | "$ZSTD" -q -d | cmp - "$3""#;

/// The programs, ready to be run.
pub(super) struct Pipeline<'a> {
    scene: &'a Scene,
    stores_script: &'a Path,
    level: u32,
    prefix: String,
}

impl Drop for Pipeline<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.scene.stored(&self.prefix));
    }
}

impl<'a> Pipeline<'a> {
    /// `prefix` is to be new.
    pub(super) fn new(scene: &'a Scene, stores_script: &'a Path, level: u32, prefix: String) -> Pipeline<'a> {
        Pipeline { scene, stores_script, level, prefix }
    }

    /// A shell that runs a script with the programs and the store in its environment.
    fn shell(&self, text: &str) -> anyhow::Result<Command> {
        let mut command = Command::new("bash");
        // Of AWS only what is given here.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("AWS_") {
                command.env_remove(name);
            }
        }
        command.args(["-c", text, "bash"]).envs(self.scene.credentials()?);
        command.env("AWS_EC2_METADATA_DISABLED", "true").env("AWS_CONFIG_FILE", "/dev/null");
        command.env("ENDPOINT", self.scene.store.endpoint()?).env("LEVEL", self.level.to_string());
        command.env("UPLOAD", UPLOAD);
        for (variable, name) in [("ZSTD", "zstd"), ("AGE", "age"), ("AWS", "aws")] {
            command.env(variable, program(self.stores_script, name)?);
        }
        Ok(command)
    }

    fn url(&self) -> String {
        format!("s3://{BUCKET}/{}", self.prefix)
    }

    /// Uploads all files of the source, so many at a time.
    ///
    /// # Errors
    /// When a program fails.
    pub(super) fn fill(&self, at_once: usize) -> anyhow::Result<Archived> {
        let scene = self.scene;
        let mut command = self.shell(UPLOAD_ALL)?;
        command.arg(at_once.to_string()).arg(&scene.key.public).arg(self.url());
        for file in &scene.backlog.files {
            command.arg(scene.original(&file.name)?);
        }
        rustix::fs::sync();
        let store = Usage::of(scene.store_pid()?)?;
        let began = Instant::now();
        let output = command.output().context("cannot run bash")?;
        let seconds = began.elapsed().as_secs_f64();
        let words = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            bail!("zstd | age | aws s3 cp failed, {}: {words}", output.status);
        }
        let times = words.lines().last().unwrap_or_default().split(' ').map(str::parse::<f64>);
        let processor = times.sum::<Result<f64, _>>().with_context(|| format!("the times in {words:?}"))?;
        Ok(Archived {
            seconds,
            processor,
            store_processor: Usage::of(scene.store_pid()?)?.since(&store).processor_seconds,
            stored: bytes_below(&scene.stored(&self.prefix))?,
            highest_mib: 0.0,
        })
    }

    /// Compares what is in the store with the source's files, byte by byte.
    ///
    /// # Errors
    /// When they are not equal.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        for file in &self.scene.backlog.files {
            let mut command = self.shell(CHECK)?;
            command.arg(&self.scene.key.file).arg(format!("{}/{}.zst.age", self.url(), file.name));
            command.arg(self.scene.original(&file.name)?);
            scene::run(&mut command).with_context(|| format!("{} in the store", file.name))?;
        }
        Ok(())
    }
}
