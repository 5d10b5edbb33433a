/* The bytes of an application stream as a function of their offset, as crates/wire/src/payload.rs has them. */

#include "guest.h"

#include <string.h>

#define WORD 8

static uint64_t word(uint64_t stream, uint64_t index)
{
	uint64_t x = stream ^ (index * 0x9e3779b97f4a7c15ULL);

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
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

bool payload_check(uint64_t stream, uint64_t offset, const uint8_t *bytes, size_t length)
{
	uint8_t expected[4096];

	while (length) {
		size_t part = length < sizeof(expected) ? length : sizeof(expected);

		payload_fill(stream, offset, expected, part);
		if (memcmp(expected, bytes, part))
			return false;
		bytes += part;
		offset += part;
		length -= part;
	}
	return true;
}
