/* links: samples the queue disciplines of this namespace. Options: log= interval=.
 *
 * A line Q for each device at each instant: time, name, bytes and packets sent, packets dropped by the root
 * (its child's drops included) and by the child, packets and bytes in the child's queue. The child (handle 10:) is the
 * bottleneck, on a host's own interface the root itself; what the root (handle 1:) holds is under way. A child that is replaced takes its counter along: the drops
 * of those before it are added.
 */

#define _GNU_SOURCE
#include "netlink.h"

#include <errno.h>
#include <linux/gen_stats.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_DEVICES 4096
#define ROOT 0x00010000u
#define CHILD 0x00100000u

static struct device {
	bool known;
	struct gnet_stats_basic basic;
	uint32_t root_drops, child_drops, queued, queued_bytes;
} device[MAX_DEVICES];
/* Drops of the child that is there, and of those before it. */
static uint32_t present_drops[MAX_DEVICES], past_drops[MAX_DEVICES];
static FILE *log_file;

static uint32_t all_drops(int index, uint32_t drops)
{
	if (drops < present_drops[index])
		past_drops[index] += present_drops[index];
	present_drops[index] = drops;
	return past_drops[index] + drops;
}

static void read_statistics(struct device *into, uint32_t handle, const struct nlattr *statistics)
{
	const struct nlattr *stats[TCA_STATS_MAX + 1];
	struct gnet_stats_queue queue = { 0 };

	attributes(stats, TCA_STATS_MAX, attribute_value(statistics), attribute_length(statistics));
	if (stats[TCA_STATS_QUEUE])
		memcpy(&queue, attribute_value(stats[TCA_STATS_QUEUE]), sizeof(queue));
	if (handle == ROOT) {
		into->known = true;
		into->root_drops = queue.drops;
		if (stats[TCA_STATS_BASIC])
			memcpy(&into->basic, attribute_value(stats[TCA_STATS_BASIC]), sizeof(uint64_t) + sizeof(uint32_t));
	} else {
		into->known = true;
		into->child_drops = queue.drops;
		into->queued = queue.qlen;
		into->queued_bytes = queue.backlog;
	}
}

static void each_discipline(const struct nlmsghdr *message)
{
	const struct tcmsg *head = NLMSG_DATA(message);
	const struct nlattr *table[TCA_MAX + 1];

	if (message->nlmsg_type != RTM_NEWQDISC || head->tcm_ifindex >= MAX_DEVICES ||
	    (head->tcm_handle != ROOT && head->tcm_handle != CHILD))
		return;
	attributes(table, TCA_MAX, (const uint8_t *)head + NLMSG_ALIGN(sizeof(*head)),
		   message->nlmsg_len - NLMSG_LENGTH(sizeof(*head)));
	if (table[TCA_STATS2])
		read_statistics(&device[head->tcm_ifindex], head->tcm_handle, table[TCA_STATS2]);
}

static const char *name_of(int index)
{
	static char name[MAX_DEVICES][IF_NAMESIZE];

	if (!*name[index] && !if_indextoname(index, name[index]))
		die("device %d is gone", index);
	return name[index];
}

static void sample(int descriptor, int64_t now)
{
	struct tcmsg head = { .tcm_family = AF_UNSPEC };
	struct request request;

	memset(device, 0, sizeof(device));
	request_begin(&request, RTM_GETQDISC, NLM_F_DUMP, &head, sizeof(head));
	if (netlink_ask(descriptor, &request, each_discipline))
		die("cannot read queue disciplines");
	for (int i = 0; i < MAX_DEVICES; i++)
		if (device[i].known)
			fprintf(log_file, "Q %lld %s %llu %u %u %u %u %u\n", (long long)now, name_of(i),
				(unsigned long long)device[i].basic.bytes, device[i].basic.packets,
				device[i].root_drops, all_drops(i, device[i].child_drops), device[i].queued, device[i].queued_bytes);
}

int links_main(int count, char **argument)
{
	int64_t interval = number_option(count, argument, "interval", SECOND / 10), next = 0;
	int descriptor = netlink_open(NETLINK_ROUTE);

	stop_on_signal();
	log_file = open_lines(need_option(count, argument, "log"));
	while (!stopped) {
		if (now_ns() >= next) {
			sample(descriptor, now_ns());
			next += interval;
		}
		wait_for(-1, 0, next);
	}
	sample(descriptor, now_ns());
	return 0;
}
