/* app: one end of an application's connection.
 *
 * Options: side=client|server transport=tcp|mptcp source= destination= port= log= sample= stream= work= (and the work's
 * own, see session.c), congestion=, nodelay=, cork=, keepidle=, keepintvl=, keepcnt= (seconds), user_timeout= (ms),
 * request_head=, response_head= (hexadecimal: what each request and response begins with), families=2: a socket for
 * subflows of IPv4 and of IPv6. The log's lines: C and S (sample.c), R request, O established, P the first and the last
 * byte received, W a wrong byte, X how it ended.
 */

#define _GNU_SOURCE
#include "sample.h"
#include "session.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#define CHUNK (1 << 16)

static struct session session;
static FILE *app_log;
static bool mptcp;
static int64_t interval, next_sample, first_byte = -1, last_byte = -1;
static struct content own, peers;

static const struct {
	const char *name;
	int option;
} numbers[] = {
	{ "keepidle", TCP_KEEPIDLE },
	{ "keepintvl", TCP_KEEPINTVL },
	{ "keepcnt", TCP_KEEPCNT },
	{ "user_timeout", TCP_USER_TIMEOUT },
};

static void set_options(int descriptor, int count, char **argument)
{
	const char *congestion = text_option(count, argument, "congestion", NULL);
	int one = 1;

	setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (congestion && setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, congestion, strlen(congestion)))
		die("congestion control %s: %s", congestion, strerror(errno));
	if (number_option(count, argument, "nodelay", 0) &&
	    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		die("TCP_NODELAY: %s", strerror(errno));
	if (number_option(count, argument, "cork", 0) &&
	    setsockopt(descriptor, IPPROTO_TCP, TCP_CORK, &one, sizeof(one)))
		die("TCP_CORK: %s", strerror(errno));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		int value = number_option(count, argument, numbers[i].name, 0);

		if (value && setsockopt(descriptor, IPPROTO_TCP, numbers[i].option, &value, sizeof(value)))
			die("%s: %s", numbers[i].name, strerror(errno));
	}
	if (number_option(count, argument, "keepidle", 0) &&
	    setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)))
		die("SO_KEEPALIVE: %s", strerror(errno));
}

/* A socket of IPv4 has subflows of IPv4 only (Linux net/mptcp/pm.c mptcp_pm_addr_families_match); one of IPv6 that names
 * its first addresses as mapped ones has both.
 */
static socklen_t read_address(const char *text, uint16_t port, int count, char **argument,
			      struct sockaddr_storage *address)
{
	socklen_t length = parse_address(text, port, address);

	return number_option(count, argument, "families", 1) == 2 ? map_address(address) : length;
}

static int open_socket(int family, int count, char **argument)
{
	int descriptor = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, mptcp ? IPPROTO_MPTCP : IPPROTO_TCP);

	if (descriptor < 0)
		die("socket: %s", strerror(errno));
	set_options(descriptor, count, argument);
	return descriptor;
}

static void sample(int descriptor, int64_t now)
{
	if (now < next_sample)
		return;
	sample_socket(app_log, descriptor, mptcp, now, session.received);
	next_sample = (now / interval + 1) * interval;
}

static const char *reason(int error)
{
	switch (error) {
	case ETIMEDOUT:
		return "timed-out";
	case EHOSTUNREACH:
	case ENETUNREACH:
		return "unreachable";
	default:
		return "reset";
	}
}

__attribute__((noreturn)) static void ended(const char *state)
{
	fprintf(app_log, "P %lld %lld %llu\nX %lld %s\n", (long long)first_byte, (long long)last_byte,
		(unsigned long long)session.received, (long long)now_ns(), state);
	exit(0);
}

static int connect_client(int count, char **argument)
{
	struct sockaddr_storage local, remote;
	socklen_t length = read_address(need_option(count, argument, "destination"),
					number_option(count, argument, "port", 0), count, argument, &remote);
	int descriptor = open_socket(remote.ss_family, count, argument), error = 0;
	const char *source = text_option(count, argument, "source", NULL);

	if (source && bind(descriptor, (struct sockaddr *)&local, read_address(source, 0, count, argument, &local)))
		die("bind %s: %s", source, strerror(errno));
	if (connect(descriptor, (struct sockaddr *)&remote, length) && errno != EINPROGRESS)
		ended(reason(errno));
	while (!stopped && !wait_for(descriptor, POLLOUT, NEVER))
		;
	if (stopped)
		ended("open");
	length = sizeof(error);
	getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length);
	if (error)
		ended(reason(error));
	return descriptor;
}

