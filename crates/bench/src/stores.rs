//! Object stores as an archive meets them on a good day and on a bad one.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Where binlogd archives while it is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ArchiveStore {
    /// A folder on the disk that the copy uses.
    Folder,
    /// One that says that it has nothing, and answers no write.
    Silent,
    /// One that says that it has nothing, and answers 503 to each write.
    Unavailable,
}

/// A request longer than this is not read to its end before it is answered.
const REQUEST_BYTES: usize = 64 << 10;

/// A list of objects with none in it.
const EMPTY_LIST: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult><Name>bench</Name><Prefix></Prefix>\
                          <KeyCount>0</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated></ListBucketResult>";

impl ArchiveStore {
    /// Tells binlogd about it. What it needs beside the folder `dir` lives as long as this process. Gives the count of connections
    /// that were made to it; a folder has none.
    ///
    /// # Errors
    /// When there is no port for it.
    pub fn set(self, command: &mut Command, dir: &Path) -> anyhow::Result<Arc<AtomicU64>> {
        let connections = Arc::new(AtomicU64::new(0));
        command.args(["--archive-interval", "1s"]);
        if self == ArchiveStore::Folder {
            let folder = dir.canonicalize()?.join("archive");
            command.arg("--archive-url").arg(format!("file://{}", folder.display()));
            return Ok(connections);
        }
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let counted = connections.clone();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::Relaxed);
                thread::spawn(move || self.answer(connection));
            }
        });
        command.args(["--archive-url", "s3://bench/binlogs", "--archive-endpoint", &endpoint]);
        command.args(["--archive-allow-http", "true"]);
        command.env("AWS_ACCESS_KEY_ID", "bench").env("AWS_SECRET_ACCESS_KEY", "bench");
        Ok(connections)
    }
}

impl ArchiveStore {
    /// Says that there is nothing, without which no copy begins, and takes nothing.
    fn answer(self, mut connection: TcpStream) {
        let mut request = vec![0; REQUEST_BYTES];
        // A connection of no use ends the thread, whatever it says.
        let _ = connection.set_read_timeout(Some(Duration::from_secs(60)));
        while let Ok(read) = connection.read(&mut request)
            && read > 0
        {
            let request = String::from_utf8_lossy(&request[..read]);
            let line = request.lines().next().unwrap_or_default();
            let (status, body) = if line.contains("list-type=2") {
                ("200 OK", EMPTY_LIST)
            } else if line.starts_with("GET ") || line.starts_with("HEAD ") {
                ("404 Not Found", "")
            } else if self == ArchiveStore::Silent {
                continue;
            } else {
                ("503 Slow Down", "")
            };
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            if connection.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}
