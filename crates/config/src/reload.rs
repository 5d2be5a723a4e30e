//! What a reread configuration changes.

use super::key::{Key, ReloadEffect};
use super::tables::{Config, SourceConfig, SourceKeys};

/// The keys of a source that differ, in the order of the example. A change of `password`, `password_file`,
/// `password_env` or of what they name is a change of `password`; where the password stays, of `password_file`.
pub fn changed_keys(old: &SourceConfig, new: &SourceConfig) -> Vec<&'static Key> {
    let mut changed = old.changed(new);
    changed.retain(|key| **key != SourceKeys::password_file || old.password == new.password);
    changed
}

/// The keys outside the sources that differ and are in force only after a restart or at once, written as `data_dir`,
/// `admin.listen`. What else `[admin]` and `[serve]` say, and all of `[retention]`, holds at once, and is not among them.
pub fn changed_global_keys(old: &Config, new: &Config) -> Vec<String> {
    let needs_restart = |key: &&Key| key.reload == ReloadEffect::Restart;
    let root = old.changed(new);
    let admin = old.admin.changed(&new.admin).into_iter().filter(needs_restart);
    let log = old.log.changed(&new.log).into_iter().filter(needs_restart);
    let serve = old.serve.changed(&new.serve).into_iter().filter(needs_restart);
    let inner = admin.chain(log).chain(serve);
    root.iter()
        .map(|key| key.name.to_owned())
        .chain(inner.map(|key| format!("{}.{}", key.section.name(), key.name)))
        // Several of its keys mostly change together.
        .chain((old.archive != new.archive).then(|| "[archive]".to_owned()))
        .chain((old.backup != new.backup).then(|| "[backup]".to_owned()))
        .chain((old.drill != new.drill).then(|| "[drill]".to_owned()))
        .chain((old.notify != new.notify).then(|| "[notify]".to_owned()))
        .collect()
}

/// What a change of these keys needs: the strongest effect among them, `None` for no keys.
pub fn reload_effect(keys: &[&Key]) -> Option<ReloadEffect> {
    keys.iter().map(|key| key.reload).max()
}

#[cfg(test)]
mod tests {
    use super::super::key::Section;
    use super::super::tables::keys_of;
    use super::super::tests::{SOURCE, defaults, parse, source};
    use super::super::{DiskWarn, LogConfig, LogFormat, LogLevel};
    use super::*;

    fn names(keys: &[&'static Key]) -> Vec<&'static str> {
        keys.iter().map(|key| key.name).collect()
    }

    #[test]
    fn a_reload_names_what_changed_and_what_it_needs() {
        let old = source("");
        let lines = [
            ("name = \"b\"", "name", ReloadEffect::Restart),
            ("password_env = \"SET\"", "password", ReloadEffect::Reconnect),
            ("server_id = 7", "server_id", ReloadEffect::Reconnect),
            ("start = \"latest\"", "start", ReloadEffect::NextEmptyFolder),
            ("fsync_mode = 0", "fsync_mode", ReloadEffect::Reconnect),
            ("fsync_interval = \"2s\"", "fsync_interval", ReloadEffect::Reconnect),
            ("ack_timeout = \"5s\"", "ack_timeout", ReloadEffect::Reconnect),
            ("ack_timeout_action = \"go_on\"", "ack_timeout_action", ReloadEffect::Reconnect),
            ("semi_sync = false", "semi_sync", ReloadEffect::Reconnect),
            ("heartbeat_period = \"6s\"", "heartbeat_period", ReloadEffect::Reconnect),
            ("net_read_timeout = \"16s\"", "net_read_timeout", ReloadEffect::Reconnect),
            ("watch_interval = \"3s\"", "watch_interval", ReloadEffect::Reconnect),
            ("connect_timeout = \"11s\"", "connect_timeout", ReloadEffect::Reconnect),
            ("backoff_min = \"200ms\"", "backoff_min", ReloadEffect::Reconnect),
            ("backoff_max = \"31s\"", "backoff_max", ReloadEffect::Reconnect),
            ("tls = \"required\"", "tls", ReloadEffect::Reconnect),
            ("on_gap = \"record\"", "on_gap", ReloadEffect::Reconnect),
            ("on_fork = \"withhold\"", "on_fork", ReloadEffect::Reconnect),
            ("on_stranger = \"follow\"", "on_stranger", ReloadEffect::Reconnect),
            ("archive = false", "archive", ReloadEffect::Reconnect),
        ];
        for (line, key, effect) in lines {
            let changed = changed_keys(&old, &source(line));
            assert_eq!((names(&changed), reload_effect(&changed)), (vec![key], Some(effect)), "{line}");
        }
        assert_eq!(changed_keys(&old, &old), Vec::<&Key>::new());
        assert_eq!(reload_effect(&[]), None);
        let some = [&SourceKeys::start, &SourceKeys::hosts, &SourceKeys::name];
        assert_eq!(reload_effect(&some), Some(ReloadEffect::Restart));

        let mut new = old.clone();
        new.hosts[0].port = 1;
        new.peers = new.hosts.clone();
        new.quorum = new.hosts.clone();
        new.user.push('x');
        new.password_file = Some("a".into());
        new.ack_after_replicas = 1;
        new.tls.ca = Some("a".into());
        new.tls.cert = Some("a".into());
        new.tls.key = Some("a".into());
        let changed = names(&changed_keys(&old, &new));
        let others = ["password_file", "ack_after_replicas", "quorum", "tls_ca", "tls_cert", "tls_key"];
        assert_eq!(changed, [&["hosts", "peers", "user"][..], &others].concat());
        // Told as a change of the password; without effect.
        let never = ["password_env", "busy_wait_us"];
        for key in keys_of(Section::Source).iter().filter(|key| !never.contains(&key.name)) {
            let is_noticed =
                lines.iter().any(|(_, name, _)| *name == key.name) || changed.contains(&key.name);
            assert!(is_noticed, "{}", key.name);
        }

        let mut new = defaults();
        assert_eq!(changed_global_keys(&defaults(), &new), Vec::<&str>::new());
        new.data_dir.push("x");
        new.disk_warn = DiskWarn::Off;
        new.admin.listen = None;
        new.log = LogConfig { level: LogLevel::Debug, format: LogFormat::Json };
        new.archive = parse(&format!("{SOURCE}[archive]\nurl = \"s3://b\"\n")).unwrap().config.archive;
        new.backup.keep = "7d".parse().ok();
        new.notify = parse(&format!("{SOURCE}[notify]\ncommand = \"x\"\n")).unwrap().config.notify;
        assert_eq!(
            changed_global_keys(&defaults(), &new),
            [
                "data_dir",
                "disk_warn",
                "admin.listen",
                "log.level",
                "log.format",
                "[archive]",
                "[backup]",
                "[notify]"
            ]
        );
    }
}
