//! `binlogd health`: one question to the daemon, for who asks every few seconds: a container, a load balancer, a script.

use std::process::ExitCode;

use super::exit::{EXIT_PROBLEM, print_result, usage_error};
use super::status::target::{Target, TargetArgs, get, in_words};
use admin::{DATA_DIR_HEADER, DATA_DIR_UNTOLD, LEVEL_HEADER};

/// A line a source that does not receive; what is longer is cut.
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// The arguments of `binlogd health`.
#[derive(Debug, Default, clap::Args)]
pub(super) struct HealthArgs {
    #[command(flatten)]
    target: TargetArgs,
}

/// Runs `binlogd health`: prints one line. The exit code is 0 when a daemon runs and every source receives, 1 when not,
/// and 2 when the configuration cannot be read.
pub(super) fn execute(args: &HealthArgs) -> ExitCode {
    match Target::of(&args.target) {
        Err(error) => usage_error(&format!("{error:#}")),
        Ok(target) => match ask(&target) {
            Ok(level) => print_result(&format!("{}\n", well(&level))),
            Err(why) => {
                print_result(&format!("{why}\n"));
                ExitCode::from(EXIT_PROBLEM)
            }
        },
    }
}

/// Every source is received; a verdict that is not ok all the same is told.
fn well(level: &str) -> String {
    match level {
        "" | "ok" => "ok".to_owned(),
        level => format!("ok, with a verdict of {level}: binlogd status says why"),
    }
}

/// The level of the verdict of a daemon that is healthy, empty where it says none; or in one line why it is not.
pub(super) fn ask(target: &Target) -> Result<String, String> {
    let Some(address) = &target.address else {
        return Err("the configuration turns the admin server off, so that nobody can be asked".to_owned());
    };
    let no_answer = |error: ureq::Error| format!("no daemon answers at {address} ({})", in_words(&error));
    let mut response = get(address, "/healthz", target.token().as_ref()).map_err(no_answer)?;
    let code = response.status().as_u16();
    let level = response.headers().get(LEVEL_HEADER).and_then(|level| level.to_str().ok());
    let level = level.unwrap_or_default().to_owned();
    let of = response
        .headers()
        .get(DATA_DIR_HEADER)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec().map_err(no_answer)?;
    let body = String::from_utf8_lossy(&body);
    let Some(of) = of else {
        return Err(format!("what answers at {address} (HTTP status {code}) is not binlogd"));
    };
    if let Some(folder) = target.folder_asked_for().filter(|folder| *folder != of && of != DATA_DIR_UNTOLD) {
        return Err(format!(
            "the daemon at {address} is that of another data folder, {of}, and none answers for {folder}"
        ));
    }
    match code {
        200 => Ok(level),
        _ => Err(body.trim_end().replace('\n', "; ")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use admin::{AddressFile, AdminServer};
    use status::{DaemonMonitor, SourceMonitor, SourceState};

    fn daemon(data_dir: &Path) -> (AdminServer, Vec<Arc<SourceMonitor>>) {
        let monitor = Arc::new(DaemonMonitor::new(data_dir));
        ["orders", "stock"].iter().for_each(|name| monitor.add(Arc::new(SourceMonitor::new(name))));
        let sources = monitor.sources();
        (AdminServer::start("127.0.0.1:0".parse().unwrap(), monitor).unwrap(), sources)
    }

    fn at(address: impl ToString) -> Target {
        Target::of(&TargetArgs { admin: Some(address.to_string()), ..TargetArgs::default() }).unwrap()
    }

    fn of_folder(folder: &Path) -> Target {
        Target::of(&TargetArgs { data_dir: Some(folder.to_owned()), ..TargetArgs::default() }).unwrap()
    }

    fn of_config(file: &Path) -> Target {
        Target::of(&TargetArgs { config: Some(file.to_owned()), ..TargetArgs::default() }).unwrap()
    }

    #[test]
    fn a_daemon_is_healthy_while_every_source_receives() {
        let folder = tempfile::tempdir().unwrap();
        let (server, sources) = daemon(folder.path());
        sources[0].set_state(SourceState::Receiving);
        assert_eq!(ask(&at(server.local_addr())), Err("stock: starting".to_owned()));
        sources[0].set_state(SourceState::Starting);
        assert_eq!(ask(&at(server.local_addr())), Err("orders: starting; stock: starting".to_owned()));
        sources.iter().for_each(|source| source.set_state(SourceState::Receiving));
        assert_eq!(ask(&at(server.local_addr())), Ok("warning".to_owned()), "the disk is not measured");
    }

    #[test]
    fn the_daemon_of_another_folder_says_nothing_about_ours() {
        let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (server, sources) = daemon(theirs.path());
        sources.iter().for_each(|source| source.set_state(SourceState::Receiving));
        // What a crashed daemon left behind, with its port taken over by another.
        let _left = AddressFile::publish(ours.path(), server.local_addr(), None).unwrap();
        let why = ask(&of_folder(ours.path())).unwrap_err();
        assert!(why.contains("is that of another data folder"), "{why}");
        let _right = AddressFile::publish(theirs.path(), server.local_addr(), None).unwrap();
        assert!(ask(&of_folder(theirs.path())).is_ok());
        let config = theirs.path().join("binlogd.toml");
        std::fs::write(&config, "data_dir = '.'\n[admin]\nlisten = '127.0.0.1:1'\n").unwrap();
        assert!(ask(&of_config(&config)).is_ok());
    }

    #[test]
    fn silence_and_something_else_are_told_apart() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let other = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n").unwrap();
        });
        let why = ask(&at(address)).unwrap_err();
        assert!(why.ends_with("(HTTP status 200) is not binlogd"), "{why}");
        other.join().unwrap();
        let why = ask(&at(address)).unwrap_err();
        assert!(why.starts_with(&format!("no daemon answers at {address} (")), "{why}");
        let config = tempfile::tempdir().unwrap();
        let file = config.path().join("b.toml");
        std::fs::write(&file, "[admin]\nlisten = 'off'\n").unwrap();
        assert!(ask(&of_config(&file)).unwrap_err().contains("turns the admin server off"));
    }
}
