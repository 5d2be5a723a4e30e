//! A stand-in for Google Cloud Storage, of which there is no program to run here: the part of its XML API that writes
//! objects once and reads them. What it does not know it refuses, so that no test takes silence for support.
//!
//! Known: PUT with `x-goog-if-generation-match`; GET and HEAD with a range and a generation; DELETE; the list of version 2
//! with prefix, delimiter, `start-after` and pages. Not known: uploads in parts, copies, versions, retention.

mod http;

use anyhow::{Context, bail};
use http::{Answer, Request, decoded, escaped, pairs, part};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufReader;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Generations are numbers of 16 digits, as the real ones are: they do not fit 32 bits.
const FIRST_GENERATION: u64 = 1_700_000_000_000_000;

/// One bucket, served on a port of 127.0.0.1 until it is dropped. What was in it is gone then.
#[derive(Debug)]
pub struct Gcs {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepts: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    bucket: String,
    page: usize,
    objects: Mutex<BTreeMap<String, Object>>,
    /// That of the newest object, whether it is still there or not.
    generation: AtomicU64,
    requests: Mutex<Vec<String>>,
    connections: Mutex<Vec<TcpStream>>,
    ends: AtomicBool,
}

#[derive(Debug, Clone)]
struct Object {
    data: Arc<Vec<u8>>,
    generation: u64,
    written: Timestamp,
    /// Those of its headers that are given back with it.
    headers: Vec<(String, String)>,
}

impl Object {
    fn etag(&self) -> String {
        format!("\"{:x}\"", self.generation)
    }
}

impl Gcs {
    /// Serves `bucket`, empty. A page of a list has `page` entries at most, 1000 in the real one.
    ///
    /// # Errors
    /// When there is no port.
    pub fn start(bucket: &str, page: usize) -> anyhow::Result<Gcs> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            bucket: bucket.to_owned(),
            page,
            objects: Mutex::default(),
            generation: AtomicU64::new(FIRST_GENERATION),
            requests: Mutex::default(),
            connections: Mutex::default(),
            ends: AtomicBool::new(false),
        });
        let accepts = std::thread::spawn({
            let shared = shared.clone();
            move || accept(&listener, &shared)
        });
        Ok(Gcs { address, shared, accepts: Some(accepts) })
    }

    /// In place of `https://storage.googleapis.com`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The key file of a service account, as Google gives it away, with a private key of its own. A client signs its tokens
    /// itself with that.
    ///
    /// # Errors
    /// When `openssl` is missing.
    pub fn service_account(&self) -> anyhow::Result<String> {
        let mut command = Command::new("openssl");
        let words = ["genpkey", "-quiet", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"];
        let output = command.args(words).stdin(Stdio::null()).output().context("cannot run openssl")?;
        if !output.status.success() {
            bail!("openssl makes no key: {}", String::from_utf8_lossy(&output.stderr));
        }
        let file = serde_json::json!({
            "type": "service_account",
            "private_key": String::from_utf8(output.stdout)?,
            "private_key_id": "1",
            "client_email": "archive@test.iam.gserviceaccount.com",
            "gcs_base_url": self.base_url(),
        });
        Ok(file.to_string())
    }

    /// What was asked for so far, such as `PUT /bucket/a%2Fb`, the oldest first.
    pub fn requests(&self) -> Vec<String> {
        lock(&self.shared.requests).clone()
    }

    /// The names of the objects, sorted.
    pub fn names(&self) -> Vec<String> {
        lock(&self.shared.objects).keys().cloned().collect()
    }

    /// Puts `data` in an object's place behind everybody's back, as damage does: the generation stays. False when there is
    /// no such object.
    pub fn damage(&self, name: &str, data: &[u8]) -> bool {
        let mut objects = lock(&self.shared.objects);
        let Some(object) = objects.get_mut(name) else { return false };
        object.data = Arc::new(data.to_vec());
        true
    }
}

