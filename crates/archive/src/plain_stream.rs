//! The plain bytes of a finished file in their order, for who reads all of it once: a backup on its way back.

use crate::chain::commit::Segment;
use crate::chain::history::ArchivedFile;
use crate::reader::{ReadError, Reader};
use codec::rows::hex;
use sha2::{Digest, Sha256};
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

/// So many segments wait to be read, beside the one that is read and the one that is fetched.
const SEGMENTS_AHEAD: usize = 1;

/// See [the module](self). Each segment is compared with its commit before a byte of it is given, and the whole at its end: the last
/// read fails where that is another one.
#[derive(Debug)]
pub struct PlainStream {
    segments: Receiver<Result<Vec<u8>, ReadError>>,
    left: u64,
    plain: Vec<u8>,
    at: usize,
    sum: Sha256,
    /// Name and hash of the whole; `None` once compared.
    whole: Option<(String, String)>,
}

impl PlainStream {
    /// The stream of a finished file: a thread of its own fetches what comes next.
    ///
    /// # Errors
    /// When the file is not finished, the store does not say where its segments are, or there is no thread.
    pub fn open(reader: &Reader, file: &ArchivedFile) -> io::Result<PlainStream> {
        let seal = file.sealed.as_ref();
        let seal = seal.ok_or_else(|| io::Error::other(format!("{} is not finished", file.name)))?;
        let segments = reader.segments(file)?;
        let (fetched, to_read) = sync_channel(SEGMENTS_AHEAD);
        let reader = reader.clone();
        let fetch = move |segment: &Segment| {
            let plain = reader.segment(segment);
            let goes_on = plain.is_ok();
            // Nobody takes it where the stream was dropped.
            fetched.send(plain).is_ok() && goes_on
        };
        thread::Builder::new().spawn(move || {
            let _: bool = segments.iter().all(fetch);
        })?;
        Ok(PlainStream {
            segments: to_read,
            left: file.end(),
            plain: Vec::new(),
            at: 0,
            sum: Sha256::new(),
            whole: Some((file.name.clone(), seal.sha256.clone())),
        })
    }

    fn end(&mut self) -> io::Result<usize> {
        let Some((name, expected)) = self.whole.take() else { return Ok(0) };
        let actual = hex(&std::mem::take(&mut self.sum).finalize());
        if self.left == 0 && actual == expected {
            return Ok(0);
        }
        let text = match self.left {
            0 => format!("{name}: the whole has SHA-256 {actual} and was {expected} when it was archived"),
            left => format!("{name}: {left} bytes are missing at its end"),
        };
        Err(io::Error::new(io::ErrorKind::InvalidData, text))
    }
}

impl Read for PlainStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.plain.len() {
            match self.segments.recv() {
                Ok(plain) => self.plain = plain?,
                Err(_) => return self.end(),
            }
            self.sum.update(&self.plain);
            self.left = self.left.saturating_sub(self.plain.len() as u64);
            self.at = 0;
        }
        let rest = &self.plain[self.at..];
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        self.at += len;
        Ok(len)
    }
}
