//! Whether a request comes from a form of this page, or from a page elsewhere that sends it through somebody's browser.

use axum::http::{HeaderMap, HeaderName, header};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Judges where a request comes from; an error says what was wrong. `is_asked_for` by TLS or by a login.
///
/// A page elsewhere can make its own name lead to this address (DNS rebinding), and is then of the same origin. With TLS the
/// certificate is not that of its name; a browser sends no login to it. Without either, only an address or `localhost` is no name
/// of somebody's.
pub(crate) fn judge(headers: &HeaderMap, is_asked_for: bool) -> Result<(), String> {
    let text = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) else {
        return Err("the request has no Host, or several".to_owned());
    };
    if !is_asked_for && !is_nobodys_name(host) {
        return Err(format!(
            "the request is for the host {host}: without TLS and without an [[admin.user]] binlogd takes it by its IP address or \
             as localhost alone, because any web site can make a name of its own lead here"
        ));
    }
    match text(&SEC_FETCH_SITE) {
        None | Some("same-origin") => {}
        Some(site) => {
            return Err(format!("the request comes from another web site (Sec-Fetch-Site: {site})"));
        }
    }
    let Some(origin) = text(&header::ORIGIN) else { return Ok(()) };
    match origin.split_once("://") {
        Some((scheme @ ("http" | "https"), authority)) if is_same(authority, host, scheme) => Ok(()),
        _ => Err(format!(
            "the request comes from another web site (Origin: {origin}, Host: {host}). A proxy before binlogd must leave Host as it is"
        )),
    }
}

fn is_same(authority: &str, host: &str, scheme: &str) -> bool {
    let standard = if scheme == "https" { ":443" } else { ":80" };
    let bare = |name: &str| name.strip_suffix(standard).unwrap_or(name).to_ascii_lowercase();
    !authority.is_empty() && bare(authority) == bare(host)
}

fn is_nobodys_name(host: &str) -> bool {
    // An IPv6 address stands in brackets, and has colons of its own.
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || address.parse::<std::net::IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn headers(given: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn what_a_page_elsewhere_sends_is_known() {
        for (given, is_asked_for, wrong) in [
            (&[("host", "127.0.0.1:9306")][..], false, ""),
            (&[("host", "[::1]:9306"), ("origin", "http://[::1]:9306")], false, ""),
            (&[("host", "[::1]"), ("origin", "http://[::1]:80")], false, ""),
            (&[("host", "LOCALHOST:1"), ("origin", "http://localhost:1")], false, ""),
            (
                &[("host", "db.corp"), ("origin", "https://db.corp"), ("sec-fetch-site", "same-origin")],
                true,
                "",
            ),
            (&[("host", "db.corp:443"), ("origin", "https://db.corp")], true, ""),
            // A name of somebody's that leads here.
            (
                &[("host", "evil.example:9306"), ("origin", "http://evil.example:9306")],
                false,
                "IP address or as localhost",
            ),
            (&[("host", "127.0.0.1.evil.example")], false, "IP address or as localhost"),
            (&[("host", "localhost.evil.example")], false, "IP address or as localhost"),
            (&[("host", "")], false, "IP address or as localhost"),
            (&[], true, "no Host"),
            (&[("host", "127.0.0.1"), ("host", "evil.example")], true, "no Host, or several"),
            // A form elsewhere.
            (
                &[("host", "127.0.0.1:9306"), ("origin", "https://evil.example")],
                false,
                "another web site (Origin",
            ),
            (
                &[("host", "127.0.0.1:9306"), ("origin", "http://127.0.0.1:8000")],
                false,
                "another web site (Origin",
            ),
            (&[("host", "127.0.0.1:9306"), ("origin", "null")], false, "another web site (Origin"),
            (&[("host", "127.0.0.1:9306"), ("origin", "")], false, "another web site (Origin"),
            (
                &[("host", "127.0.0.1:9306"), ("origin", "file://127.0.0.1:9306")],
                false,
                "another web site (Origin",
            ),
            (
                &[("host", "127.0.0.1:9306"), ("sec-fetch-site", "cross-site")],
                false,
                "another web site (Sec-Fetch-Site",
            ),
            (
                &[("host", "127.0.0.1:9306"), ("sec-fetch-site", "same-site")],
                true,
                "another web site (Sec-Fetch-Site",
            ),
        ] {
            match judge(&headers(given), is_asked_for) {
                Ok(()) => assert_eq!(wrong, "", "{given:?}"),
                Err(why) => assert!(!wrong.is_empty() && why.contains(wrong), "{given:?}: {why}"),
            }
        }
    }
}
