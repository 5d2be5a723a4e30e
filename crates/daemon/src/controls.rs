//! What an operator changes on the web page: the same that the port for readers and the command line can do.

use super::promoting::Promoting;
use super::switch::Switch;
use admin::{Controls, Deed, NotPromoted, PromoteAsked};
use quorum::{Reply, Request};
use receive::Upstream;
use receive::nodes::ask::ask_all;
use serve::retention::Purger;
use serve::{ReceiverSwitch, Shared};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Of one source.
#[derive(Clone)]
pub(super) struct Controlled {
    pub(super) switch: Arc<Switch>,
    pub(super) purger: Arc<Purger>,
    pub(super) upstream: Upstream,
}

/// Of all sources.
#[derive(Default)]
pub(super) struct DaemonControls {
    sources: Mutex<BTreeMap<String, Controlled>>,
    /// Who reads; nobody where nobody is served.
    readers: OnceLock<Arc<Shared>>,
    pub(super) promoting: Promoting,
}

impl DaemonControls {
    /// A source is received from now on, or again.
    pub(super) fn add(&self, name: &str, source: Controlled) {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), source);
    }

    /// A source is not configured any more.
    pub(super) fn remove(&self, name: &str) {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    fn controlled(&self, source: &str) -> Option<Controlled> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).get(source).cloned()
    }

    /// Readers are served from now on.
    pub(super) fn serves(&self, readers: Arc<Shared>) {
        // Once a run.
        let _ = self.readers.set(readers);
    }
}

impl Controls for DaemonControls {
    fn carry_out(&self, source: &str, deed: &Deed, by: &str) -> Result<String, String> {
        let known = self.controlled(source);
        let Some(Controlled { switch, purger, .. }) = known else {
            return Err(format!("there is no source {source} any more"));
        };
        match deed {
            Deed::Stop if switch.stop(by, "its web page starts it again") => {
                Ok("receiving was stopped".to_owned())
            }
            Deed::Stop => {
                Ok("receiving was told to stop: it finishes first what it is doing, which takes long".to_owned())
            }
            Deed::Start if switch.start(by) => Ok("receiving was started".to_owned()),
            Deed::Start => {
                Err("the receiver has ended for a reason that a start does not change: see above. Put it right, then reload \
                     (SIGHUP) or restart binlogd"
                    .to_owned())
            }
            Deed::EndReader(id) => match self.readers.get().and_then(|readers| readers.end_reader(source, *id)) {
                Some(who) => Ok(format!("reader {id} ({who}) was ended")),
                None => Err(format!("there is no reader {id} of {source} any more")),
            },
            Deed::DropSlot(slot) => match purger.drop_slot(slot) {
                Ok(true) => Ok(format!("the slot {slot} was dropped: no files are kept for it any more")),
                Ok(false) => Err(format!("there is no slot {slot} of {source} any more")),
                Err(error) => Err(format!("the slot {slot} was not dropped: {error}")),
            },
        }
    }

    fn ask_nodes(&self, source: &str) -> Vec<(Option<String>, Result<Reply, String>)> {
        let Some(Controlled { upstream, .. }) = self.controlled(source) else { return Vec::new() };
        let Some(node) = &upstream.quorum else { return Vec::new() };
        let own = node.answer(&Request::Look, || (*upstream.monitor.gtids().durable).clone());
        let others = ask_all(&upstream, &upstream.config.quorum, &Request::Look);
        std::iter::once((None, own.map_err(|error| error.to_string())))
            .chain(others.into_iter().map(|(other, answer)| (Some(other.to_string()), answer)))
            .collect()
    }

    fn promote(
        &self,
        source: &str,
        asked: &PromoteAsked,
        by: &str,
    ) -> Result<serde_json::Value, NotPromoted> {
        let controlled = self.controlled(source).filter(|of| of.upstream.quorum.is_some());
        let refused = |why: String| NotPromoted::Refused(why);
        let of = controlled
            .ok_or_else(|| refused(format!("there is no source {source} with a quorum any more")))?;
        let readers = self.readers.get();
        let readers =
            readers.ok_or_else(|| refused("this binlogd serves nobody: set listen in [serve]".to_owned()))?;
        self.promoting.carry_out(&of.upstream, readers.address(), asked, by)
    }
}
