/* The state of a connection and its subflows, from TCP_INFO and MPTCP_FULL_INFO (Linux, include/uapi/linux/mptcp.h). */

#include "sample.h"

#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>

#ifndef SOL_MPTCP
#define SOL_MPTCP 284
#endif
#define FULL_INFO 4
#define FALLBACK 1u
#define MAX_SUBFLOWS 80
/* The states time-wait, close-wait, last-ack and closing: the kernel has counted the peer's FIN as a byte. */
#define FIN_RECEIVED (1u << 6 | 1u << 8 | 1u << 9 | 1u << 11)

/* struct tcp_info up to tcpi_rcv_wnd, which the host's header may not have */
struct subflow_tcp {
	struct tcp_info base;
	uint8_t more[256];
};

/* Offsets in struct tcp_info are stable: fields are only ever appended. */
#define SND_WND_END offsetof(struct tcp_info, tcpi_snd_wnd) + sizeof(uint32_t)

struct addresses {
	struct sockaddr_storage local, remote;
};

struct subflow_info {
	uint32_t id;
	struct addresses address;
};

struct connection_info {
	uint8_t counts[8];
	uint32_t flags, token;
	uint64_t write_seq, snd_una, rcv_nxt;
	uint8_t more[4];
	uint32_t retransmits;
	uint64_t bytes_retrans, bytes_sent, bytes_received, bytes_acked;
	uint8_t rest[64];
};

struct full_info {
	uint32_t tcp_kernel, tcp_user, subflow_kernel, subflow_user, subflows, room;
	uint64_t subflow_info, tcp_info;
	struct connection_info connection;
};

static struct {
	struct full_info full;
	struct subflow_info subflow[MAX_SUBFLOWS];
	struct subflow_tcp tcp[MAX_SUBFLOWS];
} state;

static uint32_t receive_window(const struct subflow_tcp *tcp)
{
	uint32_t window;

	memcpy(&window, (const uint8_t *)tcp + (SND_WND_END), sizeof(window));
	return window;
}

/* Linux, tcp_packets_in_flight; a socket that ended in an error has no packets, but still the other counts (tcp_write_queue_purge). */
static uint32_t in_flight(const struct tcp_info *info)
{
	if (!info->tcpi_unacked)
		return 0;
	return info->tcpi_unacked - info->tcpi_sacked - info->tcpi_lost + info->tcpi_retrans;
}

static void print_subflow(FILE *log, int64_t now, uint32_t id, const struct addresses *address,
			  const struct subflow_tcp *tcp)
{
	const struct tcp_info *info = &tcp->base;

	fprintf(log, "S %lld %u ", (long long)now, id);
	print_address(log, &address->local);
	fputc(' ', log);
	print_address(log, &address->remote);
	fprintf(log, " %u %u %u %u %u %u %llu %llu %llu %llu %u", info->tcpi_state, info->tcpi_snd_cwnd,
		info->tcpi_snd_ssthresh, info->tcpi_rtt, info->tcpi_rttvar, in_flight(info),
		(unsigned long long)info->tcpi_bytes_sent, (unsigned long long)info->tcpi_bytes_acked,
		(unsigned long long)info->tcpi_bytes_received, (unsigned long long)info->tcpi_bytes_retrans,
		receive_window(tcp));
	fprintf(log, " %llu %llu %llu %u %u %u %u\n", (unsigned long long)info->tcpi_busy_time,
		(unsigned long long)info->tcpi_rwnd_limited, (unsigned long long)info->tcpi_sndbuf_limited,
		info->tcpi_segs_out, info->tcpi_data_segs_out, info->tcpi_dsack_dups, info->tcpi_delivered_ce);
}

/* The first subflow stays in the kernel's list when it is closed, without its ports; both families have them in one place. */
static bool connected(const struct addresses *address)
{
	return ((const struct sockaddr_in *)&address->local)->sin_port &&
	       ((const struct sockaddr_in *)&address->remote)->sin_port;
}

