//! A short look at a source's logs over a dump of its own: which file, and whose.

use super::identify::SourceIdentity;
use super::negotiate::checksum_outside_files;
use crate::wire::{Connection, WireError};
use codec::dump_stream::{BUFFER_LEN_MIN, DumpFramer, Frame};
use codec::event::{ChecksumAlgorithm, EventHeader, EventType, FormatDescription, Rotate};
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::stop::{StopSignal, Woken};

/// The beginning of a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Name in the first ROTATE event.
    pub file: String,
    /// The file's format description.
    pub format: FormatDescription,
}

/// Starts the dump `request` and reads until the first format description. The connection is given up afterwards.
///
/// # Errors
/// The source's error as [`WireError::Server`], and everything that can happen to a connection.
pub fn look(
    connection: Connection,
    source: &SourceIdentity,
    request: &[u8],
    timeout: Duration,
    stop: &StopSignal,
) -> Result<Look, WireError> {
    const DURING: &str = "looking at the source's logs";
    let protocol = |what: String| WireError::Protocol { during: DURING, what };
    let deadline = Instant::now() + timeout;
    let mut stream = connection.start_dump(request)?;
    let mut buffer = vec![0u8; BUFFER_LEN_MIN];
    let (mut len, mut file) = (0, None);
    // A look never offers semi-sync, so no packet carries its bytes.
    let mut framer = DumpFramer::new(false);
    loop {
        while let Some((consumed, frame)) =
            framer.next(&buffer[..len], buffer.len()).map_err(|error| protocol(error.to_string()))?
        {
            match frame {
                Frame::Event { bytes, .. } => {
                    if let Some(format) =
                        event(bytes, checksum_outside_files(source), &mut file).map_err(&protocol)?
                    {
                        let file = file.ok_or_else(|| protocol("no ROTATE event came first".to_owned()))?;
                        return Ok(Look { file, format });
                    }
                }
                Frame::SourceError(error) => return Err((*error).into()),
                Frame::Part { .. } | Frame::EmptyPacket | Frame::End => {
                    return Err(protocol("the dump has no beginning".to_owned()));
                }
            }
            buffer.copy_within(consumed..len, 0);
            len -= consumed;
        }
        if !stream.pending() {
            let left = deadline.saturating_duration_since(Instant::now());
            let woken = stop.wait_readable(stream.as_fd(), left);
            match woken.map_err(|reason| WireError::Io { during: DURING, reason })? {
                Woken::Readable => {}
                Woken::TimedOut | Woken::Stop => {
                    return Err(WireError::Timeout { during: DURING, after: timeout });
                }
            }
        }
        match stream.read(&mut buffer[len..]) {
            Ok(0) => return Err(WireError::Closed { during: DURING }),
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(reason) => return Err(WireError::Io { during: DURING, reason }),
        }
    }
}

/// Takes the file's name from a ROTATE event; returns the format description when it comes.
fn event(
    bytes: &[u8],
    checksum: ChecksumAlgorithm,
    file: &mut Option<String>,
) -> Result<Option<FormatDescription>, String> {
    let header = EventHeader::parse(bytes).map_err(|error| error.to_string())?;
    match header.event_type {
        EventType::ROTATE => {
            let end = bytes.len().saturating_sub(checksum.len());
            let rotate = Rotate::parse(&bytes[..end]).map_err(|error| error.to_string())?;
            *file = Some(rotate.next_file.to_owned());
            Ok(None)
        }
        EventType::FORMAT_DESCRIPTION => {
            FormatDescription::parse(bytes).map(Some).map_err(|error| error.to_string())
        }
        _ => Ok(None),
    }
}
