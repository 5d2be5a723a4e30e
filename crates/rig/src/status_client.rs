//! binlogd's status over HTTP, asked for often.

use anyhow::{Context, bail};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest wait for the address to be known, and for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Most bytes of an answer's head.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Asks one binlogd. The connection is kept as long as binlogd keeps it; otherwise each question makes its own.
#[derive(Debug)]
pub struct StatusClient {
    address: SocketAddr,
    stream: Option<TcpStream>,
    answer: Vec<u8>,
}

impl StatusClient {
    /// For the binlogd whose data folder is `dir`, once it has written its address there.
    ///
    /// # Errors
    /// When there is no address after half a minute.
    pub fn of(dir: &Path) -> anyhow::Result<StatusClient> {
        let path = dir.join("admin.address");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            if let Ok(address) = text.trim().parse() {
                return Ok(StatusClient { address, stream: None, answer: Vec::new() });
            }
            if Instant::now() > deadline {
                bail!("binlogd has not written {} within {PATIENCE:?}", path.display());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The whole status.
    ///
    /// # Errors
    /// When binlogd does not answer.
    pub fn status(&mut self) -> anyhow::Result<Value> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(self.address)
                    .with_context(|| format!("cannot connect to binlogd's status at {}", self.address))?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream
            }
        };
        stream.write_all(b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        self.answer.clear();
        let head = loop {
            if let Some(end) = self.answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end;
            }
            if self.answer.len() > HEAD_BYTES_MAX || self.read(&mut stream)? == 0 {
                bail!("what binlogd's status answers is not HTTP");
            }
        };
        let text = String::from_utf8_lossy(&self.answer[..head]).to_lowercase();
        let header = |name: &str| {
            let mut lines = text.lines();
            lines
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                .map(|value| value.trim().to_owned())
        };
        let len: usize = header("content-length").context("no Content-Length in the answer")?.parse()?;
        while self.answer.len() < head + 4 + len {
            if self.read(&mut stream)? == 0 {
                bail!("binlogd closed the connection inside an answer");
            }
        }
        if header("connection").as_deref() != Some("close") {
            self.stream = Some(stream);
        }
        Ok(serde_json::from_slice(&self.answer[head + 4..head + 4 + len])?)
    }

    fn read(&mut self, stream: &mut TcpStream) -> anyhow::Result<usize> {
        let mut buffer = [0; 64 * 1024];
        let read = stream.read(&mut buffer)?;
        self.answer.extend_from_slice(&buffer[..read]);
        Ok(read)
    }
}
