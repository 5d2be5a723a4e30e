//! What a reread configuration changes.

use super::key::{ReloadEffect, Section};
use super::keys::key;
use super::settings::{Config, SourceConfig};

/// The keys of a source that differ, in the order of the example. A change of `password`, `password_file`,
/// `password_env` or of what they name is a change of `password`; where the password stays, of `password_file`.
pub fn changed_keys(old: &SourceConfig, new: &SourceConfig) -> Vec<&'static str> {
    // Taken apart whole, so that a new field does not compile before it is compared here.
    let SourceConfig {
        name,
        hosts,
        peers,
        user,
        password,
        password_file,
        server_id,
        start,
        fsync_mode,
        fsync_interval,
        ack_after_replicas,
        ack_timeout,
        ack_timeout_action,
        semi_sync,
        heartbeat_period,
        net_read_timeout,
        watch_interval,
        connect_timeout,
        backoff_min,
        backoff_max,
        tls,
        on_gap,
        on_fork,
        on_stranger,
        archive,
    } = old;
    let differs = [
        ("name", *name != new.name),
        ("hosts", *hosts != new.hosts),
        ("peers", *peers != new.peers),
        ("user", *user != new.user),
        ("password", *password != new.password),
        ("password_file", *password == new.password && *password_file != new.password_file),
        ("server_id", *server_id != new.server_id),
        ("start", *start != new.start),
        ("fsync_mode", *fsync_mode != new.fsync_mode),
        ("fsync_interval", *fsync_interval != new.fsync_interval),
        ("ack_after_replicas", *ack_after_replicas != new.ack_after_replicas),
        ("ack_timeout", *ack_timeout != new.ack_timeout),
        ("ack_timeout_action", *ack_timeout_action != new.ack_timeout_action),
        ("semi_sync", *semi_sync != new.semi_sync),
        ("heartbeat_period", *heartbeat_period != new.heartbeat_period),
        ("net_read_timeout", *net_read_timeout != new.net_read_timeout),
        ("watch_interval", *watch_interval != new.watch_interval),
        ("connect_timeout", *connect_timeout != new.connect_timeout),
        ("backoff_min", *backoff_min != new.backoff_min),
        ("backoff_max", *backoff_max != new.backoff_max),
        ("tls", tls.mode != new.tls.mode),
        ("tls_ca", tls.ca != new.tls.ca),
        ("tls_cert", tls.cert != new.tls.cert),
        ("tls_key", tls.key != new.tls.key),
        ("on_gap", *on_gap != new.on_gap),
        ("on_fork", *on_fork != new.on_fork),
        ("on_stranger", *on_stranger != new.on_stranger),
        ("archive", *archive != new.archive),
    ];
    differs.into_iter().filter_map(|(key, differs)| differs.then_some(key)).collect()
}

/// The keys outside the sources that differ and are in force only after a restart or at once, written as `data_dir`,
/// `admin.listen`. What else `[admin]` and `[serve]` say, and all of `[retention]`, holds at once, and is not among them.
pub fn changed_global_keys(old: &Config, new: &Config) -> Vec<&'static str> {
    let Config { data_dir, disk_warn, search_index, admin, log, serve, retention: _, archive, sources: _ } =
        old;
    let differs = [
        ("data_dir", *data_dir != new.data_dir),
        ("disk_warn", *disk_warn != new.disk_warn),
        ("search_index", *search_index != new.search_index),
        ("admin.listen", admin.listen != new.admin.listen),
        ("log.level", log.level != new.log.level),
        ("log.format", log.format != new.log.format),
        ("serve.listen", serve.listen != new.serve.listen),
        // Several of its keys mostly change together.
        ("[archive]", *archive != new.archive),
    ];
    differs.into_iter().filter_map(|(key, differs)| differs.then_some(key)).collect()
}

/// What a change of these keys of a source needs: the strongest effect among them, `None` for no keys.
///
/// # Panics
///
/// When a name is not a key of `[[source]]`.
pub fn reload_effect(keys: &[&str]) -> Option<ReloadEffect> {
    keys.iter().map(|name| key(Section::Source, name).reload).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{SOURCE, defaults, parse, source};
    use crate::{DiskWarn, LogConfig, LogFormat, LogLevel};

    #[test]
    fn a_reload_names_what_changed_and_what_it_needs() {
        let old = source("");
        for (line, key, effect) in [
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
        ] {
            let changed = changed_keys(&old, &source(line));
            assert_eq!((changed.as_slice(), reload_effect(&changed)), (&[key][..], Some(effect)), "{line}");
        }
        assert_eq!(changed_keys(&old, &old), Vec::<&str>::new());
        assert_eq!(reload_effect(&[]), None);
        assert_eq!(reload_effect(&["start", "hosts", "name"]), Some(ReloadEffect::Restart));

        let mut new = old.clone();
        new.hosts[0].port = 1;
        new.user.push('x');
        new.tls.ca = Some("a".into());
        new.tls.cert = Some("a".into());
        new.tls.key = Some("a".into());
        assert_eq!(changed_keys(&old, &new), ["hosts", "user", "tls_ca", "tls_cert", "tls_key"]);

        let mut new = defaults();
        assert_eq!(changed_global_keys(&defaults(), &new), Vec::<&str>::new());
        new.data_dir.push("x");
        new.disk_warn = DiskWarn::Off;
        new.admin.listen = None;
        new.log = LogConfig { level: LogLevel::Debug, format: LogFormat::Json };
        new.archive = parse(&format!("{SOURCE}[archive]\nurl = \"s3://b\"\n")).unwrap().config.archive;
        assert_eq!(
            changed_global_keys(&defaults(), &new),
            ["data_dir", "disk_warn", "admin.listen", "log.level", "log.format", "[archive]"]
        );
    }
}
