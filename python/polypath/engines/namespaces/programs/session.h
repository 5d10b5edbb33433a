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
	/* when the application wants to be called without anything having happened */
	int64_t wake;
	/* where requests are recorded */
	FILE *log;

	void (*run)(struct session *session, int64_t now);

	/* duration and size: below 0 without a limit; back, which the other end of a transfer sends: below 0 without any */
	int64_t start, duration, size, back, interval, think;
	uint64_t block, rate, count, request, response;
	/* a handshake before the first request, and what the client sends along with that */
	uint64_t hello[2], hello_answer[2], parting;
	unsigned hellos;
	bool reverse;

	/* state of the application */
	bool begun, waiting;
	int64_t began_at, next_at, sent_at;
	uint64_t blocks, requests, answers, got;
	unsigned step;
	int64_t answer_at[1024];
	unsigned first_answer;
};

/* Chooses `run` by the work's name and reads its settings. */
void session_configure(struct session *session, int count, char **argument);

#endif
