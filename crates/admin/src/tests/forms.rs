//! Forms: which are taken, and what the others are told.

use super::*;
use config::{AdminUser, Proof};
use std::sync::Mutex;

/// Remembers what it was told to do.
#[derive(Default)]
struct Done(Mutex<Vec<String>>);

impl Controls for Done {
    fn ask_nodes(&self, _: &str) -> Vec<(Option<String>, Result<quorum::Reply, String>)> {
        Vec::new()
    }

    fn carry_out(&self, source: &str, deed: &Deed, by: &str) -> Result<String, String> {
        let mut done = self.0.lock().unwrap();
        done.push(format!("{source} {deed:?} by {by}"));
        match deed {
            Deed::Start => Err("it cannot be <started>".to_owned()),
            _ => Ok(format!("done: {deed:?}")),
        }
    }

    fn promote(&self, _: &str, _: &PromoteAsked, _: &str) -> Result<serde_json::Value, NotPromoted> {
        unreachable!("no form asks for it")
    }
}

const FORM: &str = "application/x-www-form-urlencoded";

/// A server of one source, and what was done to it.
struct Scene {
    server: AdminServer,
    source: Arc<SourceMonitor>,
    done: Arc<Done>,
}

fn user(name: &str, write: bool) -> AdminUser {
    AdminUser { name: name.to_owned(), proof: Proof::Password(Secret::new("s:cret")), write }
}

impl Scene {
    fn new(write: bool, users: Vec<AdminUser>) -> Scene {
        let daemon = Arc::new(DaemonMonitor::new(Path::new("data")));
        let source = Arc::new(SourceMonitor::new("orders"));
        daemon.add(source.clone());
        let listen = "127.0.0.1:0".parse().unwrap();
        let done = Arc::new(Done::default());
        let config = AdminConfig { listen: Some(listen), tls: None, write, users };
        let server = AdminServer::start_with(listen, &config, daemon, done.clone()).unwrap();
        Scene { server, source, done }
    }

    fn host(&self) -> String {
        self.server.local_addr().to_string()
    }

    fn get(&self, path: &str, more: &str) -> (u16, String, String) {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{more}\r\n", self.host());
        exchange(&self.server, request.as_bytes())
    }

    /// What a form is answered with; `headers` stand instead of those of a browser.
    fn post(&self, path: &str, headers: &str, form: &str) -> (u16, String, String) {
        let length = form.len();
        let request = format!("POST {path} HTTP/1.1\r\n{headers}Content-Length: {length}\r\n\r\n{form}");
        exchange(&self.server, request.as_bytes())
    }

    /// The headers of a browser that sends a form of this page.
    fn ours(&self, more: &str) -> String {
        let host = self.host();
        format!(
            "Host: {host}\r\nOrigin: http://{host}\r\nSec-Fetch-Site: same-origin\r\nContent-Type: {FORM}\r\n{more}"
        )
    }

    /// The form behind a link, as a browser sends it.
    fn form(&self, query: &str, more: &str) -> String {
        let (code, _, body) = self.get(&format!("/source/orders/ask?{query}"), more);
        assert_eq!(code, 200, "{body}");
        let (_, token) = body.split_once("name=\"token\" value=\"").expect("a token");
        format!("{query}&token={}", &token[..64])
    }

    fn done(&self) -> Vec<String> {
        std::mem::take(&mut self.done.0.lock().unwrap())
    }
}

