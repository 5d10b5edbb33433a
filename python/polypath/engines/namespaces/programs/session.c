/* The applications: the same steps as the simulator's (crates/lab/src/application). */

#include "session.h"

#include <stdlib.h>
#include <string.h>

static void write_more(struct session *session, uint64_t bytes)
{
	session->pending += bytes;
}

void session_close_when_peer_did(struct session *session)
{
	if (session->at_end)
		session->closing = true;
}

/* What an end of a transfer sends: `first`, a pause and the rest, or all at once. Size: below 0 without a limit. */
static void feed(struct session *session, int64_t now, int64_t size)
{
	uint64_t bytes = size < 0 ? UINT64_MAX / 2 : (uint64_t)size;
	uint64_t first = bytes < session->first ? bytes : session->first;

	if (!session->begun && session->pause) {
		write_more(session, first);
		session->wake = now + session->pause;
		session->paused = true;
	} else if (!session->begun || (session->paused && now >= session->wake)) {
		write_more(session, session->paused ? bytes - first : bytes);
		session->closing = size >= 0;
		session->wake = NEVER;
		session->paused = false;
	}
	session->begun = true;
}

static void bulk(struct session *session, int64_t now)
{
	int64_t ends = session->duration < 0 ? NEVER : session->start + session->duration;

	if (session->server != session->reverse) {
		if (session->back < 0)
			session_close_when_peer_did(session);
		else
			feed(session, now, session->back);
		return;
	}
	if (now < ends) {
		feed(session, now, session->size);
		session->wake = session->wake < ends ? session->wake : ends;
		return;
	}
	session->pending = 0;
	session->closing = true;
	session->aborted = session->abort;
	session->wake = NEVER;
}

static int64_t block_due(const struct session *session)
{
	unsigned __int128 bits = (unsigned __int128)session->blocks * session->block * 8;

	return session->began_at + (int64_t)(bits * SECOND / session->rate);
}

static void stream(struct session *session, int64_t now)
{
	int64_t ends = session->duration < 0 ? NEVER : session->start + session->duration;

	if (session->server != session->reverse) {
		session_close_when_peer_did(session);
		return;
	}
	if (!session->begun) {
		session->begun = true;
		session->began_at = now;
	}
	if (now >= ends) {
		session->pending = 0;
		session->closing = true;
		session->wake = NEVER;
		return;
	}
	while (now >= block_due(session)) {
		write_more(session, session->block);
		session->blocks++;
	}
	session->wake = block_due(session) < ends ? block_due(session) : ends;
}

static void ask(struct session *session, int64_t now, uint64_t bytes)
{
	session->sent_at = now;
	session->waiting = true;
	write_more(session, bytes);
}

/* Takes the answer's bytes; true when the client may go on. */
static bool answered(struct session *session, int64_t now, uint64_t bytes)
{
	if (!session->waiting)
		return true;
	session->got += session->arrived;
	if (session->got < bytes)
		return false;
	session->got -= bytes;
	session->waiting = false;
	session->requests++;
	fprintf(session->log, "R %lld %lld\n", (long long)session->sent_at, (long long)(now - session->sent_at));
	return true;
}

static void request_client(struct session *session, int64_t now)
{
	bool was_waiting = session->waiting;

	if (!answered(session, now, session->response))
		return;
	if (session->requests >= session->count) {
		session->closing = true;
		session->wake = NEVER;
		return;
	}
	if (was_waiting || !session->begun) {
		session->begun = true;
		session->next_at = now + session->interval;
	}
	session->wake = session->next_at;
	if (now >= session->next_at) {
		session->wake = NEVER;
		ask(session, now, session->request);
	}
}

#define ANSWERS (sizeof(((struct session *)0)->answer_at) / sizeof(int64_t))

static void request_server(struct session *session, int64_t now)
{
	session->got += session->arrived;
	while (session->got >= session->request && session->answers < ANSWERS) {
		session->got -= session->request;
		session->answer_at[(session->first_answer + session->answers++) % ANSWERS] = now + session->think;
	}
	while (session->answers && now >= session->answer_at[session->first_answer]) {
		session->first_answer = (session->first_answer + 1) % ANSWERS;
		session->answers--;
		write_more(session, session->response);
	}
	session->wake = session->answers ? session->answer_at[session->first_answer] : NEVER;
	if (!session->answers)
		session_close_when_peer_did(session);
}

static void request_response(struct session *session, int64_t now)
{
	(session->server ? request_server : request_client)(session, now);
}

/* What the client sends in this step, and what it waits for: the handshake's exchanges come before the requests. */
static uint64_t flight(const struct session *session)
{
	if (session->step < session->hellos)
		return session->hello[session->step];
	return session->request + (session->step == session->hellos ? session->parting : 0);
}

