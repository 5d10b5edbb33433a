/* paths: writes down what the path managers of this namespace say, and is one itself where `subflows=` is given: as soon as
 * the host has opened a connection, it opens that many subflows in all between the first two addresses, and with `mesh=1`
 * as many between each other pair of its addresses `own=` and those of the peer.
 *
 * Options: log= subflows= mesh= own=. A line N for each event: time, event (Linux, enum mptcp_event_type), the connection's token, whether
 * this host is its server, backup, local and remote address and port ("- 0": not told), error, the identifier of the
 * peer's address. What closed sockets counted: closed.c.
 */

#define _GNU_SOURCE
#include "closed.h"
#include "netlink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/mptcp.h>
#include <net/if.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* newer than the host's header may be */
#define ATTR_SERVER_SIDE 18
#define FLAG_SERVER_SIDE 2
#define MOST_ATTRIBUTES 32
#define MOST_ADDRESSES 8
#define MOST_CONNECTIONS 4096

static FILE *log_file;
static int commands;
static uint16_t family;
static uint32_t group;
static int64_t wanted;
static bool mesh;

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
		address_text(AF_INET, attribute_value(v4), text);
	else if (v6)
		address_text(AF_INET6, attribute_value(v6), text);
	fprintf(log_file, " %s %u", text, ntohs(number(port)));
}

static bool server_side(const struct nlattr **table)
{
	return number(table[ATTR_SERVER_SIDE]) || number(table[MPTCP_ATTR_FLAGS]) & FLAG_SERVER_SIDE;
}

/* The attributes of an address: the end `local` of an event, or one of our own. */
struct end {
	uint16_t family;
	uint8_t address[16];
	size_t length;
	uint16_t port;
	uint8_t id;
	int32_t device;
	bool backup;
};

static bool same_address(const struct end *a, const struct end *b)
{
	return a->family == b->family && !memcmp(a->address, b->address, a->length);
}

static bool read_end(struct end *end, const struct nlattr *v4, const struct nlattr *v6, const struct nlattr *port)
{
	const struct nlattr *address = v4 ? v4 : v6;

	memset(end, 0, sizeof(*end));
	if (!address || attribute_length(address) > sizeof(end->address))
		return false;
	end->family = v4 ? AF_INET : AF_INET6;
	end->length = attribute_length(address);
	memcpy(end->address, attribute_value(address), end->length);
	if (end->family == AF_INET6 && IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)attribute_value(address))) {
		end->family = AF_INET;
		end->length -= MAPPED_PREFIX;
		memmove(end->address, end->address + MAPPED_PREFIX, end->length);
	}
	end->port = ntohs(number(port));
	return true;
}

static struct end own[MOST_ADDRESSES];
static int owned;

/* ADDRESS@DEVICE[*],..: subflows keep to the device, as those of the kernel's own endpoints; a star marks addresses whose
 * subflows are backups. Identifiers count from 1; the first address of a
 * connection has 0 besides (RFC 8684 section 3.2).
 */
static void read_own(char *list)
{
	for (char *text = strtok(list, ","); text && owned < MOST_ADDRESSES; text = strtok(NULL, ",")) {
		struct end *end = &own[owned++];
		char *star = strchr(text, '*'), *device;

		if (star)
			*star = '\0';
		device = strchr(text, '@');
		if (!device)
			die("%s names no device", text);
		*device++ = '\0';
		end->device = (int32_t)if_nametoindex(device);
		end->backup = star;
		end->family = strchr(text, ':') ? AF_INET6 : AF_INET;
		end->length = end->family == AF_INET ? 4 : 16;
		end->id = owned;
		if (inet_pton(end->family, text, end->address) != 1)
			die("%s is no address", text);
	}
}

static void request_end(struct request *request, uint16_t type, const struct end *end)
{
	uint32_t flags = end->backup ? MPTCP_PM_ADDR_FLAG_BACKUP : 0;
	struct nlattr *nest = request_nest(request, type);

	request_attribute(request, MPTCP_PM_ADDR_ATTR_FAMILY, &end->family, sizeof(end->family));
	request_attribute(request, end->family == AF_INET ? MPTCP_PM_ADDR_ATTR_ADDR4 : MPTCP_PM_ADDR_ATTR_ADDR6,
			  end->address, end->length);
	if (end->id)
		request_attribute(request, MPTCP_PM_ADDR_ATTR_ID, &end->id, sizeof(end->id));
	if (flags)
		request_attribute(request, MPTCP_PM_ADDR_ATTR_FLAGS, &flags, sizeof(flags));
	if (end->device)
		request_attribute(request, MPTCP_PM_ADDR_ATTR_IF_IDX, &end->device, sizeof(end->device));
	if (end->port)
		request_attribute(request, MPTCP_PM_ADDR_ATTR_PORT, &end->port, sizeof(end->port));
	request_nest_end(request, nest);
}

