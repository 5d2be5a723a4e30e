//! The yardstick: the simplest receiver that keeps semi-sync's promise.
//!
//! One thread: read what the socket has, write it in one call, sync it if asked to, acknowledge the last position that
//! the source wants to hear of. It looks at packet headers and nothing else: no checksum, no boundary, no file switch,
//! no recovery, and what it stores are raw packets. Whatever binlogd takes longer than this is binlogd's own doing.

use crate::statistics::Samples;
use anyhow::{Context, bail};
use codec::dump_stream::DumpFramer;
use codec::packet::{command, semi_sync_acknowledgement};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wire::{ConnectOptions, Connection, DumpStream, Secret, TlsMode, TlsOptions};

/// As large as binlogd's.
const BUFFER_LEN: usize = 1 << 20;

/// Packet header, status byte, semi-sync bytes, and an event header: all that is looked at.
const LOOK_LEN: usize = 4 + 3 + 19;

/// Flag of a dump: send what there is, and do not wait for more.
const NON_BLOCK: u16 = 1;

/// Flag of a dump, see ARCHITECTURE.md.
const HEARTBEATS_V2: u16 = 2;

/// What an acknowledgement waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Acknowledge {
    /// Nothing, and what was read is thrown away: what the source and the socket can do.
    Discard,
    /// Nothing is acknowledged and packets are not even looked at: a copy from socket to file.
    Never,
    /// The write.
    Written,
    /// The fdatasync after it.
    Synced,
}

/// Arguments of `binlogd-bench bare`, and of the lab's own `bare`.
#[derive(Debug, Clone, clap::Args)]
pub struct BareArgs {
    /// Address of the source.
    #[arg(long, default_value = "127.0.0.1")]
    pub host: String,
    /// Port of the source.
    #[arg(long)]
    pub port: u16,
    /// Account.
    #[arg(long, default_value = "bench")]
    pub user: String,
    /// Name of the environment variable that holds the password.
    #[arg(long)]
    pub password_env: Option<String>,
    /// First file to ask for; empty for the oldest.
    #[arg(long, default_value = "")]
    pub file: String,
    /// Where in that file to begin.
    #[arg(long, default_value_t = 4)]
    pub position: u32,
    /// `server_id` to register with.
    #[arg(long, default_value_t = 4_000_000)]
    pub server_id: u32,
    /// File to write to; not needed for `--acknowledge discard`.
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// What an acknowledgement waits for.
    #[arg(long, value_enum, default_value = "synced")]
    pub acknowledge: Acknowledge,
    /// Ask for what the source has now, and end when it has all been received.
    #[arg(long)]
    pub to_the_end: bool,
}

impl BareArgs {
    /// Whether packets are looked at and acknowledged.
    fn acknowledges(&self) -> bool {
        matches!(self.acknowledge, Acknowledge::Written | Acknowledge::Synced)
    }
}

/// Receives until the source closes the connection, and prints the times from the arrival of a request to the leaving
/// of its acknowledgement, and how many bytes were received, as JSON.
///
/// # Errors
/// When something fails; the end of the connection is none.
pub fn run(args: &BareArgs) -> anyhow::Result<()> {
    let stream = connect(args)?;
    let mut out = match (&args.out, args.acknowledge) {
        (_, Acknowledge::Discard) => None,
        (None, _) => bail!("--out is missing: name the file to write to, or say --acknowledge discard"),
        (Some(path), _) => {
            Some(File::create(path).with_context(|| format!("cannot create {}", path.display()))?)
        }
    };
    let (samples, bytes) = receive(stream, out.as_mut(), args)?;
    let mut result = samples.percentiles().to_json();
    result["bytes"] = bytes.into();
    println!("{result}");
    Ok(())
}

fn connect(args: &BareArgs) -> anyhow::Result<DumpStream> {
    let password = args.password_env.as_deref().map_or(Ok(String::new()), std::env::var)?;
    let mut connection = Connection::connect(&ConnectOptions {
        host: args.host.clone(),
        port: args.port,
        user: args.user.clone(),
        password: Secret::new(password),
        connect_timeout: Duration::from_secs(10),
        tls: TlsOptions { mode: TlsMode::Disabled, ..TlsOptions::default() },
    })?;
    connection.query("SET @master_heartbeat_period = 5000000000, @source_heartbeat_period = 5000000000")?;
    connection.query("SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32'")?;
    connection.query("SET @mariadb_slave_capability = 4")?;
    if args.acknowledges() {
        connection.query("SET @rpl_semi_sync_slave = 1, @rpl_semi_sync_replica = 1")?;
    }
    connection.command(&command::register_replica(args.server_id, "bare", 0))?;
    let flags = HEARTBEATS_V2 | if args.to_the_end { NON_BLOCK } else { 0 };
    let dump = command::binlog_dump(args.position, flags, args.server_id, args.file.as_bytes());
    // A source that does not wait closes the connection at the end, so that no packet needs to be looked at to see it.
    Ok(connection.start_dump(&dump)?)
}

