//! What is there on this machine: the configuration, the password file, and who is to own them.

#![allow(clippy::disallowed_methods, reason = "the operator's files, before there is a copy")]

use super::wish::Wish;
use config::password::process_environment;
use config::{Config, HostPort, SourceConfig};
use rustix::fs::{Access, access};
use std::path::{Path, PathBuf};

/// The system's account of binlogd (packaging/systemd/binlogd.sysusers.conf).
const SYSTEM_USER: &str = "binlogd";
/// Where accounts of the system stand.
const PASSWD: &str = "/etc/passwd";

/// What is there on this machine.
#[derive(Debug, Clone)]
pub struct Files {
    /// What the configuration says of the source.
    pub(crate) config: ConfigSeen,
    /// The file of the account's password: the one that the configuration names, or setup's own.
    pub password_file: PathBuf,
    /// It exists.
    pub(crate) has_password: bool,
    /// The folder of the copies: of the configuration where there is one.
    pub data_dir: PathBuf,
    /// User and group of binlogd, where it has an account of its own and we may give files away.
    pub owner: Option<Owner>,
    /// The folder of the copies is not there, and binlogd cannot make it: only root writes where it goes.
    pub(crate) needs_data_dir: bool,
    /// Why nothing can be written where files are to go.
    unwritable: Vec<String>,
}

/// A user of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// User id.
    pub(crate) uid: u32,
    /// Group id.
    pub(crate) gid: u32,
}

/// What the file that is to name the source says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConfigSeen {
    /// There is no such file.
    Absent,
    /// It is the example, with nothing of anybody's in it.
    Example,
    /// It has other sources, and not this one.
    Others,
    /// It has this source.
    Ours,
    /// It has something that does not go together with this source.
    Clash(String),
}

impl Files {
    /// Looks. Changes nothing.
    ///
    /// # Errors
    /// When the configuration cannot be understood.
    pub fn look(wish: &Wish) -> Result<Files, String> {
        let owner = rustix::process::geteuid().is_root().then(|| owner_in(&read_or_empty(PASSWD))).flatten();
        let mut files = Files {
            config: ConfigSeen::Absent,
            password_file: wish.password_file(),
            has_password: false,
            data_dir: wish.data_dir.clone(),
            owner,
            needs_data_dir: false,
            unwritable: Vec::new(),
        };
        if wish.config.exists() {
            files.read(wish)?;
        }
        // A file of its own that the configuration does not include yet has been written all the same.
        if let (Some(path), ConfigSeen::Absent | ConfigSeen::Others) = (&wish.source_file, &files.config) {
            files.config = match std::fs::read_to_string(path) {
                Err(_) if !path.exists() => ConfigSeen::Absent,
                Ok(text) if text == source_text(wish, &files.password_file) => ConfigSeen::Ours,
                Ok(_) => {
                    ConfigSeen::Clash(format!("{} exists, and is not what setup would write", path.display()))
                }
                Err(error) => return Err(format!("{} cannot be read: {error}", path.display())),
            };
        }
        files.has_password = files.password_file.exists();
        files.needs_data_dir = owner.is_some() && !files.data_dir.exists();
        let mut wanted = Vec::new();
        if !files.has_password {
            wanted.push(files.password_file.clone());
        }
        if matches!(files.config, ConfigSeen::Absent | ConfigSeen::Example) {
            wanted.push(wish.file().to_owned());
        }
        files.unwritable = wanted.iter().filter_map(|path| unwritable(path)).collect();
        files.unwritable.dedup();
        Ok(files)
    }

    fn read(&mut self, wish: &Wish) -> Result<(), String> {
        let shown = wish.config.display();
        let text = std::fs::read_to_string(&wish.config)
            .map_err(|error| format!("{shown} cannot be read: {error}"))?;
        if is_example(&text) {
            self.config = if wish.source_file.is_none() { ConfigSeen::Example } else { ConfigSeen::Absent };
            return Ok(());
        }
        let loaded = Config::load_with(&wish.config, &process_environment)
            .map_err(|error| format!("the configuration is there and cannot be used:\n{error}"))?;
        self.data_dir =
            std::path::absolute(&loaded.config.data_dir).unwrap_or(loaded.config.data_dir.clone());
        self.config = self.judge(wish, &loaded.config.sources);
        Ok(())
    }

