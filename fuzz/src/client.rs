//! What a client says, before it is let in and afterwards.
//!
//! The server's side is the real one, over a stream that says what the script says. The script can log in as a client does,
//! by the challenge that it was sent, so that the fuzzer reaches what stands behind the login.
//!
//! ```text
//! start        1 byte: bit 0 greeting of mysql_native_password, bit 1 of MariaDB, bit 2 TLS is demanded,
//!              bits 3 and 4 the methods of the account
//! steps        until the end, see `step`
//! ```
//!
//! Held true: no panic, no end by waiting; before the login nothing leaves but the greeting, requests to authenticate
//! otherwise and an error, and nobody is let in who has not the password. A message is never longer than allowed. The same
//! bytes are read as a command, an acknowledgement and a login, whose parts lie within them.

use crate::input::Input;
use codec::ServerKind;
use codec::packet::{
    Assembler, AuthSwitchRequest, ERR, FirstMessage, Handshake, Header, OK, Request, SemiSyncAcknowledgement,
    append_message, capability,
};
use mysql_common::auth::plugins::mysql_native_password::scramble_native;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use wire::{AcceptOptions, Accounts, ByteStream, Client, Method, Methods, Verifiers, accept_over};

/// Most steps of one input: more only take time.
const STEPS_MAX: usize = 256;
/// Far longer than an input takes: reaching it is a finding, by the fuzzer's own limit for one input.
const NEVER: Duration = Duration::from_secs(600);
/// The longest command accepted, in bytes.
const COMMAND_BYTES_MAX: usize = 4096;
/// The most that is said to somebody who is not let in, in bytes.
const BEFORE_LOGIN_BYTES_MAX: usize = 1024;

const USER: &str = "repl";
const PASSWORD: &str = "secret";

/// What a step of the script says, in the low three bits of its first byte.
pub mod step {
    /// A login with the right answer to the last challenge, by mysql_native_password.
    pub const LOGIN: u8 = 0;
    /// The right answer to a request for mysql_native_password.
    pub const ANSWER: u8 = 1;
    /// A packet with the number that belongs there: 2 bytes of length, payload.
    pub const PACKET: u8 = 2;
    /// A command: 1 byte of length, payload.
    pub const COMMAND: u8 = 3;
    /// Bytes that need be no packet: 1 byte of length, bytes.
    pub const RAW: u8 = 4;
    /// A login of the script's making behind 4 bytes of capabilities, with the number 1: 1 byte of length, bytes.
    pub const OTHER_LOGIN: u8 = 5;
}

/// Runs one connection.
pub fn run(data: &[u8]) {
    play(data);
}

/// Runs one connection; gives who was let in, and how many commands were read.
pub(crate) fn play(data: &[u8]) -> Option<(Client, usize)> {
    let mut input = Input::new(data);
    let start = input.u8();
    parse(input.clone().rest());
    let said = Arc::new(Mutex::new(Said::default()));
    let stream = Box::new(Script {
        steps: steps(input),
        arriving: VecDeque::new(),
        said: said.clone(),
        readable: File::open("/dev/null").expect("/dev/null"),
    });
    let options = AcceptOptions {
        version: "9.7.0".to_owned(),
        kind: if start & 2 == 0 { ServerKind::MySql } else { ServerKind::MariaDb },
        connection_id: 7,
        default_method: if start & 1 == 0 { Method::CachingSha2 } else { Method::Native },
        databases: &["information_schema"],
        tls: None,
        require_tls: start & 4 != 0,
        login_timeout: NEVER,
        write_timeout: NEVER,
    };
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3306);
    let accepted = accept_over(stream, address, &options, &accounts(start));
    let has_answered = {
        let said = lock(&said);
        said.check(accepted.is_ok());
        said.has_answered
    };
    let mut accepted = accepted.ok()?;
    assert!(has_answered, "somebody was let in without the password");
    let client = accepted.client().clone();
    assert_eq!((client.user.as_str(), accepted.auth_plugin()), (USER, "mysql_native_password"));
    let mut commands = 0;
    while let Ok(Some(message)) = accepted.receive(NEVER, COMMAND_BYTES_MAX) {
        assert!(message.len() <= COMMAND_BYTES_MAX);
        let _ = Request::parse(&message, client.capabilities);
        commands += 1;
    }
    Some((client, commands))
}

