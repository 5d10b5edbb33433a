//! The table of functions that packetdrill calls (`struct packetdrill_interface`), and the conversion between C's
//! arguments and ours.
//!
//! Every function receives `userdata`, the [`Shim`] that [`packetdrill_interface_init`] made. A result below zero comes
//! with `errno`.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{epoll_event, iovec, msghdr, nfds_t, pollfd, sockaddr, socklen_t, ssize_t, timeval};
use polypath_transport::{MILLISECOND, Manner, NEVER};

use crate::call::{Call, Reply};
use crate::descriptor::unmapped;
use crate::machine::FIRST_DESCRIPTOR;
use crate::options::TCP_INQ;
use crate::shim::{Shim, value};
use crate::{Errno, unsupported};

/// The type of MPTCP sockets (linux/in.h).
const IPPROTO_MPTCP: c_int = 262;
/// No object lies in the first page.
const LOWEST_ADDRESS: usize = 4096;
/// Flags of sending and receiving that have no bearing here, and those that have.
const HARMLESS: c_int = libc::MSG_NOSIGNAL | libc::MSG_CMSG_CLOEXEC;
const KNOWN_TO_SEND: c_int = HARMLESS | libc::MSG_DONTWAIT | libc::MSG_MORE | libc::MSG_EOR;
const KNOWN_TO_RECEIVE: c_int = HARMLESS | libc::MSG_DONTWAIT | libc::MSG_PEEK;

type Data = *mut c_void;

/// The functions in the order in which packetdrill has them.
#[repr(C)]
pub struct Interface {
    userdata: Data,
    free: extern "C" fn(Data),
    socket: extern "C" fn(Data, c_int, c_int, c_int) -> c_int,
    bind: unsafe extern "C" fn(Data, c_int, *const sockaddr, socklen_t) -> c_int,
    listen: extern "C" fn(Data, c_int, c_int) -> c_int,
    accept: unsafe extern "C" fn(Data, c_int, *mut sockaddr, *mut socklen_t) -> c_int,
    connect: unsafe extern "C" fn(Data, c_int, *const sockaddr, socklen_t) -> c_int,
    read: extern "C" fn(Data, c_int, *mut c_void, usize) -> ssize_t,
    readv: unsafe extern "C" fn(Data, c_int, *const iovec, c_int) -> ssize_t,
    recv: extern "C" fn(Data, c_int, *mut c_void, usize, c_int) -> ssize_t,
    recvfrom: extern "C" fn(
        Data,
        c_int,
        *mut c_void,
        usize,
        c_int,
        *mut sockaddr,
        *mut socklen_t,
    ) -> ssize_t,
    recvmsg: unsafe extern "C" fn(Data, c_int, *mut msghdr, c_int) -> ssize_t,
    write: extern "C" fn(Data, c_int, *const c_void, usize) -> ssize_t,
    writev: unsafe extern "C" fn(Data, c_int, *const iovec, c_int) -> ssize_t,
    send: extern "C" fn(Data, c_int, *const c_void, usize, c_int) -> ssize_t,
    sendto: extern "C" fn(
        Data,
        c_int,
        *const c_void,
        usize,
        c_int,
        *const sockaddr,
        socklen_t,
    ) -> ssize_t,
    sendmsg: unsafe extern "C" fn(Data, c_int, *const msghdr, c_int) -> ssize_t,
    fcntl: extern "C" fn(Data, c_int, c_int, c_long) -> c_int,
    ioctl: unsafe extern "C" fn(Data, c_int, c_ulong, *mut c_int) -> c_int,
    close: extern "C" fn(Data, c_int) -> c_int,
    shutdown: extern "C" fn(Data, c_int, c_int) -> c_int,
    getsockopt:
        unsafe extern "C" fn(Data, c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int,
    setsockopt: unsafe extern "C" fn(Data, c_int, c_int, c_int, *const c_void, socklen_t) -> c_int,
    poll: unsafe extern "C" fn(Data, *mut pollfd, nfds_t, c_int) -> c_int,
    netdev_send: unsafe extern "C" fn(Data, *const c_void, usize) -> c_int,
    netdev_receive: unsafe extern "C" fn(Data, *mut c_void, *mut usize, *mut i64) -> c_int,
    usleep: extern "C" fn(Data, c_uint) -> c_int,
    gettimeofday: unsafe extern "C" fn(Data, *mut timeval, *mut c_void) -> c_int,
    epoll_create: extern "C" fn(Data, c_int) -> c_int,
    epoll_ctl: unsafe extern "C" fn(Data, c_int, c_int, c_int, *mut epoll_event) -> c_int,
    epoll_wait: unsafe extern "C" fn(Data, c_int, *mut epoll_event, c_int, c_int) -> c_int,
    pipe: extern "C" fn(Data, *mut c_int) -> c_int,
    splice: extern "C" fn(Data, c_int, *mut i64, c_int, *mut i64, usize, c_uint) -> c_int,
}

/// The shim of this process, for [`getsockopt`]. packetdrill runs one script a process.
static SHIM: AtomicPtr<Shim> = AtomicPtr::new(std::ptr::null_mut());

/// Fills in the table. packetdrill looks this name up.
///
/// # Safety
/// `interface` points to a table that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packetdrill_interface_init(
    _flags: *const c_char,
    interface: *mut Interface,
) {
    let shim = Box::into_raw(Box::new(Shim::new()));
    SHIM.store(shim, Ordering::Release);
    let table = Interface {
        userdata: shim.cast(),
        free,
        socket,
        bind,
        listen,
        accept,
        connect,
        read,
        readv,
        recv,
        recvfrom,
        recvmsg,
        write,
        writev,
        send,
        sendto,
        sendmsg,
        fcntl,
        ioctl,
        close,
        shutdown,
        getsockopt: get_option,
        setsockopt: set_option,
        poll,
        netdev_send,
        netdev_receive,
        usleep,
        gettimeofday,
        epoll_create,
        epoll_ctl,
        epoll_wait,
        pipe,
        splice,
    };
    // SAFETY: the caller's table is large enough and aligned, as its type says; what it held needs no drop.
    unsafe { interface.write(table) };
}

