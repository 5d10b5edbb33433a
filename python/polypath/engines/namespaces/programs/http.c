/* Heads of HTTP/1.1 messages (RFC 9112). */

#define _GNU_SOURCE
#include "http.h"

#include <stdlib.h>
#include <string.h>

/* Of a request, its path included. */
#define LONGEST_HEAD 16384
#define END "\r\n\r\n"

void http_configure(struct http *http, int count, char **argument)
{
	http->request = hex_option(count, argument, "request_head");
	http->response = hex_option(count, argument, "response_head");
	if (!http->request || !http->response || !strchr(http->request, '{') || !strchr(http->response, '{') ||
	    !strchr(http->request, '}') || !strchr(http->response, '}'))
		die("this work needs templates of heads");
	http->text = allocate(LONGEST_HEAD + 1);
}

static char *filled(const char *template, const char *value)
{
	int before = strchr(template, '{') - template;
	char *text;

	if (asprintf(&text, "%.*s%s%s", before, template, value, strchr(template, '}') + 1) < 0)
		die("no memory");
	return text;
}

char *http_request(const struct http *http, const char *path)
{
	return filled(http->request, path);
}

char *http_response(const struct http *http, uint64_t size)
{
	char digits[32];

	snprintf(digits, sizeof(digits), "%llu", (unsigned long long)size);
	return filled(http->response, digits);
}

/* The path in a whole head, which is cut for it; NULL: the head is not what a client sends. */
static char *path_of(struct http *http)
{
	size_t before = strchr(http->request, '{') - http->request;
	const char *after = strchr(http->request, '}') + 1;
	size_t rest = strlen(after);

	if (http->length < before + rest || memchr(http->text, 0, http->length) ||
	    memcmp(http->text, http->request, before) ||
	    memcmp(http->text + http->length - rest, after, rest))
		return NULL;
	http->text[http->length - rest] = 0;
	return http->text + before;
}

bool http_read(struct http *http, const uint8_t *bytes, size_t length, bool (*asked)(void *of, const char *path), void *of)
{
	for (size_t i = 0; i < length; i++) {
		const char *path;

		if (http->length == LONGEST_HEAD)
			return false;
		http->text[http->length++] = bytes[i];
		if (http->length < strlen(END) || memcmp(http->text + http->length - strlen(END), END, strlen(END)))
			continue;
		path = path_of(http);
		http->length = 0;
		if (!path || strlen(path) != strcspn(path, " \r\n") || !asked(of, path))
			return false;
	}
	return true;
}