#[test]
fn a_form_of_the_page_is_carried_out_and_told() {
    let scene = Scene::new(true, Vec::new());
    let (_, _, page) = scene.get("/source/orders", "");
    assert!(page.contains("href=\"/source/orders/ask?do=stop\""), "{page}");
    let form = scene.form("do=drop&slot=a-1", "");
    let (code, head, _) = scene.post("/source/orders/do", &scene.ours(""), &form);
    let by = "somebody from 127.0.0.1";
    assert_eq!(code, 303, "{head}");
    assert_eq!(scene.done(), [format!("orders DropSlot(\"a-1\") by the web page ({by})")]);
    let (_, place) = head.split_once("location: ").unwrap();
    let (_, _, page) = scene.get(place.split("\r\n").next().unwrap(), "");
    assert!(
        page.contains("id=\"did\" class=\"did notice\" role=\"status\"") && page.contains("done: DropSlot")
    );
    assert!(!scene.get("/source/orders?did=0000000000000000", "").2.contains("id=\"did\""));
    let events = scene.source.glance(Timestamp::now()).events;
    assert_eq!((events[0].kind.as_str(), events[0].level), ("operator", status::Level::Notice));
    assert!(events[0].text.starts_with(&format!("{by}, on the web page: done")), "{}", events[0].text);

    // What could not be done is told too, and does nothing to the page.
    let form = scene.form("do=start", "");
    let (code, head, _) = scene.post("/source/orders/do", &scene.ours(""), &form);
    assert_eq!(code, 303);
    let (_, place) = head.split_once("location: ").unwrap();
    let (_, _, page) = scene.get(place.split("\r\n").next().unwrap(), "");
    assert!(
        page.contains("class=\"did warning\"") && page.contains("it cannot be &lt;started&gt;"),
        "{page}"
    );
    // A program without a browser's headers needs the token all the same.
    let plain = format!("Host: {}\r\nContent-Type: {FORM}; charset=utf-8\r\n", scene.host());
    let form = scene.form("do=end&reader=7", "");
    assert_eq!(scene.post("/source/orders/do", &plain, &form).0, 303);
    assert_eq!(scene.post("/source/orders/do", &plain, "do=end&reader=7").0, 403);
}

#[test]
fn another_form_is_refused_and_says_why() {
    let scene = Scene::new(true, Vec::new());
    let ours = scene.ours("");
    let host = scene.host();
    let good = scene.form("do=stop", "");
    let headers = |host: &str, more: &str| format!("Host: {host}\r\nContent-Type: {FORM}\r\n{more}");
    let long = format!("{good}&x={}", "x".repeat(5000));
    let to = "/source/orders/do";
    for (path, headers, form, code, why) in [
        (to, &ours, &"do=stop&token=".to_owned(), 403, "the token of the form is not"),
        (to, &ours, &good.replace("stop", "start"), 403, "the token of the form is not"),
        (to, &ours, &format!("do=stop&token={}", "0".repeat(64)), 403, "the token of the form is not"),
        ("/source/stock/do", &ours, &good, 404, "there is no such source"),
        (to, &ours, &good.replace("stop", "purge"), 400, "asks for nothing that can be done here"),
        (to, &ours, &long, 413, "more than 4096 bytes"),
        (to, &headers(&host, "Origin: https://evil.example\r\n"), &good, 403, "another web site (Origin"),
        (to, &headers(&host, "Origin: null\r\n"), &good, 403, "another web site (Origin"),
        (
            to,
            &headers(&host, "Sec-Fetch-Site: cross-site\r\n"),
            &good,
            403,
            "another web site (Sec-Fetch-Site",
        ),
        (to, &headers("evil.example", ""), &good, 403, "by its IP address or as localhost alone"),
        (to, &format!("Host: {host}\r\nContent-Type: text/plain\r\n"), &good, 415, "must be a form"),
        (to, &format!("Host: {host}\r\n"), &good, 415, "must be a form"),
        ("/source/orders", &ours, &good, 405, "this address only shows"),
        ("/source/orders/ask", &ours, &good, 405, "this address only shows"),
        ("/status", &ours, &good, 405, "this address only shows"),
    ] {
        let (got, head, body) = scene.post(path, headers, form);
        assert_eq!(got, code, "{path} {headers}{form}: {body}");
        assert!(
            body.contains(why) && body.starts_with("nothing was changed: "),
            "{path} {headers}{form}: {body}"
        );
        assert!(code != 405 || head.contains("allow: get,head"), "{head}");
    }
    let (code, head, body) = scene.get(&format!("{to}?{good}"), "");
    assert_eq!(code, 405);
    assert!(head.contains("allow: post") && body.contains("takes forms alone (POST)"), "{head}{body}");
    // To be asked changes nothing.
    assert_eq!(scene.get("/source/orders/ask?do=purge", "").0, 400);
    assert_eq!(scene.get("/source/stock/ask?do=stop", "").0, 404);
    assert_eq!(scene.done(), Vec::<String>::new());
    assert_eq!(scene.post(to, &ours, &good).0, 303, "and the form is still good");
}

