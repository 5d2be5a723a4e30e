//! A proxy that records what clients say to a server.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Passes connections on to a server on this machine. Its threads end with their connections, the listening one with
/// the test program.
pub struct Tap {
    port: u16,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Tap {
    /// A proxy before the server on `server_port`.
    pub fn new(server_port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("a bound socket").port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let record = heard.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = TcpStream::connect(("127.0.0.1", server_port)).expect("the server listens");
                let (client_again, server_again) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(|| pass_on(server_again, client_again, None));
                let record = record.clone();
                thread::spawn(|| pass_on(client, server, Some(record)));
            }
        });
        Self { port, heard }
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What clients have said since the last call.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.heard.lock().unwrap())
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, record: Option<Arc<Mutex<Vec<u8>>>>) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        // Recorded before it is passed on, so that it is there when the answer arrives.
        if let Some(record) = &record {
            record.lock().unwrap().extend_from_slice(&buffer[..read]);
        }
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
