/* Adaptive video over HTTP/1.1: the client asks for one segment after the other, /REPRESENTATION/NUMBER, each in the
 * representation that its rule chooses (crates/lab/src/application/video/mod.rs).
 */

#define _GNU_SOURCE
#include "http.h"
#include "player.h"
#include "session.h"

#include <stdlib.h>
#include <string.h>

struct video {
	struct http http;
	struct player player;
	/* that the server was asked for */
	uint64_t asked;
};

static char *path_of(size_t representation, uint64_t number)
{
	char *path;

	if (asprintf(&path, "/%zu/%llu", representation, (unsigned long long)number) < 0)
		die("no memory");
	return path;
}

static void client(struct session *session, int64_t now)
{
	struct video *video = session->state;
	bool waited = session->waiting;
	const struct chunk *next;
	char *path;

	if (!session_answered(session, now))
		return;
	if (waited)
		player_arrived(&video->player, now);
	next = player_next(&video->player, now, &session->wake);
	if (!next) {
		session->closing = session->wake == NEVER;
		return;
	}
	path = path_of(next->representation, video->player.chunks - 1);
	session_ask(session, now, http_request(&video->http, path), http_response(&video->http, next->bytes), next->bytes);
	free(path);
}

/* The server knows from the path which segment is asked for. */
static bool asked(void *of, const char *path)
{
	struct session *session = of;
	struct video *video = session->state;
	size_t representation = strtoull(path + 1, NULL, 10);
	char *expected = path_of(representation, video->asked++);
	bool known = representation < video->player.rule.rates && !strcmp(path, expected);
	uint64_t bytes;

	free(expected);
	if (!known)
		return false;
	bytes = player_bytes(&video->player, representation);
	session_write(session, http_response(&video->http, bytes), bytes);
	return true;
}

static bool take(struct session *session, const uint8_t *bytes, size_t length, int64_t now)
{
	struct video *video = session->state;

	(void)now;
	return http_read(&video->http, bytes, length, asked, session);
}

static void server(struct session *session, int64_t now)
{
	(void)now;
	session_close_when_peer_did(session);
}

void video_configure(struct session *session, int count, char **argument)
{
	struct video *video = session->state = allocate(sizeof(*video));

	http_configure(&video->http, count, argument);
	player_configure(&video->player, count, argument);
	video->player.log = session->log;
	session->run = session->server ? server : client;
	if (session->server)
		session->take = take;
}