impl Drop for Gcs {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for a connection.
        drop(TcpStream::connect(self.address));
        if let Some(accepts) = self.accepts.take() {
            let _ = accepts.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut serving = Vec::new();
    for stream in listener.incoming() {
        if shared.ends.load(Ordering::SeqCst) {
            break;
        }
        let Ok(stream) = stream else { continue };
        let Ok(other_end) = stream.try_clone() else { continue };
        lock(&shared.connections).push(other_end);
        let shared = shared.clone();
        // An error is the client's end of it.
        serving.push(std::thread::spawn(move || serve(&stream, &shared).unwrap_or_default()));
    }
    for connection in lock(&shared.connections).drain(..) {
        let _ = connection.shutdown(Shutdown::Both);
    }
    for thread in serving {
        let _ = thread.join();
    }
}

/// Answers one request after the other.
fn serve(stream: &TcpStream, shared: &Shared) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    while let Some(request) = Request::read(&mut reader)? {
        lock(&shared.requests).push(format!("{} {}", request.method, request.target));
        let answer = shared.answer(&request);
        answer.write(stream, request.method == "HEAD")?;
    }
    Ok(())
}

impl Shared {
    fn answer(&self, request: &Request) -> Answer {
        // Three parts are a token that was signed; without an account there is none.
        let token = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        if token.is_none_or(|token| token.split('.').filter(|part| !part.is_empty()).count() != 3) {
            return Answer::error("401 Unauthorized", "AuthenticationRequired");
        }
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        let query: BTreeMap<String, String> = pairs(query).collect();
        let (bucket, name) = path.trim_start_matches('/').split_once('/').unwrap_or((&path[1..], ""));
        if decoded(bucket) != self.bucket {
            return Answer::error("404 Not Found", "NoSuchBucket");
        }
        let name = decoded(name);
        match (request.method.as_str(), name.is_empty()) {
            ("GET", true) => self.list(&query),
            ("GET" | "HEAD", false) => self.get(request, &name, &query),
            ("PUT", false) => self.put(request, name, &query),
            ("DELETE", false) if query.is_empty() => self.delete(request, &name),
            _ => Answer::unknown(&format!("{} {}", request.method, request.target)),
        }
    }

    fn put(&self, request: &Request, name: String, query: &BTreeMap<String, String>) -> Answer {
        let is_known = |name: &str| !name.starts_with("x-goog-") || name.starts_with("x-goog-meta-");
        let unknown =
            request.headers.keys().find(|name| !is_known(name) && *name != "x-goog-if-generation-match");
        let conditions =
            ["if-match", "if-none-match"].into_iter().find(|name| request.headers.contains_key(*name));
        if let Some(header) = unknown.map(String::as_str).or(conditions) {
            return Answer::unknown(header);
        }
        if !query.is_empty() {
            return Answer::unknown("PUT with a query");
        }
        let mut objects = lock(&self.objects);
        // Zero stands for no object.
        let there = objects.get(&name).map_or(0, |object| object.generation);
        if let Some(wanted) = request.header("x-goog-if-generation-match") {
            let Ok(wanted) = wanted.parse::<u64>() else {
                return Answer::error("400 Bad Request", "InvalidArgument");
            };
            if wanted != there {
                return Answer::error("412 Precondition Failed", "PreconditionFailed");
            }
        }
        let generation = 1 + self.generation.fetch_add(1, Ordering::SeqCst);
        let kept = |name: &str| name.starts_with("x-goog-meta-") || name == "content-type";
        let headers = request.headers.iter().filter(|(name, _)| kept(name));
        let object = Object {
            data: Arc::new(request.body.clone()),
            generation,
            written: Timestamp::now(),
            headers: headers.map(|(name, value)| (name.clone(), value.clone())).collect(),
        };
        let mut answer = Answer::new("200 OK");
        answer.headers = described(&object);
        objects.insert(name, object);
        answer
    }