static int read_full(int descriptor)
{
	socklen_t length = sizeof(state.full);

	memset(&state, 0, sizeof(state));
	state.full.tcp_user = sizeof(struct subflow_tcp);
	state.full.subflow_user = sizeof(struct subflow_info);
	state.full.room = MAX_SUBFLOWS;
	state.full.subflow_info = (uintptr_t)state.subflow;
	state.full.tcp_info = (uintptr_t)state.tcp;
	return getsockopt(descriptor, SOL_MPTCP, FULL_INFO, &state.full, &length);
}

/* `received`: by the application. A closed socket has counted the peer's FIN or not, which its state does not tell. */
static void print_single(FILE *log, int descriptor, int64_t now, uint64_t received,
			 const struct sockaddr_storage *remote)
{
	struct subflow_tcp tcp = { 0 };
	struct addresses address = { 0 };
	socklen_t length = sizeof(tcp);

	if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &tcp, &length))
		return;
	length = sizeof(address.local);
	getsockname(descriptor, (struct sockaddr *)&address.local, &length);
	length = sizeof(address.remote);
	if (getpeername(descriptor, (struct sockaddr *)&address.remote, &length)) {
		int waits = 0;

		if (!remote)
			return;
		address.remote = *remote;
		ioctl(descriptor, SIOCINQ, &waits);
		if (tcp.base.tcpi_bytes_received > received + waits)
			tcp.base.tcpi_bytes_received = received + waits;
	}
	print_subflow(log, now, 0, &address, &tcp);
}

static int integer_option(int descriptor, int option)
{
	int value = 0;
	socklen_t length = sizeof(value);

	getsockopt(descriptor, SOL_SOCKET, option, &value, &length);
	return value;
}

void sample_socket(FILE *log, int descriptor, bool mptcp, int64_t now, uint64_t received,
		   const struct sockaddr_storage *remote)
{
	bool full = mptcp && !read_full(descriptor) && !(state.full.connection.flags & FALLBACK);
	int queued = 0, unsent = 0;

	ioctl(descriptor, SIOCOUTQ, &queued);
	ioctl(descriptor, SIOCOUTQNSD, &unsent);
	fprintf(log, "C %lld %llu %d %d %d %llu %d\n", (long long)now, (unsigned long long)received, queued,
		integer_option(descriptor, SO_SNDBUF), integer_option(descriptor, SO_RCVBUF),
		(unsigned long long)(full ? state.full.connection.bytes_retrans : 0), unsent);
	if (!full) {
		print_single(log, descriptor, now, received, remote);
		return;
	}
	/* the kernel lays its own, smaller structures one after the other */
	for (uint32_t i = 0; i < state.full.subflows && i < MAX_SUBFLOWS; i++) {
		const struct subflow_info *subflow = (void *)((uint8_t *)state.subflow + i * state.full.subflow_user);

		if (connected(&subflow->address))
			print_subflow(log, now, subflow->id, &subflow->address,
				      (void *)((uint8_t *)state.tcp + i * state.full.tcp_user));
	}
}

uint64_t received_bytes(int descriptor, bool mptcp)
{
	struct subflow_tcp tcp = { 0 };
	socklen_t length = sizeof(tcp);
	uint64_t total;
	int waits = 0;

	if (mptcp && !read_full(descriptor) && !(state.full.connection.flags & FALLBACK))
		total = state.full.connection.bytes_received;
	else if (!getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &tcp, &length))
		total = tcp.base.tcpi_bytes_received - (FIN_RECEIVED >> tcp.base.tcpi_state & 1);
	else
		return 0;
	ioctl(descriptor, SIOCINQ, &waits);
	return total > (uint64_t)waits ? total - waits : 0;
}

const char *transport_name(int descriptor, bool mptcp)
{
	if (!mptcp)
		return "tcp";
	if (read_full(descriptor) || state.full.connection.flags & FALLBACK)
		return "fallback";
	return "mptcp";
}
