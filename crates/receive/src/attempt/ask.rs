//! What an attempt asks its host: connections, short looks, comparisons.

use super::attempt_error::AttemptError;
use super::context::Upstream;
use super::copy::HeldCopy;
use crate::decide::hosts::Hosts;
use crate::peers::Peers;
use crate::peers::doubts::Doubts;
use crate::session::attached::Attached;
use config::{HostPort, SourceConfig};
use source::complaint::{Complaint, ER_FATAL_READING_BINLOG, ER_SPECIFIC_ACCESS_DENIED};
use source::identify::SourceIdentity;
use source::link::{End, Link, beginning, link};
use source::look::{Compared, Look, Ours, compare, look};
use source::negotiate::{ask_for_events_as_they_are, choose_timeline, look_request};
use source::stop::ShutsDown;
use status::Place;
use std::cell::{Cell, RefCell};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use wire::{ConnectOptions, Connection, Secret, WireError};

/// One attempt with one host.
pub struct Attempt<'a> {
    /// The source it belongs to.
    pub upstream: &'a Upstream,
    /// The host to try.
    pub host: &'a HostPort,
    /// What is known of the list that it stands in.
    pub hosts: &'a Hosts,
    /// What the attempts before it have left.
    pub left: &'a Left,
}

/// What an attempt leaves to the next one.
#[derive(Default)]
pub struct Left {
    /// In place of the `server_id` that is ours.
    pub(crate) stand_in: Cell<Option<u32>>,
    /// The connection of the session before, closed when a session has begun.
    pub(crate) open: Cell<Option<Attached>>,
    /// The host is the successor of a source that is alive, and has everything that that one has.
    pub(crate) switched: Cell<bool>,
    /// What is known of the other binlogds of the source.
    pub(crate) peers: RefCell<Peers>,
    /// Receivers further down have not come in time, and binlogd goes on without them.
    pub(crate) alone: Arc<AtomicBool>,
    /// Where the host is a binlogd: the one of its timelines that each connection of this attempt reads.
    pub(crate) timeline_above: RefCell<Option<TimelineAbove>>,
    /// What that one cannot tell.
    pub(crate) doubts_above: RefCell<Doubts>,
}

/// One timeline of a binlogd above.
pub(crate) struct TimelineAbove {
    /// Its name there.
    pub(crate) name: String,
    /// Whether it was written there when that one was asked.
    pub(crate) is_live: bool,
}