/// packetdrill asks for TCP_INFO past its table, by the C library's function; with this library preloaded it comes here.
///
/// # Safety
/// As getsockopt(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    let shim = SHIM.load(Ordering::Acquire);
    if fd >= FIRST_DESCRIPTOR && !shim.is_null() {
        // SAFETY: the caller keeps getsockopt's contract, which is that of the table's function.
        return unsafe { get_option(shim.cast(), fd, level, name, value, len) };
    }
    // SAFETY: the arguments are the caller's own.
    unsafe { libc::syscall(libc::SYS_getsockopt, fd, level, name, value, len) as c_int }
}

/// At its end packetdrill closes descriptors by the C library's function.
#[unsafe(export_name = "close")]
pub extern "C" fn close_any(fd: c_int) -> c_int {
    let shim = SHIM.load(Ordering::Acquire);
    if fd >= FIRST_DESCRIPTOR && !shim.is_null() {
        return close(shim.cast(), fd);
    }
    // SAFETY: any number may be closed.
    unsafe { libc::syscall(libc::SYS_close, fd) as c_int }
}

fn shim<'a>(data: Data) -> &'a Shim {
    // SAFETY: packetdrill hands back the pointer that `packetdrill_interface_init` gave it, and nothing after `free`.
    unsafe { &*data.cast::<Shim>() }
}

/// A result as C has it.
fn give(result: Result<i64, Errno>) -> i64 {
    result.unwrap_or_else(|error| {
        // SAFETY: the location is this thread's own.
        unsafe { *libc::__errno_location() = error };
        -1
    })
}

fn done(result: Result<(), Errno>) -> c_int {
    give(result.map(|()| 0)) as c_int
}

/// Whether memory may lie there; of what lies there nothing is read or written.
fn check<T>(buffer: *const T, len: usize) -> Result<(), Errno> {
    if len > 0 && (buffer as usize) < LOWEST_ADDRESS {
        return Err(libc::EFAULT);
    }
    Ok(())
}

