//! Socket options.

use polypath_transport::tcp::Info;
use polypath_transport::{Config, Keepalive, MICROSECOND, MILLISECOND, SECOND};

use crate::descriptor::Options;
use crate::machine::Machine;
use crate::{Errno, unsupported};

/// Keep-alive's defaults (tcp_keepalive_time, tcp_keepalive_intvl, tcp_keepalive_probes).
const KEEPALIVE: Keepalive = Keepalive {
    time: 7200 * SECOND,
    interval: 75 * SECOND,
    probes: 9,
};
/// The least send buffer that SO_SNDBUF makes (SOCK_MIN_SNDBUF), and receive buffer (SOCK_MIN_RCVBUF).
const LEAST_BUFFER: u64 = 4608;
const LEAST_RECEIVE_BUFFER: u64 = 2304;
/// Neither of them in the C library's names (linux/tcp.h, asm-generic/socket.h).
const TCP_NOTSENT_LOWAT: i32 = 25;
const SO_MEMINFO: i32 = 55;
const TCP_CC_INFO: i32 = 26;
pub(crate) const TCP_INQ: i32 = 36;

impl Options {
    /// What they change of a connection's settings.
    pub fn apply(&self, config: &mut Config) {
        config.nagle = !self.nodelay;
        config.cork = self.cork;
        config.user_timeout_ns = u64::from(self.user_timeout) * MILLISECOND;
        config.keepalive = self.keepalive.then_some(KEEPALIVE);
        if let Some(bytes) = self.send_buffer {
            config.send_buffer.default = bytes;
            config.send_buffer.minimum = bytes;
            config.send_buffer.maximum = bytes;
        }
    }
}

impl Machine {
    pub fn set_option(&mut self, fd: i32, level: i32, name: i32, value: i32) -> Result<(), Errno> {
        let socket = self.socket(fd)?;
        let (options_multipath, options) = (socket.multipath, &mut socket.options);
        let on = value != 0;
        match (level, name) {
            (libc::SOL_SOCKET, libc::SO_REUSEADDR | libc::SO_REUSEPORT) => options.reuse = on,
            (libc::SOL_SOCKET, libc::SO_KEEPALIVE) => options.keepalive = on,
            (libc::SOL_SOCKET, libc::SO_SNDBUF) => {
                let bytes = (2 * u64::from(value.unsigned_abs())).max(LEAST_BUFFER);
                options.send_buffer = Some(bytes);
                if let Ok(endpoint) = self.endpoint(fd) {
                    endpoint.connection.fix_send_buffer(bytes);
                }
                return Ok(());
            }
            (libc::SOL_SOCKET, libc::SO_RCVBUF) => {
                let bytes = (2 * u64::from(value.unsigned_abs())).max(LEAST_RECEIVE_BUFFER);
                options.receive_buffer = Some(bytes);
                return Ok(());
            }
            (libc::SOL_SOCKET, libc::SO_MARK)
            | (libc::SOL_IP, libc::IP_FREEBIND | libc::IP_TOS) => return Ok(()),
            (libc::SOL_IP, libc::IP_MTU_DISCOVER)
                if [libc::IP_PMTUDISC_DONT, libc::IP_PMTUDISC_WANT].contains(&value) =>
            {
                options.fixed_mtu = value == libc::IP_PMTUDISC_DONT;
                return Ok(());
            }
            (libc::IPPROTO_TCP, libc::TCP_NODELAY) => options.nodelay = on,
            (libc::IPPROTO_TCP, libc::TCP_CORK) => options.cork = on,
            (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT) => {
                options.user_timeout = value.unsigned_abs()
            }
            (libc::IPPROTO_TCP, _) if name == TCP_NOTSENT_LOWAT => {
                if options_multipath && value >= 0 {
                    return Err(unsupported("a limit of what is unsent of Multipath TCP"));
                }
                options.unsent_limit = Some(value as u32);
                let limit = self.unsent_limit(fd)?;
                if let Ok(endpoint) = self.endpoint(fd) {
                    endpoint.connection.limit_unsent(limit);
                }
                return Ok(());
            }
            (libc::IPPROTO_TCP, TCP_INQ) => {
                options.tells_rest = on;
                return Ok(());
            }
            _ => {
                return Err(unsupported(&format!(
                    "setsockopt of level {level} and name {name}"
                )));
            }
        }
        // Linux `__tcp_sock_set_nodelay`, `__tcp_sock_set_cork`.
        let flushes = matches!(
            (level, name, on),
            (libc::IPPROTO_TCP, libc::TCP_NODELAY, true)
                | (libc::IPPROTO_TCP, libc::TCP_CORK, false)
        );
        let (options, now) = (*options, self.now);
        if let Ok(endpoint) = self.endpoint(fd) {
            endpoint
                .connection
                .configure(|config| options.apply(config));
            if flushes {
                endpoint.connection.flush(now);
            }
        }
        self.settle();
        Ok(())
    }

