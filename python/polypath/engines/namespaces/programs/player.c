/* What a player's buffer holds, when it plays, when it stands still: the same steps as the simulator's
 * (crates/lab/src/application/video/player.rs).
 *
 * The log's lines V, of which the last one of a segment counts: its number, when it was asked for, when it came, its representation, rate
 * and bytes, what was there to play, when it is played.
 */

#include "player.h"

#include <stdlib.h>
#include <string.h>

void player_configure(struct player *player, int count, char **argument)
{
	rule_configure(&player->rule, count, argument);
	player->segment = number_option(count, argument, "segment", 0);
	player->segments = number_option(count, argument, "segments", -1);
	player->buffer = number_option(count, argument, "buffer", 0);
	player->startup = number_option(count, argument, "startup", 0);
	if (!player->segment)
		die("a segment of a video needs a length");
}

static void tell(const struct player *player, size_t number)
{
	const struct chunk *chunk = &player->chunk[number];

	fprintf(player->log, "V %zu %lld %lld %zu %llu %llu %llu %lld\n", number, (long long)chunk->asked,
		(long long)chunk->arrived, chunk->representation,
		(unsigned long long)player->rule.rate[chunk->representation], (unsigned long long)chunk->bytes,
		(unsigned long long)chunk->buffered, (long long)chunk->played);
}

/* Of segments that came and have no time yet. */
static uint64_t waiting(const struct player *player)
{
	return (player->chunks - player->settled) * player->segment;
}

static uint64_t buffered(const struct player *player, int64_t now)
{
	int64_t playing = player->settled ? player->plays_until - now : 0;

	return (playing > 0 ? playing : 0) + waiting(player);
}

uint64_t player_bytes(const struct player *player, size_t representation)
{
	unsigned __int128 scaled = (unsigned __int128)player->rule.rate[representation] * player->segment;
	uint64_t bits = scaled / SECOND, bytes = bits / 8 + !!(bits % 8);

	return bytes ? bytes : 1;
}

static struct chunk *another(struct player *player)
{
	if (player->chunks == player->room) {
		player->room = player->room ? 2 * player->room : 64;
		player->chunk = realloc(player->chunk, player->room * sizeof(*player->chunk));
		player->measured = realloc(player->measured, player->room * sizeof(*player->measured));
		if (!player->chunk || !player->measured)
			die("no memory");
	}
	return &player->chunk[player->chunks++];
}

const struct chunk *player_next(struct player *player, int64_t now, int64_t *wake)
{
	uint64_t held = buffered(player, now);
	uint64_t room = player->buffer > player->segment ? player->buffer - player->segment : 0;
	size_t came = player->chunks, last = came ? player->chunk[came - 1].representation : 0, chosen;
	struct chunk *chunk;

	*wake = NEVER;
	if (came >= player->segments)
		return NULL;
	if (held > room) {
		*wake = now + (int64_t)(held - room);
		return NULL;
	}
	chosen = rule_choose(&player->rule, player->measured, came, last, held);
	chunk = another(player);
	*chunk = (struct chunk){
		.asked = now,
		.arrived = -1,
		.played = -1,
		.representation = chosen,
		.bytes = player_bytes(player, chosen),
		.buffered = held,
	};
	tell(player, came);
	return chunk;
}

/* Whether pictures are shown, or the last one just was. */
static bool plays(const struct player *player, int64_t now)
{
	return player->settled && player->plays_until >= now;
}

/* Whether enough is there to begin, or to go on after a stall: no more fits, or no more comes. */
static bool may_begin(const struct player *player)
{
	uint64_t held = waiting(player);

	return held >= player->startup || held + player->segment > player->buffer || player->chunks == player->segments;
}

void player_arrived(struct player *player, int64_t now)
{
	size_t number = player->chunks - 1;
	struct chunk *chunk = &player->chunk[number];
	int64_t took = now > chunk->asked ? now - chunk->asked : 1;

	chunk->arrived = now;
	player->measured[number] = (double)chunk->bytes * 8.0 * (double)SECOND / (double)took;
	if (!plays(player, now)) {
		if (!may_begin(player)) {
			tell(player, number);
			return;
		}
		player->plays_until = now;
	}
	for (; player->settled < player->chunks; player->settled++) {
		player->chunk[player->settled].played = player->plays_until;
		player->plays_until += (int64_t)player->segment;
		tell(player, player->settled);
	}
}
