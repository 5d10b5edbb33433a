/* paths: writes down what the path managers of this namespace say, and is one itself where `subflows=` is given:
 * as soon as the host has opened a connection, it opens that many subflows in all between the same two addresses.
 *
 * Options: log= subflows=. A line N for each event: time, event (Linux, enum mptcp_event_type), the connection's token, whether
 * this host is its server, backup, local and remote address and port ("- 0": not told), error.
 */

#define _GNU_SOURCE
#include "netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/mptcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* newer than the host's header may be */
#define ATTR_SERVER_SIDE 18
#define FLAG_SERVER_SIDE 2
#define MOST_ATTRIBUTES 32
/* The identifier under which further subflows' address is known (RFC 8684 section 3.2); the first address has 0. */
#define ADDRESS_ID 1

static FILE *log_file;
static int commands;
static uint16_t family;
static uint32_t group;
static int64_t wanted;

static void request_generic(struct request *request, uint16_t type, uint8_t command, uint8_t version)
{
	struct genlmsghdr head = { .cmd = command, .version = version };

	request_begin(request, type, 0, &head, sizeof(head));
}

static void read_table(const struct nlattr **table, int most, const struct nlmsghdr *message)
{
	attributes(table, most, (const uint8_t *)NLMSG_DATA(message) + GENL_HDRLEN,
		   message->nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN));
}

static void each_family(const struct nlmsghdr *message)
{
	const struct nlattr *table[CTRL_ATTR_MAX + 1], *entry[CTRL_ATTR_MCAST_GRP_MAX + 1];
	const uint8_t *at;
	size_t length;

	read_table(table, CTRL_ATTR_MAX, message);
	if (table[CTRL_ATTR_FAMILY_ID])
		memcpy(&family, attribute_value(table[CTRL_ATTR_FAMILY_ID]), sizeof(family));
	if (!table[CTRL_ATTR_MCAST_GROUPS])
		return;
	at = attribute_value(table[CTRL_ATTR_MCAST_GROUPS]);
	length = attribute_length(table[CTRL_ATTR_MCAST_GROUPS]);
	while (length >= NLA_HDRLEN) {
		const struct nlattr *one = (const struct nlattr *)at;
		size_t step = NLA_ALIGN(one->nla_len);

		attributes(entry, CTRL_ATTR_MCAST_GRP_MAX, attribute_value(one), attribute_length(one));
		if (entry[CTRL_ATTR_MCAST_GRP_NAME] && entry[CTRL_ATTR_MCAST_GRP_ID] &&
		    !strcmp(attribute_value(entry[CTRL_ATTR_MCAST_GRP_NAME]), MPTCP_PM_EV_GRP_NAME))
			memcpy(&group, attribute_value(entry[CTRL_ATTR_MCAST_GRP_ID]), sizeof(group));
		at += step;
		length = step < length ? length - step : 0;
	}
}

static uint64_t number(const struct nlattr *attribute)
{
	uint64_t value = 0;

	if (attribute && attribute_length(attribute) <= sizeof(value))
		memcpy(&value, attribute_value(attribute), attribute_length(attribute));
	return value;
}

static void put_end(const struct nlattr *v4, const struct nlattr *v6, const struct nlattr *port)
{
	char text[INET6_ADDRSTRLEN] = "-";

	if (v4)
		inet_ntop(AF_INET, attribute_value(v4), text, sizeof(text));
	else if (v6)
		inet_ntop(AF_INET6, attribute_value(v6), text, sizeof(text));
	fprintf(log_file, " %s %u", text, ntohs(number(port)));
}

static bool server_side(const struct nlattr **table)
{
	return number(table[ATTR_SERVER_SIDE]) || number(table[MPTCP_ATTR_FLAGS]) & FLAG_SERVER_SIDE;
}

