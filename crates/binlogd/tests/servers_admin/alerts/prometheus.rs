//! A real Prometheus with the packaged alerts, in a hurry.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::common::rules::RULES;
use crate::common::{wait_within, workspace};

/// Longest wait for an alert: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(90);
const START_MAX: Duration = Duration::from_secs(60);

/// Runs until dropped.
pub(super) struct Prometheus {
    child: Child,
    folder: tempfile::TempDir,
    address: String,
}

impl Prometheus {
    /// Starts one that scrapes and judges twice a second, by rules of which every duration is a sixtieth ([`hurried`]).
    pub(super) fn start() -> Prometheus {
        let folder = tempfile::Builder::new().prefix("binlogd-prometheus-").tempdir().expect("a folder");
        let rules = std::fs::read_to_string(workspace().join(RULES)).expect("the rules");
        write(folder.path(), "rules.yml", &hurried(&rules));
        write(folder.path(), "targets.json", "[]");
        write(
            folder.path(),
            "prometheus.yml",
            "global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}\n\
             rule_files: [rules.yml]\n\
             scrape_configs:\n- job_name: binlogd\n  file_sd_configs: [{files: [targets.json], refresh_interval: 1s}]\n",
        );
        let address = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a free port");
        let log = std::fs::File::create(folder.path().join("log")).expect("a log");
        let child = Command::new(program("prometheus"))
            .arg(format!("--config.file={}", folder.path().join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("tsdb").display()))
            .arg(format!("--web.listen-address={address}"))
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("Prometheus starts");
        let prometheus = Prometheus { child, folder, address: address.to_string() };
        wait_within(START_MAX, "Prometheus is ready", || prometheus.get("/-/ready", None).is_some());
        prometheus
    }

    /// From now on it scrapes these: the name that stands in `instance`, and the address.
    pub(super) fn scrape(&self, targets: &[(&str, String)]) {
        let of = |(name, address): &(&str, String)| serde_json::json!({"targets": [address], "labels": {"instance": name}});
        let text = Value::from(targets.iter().map(of).collect::<Vec<_>>()).to_string();
        write(self.folder.path(), "targets.json.new", &text);
        let path = self.folder.path().join("targets.json");
        std::fs::rename(path.with_extension("json.new"), path).expect("a file");
    }

    /// Sentences of the alerts of this name that fire now.
    pub(super) fn firing(&self, name: &str) -> Vec<String> {
        let alerts = self.api("/api/v1/alerts", None);
        let alerts = alerts["alerts"].as_array().expect("alerts");
        let fires = |alert: &&Value| {
            alert["state"] == "firing" && (name.is_empty() || alert["labels"]["alertname"] == name)
        };
        alerts.iter().filter(fires).map(|alert| alert["annotations"]["summary"].to_string()).collect()
    }

    /// Waits until the alert fires.
    #[track_caller]
    pub(super) fn wait_fires(&self, name: &str) {
        wait_within(PATIENCE, &format!("{name} fires"), || !self.firing(name).is_empty());
        for sentence in self.firing(name) {
            println!("{name}: {sentence}");
            assert!(!sentence.contains("no value") && !sentence.contains("  "), "{name}: {sentence}");
        }
    }

    /// Waits until the alert does not fire any more.
    #[track_caller]
    pub(super) fn wait_ends(&self, name: &str) {
        wait_within(PATIENCE, &format!("{name} ends"), || self.firing(name).is_empty());
        println!("{name}: has ended");
    }

    /// Waits until it has scraped everything that it is to, and no alert fires.
    #[track_caller]
    pub(super) fn wait_quiet(&self) {
        wait_within(PATIENCE, "everything is scraped", || {
            !self.query("up == 1").is_empty() && self.query("up == 0").is_empty()
        });
        let mut firing = Vec::new();
        wait_within(PATIENCE, "nothing fires", || {
            firing = self.firing("");
            if !firing.is_empty() {
                println!("fires still: {firing:?}");
            }
            firing.is_empty()
        });
    }

    /// The series that an expression gives.
    #[track_caller]
    pub(super) fn query(&self, expr: &str) -> Vec<Value> {
        let data = self.api("/api/v1/query", Some(expr));
        data["result"].as_array().cloned().unwrap_or_default()
    }

    #[track_caller]
    fn api(&self, path: &str, query: Option<&str>) -> Value {
        let text = self.get(path, query).unwrap_or_else(|| {
            let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            panic!("{path} {query:?} is refused; the log of Prometheus:\n{log}")
        });
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(answer["status"], "success", "{query:?}: {answer}");
        answer["data"].clone()
    }

    fn get(&self, path: &str, query: Option<&str>) -> Option<String> {
        let agent: ureq::Agent =
            ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(20))).build().into();
        let mut request = agent.get(format!("http://{}{path}", self.address));
        if let Some(query) = query {
            request = request.query("query", query);
        }
        request.call().ok()?.body_mut().read_to_string().ok()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("a file");
}

/// The path of a program, by `scripts/servers`.
#[track_caller]
pub(super) fn program(name: &str) -> String {
    let output =
        Command::new(workspace().join("scripts/servers")).arg(name).output().expect("the script runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("a path").trim().to_owned()
}

/// Rules for those who cannot wait: what stands behind `for:` and in square brackets becomes a sixtieth, minutes seconds. What
/// metrics are compared with stays.
pub(super) fn hurried(rules: &str) -> String {
    let line = |line: &str| match line.split_once("for: ") {
        Some((before, duration)) if before.trim().is_empty() => {
            format!("{before}for: {}", sixtieth(duration))
        }
        _ => {
            let mut parts = line.split('[');
            let mut text = parts.next().unwrap_or_default().to_owned();
            for part in parts {
                let (duration, rest) = part.split_once(']').expect("a closing bracket");
                let is_duration = duration.starts_with(|c: char| c.is_ascii_digit());
                let duration = if is_duration { sixtieth(duration) } else { duration.to_owned() };
                text += &format!("[{duration}]{rest}");
            }
            text
        }
    };
    rules.lines().filter(|line| !line.starts_with('#')).map(|text| line(text) + "\n").collect()
}

fn sixtieth(duration: &str) -> String {
    let (number, unit) = duration.split_at(duration.len() - 1);
    let milliseconds: u64 = match unit {
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        other => panic!("nothing is known of {other} in {duration}"),
    };
    format!("{}ms", number.parse::<u64>().expect("a number") * milliseconds / 60)
}

#[test]
fn durations_become_sixtieths_and_nothing_else() {
    let rules = "# for: 1h\n  for: 5m\n  expr: increase(a_total[10m]) < 4 * 3600 and b{c=\"[x]\"}\n";
    let expected = "  for: 5000ms\n  expr: increase(a_total[10000ms]) < 4 * 3600 and b{c=\"[x]\"}\n";
    assert_eq!(hurried(rules), expected);
    assert_eq!((sixtieth("30s"), sixtieth("1h")), ("500ms".to_owned(), "60000ms".to_owned()));
}
