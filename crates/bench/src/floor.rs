//! The floors: what the durable write of a group costs by itself on the same disk.

use binlog::journal::JOURNAL_LEN;
use binlog::journal::record::BLOCK;
use binlog::storage::posix::PosixStorage;
use binlog::storage::{Storage, StorageFile};
use rig::machine::write_and_sync;
use rig::statistics::{Percentiles, Samples};
use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Bytes of a record in the journal besides the group, about: its head and its names.
const RECORD_HEAD_LEN: usize = 128;

/// The floors of one round.
#[derive(Debug, Clone, Copy)]
pub struct Floors {
    /// A write and an fdatasync at the end of a growing file, in a loop.
    pub append: Percentiles,
    /// One write of a journal's record, in a loop.
    pub record: Percentiles,
    /// The same write, each after a sleep that another thread ends.
    pub woken: Percentiles,
}

impl Floors {
    /// Measures them in `dir`, `count` writes each, for groups of `len` bytes.
    ///
    /// # Errors
    /// As the file system says.
    pub fn measure(dir: &Path, len: usize, count: usize) -> io::Result<Floors> {
        Ok(Floors {
            append: write_and_sync(dir, len, count)?.percentiles(),
            record: Records::new(dir, len)?.in_a_loop(count)?.percentiles(),
            woken: Records::new(dir, len)?.woken(count, len)?.percentiles(),
        })
    }
}

/// Writes of whole blocks, each durable when it returns and past the page cache, into a file that was written to its end
/// before. As the journal's, one behind the other and from the front again.
struct Records {
    file: Box<dyn StorageFile>,
    path: PathBuf,
    /// Holds one record at `start`.
    memory: Vec<u8>,
    start: usize,
    len: usize,
    at: u64,
}

impl Records {
    fn new(dir: &Path, group_len: usize) -> io::Result<Records> {
        let path = dir.join("floor");
        File::create(&path).and_then(|mut file| {
            file.write_all(&vec![0; JOURNAL_LEN as usize])?;
            file.sync_data()
        })?;
        let len = (RECORD_HEAD_LEN + group_len).next_multiple_of(BLOCK);
        let memory = vec![0x5a; len + BLOCK];
        let start = memory.as_ptr().align_offset(BLOCK);
        let file = PosixStorage.open_synced(&path)?;
        Ok(Records { file, path, memory, start, len, at: 0 })
    }

    fn write(&mut self) -> io::Result<()> {
        if self.at + self.len as u64 > JOURNAL_LEN {
            self.at = 0;
        }
        let record = &self.memory[self.start..self.start + self.len];
        self.file.write_all_at(&mut [IoSlice::new(record)], self.at)?;
        self.at += self.len as u64;
        Ok(())
    }

    fn in_a_loop(mut self, count: usize) -> io::Result<Samples> {
        let mut samples = Samples::with_capacity(count);
        for _ in 0..count {
            let began = Instant::now();
            self.write()?;
            samples.record(began.elapsed());
        }
        std::fs::remove_file(&self.path)?;
        Ok(samples)
    }

    /// Another thread sends a group's bytes over TCP, as a source does, and waits for one byte in answer; the time is
    /// that between the two.
    fn woken(mut self, count: usize, group_len: usize) -> io::Result<Samples> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let mut here = TcpStream::connect(listener.local_addr()?)?;
        let mut there = listener.accept()?.0;
        here.set_nodelay(true)?;
        there.set_nodelay(true)?;
        let source = std::thread::Builder::new().name("floor-source".to_owned()).spawn(move || {
            let (group, mut answer) = (vec![0x5a; group_len], [0]);
            for _ in 0..count {
                there.write_all(&group)?;
                there.read_exact(&mut answer)?;
            }
            io::Result::Ok(())
        })?;
        let mut samples = Samples::with_capacity(count);
        let mut group = vec![0; group_len];
        for _ in 0..count {
            here.read_exact(&mut group)?;
            let began = Instant::now();
            self.write()?;
            samples.record(began.elapsed());
            here.write_all(&[0])?;
        }
        source.join().map_err(|_| io::Error::other("the thread that sends has panicked"))??;
        std::fs::remove_file(&self.path)?;
        Ok(samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_floor_counts_its_writes_and_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let floors = Floors::measure(dir.path(), 6000, 5).unwrap();
        for floor in [floors.append, floors.record, floors.woken] {
            assert!(floor.count == 5 && floor.p50 > 0.0, "{floors:?}");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
