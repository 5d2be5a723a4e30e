//! Hears the other nodes of a quorum once.

use crate::doctor::nodes::Node;
use codec::packet::{ErrPacket, command};
use config::{HostPort, SourceConfig};
use quorum::Told;
use std::io;
use std::time::Duration;
use wire::{Connection, DumpStream, WireError};

/// How a node is connected to.
type Connect = fn(&SourceConfig, &HostPort) -> Result<Connection, WireError>;

/// A node tells something at least twice a second.
const SILENT_MAX: Duration = Duration::from_secs(3);
/// Longest message, in bytes: what it has accepted may name many GTIDs.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// Hears each of them, in their order.
pub(super) fn hear(source: &SourceConfig, connect: Connect) -> Vec<(String, Node)> {
    std::thread::scope(|scope| {
        let heard: Vec<_> = source
            .quorum
            .iter()
            .map(|node| (node, scope.spawn(move || hear_one(source, node, connect))))
            .collect();
        let lost = || Node::Away("a thread of ours has panicked".to_owned());
        heard
            .into_iter()
            .map(|(node, heard)| (node.to_string(), heard.join().unwrap_or_else(|_| lost())))
            .collect()
    })
}

fn hear_one(source: &SourceConfig, node: &HostPort, connect: Connect) -> Node {
    let asked = connect(source, node)
        .and_then(|connection| connection.start_dump(&command::query("BINLOGD QUORUM LISTEN")));
    let mut stream = match asked {
        Ok(stream) => stream,
        Err(error @ (WireError::AccessDenied { .. } | WireError::Server { .. })) => {
            return Node::Refused(error.to_string());
        }
        Err(error) => return Node::Away(error.to_string()),
    };
    let message = match first_message(&mut stream) {
        Ok(message) => message,
        Err(error) => return Node::Away(error.to_string()),
    };
    if message.first() == Some(&0xff) {
        let refused = ErrPacket::parse(&message);
        return Node::Refused(refused.map_or_else(|error| error.to_string(), |refused| refused.message));
    }
    match Told::of_text(&message) {
        Ok(told) => Node::Told {
            uuid: told.node.to_string(),
            nodes: told.nodes,
            epoch: told.confirmation.as_ref().map_or(told.promised, |confirmation| confirmation.epoch),
            counts: told.confirmation.is_some_and(|confirmation| !confirmation.withholds),
        },
        Err(error) => Node::Refused(format!(
            "it tells what is not understood ({error}): both binlogds should have the same version"
        )),
    }
}

fn first_message(stream: &mut DumpStream) -> io::Result<Vec<u8>> {
    stream.set_blocking(SILENT_MAX)?;
    stream.set_read_timeout(SILENT_MAX)?;
    let mut header = [0; 4];
    read_full(stream, &mut header)?;
    let len = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
    if len >= MESSAGE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it tells too much at once"));
    }
    let mut message = vec![0; len];
    read_full(stream, &mut message)?;
    Ok(message)
}

fn read_full(stream: &mut DumpStream, mut into: &mut [u8]) -> io::Result<()> {
    while !into.is_empty() {
        match stream.read(into) {
            Ok(0) => {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it has closed the connection"));
            }
            Ok(read) => into = &mut into[read..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let text = format!("nothing was heard for {SILENT_MAX:?}");
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
