//! The SHA-256 of a whole file, summed up on a thread of its own while the file is read for something else: it is one long sum,
//! and takes as long as the sums of all segments together.

use codec::rows::hex;
use sha2::{Digest, Sha256};
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

/// So many parts may wait for their turn, which bounds the memory.
const PARTS_AHEAD: usize = 2;

/// Takes the parts of a file in their order.
#[derive(Debug)]
pub(crate) struct Parts {
    to_sum: SyncSender<Vec<u8>>,
    summed: Receiver<Vec<u8>>,
}

impl Parts {
    /// Adds a part. What comes back is memory for the next one, with anything in it.
    pub(crate) fn add(&self, part: Vec<u8>) -> Vec<u8> {
        // Nobody takes it only after a panic over there, which is found at the end.
        let _ = self.to_sum.send(part);
        self.summed.try_recv().unwrap_or_default()
    }
}

/// The hexadecimal SHA-256 of all parts that `work` adds, and what `work` came to.
///
/// # Errors
/// When the system has no thread for it.
pub(crate) fn sum_beside<T>(work: impl FnOnce(&Parts) -> T) -> io::Result<(T, String)> {
    let (to_sum, parts) = sync_channel::<Vec<u8>>(PARTS_AHEAD);
    let (back, summed) = channel();
    let sum = move || {
        let mut sum = Sha256::new();
        for part in parts {
            sum.update(&part);
            // The work may have ended meanwhile, and needs no memory.
            let _ = back.send(part);
        }
        hex(&sum.finalize())
    };
    thread::scope(|scope| {
        let sum = thread::Builder::new().spawn_scoped(scope, sum)?;
        let parts = Parts { to_sum, summed };
        let outcome = work(&parts);
        drop(parts);
        let sum = sum.join().map_err(|_| io::Error::other("the thread that hashes has failed"))?;
        Ok((outcome, sum))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;

    #[test]
    fn the_sum_is_that_of_all_parts_in_their_order() {
        let bytes: Vec<u8> = (0..1_000_000_u64).map(|at| ((at * at) >> 7) as u8).collect();
        for len in [1000, 65_537, 1_000_000, 2_000_000] {
            let (parts, sum) = sum_beside(|parts| {
                let mut buffer = Vec::new();
                for part in bytes.chunks(len) {
                    buffer.clear();
                    buffer.extend_from_slice(part);
                    buffer = parts.add(buffer);
                }
                bytes.chunks(len).count()
            })
            .unwrap();
            assert_eq!((parts, sum), (bytes.len().div_ceil(len), names::sha256(&bytes)));
        }
        assert_eq!(sum_beside(|_| ()).unwrap().1, names::sha256(b""));
    }
}
