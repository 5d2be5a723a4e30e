//! Readers that throw away what they read, in a process of their own, so that their processor time is told apart.

use crate::backlog::USER;
use anyhow::{Context, bail};
use codec::packet::command;
use rig::process::Running;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wire::{ConnectOptions, Connection, DumpStream, Secret, TlsMode, TlsOptions};

/// Bytes that a reader takes at once.
const BUFFER_LEN: usize = 64 << 10;

/// Stack of a reader's thread, in bytes. There may be hundreds.
const STACK_BYTES: usize = 256 << 10;

/// `server_id` of the first reader; the next ones follow.
const SERVER_ID: u32 = 4_100_000;

/// Flags of a dump, see ARCHITECTURE.md: send what there is and end; newer heartbeats.
const NON_BLOCK: u16 = 1;
const HEARTBEATS_V2: u16 = 2;

/// Arguments of `binlogd-bench null-readers`.
#[derive(Debug, Clone, clap::Args)]
pub struct NullReadersArgs {
    /// Port of the source, on 127.0.0.1.
    #[arg(long)]
    pub port: u16,
    /// Password of the account.
    #[arg(long, default_value = "")]
    pub password: String,
    /// File to begin with.
    #[arg(long)]
    pub file: String,
    /// Where in that file to begin.
    #[arg(long, default_value_t = 4)]
    pub position: u32,
    /// How many.
    #[arg(long)]
    pub count: usize,
    /// Take what there is, and end. Otherwise stay until the end of standard input.
    #[arg(long)]
    pub to_the_end: bool,
}

/// A dump on a connection of its own.
///
/// # Errors
/// When it is refused.
pub fn open(
    port: u16,
    password: &str,
    server_id: u32,
    (file, position): (&str, u32),
    to_the_end: bool,
) -> anyhow::Result<DumpStream> {
    let mut connection = Connection::connect(&ConnectOptions {
        host: "127.0.0.1".to_owned(),
        port,
        user: USER.to_owned(),
        password: Secret::new(password),
        connect_timeout: Duration::from_secs(30),
        tls: TlsOptions { mode: TlsMode::Disabled, ..TlsOptions::default() },
    })?;
    // The period of a replica.
    connection.query("SET @master_heartbeat_period = 30000000000, @source_heartbeat_period = 30000000000")?;
    connection.query("SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32'")?;
    connection.command(&command::register_replica(server_id, "bench", 0))?;
    let flags = HEARTBEATS_V2 | if to_the_end { NON_BLOCK } else { 0 };
    Ok(connection.start_dump(&command::binlog_dump(position, flags, server_id, file.as_bytes()))?)
}

/// Reads, prints a line of JSON when all readers have got something, and another with the bytes at the end.
///
/// # Errors
/// When one of them is refused or cut off.
pub fn run(args: &NullReadersArgs) -> anyhow::Result<()> {
    let streams = (0..args.count).map(|number| {
        let place = (args.file.as_str(), args.position);
        open(args.port, &args.password, SERVER_ID + number as u32, place, args.to_the_end)
            .with_context(|| format!("reader {number}"))
    });
    let streams: Vec<DumpStream> = streams.collect::<Result<_, _>>()?;
    println!("{}", json!({ "readers": streams.len() }));
    let bytes = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let mut readers = Vec::new();
        for stream in streams {
            let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
            readers.push(builder.spawn_scoped(scope, || discard(stream, &bytes))?);
        }
        if !args.to_the_end {
            std::io::stdin().read_to_end(&mut Vec::new())?;
            println!("{}", json!({ "bytes": bytes.load(Ordering::Relaxed) }));
            // The end of the process ends the others.
            std::process::exit(0);
        }
        for reader in readers {
            reader.join().ok().context("a reader panicked")??;
        }
        println!("{}", json!({ "bytes": bytes.load(Ordering::Relaxed) }));
        Ok(())
    })
}

fn discard(mut stream: DumpStream, bytes: &AtomicU64) -> anyhow::Result<()> {
    let mut buffer = vec![0; BUFFER_LEN];
    while stream.pending() {
        bytes.fetch_add(stream.read(&mut buffer)? as u64, Ordering::Relaxed);
    }
    // From here on the socket itself, and blocking: one system call to wait and read.
    let mut socket = TcpStream::from(stream.as_fd().try_clone_to_owned()?);
    socket.set_nonblocking(false)?;
    loop {
        match socket.read(&mut buffer)? {
            0 => return Ok(()),
            read => bytes.fetch_add(read as u64, Ordering::Relaxed),
        };
    }
}

/// [`run`] in a process of its own, which ends when this is dropped.
pub struct NullReaders {
    process: Running,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl NullReaders {
    /// Starts `count` readers, and waits until all of them dump.
    ///
    /// # Errors
    /// When one of them is refused.
    pub fn start(
        (port, password): (u16, &str),
        (file, position): (&str, u64),
        count: usize,
        to_the_end: bool,
    ) -> anyhow::Result<NullReaders> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["null-readers", "--port", &port.to_string(), "--password", password]);
        command.args(["--file", file, "--position", &position.to_string(), "--count", &count.to_string()]);
        if to_the_end {
            command.arg("--to-the-end");
        }
        let mut child: Child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.context("no pipes to the readers")?;
        let mut readers =
            NullReaders { process: Running(child), input: Some(input), output: BufReader::new(output) };
        readers.line()?;
        Ok(readers)
    }

    /// The bytes that all of them have read, when they have ended.
    ///
    /// # Errors
    /// When one of them was cut off.
    pub fn finish(mut self) -> anyhow::Result<u64> {
        drop(self.input.take());
        let bytes = self.line()?["bytes"].as_u64().context("no bytes in what the readers said")?;
        let status = self.process.0.wait()?;
        if !status.success() {
            bail!("the readers failed: {status}");
        }
        Ok(bytes)
    }

    fn line(&mut self) -> anyhow::Result<Value> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        serde_json::from_str(&line).context("the readers have ended: see their message above")
    }
}
