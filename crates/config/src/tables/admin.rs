//! The `[admin]` table: the web page, status, metrics and health over HTTP, and who may see them.

use super::super::document::{Document, Table};
use super::super::entry::Unread;
use super::super::error::Findings;
use super::super::key::ReloadEffect::{AtOnce, Restart};
use super::super::key::{Kind, Section, default, implied, unset};
use super::super::table::table;
use super::password::{Environment, Origins};
use super::tls;
use super::users::{Proof, check_user_names};
use std::net::SocketAddr;
use std::path::PathBuf;

table! {
    /// The web page, status, metrics and health over HTTP.
    struct AdminConfig, AdminKeys for Section::Admin, AtOnce;

    /// Address of the web page, /status, /metrics and /healthz over HTTP. Whoever reaches it may read them,
    /// unless there is an [[admin.user]]: keep it on a private address.
    ///
    /// "off" opens no port.
    listen: Option<SocketAddr> = default("\"127.0.0.1:9306\"").flag("admin-listen").on_reload(Restart);
    /// Files of the certificate and of its private key, for TLS.
    field tls: Option<(PathBuf, PathBuf)>;
    /// PEM file of the certificate, with tls_key: then this address speaks HTTPS only. binlogd status goes on
    /// to find the daemon by the data folder.
    key tls_cert: Option<PathBuf> = unset("\"admin-cert.pem\"").flag("admin-tls-cert");
    /// PEM file of its private key.
    key tls_key: Option<PathBuf> = unset("\"admin-key.pem\"").flag("admin-tls-key");
    /// Whether a source's page can stop and start receiving, end a reader and drop a slot, and POST to
    /// /v1/promote can make another server the source of a quorum. Where there is an [[admin.user]], only for
    /// those with write = true. Without one, listen must be a loopback address: then whoever has an account on
    /// this machine may.
    write: bool = default("false").flag("admin-write");
    /// Who may see it; nobody named: whoever reaches it.
    field users: Vec<AdminUser>;
}

table! {
    /// Who may see them. Repeat this table for each further user. Without any, whoever reaches the address.
    struct AdminUser, AdminUserKeys for Section::AdminUser, AtOnce;

    /// Name to log in with (HTTP basic authentication). It must be given.
    name: String = unset("\"dba\"");
    /// What tells that it is the user.
    field proof: Proof;
    /// The password: one of these four keys must be given.
    key password: Unread = unset("\"dba's secret\"").kind(Kind::SECRET);
    /// File that holds the password and nothing else; a newline at its end does not count.
    key password_file: Unread = unset("\"dba.password\"").kind(Kind::PATH);
    /// Environment variable that holds the password.
    key password_env: Unread = unset("\"DBA_PASSWORD\"");
    /// A hash instead, in one of the forms of [[serve.user]]: sha256: and the 64 hexadecimal digits of
    /// SHA256(SHA256(password)).
    key password_hash: Unread = unset("\"sha256:…\"").kind(Kind::SECRET);
    /// Whether the user may change something, on the page or by /v1/promote, where write of [admin] is true; false
    /// where it is not given. Others may look.
    write: bool = implied("false", "true");
}

/// `None` after an error.
pub(super) fn build(
    document: &Document,
    environment: Environment<'_>,
    findings: &mut Findings,
) -> Option<AdminConfig> {
    let admin = AdminKeys::read(&document.one(Section::Admin), findings);
    let users: Vec<(&Table, AdminUserKeys)> =
        document.all(Section::AdminUser).map(|table| (table, AdminUserKeys::read(table, findings))).collect();
    let named = users.iter().map(|(table, keys)| (&table.place, &keys.name));
    check_user_names(Section::AdminUser, named, findings);
    let tls = tls::of_server(&admin.tls_cert, &admin.tls_key, findings);
    let is_exposed = matches!(admin.listen.value, Some(Some(listen)) if !listen.ip().is_loopback());
    if is_exposed && tls == Some(None) && !users.is_empty() {
        admin.listen.relation(
            "[[admin.user]] needs tls_cert and tls_key where listen is no loopback address: passwords would go over the network in \
             clear",
            findings,
        );
    }
    if is_exposed && admin.write.value == Some(true) && users.is_empty() {
        admin.write.relation(
            "write = true needs an [[admin.user]] where listen is no loopback address: whoever reaches it could stop receiving and \
             drop slots",
            findings,
        );
    }
    if admin.write.value == Some(false) {
        for (_, user) in users.iter().filter(|(_, user)| user.write.value == Some(true)) {
            findings.warning(
                user.write.place(),
                "write = true of an [[admin.user]] does nothing without write = true in [admin]",
            );
        }
    }
    let users: Vec<Option<AdminUser>> =
        users.into_iter().map(|(table, user)| build_user(user, table, environment, findings)).collect();
    admin.whole(tls, users.into_iter().collect())
}

fn build_user(
    user: AdminUserKeys,
    table: &Table,
    environment: Environment<'_>,
    findings: &mut Findings,
) -> Option<AdminUser> {
    let AdminUserKeys { password, password_file, password_env, password_hash, .. } = &user;
    let origins =
        Origins { text: password, file: password_file, variable: password_env, hash: Some(password_hash) };
    let proof = Proof::given(&origins, table, environment, findings);
    user.whole(proof)
}
