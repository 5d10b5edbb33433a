/* The bytes of an application stream as a function of their offset, as crates/wire/src/payload.rs has them. */

#include "guest.h"

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

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void content_set(struct content *content, uint64_t stream, const char *head, uint64_t period)
{
	content->stream = stream;
	content->head_length = 0;
	content->period = period;
	for (; *head; head += 2) {
		if (digit(head[0]) < 0 || digit(head[1]) < 0 || content->head_length == sizeof(content->head))
			die("a head is no hexadecimal text of at most %zu bytes", sizeof(content->head));
		content->head[content->head_length++] = digit(head[0]) << 4 | digit(head[1]);
	}
	if (content->head_length > period)
		die("a head is longer than its message");
}

void content_fill(const struct content *content, uint64_t offset, uint8_t *out, size_t length)
{
	payload_fill(content->stream, offset, out, length);
	for (size_t at = 0; content->head_length && at < length;) {
		uint64_t place = (offset + at) % content->period;
		size_t part = length - at;

		if (place >= content->head_length) {
			if (content->period - place >= part)
				break;
			at += content->period - place;
			continue;
		}
		if (part > content->head_length - place)
			part = content->head_length - place;
		memcpy(out + at, content->head + place, part);
		at += part;
	}
}

bool content_check(const struct content *content, uint64_t offset, const uint8_t *bytes, size_t length)
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
