//! A place for an archive, and what is asked of one from outside: with binlogd's own verbs, and against the source's files.

pub(in crate::archive) mod shop;

use crate::common::compare::binary_logs;
use crate::common::daemon::Daemon;
use crate::common::skip::skip;
use crate::common::{Server, workspace};
use codec::gtid::GtidState;
use rig::object_store::{ObjectStore, program};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Longest wait for an archive to have what the copy has.
pub(in crate::archive) const PATIENCE: Duration = Duration::from_secs(90);
/// The interval of every archive here.
pub(in crate::archive) const INTERVAL: &str = "interval = '1s'\n";
/// The source's name, as it is where none is given.
const SOURCE: &str = "default";
/// Below the root of a bucket.
const PREFIX: &str = "logs/of-tests";
const BUCKET: &str = "archive";
/// Of the first event's flags: the server that writes the file says there that it has not closed it.
const FLAGS_AT: usize = 4 + 17;
const IN_USE: u8 = 0x01;

/// A place for the archive of one source, and the key of who may read it.
pub(in crate::archive) struct Place {
    dir: tempfile::TempDir,
    store: Option<ObjectStore>,
    identity: Option<PathBuf>,
    /// The public key of the identity.
    recipient: Option<String>,
}

/// What `binlogd fetch` brought back.
pub(in crate::archive) struct Fetched {
    dir: tempfile::TempDir,
    /// Name of the last file.
    pub(in crate::archive) file: String,
    /// Its length.
    pub(in crate::archive) end: u64,
    /// What it says was executed up to there.
    pub(in crate::archive) gtids: String,
    /// All that it printed.
    pub(in crate::archive) said: String,
}

/// Where `scripts/stores` is.
pub(in crate::archive) fn scripts() -> PathBuf {
    workspace().join("scripts/stores")
}

/// A program of `scripts/stores`; `None` where it cannot be had, which is said.
#[track_caller]
pub(in crate::archive) fn program_or_skip(name: &str) -> Option<PathBuf> {
    match program(&scripts(), name) {
        Ok(path) => Some(path),
        Err(error) => {
            skip(&format!("{name} cannot be had: {error}"));
            None
        }
    }
}

impl Place {
    /// A folder.
    pub(in crate::archive) fn folder() -> Place {
        let place = Place { dir: folder(), store: None, identity: None, recipient: None };
        std::fs::create_dir_all(place.root()).expect("a folder");
        place
    }

    /// A bucket of an S3 store on this machine.
    pub(in crate::archive) fn s3() -> Place {
        let place = Place::store_without_bucket();
        place.store().bucket(BUCKET).expect("a bucket");
        place
    }

    /// A bucket whose objects nobody can delete for a day.
    pub(in crate::archive) fn locked() -> Place {
        let place = Place::store_without_bucket();
        place.store().locked_bucket(BUCKET, Some(1)).expect("a bucket");
        place
    }

    fn store_without_bucket() -> Place {
        let dir = folder();
        let store = ObjectStore::versitygw(&scripts(), dir.path().join("store")).expect("a store");
        Place { dir, store: Some(store), identity: None, recipient: None }
    }

