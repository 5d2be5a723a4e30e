//! What is wrong with a file is said with its place.

use super::*;

#[test]
fn a_quorum_says_what_it_needs_of_the_other_keys() {
    let served = format!("serve = {{ listen = \"127.0.0.1:0\" }}\n{SOURCE}password = \"x\"\n");
    let with = |lines: &str| parse(&format!("{served}{lines}"));
    let told = |lines: &str| with(lines).unwrap_err().to_string();
    let config = with("quorum = [\"b\", \"c:3307\"]\n").unwrap().config.sources.remove(0);
    assert_eq!(config.peers, config.quorum, "the other nodes are its peers");
    assert_eq!(config.on_fork, OnFork::Withhold);
    let other = with("quorum = [\"b\"]\npeers = [\"d\"]\n").unwrap().config.sources.remove(0);
    assert_eq!((other.peers[0].host.as_str(), other.quorum[0].host.as_str()), ("d", "b"));
    for (lines, words) in [
        ("quorum = [\"b\", \"b\"]", "is listed twice"),
        (
            "quorum = [\"binlogd2:3307\", \"Binlogd2:3307\"]",
            "Binlogd2:3307 is listed twice, in other letters",
        ),
        (
            "quorum = [\"b\", \"c\", \"d\"]",
            "quorum: 4 nodes, this one counted, bear the loss of no more of them than 3 do",
        ),
        ("quorum = [\"db1\", \"c\"]", "is among the hosts: a node is another binlogd"),
        ("quorum = [\"b\"]\nfsync_mode = 0", "quorum needs fsync_mode = 1"),
        ("quorum = [\"b\"]\nsemi_sync = false", "quorum needs semi_sync = true"),
        ("quorum = [\"b\"]\non_fork = \"follow\"", "quorum needs on_fork = \"withhold\""),
        ("quorum = [\"b\"]\nack_after_replicas = 1", "two ways to wait for others"),
    ] {
        let text = told(&format!("{lines}\n"));
        assert!(text.contains(words), "{lines}: {text}");
    }
    for (listen, own) in [
        ("0.0.0.0:3307", "localhost:3307"),
        ("127.0.0.1:3307", "127.0.0.1:3307"),
        ("[::]:3307", "[::1]:3307"),
        ("10.0.0.5:3307", "10.0.0.5:3307"),
    ] {
        let text = format!("{SOURCE}password = \"x\"\nquorum = [\"{own}\", \"c\"]\n");
        let told = parse(&format!("serve = {{ listen = \"{listen}\" }}\n{text}")).unwrap_err().to_string();
        assert!(told.contains(&format!("quorum: {own} is this binlogd itself")), "{told}");
        // Another port of the same machine is another binlogd.
        parse(&format!("serve = {{ listen = \"127.0.0.1:3308\" }}\n{text}")).unwrap();
    }
    let text = errors(&format!("{SOURCE}quorum = [\"b\"]\n"));
    assert!(text.contains("quorum needs a port at which the others listen"), "{text}");
}

#[test]
fn receivers_that_cannot_come_or_are_never_asked_are_refused() {
    let told = errors(&format!("{SOURCE}ack_after_replicas = 1\n"));
    assert!(told.contains("ack_after_replicas needs a port at which the receivers read"), "{told}");
    let served = format!("serve = {{ listen = \"127.0.0.1:0\" }}\n{SOURCE}password = \"x\"\n");
    let source = |lines: &str| parse(&format!("{served}{lines}"));
    let told = source("ack_after_replicas = 2\nsemi_sync = false\n").unwrap_err().to_string();
    assert!(told.contains("ack_after_replicas needs semi_sync = true"), "{told}");
    let config = source("ack_after_replicas = 2\n").unwrap().config.sources.remove(0);
    let demanded = (config.ack_after_replicas, config.ack_timeout, config.ack_timeout_action);
    assert_eq!(demanded, (2, Duration::from_secs(10), AckTimeoutAction::Wait));
}

