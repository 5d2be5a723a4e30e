//! Why a server does not let us in, and what helps: its own words often leave out both.

/// `ER_ACCESS_DENIED_ERROR`: MySQL and MariaDB say it for an account that does not exist, a wrong password, and one whose
/// conditions (`REQUIRE SSL`, `REQUIRE X509`, …) are not met, and do not tell which.
const ACCESS_DENIED: u16 = 1045;

/// Codes by which a server says no to the account: ER_DBACCESS_DENIED_ERROR, ER_ACCESS_DENIED_ERROR,
/// ER_HOST_NOT_PRIVILEGED, ER_TABLEACCESS_DENIED_ERROR, ER_SPECIFIC_ACCESS_DENIED_ERROR, ER_ACCESS_DENIED_NO_PASSWORD_ERROR,
/// ER_MUST_CHANGE_PASSWORD, ER_MUST_CHANGE_PASSWORD_LOGIN, ER_ACCOUNT_HAS_BEEN_LOCKED (MySQL),
/// ER_USER_ACCESS_DENIED_FOR_USER_ACCOUNT_BLOCKED_BY_PASSWORD_LOCK (MySQL), ER_USER_IS_BLOCKED and
/// ER_ACCOUNT_HAS_BEEN_LOCKED (MariaDB). Source: the servers' error references.
const DENIED: [u16; 12] = [1044, 1045, 1130, 1142, 1227, 1698, 1820, 1862, 3118, 3955, 4150, 4151];

/// ER_SECURE_TRANSPORT_REQUIRED: the server wants TLS.
pub(crate) const SECURE_TRANSPORT_REQUIRED: u16 = 3159;

/// ER_HOST_IS_BLOCKED: too many attempts from our host were broken off.
pub(crate) const HOST_IS_BLOCKED: u16 = 1129;

/// ER_WRONG_COMPRESSION_ALGORITHM_CLIENT: the server wants compression, which we do not do.
const COMPRESSION_DEMANDED: u16 = 3922;

/// ER_CON_COUNT_ERROR, ER_TOO_MANY_USER_CONNECTIONS, ER_USER_LIMIT_REACHED: there is no room for one more.
const CROWDED: [u16; 3] = [1040, 1203, 1226];

/// Whether the code says no to the account, so that somebody must change something.
pub(crate) fn is_denial(code: u16) -> bool {
    DENIED.contains(&code)
}

/// Whether the code says that there are too many connections, which passes.
pub(crate) fn is_crowded(code: u16) -> bool {
    CROWDED.contains(&code)
}

/// What belongs to every statement about accounts: a source that waits for us lets it wait too, and logins with it.
macro_rules! account_statement {
    ($hint:literal) => {
        concat!($hint, " (while semi-sync waits for binlogd: after SET SESSION sql_log_bin = 0)")
    };
}

/// What is waited for when a server has taken the connection and says nothing.
pub(crate) const GREETING: &str = "waiting for the server's greeting";

/// Why a server that takes connections may let nobody in, as the end of a sentence; empty for another wait than that.
pub(crate) fn who_keeps_logins(during: &str) -> &'static str {
    match during {
        GREETING => {
            "; it takes connections and lets nobody log in, as a MySQL with semi-sync does while a statement about accounts \
             (CREATE USER, GRANT) waits for an acknowledgement. The way out, in a session that is open: SET GLOBAL \
             rpl_semi_sync_source_enabled = OFF; without one: stop the server with SIGTERM (docs/failures.md, \"Locked out\")"
        }
        _ => "",
    }
}

/// What helps, as the end of a sentence; empty where the server's own words say it.
pub(crate) fn hint(code: u16, message: &str) -> &'static str {
    match code {
        ACCESS_DENIED if message.contains("(using password: NO)") => {
            "; no password was given: set password_file, or check the account's name and host"
        }
        ACCESS_DENIED => {
            "; the password is wrong, or there is no such account for this host, or the account demands TLS or a client \
             certificate (SHOW CREATE USER says REQUIRE …: set tls, tls_cert and tls_key)"
        }
        1130 => account_statement!(
            "; no account may log in from this host: CREATE USER … @'<this host>' on the source"
        ),
        1698 => {
            account_statement!(
                "; the account takes no password (auth_socket, unix_socket): give it one with ALTER USER … IDENTIFIED BY '…'"
            )
        }
        1820 | 1862 => {
            account_statement!(
                "; the password has expired: ALTER USER … IDENTIFIED BY '<a new one>', and PASSWORD EXPIRE NEVER for an account \
             that nobody logs in to by hand"
            )
        }
        3118 | 4151 => account_statement!("; the account is locked: ALTER USER … ACCOUNT UNLOCK"),
        3955 => account_statement!(
            "; too many wrong passwords: correct the password here, then ALTER USER … ACCOUNT UNLOCK"
        ),
        4150 => {
            account_statement!("; too many wrong passwords: correct the password here, then FLUSH PRIVILEGES")
        }
        1227 if !message.contains("REPLICATION SLAVE") => {
            account_statement!(
                "; the account lacks the privilege that the server names, or it was revoked: GRANT it ON *.* TO the account"
            )
        }
        1044 | 1142 | 1227 => {
            account_statement!(
                "; a privilege is missing or was revoked: GRANT REPLICATION SLAVE ON *.* TO the account"
            )
        }
        SECURE_TRANSPORT_REQUIRED => "; set tls to \"required\"",
        COMPRESSION_DEMANDED => {
            "; binlogd does not compress: add uncompressed to protocol_compression_algorithms of the server"
        }
        HOST_IS_BLOCKED => {
            "; unblock it with FLUSH HOSTS, or TRUNCATE TABLE performance_schema.host_cache, and find out what broke the \
             connections off"
        }
        1040 => {
            "; clients that wait for an acknowledgement hold connections too: raise max_connections on the source, or use an \
             account with CONNECTION_ADMIN (MySQL) or CONNECTION ADMIN (MariaDB), for which one more is kept"
        }
        1203 | 1226 => "; raise the account's MAX_USER_CONNECTIONS, or the server's max_user_connections",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_denial_has_a_hint_of_its_own_kind() {
        for code in DENIED.into_iter().chain(CROWDED).chain([COMPRESSION_DEMANDED]) {
            assert!(hint(code, "").starts_with("; "), "{code}");
        }
        assert!(hint(1045, "Access denied for user 'a'@'b' (using password: NO)").contains("password_file"));
        assert!(hint(1045, "Access denied for user 'a'@'b' (using password: YES)").contains("certificate"));
        let lacks = |privilege: &str| {
            hint(
                1227,
                &format!(
                    "Access denied; you need (at least one of) the {privilege} privilege(s) for this operation"
                ),
            )
        };
        assert!(lacks("REPLICATION SLAVE").contains("GRANT REPLICATION SLAVE"));
        assert!(!lacks("RELOAD").contains("REPLICATION SLAVE"), "{}", lacks("RELOAD"));
        assert_eq!(hint(1236, ""), "");
    }
}
