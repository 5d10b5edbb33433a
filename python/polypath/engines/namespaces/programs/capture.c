/* capture FILE EVERY NAMESPACE:DEVICE:NAME..: writes what passes the devices to a pcapng file (draft-ietf-opsawg-pcapng),
 * stamped in nanoseconds since the origin. It goes on until SIGTERM.
 *
 * It looks every EVERY nanoseconds, at once if that is 0: the kernel stamps packets and keeps them until then, and what came
 * meanwhile is written in the order of its times. A packet that the kernel could not keep ends the run.
 */

#define _GNU_SOURCE
#include "guest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define MAX_TAPS 1024
#define SNAP 65535
#define BUFFER (1 << 20)
#define SECTION 0x0a0d0d0au
#define INTERFACE 1u
#define ENHANCED_PACKET 6u

static struct pollfd tap[MAX_TAPS];
static FILE *file;

/* A packet that is yet to be written; `number` keeps those of one instant in the order of their reading. */
struct packet {
	int64_t at;
	size_t number, offset;
	uint32_t length;
	int interface;
};

static struct packet *packet;
static uint8_t *store;
static size_t packets, packet_room, stored, store_room;

static void put(const void *bytes, size_t length)
{
	static const uint8_t zeros[4];

	fwrite(bytes, 1, length, file);
	fwrite(zeros, 1, -length % 4, file);
}

static void put32(uint32_t value)
{
	put(&value, sizeof(value));
}

static void put_section(void)
{
	static const uint32_t body[] = { 0x1a2b3c4d, 1, 0xffffffff, 0xffffffff };

	put32(SECTION);
	put32(28);
	put(body, sizeof(body));
	put32(28);
}

static void put_interface(const char *name)
{
	uint16_t length = strlen(name), option[2] = { 2, length }, resolution[2] = { 9, 1 };
	uint32_t total = 20 + 4 + (length + 3) / 4 * 4 + 8 + 4;

	put32(INTERFACE);
	put32(total);
	put32(1);
	put32(SNAP);
	put(option, sizeof(option));
	put(name, length);
	put(resolution, sizeof(resolution));
	put("\x09", 1);
	put32(0);
	put32(total);
}

static void put_packet(int interface, int64_t at, const uint8_t *bytes, uint32_t length)
{
	uint32_t total = 32 + (length + 3) / 4 * 4;

	put32(ENHANCED_PACKET);
	put32(total);
	put32(interface);
	put32((uint64_t)at >> 32);
	put32(at);
	put32(length);
	put32(length);
	put(bytes, length);
	put32(total);
}

static int open_tap(char *description, int index)
{
	char *namespace = strtok(description, ":"), *device = strtok(NULL, ":"), *name = strtok(NULL, ":");
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int descriptor, one = 1, room = 1 << 28;

	if (!namespace || !device || !name)
		die("tap %d is not NAMESPACE:DEVICE:NAME", index);
	enter_namespace(namespace);
	descriptor = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	address.sll_ifindex = if_nametoindex(device);
	if (descriptor < 0 || !address.sll_ifindex)
		die("cannot capture on %s", device);
	setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	setsockopt(descriptor, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one));
	if (bind(descriptor, (struct sockaddr *)&address, sizeof(address)))
		die("cannot capture on %s: %s", device, strerror(errno));
	put_interface(name);
	return descriptor;
}

/* Makes room for so many more members at the end. */
static void *grown(void *array, size_t *room, size_t needed, size_t size)
{
	if (needed <= *room)
		return array;
	*room = needed * 2;
	array = realloc(array, *room * size);
	if (!array)
		die("no memory for packets");
	return array;
}

static void keep(int interface, int64_t at, const uint8_t *bytes, uint32_t length)
{
	packet = grown(packet, &packet_room, packets + 1, sizeof(*packet));
	store = grown(store, &store_room, stored + length, 1);
	memcpy(store + stored, bytes, length);
	packet[packets] = (struct packet){ at, packets, stored, length, interface };
	packets++;
	stored += length;
}

static int by_time(const void *first, const void *second)
{
	const struct packet *a = first, *b = second;

	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	return a->number < b->number ? -1 : 1;
}

static void write_kept(void)
{
	qsort(packet, packets, sizeof(*packet), by_time);
	for (size_t i = 0; i < packets; i++)
		put_packet(packet[i].interface, packet[i].at, store + packet[i].offset, packet[i].length);
	packets = stored = 0;
}

static void drain(int index)
{
	static uint8_t bytes[SNAP];
	uint8_t control[CMSG_SPACE(sizeof(struct timespec))];
	struct iovec part = { bytes, sizeof(bytes) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control };
	ssize_t length;

	while (message.msg_controllen = sizeof(control),
	       (length = recvmsg(tap[index].fd, &message, MSG_DONTWAIT)) >= 0) {
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);
		struct timespec stamp = { 0 };
		int64_t at;

		if (header && header->cmsg_type == SCM_TIMESTAMPNS)
			memcpy(&stamp, CMSG_DATA(header), sizeof(stamp));
		at = stamp.tv_sec * SECOND + stamp.tv_nsec - origin_realtime();
		keep(index, at < 0 ? 0 : at, bytes, length);
	}
}

static void drain_all(int taps)
{
	for (int i = 0; i < taps; i++)
		drain(i);
	write_kept();
}

static unsigned lost(int taps)
{
	unsigned total = 0;

	for (int i = 0; i < taps; i++) {
		struct tpacket_stats stats = { 0 };
		socklen_t length = sizeof(stats);

		getsockopt(tap[i].fd, SOL_PACKET, PACKET_STATISTICS, &stats, &length);
		total += stats.tp_drops;
	}
	return total;
}

int capture_main(int count, char **argument)
{
	sigset_t none;
	int taps = count - 2;
	int64_t every = count > 1 ? strtoll(argument[1], NULL, 10) : 0;
	unsigned missing;

	stop_on_signal();
	if (taps < 1 || taps > MAX_TAPS)
		die("capture FILE EVERY NAMESPACE:DEVICE:NAME..");
	file = fopen(argument[0], "we");
	if (!file)
		die("%s: %s", argument[0], strerror(errno));
	/* each write is a call to the host */
	setvbuf(file, NULL, _IOFBF, BUFFER);
	put_section();
	for (int i = 0; i < taps; i++) {
		tap[i].fd = open_tap(argument[i + 2], i);
		tap[i].events = POLLIN;
	}
	sigemptyset(&none);
	while (!stopped) {
		if (every)
			wait_for(-1, 0, now_ns() + every);
		else
			ppoll(tap, taps, NULL, &none);
		drain_all(taps);
	}
	drain_all(taps);
	missing = lost(taps);
	if (missing)
		die("%u packets came too fast for the capture; run without it", missing);
	return fclose(file);
}
