//! A real object store on this machine, and the stock tools that read what is in one, through `scripts/stores`.

use crate::process::pause;
use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A store in a folder of its own, on a port of 127.0.0.1. It is killed when dropped.
#[derive(Debug)]
pub struct ObjectStore {
    scripts: PathBuf,
    name: &'static str,
    dir: PathBuf,
    /// What `scripts/stores` printed when it was started: lines `KEY=VALUE`.
    described: String,
}

impl ObjectStore {
    /// Starts versitygw, which speaks S3. It honours `If-None-Match` and `If-Match`, keeps versions, and knows Object Lock,
    /// accounts and policies of buckets. Unlike AWS: a bucket's default retention is looked up when an object is to be
    /// deleted and not kept with the object, and `If-None-Match: *` fails where the newest version is a delete marker.
    ///
    /// # Errors
    /// When it does not come up; `scripts/stores` says why on standard error then.
    pub fn versitygw(scripts: &Path, dir: PathBuf) -> anyhow::Result<ObjectStore> {
        ObjectStore::start(scripts, "versitygw", dir)
    }

    /// Starts Azurite, which speaks as Azure's blob storage does, and honours `If-None-Match` and `If-Match`. A bucket is a
    /// container there.
    ///
    /// # Errors
    /// As [`ObjectStore::versitygw`].
    pub fn azurite(scripts: &Path, dir: PathBuf) -> anyhow::Result<ObjectStore> {
        ObjectStore::start(scripts, "azurite", dir)
    }

    fn start(scripts: &Path, name: &'static str, dir: PathBuf) -> anyhow::Result<ObjectStore> {
        // Made before the start, so that a start that was broken off is stopped too.
        let mut store = ObjectStore { scripts: scripts.to_owned(), name, dir, described: String::new() };
        store.launch()?;
        Ok(store)
    }

    fn launch(&mut self) -> anyhow::Result<()> {
        let words = [OsStr::new("start"), OsStr::new(self.name), self.dir.as_os_str()];
        self.described = run(&self.scripts, &words)?;
        Ok(())
    }

    /// Starts it again after [`ObjectStore::stop`] or [`ObjectStore::kill`], with the objects and the port that it had.
    ///
    /// # Errors
    /// When it runs, or does not come up.
    pub fn restart(&mut self) -> anyhow::Result<()> {
        self.launch()
    }

    /// Ends it in good order.
    ///
    /// # Errors
    /// When it does not end.
    pub fn stop(&self) -> anyhow::Result<()> {
        run(&self.scripts, &[OsStr::new("stop"), self.dir.as_os_str()]).map(|_| ())
    }

    /// Ends it as a power failure would, but for what the kernel has not yet written.
    ///
    /// # Errors
    /// When it does not end.
    pub fn kill(&self) -> anyhow::Result<()> {
        run(&self.scripts, &[OsStr::new("stop"), self.dir.as_os_str(), OsStr::new("--kill")]).map(|_| ())
    }

    /// Stops it for a while: it takes connections and answers nothing.
    ///
    /// # Errors
    /// When it does not run.
    pub fn pause(&self) -> anyhow::Result<()> {
        pause(self.running()?)
    }

    /// Lets it go on after [`ObjectStore::pause`].
    ///
    /// # Errors
    /// When it does not run.
    pub fn go_on(&self) -> anyhow::Result<()> {
        kill_process(self.running()?, Signal::CONT).with_context(|| format!("{} does not go on", self.name))
    }

    fn running(&self) -> anyhow::Result<Pid> {
        self.process().with_context(|| format!("{} does not run", self.name))
    }

    /// Its process, if it runs. The number alone is no proof: it may have been given to another.
    fn process(&self) -> Option<Pid> {
        let (pid, started) = (self.fact("PID").ok()?, self.fact("STARTED").ok()?);
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Behind the name, which may hold anything, it is the twentieth.
        let now = stat.rsplit_once(") ")?.1.split(' ').nth(19)?;
        (now == started).then(|| Pid::from_raw(pid.parse().ok()?)).flatten()
    }

    /// What `scripts/stores` says of it, such as `PORT`.
    ///
    /// # Errors
    /// When it has said nothing of that.
    pub fn fact(&self, key: &str) -> anyhow::Result<&str> {
        let value = self.described.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        value.with_context(|| format!("scripts/stores named no {key}"))
    }

    /// Its URL. That of Azurite has the account's name in it.
    ///
    /// # Errors
    /// As [`ObjectStore::fact`].
    pub fn endpoint(&self) -> anyhow::Result<&str> {
        self.fact("ENDPOINT")
    }

    /// The access key of who may do everything; of Azurite, the account's name.
    ///
    /// # Errors
    /// As [`ObjectStore::fact`].
    pub fn access_key(&self) -> anyhow::Result<&str> {
        self.fact("ACCESS_KEY")
    }

    /// The secret of that key.
    ///
    /// # Errors
    /// As [`ObjectStore::fact`].
    pub fn secret_key(&self) -> anyhow::Result<&str> {
        self.fact("SECRET_KEY")
    }

    /// Makes a bucket without versions.
    ///
    /// # Errors
    /// When there is one already, or the store does not run.
    pub fn bucket(&self, name: &str) -> anyhow::Result<()> {
        let words = [OsStr::new("bucket"), self.dir.as_os_str(), OsStr::new(name)];
        run(&self.scripts, &words).map(|_| ())
    }

