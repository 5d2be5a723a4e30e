//! A forwarded address that moves, as a virtual IP or a proxy does it: clients keep the address, and what answers there is
//! another server.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Passes connections on to a server on this machine. Its threads end with their connections, the listening one with
/// the test program.
pub struct Forward {
    port: u16,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    server_port: u16,
    /// Both ends of every connection that was made.
    sockets: Vec<TcpStream>,
}

impl Forward {
    /// An address that leads to the server on `server_port`.
    pub fn to(server_port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("a bound socket").port();
        let shared = Arc::new(Mutex::new(Shared { server_port, sockets: Vec::new() }));
        let for_thread = shared.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let mut shared = for_thread.lock().unwrap();
                // Nobody listening is what the client sees too: its connection is closed.
                let Ok(server) = TcpStream::connect(("127.0.0.1", shared.server_port)) else { continue };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    thread::spawn(|| pass_on(from, to));
                }
                shared.sockets.extend([client, server]);
            }
        });
        Self { port, shared }
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on the address leads to the server on `server_port`. Connections to the old one are cut.
    pub fn move_to(&self, server_port: u16) {
        let mut shared = self.shared.lock().unwrap();
        shared.server_port = server_port;
        for socket in shared.sockets.drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
