//! Translates the configuration of virtual_slave, the older tool for the same task.
//!
//! What its keys mean was read in its sources (github.com/sunashe/virtual_slave: `src/Config/Config.cc`,
//! `src/virtual_slave.cc`, `src/log/vs_log.cc`), which differ from its documentation in places; comments below say where.

use std::path::Path;
use std::time::Duration;

use super::cnf::{self, Entry, shown};
use config::example::comment;
use config::key::{Absent, Key, Kind};
use config::tables::SourceKeys;
use config::value::{parse_host_port, parse_start};
use config::{Config, duration};

/// A translated configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Translation {
    /// A configuration file of binlogd.
    pub(crate) toml: String,
    /// What has no counterpart or behaves differently. No password.
    pub(crate) warnings: Vec<String>,
}

/// Keys of early versions that say what binlogd always does.
const ALWAYS: [(&str, &str); 3] = [
    ("opt_remote_proto", "binlogd chooses between GTID and file position itself"),
    ("raw_mode", "binlogd always stores the source's own bytes"),
    ("stop_never", "binlogd always waits for more"),
];

/// Translates the text of a `virtual_slave.cnf`. The result is a valid configuration of binlogd.
///
/// # Errors
///
/// When no valid configuration follows from it; the text names the key.
pub(in crate::cli) fn translate(text: &str) -> Result<Translation, String> {
    let (entries, warnings) = cnf::read(text);
    let mut translator = Translator { entries, toml: String::new(), warnings };
    translator.top();
    translator.log();
    translator.source()?;
    translator.leftovers();
    // The promise to an operator is a file that works, so it is tried before it is printed. Variables are left aside:
    // they belong to the process that will run.
    Config::parse(&translator.toml, Path::new("binlogd.toml"), &|_| None)
        .map_err(|error| format!("its translation would not be valid:\n{error}"))?;
    Ok(Translation { toml: translator.toml, warnings: translator.warnings })
}

struct Translator {
    entries: Vec<Entry>,
    toml: String,
    warnings: Vec<String>,
}