static int accept_server(int count, char **argument)
{
	struct sockaddr_storage local;
	socklen_t length = read_address(need_option(count, argument, "destination"),
					number_option(count, argument, "port", 0), count, argument, &local);
	int listener = open_socket(local.ss_family, count, argument), descriptor;

	/* any address: an MP_JOIN may come to another than the first */
	parse_address(local.ss_family == AF_INET ? "0.0.0.0" : "::", number_option(count, argument, "port", 0), &local);
	if (bind(listener, (struct sockaddr *)&local, length) || listen(listener, 16))
		die("listen: %s", strerror(errno));
	while ((descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) < 0) {
		if (stopped)
			ended("open");
		wait_for(listener, POLLIN, NEVER);
	}
	return descriptor;
}

static bool full;

/* Like a writer that blocks: what was not taken whole waits until the kernel says that there is room. */
static void write_pending(int descriptor)
{
	static uint8_t bytes[CHUNK];

	while (session.pending && !full) {
		size_t length = session.pending < CHUNK ? session.pending : CHUNK;
		ssize_t taken;

		content_fill(&own, session.sent, bytes, length);
		taken = write(descriptor, bytes, length);
		if (taken < 0) {
			full = errno == EAGAIN;
			if (errno == EAGAIN || errno == EINTR)
				return;
			session.pending = 0;
			return;
		}
		full = (size_t)taken < length;
		session.sent += taken;
		session.pending -= taken;
	}
}

static int read_arrived(int descriptor, int64_t now)
{
	static uint8_t bytes[CHUNK];
	ssize_t length;

	session.arrived = 0;
	while ((length = read(descriptor, bytes, CHUNK)) > 0) {
		if (!content_check(&peers, session.received, bytes, length))
			fprintf(app_log, "W %llu\n", (unsigned long long)session.received);
		if (first_byte < 0)
			first_byte = now;
		last_byte = now;
		session.received += length;
		session.arrived += length;
	}
	if (!length)
		session.at_end = true;
	return length < 0 && errno != EAGAIN && errno != EINTR ? errno : 0;
}

static void serve(int descriptor)
{
	bool shut = false;

	while (!stopped) {
		int64_t now = now_ns();
		int error = session.at_end ? 0 : read_arrived(descriptor, now);
		int events = session.at_end ? 0 : POLLIN;

		if (error)
			ended(reason(error));
		session.run(&session, now);
		session.arrived = 0;
		write_pending(descriptor);
		if (session.closing && !session.pending && !shut) {
			shutdown(descriptor, SHUT_WR);
			shut = true;
		}
		if (shut && session.at_end) {
			sample_socket(app_log, descriptor, mptcp, now, session.received);
			close(descriptor);
			ended("finished");
		}
		sample(descriptor, now);
		if (session.pending)
			events |= POLLOUT;
		if (wait_for(events ? descriptor : -1, events, session.wake < next_sample ? session.wake : next_sample) &
		    (POLLOUT | POLLERR | POLLHUP))
			full = false;
	}
}

int app_main(int count, char **argument)
{
	int descriptor;
	uint64_t stream = number_option(count, argument, "stream", 0);

	stop_on_signal();
	mptcp = !strcmp(need_option(count, argument, "transport"), "mptcp");
	session.server = !strcmp(need_option(count, argument, "side"), "server");
	app_log = open_lines(need_option(count, argument, "log"));
	interval = number_option(count, argument, "sample", SECOND / 10);
	session.log = app_log;
	session_configure(&session, count, argument);
	content_set(session.server ? &peers : &own, 2 * stream, text_option(count, argument, "request_head", ""),
		    session.request);
	content_set(session.server ? &own : &peers, 2 * stream + 1, text_option(count, argument, "response_head", ""),
		    session.response);

	descriptor = session.server ? accept_server(count, argument) : connect_client(count, argument);
	fprintf(app_log, "O %lld %s\n", (long long)now_ns(), transport_name(descriptor, mptcp));
	next_sample = now_ns();
	serve(descriptor);
	sample_socket(app_log, descriptor, mptcp, now_ns(), session.received);
	ended("open");
}
