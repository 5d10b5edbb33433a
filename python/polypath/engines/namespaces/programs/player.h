/* The buffer of a player of video. */
#ifndef POLYPATH_PLAYER_H
#define POLYPATH_PLAYER_H

#include "rule.h"

/* A segment that was asked for; times that are not settled are below 0. */
struct chunk {
	int64_t asked, arrived, played;
	size_t representation;
	/* of the segment, without heads */
	uint64_t bytes;
	/* what was there to play when it was asked for */
	uint64_t buffered;
};

struct player {
	struct rule rule;
	/* times in ns; segments: UINT64_MAX without an end */
	uint64_t segment, segments, buffer, startup;
	FILE *log;

	/* all but the last one came; the last one may be on its way */
	struct chunk *chunk;
	/* in bit/s, of those that came */
	double *measured;
	size_t chunks, room;
	/* so many have their time */
	size_t settled;
	/* when what is settled will have been played */
	int64_t plays_until;
};

void player_configure(struct player *player, int count, char **argument);
/* Bytes of a segment. */
uint64_t player_bytes(const struct player *player, size_t representation);
/* Asks for the next segment and returns it; NULL: not now. Then `wake` is when there is room for it, or NEVER: there is none. */
const struct chunk *player_next(struct player *player, int64_t now, int64_t *wake);
/* The segment that was asked for is there. */
void player_arrived(struct player *player, int64_t now);

#endif
