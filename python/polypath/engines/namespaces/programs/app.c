/* app: one end of an application's connection, or the ends of several at one host that know of each other.
 *
 * Options, or ends= a file with a line of them for each end: side=client|server transport=tcp|mptcp source= destination= port= log=
 * sample= stream= work= (and the work's own: session.c, rule.c, player.c, http.c, page.c), congestion=, nodelay=, cork=, keepidle=,
 * keepintvl=, keepcnt= (seconds), user_timeout= (ms), request_head=, response_head= (hexadecimal: what each request and response begins
 * with), families=2: a socket for subflows of IPv4 and of IPv6. The log's lines: C and S (sample.c), R request, O established, P the
 * first and the last byte received by now, W a wrong byte, X how it ended, V a segment (player.c), B an object (page.c).
 */

#define _GNU_SOURCE
#include "sample.h"
#include "session.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
#define CHUNK (1 << 16)

/* One end of a connection. */
struct end {
	int count;
	char **argument;
	struct session session;
	FILE *log;
	enum { UNBORN, CONNECTING, OPEN, DONE } state;
	int descriptor;
	/* the kernel takes no more for now; this direction is closed */
	bool full, shut;
	/* both directions are closed, and what was written is not yet acknowledged: an epoll of this socket, which tells of that; -1 before */
	int leftover;
	struct sockaddr_storage remote;
	int64_t next_sample, first_byte, last_byte;
	/* received bytes that the log has told of */
	uint64_t told;
};

static struct end *end;
static size_t ends;
/* mptcp: all ends are of that; failed: one of a client is */
static bool mptcp, failed;
static int64_t interval;

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

static void tell_received(struct end *of)
{
	if (of->session.received == of->told)
		return;
	fprintf(of->log, "P %lld %lld %llu\n", (long long)of->first_byte, (long long)of->last_byte,
		(unsigned long long)of->session.received);
	of->told = of->session.received;
}

static void take_sample(struct end *of, int64_t now)
{
	sample_socket(of->log, of->descriptor, mptcp, now, of->session.received, &of->remote);
	tell_received(of);
}