/// Everything that is read of a client, of the same bytes.
fn parse(bytes: &[u8]) {
    let within = |part: &[u8]| part.is_empty() || bytes.as_ptr_range().contains(&part.as_ptr());
    if let Ok(FirstMessage::Login(login)) = FirstMessage::parse(bytes) {
        assert!(within(login.user) && within(login.auth_response) && within(login.database));
        assert!(login.attributes.iter().all(|(name, value)| within(name) && within(value)));
    }
    if let Ok(acknowledgement) = SemiSyncAcknowledgement::parse(bytes) {
        assert!(within(acknowledgement.file));
    }
    for capabilities in [0, u32::MAX, capability::SECURE_CONNECTION | capability::PLUGIN_AUTH] {
        match Request::parse(bytes, capabilities) {
            Ok(Request::BinlogDumpGtid(dump)) => assert!(within(dump.set) && within(dump.file)),
            Ok(Request::RegisterReplica(replica)) => {
                assert!(within(replica.host) && within(replica.password))
            }
            _ => {}
        }
    }
}

/// One account, with the methods that the script says.
struct Only(Verifiers);

fn accounts(start: u8) -> Only {
    let all = Verifiers::from_password(&PASSWORD.into());
    let none = Verifiers::default();
    Only(match start >> 3 & 3 {
        0 => all,
        1 => Verifiers { native: all.native, ..none },
        2 => Verifiers { native: all.native, ed25519: all.ed25519, ..none },
        _ => Verifiers { sha256: all.sha256, ..none },
    })
}

impl Accounts for Only {
    fn find(&self, user: &str, _: IpAddr) -> Option<Verifiers> {
        (user == USER).then_some(self.0)
    }

    fn methods(&self) -> Vec<Methods> {
        vec![self.0.methods()]
    }
}

/// What the server has said.
#[derive(Debug, Default)]
struct Said {
    bytes: Vec<u8>,
    /// A right answer was sent.
    has_answered: bool,
}

impl Said {
    /// The messages, as far as they are whole.
    fn messages(&self) -> Vec<Vec<u8>> {
        let (mut rest, mut messages) = (&self.bytes[..], Vec::new());
        while rest.len() >= 4 {
            let mut assembler = Assembler::new(1 << 20, rest[3]);
            let progress = assembler.feed(rest).expect("the server frames what it says");
            assert!(progress.complete, "half a message");
            rest = &rest[progress.consumed..];
            messages.push(assembler.into_message());
        }
        assert!(rest.is_empty(), "half a packet");
        messages
    }

    /// Nothing but what authenticates, and at the end what became of it.
    fn check(&self, is_let_in: bool) {
        assert!(self.bytes.len() < BEFORE_LOGIN_BYTES_MAX);
        let messages = self.messages();
        for (place, message) in messages.iter().enumerate() {
            let is_last = place + 1 == messages.len();
            if place == 0 {
                Handshake::parse(message).expect("a greeting");
                continue;
            }
            match message[0] {
                AuthSwitchRequest::MARKER => {
                    AuthSwitchRequest::parse(message).expect("a request to switch");
                }
                OK => assert!(is_last && is_let_in),
                ERR => assert!(is_last && !is_let_in),
                other => panic!("a message that begins with {other}"),
            }
        }
    }

    /// The number of the last packet.
    fn last_number(&self) -> u8 {
        let (mut rest, mut number) = (&self.bytes[..], 0);
        while let Some((header, payload)) = rest.split_first_chunk() {
            let header = Header::parse(*header);
            (number, rest) = (header.sequence, &payload[header.length..]);
        }
        number
    }

    /// The right answer to the last challenge, by mysql_native_password; empty when there is none.
    fn answer(&mut self) -> Vec<u8> {
        let messages = self.messages();
        let challenge = match &messages[..] {
            [greeting] => Handshake::parse(greeting).ok().map(|greeting| greeting.challenge),
            [.., last] => AuthSwitchRequest::parse(last).ok().map(|switch| switch.challenge.to_vec()),
            [] => None,
        };
        let answer = challenge.and_then(|challenge| scramble_native(&challenge, PASSWORD.as_bytes()));
        self.has_answered |= answer.is_some();
        answer.map_or_else(Vec::new, |answer| answer.to_vec())
    }
}

fn lock(said: &Mutex<Said>) -> std::sync::MutexGuard<'_, Said> {
    said.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A step of the script; see [`step`].
#[derive(Debug)]
enum Step {
    Login,
    Answer,
    Packet(Vec<u8>),
    Command(Vec<u8>),
    Raw(Vec<u8>),
    OtherLogin(Vec<u8>),
}