/// # Safety
/// `address` points to `len` bytes, or is null.
unsafe fn read_address(address: *const sockaddr, len: socklen_t) -> Result<SocketAddr, Errno> {
    check(address, 1)?;
    // SAFETY: an address begins with its family.
    let family = c_int::from(unsafe { (*address).sa_family });
    match family {
        libc::AF_INET if len as usize >= size_of::<libc::sockaddr_in>() => {
            // SAFETY: by its family and length it is one of IPv4; it may be unaligned.
            let it = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(u32::from_be(it.sin_addr.s_addr));
            Ok(SocketAddr::new(ip.into(), u16::from_be(it.sin_port)))
        }
        libc::AF_INET6 if len as usize >= size_of::<libc::sockaddr_in6>() => {
            // SAFETY: by its family and length it is one of IPv6; it may be unaligned.
            let it = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            let ip = Ipv6Addr::from(it.sin6_addr.s6_addr);
            Ok(SocketAddr::new(
                unmapped(ip.into()),
                u16::from_be(it.sin6_port),
            ))
        }
        libc::AF_INET | libc::AF_INET6 => Err(libc::EINVAL),
        _ => Err(libc::EAFNOSUPPORT),
    }
}

/// # Safety
/// `to` points to as many bytes as `len` points to, or one of them is null.
unsafe fn write_address(address: SocketAddr, to: *mut sockaddr, len: *mut socklen_t) {
    if to.is_null() || len.is_null() {
        return;
    }
    // SAFETY: the caller's length.
    let room = unsafe { *len } as usize;
    let used = match address {
        SocketAddr::V4(it) if room >= size_of::<libc::sockaddr_in>() => {
            let value = libc::sockaddr_in {
                sin_family: libc::AF_INET as u16,
                sin_port: it.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: u32::from(*it.ip()).to_be(),
                },
                sin_zero: [0; 8],
            };
            // SAFETY: there is room for it.
            unsafe { to.cast::<libc::sockaddr_in>().write_unaligned(value) };
            size_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(it) if room >= size_of::<libc::sockaddr_in6>() => {
            let value = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as u16,
                sin6_port: it.port().to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr {
                    s6_addr: it.ip().octets(),
                },
                sin6_scope_id: 0,
            };
            // SAFETY: there is room for it.
            unsafe { to.cast::<libc::sockaddr_in6>().write_unaligned(value) };
            size_of::<libc::sockaddr_in6>()
        }
        _ => 0,
    };
    // SAFETY: the caller's length.
    unsafe { *len = used as socklen_t };
}

/// Bytes of a vector of buffers.
///
/// # Safety
/// `vector` points to `count` entries.
unsafe fn total(vector: *const iovec, count: usize) -> Result<usize, Errno> {
    check(vector, count)?;
    let mut sum = 0;
    for index in 0..count {
        // SAFETY: the caller has so many entries.
        let entry = unsafe { vector.add(index).read() };
        check(entry.iov_base, entry.iov_len)?;
        sum += entry.iov_len;
    }
    Ok(sum)
}

fn receive_bytes(data: Data, fd: c_int, len: Result<usize, Errno>, flags: c_int) -> ssize_t {
    let receive = || {
        if flags & !KNOWN_TO_RECEIVE != 0 {
            return Err(unsupported(&format!("receiving with flags {flags:#x}")));
        }
        let wait = flags & libc::MSG_DONTWAIT == 0;
        value(shim(data).read(fd, len? as u64, flags & libc::MSG_PEEK != 0, wait))
    };
    give(receive()) as ssize_t
}

fn send_bytes(data: Data, fd: c_int, len: Result<usize, Errno>, flags: c_int) -> ssize_t {
    let send = || {
        if flags & !KNOWN_TO_SEND != 0 {
            return Err(unsupported(&format!("sending with flags {flags:#x}")));
        }
        let wait = flags & libc::MSG_DONTWAIT == 0;
        let manner = Manner {
            more: flags & libc::MSG_MORE != 0,
            record: flags & libc::MSG_EOR != 0,
        };
        value(shim(data).write(fd, len? as u64, manner, wait))
    };
    give(send()) as ssize_t
}

extern "C" fn free(data: Data) {
    SHIM.store(std::ptr::null_mut(), Ordering::Release);
    // SAFETY: made by `packetdrill_interface_init`, and freed once.
    drop(unsafe { Box::from_raw(data.cast::<Shim>()) });
}

