//! The other nodes of the quorum: a thread each hears how far it is, and one begins the quorum and joins it.
//!
//! Nobody waits for these threads: what they hear is counted by `quorum::Node`, which wakes the receiving thread.

pub mod ask;
mod common;
mod founder;
mod listen;

use crate::attempt::context::Upstream;
use founder::Founder;
use listen::Listener;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::JoinHandle;

/// Enough for a TLS handshake in a build without optimisation.
const STACK_BYTES: usize = 1 << 20;

/// The threads of one source. They end when this is dropped.
pub(crate) struct Nodes {
    end: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Nodes {
    /// Starts them; `None` where the source has no quorum.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub(crate) fn start(upstream: &Upstream) -> io::Result<Option<Nodes>> {
        let Some(node) = &upstream.quorum else { return Ok(None) };
        let mut nodes = Nodes { end: Arc::default(), threads: Vec::new() };
        for other in 0..upstream.config.quorum.len() {
            let listener =
                Listener { upstream: upstream.clone(), node: node.clone(), other, end: nodes.end.clone() };
            nodes.spawn(format!("node{other}-{}", upstream.config.name), move || listener.run())?;
        }
        let founder = Founder { upstream: upstream.clone(), node: node.clone(), end: nodes.end.clone() };
        nodes.spawn(format!("quorum-{}", upstream.config.name), move || founder.run())?;
        Ok(Some(nodes))
    }

    fn spawn(&mut self, name: String, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let thread = std::thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(run)?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.end.store(true, SeqCst);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the quorum had panicked");
            }
        }
    }
}