impl Translator {
    /// Takes the entry of `key`; an empty value counts as absent, as it does for the tool.
    fn take(&mut self, key: &str) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.key == key)?;
        let entry = self.entries.remove(at);
        (!entry.value.is_empty()).then_some(entry)
    }

    /// Takes a whole number, as the tool's type would hold it.
    fn take_number(&mut self, key: &str) -> Option<u64> {
        let entry = self.take(key)?;
        let number = entry.value.parse::<u32>().ok();
        if number.is_none() {
            self.skip(&entry, "it is not a whole number, so the default holds");
        }
        number.map(u64::from)
    }

    fn line(&mut self, text: &str) {
        self.toml.push_str(text);
        self.toml.push('\n');
    }

    fn set(&mut self, key: &str, value: &str) {
        self.line(&format!("{key} = {value}"));
    }

    fn set_text(&mut self, key: &str, value: &str) {
        self.set(key, &quoted(value));
    }

    /// A comment in the translation.
    fn note(&mut self, text: &str) {
        self.toml.push_str(&comment(text));
    }

    /// A comment in the translation that an operator should read now.
    fn warn(&mut self, text: &str) {
        self.note(text);
        self.warnings.push(text.to_owned());
    }

    /// An entry that is not translated, and why.
    fn skip(&mut self, entry: &Entry, why: &str) {
        let secret =
            if entry.key.to_lowercase().contains("pass") { "…".to_owned() } else { shown(&entry.value) };
        self.note(&format!("{} = {secret}", shown(&entry.key)));
        self.warn(&format!("{} (line {}) is not translated: {why}", shown(&entry.key), entry.line));
    }

    fn top(&mut self) {
        self.note("Translated from the configuration of virtual_slave by binlogd import.");
        self.note("Every other key has its default: binlogd config example.");
        self.line("");
        match self.take("binlog_dir") {
            Some(entry) => {
                self.warn(
                    "binlog_dir: binlogd makes a folder of its own inside and copies the source's files anew; \
                     what virtual_slave left there is neither used nor touched",
                );
                self.set_text("data_dir", &entry.value);
            }
            None => self.warn("binlog_dir is missing: data_dir keeps its default"),
        }
    }

    fn log(&mut self) {
        self.line("\n[log]");
        if let Some(entry) = self.take("log_file") {
            // The tool itself ignores the key and always writes virtual_slave.log into binlog_dir.
            self.skip(&entry, "binlogd writes to standard error, for journald or a redirection to keep");
        }
        if let Some(level) = self.take_number("log_level") {
            // The tool writes a message whose number (0 error, 1 warning, 2 note) is below this one.
            let word = ["error", "error", "warn", "info"][level.min(3) as usize];
            if level == 0 {
                self.warn("log_level = 0 wrote nothing at all; binlogd always reports errors");
            }
            self.set_text("level", word);
        }
    }

    fn source(&mut self) -> Result<(), String> {
        self.line("\n[[source]]");
        self.set_text("name", "default");
        self.hosts()?;
        match self.take("master_user") {
            Some(entry) => self.set_text("user", &entry.value),
            None => return Err("master_user is missing: add the account that replicates".to_owned()),
        }
        self.password();
        if let Some(id) = self.take_number("virtual_slave_server_id").filter(|id| *id > 0) {
            self.note("A source keeps only one replica of each server id: stop virtual_slave before binlogd starts.");
            self.set("server_id", &id.to_string());
        }
        self.start();
        self.fsync_mode();
        self.times();
        Ok(())
    }

    fn hosts(&mut self) -> Result<(), String> {
        let port = self.take_number("master_port").filter(|port| *port > 0).unwrap_or(3306);
        let host = match self.take("master_host") {
            Some(entry) => entry.value,
            None => {
                self.warn("master_host is missing: virtual_slave would use the local socket, binlogd connects to 127.0.0.1");
                "127.0.0.1".to_owned()
            }
        };
        if host == "localhost" {
            self.warn("master_host = localhost meant the local socket; binlogd connects by TCP");
        }
        let address = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let address = parse_host_port(&address)
            .map_err(|why| format!("master_host and master_port: {} {why}", shown(&address)))?;
        self.set("hosts", &format!("[{}]", quoted(&address.to_string())));
        Ok(())
    }

    fn password(&mut self) {
        let Some(entry) = self.take("master_password") else { return };
        if entry.cut {
            self.warn(
                "master_password: virtual_slave reads it only up to the #, and so does this translation",
            );
        }
        self.warn(
            "master_password: this file now holds the password. Give it mode 0600 (chmod 600), or move the password to a file \
             of its own with that mode and name it here: password_file = \"…\"",
        );
        self.set_text("password", &entry.value);
    }

    fn start(&mut self) {
        let mode = self.take_number("get_start_gtid_mode").unwrap_or(0);
        let excluded = self.take("exclude_gtids");
        if let Some(entry) = excluded.as_ref().filter(|_| mode != 0) {
            self.skip(
                entry,
                &format!("virtual_slave reads it only with get_start_gtid_mode = 0, and the mode is {mode}"),
            );
        }
        match (mode, excluded) {
            (0, Some(entry)) => self.start_outside(&entry),
            (0, None) => {
                self.warn(
                    "get_start_gtid_mode = 0 made virtual_slave delete its files at every start and begin with the oldest; \
                     binlogd does so once, then continues, and deletes nothing",
                );
                self.set_text("start", "earliest");
            }
            (1, _) => {
                self.warn(
                    "get_start_gtid_mode = 1 made virtual_slave delete its files at every start and begin with the next \
                     transaction; binlogd begins once, with the start of the source's current file, then continues, and \
                     deletes nothing",
                );
                self.set_text("start", "latest");
            }
            (2, _) => {
                self.note(
                    "get_start_gtid_mode = 2. With an empty folder virtual_slave began with the next transaction; binlogd \
                     begins with the oldest file that the source still has. For the former, write start = \"latest\".",
                );
                self.set_text("start", "resume");
            }
            (other, _) => {
                self.warn(&format!(
                    "get_start_gtid_mode = {other} is none of 0, 1, 2: binlogd's default holds"
                ));
                self.set_text("start", "resume");
            }
        }
    }

    fn start_outside(&mut self, entry: &Entry) {
        let set: String = entry.value.chars().filter(|c| !c.is_whitespace()).collect();
        let start = format!("gtid:{set}");
        match parse_start(&start) {
            Ok(_) => {
                self.warn(
                    "get_start_gtid_mode = 0 made virtual_slave delete its files at every start and begin outside \
                     exclude_gtids; binlogd begins once, with the start of the file that holds the first such \
                     transaction, then continues, and deletes nothing",
                );
                self.set_text("start", &start);
            }
            Err(why) => {
                self.skip(entry, &format!("it {why}; binlogd begins with the oldest file"));
                self.set_text("start", "earliest");
            }
        }
    }

    fn fsync_mode(&mut self) {
        match self.take_number("fsync_mode") {
            Some(0) => {
                self.note("fsync_mode = 0 acknowledges what a crash of the machine can lose; 1 is binlogd's default.");
                self.set("fsync_mode", "0");
            }
            // For the tool anything but 0 means yes.
            Some(_) => self.set("fsync_mode", "1"),
            None => {
                self.warn("fsync_mode is missing: virtual_slave then does not sync before it acknowledges; binlogd does");
                self.set("fsync_mode", "1");
            }
        }
    }

    /// Heartbeat and read timeout, whole seconds in the tool.
    fn times(&mut self) {
        let default = |key: &Key| match key.absent {
            Absent::Default(toml) => duration::parse(toml.trim_matches('"')).unwrap_or_default(),
            _ => Duration::ZERO,
        };
        let (heartbeat_period, net_read_timeout) =
            (SourceKeys::heartbeat_period, SourceKeys::net_read_timeout);
        let heartbeat =
            self.seconds("heartbeat_period", &heartbeat_period, "virtual_slave asked for no heartbeats");
        let timeout = self.seconds("net_read_time_out", &net_read_timeout, "virtual_slave waited for ever");
        let heartbeat_or_default = heartbeat.unwrap_or_else(|| default(&heartbeat_period));
        let timeout_or_default = timeout.unwrap_or_else(|| default(&net_read_timeout));
        if let Some(heartbeat) = heartbeat {
            self.set_text("heartbeat_period", &duration::format(heartbeat));
        }
        if timeout_or_default <= heartbeat_or_default {
            let raised = heartbeat_or_default * 3;
            self.warn(&format!(
                "net_read_time_out: {} is not above the heartbeat period of {}, so that a quiet source would count as lost; raised to {}",
                duration::format(timeout_or_default),
                duration::format(heartbeat_or_default),
                duration::format(raised)
            ));
            self.set_text("net_read_timeout", &duration::format(raised));
        } else if let Some(timeout) = timeout {
            self.set_text("net_read_timeout", &duration::format(timeout));
        }
    }

    /// A number of seconds inside binlogd's range for `ours`. Zero switched the feature off, which binlogd does not offer.
    fn seconds(&mut self, theirs: &str, ours: &Key, zero: &str) -> Option<Duration> {
        let Kind::Duration { max, .. } = ours.kind else { return None };
        let seconds = self.take_number(theirs)?;
        if seconds == 0 {
            self.warn(&format!(
                "{theirs} = 0: {zero}; binlogd's default holds, because a dead connection must be noticed"
            ));
            return None;
        }
        let wanted = Duration::from_secs(seconds);
        if wanted > max {
            self.warn(&format!(
                "{theirs} = {seconds} is above binlogd's longest, {}, which is used",
                duration::format(max)
            ));
        }
        Some(wanted.min(max))
    }

    /// What nothing above has taken.
    fn leftovers(&mut self) {
        for entry in std::mem::take(&mut self.entries) {
            let why = match ALWAYS.iter().find(|(key, _)| *key == entry.key) {
                Some((_, why)) => why,
                // A known key without a value says nothing.
                None => "virtual_slave does not know it either",
            };
            self.line("");
            self.skip(&entry, why);
        }
    }
}

