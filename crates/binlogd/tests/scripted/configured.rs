//! A daemon with several scripted sources, by a configuration file.

use crate::common::daemon::{temporary_folder, wait_child};
use crate::common::wait_within;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for anything: the machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two looks at something that is waited for.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The `[[source]]` of a scripted source.
pub(crate) fn source_text(name: &str, port: u16) -> String {
    format!(
        "[[source]]\nname = '{name}'\nhosts = ['127.0.0.1:{port}']\nuser = 'any'\ntls = 'disabled'\n\
         fsync_interval = '50ms'\nbackoff_max = '1s'\n"
    )
}

/// A daemon with a configuration file, killed and removed when dropped.
pub(crate) struct Daemon {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) wrapper: Vec<String>,
    pub(crate) child: Option<Child>,
}

impl Daemon {
    /// With these sources: name and port.
    pub(crate) fn configured(sources: &[(String, u16)]) -> Daemon {
        let text: String = sources.iter().map(|(name, port)| source_text(name, *port)).collect();
        Daemon::with_files(&text, &[])
    }

    /// With this text below the sections that each has, and files of sources beside it.
    pub(crate) fn with_files(text: &str, files: &[(String, String)]) -> Daemon {
        let folder = temporary_folder();
        std::fs::create_dir(folder.path().join("conf.d")).unwrap();
        let daemon = Daemon { folder, wrapper: Vec::new(), child: None };
        daemon.write(
            "binlogd.toml",
            &format!("data_dir = 'data'\ndisk_warn = 'off'\n{text}\n[admin]\nlisten = '127.0.0.1:0'\n"),
        );
        files.iter().for_each(|(name, text)| daemon.write(name, text));
        daemon
    }

    /// Writes a file of its configuration.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// Tells it to reload, and waits until the log says `words` once more.
    #[track_caller]
    pub(crate) fn reload(&self, words: &str) {
        let count = || self.log().matches(words).count();
        let before = count();
        kill_process(Pid::from_raw(self.pid() as i32).unwrap(), Signal::HUP).unwrap();
        wait_within(PATIENCE, words, || count() > before);
    }

    pub(crate) fn start(&mut self) {
        let _ = std::fs::remove_file(self.data_dir().join("admin.address"));
        // A measurement compares it with another one.
        let binary = std::env::var("BINLOGD_BINARY").unwrap_or(env!("CARGO_BIN_EXE_binlogd").to_owned());
        let words: Vec<&String> = self.wrapper.iter().chain([&binary]).collect();
        let log = File::options().create(true).append(true).open(self.folder.path().join("log")).unwrap();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(["run", "--config", "binlogd.toml"]).current_dir(self.folder.path());
        command.env("NO_COLOR", "1").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.child = Some(command.spawn().unwrap());
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    pub(crate) fn address(&self) -> Option<String> {
        std::fs::read_to_string(self.data_dir().join("admin.address")).ok().map(|text| text.trim().to_owned())
    }

    /// The answer to a request: code and body.
    pub(crate) fn get(&self, path: &str) -> Option<(u16, String)> {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            .build()
            .into();
        let mut answer = agent.get(format!("http://{}{path}", self.address()?)).call().ok()?;
        Some((answer.status().as_u16(), answer.body_mut().read_to_string().ok()?))
    }

    /// Waits until the sources are as wanted.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, wanted: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let asked = Instant::now();
            let status: Option<Value> =
                self.get("/status").map(|(_, body)| serde_json::from_str(&body).expect("JSON"));
            let sources = status.and_then(|status| status["sources"].as_array().cloned()).unwrap_or_default();
            if wanted(&sources) {
                return sources;
            }
            assert!(Instant::now() < deadline, "{what}: {sources:#?}\n{}", self.log());
            // The answer of very many sources takes its time, too, which the daemon needs.
            std::thread::sleep(LOOK_INTERVAL.max(asked.elapsed() * 4));
        }
    }

    /// Asks it to end and waits for that.
    #[track_caller]
    pub(crate) fn terminate(&mut self) {
        let mut child = self.child.take().expect("it runs");
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        let status = wait_child(&mut child, PATIENCE);
        assert_eq!(status.and_then(|status| status.code()), Some(0), "{}", self.log());
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Whether a source is in that state.
pub(crate) fn is(source: &Value, state: &str) -> bool {
    source["state"] == state
}