impl Attempt<'_> {
    /// Asks what the source has at the end of the copy. A MariaDB ends another dump of the same `server_id`.
    pub(crate) fn link(
        &self,
        source: &SourceIdentity,
        end: &End<'_>,
        server_id: u32,
    ) -> Result<Link, WireError> {
        let config = &self.upstream.config;
        let mut connection = self.connect_only()?;
        ask_for_events_as_they_are(&mut connection, source)?;
        let request = look_request(server_id, &end.at.file, end.tail_start());
        link(connection, source, &request, end, config.connect_timeout, self.upstream.waits())
    }

    /// What a file of the source says of itself.
    pub(crate) fn beginning(
        &self,
        copy: &HeldCopy,
        source: &SourceIdentity,
        file: &str,
    ) -> Result<Link, WireError> {
        let config = &self.upstream.config;
        let mut connection = self.connect_only()?;
        ask_for_events_as_they_are(&mut connection, source)?;
        let request = look_request(self.server_id(copy), file, 4);
        beginning(connection, source, &request, file, config.connect_timeout, self.upstream.waits())
    }

    pub(crate) fn with_privilege(&self, error: WireError) -> AttemptError {
        match error {
            WireError::AccessDenied { code: ER_SPECIFIC_ACCESS_DENIED, message, .. } => {
                AttemptError::Privilege(message, self.upstream.config.user.clone())
            }
            error => error.into(),
        }
    }

    pub(crate) fn look(
        &self,
        copy: &HeldCopy,
        source: &SourceIdentity,
        file: &str,
    ) -> Result<Look, AttemptError> {
        self.look_from(copy, source, file, 4)
    }

    /// As [`look`](Self::look), from an offset on at which the source must have an event's end.
    pub(crate) fn look_from(
        &self,
        copy: &HeldCopy,
        source: &SourceIdentity,
        file: &str,
        offset: u64,
    ) -> Result<Look, AttemptError> {
        let (connection, _) = self.connect()?;
        self.look_with(connection, source, &look_request(self.server_id(copy), file, offset))
    }

    pub(crate) fn look_with(
        &self,
        mut connection: Connection,
        source: &SourceIdentity,
        request: &[u8],
    ) -> Result<Look, AttemptError> {
        ask_for_events_as_they_are(&mut connection, source)?;
        let timeout = self.upstream.config.connect_timeout;
        look(connection, source, request, timeout, self.upstream.waits()).map_err(|error| match error {
            WireError::Server { code: ER_FATAL_READING_BINLOG, ref message, .. }
                if Complaint::of(message) == Complaint::NoBinlog =>
            {
                AttemptError::NoBinlog
            }
            error => self.with_privilege(error),
        })
    }

    /// Holds a file of the source against the copy's.
    pub(crate) fn compare(
        &self,
        copy: &HeldCopy,
        source: &SourceIdentity,
        file: &str,
        ours: Ours<'_>,
    ) -> Result<Compared, AttemptError> {
        let config = &self.upstream.config;
        let (mut connection, _) = self.connect()?;
        ask_for_events_as_they_are(&mut connection, source)?;
        let request = look_request(self.server_id(copy), file, 4);
        let silence = config.net_read_timeout;
        Ok(compare(connection, source, &request, ours, silence, self.upstream.waits())?)
    }

    /// Connects and asks who answers. A request to stop ends each wait in it.
    pub(crate) fn connect(&self) -> Result<(Connection, SourceIdentity), WireError> {
        let mut connection = self.connect_only()?;
        let _shut_down = self.ended_by_stop(&connection)?;
        let source = SourceIdentity::ask(&mut connection)?;
        Ok((connection, source))
    }

    pub(crate) fn connect_only(&self) -> Result<Connection, WireError> {
        self.upstream.monitor.pulse.beat(Place::Asks);
        let mut connection = self.upstream.connect_to(self.host, self.upstream.config.connect_timeout)?;
        if let Some(timeline) = &*self.left.timeline_above.borrow() {
            let _shut_down = self.ended_by_stop(&connection)?;
            choose_timeline(&mut connection, &timeline.name)?;
        }
        Ok(connection)
    }

    /// As long as the answer is held, a request to stop ends a wait for the source: one that answers slowly must not hold
    /// up the end of the process.
    pub(crate) fn ended_by_stop(&self, connection: &Connection) -> Result<ShutsDown<'_>, WireError> {
        // What is asked comes in groups of a few statements, each with an end of its own.
        self.upstream.monitor.pulse.beat(Place::Asks);
        let stop = &self.upstream.stop;
        stop.shuts_down(connection.as_fd())
            .map_err(|reason| WireError::Io { during: "preparing to question the source", reason })
    }

    pub(crate) fn server_id(&self, copy: &HeldCopy) -> u32 {
        let ours = self.upstream.config.server_id.unwrap_or(copy.identity().server_id);
        self.left.stand_in.get().unwrap_or(ours)
    }
}

impl Upstream {
    /// Connects to a host with the account of the source. A request to stop ends each wait in it.
    ///
    /// # Errors
    /// As [`Connection::connect`].
    pub fn connect_to(&self, host: &HostPort, connect_timeout: Duration) -> Result<Connection, WireError> {
        let config = &self.config;
        let (options, problem) = self.options_and_problem(host, connect_timeout);
        let mut shut_down = None;
        let connection = self.network.connect(&options, &mut |socket| {
            // Not in one assignment: the end of an earlier one would forget the newer socket too. Without descriptors left
            // the stop waits until the connection's own time is over.
            drop(shut_down.take());
            shut_down = self.stop.shuts_down(socket).ok();
        });
        if let (Some(problem), Ok(_) | Err(WireError::AccessDenied { .. })) = (problem, &connection) {
            tracing::warn!(source = config.name, "{problem}; using the password that it held at the start");
        }
        connection
    }

    /// How to reach a host with that account.
    pub fn options_of(&self, host: &HostPort, connect_timeout: Duration) -> ConnectOptions {
        self.options_and_problem(host, connect_timeout).0
    }

    fn options_and_problem(
        &self,
        host: &HostPort,
        connect_timeout: Duration,
    ) -> (ConnectOptions, Option<String>) {
        let (password, problem) = self.config.password_now();
        (ConnectOptions { connect_timeout, ..connect_options(&self.config, host, password) }, problem)
    }
}

/// How to reach a host of the list.
pub(crate) fn connect_options(config: &SourceConfig, host: &HostPort, password: Secret) -> ConnectOptions {
    ConnectOptions {
        host: host.host.clone(),
        port: host.port,
        user: config.user.clone(),
        password,
        connect_timeout: config.connect_timeout,
        tls: config.tls.clone(),
    }
}
