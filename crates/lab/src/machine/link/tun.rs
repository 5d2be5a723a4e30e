//! A network interface whose packets a program takes and gives (TUN; the kernel's documentation has it in
//! `networking/tuntap.rst`).

use anyhow::{Context, ensure};
use rustix::fs::{Mode, OFlags, open};
use rustix::ioctl::{IntegerSetter, Opcode, Updater, ioctl, opcode};
use std::ffi::{c_int, c_uint};
use std::fs::File;
use std::path::Path;

/// Where programs get them. A container has it where it is allowed to.
pub(super) const DEVICE: &str = "/dev/net/tun";

/// Bytes that a packet has at most, with what the kernel says of it before it: one that is still to be cut is as long as IP
/// allows.
pub(super) const PACKET_LEN_MAX: usize = 65_535 + 128;

// <linux/if_tun.h>
const SET_INTERFACE: Opcode = opcode::write::<c_int>(b'T', 202);
const SET_OFFLOAD: Opcode = opcode::write::<c_uint>(b'T', 208);
/// It carries IP packets.
const TUN: u16 = 0x0001;
/// Without the protocol's number before each packet.
const NO_PROTOCOL: u16 = 0x1000;
/// With what is left to do for the packet before it: a checksum, or cutting it.
const WITH_LEFT_TO_DO: u16 = 0x4000;
/// Checksums and cutting of TCP over both kinds of IP may be left to whoever takes the packet.
const OFFLOAD: usize = 0x01 | 0x02 | 0x04;

/// Length of the name of an interface, and a zero.
const NAME_LEN: usize = 16;

/// `struct ifreq`, as far as it is used here.
#[repr(C)]
struct Request {
    name: [u8; NAME_LEN],
    flags: u16,
    /// The union that `flags` is of is longer.
    rest: [u8; 22],
}

/// Makes an interface in the network namespace of this thread, and gives what its packets are read from and written to. It
/// goes when that is closed, and so with this process however that ends. Reading does not wait.
///
/// TCP gives it groups that are not cut into packets of an MTU yet, as it gives them to a veth pair: what is read from one
/// such interface can be written to another one as it is.
///
/// # Errors
/// When the kernel has none or refuses.
pub(super) fn make(name: &str) -> anyhow::Result<File> {
    let failed = || format!("making the interface {name} by {DEVICE}");
    ensure!(name.len() < NAME_LEN, "the name of an interface is too long: {name}");
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = open(Path::new(DEVICE), flags, Mode::empty()).with_context(failed)?;
    let mut request =
        Request { name: [0; NAME_LEN], flags: TUN | NO_PROTOCOL | WITH_LEFT_TO_DO, rest: [0; 22] };
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    set(&file, &mut request).with_context(failed)?;
    Ok(File::from(file))
}

#[expect(unsafe_code, reason = "calls of the kernel that rustix does not wrap")]
fn set(file: &impl std::os::fd::AsFd, request: &mut Request) -> rustix::io::Result<()> {
    // SAFETY: TUNSETIFF reads and writes a `struct ifreq`, which `Request` is in length and layout.
    unsafe { ioctl(file, Updater::<SET_INTERFACE, Request>::new(request)) }?;
    // SAFETY: TUNSETOFFLOAD takes flags as its argument itself, and touches no memory of ours.
    unsafe { ioctl(file, IntegerSetter::<SET_OFFLOAD>::new_usize(OFFLOAD)) }
}
