//! What the store answered last, beside what the library makes of it: the library gives a status away as words only.

use object_store::HeaderMap;
use std::cell::RefCell;
use std::future::Future;

/// The last answer to a request, as far as it is no success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The other side refused, or could not.
    Refusal(Refusal),
    /// No answer came, or none that could be read: in words.
    None(String),
    /// Whoever gives out credentials gave none, and the store was not asked.
    NoCredentials {
        /// Whom was asked.
        host: String,
        /// What came of it.
        why: Box<Answer>,
    },
}

/// An answer that is no success.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Refusal {
    /// Of HTTP.
    pub(super) status: u16,
    /// The store's own word for it, such as `NoSuchBucket`.
    pub(super) code: Option<String>,
    /// The store's own sentence.
    pub(super) message: Option<String>,
}

/// What was seen during one operation.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Of the last request, when it failed.
    pub(super) answer: Option<Answer>,
    /// How long the object of the last answer is locked, in the store's words.
    pub(super) lock: Option<String>,
}

tokio::task_local! {
    static SEEN: RefCell<Seen>;
}

/// Runs an operation and gives what was seen of its answers too.
pub(super) async fn watch<T>(operation: impl Future<Output = T>) -> (T, Seen) {
    SEEN.scope(RefCell::default(), async {
        let outcome = operation.await;
        (outcome, SEEN.with(RefCell::take))
    })
    .await
}

/// Notes the outcome of a request. Outside of [`watch`] nobody asks.
pub(super) fn note(answer: Option<Answer>, lock: Option<String>) {
    let _ = SEEN.try_with(|seen| {
        let mut seen = seen.borrow_mut();
        seen.answer = answer;
        seen.lock = lock.or(seen.lock.take());
    });
}

/// Whether a request is for the store, and not for credentials: the bucket is in its path, or in front of its host.
pub(super) fn is_of_store(bucket: &str, host: &str, path: &str) -> bool {
    let in_host = host.strip_prefix(bucket).is_some_and(|rest| rest.starts_with('.'));
    // Google's client escapes the three signs that a bucket's name may have beside letters and digits.
    let plain = |part: &str| part.replace("%2D", "-").replace("%2E", ".").replace("%5F", "_");
    in_host || path.split('/').any(|part| plain(part) == bucket)
}

/// What the headers of an object say of its lock.
pub(super) fn lock_of(headers: &HeaderMap) -> Option<String> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let pairs = [
        ("x-amz-object-lock-mode", "x-amz-object-lock-retain-until-date"),
        ("x-ms-immutability-policy-mode", "x-ms-immutability-policy-until-date"),
        ("x-goog-object-lock-mode", "x-goog-object-lock-retain-until-date"),
    ];
    for (mode, until) in pairs {
        if let Some(mode) = header(mode) {
            return Some(match header(until) {
                Some(until) => format!("{mode} until {until}"),
                None => mode.to_owned(),
            });
        }
    }
    let holds = [("x-amz-object-lock-legal-hold", "ON"), ("x-ms-legal-hold", "true")];
    holds.iter().find(|(name, on)| header(name) == Some(on)).map(|_| "legal hold".to_owned())
}

/// Reads a refusal: XML of the stores, JSON of those who give out tokens, or a header.
pub(super) fn refusal(status: u16, headers: &HeaderMap, body: &[u8]) -> Refusal {
    let body = String::from_utf8_lossy(body);
    let header = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
    let (code, message) = match serde_json::from_str::<serde_json::Value>(&body) {
        Ok(json) => of_json(&json),
        Err(_) => (element(&body, "Code"), element(&body, "Message")),
    };
    let code = code.or_else(|| header("x-ms-error-code")).or_else(|| header("x-minio-error-code"));
    Refusal { status, code, message }
}

/// `{"error": {"status": …, "message": …}}`, `{"error": …, "error_description": …}` or `{"Code": …, "Message": …}`.
fn of_json(json: &serde_json::Value) -> (Option<String>, Option<String>) {
    let text = |value: Option<&serde_json::Value>| value.and_then(|value| value.as_str()).map(str::to_owned);
    let error = json.get("error");
    let inner = error.filter(|error| error.is_object()).unwrap_or(json);
    let code = ["status", "code", "Code", "error"].iter().find_map(|name| text(inner.get(name)));
    let message = ["message", "Message", "error_description"].iter().find_map(|name| text(inner.get(name)));
    (code, message)
}

/// The text of the first element of that name, with the five entities of XML read.
fn element(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    let text = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")]
        .iter()
        .fold(text.to_owned(), |text, (entity, sign)| text.replace(entity, sign));
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_every_form_are_read() {
        let none = HeaderMap::new();
        let read = |body: &str| {
            let refusal = refusal(403, &none, body.as_bytes());
            (refusal.code.unwrap_or_default(), refusal.message.unwrap_or_default())
        };
        let pair = |code: &str, message: &str| (code.to_owned(), message.to_owned());
        assert_eq!(
            read(
                "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code><Message>No &amp; no</Message></Error>"
            ),
            pair("AccessDenied", "No & no")
        );
        assert_eq!(
            read("{\"error\":\"invalid_grant\",\"error_description\":\"gone\"}"),
            pair("invalid_grant", "gone")
        );
        assert_eq!(
            read("{\"error\":{\"code\":403,\"status\":\"PERMISSION_DENIED\",\"message\":\"no\"}}"),
            pair("PERMISSION_DENIED", "no")
        );
        assert_eq!(read("<html>busy</html>"), pair("", ""));
        assert_eq!(read(""), pair("", ""));
    }

    #[test]
    fn an_answer_without_a_body_has_its_code_in_a_header() {
        let mut headers = HeaderMap::new();
        headers.insert("x-ms-error-code", "ContainerNotFound".parse().unwrap());
        assert_eq!(refusal(404, &headers, b"").code.as_deref(), Some("ContainerNotFound"));
    }

    #[test]
    fn requests_for_credentials_are_told_from_those_to_the_store() {
        for (host, path) in [
            ("127.0.0.1", "/backups/a/b"),
            ("backups.s3.eu-west-1.amazonaws.com", "/a/b"),
            ("127.0.0.1", "/devstoreaccount1/backups/a"),
            ("storage.googleapis.com", "/backups"),
        ] {
            assert!(
                is_of_store("my-own.ba_ck", host, &path.replace("backups", "my%2Down%2Eba%5Fck"))
                    || host.starts_with("backups")
            );
            assert!(is_of_store("backups", host, path), "{host}{path}");
        }
        for (host, path) in [
            ("169.254.169.254", "/latest/meta-data/iam/security-credentials/"),
            ("sts.eu-west-1.amazonaws.com", "/"),
            ("oauth2.googleapis.com", "/token"),
        ] {
            assert!(!is_of_store("backups", host, path), "{host}{path}");
        }
    }

    #[test]
    fn locks_are_seen() {
        let mut headers = HeaderMap::new();
        assert_eq!(lock_of(&headers), None);
        headers.insert("x-amz-object-lock-mode", "COMPLIANCE".parse().unwrap());
        headers.insert("x-amz-object-lock-retain-until-date", "2027-01-01T00:00:00Z".parse().unwrap());
        assert_eq!(lock_of(&headers).as_deref(), Some("COMPLIANCE until 2027-01-01T00:00:00Z"));
    }
}