    /// Makes a bucket with versions and Object Lock. With `days`, no version can be deleted by anyone until so many days
    /// after it was written (mode COMPLIANCE).
    ///
    /// # Errors
    /// As [`ObjectStore::bucket`], and of a store that is not versitygw.
    pub fn locked_bucket(&self, name: &str, days: Option<u32>) -> anyhow::Result<()> {
        let words = [OsStr::new("bucket"), self.dir.as_os_str(), OsStr::new(name), OsStr::new("--locked")];
        run(&self.scripts, &words)?;
        let Some(days) = days else { return Ok(()) };
        let rule =
            format!("ObjectLockEnabled=Enabled,Rule={{DefaultRetention={{Mode=COMPLIANCE,Days={days}}}}}");
        let put = ["s3api", "put-object-lock-configuration", "--bucket", name];
        self.aws(&[&put[..], &["--object-lock-configuration", &rule]].concat()).map(|_| ())
    }

    /// Makes an account of versitygw that may do only what policies of buckets allow it.
    ///
    /// # Errors
    /// When there is one already, or the store does not run.
    pub fn account(&self, access_key: &str, secret_key: &str) -> anyhow::Result<()> {
        let mut command = Command::new(program(&self.scripts, "versitygw")?);
        command.env("ADMIN_ACCESS_KEY", self.access_key()?).env("ADMIN_SECRET_KEY", self.secret_key()?);
        command.args(["admin", "--endpoint-url", self.endpoint()?, "create-user", "--role", "user"]);
        command.args(["--access", access_key, "--secret", secret_key]);
        printed(&mut command).map(|_| ())
    }

    /// Puts the policy of a bucket of versitygw, as AWS writes policies.
    ///
    /// # Errors
    /// When the store refuses it.
    pub fn policy(&self, bucket: &str, policy: &str) -> anyhow::Result<()> {
        self.aws(&["s3api", "put-bucket-policy", "--bucket", bucket, "--policy", policy]).map(|_| ())
    }

    /// A signature for a container of Azurite that allows these rights alone, such as `rcl`, for a day.
    ///
    /// # Errors
    /// When the store is not Azurite.
    pub fn sas(&self, container: &str, rights: &str) -> anyhow::Result<String> {
        let words = [OsStr::new("sas"), self.dir.as_os_str(), OsStr::new(container), OsStr::new(rights)];
        run(&self.scripts, &words).map(|printed| printed.trim_end().to_owned())
    }

    /// What AWS's own command line prints, as who may do everything. It takes a second.
    ///
    /// # Errors
    /// When it fails; the error holds its words.
    pub fn aws(&self, words: &[&str]) -> anyhow::Result<String> {
        self.aws_as(self.access_key()?, self.secret_key()?, words)
    }

    /// As [`ObjectStore::aws`], as another account.
    ///
    /// # Errors
    /// As [`ObjectStore::aws`].
    pub fn aws_as(&self, access_key: &str, secret_key: &str, words: &[&str]) -> anyhow::Result<String> {
        let mut command = tool(&self.scripts, "aws")?;
        command.env("AWS_ACCESS_KEY_ID", access_key).env("AWS_SECRET_ACCESS_KEY", secret_key);
        command.env("AWS_DEFAULT_REGION", self.fact("REGION")?).env("AWS_EC2_METADATA_DISABLED", "true");
        // A refusal is an answer: it is not asked for again.
        command.env("AWS_MAX_ATTEMPTS", "1").env("AWS_CONFIG_FILE", "/dev/null");
        command.env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
        printed(command.args(["--endpoint-url", self.endpoint()?]).args(words))
    }

    /// The file in which versitygw keeps the newest version of an object.
    pub fn file(&self, bucket: &str, key: &str) -> PathBuf {
        self.dir.join("data").join(bucket).join(key)
    }
}

impl Drop for ObjectStore {
    fn drop(&mut self) {
        // By its number first: a folder that was dropped before it no longer says which process it is.
        if let Some(pid) = self.process() {
            let _ = kill_process(pid, Signal::KILL);
        }
        let words = [OsStr::new("stop"), self.dir.as_os_str(), OsStr::new("--kill")];
        let _ = script(&self.scripts, &words).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// Where a program of `scripts/stores` is, such as `age`; it is fetched first where it is missing.
///
/// # Errors
/// When it cannot be had.
pub fn program(scripts: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let path = run(scripts, &[OsStr::new("path"), OsStr::new(name)])?;
    Ok(PathBuf::from(path.trim_end()))
}

/// A command that runs such a program, without what this machine's environment says of AWS.
///
/// # Errors
/// As [`program`].
pub fn tool(scripts: &Path, name: &str) -> anyhow::Result<Command> {
    let mut command = Command::new(program(scripts, name)?);
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("AWS_") {
            command.env_remove(variable);
        }
    }
    command.stdin(Stdio::null());
    Ok(command)
}

fn script(scripts: &Path, words: &[&OsStr]) -> Command {
    let mut command = Command::new(scripts);
    // A group of its own: Ctrl-C must not end it half-way and leave a store that nobody knows.
    command.args(words).process_group(0).stdin(Stdio::null());
    command
}

fn run(scripts: &Path, words: &[&OsStr]) -> anyhow::Result<String> {
    let mut command = script(scripts, words);
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {}", scripts.display()))?;
    if !output.status.success() {
        bail!("{} {:?} failed: {}", scripts.display(), words[0], output.status);
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn printed(command: &mut Command) -> anyhow::Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}
