//! One window of measurement: log → set → attach → in force → load → read back.
//!
//! The order is what makes a window count. Each receiver begins at the end of an empty log; what is to be measured is in
//! force before the counters are read, and is looked at again after the load. What the thing measured does wrong makes
//! the window invalid; a source that does not answer ends the run.

use crate::interrupt::Interrupt;
use crate::results::measured::Measured;
use crate::server::counters::SemiSync;
use rig::usage::Usage;
use std::time::Duration;

/// Longest wait until what is attached is attached, and semi-sync is in force or not.
const ATTACH_MAX: Duration = Duration::from_secs(30);

/// A place in a binary log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The file's name.
    pub file: String,
    /// The offset in it.
    pub position: u64,
}

/// The server that is loaded.
pub trait Source {
    /// What its process has used; `None` where it is elsewhere.
    ///
    /// # Errors
    /// When it is gone.
    fn usage(&self) -> anyhow::Result<Option<Usage>>;

    /// Waits until nobody reads its log any more.
    ///
    /// # Errors
    /// When somebody still does.
    fn drop_dumps(&mut self, interrupt: &Interrupt) -> anyhow::Result<()>;

    /// Begins a new log file.
    ///
    /// # Errors
    /// When the server refuses, or writes no binary log.
    fn begin_log(&mut self) -> anyhow::Result<Place>;

    /// Bytes of all its log files.
    ///
    /// # Errors
    /// When the server does not answer.
    fn log_bytes(&mut self) -> anyhow::Result<u64>;

    /// Sets a global variable.
    ///
    /// # Errors
    /// When the server refuses.
    fn set(&mut self, name: &str, value: &str) -> anyhow::Result<()>;

    /// Which of these global variables has another value than the one beside it, if one has.
    ///
    /// # Errors
    /// When the server does not answer.
    fn is_not(&mut self, wanted: &[(&str, &str)]) -> anyhow::Result<Option<String>>;

    /// Switches semi-sync on or off.
    ///
    /// # Errors
    /// When the server refuses.
    fn set_semi_sync(&mut self, wanted: bool) -> anyhow::Result<()>;

    /// Its counters of semi-sync now.
    ///
    /// # Errors
    /// When the server does not answer.
    fn semi_sync(&mut self) -> anyhow::Result<SemiSync>;

    /// Commits until the server surely reads acknowledgements.
    ///
    /// # Errors
    /// When the server refuses.
    fn commit_probes(&mut self) -> anyhow::Result<()>;
}

/// The steps that differ from window to window, in the order in which [`measure_window`] calls them.
pub trait Window {
    /// The server that is loaded.
    type Source: Source;
    /// What is attached to it.
    type Attached;
    /// What the load came to.
    type Outcome;

    /// The server that is loaded.
    fn source(&mut self) -> &mut Self::Source;

    /// Whether that server writes a binary log. Without one nobody is attached.
    fn writes_log(&self) -> bool {
        true
    }

    /// Whether commits wait for an acknowledgement.
    fn semi_sync(&self) -> bool;

