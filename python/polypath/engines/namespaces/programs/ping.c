/* ping: echo requests at an interval. Options: source= destination= log= interval= payload= count= duration=.
 * The log has a line E number time delay when a request is sent, delay -1, and another when it is answered.
 */

#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGEST 65535
/* How long the last answers are waited for: by an application from when the next request would be due, as in the simulator. */
#define PATIENCE SECOND

static int64_t *sent_at, *delay;
static uint64_t asked, answers;
static FILE *log_file;
static bool six;
static uint16_t identity;

static uint16_t checksum(const uint8_t *bytes, size_t length)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < length; i++)
		sum += bytes[i] << (i % 2 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons(~sum);
}

static void tell(uint64_t number)
{
	fprintf(log_file, "E %llu %lld %lld\n", (unsigned long long)number, (long long)sent_at[number],
		(long long)delay[number]);
}

static void ask(struct peer *to, size_t payload)
{
	static uint8_t packet[LARGEST];
	struct icmphdr *header = (struct icmphdr *)packet;

	memset(packet, 0, sizeof(*header));
	header->type = six ? ICMP6_ECHO_REQUEST : ICMP_ECHO;
	header->un.echo.id = htons(identity);
	header->un.echo.sequence = htons(asked);
	payload_fill(identity, asked * payload, packet + sizeof(*header), payload);
	if (!six)
		header->checksum = checksum(packet, sizeof(*header) + payload);
	sent_at[asked] = now_ns();
	delay[asked++] = -1;
	if (reach(to) && send(to->descriptor, packet, sizeof(*header) + payload, 0) < 0 && errno == EMSGSIZE)
		die("a payload of %zu bytes is too large", payload);
	tell(asked - 1);
}

static void hear(int descriptor)
{
	static uint8_t packet[LARGEST];
	ssize_t length;

	while ((length = recv(descriptor, packet, sizeof(packet), MSG_DONTWAIT)) > 0) {
		size_t skip = six ? 0 : ((struct iphdr *)packet)->ihl * 4u;
		struct icmphdr *header = (struct icmphdr *)(packet + skip);
		uint64_t number;

		if ((size_t)length < skip + sizeof(*header) || header->type != (six ? ICMP6_ECHO_REPLY : ICMP_ECHOREPLY) ||
		    ntohs(header->un.echo.id) != identity)
			continue;
		number = ntohs(header->un.echo.sequence);
		while (number + 65536 < asked)
			number += 65536;
		if (number < asked && delay[number] < 0) {
			delay[number] = now_ns() - sent_at[number];
			answers++;
			tell(number);
		}
	}
}

static void wait_until(int descriptor, int64_t until, bool for_all)
{
	while (!stopped && now_ns() < until && !(for_all && answers == asked)) {
		wait_for(descriptor, POLLIN, until);
		hear(descriptor);
	}
}

int ping_main(int count, char **argument)
{
	const char *source = text_option(count, argument, "source", NULL);
	int64_t interval = number_option(count, argument, "interval", SECOND), begin = now_ns();
	int64_t duration = number_option(count, argument, "duration", -1);
	uint64_t most = number_option(count, argument, "count", INT32_MAX);
	size_t payload = number_option(count, argument, "payload", 56);
	bool person = !text_option(count, argument, "side", NULL);
	int64_t over;
	struct peer peer = {0};

	peer.remote_length = parse_address(need_option(count, argument, "destination"), 0, &peer.remote);
	if (source)
		peer.source_length = parse_address(source, 0, &peer.source);
	log_file = open_lines(need_option(count, argument, "log"));
	stop_on_signal();
	six = peer.remote.ss_family == AF_INET6;
	identity = number_option(count, argument, "stream", 0) + 1;
	if (payload > LARGEST - sizeof(struct icmphdr))
		die("a payload of %zu bytes is too large", payload);
	if (duration >= 0 && most > (uint64_t)(duration / interval) + 1)
		most = duration / interval + 1;
	sent_at = calloc(most < 1 << 24 ? most : 1 << 24, sizeof(*sent_at));
	delay = calloc(most < 1 << 24 ? most : 1 << 24, sizeof(*delay));
	peer.descriptor =
		socket(peer.remote.ss_family, SOCK_RAW | SOCK_CLOEXEC, six ? (int)IPPROTO_ICMPV6 : (int)IPPROTO_ICMP);
	if (peer.descriptor < 0 || !sent_at || !delay)
		die("socket: %s", strerror(errno));
	/* a person at the prompt is told; an application, which has a side, waits */
	if (!reach(&peer) && person)
		die("connect: %s", strerror(errno));

	while (!stopped && asked < most && asked < 1 << 24) {
		wait_until(peer.descriptor, begin + (int64_t)asked * interval, false);
		if (duration >= 0 && now_ns() >= begin + duration)
			break;
		ask(&peer, payload);
	}
	if (person) {
		wait_until(peer.descriptor, now_ns() + PATIENCE, true);
		return 0;
	}
	over = begin + (int64_t)asked * interval;
	if (duration >= 0 && begin + duration < over)
		over = begin + duration;
	wait_until(peer.descriptor, over + PATIENCE, false);
	return 0;
}
