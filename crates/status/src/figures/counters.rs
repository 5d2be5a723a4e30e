//! What is counted of a source since the start of the daemon.

use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts since the start of the daemon. The receiver adds with relaxed ordering, once a batch where it can.
        #[derive(Debug, Default)]
        pub struct Counters { $($(#[$doc])* pub $name: AtomicU64,)* }

        /// The `Counters` at one moment.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct CounterValues { $($(#[$doc])* pub $name: u64,)* }

        impl Counters {
            /// The values now.
            pub fn values(&self) -> CounterValues {
                CounterValues { $($name: self.$name.load(Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Events stored.
    events,
    /// Transactions stored to their end.
    transactions,
    /// Acknowledgements sent. One may cover many transactions.
    acknowledgements,
    /// Of these, acknowledgements for which nobody further down had confirmed (`ack_timeout_action = "go_on"`).
    acknowledged_alone,
    /// Sessions with the source that ended and were followed by another attempt.
    reconnects,
    /// Events refused because their CRC32 did not match.
    checksum_failures,
    /// Bytes read from the source's connection, packet headers included.
    bytes_received,
    /// Bytes appended to the log.
    bytes_written,
    /// Durable writes of the journal, and completed calls of fdatasync on the binary log.
    syncs,
    /// Packets that wanted an acknowledgement where this session does not expect one, such as inside a transaction.
    unexpected_ack_requests,
    /// Transactions that arrived live, with semi-sync negotiated, and for which the source asked for no acknowledgement in time.
    unasked_transactions,
}
