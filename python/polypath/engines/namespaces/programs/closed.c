/* What TCP sockets counted that no application has any more: a subflow that its connection closes goes on until its bytes are
 * acknowledged. A line T: time, local and remote address and port, state, bytes sent, received and retransmitted (TCP_INFO).
 */

#define _GNU_SOURCE
#include "closed.h"
#include "netlink.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <string.h>

static FILE *log_file;

static void put_end(uint8_t family, const __be32 *address, __be16 port)
{
	char text[INET6_ADDRSTRLEN];

	address_text(family, address, text);
	fprintf(log_file, " %s %u", text, ntohs(port));
}

static void each_socket(const struct nlmsghdr *message)
{
	const struct inet_diag_msg *head = NLMSG_DATA(message);
	const struct nlattr *table[INET_DIAG_MAX + 1];
	struct tcp_info info = { 0 };
	size_t length;

	if (message->nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return;
	attributes(table, INET_DIAG_MAX, (const uint8_t *)head + NLMSG_ALIGN(sizeof(*head)),
		   message->nlmsg_len - NLMSG_LENGTH(sizeof(*head)));
	if (!table[INET_DIAG_INFO] || !head->id.idiag_dport)
		return;
	length = attribute_length(table[INET_DIAG_INFO]);
	memcpy(&info, attribute_value(table[INET_DIAG_INFO]), length < sizeof(info) ? length : sizeof(info));
	fprintf(log_file, "T %lld", (long long)now_ns());
	put_end(head->idiag_family, head->id.idiag_src, head->id.idiag_sport);
	put_end(head->idiag_family, head->id.idiag_dst, head->id.idiag_dport);
	fprintf(log_file, " %u %llu %llu %llu\n", info.tcpi_state, (unsigned long long)info.tcpi_bytes_sent,
		(unsigned long long)info.tcpi_bytes_received, (unsigned long long)info.tcpi_bytes_retrans);
}

int closed_open(void)
{
	static const uint32_t groups[] = { SKNLGRP_INET_TCP_DESTROY, SKNLGRP_INET6_TCP_DESTROY };
	int descriptor = netlink_open(NETLINK_SOCK_DIAG);

	/* a kernel without it tells less */
	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
		setsockopt(descriptor, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &groups[i], sizeof(groups[i]));
	return descriptor;
}

void closed_hear(int descriptor, FILE *log)
{
	log_file = log;
	netlink_hear(descriptor, each_socket);
}

void closed_dump(FILE *log)
{
	static const uint8_t families[] = { AF_INET, AF_INET6 };
	int descriptor = netlink_open(NETLINK_SOCK_DIAG);

	log_file = log;
	for (size_t i = 0; i < sizeof(families); i++) {
		struct inet_diag_req_v2 head = {
			.sdiag_family = families[i],
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_ext = 1 << (INET_DIAG_INFO - 1),
			.idiag_states = ~0u,
		};
		struct request request;

		request_begin(&request, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, &head, sizeof(head));
		netlink_ask(descriptor, &request, each_socket);
	}
}
