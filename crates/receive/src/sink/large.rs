//! An event that is larger than the receive buffer and arrives in parts.

use binlog::writer::admission::states_gtids;
use codec::event::{EventError, EventHeader, PEEK_BYTES_MAX, StreamChecksum};

/// The large event that arrives at present, if one does.
#[derive(Default)]
pub(super) struct LargeEvent {
    parts: Option<Parts>,
    /// First bytes of it, as many as are [looked at](Parts::looked_at); kept between events for its memory.
    prefix: Vec<u8>,
}

/// What is known before its end.
struct Parts {
    header: EventHeader,
    checksum: StreamChecksum,
    store: bool,
}

impl Parts {
    /// How many of its first bytes are kept until it is whole.
    fn looked_at(&self) -> usize {
        if states_gtids(self.header.event_type) { self.header.event_size as usize } else { PEEK_BYTES_MAX }
    }
}

impl LargeEvent {
    /// One begins, whose parts are given to `checksum`. `store`: the copy does not hold it yet.
    pub(super) fn begin(&mut self, header: EventHeader, checksum: StreamChecksum, store: bool) {
        self.parts = Some(Parts { header, checksum, store });
        self.prefix.clear();
    }

    /// Takes the next part, and says whether it is to be stored.
    pub(super) fn add(&mut self, bytes: &[u8]) -> bool {
        let parts = self.parts.as_mut().expect("the framer gives a first part before any other");
        parts.checksum.update(bytes);
        let looked_at = parts.looked_at();
        let wanted = looked_at.saturating_sub(self.prefix.len()).min(bytes.len());
        self.prefix.extend_from_slice(&bytes[..wanted]);
        parts.store
    }

    /// All of it has arrived: its header, and whether its checksum is right.
    pub(super) fn end(&mut self) -> (EventHeader, Result<(), EventError>) {
        let Parts { header, checksum, .. } =
            self.parts.take().expect("the framer gives a first part before any other");
        (header, checksum.finish())
    }

    /// Its first bytes. Give them [back](Self::give_back).
    pub(super) fn take_prefix(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.prefix)
    }

    /// Takes the memory back. It may have held a whole GTID set, which nobody needs again.
    pub(super) fn give_back(&mut self, prefix: Vec<u8>) {
        self.prefix = prefix;
        self.prefix.clear();
        self.prefix.shrink_to(PEEK_BYTES_MAX);
    }

    /// True when one has arrived in part.
    pub(super) fn is_under_way(&self) -> bool {
        self.parts.is_some()
    }
}
