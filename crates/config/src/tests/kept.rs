//! What is kept: the archive, and the rules of retention.

use super::*;

/// A private key of age that opens nothing: 32 times the byte 0x42.
const PRIVATE_KEY: &str = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";

#[test]
fn an_archive_is_read_whole_and_with_its_defaults() {
    let archive =
        |lines: &str| parse(&format!("{SOURCE}[archive]\n{lines}")).map(|loaded| loaded.config.archive);
    assert_eq!(archive(""), Ok(None));
    let found = archive("url = \"s3://bucket/x/\"\n").unwrap().unwrap();
    let defaults = (found.level, found.interval, found.bandwidth, found.concurrency, found.single_writer);
    assert_eq!(defaults, (3, Duration::from_secs(10), None, 4, false));
    assert_eq!((found.verify_interval, found.verify_sample), (Duration::from_secs(86_400), 100));
    assert_eq!(found.location.to_string(), "s3://bucket/x");
    assert!(found.recipients.is_empty() && found.recipients_file.is_none() && found.identity.is_empty());

    let folder = tempfile::tempdir().unwrap();
    let key = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p";
    std::fs::write(folder.path().join("keys"), format!("# ours\n{key}\n")).unwrap();
    std::fs::write(folder.path().join("a.key"), PRIVATE_KEY).unwrap();
    let text = format!(
        "{SOURCE}archive = false\n[archive]\nurl = \"s3://bucket\"\nendpoint = \"http://minio:9000\"\nregion = \"eu\"\n\
         path_style = false\nallow_http = true\nlevel = 19\nrecipients = [\"{key}\"]\nrecipients_file = \"keys\"\n\
         identity = [\"a.key\"]\ninterval = \"1s\"\nbandwidth = \"20MiB\"\nconcurrency = 32\nsingle_writer = true\n\
         verify_interval = \"0s\"\nverify_sample = 1\n"
    );
    let config = Config::parse(&text, &folder.path().join("b.toml"), &|_| None).unwrap().config;
    assert!(!config.sources[0].archive);
    let found = config.archive.unwrap();
    assert_eq!((found.level, found.bandwidth, found.concurrency), (19, Some(20 << 20), 32));
    assert_eq!((found.verify_interval, found.verify_sample), (Duration::ZERO, 1));
    assert_eq!(found.recipients, [key]);
    assert_eq!(found.recipients_file, Some(folder.path().join("keys")));
    assert_eq!(found.identity, [folder.path().join("a.key")]);
    assert!(found.single_writer && found.options.allow_http && found.options.path_style == Some(false));
}

#[test]
fn what_an_archive_cannot_mean_is_refused_by_name() {
    let secret = "AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ";
    let private = format!("url = \"s3://b\"\nrecipients = [\"{secret}\"]");
    for (lines, why) in [
        ("level = 3", "level means nothing without url"),
        ("recipients = [\"x\"]", "recipients means nothing without url"),
        ("url = \"ftp://x\"", "unknown kind of store"),
        ("url = \"s3://b\"\nurll = 1", "did you mean url?"),
        ("url = \"s3://b\"\nlevel = 20", "from 1 to 19"),
        ("url = \"s3://b\"\nlevel = 0", "from 1 to 19"),
        ("url = \"s3://b\"\nconcurrency = 33", "from 1 to 32"),
        ("url = \"s3://b\"\ninterval = \"500ms\"", "from 1s to 1h"),
        ("url = \"s3://b\"\nbandwidth = 5", "bandwidth"),
        ("url = \"s3://b\"\nallow_http = true", "allow_http needs an endpoint"),
        ("url = \"s3://b\"\nendpoint = \"http://x\"", "allow_http = true"),
        ("url = \"file:///srv/a\"\nendpoint = \"https://x\"", "endpoint means nothing for a folder"),
        ("url = \"gs://b\"\nregion = \"eu\"", "region means nothing for gs://"),
        ("url = \"s3://b\"\nrecipients = []", "recipients must be a list"),
        ("url = \"s3://b\"\nrecipients = [\"\"]", "recipients must be a list"),
        ("url = \"s3://b\"\nrecipients = [\"my passphrase\"]", "recipients, key 1: this is no public key"),
        (&private, "recipients, key 1: this is a private key"),
        ("url = \"s3://b\"\nrecipients_file = \"nowhere.keys\"", "nowhere.keys: it cannot be read"),
        ("identity = [\"a.key\"]", "identity means nothing without url"),
        ("url = \"s3://b\"\nidentity = \"a.key\"", "identity must be a list of paths"),
        ("url = \"s3://b\"\nidentity = [\"nowhere.key\"]", "nowhere.key: it cannot be read"),
        ("url = \"s3://b\"\nsign_key = \"nowhere.key\"", "sign_key: nowhere.key: it cannot be read"),
        ("url = \"s3://b\"\nsigned_by = [\"ssh-ed25519 AAAA\"]", "signed_by, key 1: this is no such key"),
        ("sign_key = \"a.key\"", "sign_key means nothing without url"),
    ] {
        let error = errors(&format!("{SOURCE}[archive]\n{lines}\n"));
        assert!(error.contains(why), "{lines}: {error}");
        assert!(!error.contains("QQQQ") && !error.contains("my passphrase"), "{error}");
    }
    let error = errors(&format!("{SOURCE}archive = true\n"));
    assert!(error.contains("archive = true needs url in [archive]"), "{error}");
    let error = errors("archive = \"s3://b\"\n[[source]]\nhosts = [\"db1:3306\"]\nuser = \"repl\"\n");
    assert!(error.contains("write it as [archive]"), "{error}");
}

