//! A restore from the first change of the target to the proof that it has what was asked for.

pub(in crate::restore) mod by_channel;
pub(in crate::restore) mod by_statements;
pub(in crate::restore) mod ended;
pub(in crate::restore) mod settings;
pub(in crate::restore) mod stream;
pub(in crate::restore) mod tell;

use super::course::Course;
use super::target::Target;
use crate::history::Copied;
use crate::rescue::{Applier, Restore};
use crate::restore::carry_out::by_channel::ByChannel;
use crate::restore::carry_out::by_statements::ByStatements;
use crate::restore::carry_out::ended::{Ended, Progress, during};
use crate::restore::carry_out::settings::{put_back, set_aside};
use crate::restore::carry_out::stream::Stream;
use crate::restore::carry_out::tell::{Telling, pass_over};
use crate::restore::course::legs::Leg;
use codec::Position;
use source::identify::SourceIdentity;
use std::sync::atomic::AtomicBool;

/// What is to be done.
pub(super) struct CarryOut<'a> {
    /// The way, in parts.
    pub legs: &'a [Leg],
    /// What is sent.
    pub copied: &'a Copied,
    /// How.
    pub way: Way<'a>,
    /// What the target is told before.
    pub telling: Telling<'a>,
    /// Whoever wants it ended raises this.
    pub is_over: &'a AtomicBool,
}

/// How the target gets what it lacks.
#[derive(Clone, Copy)]
pub(super) enum Way<'a> {
    /// It reads from a port of ours, by its own replication.
    Channel {
        /// Opens the port for one part.
        open: &'a dyn Fn(&Course) -> anyhow::Result<Stream>,
        /// Our host as the target reaches it.
        host: &'a str,
        /// Threads that apply; `None` for the target's own number, or four where that is one.
        workers: Option<u32>,
    },
    /// By statements, over the connection that there is.
    Statements,
}

/// What an earlier restore of the target has left on it.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// A channel, or settings.
    pub is_some: bool,
    /// Of a server without GTIDs: it has everything up to there.
    pub applied: Option<Position>,
}

impl CarryOut<'_> {
    /// Takes back what an earlier restore of this server has left, if it was ended before it could. Of a server without GTIDs the channel
    /// stays: it alone knows how far that restore has come.
    ///
    /// # Errors
    /// When the target does not let it.
    pub(super) fn take_back(target: &mut Target, settings: &mut Restore) -> Result<Left, Ended> {
        let words = target.words;
        let mut left = Left { is_some: !settings.settings.is_empty(), applied: None };
        if target.channel()?.is_some() {
            left.is_some = true;
            if target.identity.has_gtids {
                for sql in [words.stop(), words.reset()] {
                    target.connection.query(&sql).map_err(during("taking back an earlier restore"))?;
                }
            } else {
                left.applied = target.stopped_at()?;
            }
        }
        put_back(target, settings)?;
        if left.is_some {
            // Its number among it.
            target.identity =
                SourceIdentity::ask(&mut target.connection).map_err(during("asking what it has"))?;
        }
        Ok(left)
    }

    /// Forgets a channel of ours that may be on a target that needs nothing more.
    ///
    /// # Errors
    /// When the target does not let it.
    pub(super) fn forget(target: &mut Target) -> Result<(), Ended> {
        if target.channel()?.is_some() {
            let sql = target.words.reset();
            target.connection.query(&sql).map_err(during("detaching the target"))?;
        }
        Ok(())
    }

    /// Brings the target to the point. `progress` is told now and then.
    ///
    /// # Errors
    /// Why it has ended early. What was changed on the target for the time being is put back all the same, as far as it answers.
    pub(super) fn run(
        &self,
        target: &mut Target,
        settings: &mut Restore,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<SourceIdentity, Ended> {
        let all = self.transactions();
        let mut before = 0;
        for (place, leg) in self.legs.iter().enumerate() {
            let progress = &mut |now: Progress| progress(Progress { done: before + now.done, all });
            let is_last = place + 1 == self.legs.len();
            match self.way {
                Way::Channel { open, host, workers } => {
                    let stream = open(&leg.course).map_err(Ended::Port)?;
                    let by = ByChannel {
                        telling: self.telling,
                        is_over: self.is_over,
                        leg,
                        stream: &stream,
                        host,
                        workers,
                        is_last,
                    };
                    by.run(target, settings, progress)?;
                }
                Way::Statements => {
                    let by =
                        ByStatements { copied: self.copied, course: &leg.course, skip: self.telling.skip };
                    let outcome = set_aside(target, settings, Applier::Statements)
                        .and_then(|()| by.run(target, self.telling, self.is_over, progress));
                    let back = put_back(target, settings);
                    outcome.and(back)?;
                }
            }
            before += leg.course.transactions;
            if let Some(shown) = &leg.passes_over {
                pass_over(target, shown)?;
                before += 1;
            }
        }
        self.compare(target)
    }

    /// How many transactions are applied or passed over.
    pub(super) fn transactions(&self) -> u64 {
        let of = |leg: &Leg| leg.course.transactions + u64::from(leg.passes_over.is_some());
        self.legs.iter().map(of).sum()
    }

    /// It has executed what it had and what was wanted, and nothing else. Where it goes by positions, its channel was asked.
    fn compare(&self, target: &mut Target) -> Result<SourceIdentity, Ended> {
        let after =
            SourceIdentity::ask(&mut target.connection).map_err(during("asking what it has in the end"))?;
        let Some(last) = self.legs.last().filter(|last| last.course.stretch.is_none()) else {
            return Ok(after);
        };
        let lacking = after.lacks(&last.course.at_the_point);
        let more = after.executed.subtract(&last.course.at_the_point);
        if lacking.is_empty() && more.is_empty() { Ok(after) } else { Err(Ended::Differs { more, lacking }) }
    }
}