static void request_end(struct request *request, uint16_t type, const struct nlattr **table, bool local)
{
	const struct nlattr *v4 = table[local ? MPTCP_ATTR_SADDR4 : MPTCP_ATTR_DADDR4];
	const struct nlattr *v6 = table[local ? MPTCP_ATTR_SADDR6 : MPTCP_ATTR_DADDR6];
	const struct nlattr *address = v4 ? v4 : v6;
	uint16_t kind = v4 ? AF_INET : AF_INET6, port = ntohs(number(table[MPTCP_ATTR_DPORT]));
	uint8_t id = ADDRESS_ID;
	struct nlattr *nest = request_nest(request, type);

	request_attribute(request, MPTCP_PM_ADDR_ATTR_FAMILY, &kind, sizeof(kind));
	request_attribute(request, v4 ? MPTCP_PM_ADDR_ATTR_ADDR4 : MPTCP_PM_ADDR_ATTR_ADDR6, attribute_value(address),
			  attribute_length(address));
	if (local)
		request_attribute(request, MPTCP_PM_ADDR_ATTR_ID, &id, sizeof(id));
	else
		request_attribute(request, MPTCP_PM_ADDR_ATTR_PORT, &port, sizeof(port));
	request_nest_end(request, nest);
}

static void ignore(const struct nlmsghdr *message)
{
	(void)message;
}

static void open_subflows(const struct nlattr **table)
{
	uint32_t token = number(table[MPTCP_ATTR_TOKEN]);

	if (!(table[MPTCP_ATTR_SADDR4] && table[MPTCP_ATTR_DADDR4]) &&
	    !(table[MPTCP_ATTR_SADDR6] && table[MPTCP_ATTR_DADDR6]))
		return;
	for (int64_t i = 1; i < wanted; i++) {
		struct request request;
		int error;

		request_generic(&request, family, MPTCP_PM_CMD_SUBFLOW_CREATE, MPTCP_PM_VER);
		request_attribute(&request, MPTCP_PM_ATTR_TOKEN, &token, sizeof(token));
		request_end(&request, MPTCP_PM_ATTR_ADDR, table, true);
		request_end(&request, MPTCP_PM_ATTR_ADDR_REMOTE, table, false);
		error = netlink_ask(commands, &request, ignore);
		if (error)
			fprintf(stderr, "guest: no further subflow: %s\n", strerror(error));
	}
}

static void each_event(const struct nlmsghdr *message)
{
	const struct genlmsghdr *head = NLMSG_DATA(message);
	const struct nlattr *table[MOST_ATTRIBUTES + 1];

	if (message->nlmsg_type != family)
		return;
	read_table(table, MOST_ATTRIBUTES, message);
	fprintf(log_file, "N %lld %u %llu %d %llu", (long long)now_ns(), head->cmd,
		(unsigned long long)number(table[MPTCP_ATTR_TOKEN]), server_side(table),
		(unsigned long long)number(table[MPTCP_ATTR_BACKUP]));
	put_end(table[MPTCP_ATTR_SADDR4], table[MPTCP_ATTR_SADDR6], table[MPTCP_ATTR_SPORT]);
	put_end(table[MPTCP_ATTR_DADDR4], table[MPTCP_ATTR_DADDR6], table[MPTCP_ATTR_DPORT]);
	fprintf(log_file, " %llu\n", (unsigned long long)number(table[MPTCP_ATTR_ERROR]));
	/* both events may report an active opener's connection; the second means that it may add subflows */
	if (wanted > 1 && head->cmd == MPTCP_EVENT_ESTABLISHED && !server_side(table))
		open_subflows(table);
}

int paths_main(int count, char **argument)
{
	struct request request;
	int events = netlink_open(NETLINK_GENERIC);

	stop_on_signal();
	commands = netlink_open(NETLINK_GENERIC);
	log_file = open_lines(need_option(count, argument, "log"));
	wanted = number_option(count, argument, "subflows", 0);
	request_generic(&request, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1);
	request_attribute(&request, CTRL_ATTR_FAMILY_NAME, MPTCP_PM_NAME, sizeof(MPTCP_PM_NAME));
	if (netlink_ask(commands, &request, each_family) || !group)
		die("this kernel has no MPTCP path managers");
	if (setsockopt(events, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)))
		die("path manager events: %s", strerror(errno));
	while (!stopped) {
		netlink_hear(events, each_event);
		wait_for(events, POLLIN, NEVER);
	}
	return 0;
}