fn steps(mut input: Input<'_>) -> VecDeque<Step> {
    let mut steps = VecDeque::new();
    while !input.is_empty() && steps.len() < STEPS_MAX {
        let operation = input.u8();
        let mut short = || {
            let len = input.u8();
            input.bytes(len.into()).to_vec()
        };
        steps.push_back(match operation & 7 {
            step::LOGIN => Step::Login,
            step::ANSWER => Step::Answer,
            step::COMMAND => Step::Command(short()),
            step::OTHER_LOGIN => Step::OtherLogin(short()),
            step::PACKET => {
                let len = input.u16();
                Step::Packet(input.bytes(len.into()).to_vec())
            }
            _ => Step::Raw(short()),
        });
    }
    steps
}

/// The client. What it says next is made when it is listened to, since it depends on what it has heard.
#[derive(Debug)]
struct Script {
    steps: VecDeque<Step>,
    /// Bytes on their way.
    arriving: VecDeque<u8>,
    said: Arc<Mutex<Said>>,
    /// In the place of a socket that has something to read.
    readable: File,
}

impl Script {
    fn say(&mut self, step: Step) {
        let mut said = lock(&self.said);
        let mut bytes = Vec::new();
        let next = said.last_number().wrapping_add(1);
        match step {
            Step::Login => {
                let answer = said.answer();
                append_message(&mut bytes, next, &login(&answer));
            }
            Step::Answer => {
                let answer = said.answer();
                append_message(&mut bytes, next, &answer);
            }
            Step::Packet(payload) => {
                append_message(&mut bytes, next, &payload);
            }
            Step::Command(payload) => {
                append_message(&mut bytes, 0, &payload);
            }
            Step::OtherLogin(tail) => {
                let (capabilities, tail) = tail.split_at(tail.len().min(4));
                let payload = [capabilities, &[0; 28], tail].concat();
                append_message(&mut bytes, 1, &payload);
            }
            Step::Raw(raw) => bytes = raw,
        }
        self.arriving.extend(bytes);
    }
}

/// As a client of MySQL sends it.
fn login(answer: &[u8]) -> Vec<u8> {
    let capabilities = capability::MYSQL
        | capability::PROTOCOL_41
        | capability::SECURE_CONNECTION
        | capability::PLUGIN_AUTH
        | capability::CONNECT_ATTRS;
    let mut message = capabilities.to_le_bytes().to_vec();
    message.extend_from_slice(&[0; 28]);
    message.extend_from_slice(USER.as_bytes());
    message.extend_from_slice(&[0, answer.len() as u8]);
    message.extend_from_slice(answer);
    message.extend_from_slice(b"mysql_native_password\0\x04\x01a\x01b");
    message
}

impl Read for Script {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.arriving.is_empty() {
            let Some(step) = self.steps.pop_front() else { return Ok(0) };
            self.say(step);
        }
        self.arriving.read(buffer)
    }
}

impl Write for Script {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        lock(&self.said).bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Script {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }
}

impl ByteStream for Script {
    fn set_read_timeout(&mut self, _: Duration) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seeds reach what their names say; one that is refused at the door would be of no use to the fuzzer.
    #[test]
    fn the_script_can_log_in() {
        let command = [step::COMMAND, 2, 3, b'x'];
        for (start, steps, is_let_in) in [
            (1, &[step::LOGIN][..], true),
            (0, &[step::LOGIN], true),
            (0b1001, &[step::LOGIN], true),
            (0b10000, &[step::LOGIN], true),
            (0b11000, &[step::LOGIN, step::ANSWER], false),
            (0b100, &[step::LOGIN], false),
            (0, &[step::OTHER_LOGIN, 4, 1, 2, 8, 0], false),
        ] {
            let let_in = play(&[&[start][..], steps, &command].concat());
            assert_eq!(let_in.is_some(), is_let_in, "{start:b} {steps:?}");
            assert!(
                let_in.is_none_or(|(client, commands)| commands == 1 && client.attribute("a") == Some("b"))
            );
        }
    }

    #[test]
    fn an_answer_to_a_request_to_switch() {
        // User, an empty answer, a method that nobody knows.
        let other = b"repl\0\0none\0";
        let capabilities =
            (capability::PROTOCOL_41 | capability::SECURE_CONNECTION | capability::PLUGIN_AUTH).to_le_bytes();
        let login = [&[step::OTHER_LOGIN, 4 + other.len() as u8][..], &capabilities, other].concat();
        assert!(play(&[&[0b1001][..], &login, &[step::ANSWER]].concat()).is_some());
        assert!(play(&[&[0b1001][..], &login, &[step::PACKET, 1, 0, 0]].concat()).is_none());
    }
}