#[test]
fn every_limit_is_inclusive_and_one_beyond_is_refused() {
    for key in keys_of(Section::Source) {
        let key::Kind::Duration { min, max } = key.kind else { continue };
        let tick = Duration::from_millis(1);
        let with = |value: Duration| {
            // Companions far away, so that only the key's own range speaks.
            let companions = match key.name {
                "heartbeat_period" => "net_read_timeout = \"24h\"\n",
                "net_read_timeout" => "heartbeat_period = \"100ms\"\n",
                "backoff_min" => "backoff_max = \"1h\"\n",
                "backoff_max" => "backoff_min = \"10ms\"\n",
                _ => "",
            };
            parse(&format!("{SOURCE}{} = \"{}\"\n{companions}", key.name, duration::format(value)))
        };
        assert!(with(min).is_ok() && with(max).is_ok(), "{}", key.name);
        for beyond in min.checked_sub(tick).into_iter().chain([max + tick]) {
            let expected = format!(
                "b.toml:4:{}: {} = \"{}\": must be {}",
                key.name.len() + 4,
                key.name,
                duration::format(beyond),
                key.allowed()
            );
            assert_eq!(with(beyond).unwrap_err().to_string(), expected);
        }
    }
}

#[test]
fn every_wrong_value_is_named_with_what_is_allowed() {
    for (line, message) in [
        (
            "fsync_mode = 2",
            "fsync_mode = 2: must be one of 0 (written: survives a crash of binlogd, not of its machine), 1 (on stable storage: survives both)",
        ),
        (
            "fsync_mode = true",
            "fsync_mode = true: must be one of 0 (written: survives a crash of binlogd, not of its machine), 1 (on stable storage: survives both)",
        ),
        (
            "fsync_interval = 1",
            "fsync_interval = 1: has no unit: write 1s for seconds, 1ms for milliseconds, 1m for minutes or 1h for hours",
        ),
        (
            "fsync_interval = \"1\"",
            "fsync_interval = \"1\": has no unit: write 1s for seconds, 1ms for milliseconds, 1m for minutes or 1h for hours",
        ),
        (
            "fsync_interval = 1.5",
            "fsync_interval = a float: is not a duration: write a number and a unit, such as 5s, 250ms, 1m30s or 2h",
        ),
        (
            "connect_timeout = \"5 sec\"",
            "connect_timeout = \"5 sec\": is not a duration: write a number and a unit, such as 5s, 250ms, 1m30s or 2h",
        ),
        (
            "connect_timeout = \"5sec\"",
            "connect_timeout = \"5sec\": has the unknown unit \"sec\": the units are d, h, m, s and ms",
        ),
        ("semi_sync = \"yes\"", "semi_sync = \"yes\": must be true or false"),
        ("semi_sync = \"true\"", "semi_sync = \"true\": must be true or false"),
        ("server_id = 0", "server_id = 0: must be a whole number from 1 to 4294967295"),
        ("server_id = 4294967296", "server_id = 4294967296: must be a whole number from 1 to 4294967295"),
        ("server_id = -1", "server_id = -1: must be a whole number from 1 to 4294967295"),
        ("server_id = \"7\"", "server_id = \"7\": must be a whole number from 1 to 4294967295"),
        (
            "name = \"../x\"",
            "name = \"../x\": must be 1 to 64 of the characters A-Z a-z 0-9 _ . - and not begin with a dot",
        ),
        (
            "name = 7",
            "name = 7: must be 1 to 64 of the characters A-Z a-z 0-9 _ . - and not begin with a dot",
        ),
        (
            "start = \"newest\"",
            "start = \"newest\": must be resume, earliest, latest, gtid:<set> or file:<name>:<position>",
        ),
        ("start = 4", "start = 4: must be resume, earliest, latest, gtid:<set> or file:<name>:<position>"),
        (
            "start = \"file:binlog.000001\"",
            "start = \"file:binlog.000001\": lacks the position: write file:<name>:<position>",
        ),
        (
            "start = \"file:a/b:4\"",
            "start = \"file:a/b:4\": needs the bare name of a binlog file, as in file:binlog.000042:4",
        ),
        (
            "start = \"file:b.1:3\"",
            "start = \"file:b.1:3\": needs a position of at least 4, which is where the first event of a file stands",
        ),
        (
            "start = \"gtid:\"",
            "start = \"gtid:\": holds no transaction: to begin with the oldest file, write earliest",
        ),
        (
            "tls = \"on\"",
            "tls = \"on\": must be one of disabled (never), preferred (where the server offers it), required (always, the certificate unchecked), verify-ca (always, the certificate from a trusted authority), verify-full (as verify-ca, and it names the host)",
        ),
        (
            "on_gap = \"skip\"",
            "on_gap = \"skip\": must be one of stop (wait for an operator), record (record what is missing and go on with the file after it)",
        ),
        ("password_env = 3", "password_env is a whole number: it must be a text in quotes"),
    ] {
        let column = line.find('=').unwrap() + 3;
        assert_eq!(error(line), format!("b.toml:4:{column}: {message}"), "{line}");
    }
    assert!(
        error("start = \"gtid:0-1\"")
            .starts_with("b.toml:4:9: start = \"gtid:0-1\": is not a GTID set: \"0-1\" is not")
    );
}

