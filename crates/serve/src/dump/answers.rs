//! The acknowledgements of a reader, read beside the thread that sends to it: while a receiver further down syncs one group, the
//! next one is on its way.

use super::asked::BadAnswer;
use crate::port::limits::STACK_BYTES;
use crate::port::readers::Reader;
use codec::packet::{SEMI_SYNC_ACKNOWLEDGEMENT_BYTES_MAX, SemiSyncAcknowledgement};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::thread::JoinHandle;
use std::time::Duration;
use wire::{Accepted, ClientError};

/// The next acknowledgement is waited for as long as the dump lasts; a wait needs a limit.
const IDLE_MAX: Duration = Duration::from_secs(365 * 86_400);

/// Reads acknowledgements until it is dropped.
pub(crate) struct Answers {
    reader: Arc<Reader>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Answers {
    /// Takes over the reading from a reader. `receiver` is whoever it is, over connections.
    ///
    /// # Errors
    /// When there is no descriptor or no thread for it.
    pub(crate) fn begin(
        accepted: &mut Accepted,
        reader: &Arc<Reader>,
        receiver: &str,
    ) -> io::Result<Answers> {
        reader.progress.receiver_is(receiver);
        let incoming = accepted.reader()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let (for_thread, over) = (reader.clone(), is_over.clone());
        let thread = std::thread::Builder::new()
            .name(format!("answers-{}", reader.id))
            .stack_size(STACK_BYTES)
            .spawn(move || listen(incoming, &for_thread, &over))?;
        Ok(Answers { reader: reader.clone(), is_over, thread: Some(thread) })
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.is_over.store(true, SeqCst);
        self.reader.stop_listening();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!(reader = self.reader.id, "a thread that read acknowledgements had panicked");
        }
    }
}

/// Why nothing is listened to any more.
#[derive(Debug, thiserror::Error)]
enum Unheard {
    #[error("what it sends is no acknowledgement: {0}")]
    Rubbish(#[from] codec::packet::MalformedPacket),
    #[error(transparent)]
    Bad(#[from] BadAnswer),
    #[error("its acknowledgements cannot be read: {0}")]
    Connection(#[from] ClientError),
}

fn listen(mut incoming: wire::Reader, reader: &Reader, is_over: &AtomicBool) {
    let ended = hear(&mut incoming, reader);
    if is_over.load(SeqCst) {
        return;
    }
    if let Err(error) = ended {
        tracing::warn!(reader = reader.id, address = %reader.address, "the connection of the reader is ended: {error}");
    }
    // Nobody would hear what it has: it is to come back.
    reader.kill();
}

/// Hears one acknowledgement after the other, until the reader is gone.
fn hear(incoming: &mut wire::Reader, reader: &Reader) -> Result<(), Unheard> {
    // One byte more, so that a message which is too long is not taken for one that is not.
    while let Some(message) = incoming.receive(IDLE_MAX, SEMI_SYNC_ACKNOWLEDGEMENT_BYTES_MAX + 1)? {
        let answer = SemiSyncAcknowledgement::parse(&message)?;
        reader.progress.hears(&answer, reader.published())?;
    }
    Ok(())
}