extern "C" fn socket(data: Data, domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let blocking = kind & libc::SOCK_NONBLOCK == 0;
    let stream = kind & 0xff == libc::SOCK_STREAM;
    let open = || match protocol {
        0 | libc::IPPROTO_TCP | IPPROTO_MPTCP if stream => {
            let multipath = protocol == IPPROTO_MPTCP;
            shim(data).with(|machine| {
                if multipath && !machine.host.multipath() {
                    return Err(libc::ENOPROTOOPT);
                }
                Ok(machine
                    .open(domain == libc::AF_INET6, multipath, blocking)
                    .into())
            })
        }
        _ => Err(unsupported(&format!(
            "socket type {kind} of protocol {protocol}"
        ))),
    };
    give(open()) as c_int
}

unsafe extern "C" fn bind(
    data: Data,
    fd: c_int,
    address: *const sockaddr,
    len: socklen_t,
) -> c_int {
    // SAFETY: packetdrill's own address and its length.
    let address = unsafe { read_address(address, len) };
    done(address.and_then(|address| shim(data).with(|machine| machine.bind(fd, address))))
}

extern "C" fn listen(data: Data, fd: c_int, _backlog: c_int) -> c_int {
    done(shim(data).with(|machine| machine.listen(fd)))
}

unsafe extern "C" fn accept(
    data: Data,
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    let answer = shim(data).accept(fd).map(|reply| match reply {
        Reply::Accepted(fd, peer) => {
            // SAFETY: packetdrill's own buffer and its length.
            unsafe { write_address(peer, address, len) };
            fd.into()
        }
        _ => 0,
    });
    give(answer) as c_int
}

unsafe extern "C" fn connect(
    data: Data,
    fd: c_int,
    address: *const sockaddr,
    len: socklen_t,
) -> c_int {
    // SAFETY: packetdrill's own address and its length.
    let address = unsafe { read_address(address, len) };
    give(address.and_then(|address| value(shim(data).connect(fd, address)))) as c_int
}

extern "C" fn read(data: Data, fd: c_int, buffer: *mut c_void, count: usize) -> ssize_t {
    receive_bytes(data, fd, check(buffer, count).map(|()| count), 0)
}

unsafe extern "C" fn readv(data: Data, fd: c_int, vector: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: packetdrill's own vector.
    receive_bytes(data, fd, unsafe { total(vector, count as usize) }, 0)
}

extern "C" fn recv(
    data: Data,
    fd: c_int,
    buffer: *mut c_void,
    len: usize,
    flags: c_int,
) -> ssize_t {
    receive_bytes(data, fd, check(buffer, len).map(|()| len), flags)
}

extern "C" fn recvfrom(
    data: Data,
    fd: c_int,
    buffer: *mut c_void,
    len: usize,
    flags: c_int,
    _address: *mut sockaddr,
    _address_len: *mut socklen_t,
) -> ssize_t {
    recv(data, fd, buffer, len, flags)
}

unsafe extern "C" fn recvmsg(data: Data, fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: packetdrill's own message.
    let message = unsafe { &mut *message };
    let room = std::mem::take(&mut message.msg_controllen);
    message.msg_flags = 0;
    // SAFETY: the message's own vector.
    let len = unsafe { total(message.msg_iov, message.msg_iovlen) };
    let received = receive_bytes(data, fd, len, flags);
    if received >= 0
        && let Some(left) = shim(data).with(|machine| machine.left_to_read(fd))
    {
        message.msg_controllen = room;
        // SAFETY: packetdrill's own buffer of that length.
        message.msg_controllen = unsafe { put_number(message, left) };
    }
    received
}

/// Puts a number into a message's control buffer, if it has room for one (TCP_CM_INQ). How much of that is taken.
unsafe fn put_number(message: &msghdr, number: i32) -> usize {
    let size = size_of::<i32>() as u32;
    // SAFETY: CMSG_FIRSTHDR gives none where not even a header fits, and the length is compared before anything is written.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(message);
        let space = libc::CMSG_SPACE(size) as usize;
        if header.is_null() || message.msg_controllen < space {
            return 0;
        }
        (*header).cmsg_level = libc::IPPROTO_TCP;
        (*header).cmsg_type = TCP_INQ;
        (*header).cmsg_len = libc::CMSG_LEN(size) as usize;
        libc::CMSG_DATA(header)
            .cast::<i32>()
            .write_unaligned(number);
        space
    }
}

extern "C" fn write(data: Data, fd: c_int, buffer: *const c_void, count: usize) -> ssize_t {
    send_bytes(data, fd, check(buffer, count).map(|()| count), 0)
}

