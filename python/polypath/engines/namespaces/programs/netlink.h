/* A little netlink: requests, dumps, attributes. */
#ifndef POLYPATH_NETLINK_H
#define POLYPATH_NETLINK_H

#include "guest.h"

#include <linux/netlink.h>

#define NETLINK_ROOM (1 << 16)

struct request {
	struct nlmsghdr header;
	uint8_t body[2048];
};

int netlink_open(int protocol);
void request_begin(struct request *request, uint16_t type, uint16_t flags, const void *head, size_t length);
void request_attribute(struct request *request, uint16_t type, const void *value, size_t length);
struct nlattr *request_nest(struct request *request, uint16_t type);
void request_nest_end(struct request *request, struct nlattr *nest);

/* Sends the request and hands each message of the answer to `each`; returns 0 or an errno. */
int netlink_ask(int descriptor, struct request *request, void (*each)(const struct nlmsghdr *message));
/* Hands each message that waits to `each`. */
void netlink_hear(int descriptor, void (*each)(const struct nlmsghdr *message));

/* The attributes in `length` bytes by type, 0 to most; missing ones are NULL. */
void attributes(const struct nlattr **table, int most, const void *first, size_t length);
static inline const void *attribute_value(const struct nlattr *attribute)
{
	return (const uint8_t *)attribute + NLA_HDRLEN;
}
static inline size_t attribute_length(const struct nlattr *attribute)
{
	return attribute->nla_len - NLA_HDRLEN;
}

#endif