    /// Global variables that the window is about, and their values.
    fn variables(&self) -> Vec<(&'static str, String)>;

    /// Whatever else must be so before somebody is attached; or why this cannot be measured here.
    ///
    /// # Errors
    /// When the source does not work.
    fn prepare(&mut self) -> anyhow::Result<Option<String>> {
        Ok(None)
    }

    /// Attaches what is to be attached, at `place`.
    ///
    /// # Errors
    /// When that does not start, which makes the window invalid.
    fn attach(&mut self, place: &Place) -> anyhow::Result<Self::Attached>;

    /// What is not as it must be before and after the load.
    ///
    /// # Errors
    /// When the source does not answer.
    fn not_in_force(&mut self, attached: &mut Self::Attached) -> anyhow::Result<Option<String>>;

    /// What has been attached says about itself.
    fn complaint(&mut self, attached: &mut Self::Attached) -> String;

    /// What has been attached has used until now; `None` where that is not measured.
    ///
    /// # Errors
    /// When it is gone, which makes the window invalid.
    fn usage(&mut self, _: &mut Self::Attached) -> anyhow::Result<Option<Usage>> {
        Ok(None)
    }

    /// Loads the source.
    ///
    /// # Errors
    /// When the load fails, which makes the window invalid.
    fn load(&mut self, attached: &mut Self::Attached) -> anyhow::Result<Self::Outcome>;

    /// Puts what the load came to.
    ///
    /// # Errors
    /// When the source does not answer.
    fn read_back(
        &mut self,
        attached: &mut Self::Attached,
        outcome: Self::Outcome,
        readings: &Readings,
        measured: &mut Measured,
    ) -> anyhow::Result<()>;

    /// Detaches.
    ///
    /// # Errors
    /// When the source does not answer, or does not notice.
    fn detach(&mut self, attached: Self::Attached) -> anyhow::Result<()>;
}

/// What was read at one moment.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The source's counters.
    pub semi_sync: SemiSync,
    /// Bytes of its log.
    pub log_bytes: u64,
    /// What its process has used.
    pub source: Option<Usage>,
    /// What the receiver has used.
    pub receiver: Option<Usage>,
}

/// What was read before and after a load.
#[derive(Debug, Clone)]
pub struct Readings {
    /// When all was in force.
    pub before: Reading,
    /// When the load had ended.
    pub after: Reading,
}

impl Readings {
    /// Bytes of log that the load has written.
    pub fn log_bytes(&self) -> u64 {
        self.after.log_bytes.saturating_sub(self.before.log_bytes)
    }

    /// Keeps the bytes of log, the acknowledgements, and the source's own mean of a wait for one. Returns how many
    /// acknowledgements there were.
    pub fn keep(&self, measured: &mut Measured) -> u64 {
        let (before, after) = (&self.before.semi_sync, &self.after.semi_sync);
        let waits = after.waits.saturating_sub(before.waits);
        if waits > 0 {
            let wait_us = after.wait_us.saturating_sub(before.wait_us);
            measured.put("source_wait_us", wait_us as f64 / waits as f64);
        }
        let acknowledgements = after.acknowledgements.saturating_sub(before.acknowledgements);
        measured.put("acknowledgements", acknowledgements as f64);
        measured.put("binlog_bytes", self.log_bytes() as f64);
        acknowledgements
    }
}

/// Measures one window.
///
/// # Errors
/// When the source does not work, and when the run is broken off.
pub fn measure_window<W: Window>(window: &mut W, interrupt: &Interrupt) -> anyhow::Result<Measured> {
    let (logs, semi_sync) = (window.writes_log(), window.semi_sync());
    let mut place = Place::default();
    if logs {
        window.source().drop_dumps(interrupt)?;
        place = window.source().begin_log()?;
    }
    let variables = window.variables();
    variables.iter().try_for_each(|(name, value)| window.source().set(name, value))?;
    if let Some(wrong) = window.prepare()? {
        return Ok(Measured::invalid(wrong));
    }
    // Before the receiver comes: binlogd looks at it when it connects, and says so in its status.
    window.source().set_semi_sync(semi_sync)?;
    let mut attached = match window.attach(&place) {
        Ok(attached) => attached,
        Err(error) => {
            interrupt.check()?;
            return Ok(Measured::invalid(format!("it does not start: {error:#}")));
        }
    };
    let measured = loaded(window, &mut attached, interrupt);
    let detached = window.detach(attached);
    interrupt.check()?;
    let mut measured = measured?;
    detached?;
    let wanted: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    if let Some(wrong) = window.source().is_not(&wanted)? {
        measured.refuse(format!("after the load: {wrong}"));
    }
    Ok(measured)
}

