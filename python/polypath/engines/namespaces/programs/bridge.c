/* bridge NAMESPACE DEVICE:LINK..: carries frames between this guest and others, which run on other kernels. Options:
 * lookahead= peers= over=.
 *
 * A frame that arrives at a device leaves the device of the same link in its peer's guest `lookahead` ns later. Guests are
 * at one virtual time at the ends of periods only (engines/linux/calendar.py), and a period is shorter than that: what one
 * of them sends in a period is written to exchange/PERIOD shortly before its end, and read by the others at its end.
 * `peers` is a file with the folders of the others. SIGUSR1 says that all applications here are over (over=1: that there are
 * none); once all guests have said so, each ends at the end of the same period.
 */

#define _GNU_SOURCE
#include "guest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAX_DEVICES 1024
#define MAX_PEERS 16
#define BUFFER (1 << 24)
#define LONGEST (1 << 16)
/* What is written so long before a period's end is read at it; what comes later waits for the next. Each look at a clock takes
 * 256 ns in the guest (arch/um/kernel/time.c, timer_read), and writing has some. */
#define LEAD_NS 50000
/* Less than the lookahead, for what was written just before the end of the period before. */
#define SHORTER_NS 60000
#define OVER UINT32_MAX

struct record {
	int64_t at;
	uint32_t link, length;
};

static struct device {
	int descriptor;
	uint32_t link;
} device[MAX_DEVICES];
static struct pollfd polled[MAX_DEVICES];
static int devices;
static char *peer[MAX_PEERS];
static bool peer_over[MAX_PEERS];
static int peers;
static volatile sig_atomic_t over;
static bool said_over;

/* What came here since the last period was written. */
static uint8_t *out;
static size_t out_length, out_room;

/* What others sent, by the time at which it leaves. */
struct frame {
	int64_t due;
	uint64_t number;
	uint32_t link, length;
	uint8_t *bytes;
};
static struct frame *frame;
static size_t frames, first, frame_room;
static uint64_t numbered;

static void on_over(int number)
{
	(void)number;
	over = 1;
}

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

static void open_device(char *description)
{
	char *name = strtok(description, ":"), *link = strtok(NULL, ":");
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int descriptor, on = 1, room = BUFFER;

	if (!name || !link || devices == MAX_DEVICES)
		die("bridge NAMESPACE DEVICE:LINK..");
	descriptor = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	address.sll_ifindex = if_nametoindex(name);
	if (descriptor < 0 || !address.sll_ifindex || setsockopt(descriptor, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)) ||
	    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) ||
	    setsockopt(descriptor, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)) ||
	    bind(descriptor, (struct sockaddr *)&address, sizeof(address)))
		die("cannot bridge %s: %s", name, strerror(errno));
	device[devices] = (struct device){ descriptor, strtoul(link, NULL, 10) };
	polled[devices++] = (struct pollfd){ .fd = descriptor, .events = POLLIN };
}

static void read_peers(const char *path)
{
	char line[4096];
	FILE *file = fopen(path, "re");

	if (!file)
		die("%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		if (peers == MAX_PEERS)
			die("more than %d kernels", MAX_PEERS);
		peer[peers++] = strdup(line);
	}
	fclose(file);
}

static void put(int64_t at, uint32_t link, const uint8_t *bytes, uint32_t length)
{
	struct record record = { at, link, length };

	out = grown(out, &out_room, out_length + sizeof(record) + length, 1);
	memcpy(out + out_length, &record, sizeof(record));
	if (length)
		memcpy(out + out_length + sizeof(record), bytes, length);
	out_length += sizeof(record) + length;
}

static int64_t stamp(struct msghdr *message)
{
	struct timespec time;

	for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control; control = CMSG_NXTHDR(message, control))
		if (control->cmsg_level == SOL_SOCKET && control->cmsg_type == SO_TIMESTAMPNS) {
			memcpy(&time, CMSG_DATA(control), sizeof(time));
			return time.tv_sec * SECOND + time.tv_nsec - origin_realtime();
		}
	die("a packet without its time");
}

static void drain(struct device *from)
{
	static uint8_t bytes[LONGEST];
	char control[256];
	struct sockaddr_ll sender;

	for (;;) {
		struct iovec vector = { bytes, sizeof(bytes) };
		struct msghdr message = {
			.msg_name = &sender,
			.msg_namelen = sizeof(sender),
			.msg_iov = &vector,
			.msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control),
		};
		ssize_t length = recvmsg(from->descriptor, &message, 0);

		if (length < 0) {
			if (errno == EAGAIN || errno == EINTR)
				return;
			die("cannot read a packet: %s", strerror(errno));
		}
		/* what this program sent comes back as outgoing */
		if (sender.sll_pkttype != PACKET_OUTGOING)
			put(stamp(&message), from->link, bytes, length);
	}
}