    fn get(&self, request: &Request, name: &str, query: &BTreeMap<String, String>) -> Answer {
        let conditions = ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"];
        if let Some(header) = conditions.into_iter().find(|name| request.headers.contains_key(*name)) {
            return Answer::unknown(header);
        }
        if let Some((key, _)) = query.iter().find(|(key, _)| *key != "generation") {
            return Answer::unknown(key);
        }
        let Some(object) = lock(&self.objects).get(name).cloned() else {
            return Answer::error("404 Not Found", "NoSuchKey");
        };
        if query.get("generation").is_some_and(|wanted| *wanted != object.generation.to_string()) {
            return Answer::error("404 Not Found", "NoSuchKey");
        }
        let mut answer = Answer::new("200 OK");
        answer.headers = described(&object);
        answer.headers.extend(object.headers.iter().cloned());
        let len = object.data.len();
        let Some(range) = request.header("range") else {
            answer.body = object.data.to_vec();
            return answer;
        };
        let Some((from, to)) = part(range, len) else {
            return Answer::error("416 Requested Range Not Satisfiable", "InvalidRange");
        };
        answer.status = "206 Partial Content";
        answer.headers.push(("Content-Range".to_owned(), format!("bytes {from}-{}/{len}", to - 1)));
        answer.body = object.data[from..to].to_vec();
        answer
    }

    fn delete(&self, request: &Request, name: &str) -> Answer {
        if let Some(header) = request.headers.keys().find(|name| name.starts_with("x-goog-if-")) {
            return Answer::unknown(header);
        }
        match lock(&self.objects).remove(name) {
            Some(_) => Answer::new("204 No Content"),
            None => Answer::error("404 Not Found", "NoSuchKey"),
        }
    }

    fn list(&self, query: &BTreeMap<String, String>) -> Answer {
        const KNOWN: [&str; 6] =
            ["list-type", "prefix", "delimiter", "start-after", "continuation-token", "max-keys"];
        if let Some(key) = query.keys().find(|key| !KNOWN.contains(&key.as_str())) {
            return Answer::unknown(key);
        }
        let of = |key: &str| query.get(key).map_or("", String::as_str);
        if of("list-type") != "2" {
            return Answer::unknown("a list of version 1");
        }
        let (prefix, delimiter) = (of("prefix"), of("delimiter"));
        let page =
            query.get("max-keys").and_then(|max| max.parse().ok()).unwrap_or(usize::MAX).min(self.page);
        // The token is what the page before ended with.
        let token = of("continuation-token");
        let after = of("start-after").max(token);
        let (mut folders, mut entries, mut last, mut next) = (BTreeSet::new(), String::new(), "", None);
        let (objects, mut count) = (lock(&self.objects), 0);
        for (name, object) in
            objects.iter().filter(|(name, _)| name.starts_with(prefix) && name.as_str() > after)
        {
            let rest = &name[prefix.len()..];
            let folder = match rest.find(delimiter) {
                Some(at) if !delimiter.is_empty() => Some(&name[..prefix.len() + at + delimiter.len()]),
                _ => None,
            };
            // All that is in a folder is one entry, and it was on the page before when that ended in it.
            if folder.is_some_and(|folder| folders.contains(folder) || token.starts_with(folder)) {
                last = name;
                continue;
            }
            if count == page {
                next = Some(last);
                break;
            }
            (count, last) = (count + 1, name);
            match folder {
                Some(folder) => {
                    folders.insert(folder);
                }
                None => entries += &entry(name, object),
            }
        }
        let folders = folders
            .iter()
            .map(|folder| format!("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", escaped(folder)));
        let next =
            next.map(|next| format!("<NextContinuationToken>{}</NextContinuationToken>", escaped(next)));
        let body = format!(
            "<?xml version='1.0' encoding='UTF-8'?><ListBucketResult><Name>{}</Name><IsTruncated>{}</IsTruncated>{}{entries}{}</ListBucketResult>",
            self.bucket,
            next.is_some(),
            next.unwrap_or_default(),
            folders.collect::<String>(),
        );
        Answer { body: body.into_bytes(), ..Answer::new("200 OK") }
    }
}

fn described(object: &Object) -> Vec<(String, String)> {
    let written = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&object.written);
    let generation = ("x-goog-generation".to_owned(), object.generation.to_string());
    vec![
        ("ETag".to_owned(), object.etag()),
        generation,
        ("Last-Modified".to_owned(), written.unwrap_or_default()),
    ]
}

fn entry(name: &str, object: &Object) -> String {
    format!(
        "<Contents><Key>{}</Key><Generation>{}</Generation><LastModified>{}</LastModified><ETag>{}</ETag><Size>{}</Size></Contents>",
        escaped(name),
        object.generation,
        object.written,
        escaped(&object.etag()),
        object.data.len(),
    )
}
