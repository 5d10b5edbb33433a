/* HTTP/1.1 as far as an application needs it: heads, and the requests that a server reads. */
#ifndef POLYPATH_HTTP_H
#define POLYPATH_HTTP_H

#include "guest.h"

/* Templates of the heads, with braces around the name of what varies: a path, a size. */
struct http {
	char *request, *response;
	/* what came of a request whose head is not whole */
	char *text;
	size_t length;
};

void http_configure(struct http *http, int count, char **argument);
/* The head of a request for a path and that of the answer; the caller frees them. */
char *http_request(const struct http *http, const char *path);
char *http_response(const struct http *http, uint64_t size);
/* Reads requests, byte by byte what the client should have sent, and calls `asked` with the path of each. False: they are none, or
 * `asked` said so.
 */
bool http_read(struct http *http, const uint8_t *bytes, size_t length, bool (*asked)(void *of, const char *path), void *of);

#endif