#[test]
fn retention_has_no_rule_unless_one_is_given() {
    let rules = |lines: &str| parse(&format!("[retention]\n{lines}\n{SOURCE}"));
    assert_eq!(rules("").unwrap().config.retention, no_retention());
    let all = "max_age = \"30d\"\nmax_bytes = \"500GiB\"\nmax_files = 1000\nslot_max_age = \"1d12h\"\nslot_max_bytes = \"1TiB\"\n\
               slot_margin = \"0s\"";
    let expected = RetentionConfig {
        max_age: Some(Duration::from_secs(30 * 86_400)),
        max_bytes: Some(500 << 30),
        max_files: Some(1000),
        slot_max_age: Duration::from_secs(36 * 3600),
        slot_max_bytes: Some(1 << 40),
        slot_margin: Duration::ZERO,
    };
    assert_eq!(rules(all).unwrap().config.retention, expected);
    for (line, wrong) in [
        ("max_bytes = \"10%\"", "must be an amount from 1MiB to 1024TiB"),
        ("max_bytes = \"10GB\"", "unknown unit"),
        ("max_files = 1", "must be a whole number from 2"),
        ("max_age = \"30\"", "has no unit"),
        ("max_size = 1", "unknown key max_size in [retention]"),
    ] {
        let error = rules(line).unwrap_err().to_string();
        assert!(error.contains(wrong), "{line}: {error}");
    }
}

#[test]
fn one_rule_keeps_backups_and_their_log_where_there_is_an_archive() {
    let kept = |lines: &str| {
        let loaded = parse(&format!("{SOURCE}{lines}")).map(|loaded| loaded.config.backup.keep);
        loaded.map(|keep| keep.map(|keep| keep.to_string())).map_err(|error| error.to_string())
    };
    assert_eq!(kept("[archive]\nurl = \"s3://b\"\n[backup]\n"), Ok(None));
    let rule = "[backup]\nkeep = \"7d 4w\"\n";
    assert_eq!(kept(&format!("[archive]\nurl = \"s3://b\"\n{rule}")), Ok(Some("7d 4w".to_owned())));
    for (lines, words) in [
        (rule.to_owned(), "keep in [backup] means nothing without url in [archive]"),
        (format!("archive = false\n[archive]\nurl = \"s3://b\"\n{rule}"), "has archive = false"),
        (format!("[archive]\nurl = \"s3://b\"\nsingle_writer = true\n{rule}"), "exclude each other"),
        ("[archive]\nurl = \"s3://b\"\n[backup]\nkeep = \"7\"\n".to_owned(), "is no rule for backups"),
    ] {
        let error = kept(&lines).unwrap_err();
        assert!(error.contains(words), "{lines}: {error}");
    }
}

#[test]
fn a_drill_says_when_and_with_what_and_needs_an_archive() {
    let drilled = |lines: &str| {
        let loaded = parse(&format!("{SOURCE}{lines}")).map(|loaded| loaded.config.drill);
        loaded.map_err(|error| error.to_string())
    };
    let archive = "[archive]\nurl = \"s3://b\"\n";
    assert_eq!(drilled(&format!("{archive}[drill]\n")), Ok(None));
    let least = "[drill]\nat = \"03:30\"\nserver = \"/usr/sbin/mysqld\"\n";
    let found = drilled(&format!("{archive}{least}")).unwrap().unwrap();
    assert_eq!((found.at.hour(), found.at.minute(), found.backup), (3, 30, DrillBackup::Newest));
    assert_eq!((found.work, found.memory, found.time_limit.as_secs()), (None, 2 << 30, 4 * 3600));
    for (lines, words) in [
        (least.to_owned(), "[drill] means nothing without url in [archive]"),
        (format!("{archive}[drill]\nat = \"03:30\"\n"), "[drill] lacks server"),
        (format!("{archive}{}", least.replace("03:30", "half past three")), "must be a time of day"),
        (format!("{archive}{least}backup = \"oldest\"\n"), "random"),
    ] {
        let error = drilled(&lines).unwrap_err();
        assert!(error.contains(words), "{lines}: {error}");
    }
}

#[test]
fn who_is_told_has_a_url_that_is_never_shown() {
    let told = |lines: &str| {
        let loaded = parse(&format!("{SOURCE}[notify]\n{lines}"));
        loaded.map(|loaded| loaded.config.notify).map_err(|error| error.to_string())
    };
    assert_eq!(told(""), Ok(None));
    let found = told("webhook = \"https://h/TOKEN\"\n").unwrap().unwrap();
    assert_eq!(found.webhook.as_ref().unwrap().expose(), "https://h/TOKEN");
    assert_eq!((found.at_most_every.as_secs(), found.heartbeat_every.as_secs()), (10, 60));
    assert!(!format!("{found:?}").contains("TOKEN"));
    assert!(told("at_most_every = \"5s\"\n").unwrap_err().contains("[notify] tells nobody"));
    for url in ["ftp://h/TOKEN", "https:///TOKEN", "https://h:99999/TOKEN", "https://h/TOKEN x", "TOKEN"] {
        let error = told(&format!("heartbeat = \"{url}\"\n")).unwrap_err();
        assert!(error.contains("http:// or https://") && !error.contains("TOKEN"), "{error}");
    }
}