fn receive(
    mut stream: DumpStream,
    mut out: Option<&mut File>,
    args: &BareArgs,
) -> anyhow::Result<(Samples, u64)> {
    let mut buffer = vec![0; BUFFER_LEN];
    let (mut leftover, mut bytes) = (0, 0);
    while stream.pending() {
        leftover += stream.read(&mut buffer[leftover..])?;
    }
    // From here on the socket itself, and blocking: one system call to wait and read.
    let mut socket = TcpStream::from(stream.as_fd().try_clone_to_owned()?);
    socket.set_nonblocking(false)?;
    let mut samples = Samples::with_capacity(1 << 20);
    let mut packets = Packets::default();
    let mut packet = Vec::new();
    loop {
        let read = if leftover > 0 { std::mem::take(&mut leftover) } else { socket.read(&mut buffer)? };
        if read == 0 {
            return Ok((samples, bytes));
        }
        bytes += read as u64;
        let arrived = Instant::now();
        let Some(out) = out.as_deref_mut() else { continue };
        let wanted = if args.acknowledges() { packets.look(&buffer[..read])? } else { None };
        out.write_all(&buffer[..read])?;
        if let Some(position) = wanted {
            if args.acknowledge == Acknowledge::Synced {
                out.sync_data()?;
            }
            packet.clear();
            semi_sync_acknowledgement(&mut packet, u64::from(position), &packets.file);
            socket.write_all(&packet)?;
            samples.record(arrived.elapsed());
        }
    }
}

/// Where packets begin in the stream, however it was cut.
#[derive(Default)]
struct Packets {
    semi_sync: Option<bool>,
    /// The beginning of a packet that was cut before all that is looked at had arrived.
    head: Vec<u8>,
    /// Bytes of the current packet that are still to come.
    skip: usize,
    file: Vec<u8>,
}

impl Packets {
    /// Finds the last position in `bytes` for which an acknowledgement is wanted.
    fn look(&mut self, mut bytes: &[u8]) -> anyhow::Result<Option<u32>> {
        let mut wanted = None;
        loop {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = &bytes[skipped..];
            let taken = (LOOK_LEN - self.head.len()).min(bytes.len());
            // A whole head in one piece needs no copy, but copying 26 bytes costs nothing to speak of either.
            self.head.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if self.head.len() < LOOK_LEN {
                return Ok(wanted);
            }
            let (end, rest) = self.packet(bytes)?;
            wanted = end.or(wanted);
            bytes = &bytes[rest..];
            self.head.clear();
        }
    }

    /// Looks at the packet in `head`; `after` is what has arrived behind that. Returns the end of its event if it is
    /// wanted, and how many bytes of `after` were used. An event that continues in a second packet is not known here.
    fn packet(&mut self, after: &[u8]) -> anyhow::Result<(Option<u32>, usize)> {
        let head = &self.head;
        let payload = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
        if head[4] != 0 || payload == 0xff_ffff {
            bail!("the bare receiver knows only whole events: status {:#04x}, {payload} bytes", head[4]);
        }
        let semi_sync =
            *self.semi_sync.get_or_insert_with(|| DumpFramer::detect_semi_sync(head) == Some(true));
        let event = if semi_sync { &head[7..] } else { &head[5..] };
        let Some(rest) = (4 + payload).checked_sub(LOOK_LEN) else {
            bail!("a packet of {payload} bytes is not an event");
        };
        let end = u32::from_le_bytes([event[13], event[14], event[15], event[16]]);
        if event[4] == 4 && event[17] & 0x20 != 0 && rest <= after.len() {
            // An artificial ROTATE: a position of 8 bytes, the name, a checksum of 4 bytes.
            let body = [&event[19..], &after[..rest]].concat();
            self.file = body[8..body.len() - 4].to_vec();
            return Ok((None, rest));
        }
        self.skip = rest;
        Ok(((semi_sync && head[6] & 1 != 0).then_some(end), 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_wanted_position_is_found_in_every_cutting() {
        let mut stream = Vec::new();
        let mut push = |event_type: u8, flags: u8, wanted: u8, end: u32, body: &[u8]| {
            let mut event = vec![0; 19];
            event[4] = event_type;
            event[13..17].copy_from_slice(&end.to_le_bytes());
            event[17] = flags;
            event.extend_from_slice(body);
            let len = (3 + event.len()) as u32;
            stream.extend_from_slice(&len.to_le_bytes()[..3]);
            stream.extend_from_slice(&[1, 0, 0xef, wanted]);
            stream.extend_from_slice(&event);
        };
        push(4, 0x20, 0, 0, b"\x04\0\0\0\0\0\0\0b.000001crc!");
        push(30, 0, 0, 300, &[7; 100]);
        push(16, 0, 1, 331, &[7; 12]);
        push(33, 0, 0, 400, &[7; 50]);
        for step in [26, 27, 60, 1000] {
            let mut packets = Packets::default();
            let mut last = None;
            // The bare receiver expects a ROTATE in one piece, as it comes after a wait.
            let (first, rest) = stream.split_at(46);
            packets.look(first).unwrap();
            for piece in rest.chunks(step) {
                last = packets.look(piece).unwrap().or(last);
            }
            assert_eq!((last, packets.file.as_slice()), (Some(331), &b"b.000001"[..]));
        }
    }
}
