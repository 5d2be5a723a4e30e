//! Many sources by files of their own: read, added and taken away while the others go on.

use crate::configured::{Daemon, PATIENCE, is, source_text};
use crate::scale::log;
use scripted_source::{Script, ScriptedSource, SourceLog};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

/// Sources of the large fleet.
const MANY: usize = 200;
/// Servers that they are read from: each serves several.
const SERVERS: usize = 20;

fn servers(count: usize) -> Vec<ScriptedSource> {
    (0..count).map(|_| ScriptedSource::start(Script::new(log())).unwrap()).collect()
}

fn file(name: &str, port: u16) -> (String, String) {
    (format!("conf.d/{name}.toml"), source_text(name, port))
}

fn all_receive(sources: &[Value], count: usize) -> bool {
    sources.len() == count && sources.iter().all(|source| is(source, "receiving"))
}

fn names(sources: &[Value]) -> Vec<&str> {
    sources.iter().map(|source| source["name"].as_str().unwrap()).collect()
}

/// What a session that goes on does not change: reconnects, and since when it lasts.
fn sessions(sources: &[Value]) -> BTreeMap<String, (Value, Value)> {
    let session = |source: &Value| (source["counters"]["reconnects"].clone(), source["state_detail"].clone());
    sources.iter().map(|source| (source["name"].as_str().unwrap().to_owned(), session(source))).collect()
}

/// Threads of the process that belong to a source of this name.
fn threads_of(daemon: &Daemon, name: &str) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", daemon.pid())).unwrap();
    let comm = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.unwrap().path().join("comm")).unwrap_or_default()
    };
    tasks.map(comm).filter(|comm| comm.trim().ends_with(&format!("-{name}"))).count()
}

/// `binlogd status` in words.
fn status_text(daemon: &Daemon) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_binlogd"));
    let output =
        command.args(["status", "--config", "binlogd.toml"]).current_dir(daemon.folder.path()).output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

#[test]
fn two_hundred_sources_come_and_go_without_touching_the_others() {
    let servers = servers(SERVERS);
    let name = |number: usize| format!("db{number:03}");
    let port = |number: usize| servers[number % SERVERS].port();
    let files: Vec<_> = (0..MANY).map(|number| file(&name(number), port(number))).collect();
    let mut daemon = Daemon::with_files("include = 'conf.d/*.toml'", &files);
    daemon.start();
    let before = daemon.wait_until("all receive", |sources| all_receive(sources, MANY));
    assert_eq!(names(&before), (0..MANY).map(name).collect::<Vec<_>>());
    // A source is protected when the look at its semi-sync has come round, too.
    let until = Instant::now() + PATIENCE;
    loop {
        let text = status_text(&daemon);
        if text.contains("All 200 sources are protected") && text.contains("   200  receiving ") {
            break;
        }
        assert!(Instant::now() < until, "{text}");
        std::thread::sleep(Duration::from_millis(100));
    }

    // A file that is broken changes nothing, and neither does one that takes a name twice.
    for (wrong, said) in [
        ("[[source]]\nname = 'db900'\nhosts = ['x']\n", "conf.d/z.toml:1:1: [[source]] lacks user"),
        ("[[source]\n", "conf.d/z.toml:1:10: not valid TOML"),
        (&source_text("db007", 1), "conf.d/z.toml:2:8: name = \"db007\" is taken by the source at"),
    ] {
        daemon.write("conf.d/z.toml", wrong);
        daemon.reload("the configuration was not reloaded, everything goes on as before");
        assert!(daemon.log().contains(said), "{said}: {}", daemon.log());
    }
    std::fs::remove_file(daemon.folder.path().join("conf.d/z.toml")).unwrap();
    let now = daemon.wait_until("nothing has changed", |sources| all_receive(sources, MANY));
    assert_eq!(sessions(&now), sessions(&before));

    // Ten go, one comes that stands before all others, one is another one now.
    for number in 50..60 {
        std::fs::remove_file(daemon.folder.path().join(format!("conf.d/{}.toml", name(number)))).unwrap();
    }
    daemon.write("conf.d/a.toml", &source_text("a-new", port(0)));
    daemon.write("conf.d/db100.toml", &(source_text("db100", port(100)) + "heartbeat_period = '3s'\n"));
    daemon.reload("configuration reloaded");
    let log = daemon.log();
    assert!(log.contains("sources=191 added=1 removed=10 started_again=1"), "{log}");
    let after =
        daemon.wait_until("those that stay and the new one receive", |sources| all_receive(sources, 191));
    assert_eq!(names(&after)[..2], ["a-new", "db000"]);
    let (before, after) = (sessions(&before), sessions(&after));
    for (name, session) in after.iter().filter(|(name, _)| !["a-new", "db100"].contains(&name.as_str())) {
        assert_eq!(*session, before[name], "{name}");
    }
    for number in 50..60 {
        let name = name(number);
        assert_eq!(threads_of(&daemon, &name), 0, "{name}");
        assert!(daemon.data_dir().join(&name).is_dir(), "its files are kept");
        assert!(
            log.contains(&format!(
                "its files stay in {}",
                daemon.data_dir().canonicalize().unwrap().join(&name).display()
            )),
            "{log}"
        );
    }
    assert!(threads_of(&daemon, "db000") > 0);
    let (_, metrics) = daemon.get("/metrics").unwrap();
    assert!(metrics.contains("source=\"db060\"") && !metrics.contains("source=\"db055\""), "{metrics:.2000}");

    // Everybody still acknowledges; one that went and comes back goes on where it was.
    for server in &servers {
        server.append(|log| {
            log.transaction(100);
            log.flag_last();
        });
    }
    daemon.write("conf.d/db055.toml", &source_text("db055", port(55)));
    daemon.reload("configuration reloaded");
    daemon.wait_until("all hold everything", |sources| {
        all_receive(sources, 192)
            && sources.iter().all(|source| {
                source["positions"]["acknowledged"]["position"] == servers[0].log(SourceLog::end).position
            })
    });
    assert_eq!(
        std::fs::read_dir(daemon.data_dir().join("db055"))
            .unwrap()
            .flatten()
            .filter(|entry| entry.path().join("timeline.toml").exists())
            .count(),
        1
    );
    daemon.terminate();
}

