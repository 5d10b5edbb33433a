/* The bytes of an application stream as a function of their offset, as crates/wire/src/payload.rs has them. */

#include "guest.h"

#include <stdlib.h>
#include <string.h>

#define WORD 8

static uint64_t word(uint64_t stream, uint64_t index)
{
	uint64_t x = stream ^ (index * 0x9e3779b97f4a7c15ULL);

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	x ^= x >> 31;
	return (x & 0x0f0f0f0f0f0f0f0fULL) + 0x6161616161616161ULL;
}

void payload_fill(uint64_t stream, uint64_t offset, uint8_t *out, size_t length)
{
	while (length) {
		uint64_t value = word(stream, offset / WORD);
		size_t skip = offset % WORD;
		size_t part = length < WORD - skip ? length : WORD - skip;

		memcpy(out, (uint8_t *)&value + skip, part);
		out += part;
		offset += part;
		length -= part;
	}
}

struct message {
	struct message *next;
	uint64_t begin;
	size_t length;
	char head[];
};

void content_set(struct content *content, uint64_t stream)
{
	memset(content, 0, sizeof(*content));
	content->stream = stream;
}

void content_message(struct content *content, const char *head, uint64_t body)
{
	size_t length = strlen(head);
	struct message *message = allocate(sizeof(*message) + length);

	message->begin = content->end;
	message->length = length;
	memcpy(message->head, head, length);
	if (content->first)
		content->last->next = message;
	else
		content->first = message;
	content->last = message;
	content->end += length + body;
}

void content_repeat(struct content *content, char *head, uint64_t period)
{
	if (strlen(head) > period)
		die("a head is longer than its message");
	content->head = head;
	content->period = period;
}

/* Whether the first message's head lies before the offset. */
static bool passed(const struct content *content, uint64_t offset)
{
	return content->first && content->first->begin + content->first->length <= offset;
}

static void put_head(const struct message *message, uint64_t offset, uint8_t *out, size_t length)
{
	uint64_t from = message->begin > offset ? message->begin : offset;
	uint64_t to = message->begin + message->length;

	if (to > offset + length)
		to = offset + length;
	if (from < to)
		memcpy(out + (from - offset), message->head + (from - message->begin), to - from);
}

void content_fill(struct content *content, uint64_t offset, uint8_t *out, size_t length)
{
	payload_fill(content->stream, offset, out, length);
	while (content->period && content->end < offset + length)
		content_message(content, content->head, content->period - strlen(content->head));
	while (passed(content, offset)) {
		struct message *message = content->first;

		content->first = message->next;
		free(message);
	}
	for (const struct message *each = content->first; each && each->begin < offset + length; each = each->next)
		put_head(each, offset, out, length);
}

bool content_check(struct content *content, uint64_t offset, const uint8_t *bytes, size_t length)
{
	uint8_t expected[4096];

	while (length) {
		size_t part = length < sizeof(expected) ? length : sizeof(expected);

		content_fill(content, offset, expected, part);
		if (memcmp(expected, bytes, part))
			return false;
		bytes += part;
		offset += part;
		length -= part;
	}
	return true;
}
