/* datagrams: one end of a UDP application.
 *
 * Options: side= source= destination= port= log= sample= rate= packet= duration= on= off= seed=; on=0: constant rate. A
 * datagram carries the time at which it was sent. The log, at each multiple of sample=: U time, packets sent, packets
 * received, bytes received, jitter (-1: not known yet), sum of delays; its last line: D packets sent, packets received,
 * bytes received, sum of delays.
 */

#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGEST 65507
/* How long the last datagram is waited for. */
#define PATIENCE SECOND

static uint64_t sent, received, received_bytes;
static int64_t delays;
/* interarrival jitter in sixteenths (RFC 3550 sections 6.4.1 and A.8); below 0: not known yet */
static int64_t jitter = -1, last_delay = -1;
static int64_t interval, next_sample;
static FILE *log_file;
static uint8_t bytes[LARGEST];

/* xorshift64*, from 0 to 1 without 0 */
static double uniform(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (((*state * 0x2545f4914f6cdd1dULL) >> 11) + 1) / 9007199254740993.0;
}

static int64_t exponential(uint64_t *state, int64_t mean)
{
	return (int64_t)(-log(uniform(state)) * mean);
}

/* What stood at each instant that has passed. */
static void sample_until(int64_t now)
{
	for (; next_sample <= now; next_sample += interval)
		fprintf(log_file, "U %lld %llu %llu %llu %lld %lld\n", (long long)next_sample, (unsigned long long)sent,
			(unsigned long long)received, (unsigned long long)received_bytes,
			(long long)(jitter < 0 ? -1 : jitter >> 4), (long long)delays);
}

static void arrived(int64_t delay)
{
	if (last_delay >= 0) {
		int64_t before = jitter < 0 ? 0 : jitter;

		jitter = before + llabs(delay - last_delay) - ((before + 8) >> 4);
	}
	last_delay = delay;
	delays += delay;
}

static void send_one(struct peer *to, size_t length)
{
	int64_t now = now_ns();

	/* lost at this host or later, it was sent */
	sent++;
	if (!reach(to))
		return;
	memcpy(bytes, &now, sizeof(now));
	send(to->descriptor, bytes, length, 0);
}

static void wait_until(int64_t until)
{
	while (!stopped && now_ns() < until) {
		wait_for(-1, 0, until < next_sample ? until : next_sample);
		sample_until(now_ns());
	}
}

static void send_all(struct peer *to, int count, char **argument)
{
	int64_t rate = number_option(count, argument, "rate", 1), on = number_option(count, argument, "on", 0);
	int64_t off = number_option(count, argument, "off", 0), packet = number_option(count, argument, "packet", 0);
	uint64_t state = number_option(count, argument, "seed", 1) * 2 + 1;
	int64_t due = now_ns(), ends = due + number_option(count, argument, "duration", 0);
	int64_t gap = (int64_t)((__int128)packet * 8 * SECOND / rate);
	int64_t pause = on ? due + exponential(&state, on) : NEVER;

	if (packet < (int64_t)sizeof(due) || packet > LARGEST)
		die("datagrams of %lld bytes", (long long)packet);
	while (!stopped && due < ends) {
		if (due >= pause) {
			due += exponential(&state, off);
			pause = due + exponential(&state, on);
			continue;
		}
		wait_until(due);
		if (stopped)
			return;
		send_one(to, packet);
		due += gap;
	}
	wait_until(ends + PATIENCE);
}

static void receive_all(int descriptor)
{
	while (!stopped) {
		ssize_t length = recv(descriptor, bytes, sizeof(bytes), MSG_DONTWAIT);
		int64_t then, now = now_ns();

		sample_until(now);
		if (length < (ssize_t)sizeof(then)) {
			wait_for(descriptor, POLLIN, next_sample);
			continue;
		}
		memcpy(&then, bytes, sizeof(then));
		arrived(now - then);
		received++;
		received_bytes += length;
	}
}

int datagram_main(int count, char **argument)
{
	bool server = !strcmp(need_option(count, argument, "side"), "server");
	uint16_t port = number_option(count, argument, "port", 0);
	const char *source = text_option(count, argument, "source", NULL);
	struct peer peer = {0};

	peer.remote_length = parse_address(need_option(count, argument, "destination"), port, &peer.remote);
	peer.descriptor = socket(peer.remote.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	log_file = open_lines(need_option(count, argument, "log"));
	interval = number_option(count, argument, "sample", SECOND / 10);
	next_sample = (now_ns() / interval + 1) * interval;
	stop_on_signal();
	if (peer.descriptor < 0)
		die("socket: %s", strerror(errno));
	if (server) {
		if (bind(peer.descriptor, (struct sockaddr *)&peer.remote, peer.remote_length))
			die("bind: %s", strerror(errno));
		receive_all(peer.descriptor);
	} else {
		if (source)
			peer.source_length = parse_address(source, 0, &peer.source);
		send_all(&peer, count, argument);
	}
	fprintf(log_file, "D %llu %llu %llu %lld\n", (unsigned long long)sent, (unsigned long long)received,
		(unsigned long long)received_bytes, (long long)delays);
	return 0;
}