    /// The same, for a new key of age.
    pub(in crate::archive) fn encrypted(mut self) -> Place {
        let keygen = program(&scripts(), "age-keygen").expect("age-keygen");
        let path = self.dir.path().join("identity");
        let run = |arguments: &[&std::ffi::OsStr]| {
            let output = Command::new(&keygen).args(arguments).stdin(Stdio::null()).output();
            let output = output.expect("age-keygen runs");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).expect("text")
        };
        run(&["-o".as_ref(), path.as_os_str()]);
        self.recipient = Some(run(&["-y".as_ref(), path.as_os_str()]).trim().to_owned());
        self.identity = Some(path);
        self
    }

    /// The store; a folder is none.
    pub(in crate::archive) fn store(&self) -> &ObjectStore {
        self.store.as_ref().expect("a place in a store")
    }

    /// The same, to start it again.
    pub(in crate::archive) fn store_mut(&mut self) -> &mut ObjectStore {
        self.store.as_mut().expect("a place in a store")
    }

    /// The file with the private key.
    pub(in crate::archive) fn identity(&self) -> &Path {
        self.identity.as_ref().expect("a key")
    }

    /// The bucket's name.
    pub(in crate::archive) fn bucket(&self) -> &'static str {
        BUCKET
    }

    /// In front of the names of its objects, without the slash.
    pub(in crate::archive) fn prefix(&self) -> &'static str {
        PREFIX
    }

    /// The archive's URL.
    pub(in crate::archive) fn url(&self) -> String {
        match self.store {
            Some(_) => format!("s3://{BUCKET}/{PREFIX}"),
            None => format!("file://{}", self.root().display()),
        }
    }

    /// The folder in which the archive's objects are files: the store's own, or the place itself.
    pub(in crate::archive) fn root(&self) -> PathBuf {
        match &self.store {
            Some(store) => store.file(BUCKET, PREFIX),
            None => self.dir.path().join("archive"),
        }
    }

    /// The secrets that may be seen nowhere.
    pub(in crate::archive) fn secrets(&self) -> Vec<String> {
        let key = std::fs::read_to_string(self.identity()).expect("the private key");
        let key = key.lines().find(|line| line.starts_with("AGE-SECRET-KEY-")).expect("a key of age");
        vec![key.to_owned(), self.store().secret_key().expect("a secret").to_owned()]
    }

    /// The variables with which binlogd reaches the store.
    pub(in crate::archive) fn environment(&self) -> Vec<(String, String)> {
        let Some(store) = &self.store else { return Vec::new() };
        let pairs = [
            ("AWS_ACCESS_KEY_ID", store.access_key()),
            ("AWS_SECRET_ACCESS_KEY", store.secret_key()),
            ("AWS_REGION", store.fact("REGION")),
        ];
        pairs.map(|(name, value)| (name.to_owned(), value.expect("the store says it").to_owned())).to_vec()
    }

    /// A configuration with this archive, the source, and further lines in front.
    pub(in crate::archive) fn config(&self, source: &Server, more: &str) -> String {
        self.config_with(source, "", more)
    }

    /// The same, with further keys of the archive.
    pub(in crate::archive) fn config_with(&self, source: &Server, keys: &str, more: &str) -> String {
        let mut archive = format!("[archive]\nurl = '{}'\n{INTERVAL}{keys}", self.url());
        if let Some(store) = &self.store {
            let endpoint = store.endpoint().expect("an endpoint");
            archive.push_str(&format!("endpoint = '{endpoint}'\nallow_http = true\n"));
        }
        if let Some(recipient) = &self.recipient {
            archive.push_str(&format!("recipients = ['{recipient}']\n"));
        }
        let port = source.port();
        format!(
            "{more}{archive}[[source]]\nhosts = ['127.0.0.1:{port}']\nuser = 'repl'\npassword = 'secret'\nbackoff_max = '1s'\n"
        )
    }

    /// Starts binlogd on a source that has the account `repl`, with further lines of configuration.
    #[track_caller]
    pub(in crate::archive) fn start(&self, source: &Server, more: &str) -> Daemon {
        Daemon::start_from_in(&self.environment(), "", &self.config(source, more))
    }

    /// Runs a verb of binlogd on the archive, with what it takes to reach and open it. It must be well.
    #[track_caller]
    pub(in crate::archive) fn run(&self, verb: &str, arguments: &[&str]) -> String {
        said(&mut self.command(verb, arguments))
    }

    /// The same, of a verb that must fail.
    #[track_caller]
    pub(in crate::archive) fn run_failing(&self, verb: &str, arguments: &[&str]) -> String {
        let output = self.command(verb, arguments).output().expect("it runs");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    /// The command for that, to be run otherwise.
    pub(in crate::archive) fn command(&self, verb: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
        command.env("NO_COLOR", "1").stdin(Stdio::null());
        command.args([verb, &self.url()]).args(arguments).envs(self.environment());
        if let Some(store) = &self.store {
            command.args(["--allow-http", "--endpoint", store.endpoint().expect("an endpoint")]);
        }
        if let Some(identity) = &self.identity {
            command.arg("--identity").arg(identity);
        }
        command
    }

    /// What the archive has is sound, and is what the source has.
    #[track_caller]
    pub(in crate::archive) fn assert_whole(&self, source: &Server) {
        self.assert_sound();
        assert_eq!(self.fetch().assert_is_of(source), binary_logs(source));
    }

    /// Every object of the archive is there and sound, and opened where there is a key for it.
    #[track_caller]
    pub(in crate::archive) fn assert_sound(&self) -> Value {
        let answer = self.run("verify", &["--json"]);
        let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"));
        let source = answer["sources"][0].clone();
        assert_eq!(answer["sound"], true, "{answer:#}");
        assert_eq!(source["damage"], serde_json::json!([]), "{answer:#}");
        assert!(source["objects"].as_u64() > Some(0), "{answer:#}");
        assert_eq!(source["objects"], source["objects_read"], "{answer:#}");
        if self.identity.is_some() {
            assert_eq!(source["objects"], source["objects_opened"], "{answer:#}");
        }
        source
    }

    /// Everything back from the archive; `binlogd verify` of what came finds nothing.
    #[track_caller]
    pub(in crate::archive) fn fetch(&self) -> Fetched {
        self.fetch_into(folder())
    }

    /// The same into a folder in which a fetch may have begun.
    #[track_caller]
    pub(in crate::archive) fn fetch_into(&self, dir: tempfile::TempDir) -> Fetched {
        let said = self.fetch_to(dir.path());
        let end = said.split("the last ends at ").nth(1).unwrap_or_else(|| panic!("no end in {said}"));
        let (place, gtids) = end.trim().split_once(" with ").unwrap_or_else(|| panic!("no GTIDs in {said}"));
        let (file, offset) = place.rsplit_once(':').expect("a position");
        let (file, end, gtids) = (file.to_owned(), offset.parse().expect("a number"), gtids.to_owned());
        Fetched { dir, file, end, gtids, said }
    }

    /// The same into a folder of the caller's; what was printed.
    #[track_caller]
    pub(in crate::archive) fn fetch_to(&self, dir: &Path) -> String {
        let fetched = self.run("fetch", &["--to", dir.to_str().expect("a plain path")]);
        assert_no_damage(dir);
        fetched
    }
}