    fn judge(&mut self, wish: &Wish, sources: &[SourceConfig]) -> ConfigSeen {
        let (shown, name, host) = (wish.config.display(), &wish.name, &wish.host);
        let of_host = sources.iter().find(|source| source.hosts.contains(host));
        let of_name = sources.iter().find(|source| source.name == *name);
        match (of_host, of_name) {
            (None, None) => ConfigSeen::Others,
            (Some(source), _) if source.name != *name => ConfigSeen::Clash(format!(
                "{shown} copies {host} already, as the source {}: give --name {}",
                source.name, source.name
            )),
            (_, Some(source)) if !source.hosts.contains(host) => ConfigSeen::Clash(format!(
                "{shown} has a source {name:?} with other hosts ({}). Where {host} has taken its place (a failover): put it first in \
                 hosts there, hosts = [\"{host}\", …], reload binlogd (systemctl reload binlogd), and run this again, which switches \
                 semi-sync on. Where it is another source: give it another name, with --name",
                source.hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
            )),
            (Some(source), _) if source.user != wish.account => ConfigSeen::Clash(format!(
                "{shown} has this source with the account {:?}: give --account {}",
                source.user, source.user
            )),
            (Some(source), _) if source.semi_sync != wish.semi_sync => ConfigSeen::Clash(format!(
                "{shown} has this source with semi_sync = {}: change it there, or give --semi-sync={}",
                source.semi_sync, source.semi_sync
            )),
            (Some(source), _) if !wish.quorum.is_empty() && source.quorum != wish.quorum => {
                ConfigSeen::Clash(format!(
                    "{shown} has this source with quorum = {}: to make it a node of this quorum write quorum = {} there, with listen in [serve], \
                 and restart binlogd",
                    in_list(&source.quorum),
                    in_list(&wish.quorum)
                ))
            }
            (Some(source), _) => match &source.password_file {
                Some(file) => {
                    self.password_file = std::path::absolute(file).unwrap_or(file.clone());
                    ConfigSeen::Ours
                }
                None => ConfigSeen::Clash(format!(
                    "{shown} has this source without password_file, and setup keeps passwords in files: put the password into {}, mode 0400, \
                     and password_file = {:?} into [[source]]",
                    self.password_file.display(),
                    self.password_file.display().to_string()
                )),
            },
            (None, Some(_)) => unreachable!("its hosts were looked at"),
        }
    }

    /// As on a machine on which everything can be written.
    #[cfg(test)]
    pub(crate) fn writable(mut self) -> Files {
        self.unwritable.clear();
        self
    }

    /// Why no file can be written, or the one that is there does not do.
    pub(crate) fn refusals(&self, wish: &Wish) -> Vec<String> {
        let mut refusals = self.unwritable.clone();
        if let ConfigSeen::Clash(why) = &self.config {
            refusals.push(why.clone());
        }
        if wish.config.exists()
            && !matches!(self.config, ConfigSeen::Absent | ConfigSeen::Example)
            && self.data_dir != wish.data_dir
        {
            let default = wish.data_dir == Path::new(super::wish::DATA_DIR);
            if !default {
                refusals.push(format!(
                    "{} has another data_dir, {}: leave --data-dir out",
                    wish.config.display(),
                    self.data_dir.display()
                ));
            }
        }
        refusals
    }
}

/// The whole configuration, of one source.
pub(crate) fn config_text(wish: &Wish, password_file: &Path) -> String {
    let head = "# Written by binlogd setup. Every key, with its meaning and default: binlogd config example";
    let data_dir = quoted(&wish.data_dir.display().to_string());
    let listen = wish.admin_listen.as_ref().map(|listen| format!("[admin]\nlisten = {}\n\n", quoted(listen)));
    let serve = wish.serve_listen().map(|listen| format!("[serve]\nlisten = {}\n\n", quoted(listen)));
    let source = source_text(wish, password_file);
    let (listen, serve) = (listen.unwrap_or_default(), serve.unwrap_or_default());
    format!("{head}\ndata_dir = {data_dir}\n\n{listen}{serve}{source}")
}

/// The source alone.
pub(crate) fn source_text(wish: &Wish, password_file: &Path) -> String {
    let mut lines = vec![
        "[[source]]".to_owned(),
        format!("name = {}", quoted(&wish.name)),
        format!("hosts = [{}]", quoted(&wish.host.to_string())),
        format!("user = {}", quoted(&wish.account)),
        format!("password_file = {}", quoted(&password_file.display().to_string())),
    ];
    if wish.tls_mode() != wire::TlsMode::Preferred {
        lines.push(format!("tls = {}", quoted(wish.tls_mode().as_str())));
    }
    if let Some(ca) = &wish.tls.ca {
        let ca = std::path::absolute(ca).unwrap_or(ca.clone());
        lines.push(format!("tls_ca = {}", quoted(&ca.display().to_string())));
    }
    if !wish.semi_sync {
        lines.push("semi_sync = false".to_owned());
    }
    if !wish.quorum.is_empty() {
        lines.push(format!("quorum = {}", in_list(&wish.quorum)));
    }
    lines.join("\n") + "\n"
}

