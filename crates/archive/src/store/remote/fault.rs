//! From what a store answered to whose fault it is, and what to do: one table.

use super::answer::{Answer, Refusal, Seen};
use super::connector;
use super::mask::Mask;
use crate::store::{Fault, StoreError};

/// What was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// A conditional creation.
    Create,
    /// Reading an object or a piece of it.
    Get,
    /// Asking after an object.
    Head,
    /// A listing.
    List,
    /// A removal.
    Delete,
}

impl Operation {
    fn verb(self) -> &'static str {
        match self {
            Operation::Create => "create",
            Operation::Get => "read",
            Operation::Head => "look at",
            Operation::List => "list",
            Operation::Delete => "delete",
        }
    }

    /// Whether the operation is about an object that ought to be there.
    fn needs_object(self) -> bool {
        matches!(self, Operation::Get | Operation::Head | Operation::Delete)
    }
}

/// Codes whose meaning the status does not tell, and what to do about them.
const CODES: &[(&str, Fault, &str)] = &[
    (
        "NoSuchBucket",
        Fault::Refused,
        "there is no such bucket: correct the URL of the archive, or create the bucket",
    ),
    (
        "ContainerNotFound",
        Fault::Refused,
        "there is no such container: correct the URL of the archive, or create the container",
    ),
    ("ContainerBeingDeleted", Fault::Refused, "somebody deletes the container"),
    ("ContainerDisabled", Fault::Refused, "the container is disabled"),
    ("InvalidBucketName", Fault::Refused, "correct the bucket in the URL of the archive"),
    ("InvalidResourceName", Fault::Refused, "correct the container in the URL of the archive"),
    ("TemporaryRedirect", Fault::Unavailable, "the bucket has been made just now, or moves"),
    ("PermanentRedirect", Fault::Refused, "the bucket is in another region: set region"),
    (
        "AuthorizationHeaderMalformed",
        Fault::Refused,
        "the bucket is most likely in another region: set region",
    ),
    ("IllegalLocationConstraintException", Fault::Refused, "the bucket is in another region: set region"),
    ("NotImplemented", Fault::Refused, "the store does not know this request: it needs conditional creation"),
    (
        "InvalidAccessKeyId",
        Fault::Denied,
        "the store does not know the access key: check the credentials and the endpoint",
    ),
    ("SignatureDoesNotMatch", Fault::Denied, "the secret key is wrong, or a proxy changes requests"),
    ("ExpiredToken", Fault::Denied, "the session token has expired: give new credentials"),
    ("ExpiredTokenException", Fault::Denied, "the session token has expired: give new credentials"),
    ("InvalidToken", Fault::Denied, "the session token is wrong: give new credentials"),
    ("TokenRefreshRequired", Fault::Denied, "the session token must be renewed: give new credentials"),
    ("RequestTimeTooSkewed", Fault::Denied, "the clock of this machine is wrong: set it, best by NTP"),
    ("RequestExpired", Fault::Denied, "the clock of this machine is wrong: set it, best by NTP"),
    (
        "invalid_grant",
        Fault::Denied,
        "the credentials are wrong or expired, or the clock of this machine is wrong",
    ),
    ("invalid_client", Fault::Denied, "the client's secret is wrong or expired"),
    ("BlobImmutableDueToPolicy", Fault::Denied, "a retention policy holds the object"),
    ("RequestTimeout", Fault::Unavailable, ""),
    ("BadDigest", Fault::Unavailable, "the bytes were damaged on the way"),
    ("XAmzContentSHA256Mismatch", Fault::Unavailable, "the bytes were damaged on the way"),
    ("Md5Mismatch", Fault::Unavailable, "the bytes were damaged on the way"),
    ("OperationAborted", Fault::Unavailable, ""),
    ("ConditionalRequestConflict", Fault::Unavailable, "somebody else writes the same name at this moment"),
];

/// Whose fault a refusal is, and what to do.
pub(super) fn judge(refusal: &Refusal, operation: Operation) -> (Fault, &'static str) {
    let code = refusal.code.as_deref().unwrap_or_default();
    if let Some((_, fault, advice)) = CODES.iter().find(|(known, ..)| *known == code) {
        return (*fault, advice);
    }
    match refusal.status {
        404 if operation.needs_object() => (Fault::Missing, ""),
        404 => (Fault::Refused, "correct the URL or the endpoint of the archive"),
        401 => (Fault::Denied, "the credentials are missing or wrong"),
        403 if operation == Operation::Delete => {
            (Fault::Denied, "the credentials do not allow to delete, or a lock holds the object")
        }
        403 => (
            Fault::Denied,
            "the credentials are wrong, or do not allow this: the account needs to list, read and create objects below the prefix",
        ),
        300..=399 => (Fault::Refused, "the bucket is most likely in another region: set region"),
        408 | 425 | 429 => (Fault::Unavailable, "the store asks to be asked less often"),
        501 | 505 => (Fault::Refused, "the store does not know this request"),
        507 => (Fault::Unavailable, "the store is full"),
        500..=599 => (Fault::Unavailable, ""),
        409 => (Fault::Unavailable, ""),
        416 => (Fault::Refused, "the range begins behind the end of the object"),
        _ => (Fault::Refused, ""),
    }
}