static void ignore(const struct nlmsghdr *message)
{
	(void)message;
}

static void open_subflows(uint32_t token, const struct end *local, const struct end *remote, int64_t count)
{
	while (count-- > 0) {
		struct request request;
		int error;

		request_generic(&request, family, MPTCP_PM_CMD_SUBFLOW_CREATE, MPTCP_PM_VER);
		request_attribute(&request, MPTCP_PM_ATTR_TOKEN, &token, sizeof(token));
		request_end(&request, MPTCP_PM_ATTR_ADDR, local);
		request_end(&request, MPTCP_PM_ATTR_ADDR_REMOTE, remote);
		error = netlink_ask(commands, &request, ignore);
		/* a connection that is being closed takes none (Linux net/mptcp/subflow.c, __mptcp_subflow_connect), of one that is
		 * gone the token is not known (net/mptcp/pm_userspace.c), and no way may lead from the device to the peer's address
		 */
		if (error && error != ENOTCONN && error != EINVAL && error != ENETUNREACH)
			fprintf(stderr, "guest: no further subflow: %s\n", strerror(error));
	}
}

/* Ports of connections whose peers may yet announce addresses. */
static struct {
	uint32_t token;
	uint16_t port;
} opened[MOST_CONNECTIONS];
static int connections;

static void on_established(const struct nlattr **table)
{
	uint32_t token = number(table[MPTCP_ATTR_TOKEN]);
	struct end local, remote;

	if (!read_end(&local, table[MPTCP_ATTR_SADDR4], table[MPTCP_ATTR_SADDR6], NULL) ||
	    !read_end(&remote, table[MPTCP_ATTR_DADDR4], table[MPTCP_ATTR_DADDR6], table[MPTCP_ATTR_DPORT]))
		return;
	if (connections < MOST_CONNECTIONS) {
		opened[connections].token = token;
		opened[connections++].port = remote.port;
	}
	for (int i = 0; i < owned; i++) {
		if (same_address(&own[i], &local))
			open_subflows(token, &own[i], &remote, wanted - 1);
		else if (mesh && own[i].family == remote.family)
			open_subflows(token, &own[i], &remote, wanted);
	}
}

static void on_announced(const struct nlattr **table)
{
	uint32_t token = number(table[MPTCP_ATTR_TOKEN]);
	struct end remote;

	if (!mesh || !read_end(&remote, table[MPTCP_ATTR_DADDR4], table[MPTCP_ATTR_DADDR6], table[MPTCP_ATTR_DPORT]))
		return;
	for (int c = 0; c < connections; c++) {
		if (opened[c].token != token)
			continue;
		if (!remote.port)
			remote.port = opened[c].port;
		for (int i = 0; i < owned; i++)
			if (own[i].family == remote.family)
				open_subflows(token, &own[i], &remote, wanted);
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
	fprintf(log_file, " %llu %llu\n", (unsigned long long)number(table[MPTCP_ATTR_ERROR]),
		(unsigned long long)number(table[MPTCP_ATTR_REM_ID]));
	if (wanted && head->cmd == MPTCP_EVENT_ESTABLISHED && !server_side(table))
		on_established(table);
	if (wanted && head->cmd == MPTCP_EVENT_ANNOUNCED)
		on_announced(table);
}

int paths_main(int count, char **argument)
{
	struct request request;
	struct pollfd polled[] = {
		{ .fd = netlink_open(NETLINK_GENERIC), .events = POLLIN },
		{ .fd = closed_open(), .events = POLLIN },
	};
	int events = polled[0].fd;

	stop_on_signal();
	commands = netlink_open(NETLINK_GENERIC);
	log_file = open_lines(need_option(count, argument, "log"));
	wanted = number_option(count, argument, "subflows", 0);
	mesh = number_option(count, argument, "mesh", 0);
	read_own(strdup(text_option(count, argument, "own", "")));
	request_generic(&request, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1);
	request_attribute(&request, CTRL_ATTR_FAMILY_NAME, MPTCP_PM_NAME, sizeof(MPTCP_PM_NAME));
	if (netlink_ask(commands, &request, each_family) || !group)
		die("this kernel has no MPTCP path managers");
	if (setsockopt(events, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)))
		die("path manager events: %s", strerror(errno));
	while (!stopped) {
		netlink_hear(events, each_event);
		closed_hear(polled[1].fd, log_file);
		wait_for_any(polled, 2, NEVER);
	}
	closed_hear(polled[1].fd, log_file);
	closed_dump(log_file);
	return 0;
}
