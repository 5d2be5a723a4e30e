//! As much of HTTP 1.1 as the stand-in for Google Cloud Storage needs: whole requests and whole answers.

use anyhow::bail;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, Write};
use std::net::TcpStream;

/// Largest body that is taken, in bytes.
const BODY_MAX: usize = 1 << 30;

#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) target: String,
    /// Names in lower case.
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// `None` at the end of the connection.
    pub(super) fn read(reader: &mut impl BufRead) -> anyhow::Result<Option<Request>> {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split_whitespace();
        let (method, target) =
            (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned());
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let len: usize = headers.get("content-length").map_or(Ok(0), |len| len.parse())?;
        if len > BODY_MAX || headers.contains_key("transfer-encoding") {
            bail!("a body of {len} bytes, or of unknown length");
        }
        let mut body = vec![0; len];
        reader.read_exact(&mut body)?;
        Ok(Some(Request { method, target, headers, body }))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: &'static str,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn new(status: &'static str) -> Answer {
        Answer { status, headers: Vec::new(), body: Vec::new() }
    }

    /// With the code that the real one names.
    pub(super) fn error(status: &'static str, code: &str) -> Answer {
        let body = format!("<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code></Error>");
        Answer { body: body.into_bytes(), ..Answer::new(status) }
    }

    pub(super) fn unknown(what: &str) -> Answer {
        Answer::error("501 Not Implemented", &format!("NotImplemented: {}", escaped(what)))
    }

    pub(super) fn write(&self, mut stream: &TcpStream, is_head: bool) -> std::io::Result<()> {
        let mut head = format!("HTTP/1.1 {}\r\nContent-Length: {}\r\n", self.status, self.body.len());
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        let mut all = (head + "\r\n").into_bytes();
        if !is_head {
            all.extend_from_slice(&self.body);
        }
        stream.write_all(&all)
    }
}

/// The bytes that `bytes=a-b`, `bytes=a-` or `bytes=-n` means, the end not included; `None` where there are none.
pub(super) fn part(range: &str, len: usize) -> Option<(usize, usize)> {
    let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (from, to) = match (from, to) {
        ("", n) => (len.saturating_sub(n.parse().ok()?), len),
        (from, "") => (from.parse().ok()?, len),
        (from, to) => (from.parse().ok()?, len.min(to.parse::<usize>().ok()?.checked_add(1)?)),
    };
    (from < to).then_some((from, to))
}

pub(super) fn pairs(query: &str) -> impl Iterator<Item = (String, String)> + '_ {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(&key.replace('+', " ")), decoded(&value.replace('+', " ")))
    })
}

/// Without the escapes of a URL.
pub(super) fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// As text in XML.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