#[test]
fn hosts_and_user_are_needed_and_checked_one_by_one() {
    for (text, message) in [
        ("[[source]]\nuser = \"u\"", "b.toml:1:1: [[source]] lacks hosts: add hosts = [\"127.0.0.1:3306\"]"),
        ("[[source]]\nhosts = [\"a\"]", "b.toml:1:1: [[source]] lacks user: add user = \"repl\""),
        (
            "[[source]]\nuser = \"\"\nhosts = [\"a\"]",
            "b.toml:2:8: user = \"\": must be a text that is not empty",
        ),
        (
            "[[source]]\nuser = \"u\"\nhosts = []",
            "b.toml:3:9: hosts = []: must be a list of \"host:port\", such as [\"db1:3306\", \"[::1]:3306\"]",
        ),
        (
            "[[source]]\nuser = \"u\"\nhosts = \"db1\"",
            "b.toml:3:9: hosts = \"db1\": must be a list of \"host:port\", such as [\"db1:3306\", \"[::1]:3306\"]",
        ),
        (
            "[[source]]\nuser = \"u\"\nhosts = [\"db1\", \"db1:3306\", 5, \"db2:x\"]",
            "b.toml:3:17: hosts = \"db1:3306\": is listed twice\n\
             b.toml:3:29: hosts = 5: must be a list of \"host:port\", such as [\"db1:3306\", \"[::1]:3306\"]\n\
             b.toml:3:32: hosts = \"db2:x\": has a port that is not a number",
        ),
        (
            "[[source]]\nuser = \"u\"\nhosts = [\"a\"]\npeers = [\"b\", \"a:3306\"]",
            "b.toml:4:9: peers: a:3306 is among the hosts: a peer is another binlogd, and never taken for the source",
        ),
        (
            "[[source]]\nuser = \"u\"\nhosts = [\"a\"]\npeers = []",
            "b.toml:4:9: peers = []: must be a list of \"host:port\", such as [\"db1:3306\", \"[::1]:3306\"]",
        ),
        (
            "[[source]]\nuser = \"u\"\nhosts = [\"mysql://u:secret@db1:3306\"]",
            "b.toml:3:10: hosts = \"mysql://u:***@db1:3306\": is not host:port alone: user and password have keys of their own",
        ),
    ] {
        assert_eq!(errors(text), message, "{text}");
    }
}