/// From when somebody is attached to when the load was looked at.
fn loaded<W: Window>(
    window: &mut W,
    attached: &mut W::Attached,
    interrupt: &Interrupt,
) -> anyhow::Result<Measured> {
    let mut wrong = None;
    interrupt.wait(ATTACH_MAX, || {
        wrong = window.not_in_force(attached)?;
        Ok(wrong.is_none().then_some(()))
    })?;
    if let Some(wrong) = wrong {
        let complaint = window.complaint(attached);
        return Ok(Measured::invalid(format!("before the load: {wrong}; {complaint}")));
    }
    let mut measured = Measured::default();
    if window.semi_sync() {
        window.source().commit_probes()?;
    }
    let before = reading(window, attached, &mut measured)?;
    let outcome = window.load(attached);
    interrupt.check()?;
    let after = reading(window, attached, &mut measured)?;
    let readings = Readings { before, after };
    match outcome {
        Ok(outcome) => window.read_back(attached, outcome, &readings, &mut measured)?,
        Err(error) => measured.refuse(format!("{error:#}")),
    }
    if let Some(wrong) = window.not_in_force(attached)? {
        measured.refuse(format!("after the load: {wrong}"));
    }
    let (before, after) = (&readings.before.semi_sync, &readings.after.semi_sync);
    after.not_acknowledged(before, window.semi_sync()).iter().for_each(|wrong| measured.refuse(wrong));
    Ok(measured)
}

