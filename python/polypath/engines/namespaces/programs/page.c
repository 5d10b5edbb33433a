/* A web page: its objects are asked for as soon as those that they depend on have come, one at a time on each of the process's connections
 * (crates/lab/src/application/page.rs).
 *
 * The file objects= has a line for each object: bytes, the server's time in ns, path, and the places of objects that it depends on. The
 * log's lines B, of which the last one of an object counts: its place, its bytes, when it was asked for, when it came.
 */

#define _GNU_SOURCE
#include "http.h"
#include "session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct object {
	char *path;
	uint64_t bytes;
	int64_t think;
	/* how many that it depends on have not come */
	size_t missing;
	/* objects that depend on it */
	size_t *dependent;
	size_t dependents;
	/* it can be asked for */
	bool ready;
};

/* How far the page is, which all of its connections see. */
static struct {
	struct object *object;
	size_t objects, unasked;
	/* none before this one is ready */
	size_t first;
} load;

struct browser {
	struct session *session;
	struct http http;
	/* what is under way; of the server: what is due at `due` */
	const struct object *object;
	int64_t due;
	/* it has nothing to ask for */
	bool idle;
	struct browser *next;
};

static struct browser *browsers;

static void depend(size_t object, size_t on)
{
	struct object *needed = &load.object[on];

	if (on >= object)
		die("object %zu depends on the later one %zu", object, on);
	needed->dependent = realloc(needed->dependent, (needed->dependents + 1) * sizeof(size_t));
	if (!needed->dependent)
		die("no memory");
	needed->dependent[needed->dependents++] = object;
	load.object[object].missing++;
}

static void read_object(char *line)
{
	size_t number = load.objects++;
	struct object *object;
	const char *word;

	load.object = realloc(load.object, load.objects * sizeof(*load.object));
	if (!load.object)
		die("no memory");
	object = &load.object[number];
	memset(object, 0, sizeof(*object));
	object->bytes = strtoull(strtok(line, " "), NULL, 10);
	object->think = strtoll(strtok(NULL, " "), NULL, 10);
	object->path = strdup(strtok(NULL, " "));
	while ((word = strtok(NULL, " ")))
		depend(number, strtoull(word, NULL, 10));
	object->ready = !object->missing;
}

static void read_objects(const char *name)
{
	FILE *file = fopen(name, "re");
	char *line = NULL;
	size_t room = 0;

	if (!file)
		die("%s: %s", name, strerror(errno));
	while (getline(&line, &room, file) > 0) {
		line[strcspn(line, "\n")] = 0;
		read_object(line);
	}
	free(line);
	fclose(file);
	load.unasked = load.objects;
}

static struct object *next_ready(void)
{
	while (load.first < load.objects && !load.object[load.first].ready)
		load.first++;
	return load.first < load.objects ? &load.object[load.first] : NULL;
}

static void tell(const struct session *session, const struct object *object, int64_t arrived)
{
	fprintf(session->log, "B %zu %llu %lld %lld\n", (size_t)(object - load.object), (unsigned long long)object->bytes,
		(long long)session->sent_at, (long long)arrived);
}

static void object_arrived(const struct object *object)
{
	for (size_t i = 0; i < object->dependents; i++) {
		size_t number = object->dependent[i];

		if (--load.object[number].missing)
			continue;
		load.object[number].ready = true;
		if (number < load.first)
			load.first = number;
	}
	for (struct browser *each = browsers; each; each = each->next) {
		each->session->roused |= each->idle;
		each->idle = false;
	}
}

static void client(struct session *session, int64_t now)
{
	struct browser *browser = session->state;
	struct object *object;

	if (!session_answered(session, now))
		return;
	if (browser->object) {
		tell(session, browser->object, now);
		object_arrived(browser->object);
		browser->object = NULL;
	}
	object = next_ready();
	if (object) {
		object->ready = false;
		load.unasked--;
		browser->object = object;
		session_ask(session, now, http_request(&browser->http, object->path),
			    http_response(&browser->http, object->bytes), object->bytes);
		tell(session, object, -1);
	} else if (!load.unasked) {
		session->closing = true;
	} else {
		browser->idle = true;
	}
}

static bool asked(void *of, const char *path)
{
	struct browser *browser = of;

	/* one at a time on each connection */
	for (size_t i = 0; !browser->object && i < load.objects; i++) {
		if (strcmp(load.object[i].path, path))
			continue;
		browser->object = &load.object[i];
		browser->due += load.object[i].think;
		return true;
	}
	return false;
}

static bool take(struct session *session, const uint8_t *bytes, size_t length, int64_t now)
{
	struct browser *browser = session->state;

	if (!browser->object)
		browser->due = now;
	return http_read(&browser->http, bytes, length, asked, browser);
}

static void server(struct session *session, int64_t now)
{
	struct browser *browser = session->state;

	session->wake = NEVER;
	if (!browser->object) {
		session_close_when_peer_did(session);
	} else if (now < browser->due) {
		session->wake = browser->due;
	} else {
		session_write(session, http_response(&browser->http, browser->object->bytes), browser->object->bytes);
		browser->object = NULL;
		session_close_when_peer_did(session);
	}
}

void page_configure(struct session *session, int count, char **argument)
{
	struct browser *browser = session->state = allocate(sizeof(*browser));

	http_configure(&browser->http, count, argument);
	if (!load.objects)
		read_objects(need_option(count, argument, "objects"));
	browser->session = session;
	browser->next = browsers;
	browsers = browser;
	session->run = session->server ? server : client;
	if (session->server)
		session->take = take;
}
