//! A dump that sends nothing for a while: at the live end, at the point at which it stops, or before what is too young for its
//! reader. The reader hears heartbeats, and its connection stays.

use super::{Dump, DumpEnd, Failure, SLEEP_MAX};
use crate::dump::packets::PacketOut;
use crate::dump::progress::Rest;
use crate::dump::stop::StopAt;
use crate::dump::stream::Stream;
use crate::history::place::Start;
use std::time::Duration;

impl Dump<'_> {
    /// Sleeps at the live end until there is news, with heartbeats when they are due.
    pub(super) fn wait(
        &mut self,
        mut news: u32,
        stream: &mut Stream,
        start: &mut Start,
        out: &mut dyn PacketOut,
    ) -> Result<Option<DumpEnd>, Failure> {
        let period = self.request.heartbeat_period;
        stream.shrink(&mut self.packets);
        self.progress.rests(Rest::End);
        let ended = loop {
            if out.is_cancelled() {
                break Some(DumpEnd::Cancelled);
            }
            let published = &self.served.published;
            if !self.is_at_end(stream.at()) {
                break None;
            }
            let timeout = if period.is_zero() { SLEEP_MAX } else { stream.until_silent_for(period) };
            self.served.waits.for_news(published, news, timeout.min(SLEEP_MAX));
            news = published.news();
            if self.is_at_end(stream.at()) {
                self.beat(stream, start, out)?;
            }
        };
        self.progress.rests(Rest::None);
        Ok(ended)
    }

    /// Says in the status and in the log what of the stopping point is not in the history that is served.
    pub(super) fn tell_what_is_not_here(&mut self) -> Result<(), Failure> {
        let mut not_here = String::new();
        for stop in &self.request.stop {
            let file = stop.file().filter(|file| self.history.named(file).is_none());
            let gtids = match stop.is_of_gtids() {
                true => {
                    let held = self.look().held()?;
                    held.and_then(|held| stop.not_in(&held.history))
                }
                false => None,
            };
            if let Some(lacking) = file.map(str::to_owned).or(gtids) {
                not_here =
                    format!("{lacking} is not in the history that is served: it comes later, or never");
                tracing::warn!(
                    "a reader is to stop at a point that is not there: {not_here} ({})",
                    self.request.reader
                );
            }
        }
        self.progress.begin(not_here);
        Ok(())
    }

    /// A file begins: whether the stopping point was in one before it.
    pub(super) fn begin_bound(&self, start: &mut Start) {
        let Some(bound) = &mut start.choice.bound else { return };
        let is_behind = |file: &str| self.history.named(file).is_some_and(|stop| stop < start.file);
        bound.stops.iter_mut().for_each(|stop| stop.begin_file(is_behind));
    }

    /// Before the events of a file pass.
    pub(super) fn look_at_clock(&self, start: &mut Start) {
        if let Some(bound) = &mut start.choice.bound {
            bound.now = (self.served.wall_time)().as_microsecond();
        }
    }

    /// The dump has come to its stopping point.
    pub(super) fn hold_for_good(
        &mut self,
        stream: &mut Stream,
        start: &mut Start,
        out: &mut dyn PacketOut,
    ) -> Result<DumpEnd, Failure> {
        let stops: Vec<String> = self.request.stop.iter().map(StopAt::to_string).collect();
        tracing::info!(
            "a reader has come to the point at which its dump stops ({}), at {}:{}",
            stops.join("; "),
            self.history.name(start.file),
            stream.at()
        );
        let ended = self.hold(Rest::Stopped, i64::MAX, stream, start, out)?;
        Ok(ended.unwrap_or(DumpEnd::Moved))
    }

    /// Waits until that moment, in microseconds since 1970. `None` when the dump goes on.
    pub(super) fn hold_until(
        &mut self,
        until: i64,
        stream: &mut Stream,
        start: &mut Start,
        out: &mut dyn PacketOut,
    ) -> Result<Option<DumpEnd>, Failure> {
        self.hold(Rest::Delayed, until, stream, start, out)
    }

    fn hold(
        &mut self,
        why: Rest,
        until: i64,
        stream: &mut Stream,
        start: &mut Start,
        out: &mut dyn PacketOut,
    ) -> Result<Option<DumpEnd>, Failure> {
        let period = self.request.heartbeat_period;
        stream.shrink(&mut self.packets);
        self.progress.rests(why);
        let ended = loop {
            let published = &self.served.published;
            let news = published.news();
            if out.is_cancelled() {
                break Some(DumpEnd::Cancelled);
            }
            // Below a reader the files may become others.
            if !published.is_current(&self.live) {
                break Some(DumpEnd::Moved);
            }
            let left = until.saturating_sub((self.served.wall_time)().as_microsecond());
            if left <= 0 {
                break None;
            }
            let silence = if period.is_zero() { SLEEP_MAX } else { stream.until_silent_for(period) };
            let left = Duration::from_micros(left.unsigned_abs());
            self.served.waits.for_news(published, news, left.min(silence).min(SLEEP_MAX));
            self.beat(stream, start, out)?;
        };
        self.progress.rests(Rest::None);
        Ok(ended)
    }

    /// Sends a heartbeat at the place that was reached, if one is due.
    fn beat(
        &mut self,
        stream: &mut Stream,
        start: &mut Start,
        out: &mut dyn PacketOut,
    ) -> Result<(), Failure> {
        let period = self.request.heartbeat_period;
        if period.is_zero() || !stream.until_silent_for(period).is_zero() {
            return Ok(());
        }
        let (file, at) = (start.file, stream.at());
        let mut sink = self.sink(start, out, None);
        stream.heartbeat(&mut sink, at);
        let flushed = stream.flush(&mut sink);
        flushed.map_err(|error| self.failure(file, at, error))
    }
}