/// What is used is read first: the questions to the source are not the load's.
fn reading<W: Window>(
    window: &mut W,
    attached: &mut W::Attached,
    measured: &mut Measured,
) -> anyhow::Result<Reading> {
    let receiver = window.usage(attached).unwrap_or_else(|error| {
        measured.refuse(format!("{error:#}"));
        None
    });
    let logs = window.writes_log();
    let source = window.source();
    Ok(Reading {
        receiver,
        source: source.usage()?,
        semi_sync: source.semi_sync()?,
        log_bytes: if logs { source.log_bytes()? } else { 0 },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// What was called, in order.
    type Log = Rc<RefCell<Vec<String>>>;

    /// A server whose counters move with each load.
    struct Server {
        log: Log,
        counters: SemiSync,
    }

    impl Server {
        fn did(&self, what: &str) {
            self.log.borrow_mut().push(what.to_owned());
        }
    }

    impl Source for Server {
        fn usage(&self) -> anyhow::Result<Option<Usage>> {
            Ok(None)
        }
        fn drop_dumps(&mut self, _: &Interrupt) -> anyhow::Result<()> {
            self.did("drop dumps");
            Ok(())
        }
        fn begin_log(&mut self) -> anyhow::Result<Place> {
            self.did("log");
            Ok(Place { file: "b.1".to_owned(), position: 4 })
        }
        fn log_bytes(&mut self) -> anyhow::Result<u64> {
            Ok(1000 * self.counters.yes_tx)
        }
        fn set(&mut self, name: &str, value: &str) -> anyhow::Result<()> {
            self.did(&format!("set {name} {value}"));
            Ok(())
        }
        fn is_not(&mut self, wanted: &[(&str, &str)]) -> anyhow::Result<Option<String>> {
            self.did("is still set");
            Ok(wanted.is_empty().then(|| "nothing was wanted".to_owned()))
        }
        fn set_semi_sync(&mut self, wanted: bool) -> anyhow::Result<()> {
            self.did(&format!("semi-sync {wanted}"));
            Ok(())
        }
        fn semi_sync(&mut self) -> anyhow::Result<SemiSync> {
            self.did("counters");
            Ok(self.counters)
        }
        fn commit_probes(&mut self) -> anyhow::Result<()> {
            self.did("probes");
            Ok(())
        }
    }

    /// What goes wrong.
    #[derive(Clone, Copy, PartialEq)]
    enum Fault {
        None,
        Prepare,
        Attach,
        Load,
        Unacknowledged,
    }

    struct Test {
        source: Server,
        fault: Fault,
    }

    impl Window for Test {
        type Source = Server;
        type Attached = Place;
        type Outcome = u32;

        fn source(&mut self) -> &mut Server {
            &mut self.source
        }
        fn semi_sync(&self) -> bool {
            true
        }
        fn variables(&self) -> Vec<(&'static str, String)> {
            vec![("sync_binlog", "1".to_owned())]
        }
        fn prepare(&mut self) -> anyhow::Result<Option<String>> {
            Ok((self.fault == Fault::Prepare).then(|| "not here".to_owned()))
        }
        fn attach(&mut self, place: &Place) -> anyhow::Result<Place> {
            if self.fault == Fault::Attach {
                bail!("no such program");
            }
            self.source.did("attach");
            Ok(place.clone())
        }
        fn not_in_force(&mut self, _: &mut Place) -> anyhow::Result<Option<String>> {
            self.source.did("in force");
            Ok(None)
        }
        fn complaint(&mut self, _: &mut Place) -> String {
            String::new()
        }
        fn load(&mut self, place: &mut Place) -> anyhow::Result<u32> {
            self.source.did(&format!("load at {}:{}", place.file, place.position));
            if self.fault == Fault::Load {
                bail!("deadlocks");
            }
            let counters = &mut self.source.counters;
            (counters.yes_tx, counters.waits, counters.wait_us) = (7, 2, 300);
            counters.no_tx = u64::from(self.fault == Fault::Unacknowledged);
            Ok(5)
        }
        fn read_back(
            &mut self,
            _: &mut Place,
            outcome: u32,
            readings: &Readings,
            measured: &mut Measured,
        ) -> anyhow::Result<()> {
            self.source.did("read back");
            measured.put("tps", f64::from(outcome));
            readings.keep(measured);
            Ok(())
        }
        fn detach(&mut self, _: Place) -> anyhow::Result<()> {
            self.source.did("detach");
            Ok(())
        }
    }

    fn measured(fault: Fault) -> (Measured, Vec<String>) {
        let log = Log::default();
        let source = Server { log: log.clone(), counters: SemiSync::default() };
        let measured = measure_window(&mut Test { source, fault }, &Interrupt::default()).unwrap();
        (measured, log.take())
    }

    #[test]
    fn the_steps_come_in_their_order() {
        let (measured, log) = measured(Fault::None);
        let wanted = "drop dumps, log, set sync_binlog 1, semi-sync true, attach, in force, probes, counters, \
                      load at b.1:4, counters, read back, in force, detach, is still set";
        assert_eq!(log.join(", "), wanted);
        assert_eq!(measured.invalid, None);
        let values = ["tps", "source_wait_us", "binlog_bytes"].map(|name| measured.values[name]);
        assert_eq!(values, [5.0, 150.0, 7000.0]);
    }

    #[test]
    fn what_goes_wrong_makes_the_window_invalid_and_what_was_attached_is_detached() {
        for (fault, reason, is_attached) in [
            (Fault::Prepare, "not here", false),
            (Fault::Attach, "it does not start: no such program", false),
            (Fault::Load, "deadlocks; the source counts no commit as acknowledged", true),
            (Fault::Unacknowledged, "1 commits went without an acknowledgement", true),
        ] {
            let (measured, log) = measured(fault);
            assert_eq!(measured.invalid.as_deref(), Some(reason));
            assert_eq!(log.iter().any(|step| step == "detach"), is_attached, "{log:?}");
        }
    }

    #[test]
    fn a_window_that_is_broken_off_gives_nothing() {
        let source = Server { log: Log::default(), counters: SemiSync::default() };
        let interrupt = Interrupt::default();
        interrupt.request();
        assert!(measure_window(&mut Test { source, fault: Fault::None }, &interrupt).is_err());
    }
}