static void require_all(void)
{
	for (int i = 0; i < devices; i++) {
		struct tpacket_stats stats = { 0 };
		socklen_t length = sizeof(stats);

		getsockopt(device[i].descriptor, SOL_PACKET, PACKET_STATISTICS, &stats, &length);
		if (stats.tp_drops)
			die("%u packets came too fast for the bridge between two kernels", stats.tp_drops);
	}
}

static void write_period(int64_t period)
{
	char path[64];
	FILE *file;

	if (over && !said_over) {
		said_over = true;
		put(0, OVER, NULL, 0);
	}
	snprintf(path, sizeof(path), "exchange/%" PRId64, period - 3);
	unlink(path);
	if (!out_length)
		return;
	require_all();
	snprintf(path, sizeof(path), "exchange/%" PRId64, period);
	file = fopen(path, "we");
	if (!file || fwrite(out, 1, out_length, file) != out_length || fclose(file))
		die("%s: %s", path, strerror(errno));
	out_length = 0;
}

static void keep(int64_t due, uint32_t link, uint8_t *bytes, uint32_t length)
{
	if (first && first == frames)
		first = frames = 0;
	frame = grown(frame, &frame_room, frames + 1, sizeof(*frame));
	frame[frames++] = (struct frame){ due, numbered++, link, length, bytes };
}

static int by_due(const void *one, const void *other)
{
	const struct frame *a = one, *b = other;

	if (a->due != b->due)
		return a->due < b->due ? -1 : 1;
	return a->number < b->number ? -1 : 1;
}

static void read_period(int number, int64_t period, int64_t lookahead)
{
	char path[4200];
	struct record record;
	FILE *file;

	snprintf(path, sizeof(path), "%s/exchange/%" PRId64, peer[number], period);
	file = fopen(path, "re");
	if (!file) {
		if (errno != ENOENT)
			die("%s: %s", path, strerror(errno));
		return;
	}
	while (fread(&record, sizeof(record), 1, file)) {
		uint8_t *bytes;

		if (record.link == OVER) {
			peer_over[number] = true;
			continue;
		}
		bytes = allocate(record.length);
		if (fread(bytes, 1, record.length, file) != record.length)
			die("%s is cut off", path);
		keep(record.at + lookahead, record.link, bytes, record.length);
	}
	fclose(file);
}

static void send_due(int64_t now)
{
	while (first < frames && frame[first].due <= now) {
		struct frame *one = &frame[first++];

		for (int i = 0; i < devices; i++)
			if (device[i].link == one->link && send(device[i].descriptor, one->bytes, one->length, 0) < 0 &&
			    errno != ENETDOWN && errno != EMSGSIZE)
				die("cannot send a packet: %s", strerror(errno));
		free(one->bytes);
	}
}

static bool all_over(void)
{
	for (int i = 0; i < peers; i++)
		if (!peer_over[i])
			return false;
	return said_over;
}

int bridge_main(int count, char **argument)
{
	int64_t lookahead = number_option(count, argument, "lookahead", 0), length = lookahead - SHORTER_NS, period = 1;
	bool written = false;

	stop_on_signal();
	signal(SIGUSR1, on_over);
	over = number_option(count, argument, "over", 0);
	read_peers(need_option(count, argument, "peers"));
	for (int i = 0; i < count; i++)
		if (!strchr(argument[i], '='))
			open_device(argument[i]);
	mkdir("exchange", 0755);
	while (!stopped) {
		int64_t next = period * length - (written ? 0 : LEAD_NS), now;

		wait_for_any(polled, devices, first < frames && frame[first].due < next ? frame[first].due : next);
		for (int i = 0; i < devices; i++)
			drain(&device[i]);
		now = now_ns();
		send_due(now);
		if (now < next)
			continue;
		if (!written) {
			write_period(period);
			written = true;
			continue;
		}
		for (int i = 0; i < peers; i++)
			read_period(i, period, lookahead);
		if (first < frames)
			qsort(frame + first, frames - first, sizeof(*frame), by_due);
		if (all_over())
			return 0;
		period++;
		written = false;
	}
	return 0;
}

/* The clocks of guests begin at different moments of their common time: each tells its own, and is told the origin. */
void meet(void)
{
	struct timespec real, monotonic, pause = { .tv_nsec = MILLISECOND };
	long long since, date;
	FILE *file = fopen("clock", "we");

	if (!file)
		die("clock: %s", strerror(errno));
	clock_gettime(CLOCK_REALTIME, &real);
	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	fprintf(file, "%lld %lld\n", real.tv_sec * SECOND + real.tv_nsec, monotonic.tv_sec * SECOND + monotonic.tv_nsec);
	if (fclose(file))
		die("clock: %s", strerror(errno));
	nanosleep(&pause, NULL);
	file = fopen("origin", "re");
	if (!file || fscanf(file, "%lld %lld", &since, &date) != 2)
		die("no origin was told");
	fclose(file);
	take_origin(since, date);
}
