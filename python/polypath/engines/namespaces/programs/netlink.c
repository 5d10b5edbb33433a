/* A little netlink: requests, dumps, attributes. */

#define _GNU_SOURCE
#include "netlink.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int netlink_open(int protocol)
{
	int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	struct sockaddr_nl address = { .nl_family = AF_NETLINK };
	int room = 1 << 23;

	/* a multicast passes by a socket that has no port yet */
	if (descriptor < 0 || bind(descriptor, (struct sockaddr *)&address, sizeof(address)))
		die("netlink: %s", strerror(errno));
	setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	return descriptor;
}

void request_begin(struct request *request, uint16_t type, uint16_t flags, const void *head, size_t length)
{
	memset(request, 0, sizeof(*request));
	request->header.nlmsg_type = type;
	request->header.nlmsg_flags = NLM_F_REQUEST | flags;
	memcpy(request->body, head, length);
	request->header.nlmsg_len = NLMSG_LENGTH(length);
}

static struct nlattr *append(struct request *request, uint16_t type, size_t length)
{
	size_t at = NLMSG_ALIGN(request->header.nlmsg_len);
	struct nlattr *attribute = (struct nlattr *)((uint8_t *)request + at);

	if (at + NLA_ALIGN(NLA_HDRLEN + length) > sizeof(*request))
		die("a netlink request is too long");
	attribute->nla_type = type;
	attribute->nla_len = NLA_HDRLEN + length;
	request->header.nlmsg_len = at + NLA_ALIGN(attribute->nla_len);
	return attribute;
}

void request_attribute(struct request *request, uint16_t type, const void *value, size_t length)
{
	memcpy((uint8_t *)append(request, type, length) + NLA_HDRLEN, value, length);
}

struct nlattr *request_nest(struct request *request, uint16_t type)
{
	return append(request, type | NLA_F_NESTED, 0);
}

void request_nest_end(struct request *request, struct nlattr *nest)
{
	nest->nla_len = (uint8_t *)request + request->header.nlmsg_len - (uint8_t *)nest;
}

int netlink_ask(int descriptor, struct request *request, void (*each)(const struct nlmsghdr *message))
{
	static uint8_t buffer[NETLINK_ROOM] __attribute__((aligned(8)));
	static uint32_t sequence;

	request->header.nlmsg_flags |= NLM_F_ACK;
	request->header.nlmsg_seq = ++sequence;
	if (send(descriptor, request, request->header.nlmsg_len, 0) < 0)
		return errno;
	for (;;) {
		ssize_t length = recv(descriptor, buffer, sizeof(buffer), 0);

		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0)
			return errno;
		for (struct nlmsghdr *message = (struct nlmsghdr *)buffer; NLMSG_OK(message, length);
		     message = NLMSG_NEXT(message, length)) {
			if (message->nlmsg_seq != request->header.nlmsg_seq)
				continue;
			if (message->nlmsg_type == NLMSG_DONE)
				return 0;
			if (message->nlmsg_type == NLMSG_ERROR)
				return -((struct nlmsgerr *)NLMSG_DATA(message))->error;
			each(message);
		}
	}
}

void netlink_hear(int descriptor, void (*each)(const struct nlmsghdr *message))
{
	/* of its own: `each` may ask */
	static uint8_t buffer[NETLINK_ROOM] __attribute__((aligned(8)));
	ssize_t length;

	while ((length = recv(descriptor, buffer, sizeof(buffer), MSG_DONTWAIT)) > 0)
		for (struct nlmsghdr *message = (struct nlmsghdr *)buffer; NLMSG_OK(message, length);
		     message = NLMSG_NEXT(message, length))
			each(message);
}

void attributes(const struct nlattr **table, int most, const void *first, size_t length)
{
	const uint8_t *at = first;

	memset(table, 0, (most + 1) * sizeof(*table));
	while (length >= NLA_HDRLEN) {
		const struct nlattr *attribute = (const struct nlattr *)at;
		size_t step = NLA_ALIGN(attribute->nla_len);
		int type = attribute->nla_type & NLA_TYPE_MASK;

		if (attribute->nla_len < NLA_HDRLEN || attribute->nla_len > length)
			return;
		if (type <= most)
			table[type] = attribute;
		at += step;
		length = step < length ? length - step : 0;
	}
}
