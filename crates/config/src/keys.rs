//! Every key of the configuration, once: default, allowed values, explanation, flag, and what a reload does with it.
//!
//! The parser takes defaults and ranges from here, `binlogd config example` its text, `binlogd run --help` its flags.

use super::key::{Absent, Key, Kind, ReloadEffect, Section};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const TEN_YEARS: Duration = Duration::from_secs(3650 * 86_400);

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// The key `name` of `section`. Panics when there is none: callers name keys in their own code, and tests run them all.
pub fn key(section: Section, name: &str) -> &'static Key {
    KEYS.iter()
        .find(|key| key.section == section && key.name == name)
        .unwrap_or_else(|| panic!("no key {name} in {}", section.title()))
}

/// The keys of a section, in the order of the example.
pub fn keys_of(section: Section) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| key.section == section)
}

/// Every key, in the order of the example.
pub static KEYS: &[Key] = &[
    Key {
        section: Section::Root,
        name: "data_dir",
        flag: Some("data-dir"),
        kind: Kind::Path,
        absent: Absent::Default("\"./data\""),
        reload: ReloadEffect::Restart,
        about: "Folder of the copies, one folder a source inside. It is created when it does not exist.\n\
                A relative path in a configuration file counts from the file's own folder.",
    },
    Key {
        section: Section::Root,
        name: "disk_warn",
        flag: Some("disk-warn"),
        kind: Kind::Space,
        absent: Absent::Default("\"10%\""),
        reload: ReloadEffect::AtOnce,
        about: "Free space of the file system of data_dir below which the log warns, once, and status, /status and \
                /metrics show it. When the disk is full nothing is acknowledged any more.",
    },
    Key {
        section: Section::Root,
        name: "search_index",
        flag: Some("search-index"),
        kind: Kind::Boolean,
        absent: Absent::Default("true"),
        reload: ReloadEffect::Restart,
        about: "Whether finished files get search indexes, in the background and slowly: with them binlogd find passes over files and \
                parts of files. They take 0.5 % of the log's space at most. Without them binlogd find makes what it lacks.",
    },
    Key {
        section: Section::Root,
        name: "include",
        flag: None,
        kind: Kind::Patterns,
        absent: Absent::Unset("\"conf.d/*.toml\""),
        reload: ReloadEffect::AtOnce,
        about: "Further files with [[source]] tables, and [[serve.user]] tables for their readers, and nothing else: a path, a \
                pattern with * or ?, or a list of them, counted from this file's folder. Files of a pattern are read in \
                the order of their names; hidden ones are left out. A pattern may match nothing; a file that is named must be there, and so \
                must the folder. Paths inside such a file count from that file's own folder. SIGHUP starts sources that are new, and stops those that are gone; their files stay.",
    },
    Key {
        section: Section::Admin,
        name: "listen",
        flag: Some("admin-listen"),
        kind: Kind::Listen,
        absent: Absent::Default("\"127.0.0.1:9306\""),
        reload: ReloadEffect::Restart,
        about: "Address of the web page, /status, /metrics and /healthz over HTTP. Whoever reaches it may read them, unless there is an \
                [[admin.user]]: keep it on a private address.\n\
                \"off\" opens no port.",
    },
    Key {
        section: Section::Admin,
        name: "tls_cert",
        flag: Some("admin-tls-cert"),
        kind: Kind::Path,
        absent: Absent::Unset("\"admin-cert.pem\""),
        reload: ReloadEffect::AtOnce,
        about: "PEM file of the certificate, with tls_key: then this address speaks HTTPS only. binlogd status goes on to find the daemon \
                by the data folder.",
    },
    Key {
        section: Section::Admin,
        name: "tls_key",
        flag: Some("admin-tls-key"),
        kind: Kind::Path,
        absent: Absent::Unset("\"admin-key.pem\""),
        reload: ReloadEffect::AtOnce,
        about: "PEM file of its private key.",
    },
    Key {
        section: Section::Admin,
        name: "write",
        flag: Some("admin-write"),
        kind: Kind::Boolean,
        absent: Absent::Default("false"),
        reload: ReloadEffect::AtOnce,
        about: "Whether a source's page can stop and start receiving, end a reader and drop a slot. Where there is an [[admin.user]], \
                only for those with write = true. Without one, listen must be a loopback address: then whoever has an account on this machine may.",
    },
    Key {
        section: Section::AdminUser,
        name: "name",
        flag: None,
        kind: Kind::Text,
        absent: Absent::Unset("\"dba\""),
        reload: ReloadEffect::AtOnce,
        about: "Name to log in with (HTTP basic authentication). It must be given.",
    },
    Key {
        section: Section::AdminUser,
        name: "password",
        flag: None,
        kind: Kind::Secret,
        absent: Absent::Unset("\"dba's secret\""),
        reload: ReloadEffect::AtOnce,
        about: "The password: one of these four keys must be given.",
    },
    Key {
        section: Section::AdminUser,
        name: "password_file",
        flag: None,
        kind: Kind::Path,
        absent: Absent::Unset("\"dba.password\""),
        reload: ReloadEffect::AtOnce,
        about: "File that holds the password and nothing else; a newline at its end does not count.",
    },
    Key {
        section: Section::AdminUser,
        name: "password_env",
        flag: None,
        kind: Kind::Text,
        absent: Absent::Unset("\"DBA_PASSWORD\""),
        reload: ReloadEffect::AtOnce,
        about: "Environment variable that holds the password.",
    },
    Key {
        section: Section::AdminUser,
        name: "password_hash",
        flag: None,
        kind: Kind::Secret,
        absent: Absent::Unset("\"sha256:…\""),
        reload: ReloadEffect::AtOnce,
        about: "A hash instead, in one of the forms of [[serve.user]]: sha256: and the 64 hexadecimal digits of \
                SHA256(SHA256(password)).",
    },
    Key {
        section: Section::AdminUser,
        name: "write",
        flag: None,
        kind: Kind::Boolean,
        absent: Absent::Unset("true"),
        reload: ReloadEffect::AtOnce,
        about: "Whether the user may change something on the page, where write of [admin] is true; false where it is not given. Others may look.",
    },
    Key {
        section: Section::Log,
        name: "level",
        flag: Some("log-level"),
        kind: Kind::Choice(&[
            ("error", "what needs an operator"),
            ("warn", "also what may need one soon"),
            ("info", "also each change of state"),
            ("debug", "also each step of the protocol"),
            ("trace", "also each packet"),
        ]),
        absent: Absent::Default("\"info\""),
        reload: ReloadEffect::AtOnce,
        about: "Least severe message to write. Messages go to standard error.",
    },
    Key {
        section: Section::Log,
        name: "format",
        flag: Some("log-format"),
        kind: Kind::Choice(&[("text", "one readable line a message"), ("json", "one JSON object a line")]),
        absent: Absent::Default("\"text\""),
        reload: ReloadEffect::Restart,
        about: "Shape of a message.",
    },
    Key {
        section: Section::Serve,
        name: "listen",
        flag: Some("serve"),
        kind: Kind::Listen,
        absent: Absent::Default("\"off\""),
        reload: ReloadEffect::Restart,
        about: "Address at which replicas and log readers find the copy, by the protocol of MySQL and MariaDB. They log in as a \
                [[serve.user]], or, where there is none, with the user and password of a [[source]], and are served that source.",
    },
    Key {
        section: Section::Serve,
        name: "tls_cert",
        flag: Some("serve-tls-cert"),
        kind: Kind::Path,
        absent: Absent::Unset("\"server-cert.pem\""),
        reload: ReloadEffect::AtOnce,
        about: "PEM file of the certificate to show to readers, with tls_key. Without it binlogd makes one: see \
                auto_generate_certs. A reload reads both files again; readers that are connected stay so.",
    },
    Key {
        section: Section::Serve,
        name: "tls_key",
        flag: Some("serve-tls-key"),
        kind: Kind::Path,
        absent: Absent::Unset("\"server-key.pem\""),
        reload: ReloadEffect::AtOnce,
        about: "PEM file of its private key.",
    },
    Key {
        section: Section::Serve,
        name: "auto_generate_certs",
        flag: Some("serve-auto-generate-certs"),
        kind: Kind::Boolean,
        absent: Absent::Default("true"),
        reload: ReloadEffect::AtOnce,
        about: "Whether to make a certificate in the data folder where tls_cert is not given, as MySQL does: ca.pem, \
                server-cert.pem and server-key.pem, valid for ten years. With false and without tls_cert there is no TLS for readers.",
    },
    Key {
        section: Section::Serve,
        name: "require_tls",
        flag: Some("serve-require-tls"),
        kind: Kind::Boolean,
        absent: Absent::Default("false"),
        reload: ReloadEffect::AtOnce,
        about: "Whether to refuse readers that do not encrypt, with error 3159.",
    },
    Key {
        section: Section::Serve,
        name: "max_connections",
        flag: Some("serve-max-connections"),
        kind: Kind::Number { min: 1, max: 100_000 },
        absent: Absent::Default("500"),
        reload: ReloadEffect::AtOnce,
        about: "Most readers that are logged in at a time. One more is refused with error 1040, as a server does. Fewer where the \
                limit of open files leaves room for fewer beside the sources; binlogd says so when it starts. Connections that have \
                not logged in have room of their own, a quarter of this.",
    },
    Key {
        section: Section::Serve,
        name: "max_failed_logins",
        flag: Some("serve-max-failed-logins"),
        kind: Kind::Number { min: 1, max: 100_000 },
        absent: Absent::Default("20"),
        reload: ReloadEffect::AtOnce,
        about: "Failed logins from one address, of IPv6 from one /64, within a minute after which it is refused, with error 1129, \
                until a minute has passed.",
    },
    Key {
        section: Section::Serve,
        name: "max_statement_bytes",
        flag: Some("serve-max-statement-bytes"),
        kind: Kind::Number { min: 1024, max: 16_777_215 },
        absent: Absent::Default("1048576"),
        reload: ReloadEffect::AtOnce,
        about: "Longest statement, or request for a dump with its GTID set, in bytes. A longer one is refused with error 1153.",
    },
    Key {
        section: Section::Serve,
        name: "slots",
        flag: Some("serve-slots"),
        kind: Kind::Boolean,
        absent: Absent::Default("false"),
        reload: ReloadEffect::AtOnce,
        about: "Whether each replica that says its UUID has a slot of that name: its place is remembered, and [retention] keeps what \
                it has not read, up to slot_max_age and slot_max_bytes. Some log readers make up another UUID at each connection, so \
                it is off; slot of a [[serve.user]] gives chosen readers a slot.",
    },
    Key {
        section: Section::ServeUser,
        name: "name",
        flag: None,
        kind: Kind::Text,
        absent: Absent::Unset("\"reader\""),
        reload: ReloadEffect::AtOnce,
        about: "Name with which a reader logs in. It must be given.",
    },
    Key {
        section: Section::ServeUser,
        name: "password",
        flag: None,
        kind: Kind::Secret,
        absent: Absent::Unset("\"reader's secret\""),
        reload: ReloadEffect::AtOnce,
        about: "Its password: one of these four keys must be given.",
    },
    Key {
        section: Section::ServeUser,
        name: "password_file",
        flag: None,
        kind: Kind::Path,
        absent: Absent::Unset("\"reader.password\""),
        reload: ReloadEffect::AtOnce,
        about: "File that holds the password and nothing else; a newline at its end does not count.",
    },
    Key {
        section: Section::ServeUser,
        name: "password_env",
        flag: None,
        kind: Kind::Text,
        absent: Absent::Unset("\"READER_PASSWORD\""),
        reload: ReloadEffect::AtOnce,
        about: "Environment variable that holds the password.",
    },
    Key {
        section: Section::ServeUser,
        name: "password_hash",
        flag: None,
        kind: Kind::Secret,
        absent: Absent::Unset("\"*6BB4837EB74329105EE4568DDA7DC67ED2CA2AD9\""),
        reload: ReloadEffect::AtOnce,
        about: concat!(
            "What a method of authentication needs instead of the password. Only that method then works:\n",
            "  sha256:<64 hex digits>   caching_sha2_password: SHA256(SHA256(password))\n",
            "  *<40 hex digits>         mysql_native_password, as servers print it\n",
            "  <43 letters>             ed25519, as MariaDB prints it",
        ),
    },
    Key {
        section: Section::ServeUser,
        name: "sources",
        flag: None,
        kind: Kind::Names,
        absent: Absent::Unset("[\"orders\"]"),
        reload: ReloadEffect::AtOnce,
        about: "Name of the source that the user is served, as a list of one: nothing in a login tells which of several is meant. \
                It may be left out where there is one [[source]].",
    },
    Key {
        section: Section::ServeUser,
        name: "privileges",
        flag: None,
        kind: Kind::Choices(&[
            ("read", "dumps, and SHOW of binary logs and of replication"),
            ("purge", "PURGE BINARY LOGS"),
            ("control", "START and STOP REPLICA; KILL of other users' connections, and the sight of these"),
            ("all", "all of them"),
        ]),
        absent: Absent::Unset("[\"read\", \"purge\"]"),
        reload: ReloadEffect::AtOnce,
        about: "What the user may do; without it, read. A connection keeps what it had when it logged in. The account of a [[source]] may read and \
                nothing else.",
    },
    Key {
        section: Section::ServeUser,
        name: "slot",
        flag: None,
        kind: Kind::Name,
        absent: Absent::Unset("\"warehouse\""),
        reload: ReloadEffect::AtOnce,
        about: "Name of the slot of this user's reader: its place is remembered while it is away, and [retention] keeps what it has \
                not read, up to slot_max_age and slot_max_bytes. One reader a slot, known by its server_id: a second one is refused while the first is \
                connected, and while it is away no other reader moves its slot. A reader without a server_id (mysqlbinlog without \
                --stop-never) has none.",
    },
    Key {
        section: Section::ServeUser,
        name: "stop_before",
        flag: None,
        kind: Kind::Point,
        absent: Absent::Unset("\"3e11fa47-71ca-11e1-9e33-c80aa9429562:51\""),
        reload: ReloadEffect::AtOnce,
        about: concat!(
            "Dumps stop before this point: a replica gets everything that comes before, and then nothing more, though its \
             connection stays. Transactions stay whole. One of:\n",
            "  \"<GTID set>\"               before the first transaction of the set\n",
            "  \"0-1-100,7-1-5\"            MariaDB: before the first of these transactions\n",
            "  \"mysql-bin.000007:1234\"    before the first transaction that begins there or later\n",
            "  \"2026-11-23T06:30:00Z\"     before the first transaction that was committed then or later",
        ),
    },
    Key {
        section: Section::ServeUser,
        name: "stop_after",
        flag: None,
        kind: Kind::Point,
        absent: Absent::Unset("\"mysql-bin.000007:1234\""),
        reload: ReloadEffect::AtOnce,
        about: "As stop_before, behind that point: when all transactions of the set have been sent, or each of these of MariaDB; \
                with a position or a time, before the first transaction that begins, or was committed, later.",
    },
    Key {
        section: Section::ServeUser,
        name: "delay",
        flag: None,
        kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(10 * 365 * 86_400) },
        absent: Absent::Unset("\"1h\""),
        reload: ReloadEffect::AtOnce,
        about: "A transaction is sent when it was committed at least so long ago, by the clock of this machine.",
    },
    Key {
        section: Section::Retention,
        name: "max_age",
        flag: Some("retention-max-age"),
        kind: Kind::Duration { min: MINUTE, max: TEN_YEARS },
        absent: Absent::Unset("\"30d\""),
        reload: ReloadEffect::AtOnce,
        about: "Delete files that the source sealed longer ago than this: when, its own clock says; how long ago, that of this machine.",
    },
    Key {
        section: Section::Retention,
        name: "max_bytes",
        flag: Some("retention-max-bytes"),
        kind: Kind::Bytes,
        absent: Absent::Unset("\"500GiB\""),
        reload: ReloadEffect::AtOnce,
        about: "Delete the oldest file as long as the files of the source are larger than this together.",
    },
    Key {
        section: Section::Retention,
        name: "max_files",
        flag: Some("retention-max-files"),
        kind: Kind::Number { min: 2, max: 10_000_000 },
        absent: Absent::Unset("1000"),
        reload: ReloadEffect::AtOnce,
        about: "Delete the oldest file as long as the source has more files than this.",
    },
    Key {
        section: Section::Retention,
        name: "slot_max_age",
        flag: Some("retention-slot-max-age"),
        kind: Kind::Duration { min: MINUTE, max: TEN_YEARS },
        absent: Absent::Default("\"7d\""),
        reload: ReloadEffect::AtOnce,
        about: "A slot whose reader has been away longer than this keeps nothing: a reader that nobody remembers must not fill the disk. \
                Only time in which binlogd serves counts.",
    },
    Key {
        section: Section::Retention,
        name: "slot_max_bytes",
        flag: Some("retention-slot-max-bytes"),
        kind: Kind::Bytes,
        absent: Absent::Unset("\"100GiB\""),
        reload: ReloadEffect::AtOnce,
        about: "A slot whose reader is behind by more than this keeps nothing.",
    },
    Key {
        section: Section::Retention,
        name: "slot_margin",
        flag: Some("retention-slot-margin"),
        kind: Kind::Duration { min: ms(0), max: TEN_YEARS },
        absent: Absent::Default("\"1h\""),
        reload: ReloadEffect::AtOnce,
        about: "A slot keeps what its reader was sent within this time before its place too, and 16 MiB: what was sent may be lost on \
                the way, and a replica with relay_log_recovery asks again, after a crash, for what it had not applied. Give more than \
                your replicas lag. 0s keeps the file before the place and no more.",
    },
    Key {
        section: Section::Archive,
        name: "url",
        flag: Some("archive-url"),
        kind: Kind::ArchiveUrl,
        absent: Absent::Unset("\"s3://bucket/binlogd\""),
        reload: ReloadEffect::Restart,
        about: concat!(
            "Where the archive is. Several binlogds may share it, each with names of sources of its own. One of:\n",
            "  s3://bucket/prefix      S3, or a store that speaks its protocol: see endpoint\n",
            "  gs://bucket/prefix      Google Cloud Storage\n",
            "  az://container/prefix   Azure Blob Storage, of the account AZURE_STORAGE_ACCOUNT_NAME\n",
            "  file:///folder          a folder, of another disk or mounted; it needs hard links, and is created if the\n",
            "                          folder around it is there",
        ),
    },
    Key {
        section: Section::Archive,
        name: "endpoint",
        flag: Some("archive-endpoint"),
        kind: Kind::Text,
        absent: Absent::Unset("\"https://minio.example.com:9000\""),
        reload: ReloadEffect::Restart,
        about: "Address of the store where it is not the provider's own. Of Azure with the account, as in \
                https://account.blob.core.windows.net. Not for file://.",
    },
    Key {
        section: Section::Archive,
        name: "region",
        flag: Some("archive-region"),
        kind: Kind::Text,
        absent: Absent::Unset("\"eu-central-1\""),
        reload: ReloadEffect::Restart,
        about: "Region of the bucket, for s3:// only. Without it AWS_REGION, AWS_DEFAULT_REGION or the profile's, else us-east-1.",
    },
    Key {
        section: Section::Archive,
        name: "path_style",
        flag: Some("archive-path-style"),
        kind: Kind::Boolean,
        absent: Absent::Unset("true"),
        reload: ReloadEffect::Restart,
        about: "Whether requests name the bucket in the path, and not in the host's name; for s3:// only. Without it: true where there is \
                an endpoint.",
    },
    Key {
        section: Section::Archive,
        name: "allow_http",
        flag: Some("archive-allow-http"),
        kind: Kind::Boolean,
        absent: Absent::Unset("true"),
        reload: ReloadEffect::Restart,
        about: "Whether to go on without TLS, false where it is not given: needed for an endpoint that begins with http://, and refused \
                without one. What is not encrypted by recipients is then read by whoever sees the network.",
    },
    Key {
        section: Section::Archive,
        name: "level",
        flag: Some("archive-level"),
        kind: Kind::Number { min: 1, max: 19 },
        absent: Absent::Unset("3"),
        reload: ReloadEffect::Restart,
        about: "How hard zstd tries to make objects small; 3 where it is not given. Transactions that the source has compressed are not \
                compressed again.",
    },
    Key {
        section: Section::Archive,
        name: "recipients",
        flag: None,
        kind: Kind::Texts,
        absent: Absent::Unset("[\"age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p\"]"),
        reload: ReloadEffect::Restart,
        about: "Public keys of age (age1…) or SSH (ssh-ed25519, ssh-rsa): history is encrypted so that whoever has the private key of one \
                of them can read it, and this machine cannot. Without recipients and recipients_file nothing is encrypted.",
    },
    Key {
        section: Section::Archive,
        name: "recipients_file",
        flag: Some("archive-recipients-file"),
        kind: Kind::Path,
        absent: Absent::Unset("\"archive.recipients\""),
        reload: ReloadEffect::Restart,
        about: "File of further such keys, one a line, as age -R reads it.",
    },
    Key {
        section: Section::Archive,
        name: "identity",
        flag: None,
        kind: Kind::Paths,
        absent: Absent::Unset("[\"archive.key\"]"),
        reload: ReloadEffect::Restart,
        about: "Files with private keys, which open what is encrypted when it is read back here: for readers of old files, and to begin \
                from the archive. None of them may be protected by a passphrase: nobody can be asked.",
    },
    Key {
        section: Section::Archive,
        name: "interval",
        flag: Some("archive-interval"),
        kind: Kind::Duration { min: ms(1000), max: HOUR },
        absent: Absent::Unset("\"10s\""),
        reload: ReloadEffect::Restart,
        about: "Longest time for which new transactions wait before they are uploaded, 10s where it is not given: so much may the archive \
                lack when this machine is lost.",
    },
    Key {
        section: Section::Archive,
        name: "bandwidth",
        flag: Some("archive-bandwidth"),
        kind: Kind::Bytes,
        absent: Absent::Unset("\"20MiB\""),
        reload: ReloadEffect::Restart,
        about: "Most bytes a second that are uploaded, of all sources together. Without it there is no limit.",
    },
    Key {
        section: Section::Archive,
        name: "concurrency",
        flag: Some("archive-concurrency"),
        kind: Kind::Number { min: 1, max: 32 },
        absent: Absent::Unset("4"),
        reload: ReloadEffect::Restart,
        about: "Most uploads at a time; 4 where it is not given.",
    },
    Key {
        section: Section::Archive,
        name: "cache_size",
        flag: Some("archive-cache-size"),
        kind: Kind::Bytes,
        absent: Absent::Unset("\"4GiB\""),
        reload: ReloadEffect::Restart,
        about: "Most bytes of a source that are kept in data_dir of what was fetched for readers of files that were purged here; 1GiB where \
                it is not given. While disk_warn is passed, or a twentieth of the disk is not free, nothing is kept.",
    },
    Key {
        section: Section::Archive,
        name: "verify_interval",
        flag: Some("archive-verify-interval"),
        kind: Kind::Duration { min: ms(0), max: TEN_YEARS },
        absent: Absent::Unset("\"1d\""),
        reload: ReloadEffect::Restart,
        about: "How often the archive is verified beside the uploads, 1d where it is not given: all commits, whether the store lists every \
                object with its length, and of some objects the bytes. What is found stands in the status. 0s switches it off.",
    },
    Key {
        section: Section::Archive,
        name: "verify_sample",
        flag: Some("archive-verify-sample"),
        kind: Kind::Number { min: 1, max: 1_000_000 },
        absent: Absent::Unset("100"),
        reload: ReloadEffect::Restart,
        about: "One of so many objects is read back and compared each time, 100 where it is not given: others each time, so that so many \
                runs come to all. 1 reads the whole archive each time, which some stores charge for.",
    },
    Key {
        section: Section::Archive,
        name: "single_writer",
        flag: Some("archive-single-writer"),
        kind: Kind::Boolean,
        absent: Absent::Unset("true"),
        reload: ReloadEffect::Restart,
        about: "Whether to go on with a store that ignores conditions and overwrites what is there; false where it is not given. It says \
                that never more than one binlogd writes to the archive of a source: two would destroy it. binlogd doctor --archive tells \
                whether a store needs it.",
    },
    Key {
        section: Section::Source,
        name: "name",
        flag: Some("name"),
        kind: Kind::Name,
        absent: Absent::Default("\"default\""),
        reload: ReloadEffect::Restart,
        about: "Name of the source in status and metrics, and of its folder below data_dir. With several sources each needs \
                its own. It does not follow from the host, so that a copy stays where it is when the source moves.",
    },
    Key {
        section: Section::Source,
        name: "hosts",
        flag: None,
        kind: Kind::Hosts,
        absent: Absent::Required("[\"127.0.0.1:3306\"]"),
        reload: ReloadEffect::Reconnect,
        about: "Addresses of the source, tried in order; several when a failover can move it. A host that is read-only, or that \
                lacks what the copy holds, is taken only when no better one is found. Without a port: 3306.",
    },
    Key {
        section: Section::Source,
        name: "peers",
        flag: Some("peers"),
        kind: Kind::Hosts,
        absent: Absent::Unset("[\"binlogd2:3307\"]"),
        reload: ReloadEffect::Reconnect,
        about: "Ports for readers ([serve] listen) of other binlogds of this source. They are asked for what they have and \
                this copy lacks when the source is gone, before another server is followed, and before a gap counts, with user, \
                password and tls of this source. They are never taken for the source. Until they have answered, [retention] keeps the \
                end of older timelines. Without a port: 3306.",
    },
    Key {
        section: Section::Source,
        name: "user",
        flag: None,
        kind: Kind::Text,
        absent: Absent::Required("\"repl\""),
        reload: ReloadEffect::Reconnect,
        about: "Account on the source. It needs REPLICATION SLAVE.",
    },
    Key {
        section: Section::Source,
        name: "password",
        flag: None,
        kind: Kind::Secret,
        absent: Absent::Unset("\"secret\""),
        reload: ReloadEffect::Reconnect,
        about: "Its password: at most one of these three keys. Without them the environment variable BINLOGD_PASSWORD \
                counts, and without that the account has none. A file with a password should have mode 0600.",
    },
    Key {
        section: Section::Source,
        name: "password_file",
        flag: Some("password-file"),
        kind: Kind::Path,
        absent: Absent::Unset("\"binlogd.password\""),
        reload: ReloadEffect::Reconnect,
        about: "File that holds the password and nothing else; a newline at its end does not count. It is read again at each \
                connection.",
    },
    Key {
        section: Section::Source,
        name: "password_env",
        flag: None,
        kind: Kind::Text,
        absent: Absent::Unset("\"REPL_PASSWORD\""),
        reload: ReloadEffect::Reconnect,
        about: "Environment variable that holds the password.",
    },
    Key {
        section: Section::Source,
        name: "server_id",
        flag: Some("server-id"),
        kind: Kind::Number { min: 1, max: 4_294_967_295 },
        absent: Absent::Unset("4100000001"),
        reload: ReloadEffect::Reconnect,
        about: "Replication server id, unique among the source and all its replicas. Without it binlogd chooses one at \
                random and remembers it.",
    },
    Key {
        section: Section::Source,
        name: "start",
        flag: Some("start"),
        kind: Kind::Start,
        absent: Absent::Default("\"resume\""),
        reload: ReloadEffect::NextEmptyFolder,
        about: concat!(
            "Where to begin while nothing has been copied from this source. Once there is a copy, binlogd continues it, ",
            "whatever stands here: a restart neither skips nor repeats anything.\n",
            "The copy holds whole files, so that each finished file is byte-identical to the source's. Every choice ",
            "therefore begins at the start of one of the source's files:\n",
            "  resume                   the oldest file that the source still has\n",
            "  earliest                 the same, said outright\n",
            "  latest                   the file that the source is writing now\n",
            "  gtid:<set>               the file of the first transaction outside the set, which is\n",
            "                           MySQL's (uuid:1-100) or a MariaDB position (0-1-100)\n",
            "  file:<name>:<position>   that file; the position is inside it, at least 4",
        ),
    },
    Key {
        section: Section::Source,
        name: "fsync_mode",
        flag: Some("fsync-mode"),
        kind: Kind::Choice(&[
            ("0", "written: survives a crash of binlogd, not of its machine"),
            ("1", "on stable storage: survives both"),
        ]),
        absent: Absent::Default("1"),
        reload: ReloadEffect::Reconnect,
        about: "How safe a transaction must be before it is acknowledged.",
    },
    Key {
        section: Section::Source,
        name: "fsync_interval",
        flag: Some("fsync-interval"),
        kind: Kind::Duration { min: ms(10), max: MINUTE },
        absent: Absent::Default("\"1s\""),
        reload: ReloadEffect::Reconnect,
        about: "Longest time that received bytes stay unsynced when no acknowledgement asks for a sync: with fsync_mode = 0, \
                and without semi-sync.",
    },
    Key {
        section: Section::Source,
        name: "ack_after_replicas",
        flag: Some("ack-after-replicas"),
        kind: Kind::Number { min: 0, max: 100 },
        absent: Absent::Default("0"),
        reload: ReloadEffect::Reconnect,
        about: "How many different receivers that read from this binlogd with semi-sync (a second binlogd, or replicas) must have \
                confirmed a transaction before it is acknowledged to the source. 1: a commit returns when two machines have it. It needs \
                listen in [serve]. A MySQL replica is as durable as its sync_relay_log, a binlogd as its fsync_mode.",
    },
    Key {
        section: Section::Source,
        name: "ack_timeout",
        flag: Some("ack-timeout"),
        kind: Kind::Duration { min: ms(10), max: HOUR },
        absent: Absent::Default("\"10s\""),
        reload: ReloadEffect::Reconnect,
        about: "How long these receivers are waited for before ack_timeout_action. The source's own semi-sync timeout runs all the \
                same: for go_on choose less than that.",
    },
    Key {
        section: Section::Source,
        name: "ack_timeout_action",
        flag: Some("ack-timeout-action"),
        kind: Kind::Choice(&[
            ("wait", "hold the acknowledgement until they have come; the source's own timeout decides"),
            ("go_on", "acknowledge alone, and say so, until they have caught up"),
        ]),
        absent: Absent::Default("\"wait\""),
        reload: ReloadEffect::Reconnect,
        about: "What happens when they have not come by then. Either way the log, status and metrics say so.",
    },
    Key {
        section: Section::Source,
        name: "busy_wait_us",
        flag: Some("busy-wait-us"),
        kind: Kind::Number { min: 0, max: 10_000 },
        absent: Absent::Default("0"),
        reload: ReloadEffect::AtOnce,
        about: "Without effect, and accepted so that a configuration which has it still loads. Leave it out.",
    },
    Key {
        section: Section::Source,
        name: "semi_sync",
        flag: Some("semi-sync"),
        kind: Kind::Boolean,
        absent: Absent::Default("true"),
        reload: ReloadEffect::Reconnect,
        about: "Whether to register as a semi-synchronous replica. A source without semi-sync is copied all the same, and \
                status says so.",
    },
    Key {
        section: Section::Source,
        name: "heartbeat_period",
        flag: Some("heartbeat-period"),
        kind: Kind::Duration { min: ms(100), max: HOUR },
        absent: Absent::Default("\"5s\""),
        reload: ReloadEffect::Reconnect,
        about: "How often a source with nothing to send says that it is alive.",
    },
    Key {
        section: Section::Source,
        name: "net_read_timeout",
        flag: Some("net-read-timeout"),
        kind: Kind::Duration { min: ms(200), max: Duration::from_secs(24 * 3600) },
        absent: Absent::Default("\"15s\""),
        reload: ReloadEffect::Reconnect,
        about: "Silence after which the connection counts as lost. It must exceed heartbeat_period.",
    },
    Key {
        section: Section::Source,
        name: "watch_interval",
        flag: Some("watch-interval"),
        kind: Kind::Duration { min: ms(0), max: HOUR },
        absent: Absent::Default("\"1s\""),
        reload: ReloadEffect::Reconnect,
        about: "How often to look, over a second connection, whether the source waits for acknowledgements, and how many \
                commits it told its clients of without one. While nothing arrives, one statement every 200 ms asks whether a \
                commit waits. It needs no privilege and is no replica. \"0s\" switches it off: then only what arrives tells, \
                and a source that gave up waiting for a short time is not noticed.",
    },
    Key {
        section: Section::Source,
        name: "connect_timeout",
        flag: Some("connect-timeout"),
        kind: Kind::Duration { min: ms(100), max: Duration::from_secs(600) },
        absent: Absent::Default("\"10s\""),
        reload: ReloadEffect::Reconnect,
        about: "Longest time for one attempt to connect and authenticate.",
    },
    Key {
        section: Section::Source,
        name: "backoff_min",
        flag: Some("backoff-min"),
        kind: Kind::Duration { min: ms(10), max: HOUR },
        absent: Absent::Default("\"100ms\""),
        reload: ReloadEffect::Reconnect,
        about: "Pause after the first failed attempt to connect. Each further pause is twice as long, up to backoff_max.",
    },
    Key {
        section: Section::Source,
        name: "backoff_max",
        flag: Some("backoff-max"),
        kind: Kind::Duration { min: ms(10), max: HOUR },
        absent: Absent::Default("\"500ms\""),
        reload: ReloadEffect::Reconnect,
        about: "Longest pause between attempts while the source refuses or cuts connections: commits may wait for binlogd. Where \
                a server tells it to go away (a wrong password, another replica with its server_id) the pauses grow from \
                here up to 30 s. binlogd never gives up.",
    },
    Key {
        section: Section::Source,
        name: "tls",
        flag: Some("tls"),
        kind: Kind::Choice(&[
            ("disabled", "never"),
            ("preferred", "where the server offers it"),
            ("required", "always, the certificate unchecked"),
            ("verify-ca", "always, the certificate from a trusted authority"),
            ("verify-full", "as verify-ca, and it names the host"),
        ]),
        absent: Absent::Default("\"preferred\""),
        reload: ReloadEffect::Reconnect,
        about: "Protection of the connection, as the MySQL client's --ssl-mode.",
    },
    Key {
        section: Section::Source,
        name: "tls_ca",
        flag: Some("tls-ca"),
        kind: Kind::Path,
        absent: Absent::Unset("\"ca.pem\""),
        reload: ReloadEffect::Reconnect,
        about: "PEM file of the certificate authorities to trust, for verify-ca and verify-full. Without it: the system's.",
    },
    Key {
        section: Section::Source,
        name: "tls_cert",
        flag: Some("tls-cert"),
        kind: Kind::Path,
        absent: Absent::Unset("\"client-cert.pem\""),
        reload: ReloadEffect::Reconnect,
        about: "PEM file of the certificate to show to a source that asks for one; with tls_key.",
    },
    Key {
        section: Section::Source,
        name: "tls_key",
        flag: Some("tls-key"),
        kind: Kind::Path,
        absent: Absent::Unset("\"client-key.pem\""),
        reload: ReloadEffect::Reconnect,
        about: "PEM file of its private key.",
    },
    Key {
        section: Section::Source,
        name: "on_gap",
        flag: Some("on-gap"),
        kind: Kind::Choice(&[
            ("stop", "wait for an operator"),
            ("record", "record what is missing and go on with the file after it"),
        ]),
        absent: Absent::Default("\"stop\""),
        reload: ReloadEffect::Reconnect,
        about: "What to do when the source has purged what was not copied yet, or cannot read it any more.",
    },
    Key {
        section: Section::Source,
        name: "on_fork",
        flag: Some("on-fork"),
        kind: Kind::Choice(&[
            ("follow", "copy and acknowledge it, and say what it lacks"),
            (
                "withhold",
                "copy it, and acknowledge nothing to it until it has been rescued or the loss is accepted",
            ),
            ("stop", "wait for an operator"),
        ]),
        absent: Absent::Default("\"follow\""),
        reload: ReloadEffect::Reconnect,
        about: "What to do when the source lacks transactions that the copy holds: it crashed and lost the end of its log, was put \
                back to an earlier state, or was promoted without them. A source with relaxed settings wants withhold: it \
                gives the GTIDs that it lost to its clients' next transactions.",
    },
    Key {
        section: Section::Source,
        name: "on_stranger",
        flag: Some("on-stranger"),
        kind: Kind::Choice(&[
            (
                "refuse",
                "try again and again, until a server answers that has something in common with the copy",
            ),
            ("follow", "begin a history of its own for it"),
        ]),
        absent: Absent::Default("\"refuse\""),
        reload: ReloadEffect::Reconnect,
        about: "What to do when another server answers with which the copy has no GTID in common: most often a wrong address or \
                a proxy that leads elsewhere. A failover is none: a replica has the transactions of its source.",
    },
    Key {
        section: Section::Source,
        name: "archive",
        flag: None,
        kind: Kind::Boolean,
        absent: Absent::Unset("false"),
        reload: ReloadEffect::Reconnect,
        about: "Whether the source's history is archived, where [archive] has a url; true where it is not given.",
    },
];
