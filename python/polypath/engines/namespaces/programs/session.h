/* What an application does with its connection, apart from sockets. */
#ifndef POLYPATH_SESSION_H
#define POLYPATH_SESSION_H

#include "guest.h"

/* One end of a connection as an application sees it. */
struct session {
	bool server;
	/* bytes to write that the socket has not taken */
	uint64_t pending;
	uint64_t sent;
	uint64_t received;
	/* received since the application last looked */
	uint64_t arrived;
	/* the peer has closed its direction */
	bool at_end;
	/* nothing will be written any more */
	bool closing;
	/* the connection is to end at once */
	bool aborted;
	/* when the application wants to be called without anything having happened */
	int64_t wake;
	/* another session of the process has news for this one */
	bool roused;
	/* where requests are recorded */
	FILE *log;
	/* what this end sends, and the other */
	struct content own, peers;

	/* called once the connection is established, when bytes arrived, at the peer's end, at `wake`, and when roused */
	void (*run)(struct session *session, int64_t now);
	/* whether these bytes, which arrived, are what the peer sends; NULL: `peers` tells */
	bool (*take)(struct session *session, const uint8_t *bytes, size_t length, int64_t now);

	/* duration and size: below 0 without a limit; back, which the other end of a transfer sends: below 0 without any */
	int64_t start, duration, size, back, interval, think;
	/* what an end of a transfer sends before it pauses, and how long: 0 for no pause */
	uint64_t first;
	int64_t pause;
	uint64_t block, rate, count, request, response;
	/* a handshake before the first request, and what the client sends along with that */
	uint64_t hello[2], hello_answer[2], parting;
	unsigned hellos;
	bool reverse, abort;

	/* state of the application */
	bool begun, waiting, paused;
	int64_t began_at, next_at, sent_at;
	uint64_t blocks, requests, answers, got;
	unsigned step;
	int64_t answer_at[1024];
	unsigned first_answer;
	/* of the works that have one: video, page */
	void *state;
};

/* Chooses `run` by the work's name and reads its settings. */
void session_configure(struct session *session, int count, char **argument);

/* Sends a message that begins with this head, which is freed. */
void session_write(struct session *session, char *head, uint64_t body);
/* Sends a request; the answer has so many bytes. */
void session_ask(struct session *session, int64_t now, char *head, char *answer_head, uint64_t body);
/* Takes the answer's bytes; true: it is whole, or none is waited for. */
bool session_answered(struct session *session, int64_t now);
/* The peer closed its direction: so does this end. */
void session_close_when_peer_did(struct session *session);
/* The run is over. */
void session_end(struct session *session);

/* Works with files of their own. */
void video_configure(struct session *session, int count, char **argument);
void page_configure(struct session *session, int count, char **argument);

#endif