#[test]
fn the_other_sections_are_checked_too() {
    for (text, message) in [
        ("data_dir = \"\"", "b.toml:1:12: data_dir = \"\": must be a path"),
        ("data_dir = 5", "b.toml:1:12: data_dir = 5: must be a path"),
        ("disk_warn = 10", "b.toml:1:13: disk_warn = 10: has no unit: write 10GiB, 10MiB or 10%"),
        (
            "disk_warn = \"10GB\"",
            "b.toml:1:13: disk_warn = \"10GB\": has the unknown unit \"GB\": the units are KiB, MiB, GiB, TiB and %",
        ),
        (
            "disk_warn = true",
            "b.toml:1:13: disk_warn = true: must be an amount of free space from 1MiB to 1024TiB, such as 10GiB, a percentage of the file system from 1% to 99%, or off",
        ),
        (
            "[admin]\nlisten = \"9306\"",
            "b.toml:2:10: listen = \"9306\": must be an IP address and port, such as 127.0.0.1:9306 or [::1]:9306, or off",
        ),
        (
            "[log]\nformat = \"xml\"",
            "b.toml:2:10: format = \"xml\": must be one of text (one readable line a message), json (one JSON object a line)",
        ),
        ("admin = 5", "b.toml:1:1: admin is a whole number: write it as [admin]"),
        ("[[log]]", "b.toml:1:3: log is a list: write it as [log]"),
    ] {
        assert_eq!(errors(&format!("{text}\n{SOURCE}")), message, "{text}");
    }
    assert!(
        errors("[log]\nlevel = \"verbose\"\n")
            .contains("must be one of error (what needs an operator), warn")
    );
    assert_eq!(errors(""), "b.toml: there is no [[source]]: add one table for each server to copy");
    assert_eq!(
        errors("[source]\nhosts = [\"a\"]\nuser = \"u\""),
        "b.toml:1:2: write [[source]], with two brackets on each side: there may be several"
    );
    assert_eq!(
        errors("source = [5]"),
        "b.toml: there is no [[source]]: add one table for each server to copy".replace(
            "b.toml: there",
            "b.toml:1:11: a whole number stands in the list: write each as a [[source]] table\nb.toml: there"
        )
    );
}

#[test]
fn unknown_keys_come_with_a_suggestion_and_the_known_ones() {
    let source_keys: Vec<&str> = keys_of(Section::Source).iter().map(|key: &Key| key.name).collect();
    let allowed = format!("Allowed: {}", source_keys.join(", "));
    for (line, hint) in [
        ("host = [\"a\"]", "did you mean hosts? "),
        ("heartbeat = \"5s\"", "did you mean heartbeat_period? "),
        ("net_read_time_out = \"5s\"", "did you mean net_read_timeout? "),
        ("fsync-mode = 1", "did you mean fsync_mode? "),
        ("listen = \"off\"", "it belongs to [admin]. "),
        ("data_dir = \"x\"", "it belongs to the top level. "),
        ("colour = \"blue\"", ""),
    ] {
        let key = line.split(' ').next().unwrap();
        assert_eq!(error(line), format!("b.toml:4:1: unknown key {key} in [[source]]: {hint}{allowed}"));
    }
    assert_eq!(
        errors(&format!("fsync_mode = 1\n[logs]\nlevel = \"info\"\n{SOURCE}[[sources]]\n")),
        "b.toml:1:1: unknown key fsync_mode in the top level: it belongs to [[source]]. Allowed: data_dir, disk_warn, search_index, include, [admin], [log], [serve], [retention], [archive], [backup], [drill], [notify], [[source]]\n\
         b.toml:2:2: unknown key logs in the top level: did you mean [log]? Allowed: data_dir, disk_warn, search_index, include, [admin], [log], [serve], [retention], [archive], [backup], [drill], [notify], [[source]]\n\
         b.toml:7:3: unknown key sources in the top level: did you mean [[source]]? Allowed: data_dir, disk_warn, search_index, include, [admin], [log], [serve], [retention], [archive], [backup], [drill], [notify], [[source]]"
    );
}