    /// What may be unsent at most: the socket's limit, or else the host's (`tcp_notsent_lowat`).
    pub fn unsent_limit(&mut self, fd: i32) -> Result<u64, Errno> {
        let own = self.socket(fd)?.options.unsent_limit;
        Ok(match own.filter(|limit| *limit > 0) {
            Some(limit) => limit.into(),
            None => self.host.unsent_limit(),
        })
    }

    /// For who asked for it, the bytes that are left to read; one where there is none but the end (`tcp_inq_hint`).
    pub fn left_to_read(&mut self, fd: i32) -> Option<i32> {
        if !self.socket(fd).ok()?.options.tells_rest {
            return None;
        }
        let connection = &self.endpoint(fd).ok()?.connection;
        let rest = connection.available().max(connection.at_end().into());
        i32::try_from(rest).ok()
    }

    /// An option's value as bytes.
    pub fn option(&mut self, fd: i32, level: i32, name: i32) -> Result<Vec<u8>, Errno> {
        let options = self.socket(fd)?.options;
        let number = |value: i64| Ok((value as i32).to_ne_bytes().to_vec());
        match (level, name) {
            (libc::SOL_SOCKET, libc::SO_ERROR) => {
                let error = self.endpoint(fd).ok().and_then(|it| it.error.take());
                number(error.unwrap_or(0).into())
            }
            (libc::SOL_SOCKET, libc::SO_SNDBUF) => {
                let connection = self.endpoint(fd).map(|it| it.connection.buffers().0);
                let bytes = connection.ok().or(options.send_buffer);
                number(bytes.unwrap_or_else(|| self.host.config(false).send_buffer.default) as i64)
            }
            (libc::SOL_SOCKET, SO_MEMINFO) => Ok(vec![0; 36]),
            (libc::IPPROTO_TCP, libc::TCP_NODELAY) => number(options.nodelay.into()),
            (libc::IPPROTO_TCP, libc::TCP_CORK) => number(options.cork.into()),
            (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT) => number(options.user_timeout.into()),
            (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => {
                let mss = self
                    .endpoint(fd)
                    .ok()
                    .map(|it| it.connection.paths()[0].mss);
                number(mss.unwrap_or(536).into())
            }
            (libc::IPPROTO_TCP, libc::TCP_INFO) => self.info(fd),
            (libc::IPPROTO_TCP, TCP_CC_INFO) => Ok(vec![0; 20]),
            (libc::IPPROTO_TCP, _) if name == TCP_NOTSENT_LOWAT => {
                number(options.unsent_limit.unwrap_or(0).into())
            }
            _ => Err(unsupported(&format!(
                "getsockopt of level {level} and name {name}"
            ))),
        }
    }

    /// `struct tcp_info` up to `tcpi_reord_seen` (linux/tcp.h); what is not kept is 0.
    fn info(&mut self, fd: i32) -> Result<Vec<u8>, Errno> {
        let now = self.now;
        let endpoint = self.endpoint(fd)?;
        endpoint.note_limit(now);
        let connection = &endpoint.connection;
        let (socket, path) = (connection.subflows()[0].socket(), &connection.paths()[0]);
        let info: Info = socket.info(connection.config());
        // Counted from the handshake on before there is data (`lrcvtime`).
        let begun = connection.subflows()[0].established_at.unwrap_or(now);
        let mut words = [0u32; 56];
        let micros = |nanos: u64| (nanos / MICROSECOND) as u32;
        words[0] = u32::from_ne_bytes([
            1,
            info.state as u8,
            info.retransmits as u8,
            info.probes as u8,
        ]);
        words[1] = u32::from_ne_bytes([info.backoff as u8, 0, 0, 0]);
        words[2] = micros(info.rto);
        words[4] = info.send_mss;
        words[5] = info.receive_mss;
        words[6] = info.unacked;
        words[7] = info.sacked;
        words[8] = info.lost;
        words[9] = info.retransmitting;
        words[13] = (now.saturating_sub(info.last_received.max(begun)) / MILLISECOND) as u32;
        words[17] = micros(path.srtt);
        words[18] = micros(path.rttvar);
        words[19] = path.ssthresh;
        words[20] = path.cwnd;
        words[21] = info.announced_mss;
        words[22] = info.reordering;
        // `tcpi_busy_time`, `tcpi_rwnd_limited`, `tcpi_sndbuf_limited`, of eight bytes each.
        for (index, limited) in endpoint.limited.iter().enumerate() {
            words[42 + 2 * index] = micros(*limited);
        }
        Ok(words.iter().flat_map(|word| word.to_ne_bytes()).collect())
    }
}