unsafe extern "C" fn writev(data: Data, fd: c_int, vector: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: packetdrill's own vector.
    send_bytes(data, fd, unsafe { total(vector, count as usize) }, 0)
}

extern "C" fn send(
    data: Data,
    fd: c_int,
    buffer: *const c_void,
    len: usize,
    flags: c_int,
) -> ssize_t {
    send_bytes(data, fd, check(buffer, len).map(|()| len), flags)
}

extern "C" fn sendto(
    data: Data,
    fd: c_int,
    buffer: *const c_void,
    len: usize,
    flags: c_int,
    _address: *const sockaddr,
    _address_len: socklen_t,
) -> ssize_t {
    send(data, fd, buffer, len, flags)
}

unsafe extern "C" fn sendmsg(
    data: Data,
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
) -> ssize_t {
    // SAFETY: packetdrill's own message.
    let message = unsafe { &*message };
    if message.msg_controllen > 0 {
        return give(Err(unsupported("sendmsg with control messages"))) as ssize_t;
    }
    // SAFETY: the message's own vector.
    send_bytes(
        data,
        fd,
        unsafe { total(message.msg_iov, message.msg_iovlen) },
        flags,
    )
}

/// Variadic in C; on x86-64 and AArch64 Linux the third argument comes where a plain function's does.
extern "C" fn fcntl(data: Data, fd: c_int, command: c_int, argument: c_long) -> c_int {
    let result = shim(data).with(|machine| {
        let socket = machine.socket(fd)?;
        match command {
            libc::F_GETFL if socket.blocking => Ok(libc::O_RDWR.into()),
            libc::F_GETFL => Ok((libc::O_RDWR | libc::O_NONBLOCK).into()),
            libc::F_SETFL => {
                socket.blocking = argument & c_long::from(libc::O_NONBLOCK) == 0;
                Ok(0)
            }
            _ => Err(unsupported(&format!("fcntl {command}"))),
        }
    });
    give(result) as c_int
}

/// Variadic in C, as [`fcntl`].
unsafe extern "C" fn ioctl(data: Data, fd: c_int, request: c_ulong, argument: *mut c_int) -> c_int {
    let result = shim(data).with(|machine| {
        let endpoint = machine.endpoint(fd)?;
        match request {
            libc::FIONREAD => Ok(endpoint.connection.available()),
            libc::TIOCOUTQ => Ok(endpoint.connection.send_queue().0),
            _ => Err(unsupported(&format!("ioctl {request:#x}"))),
        }
    });
    let result = result.and_then(|bytes| {
        check(argument, 1)?;
        // SAFETY: both requests write one number.
        unsafe { *argument = bytes as c_int };
        Ok(0)
    });
    give(result) as c_int
}

extern "C" fn close(data: Data, fd: c_int) -> c_int {
    done(shim(data).with(|machine| machine.close(fd)))
}

extern "C" fn shutdown(data: Data, fd: c_int, how: c_int) -> c_int {
    done(shim(data).with(|machine| machine.shut(fd, how != libc::SHUT_WR, how != libc::SHUT_RD)))
}

unsafe extern "C" fn get_option(
    data: Data,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    let option = shim(data).with(|machine| machine.option(fd, level, name));
    let result = option.and_then(|bytes| {
        check(value, 1)?;
        check(len, 1)?;
        // SAFETY: packetdrill's own buffer and its length, of which no more is written.
        unsafe {
            let most = bytes.len().min(*len as usize);
            value
                .cast::<u8>()
                .copy_from_nonoverlapping(bytes.as_ptr(), most);
            *len = most as socklen_t;
        }
        Ok(())
    });
    done(result)
}

unsafe extern "C" fn set_option(
    data: Data,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    let read = || {
        check(value, 1)?;
        if len == 1 && level == libc::IPPROTO_IP {
            // SAFETY: packetdrill's own byte.
            return Ok(unsafe { value.cast::<u8>().read() }.into());
        }
        if (len as usize) < size_of::<c_int>() {
            return Err(libc::EINVAL);
        }
        // SAFETY: packetdrill's own buffer of at least as many bytes.
        Ok(unsafe { value.cast::<c_int>().read_unaligned() })
    };
    done(
        read().and_then(|value| {
            shim(data).with(|machine| machine.set_option(fd, level, name, value))
        }),
    )
}