static void sample(struct end *of, int64_t now)
{
	if (now < of->next_sample)
		return;
	take_sample(of, now);
	of->next_sample = (now / interval + 1) * interval;
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

static void finish(struct end *of, const char *state)
{
	if (of->leftover >= 0)
		close(of->leftover);
	if (of->descriptor >= 0)
		close(of->descriptor);
	session_end(&of->session);
	failed |= !of->session.server && strcmp(state, "finished") && strcmp(state, "open") && strcmp(state, "aborted");
	tell_received(of);
	fprintf(of->log, "X %lld %s\n", (long long)now_ns(), state);
	of->state = DONE;
}

static void close_with(struct end *of, const char *state, int64_t now)
{
	take_sample(of, now);
	finish(of, state);
}

static void connect_client(struct end *of)
{
	int count = of->count;
	char **argument = of->argument;
	struct sockaddr_storage local, remote;
	socklen_t length = read_address(need_option(count, argument, "destination"),
					number_option(count, argument, "port", 0), count, argument, &remote);
	const char *source = text_option(count, argument, "source", NULL);

	of->descriptor = open_socket(remote.ss_family, count, argument);
	of->remote = remote;
	if (source &&
	    bind(of->descriptor, (struct sockaddr *)&local, read_address(source, 0, count, argument, &local))) {
		if (errno != EADDRNOTAVAIL)
			die("bind %s: %s", source, strerror(errno));
		finish(of, "unreachable");
		return;
	}
	if (connect(of->descriptor, (struct sockaddr *)&remote, length) && errno != EINPROGRESS)
		finish(of, reason(errno));
	else
		of->state = CONNECTING;
}

/* False: the run was over before. */
static bool accept_server(struct end *of)
{
	int count = of->count;
	char **argument = of->argument;
	struct sockaddr_storage local;
	socklen_t length = read_address(need_option(count, argument, "destination"),
					number_option(count, argument, "port", 0), count, argument, &local);
	int listener = open_socket(local.ss_family, count, argument);

	/* any address: an MP_JOIN may come to another than the first */
	parse_address(local.ss_family == AF_INET ? "0.0.0.0" : "::", number_option(count, argument, "port", 0), &local);
	if (bind(listener, (struct sockaddr *)&local, length) || listen(listener, 16))
		die("listen: %s", strerror(errno));
	length = sizeof(of->remote);
	while ((of->descriptor = accept4(listener, (struct sockaddr *)&of->remote, &length, SOCK_NONBLOCK | SOCK_CLOEXEC)) <
	       0) {
		if (stopped)
			return false;
		wait_for(listener, POLLIN, NEVER);
	}
	return true;
}

/* Like a writer that blocks: what was not taken whole waits until the kernel says that there is room. Returns the connection's error. */
static int write_pending(struct end *of)
{
	static uint8_t bytes[CHUNK];
	struct session *session = &of->session;

	while (session->pending && !of->full) {
		size_t length = session->pending < CHUNK ? session->pending : CHUNK;
		ssize_t taken;

		content_fill(&session->own, session->sent, bytes, length);
		taken = write(of->descriptor, bytes, length);
		if (taken < 0) {
			of->full = errno == EAGAIN;
			return errno == EAGAIN || errno == EINTR ? 0 : errno;
		}
		of->full = (size_t)taken < length;
		session->sent += taken;
		session->pending -= taken;
	}
	return 0;
}

static int read_arrived(struct end *of, int64_t now)
{
	static uint8_t bytes[CHUNK];
	struct session *session = &of->session;
	ssize_t length;

	while ((length = read(of->descriptor, bytes, CHUNK)) > 0) {
		bool right = session->take ? session->take(session, bytes, length, now) :
					     content_check(&session->peers, session->received, bytes, length);

		if (!right)
			fprintf(of->log, "W %llu\n", (unsigned long long)session->received);
		if (of->first_byte < 0)
			of->first_byte = now;
		of->last_byte = now;
		session->received += length;
		session->arrived += length;
	}
	if (!length)
		session->at_end = true;
	return length < 0 && errno != EAGAIN && errno != EINTR ? errno : 0;
}

static void established(struct end *of, int64_t now)
{
	of->state = OPEN;
	fprintf(of->log, "O %lld %s\n", (long long)now, transport_name(of->descriptor, mptcp));
	of->next_sample = now;
}

/* Whether the peer has acknowledged all that was written, up to the FIN, which counts as a byte. */
static bool drained(const struct end *of)
{
	int left = 0;

	return ioctl(of->descriptor, SIOCOUTQ, &left) || left <= 1;
}

/* Both directions are closed: the connection ends once what is in the send buffer has arrived. poll would tell of the close again and
 * again; an epoll that is edge-triggered tells of each change.
 */
static void await_drain(struct end *of, int64_t now)
{
	struct epoll_event event = { .events = EPOLLET };
	int error = 0;
	socklen_t length = sizeof(error);

	if (of->leftover < 0 && !drained(of)) {
		of->leftover = epoll_create1(EPOLL_CLOEXEC);
		if (of->leftover < 0 || epoll_ctl(of->leftover, EPOLL_CTL_ADD, of->descriptor, &event))
			die("epoll: %s", strerror(errno));
	}
	if (of->leftover >= 0)
		epoll_wait(of->leftover, &event, 1, 0);
	getsockopt(of->descriptor, SOL_SOCKET, SO_ERROR, &error, &length);
	if (!error && !drained(of)) {
		sample(of, now);
		return;
	}
	close_with(of, error ? reason(error) : "finished", now);
}

/* `called`: the session is to run whatever has happened. */
static void serve(struct end *of, bool called, int64_t now)
{
	struct session *session = &of->session;
	bool was_at_end = session->at_end;
	int error = was_at_end ? 0 : read_arrived(of, now);

	if (!error && (called || session->arrived || session->at_end != was_at_end || now >= session->wake)) {
		session->run(session, now);
		session->arrived = 0;
	}
	if (!error)
		error = write_pending(of);
	if (error) {
		close_with(of, reason(error), now);
		return;
	}
	if (session->aborted) {
		struct linger at_once = { .l_onoff = 1 };

		setsockopt(of->descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
		close_with(of, "aborted", now);
		return;
	}
	if (session->closing && !session->pending && !of->shut) {
		shutdown(of->descriptor, SHUT_WR);
		of->shut = true;
	}
	if (of->shut && session->at_end)
		await_drain(of, now);
	else
		sample(of, now);
}

static void step(struct end *of, int revents, int64_t now)
{
	bool was_open = of->state == OPEN;

	if (of->state == UNBORN && now >= of->session.start)
		connect_client(of);
	if (of->state == CONNECTING && revents) {
		int error = 0;
		socklen_t length = sizeof(error);

		getsockopt(of->descriptor, SOL_SOCKET, SO_ERROR, &error, &length);
		if (error)
			/* no answer to the SYN is what the simulator calls so */
			close_with(of, error == ETIMEDOUT ? "unreachable" : reason(error), now);
		else
			established(of, now);
	}
	if (revents & (POLLOUT | POLLERR | POLLHUP))
		of->full = false;
	if (of->state == OPEN)
		serve(of, !was_open, now);
}

/* What an end waits for; returns until when. */
static int64_t awaited(const struct end *of, struct pollfd *polled)
{
	const struct session *session = &of->session;

	*polled = (struct pollfd){ .fd = -1 };
	switch (of->state) {
	case UNBORN:
		return session->start;
	case CONNECTING:
		polled->events = POLLOUT;
		polled->fd = of->descriptor;
		return NEVER;
	case OPEN:
		polled->events = (session->at_end ? 0 : POLLIN) | (session->pending ? POLLOUT : 0);
		if (polled->events)
			polled->fd = of->descriptor;
		if (of->leftover >= 0)
			*polled = (struct pollfd){ .fd = of->leftover, .events = POLLIN };
		return session->wake < of->next_sample ? session->wake : of->next_sample;
	default:
		return NEVER;
	}
}

/* A step of every end, each followed by those that it has news for, as the simulator has them. True: some end is not done. */
static bool step_all(struct pollfd *polled)
{
	int64_t now = now_ns();
	bool left = false;

	for (size_t i = 0; i < ends; i++) {
		step(&end[i], polled[i].revents, now);
		for (size_t other = 0; other < ends; other++) {
			if (!end[other].session.roused)
				continue;
			end[other].session.roused = false;
			if (end[other].state == OPEN)
				serve(&end[other], true, now);
		}
	}
	for (size_t i = 0; i < ends; i++)
		left |= end[i].state != DONE;
	return left;
}

static void configure(struct end *of)
{
	of->descriptor = of->leftover = -1;
	of->first_byte = of->last_byte = -1;
	of->log = open_lines(need_option(of->count, of->argument, "log"));
	of->session.server = !strcmp(need_option(of->count, of->argument, "side"), "server");
	of->session.log = of->log;
	session_configure(&of->session, of->count, of->argument);
}

/* Each line of the file has the options of an end. */
static void read_ends(const char *name)
{
	FILE *file = fopen(name, "re");
	char *line = NULL;
	size_t room = 0;

	if (!file)
		die("%s: %s", name, strerror(errno));
	while (getline(&line, &room, file) > 0) {
		struct end *of;

		end = realloc(end, (ends + 1) * sizeof(*end));
		if (!end)
			die("no memory");
		of = &end[ends++];
		memset(of, 0, sizeof(*of));
		of->argument = allocate((strlen(line) / 2 + 1) * sizeof(char *));
		for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n"))
			of->argument[of->count++] = word;
		line = NULL;
		room = 0;
	}
	fclose(file);
}

int app_main(int count, char **argument)
{
	const char *several = text_option(count, argument, "ends", NULL);
	struct pollfd *polled;

	stop_on_signal();
	if (several) {
		read_ends(several);
	} else {
		end = allocate(sizeof(*end));
		ends = 1;
		end->count = count;
		end->argument = argument;
	}
	mptcp = !strcmp(need_option(end->count, end->argument, "transport"), "mptcp");
	interval = number_option(end->count, end->argument, "sample", SECOND / 10);
	for (size_t i = 0; i < ends; i++)
		configure(&end[i]);

	polled = allocate(ends * sizeof(*polled));
	if (end->session.server && accept_server(end)) {
		established(end, now_ns());
		serve(end, true, now_ns());
	}
	while (!stopped && step_all(polled)) {
		int64_t until = NEVER;

		for (size_t i = 0; i < ends; i++) {
			int64_t own = awaited(&end[i], &polled[i]);

			until = own < until ? own : until;
		}
		wait_for_any(polled, ends, until);
	}
	for (size_t i = 0; i < ends; i++) {
		if (end[i].state == DONE)
			continue;
		if (end[i].state == OPEN || end[i].state == CONNECTING)
			take_sample(&end[i], now_ns());
		finish(&end[i], "open");
	}
	return failed ? FAILED : 0;
}