#[test]
fn every_error_is_reported_at_once_in_the_order_of_the_file() {
    let text = "[[source]]\nuser = 5\nfsync_mode = 9\nbogus = 1\ntls = \"x\"\n[admin]\nlisten = 1\n";
    let lines: Vec<String> =
        errors(text).lines().map(|line| line.split(": ").next().unwrap().to_owned()).collect();
    assert_eq!(lines, ["b.toml:1:1", "b.toml:2:8", "b.toml:3:14", "b.toml:4:1", "b.toml:5:7", "b.toml:7:10"]);
}

#[test]
fn syntax_errors_have_a_place_and_never_quote_the_line() {
    for text in [
        "password = SECRET\n",
        "password = \"SECRET\n",
        "password = \"SECRET\\q\"\n",
        "password = 'SECRET' 'SECRET'\n",
        "password = \"SECRET\"\npassword = \"SECRET\"\n",
        "SECRET\n",
        "[[source]\npassword = \"SECRET\"\n",
    ] {
        let message = errors(&format!("\n{text}"));
        for line in message.lines() {
            assert!(line.starts_with("b.toml:") && line.contains(": not valid TOML: "), "{message}");
        }
        assert!(!message.contains("SECRET"), "{message}");
    }
}

#[test]
fn relations_between_durations() {
    for (lines, message) in [
        (
            "net_read_timeout = \"5s\"",
            "b.toml:4:20: net_read_timeout = \"5s\" must exceed heartbeat_period (default 5s): a source with nothing to send would count as lost between two heartbeats",
        ),
        (
            "heartbeat_period = \"20s\"",
            "b.toml:4:20: net_read_timeout (default 15s) must exceed heartbeat_period = \"20s\": a source with nothing to send would count as lost between two heartbeats",
        ),
        (
            "backoff_max = \"1s\"\nbackoff_min = \"2s\"",
            "b.toml:4:15: backoff_max = \"1s\" must not be below backoff_min = \"2s\": the longest pause cannot be shorter than the first one",
        ),
    ] {
        assert_eq!(error(lines), message);
    }
    assert_eq!(source("net_read_timeout = \"5001ms\"").net_read_timeout, Duration::from_millis(5001));
}

#[test]
fn names_and_server_ids_are_unique() {
    let two = |first: &str, second: &str| format!("{SOURCE}{first}\n{SOURCE}{second}\n");
    assert_eq!(
        errors(&two("", "")),
        "b.toml:5:1: name = \"default\" is taken by the source at b.toml:1:1: give each [[source]] its own name"
    );
    assert_eq!(
        errors(&two("name = \"a\"", "name = \"a\"")),
        "b.toml:8:8: name = \"a\" is taken by the source at b.toml:4:8: give each [[source]] its own name"
    );
    assert_eq!(
        errors(&two("name = \"a\"\nserver_id = 7", "server_id = 7")),
        "b.toml:9:13: server_id = 7 is used for db1:3306 already, at b.toml:5:13: each replica of a server needs its own"
    );
    // Whatever else is wrong with one of them.
    let said = errors(&two(
        "name = \"a\"\nserver_id = 7\nfsync_mode = 5",
        "name = \"a\"\nserver_id = 7\nsemi_sync = 5",
    ));
    for wanted in ["fsync_mode = 5", "name = \"a\" is taken by", "server_id = 7 is used for db1:3306 already"]
    {
        assert!(said.contains(wanted), "no {wanted:?} in {said}");
    }
    assert!(parse(&two("name = \"a\"\nserver_id = 7", "server_id = 8")).is_ok());
    let elsewhere = two("name = \"a\"\nserver_id = 7", "server_id = 7").replacen("db1", "db2", 1);
    assert!(parse(&elsewhere).is_ok());
}

#[test]
fn a_configuration_that_cannot_be_read_is_one_error() {
    assert_eq!(
        Config::load(Path::new("/nonexistent/b.toml")).unwrap_err().to_string(),
        "/nonexistent/b.toml: the configuration file cannot be read: No such file or directory (os error 2)"
    );
}