/// When a wait of so many milliseconds is over.
fn until(data: Data, timeout: c_int) -> u64 {
    let now = shim(data).machine().now;
    u64::try_from(timeout).map_or(NEVER, |timeout| now + timeout * MILLISECOND)
}

unsafe extern "C" fn poll(
    data: Data,
    descriptors: *mut pollfd,
    count: nfds_t,
    timeout: c_int,
) -> c_int {
    // SAFETY: packetdrill's own array.
    let descriptors = unsafe { std::slice::from_raw_parts_mut(descriptors, count as usize) };
    let call = Call::Poll {
        wanted: descriptors.iter().map(|it| (it.fd, it.events)).collect(),
        until: until(data, timeout),
    };
    let answer = shim(data).perform(call, timeout != 0).map(|reply| {
        let Reply::Polled(events) = reply else {
            return 0;
        };
        for (descriptor, events) in descriptors.iter_mut().zip(&events) {
            descriptor.revents = *events;
        }
        events.iter().filter(|events| **events != 0).count() as i64
    });
    give(answer) as c_int
}

unsafe extern "C" fn netdev_send(data: Data, buffer: *const c_void, count: usize) -> c_int {
    // SAFETY: packetdrill's own packet.
    let packet = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), count) };
    shim(data).with(|machine| machine.take(packet));
    0
}

unsafe extern "C" fn netdev_receive(
    data: Data,
    buffer: *mut c_void,
    count: *mut usize,
    micros: *mut i64,
) -> c_int {
    let packet = shim(data).next_packet();
    // SAFETY: packetdrill's own buffer and the places for its length and time.
    unsafe {
        let bytes = packet.as_ref().map_or(&[0; 1][..], |it| &it.bytes);
        let most = bytes.len().min(*count);
        buffer
            .cast::<u8>()
            .copy_from_nonoverlapping(bytes.as_ptr(), most);
        *count = if packet.is_some() { most } else { 0 };
        *micros = packet.map_or(0, |it| it.at / 1000) as i64;
    }
    0
}

extern "C" fn usleep(data: Data, micros: c_uint) -> c_int {
    shim(data).sleep(micros.into());
    0
}

unsafe extern "C" fn gettimeofday(data: Data, time: *mut timeval, _zone: *mut c_void) -> c_int {
    let micros = shim(data).time();
    // SAFETY: packetdrill's own structure.
    unsafe {
        (*time).tv_sec = (micros / 1_000_000) as libc::time_t;
        (*time).tv_usec = (micros % 1_000_000) as libc::suseconds_t;
    }
    0
}

extern "C" fn epoll_create(data: Data, _size: c_int) -> c_int {
    shim(data).with(|machine| machine.open_epoll())
}

unsafe extern "C" fn epoll_ctl(
    data: Data,
    set: c_int,
    operation: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    let (mut events, mut about) = (0, 0);
    if !event.is_null() {
        // SAFETY: packetdrill's own structure.
        let event = unsafe { event.read_unaligned() };
        (events, about) = (event.events, event.u64);
    }
    done(shim(data).with(|machine| machine.epoll(set)?.control(operation, fd, events, about)))
}

unsafe extern "C" fn epoll_wait(
    data: Data,
    set: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    let call = Call::Wait {
        epoll: set,
        most: most.max(0) as usize,
        until: until(data, timeout),
    };
    let answer = shim(data).perform(call, timeout != 0).map(|reply| {
        let Reply::Events(ready) = reply else {
            return 0;
        };
        for (index, &(bits, about)) in ready.iter().enumerate() {
            let event = epoll_event {
                events: bits,
                u64: about,
            };
            // SAFETY: no more than the caller has room for.
            unsafe { events.add(index).write_unaligned(event) };
        }
        ready.len() as i64
    });
    give(answer) as c_int
}

extern "C" fn pipe(_data: Data, _descriptors: *mut c_int) -> c_int {
    give(Err(unsupported("pipe"))) as c_int
}

extern "C" fn splice(
    _data: Data,
    _from: c_int,
    _from_offset: *mut i64,
    _to: c_int,
    _to_offset: *mut i64,
    _len: usize,
    _flags: c_uint,
) -> c_int {
    give(Err(unsupported("splice"))) as c_int
}