impl Fetched {
    /// The folder of the one timeline.
    #[track_caller]
    pub(in crate::archive) fn timeline(&self) -> PathBuf {
        let entries = std::fs::read_dir(self.dir.path().join(SOURCE)).expect("the source's folder").flatten();
        let mut folders: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| path.join("timeline.toml").exists()).collect();
        assert_eq!(folders.len(), 1, "{folders:?}");
        folders.remove(0)
    }

    /// What came is what the source has: each closed file to its last byte, and the last one up to where the archive ends.
    /// The names of the files.
    #[track_caller]
    pub(in crate::archive) fn assert_is_of(&self, source: &Server) -> Vec<String> {
        self.assert_is_newest_of(source, usize::MAX)
    }

    /// The same where only so many of the newest files came.
    #[track_caller]
    pub(in crate::archive) fn assert_is_newest_of(&self, source: &Server, files: usize) -> Vec<String> {
        let timeline = self.timeline();
        let mut names = binary_logs(source);
        let last = names.iter().position(|name| *name == self.file).expect("a file of the source");
        names.truncate(last + 1);
        names.drain(..names.len().saturating_sub(files));
        let index = std::fs::read_to_string(timeline.join("binlog.index")).expect("an index");
        assert_eq!(index.lines().collect::<Vec<_>>(), names, "{}", self.said);
        for name in &names {
            let mut theirs = std::fs::read(source.datadir().join(name)).expect("the source's file");
            let ours = std::fs::read(timeline.join(name)).expect("a fetched file");
            if *name == self.file {
                assert_eq!(ours.len() as u64, self.end, "{name}");
                theirs.truncate(ours.len());
                theirs[FLAGS_AT] &= !IN_USE;
            }
            let differs = theirs.iter().zip(&ours).position(|(theirs, ours)| theirs != ours);
            let lens = (theirs.len(), ours.len());
            assert!(
                theirs == ours,
                "{name}: bytes {lens:?} of source and fetched, {differs:?} differs first"
            );
        }
        names
    }

    /// The state that was printed, as the source's kind has it.
    #[track_caller]
    pub(in crate::archive) fn state(&self, source: &Server) -> GtidState {
        state(source, &self.gtids)
    }
}

/// A set of GTIDs as the server's kind has it.
#[track_caller]
pub(in crate::archive) fn state(server: &Server, text: &str) -> GtidState {
    GtidState::parse(server.kind(), text.trim()).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

/// Waits until the copy has what the source has, and the archive what the copy has.
#[track_caller]
pub(in crate::archive) fn wait_archived(daemon: &Daemon, source: &Server) -> Value {
    daemon.wait_caught_up(source);
    let is_there = |source: &Value| {
        let archive = &source["archive"];
        !archive["archived"].is_null()
            && archive["archived"] == source["positions"]["durable"]
            && archive["error"].is_null()
            && archive["behind_seconds"].as_u64().is_some_and(|seconds| seconds <= 5)
    };
    daemon.wait_until(is_there, PATIENCE)
}

pub(in crate::archive) fn folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("binlogd-archive-").tempdir().expect("a temporary folder")
}

/// `binlogd verify` of a data folder finds nothing.
#[track_caller]
pub(in crate::archive) fn assert_no_damage(dir: &Path) {
    let verified =
        said(Command::new(env!("CARGO_BIN_EXE_binlogd")).env("NO_COLOR", "1").arg("verify").arg(dir));
    assert!(verified.contains("no damage"), "{verified}");
}

/// Runs a program that must be well; what it printed.
#[track_caller]
fn said(command: &mut Command) -> String {
    let output = command.output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{stdout}{stderr}", output.status);
    stdout
}