fn in_list(nodes: &[HostPort]) -> String {
    let nodes: Vec<String> = nodes.iter().map(|node| quoted(&node.to_string())).collect();
    format!("[{}]", nodes.join(", "))
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Whether a configuration is the example as it comes (`binlogd config example`, a package): one source, with the two values that
/// stand there for a person to replace, and no password. Nothing is lost with it, and it is kept all the same.
fn is_example(text: &str) -> bool {
    let Ok(table) = text.parse::<toml::Table>() else { return false };
    let Some([toml::Value::Table(source)]) =
        table.get("source").and_then(toml::Value::as_array).map(Vec::as_slice)
    else {
        return false;
    };
    let hosts = toml::Value::Array(vec!["127.0.0.1:3306".into()]);
    let with_values = |table: &toml::Table| {
        table.values().any(|value| value.as_table().is_none_or(|table| !table.is_empty()))
    };
    let others: toml::Table = table
        .iter()
        .filter(|(key, _)| !["source", "data_dir", "include"].contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    source.len() == 2
        && source.get("hosts") == Some(&hosts)
        && source.get("user") == Some(&"repl".into())
        && !with_values(&others)
}

/// The account of binlogd in the text of /etc/passwd.
fn owner_in(passwd: &str) -> Option<Owner> {
    let line = passwd.lines().find(|line| line.split(':').next() == Some(SYSTEM_USER))?;
    let mut fields = line.split(':').skip(2);
    Some(Owner { uid: fields.next()?.parse().ok()?, gid: fields.next()?.parse().ok()? })
}

fn read_or_empty(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Why a file cannot be made at `path`; `None` when it can.
fn unwritable(path: &Path) -> Option<String> {
    let there = path.parent()?.ancestors().find(|folder| folder.exists())?;
    let error = access(there, Access::WRITE_OK).err()?;
    Some(format!(
        "nothing can be written in {} ({error}): run setup as root, or choose other places with --config and --data-dir",
        there.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::super::wish::wish;
    use super::*;
    use config::HostPort;
    use config::example::example;

    fn in_folder(folder: &Path) -> Wish {
        Wish { config: folder.join("binlogd.toml"), data_dir: folder.join("data"), ..wish() }
    }

    fn nodes() -> Vec<HostPort> {
        ["b", "c"].map(|host| HostPort { host: host.to_owned(), port: 3307 }).to_vec()
    }

    #[test]
    fn what_is_written_is_a_configuration_and_is_recognised() {
        let folder = tempfile::tempdir().unwrap();
        let ca = Some(folder.path().join("ca.pem"));
        for wish in [
            in_folder(folder.path()),
            Wish { name: "it.is_-1".to_owned(), require_ssl: true, ..in_folder(folder.path()) },
            Wish { admin_listen: Some("127.0.0.1:1".to_owned()), ..in_folder(folder.path()) },
            Wish { semi_sync: false, account: "a\"b".to_owned(), ..in_folder(folder.path()) },
            Wish { quorum: nodes(), ..in_folder(folder.path()) },
            Wish {
                tls: wire::TlsOptions { mode: wire::TlsMode::VerifyFull, ca, ..Default::default() },
                ..in_folder(folder.path())
            },
        ] {
            let before = Files::look(&wish).unwrap();
            assert_eq!((&before.config, before.has_password), (&ConfigSeen::Absent, false));
            std::fs::write(&before.password_file, "secret\n").unwrap();
            std::fs::write(folder.path().join("ca.pem"), "").unwrap();
            std::fs::write(&wish.config, config_text(&wish, &before.password_file)).unwrap();
            let after = Files::look(&wish).unwrap();
            assert_eq!((&after.config, after.has_password), (&ConfigSeen::Ours, true));
            assert_eq!(after.data_dir, wish.data_dir);
            let source = Config::load(&wish.config).unwrap().config.sources.remove(0);
            assert_eq!(
                (&source.name, &source.user, source.semi_sync),
                (&wish.name, &wish.account, wish.semi_sync)
            );
            assert_eq!(source.tls.mode, wish.tls_mode());
            assert_eq!(source.quorum, wish.quorum);
            std::fs::remove_file(&wish.config).unwrap();
            std::fs::remove_file(&after.password_file).unwrap();
        }
    }

    #[test]
    fn only_an_example_may_give_way() {
        assert!(is_example(&example()));
        assert!(is_example(
            "data_dir = \"/var/lib/binlogd\"\n[admin]\n[[source]]\nhosts = [\"127.0.0.1:3306\"]\nuser = \"repl\"\n"
        ));
        for text in [
            "",
            "include = \"conf.d/*.toml\"\n",
            "[[source]]\nhosts = [\"db1\"]\nuser = \"repl\"\n",
            "[[source]]\nhosts = [\"127.0.0.1:3306\"]\nuser = \"repl\"\nname = \"a\"\n",
            "disk_warn = \"5%\"\n[[source]]\nhosts = [\"127.0.0.1:3306\"]\nuser = \"repl\"\n",
            "[admin]\nlisten = \"off\"\n[[source]]\nhosts = [\"127.0.0.1:3306\"]\nuser = \"repl\"\n",
        ] {
            assert!(!is_example(text), "{text}");
        }
    }

    #[test]
    fn other_sources_stay_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let wish = in_folder(folder.path());
        let seen = |wish: &Wish, text: &str| {
            std::fs::write(&wish.config, text).unwrap();
            Files::look(wish).map(|files| (files.config.clone(), files.refusals(wish)))
        };
        let one = "data_dir = \"elsewhere\"\n[[source]]\nname = \"other\"\nhosts = [\"db2\"]\nuser = \"u\"\n";
        assert_eq!(seen(&wish, one).unwrap().0, ConfigSeen::Others);
        // A data_dir that was asked for, and is not the file's, is a mistake.
        assert!(seen(&wish, one).unwrap().1[0].contains("has another data_dir"));
        let same = Wish { host: HostPort { host: "db2".to_owned(), port: 3306 }, ..wish.clone() };
        let (clash, refusals) = seen(&same, one).unwrap();
        assert!(matches!(&clash, ConfigSeen::Clash(why) if why.ends_with("give --name other")), "{clash:?}");
        assert!(!refusals.is_empty());
        for (account, semi_sync, words) in [
            ("binlogd", true, "give --account u"),
            ("u", true, "without password_file"),
            ("u", false, "--semi-sync=true"),
        ] {
            let named =
                Wish { name: "other".to_owned(), account: account.to_owned(), semi_sync, ..same.clone() };
            assert!(matches!(seen(&named, one).unwrap().0, ConfigSeen::Clash(why) if why.contains(words)));
        }
        let node =
            Wish { name: "other".to_owned(), account: "u".to_owned(), quorum: nodes(), ..same.clone() };
        let (clash, _) = seen(&node, one).unwrap();
        let words = "with quorum = []: to make it a node of this quorum write quorum = [\"b:3307\", \"c:3307\"] there";
        assert!(matches!(&clash, ConfigSeen::Clash(why) if why.contains(words)), "{clash:?}");
        // The host was promoted.
        let promoted = Wish { name: "other".to_owned(), ..wish.clone() };
        let (clash, _) = seen(&promoted, one).unwrap();
        let words =
            format!("with other hosts (db2:3306). Where {} has taken its place (a failover)", wish.host);
        assert!(matches!(&clash, ConfigSeen::Clash(why) if why.contains(&words)), "{clash:?}");
        assert!(seen(&wish, "[[source]]\n").unwrap_err().contains("cannot be used"));
    }

    #[test]
    fn a_file_of_its_own_is_written_beside_the_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("conf.d/orders.toml");
        let wish = Wish { source_file: Some(file.clone()), ..in_folder(folder.path()) };
        let other = format!(
            "data_dir = {:?}\n[[source]]\nname = \"other\"\nhosts = [\"db2\"]\nuser = \"u\"\n",
            wish.data_dir
        );
        std::fs::write(&wish.config, other).unwrap();
        assert_eq!(Files::look(&wish).unwrap().config, ConfigSeen::Absent);
        std::fs::create_dir(file.parent().unwrap()).unwrap();
        std::fs::write(&file, source_text(&wish, &wish.password_file())).unwrap();
        assert_eq!(Files::look(&wish).unwrap().config, ConfigSeen::Ours);
        std::fs::write(&file, "").unwrap();
        assert!(matches!(Files::look(&wish).unwrap().config, ConfigSeen::Clash(_)));
    }

    #[test]
    fn the_owner_is_an_account_of_the_system() {
        let passwd = "root:x:0:0::/root:/bin/sh\nbinlogd2:x:7:8::/:\nbinlogd:x:998:997:keeper:/var/lib/binlogd:/usr/sbin/nologin\n";
        assert_eq!(owner_in(passwd), Some(Owner { uid: 998, gid: 997 }));
        assert_eq!(owner_in("root:x:0:0::/root:/bin/sh\n"), None);
    }
}