static uint64_t answer(const struct session *session)
{
	return session->step < session->hellos ? session->hello_answer[session->step] : session->response;
}

static void back_server(struct session *session)
{
	session->got += session->arrived;
	while (session->got >= flight(session)) {
		session->got -= flight(session);
		write_more(session, answer(session));
		session->step++;
	}
	session_close_when_peer_did(session);
}

/* Fetch and ping-pong: the next request follows the answer at once. The first one counts from the handshake's beginning. */
static void back_and_forth(struct session *session, int64_t now)
{
	int64_t ends = session->duration < 0 ? NEVER : session->start + session->duration;

	if (session->server) {
		back_server(session);
		return;
	}
	if (session->waiting && session->step < session->hellos) {
		session->got += session->arrived;
		if (session->got < answer(session))
			return;
		session->got -= answer(session);
		session->step++;
		write_more(session, flight(session));
		return;
	}
	if (session->waiting) {
		if (!answered(session, now, answer(session)))
			return;
		session->step++;
	}
	if (session->requests >= session->count || now >= ends)
		session->closing = true;
	else
		ask(session, now, flight(session));
}

void session_write(struct session *session, char *head, uint64_t body)
{
	content_message(&session->own, head, body);
	write_more(session, strlen(head) + body);
	free(head);
}

void session_ask(struct session *session, int64_t now, char *head, char *answer_head, uint64_t body)
{
	content_message(&session->peers, answer_head, body);
	session->response = strlen(answer_head) + body;
	free(answer_head);
	session->sent_at = now;
	session->waiting = true;
	session_write(session, head, 0);
}

bool session_answered(struct session *session, int64_t now)
{
	return answered(session, now, session->response);
}

void session_end(struct session *session)
{
	if (session->waiting)
		fprintf(session->log, "R %lld -1\n", (long long)session->sent_at);
}

/* The works whose messages all have the same head, or none. */
static void alike(struct session *session, int count, char **argument)
{
	char *request = hex_option(count, argument, "request_head"), *response = hex_option(count, argument, "response_head");

	if (request)
		content_repeat(session->server ? &session->peers : &session->own, request, session->request);
	if (response)
		content_repeat(session->server ? &session->own : &session->peers, response, session->response);
}

static const struct {
	const char *name;
	void (*run)(struct session *session, int64_t now);
	void (*configure)(struct session *session, int count, char **argument);
} works[] = {
	{ "bulk", bulk, alike },
	{ "stream", stream, alike },
	{ "request-response", request_response, alike },
	{ "back-and-forth", back_and_forth, alike },
	{ "video", NULL, video_configure },
	{ "page", NULL, page_configure },
};

void session_configure(struct session *session, int count, char **argument)
{
	const char *work = need_option(count, argument, "work");
	uint64_t stream = number_option(count, argument, "stream", 0);

	content_set(session->server ? &session->peers : &session->own, 2 * stream);
	content_set(session->server ? &session->own : &session->peers, 2 * stream + 1);
	session->wake = NEVER;
	session->start = number_option(count, argument, "start", 0);
	session->duration = number_option(count, argument, "duration", -1);
	session->interval = number_option(count, argument, "interval", 0);
	session->think = number_option(count, argument, "think", 0);
	session->size = number_option(count, argument, "size", -1);
	session->back = number_option(count, argument, "back", -1);
	session->first = number_option(count, argument, "first", 0);
	session->pause = number_option(count, argument, "pause", 0);
	session->block = number_option(count, argument, "block", 0);
	session->rate = number_option(count, argument, "rate", 1);
	session->count = number_option(count, argument, "count", INT64_MAX);
	session->request = number_option(count, argument, "request", 0);
	session->response = number_option(count, argument, "response", 0);
	session->reverse = number_option(count, argument, "reverse", 0);
	session->abort = number_option(count, argument, "abort", 0);
	session->parting = number_option(count, argument, "parting", 0);
	session->hello[0] = number_option(count, argument, "hello1", 0);
	session->hello_answer[0] = number_option(count, argument, "answer1", 0);
	session->hello[1] = number_option(count, argument, "hello2", 0);
	session->hello_answer[1] = number_option(count, argument, "answer2", 0);
	session->hellos = !!session->hello[0] + !!session->hello[1];
	for (size_t i = 0; i < sizeof(works) / sizeof(*works); i++) {
		if (strcmp(work, works[i].name))
			continue;
		session->run = works[i].run;
		works[i].configure(session, count, argument);
		return;
	}
	die("no work is called %s", work);
}