/// A TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::*;

    /// The least that translates.
    const LEAST: &str = "master_host=db1\nmaster_user=u\nbinlog_dir=/b\nfsync_mode=1\n";

    fn source(more: &str) -> (config::SourceConfig, Vec<String>) {
        let translation = translate(&format!("{LEAST}{more}")).unwrap();
        let config = Config::parse(&translation.toml, Path::new("b.toml"), &|_| None).unwrap().config;
        (config.sources.into_iter().next().unwrap(), translation.warnings)
    }

    fn start(more: &str) -> String {
        format!("{:?}", source(more).0.start)
    }

    #[test]
    fn translates_the_example_of_its_manual() {
        let translation = translate(include_str!("../../../tests/data/virtual_slave.cnf")).unwrap();
        assert_snapshot!("manual_toml", translation.toml);
        assert_snapshot!("manual_warnings", translation.warnings.join("\n"));
    }

    #[test]
    fn translates_what_has_no_counterpart_into_comments() {
        let translation = translate(
            "[virtual_slave]\n\
             opt_remote_proto=1\nraw_mode=1\nstop_never = 1\nmysql-bin.000001\n\
             get_start_gtid_mode=1\nexclude_gtids=3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5\n\
             virtual_slave_server_id=0\nmaster_host=localhost\nmaster_port=abc\nmaster_user=a\"b\nmaster_user=ashe\n\
             master_password=as#he\nbinlog_dir = /data/binlog backup/ # the copy\n\
             heartbeat_period = 0\nnet_read_time_out = 3\nlog_level=0\nexpire_days = 3\nold_password = hidden\n",
        )
        .unwrap();
        assert_snapshot!("odd_toml", translation.toml);
        assert_snapshot!("odd_warnings", translation.warnings.join("\n"));
        assert!(!format!("{translation:?}").contains("hidden"));
        assert!(!translation.warnings.join("").contains("as#"));
    }

    #[test]
    fn start_of_every_mode() {
        let set = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5";
        assert_eq!(start(""), "Earliest");
        assert_eq!(start("get_start_gtid_mode=0\nexclude_gtids=\n"), "Earliest");
        assert_eq!(start(&format!("get_start_gtid_mode=0\nexclude_gtids={set}\n")), format!("Gtid({set:?})"));
        assert_eq!(start("get_start_gtid_mode=1"), "Latest");
        assert_eq!(start("get_start_gtid_mode=2"), "Resume");
        assert_eq!(start("get_start_gtid_mode=3"), "Resume");
        assert_eq!(start("exclude_gtids=nonsense"), "Earliest");
        let other = set.replace('3', "4");
        assert_eq!(
            start(&format!("exclude_gtids={set},\n  {other}\n\n")),
            format!("Gtid({:?})", format!("{set},{other}"))
        );
    }

    #[test]
    fn log_levels_count_what_is_written() {
        for (number, level) in [(0, "Error"), (1, "Error"), (2, "Warn"), (3, "Info"), (9, "Info")] {
            let translation = translate(&format!("{LEAST}log_level={number}\n")).unwrap();
            let config = Config::parse(&translation.toml, Path::new("b.toml"), &|_| None).unwrap().config;
            assert_eq!(format!("{:?}", config.log.level), level);
        }
    }

    #[test]
    fn times_are_seconds_and_always_fit_together() {
        let times = |more: &str| {
            let source = source(more).0;
            (source.heartbeat_period.as_secs(), source.net_read_timeout.as_secs())
        };
        assert_eq!(times(""), (5, 15));
        assert_eq!(times("heartbeat_period=1\nnet_read_time_out=4"), (1, 4));
        assert_eq!(times("heartbeat_period=10\nnet_read_time_out=10"), (10, 30));
        assert_eq!(times("heartbeat_period=30"), (30, 90));
        assert_eq!(times("net_read_time_out=3"), (5, 15));
        assert_eq!(times("heartbeat_period=0\nnet_read_time_out=0"), (5, 15));
        assert_eq!(times("heartbeat_period=4294967295\nnet_read_time_out=4294967295"), (3600, 86400));
    }

    #[test]
    fn a_fixed_fsync_mode_and_hosts() {
        assert_eq!(source("fsync_mode=0").0.fsync_mode as u8, 0);
        assert_eq!(source("fsync_mode=7").0.fsync_mode as u8, 1);
        assert_eq!(source("master_port=3307").0.hosts[0].to_string(), "db1:3307");
        assert_eq!(source("master_host=::1").0.hosts[0].to_string(), "[::1]:3306");
    }

    #[test]
    fn says_what_prevents_a_translation() {
        for (text, error) in [
            ("", "master_user is missing: add the account that replicates"),
            (
                "master_user=u\nmaster_host=a b",
                "master_host and master_port: a b:3306 is not host:port: a host name holds no blank, comma, ?, # or quote",
            ),
            (
                "master_user=u\nmaster_host=db\nmaster_port=70000",
                "master_host and master_port: db:70000 has a port outside 1 to 65535",
            ),
        ] {
            assert_eq!(translate(text), Err(error.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn whatever_is_translated_is_valid(
            values in proptest::collection::vec(("[a-z_]{0,12}", "\\PC{0,20}"), 0..6),
            known in proptest::collection::vec((0usize..13, "[0-9]{0,11}|\\PC{0,12}"), 0..13),
        ) {
            const KEYS: [&str; 13] = [
                "get_start_gtid_mode", "exclude_gtids", "virtual_slave_server_id", "master_host", "master_port",
                "master_user", "master_password", "binlog_dir", "heartbeat_period", "net_read_time_out", "log_file",
                "log_level", "fsync_mode",
            ];
            let mut text = LEAST.to_owned();
            for (key, value) in values {
                text.push_str(&format!("{key}={value}\n"));
            }
            for (key, value) in known {
                text.push_str(&format!("{}={value}\n", KEYS[key]));
            }
            if let Err(error) = translate(&text) {
                prop_assert!(
                    ["master_user is missing", "master_host and"].iter().any(|start| error.starts_with(start)),
                    "{error}"
                );
            }
        }
    }
}
