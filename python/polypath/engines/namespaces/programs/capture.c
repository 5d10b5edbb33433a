/* capture FILE NAMESPACE:DEVICE:NAME..: writes what passes the devices to a pcapng file (draft-ietf-opsawg-pcapng),
 * stamped in nanoseconds since the origin. It goes on until SIGTERM.
 *
 * The kernel stamps packets and puts them into rings (Linux, Documentation/networking/packet_mmap.rst, TPACKET_V3); they are
 * written in the order of their times. A packet that found no room there ends the run.
 */

#define _GNU_SOURCE
#include "guest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_TAPS 1024
#define SNAP 65535
#define BUFFER (1 << 20)
#define BLOCK (1 << 18)
#define MOST_BLOCKS 32
#define LEAST_BLOCKS 4
/* What all rings together take, but for the least that each has. */
#define ROOM (1 << 28)
/* A block that is not full is handed over after so long. */
#define RETIRE_MS 10
#define LOOK (RETIRE_MS * SECOND / 1000)
#define SECTION 0x0a0d0d0au
#define INTERFACE 1u
#define ENHANCED_PACKET 6u

static struct tap {
	int descriptor;
	uint8_t *ring;
	/* the block that is read next */
	unsigned block;
} tap[MAX_TAPS];
static unsigned blocks;
static FILE *file;
static char buffer[BUFFER];

/* A packet that is yet to be written; `number` keeps those of one instant in the order of their reading. */
struct packet {
	int64_t at;
	size_t number, offset;
	uint32_t length;
	int interface;
};

/* Packets and their bytes, and the ones of the next round. */
static struct {
	struct packet *packet;
	uint8_t *store;
	size_t packets, packet_room, stored, store_room;
} kept, later;

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

static void open_tap(char *description, int index)
{
	char *namespace = strtok(description, ":"), *device = strtok(NULL, ":"), *name = strtok(NULL, ":");
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	struct tpacket_req3 ring = {
		.tp_block_size = BLOCK,
		.tp_block_nr = blocks,
		.tp_frame_size = 1 << 11,
		.tp_frame_nr = blocks * (BLOCK >> 11),
		.tp_retire_blk_tov = RETIRE_MS,
	};
	int descriptor, version = TPACKET_V3;

	if (!namespace || !device || !name)
		die("tap %d is not NAMESPACE:DEVICE:NAME", index);
	enter_namespace(namespace);
	descriptor = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	address.sll_ifindex = if_nametoindex(device);
	if (descriptor < 0 || !address.sll_ifindex)
		die("cannot capture on %s", device);
	if (setsockopt(descriptor, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) ||
	    setsockopt(descriptor, SOL_PACKET, PACKET_RX_RING, &ring, sizeof(ring)))
		die("no ring to capture on %s: %s", device, strerror(errno));
	tap[index].descriptor = descriptor;
	tap[index].ring = mmap(NULL, (size_t)blocks * BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
	if (tap[index].ring == MAP_FAILED || bind(descriptor, (struct sockaddr *)&address, sizeof(address)))
		die("cannot capture on %s: %s", device, strerror(errno));
	put_interface(name);
}

/* Makes room for so many members. */
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
	kept.packet = grown(kept.packet, &kept.packet_room, kept.packets + 1, sizeof(*kept.packet));
	kept.store = grown(kept.store, &kept.store_room, kept.stored + length, 1);
	memcpy(kept.store + kept.stored, bytes, length);
	kept.packet[kept.packets] = (struct packet){ at, kept.packets, kept.stored, length, interface };
	kept.packets++;
	kept.stored += length;
}

static int by_time(const void *first, const void *second)
{
	const struct packet *a = first, *b = second;

	if (a->at != b->at)
		return a->at < b->at ? -1 : 1;
	return a->number < b->number ? -1 : 1;
}

/* Writes what was stamped before `until`: later ones may yet come from other rings. */
static void write_kept(int64_t until)
{
	typeof(kept) old = kept;

	qsort(old.packet, old.packets, sizeof(*old.packet), by_time);
	kept = later;
	kept.packets = kept.stored = 0;
	for (size_t i = 0; i < old.packets; i++) {
		const struct packet *one = &old.packet[i];

		if (one->at < until)
			put_packet(one->interface, one->at < 0 ? 0 : one->at, old.store + one->offset, one->length);
		else
			keep(one->interface, one->at, old.store + one->offset, one->length);
	}
	later = old;
}

static void drain(int index)
{
	struct tap *from = &tap[index];

	for (;;) {
		struct tpacket_block_desc *block = (void *)(from->ring + (size_t)from->block * BLOCK);
		const uint8_t *at = (uint8_t *)block + block->hdr.bh1.offset_to_first_pkt;

		if (!(__atomic_load_n(&block->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
			return;
		for (uint32_t i = 0; i < block->hdr.bh1.num_pkts; i++) {
			const struct tpacket3_hdr *packet = (const void *)at;

			keep(index, packet->tp_sec * SECOND + packet->tp_nsec - origin_realtime(), at + packet->tp_mac,
			     packet->tp_snaplen);
			at += packet->tp_next_offset;
		}
		__atomic_store_n(&block->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
		from->block = (from->block + 1) % blocks;
	}
}

static void drain_all(int taps, int64_t until)
{
	for (int i = 0; i < taps; i++)
		drain(i);
	write_kept(until);
}

static unsigned lost(int taps)
{
	unsigned total = 0;

	for (int i = 0; i < taps; i++) {
		struct tpacket_stats_v3 stats = { 0 };
		socklen_t length = sizeof(stats);

		getsockopt(tap[i].descriptor, SOL_PACKET, PACKET_STATISTICS, &stats, &length);
		total += stats.tp_drops;
	}
	return total;
}

int capture_main(int count, char **argument)
{
	int taps = count - 1;
	unsigned missing;

	stop_on_signal();
	if (taps < 1 || taps > MAX_TAPS)
		die("capture FILE NAMESPACE:DEVICE:NAME..");
	file = fopen(argument[0], "we");
	if (!file)
		die("%s: %s", argument[0], strerror(errno));
	/* each write is a call to the host; a buffer that the library makes has the size of a block, whatever it is told */
	setvbuf(file, buffer, _IOFBF, BUFFER);
	put_section();
	blocks = ROOM / BLOCK / taps;
	blocks = blocks > MOST_BLOCKS ? MOST_BLOCKS : blocks < LEAST_BLOCKS ? LEAST_BLOCKS : blocks;
	for (int i = 0; i < taps; i++)
		open_tap(argument[i + 1], i);
	while (!stopped) {
		wait_for(-1, 0, now_ns() + LOOK);
		drain_all(taps, now_ns() - 3 * LOOK);
	}
	/* for the blocks that are not full */
	wait_for(-1, 0, now_ns() + 3 * LOOK);
	drain_all(taps, NEVER);
	missing = lost(taps);
	if (missing)
		die("%u packets came too fast for the capture; run without it", missing);
	return fclose(file);
}
