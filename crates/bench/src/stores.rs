//! Object stores as an archive meets them on a good day and on a bad one.

use std::fmt;
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
    /// A folder in memory: what archiving costs without its writes to the disk.
    Memory,
    /// One that says that it has nothing, and answers no write.
    Silent,
    /// One that says that it has nothing, and answers 503 to each write.
    Unavailable,
}

impl fmt::Display for ArchiveStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ArchiveStore::Folder => "archives to a folder",
            ArchiveStore::Memory => "archives to a folder in memory",
            ArchiveStore::Silent => "its archive never answers",
            ArchiveStore::Unavailable => "its archive answers 503",
        })
    }
}

/// What a store has around it.
#[derive(Debug, Default)]
pub struct Around {
    /// Connections that were made to it; a folder has none.
    pub connections: Arc<AtomicU64>,
    /// Its folder, where that is in memory. Removed with this.
    pub in_memory: Option<tempfile::TempDir>,
}

/// A request longer than this is not read to its end before it is answered.
const REQUEST_BYTES: usize = 64 << 10;

/// A list of objects with none in it.
const EMPTY_LIST: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult><Name>bench</Name><Prefix></Prefix>\
                          <KeyCount>0</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated></ListBucketResult>";

impl ArchiveStore {
    /// Tells binlogd about it, and to upload each `interval` seconds. Servers that it needs live as long as this process.
    ///
    /// # Errors
    /// When there is no port for it.
    pub fn set(self, command: &mut Command, dir: &Path, interval: u32) -> anyhow::Result<Around> {
        let connections = Arc::new(AtomicU64::new(0));
        command.arg("--archive-interval").arg(format!("{interval}s"));
        if matches!(self, ArchiveStore::Folder | ArchiveStore::Memory) {
            let in_memory = (self == ArchiveStore::Memory)
                .then(|| tempfile::Builder::new().prefix("binlogd-bench-").tempdir_in("/dev/shm"))
                .transpose()?;
            let around = in_memory.as_ref().map_or(dir, tempfile::TempDir::path).canonicalize()?;
            command.arg("--archive-url").arg(format!("file://{}", around.join("archive").display()));
            return Ok(Around { connections, in_memory });
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
        Ok(Around { connections, in_memory: None })
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