/// The error of an operation on `name`, in one line and without secrets.
pub(super) fn error(
    operation: Operation,
    name: &str,
    seen: &Seen,
    error: &object_store::Error,
    mask: &Mask,
) -> StoreError {
    let (fault, said, advice) = match &seen.answer {
        Some(Answer::Refusal(refusal)) => {
            let (fault, advice) = judge(refusal, operation);
            (fault, said(refusal), advice)
        }
        Some(Answer::None(text)) => (Fault::Unavailable, text.clone(), advice_without_answer(text)),
        Some(Answer::NoCredentials { host, why }) => without_credentials(host, why),
        None => of_part(error, operation).unwrap_or_else(|| of_library(error)),
    };
    let what = if name.is_empty() { "the archive".to_owned() } else { name.to_owned() };
    let advice = if advice.is_empty() { String::new() } else { format!(": {advice}") };
    StoreError::new(fault, mask.text(&format!("cannot {} {what}: {said}{advice}", operation.verb())))
}

/// What it means when nobody gave credentials. An object is never missing for that.
fn without_credentials(host: &str, why: &Answer) -> (Fault, String, &'static str) {
    let (fault, words) = match why {
        Answer::Refusal(refusal) => match judge(refusal, Operation::List).0 {
            Fault::Unavailable => (Fault::Unavailable, self::said(refusal)),
            _ => (Fault::Denied, self::said(refusal)),
        },
        Answer::None(text) => (Fault::Unavailable, text.clone()),
        Answer::NoCredentials { why, .. } => return without_credentials(host, why),
    };
    let words = words.replacen("the store says", "it says", 1);
    let advice = "give credentials in the environment, in a profile of AWS, or to this machine";
    (fault, format!("{host} gave no credentials for the store ({words})"), advice)
}

/// The store's own words.
fn said(refusal: &Refusal) -> String {
    let mut text = format!("the store says {}", refusal.status);
    if let Some(code) = &refusal.code {
        text += &format!(" {code}");
    }
    if let Some(message) = refusal.message.as_deref().and_then(|message| message.lines().next()) {
        text += &format!(" ({})", message.trim().trim_end_matches('.'));
    }
    text
}

/// What helps when nobody answered.
fn advice_without_answer(text: &str) -> &'static str {
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has(&["dns error", "failed to lookup address"]) {
        "the name of the store's host is not known: check endpoint, region and DNS"
    } else if has(&["certificate", "UnknownIssuer", "invalid peer"]) {
        "the store's certificate is not trusted: add its authority to the system's (SSL_CERT_FILE names another file)"
    } else if has(&["Connection refused", "connection refused"]) {
        "nobody listens there: check endpoint, port and firewall"
    } else {
        ""
    }
}

/// One request may delete many objects. Its answer is a success, in which each object has its own refusal; of that the library
/// gives away words only, with a status or the store's word at their end.
fn of_part(error: &object_store::Error, operation: Operation) -> Option<(Fault, String, &'static str)> {
    let words = connector::in_words(error);
    let (_, code) = words.strip_suffix(')')?.rsplit_once("(code: ")?;
    let (status, code) = match code.parse() {
        Ok(status) => (status, None),
        Err(_) if code == "AccessDenied" => (403, None),
        // Such as InternalError and SlowDown, if the table does not have it.
        Err(_) => (503, Some(code.to_owned())),
    };
    let refusal = Refusal { status, code, message: None };
    let (fault, advice) = judge(&refusal, operation);
    Some((fault, words, advice))
}