#[test]
fn where_write_is_off_nothing_is_offered_and_nothing_taken() {
    let scene = Scene::new(false, Vec::new());
    assert!(!scene.get("/source/orders", "").2.contains("/ask?"));
    let (code, _, body) = scene.get("/source/orders/ask?do=stop", "");
    assert!(code == 403 && body.contains("write of [admin] is not true"), "{body}");
    let (code, _, body) = scene.post("/source/orders/do", &scene.ours(""), "do=stop&token=x");
    assert!(code == 403 && body.contains("write of [admin] is not true"), "{body}");
    assert_eq!(scene.done(), Vec::<String>::new());
}

// base64 of dba:s:cret, and of looker:s:cret
const DBA: &str = "Authorization: Basic ZGJhOnM6Y3JldA==\r\n";
const LOOKER: &str = "Authorization: Basic bG9va2VyOnM6Y3JldA==\r\n";

#[test]
fn a_user_without_write_may_only_look_and_has_no_use_for_the_token_of_another() {
    let scene = Scene::new(true, vec![user("dba", true), user("looker", false)]);
    let offers = |who: &str| scene.get("/source/orders", who).2.contains("/ask?");
    assert!(offers(DBA) && !offers(LOOKER));
    let form = scene.form("do=stop", DBA);
    for (who, code, why) in [(LOOKER, 403, "looker may look only"), ("", 401, "log in")] {
        let (got, _, body) = scene.post("/source/orders/do", &scene.ours(who), &form);
        assert!(got == code && body.contains(why), "{who}: {got} {body}");
        assert_eq!(scene.get("/source/orders/ask?do=stop", who).0, code);
    }
    // By the door for this machine nothing is changed either.
    let (door, token) = scene.server.for_this_machine();
    let token = token.unwrap().expose().to_owned();
    let (code, body) = get_as(door, "/source/orders/ask?do=stop", &format!("Bearer {token}"));
    assert!(code == 403 && body.contains("only shows"), "{body}");
    assert_eq!(scene.done(), Vec::<String>::new());
    assert_eq!(scene.post("/source/orders/do", &scene.ours(DBA), &form).0, 303);
    assert_eq!(scene.done(), ["orders Stop by the web page (dba from 127.0.0.1)"]);
    // With a login it may be reached by a name.
    let host = "binlogd.example";
    let by_name = format!("Host: {host}\r\nOrigin: https://{host}\r\nContent-Type: {FORM}\r\n{DBA}");
    assert_eq!(scene.post("/source/orders/do", &by_name, &form).0, 303);
}

#[test]
fn a_reload_gives_and_takes_rights_at_once() {
    let scene = Scene::new(true, vec![user("dba", true)]);
    let config = |write, users| AdminConfig { listen: None, tls: None, write, users };
    let form = scene.form("do=stop", DBA);
    let code = || scene.post("/source/orders/do", &scene.ours(DBA), &form).0;
    assert_eq!(code(), 303);
    let reload = |write, users| scene.server.reload(&config(write, users)).unwrap();
    assert!(reload(true, vec![user("dba", false), user("looker", true)]).is_empty());
    assert_eq!(code(), 403);
    assert_eq!(scene.get("/source/orders/ask?do=stop", LOOKER).0, 200, "another user");
    assert!(reload(true, vec![user("dba", true)]).is_empty());
    assert_eq!((code(), scene.get("/status", LOOKER).0), (303, 401));
    // Without a login there would be no door for this machine: that is for a restart. What is taken away is taken away.
    assert_eq!(reload(false, Vec::new()), ["admin.user"]);
    assert_eq!((code(), scene.get("/status", "").0), (403, 401));
}

/// Whoever reaches an address that others reach could do it.
#[test]
fn without_a_login_only_this_machine_may_write() {
    let config = AdminConfig { listen: None, tls: None, write: true, users: Vec::new() };
    let request = || {
        let daemon = Arc::new(DaemonMonitor::new(Path::new("data")));
        daemon.add(Arc::new(SourceMonitor::new("orders")));
        let listen = "0.0.0.0:0".parse().unwrap();
        AdminServer::start_with(listen, &config, daemon, Arc::new(Nothing)).unwrap()
    };
    let (code, _, body) = get(&request(), "/source/orders/ask?do=stop");
    assert!(code == 403 && body.contains("write of [admin] is not true"), "{body}");
}