/// Those that receive keep what they need, wherever the new ones stand in the configuration.
#[test]
fn new_sources_for_which_there_are_no_descriptors_are_refused_and_the_others_go_on() {
    let servers = servers(4);
    let files: Vec<_> = (0..3).map(|number| file(&format!("b{number}"), servers[number].port())).collect();
    let mut daemon = Daemon::with_files("include = 'conf.d/*.toml'", &files);
    // 64 for everything else, and 7 for each of three.
    daemon.wrapper = ["prlimit", "--nofile=90:90", "--"].map(str::to_owned).to_vec();
    daemon.start();
    let before = daemon.wait_until("three receive", |sources| all_receive(sources, 3));
    daemon.write("conf.d/a.toml", &source_text("a", servers[3].port()));
    daemon.reload("configuration reloaded");
    let after = daemon.wait_until("the new one is refused", |sources| {
        sources.len() == 4 && is(&sources[0], "stopped") && all_receive(&sources[1..], 3)
    });
    assert_eq!(sessions(&after[1..]), sessions(&before));
    let said = after[0]["state_detail"].as_str().unwrap();
    assert!(said.contains("4 sources need 92 file descriptors") && said.contains("LimitNOFILE="), "{said}");
    assert!(daemon.log().contains("not received for want of file descriptors: a"), "{}", daemon.log());
    // Room that another one leaves is taken.
    std::fs::remove_file(daemon.folder.path().join("conf.d/b1.toml")).unwrap();
    daemon.reload("configuration reloaded");
    daemon.wait_until("it is received now", |sources| {
        all_receive(sources, 3) && names(sources) == ["a", "b0", "b2"]
    });
    let end = servers[3].log(SourceLog::end);
    assert!(servers[3].wait_for_acknowledgement(&end, PATIENCE), "{}", daemon.log());
    daemon.wait_until("what it takes is known", |sources| {
        sources.iter().all(|source| {
            source["resources"]["disk_bytes"].as_u64() > Some(8 << 20)
                && source["resources"]["receive_cpu_seconds"].as_f64() > Some(0.0)
        })
    });
    daemon.terminate();
}