/// A failure without any answer on the way: of a file of credentials, or of what was asked.
fn of_library(error: &object_store::Error) -> (Fault, String, &'static str) {
    use object_store::Error;
    let fault = match error {
        Error::NotFound { .. } => Fault::Missing,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => Fault::Denied,
        Error::InvalidPath { .. } => {
            return (
                Fault::Refused,
                connector::in_words(error),
                "an object that binlogd did not make stands below the prefix and cannot be named: move the object away",
            );
        }
        // Whatever the library could not read of an answer may be there the next time.
        Error::Generic { .. } | Error::JoinError { .. } => Fault::Unavailable,
        _ => Fault::Refused,
    };
    (fault, connector::in_words(error), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(status: u16, code: &str, message: &str) -> Seen {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let refusal = Refusal { status, code: text(code), message: text(message) };
        Seen { answer: Some(Answer::Refusal(refusal)), lock: None }
    }

    fn any() -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: "?key=hidden".into() }
    }

    #[test]
    fn faults_of_every_kind() {
        use Fault::{Denied, Missing, Refused, Unavailable};
        use Operation::{Create, Delete, Get, Head, List};
        for (operation, status, code, fault) in [
            (Get, 404, "NoSuchKey", Missing),
            (Head, 404, "", Missing),
            (Get, 404, "NoSuchBucket", Refused),
            (Head, 404, "ContainerNotFound", Refused),
            (List, 404, "", Refused),
            (Create, 404, "", Refused),
            (Create, 401, "", Denied),
            (Create, 403, "AccessDenied", Denied),
            (Get, 403, "InvalidAccessKeyId", Denied),
            (Get, 400, "ExpiredToken", Denied),
            (Delete, 409, "BlobImmutableDueToPolicy", Denied),
            (Create, 503, "SlowDown", Unavailable),
            (Create, 500, "InternalError", Unavailable),
            (Create, 429, "", Unavailable),
            (Create, 400, "RequestTimeout", Unavailable),
            (Create, 501, "NotImplemented", Refused),
            (List, 301, "PermanentRedirect", Refused),
            (Create, 400, "InvalidArgument", Refused),
            (Get, 416, "InvalidRange", Refused),
        ] {
            let error = error(operation, "a/b", &seen(status, code, ""), &any(), &Mask::default());
            assert_eq!(error.fault, fault, "{operation:?} {status} {code}: {error}");
        }
    }

    #[test]
    fn what_is_refused_within_an_answer_is_told_apart() {
        for (code, fault) in [
            ("403", Fault::Denied),
            ("AccessDenied", Fault::Denied),
            ("BlobImmutableDueToPolicy", Fault::Denied),
            ("404", Fault::Missing),
            ("SlowDown", Fault::Unavailable),
        ] {
            let words = format!("Bulk delete request failed for key a/b: not this one. (code: {code})");
            let of_library = object_store::Error::Generic { store: "S3", source: words.into() };
            let error = error(Operation::Delete, "a/b", &Seen::default(), &of_library, &Mask::default());
            assert_eq!(error.fault, fault, "{error}");
            assert!(error.text.contains("not this one"), "{error}");
        }
    }

    #[test]
    fn an_error_names_the_object_and_the_stores_words_and_no_secret() {
        let mask = Mask::new(["topsecretkey".to_owned()]);
        let seen = seen(403, "SignatureDoesNotMatch", "We calculated topsecretkey.\nStringToSign: x");
        let error = error(Operation::Create, "shop/commits/1.json", &seen, &any(), &mask);
        assert_eq!(
            error.text,
            "cannot create shop/commits/1.json: the store says 403 SignatureDoesNotMatch (We calculated ***): the secret key is \
             wrong, or a proxy changes requests"
        );
    }

    #[test]
    fn without_credentials_nothing_is_missing() {
        for (status, fault) in [(404, Fault::Denied), (400, Fault::Denied), (503, Fault::Unavailable)] {
            let why = Box::new(seen(status, "", "").answer.unwrap());
            let answer = Some(Answer::NoCredentials { host: "169.254.169.254".to_owned(), why });
            let error = error(Operation::Get, "a/b", &Seen { answer, lock: None }, &any(), &Mask::default());
            assert_eq!(error.fault, fault, "{error}");
            assert!(
                error.text.contains("169.254.169.254 gave no credentials")
                    && error.text.contains("environment"),
                "{error}"
            );
        }
    }

    #[test]
    fn no_answer_is_unavailable_with_what_helps() {
        let text = "error sending request for url (http://h/b?sig=abc): tcp connect error: Connection refused (os error 111)";
        let seen = Seen { answer: Some(Answer::None(text.to_owned())), lock: None };
        let error = error(Operation::List, "", &seen, &any(), &Mask::default());
        assert_eq!(error.fault, Fault::Unavailable);
        assert!(error.text.starts_with("cannot list the archive: "), "{error}");
        assert!(error.text.contains("nobody listens there") && !error.text.contains("sig=abc"), "{error}");
    }
}
