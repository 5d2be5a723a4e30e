//! The scripted source in a hurry: gigabytes without making an event.
//!
//! One file's packets are made once and sent again under each next name. That works because nothing in a file depends on
//! its name but the ROTATE at its end, and because the packets from one file switch to the next are a multiple of 256, so
//! that even the sequence numbers fit.

use codec::event::EventType;
use scripted_source::event::{self, Head};
use scripted_source::{Dump, Load, LogOptions, SourceLog};
use std::io;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Instant;

/// Events of a transaction: GTID, BEGIN, TABLE_MAP, WRITE_ROWS, XID.
const EVENTS_A_TRANSACTION: usize = 5;

/// Packets of a file beside its transactions: artificial ROTATE, format description, previous GTIDs, ROTATE.
const OTHER_PACKETS: usize = 4;

/// A file that is sent many times.
#[derive(Debug)]
pub struct Image {
    log: SourceLog,
    events: usize,
}

impl Image {
    /// A file of about `file_len` bytes, of transactions whose rows event has `event_len` bytes.
    pub fn new(options: LogOptions, file_len: usize, event_len: usize) -> Image {
        let options = LogOptions { gtids: false, rotate_after: u64::MAX, ..options };
        let mut log = SourceLog::new(options);
        let payload = event_len.saturating_sub(event::WRITE_ROWS_OVERHEAD);
        let mut transactions = file_len / log.transaction_len(payload);
        while !(OTHER_PACKETS + EVENTS_A_TRANSACTION * transactions).is_multiple_of(256) {
            transactions += 1;
        }
        for _ in 0..transactions {
            log.transaction(payload);
        }
        Image { events: log.files()[0].event_count(), log }
    }

    /// Length in bytes of the file without its ROTATE.
    pub fn len(&self) -> usize {
        self.log.files()[0].bytes.len()
    }

    /// Never true; a file has a beginning.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Count of its events without the ROTATE.
    pub fn events(&self) -> usize {
        self.events
    }

    /// Its packets, without semi-sync, the first one numbered `sequence`.
    fn packets(&self, mut sequence: u8) -> Vec<u8> {
        let file = &self.log.files()[0];
        let mut out = Vec::with_capacity(self.len() + 5 * self.events);
        for (event, _) in (0..self.events).filter_map(|index| file.event(index)) {
            let [a, b, c, ..] = (1 + event.len() as u32).to_le_bytes();
            out.extend_from_slice(&[a, b, c, sequence, 0]);
            out.extend_from_slice(event);
            sequence = sequence.wrapping_add(1);
        }
        out
    }
}

/// Sends the same file `files` times, under the names that follow the log's own.
#[derive(Debug)]
pub struct Bulk {
    /// What is sent.
    pub image: Image,
    /// How often.
    pub files: usize,
    /// Told when everything is ready to be sent.
    pub ready: Sender<()>,
    /// Waits for this before it begins, so that nobody measures the preparation.
    pub start: Receiver<()>,
    /// Told when the first byte is sent.
    pub began: Sender<Instant>,
}

impl Bulk {
    /// Name of the last file sent.
    pub fn last_file(options: &LogOptions, files: usize) -> String {
        name(options, files)
    }

    /// Bytes of packets from the first byte of the load on, for a receiver that stores them as they are.
    pub fn wire_len(&self) -> usize {
        let options = self.image.log.options();
        let name_len = name(options, 1).len();
        let rotate = 4 + 1 + 19 + 8 + name_len + 4;
        let file = self.image.len() - 4 + 5 * self.image.events;
        // A ROTATE before each file, and an artificial one.
        self.files * (2 * rotate + file)
    }
}

/// Name of the file with this number, the log's first one being 0.
fn name(options: &LogOptions, number: usize) -> String {
    format!("{}.{:06}", options.base_name, number + 1)
}

impl Load for Bulk {
    fn run(&mut self, dump: &mut Dump) -> io::Result<()> {
        let options = self.image.log.options().clone();
        // ROTATE and artificial ROTATE come before the file's own packets.
        let packets = self.image.packets(dump.packets().sequence.wrapping_add(2));
        let _ = self.ready.send(());
        let _ = self.start.recv();
        let _ = self.began.send(Instant::now());
        let mut end = dump.append(|log| log.end().position);
        for number in 1..=self.files {
            let next = name(&options, number);
            let event_type = EventType::ROTATE;
            let head =
                Head { timestamp: options.timestamp, event_type, server_id: options.server_id, flags: 0 };
            let mut rotate = Vec::new();
            event::append(
                &mut rotate,
                head,
                |size| (end + size as u64) as u32,
                &event::rotate(4, &next),
                true,
            );
            dump.packets().event(&rotate, false);
            dump.packets().rotate(&next, 4, options.server_id);
            dump.send()?;
            dump.send_framed(&packets, self.image.events)?;
            end = self.image.len() as u64;
        }
        Ok(())
    }
}
