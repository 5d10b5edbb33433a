/* Time, arguments, addresses. */

#define _GNU_SOURCE
#include "guest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define ORIGIN "POLYPATH_ORIGIN"
#define ORIGIN_REALTIME "POLYPATH_ORIGIN_REALTIME"

volatile bool stopped;
static int64_t origin, realtime;

void die(const char *format, ...)
{
	va_list list;

	fputs("guest: ", stderr);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fputc('\n', stderr);
	exit(1);
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * SECOND + time.tv_nsec;
}

static int64_t from_environment(const char *name)
{
	const char *text = getenv(name);

	return text ? strtoll(text, NULL, 10) : 0;
}

static void to_environment(const char *name, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	setenv(name, text, 1);
}

void load_origin(void)
{
	origin = from_environment(ORIGIN);
	realtime = from_environment(ORIGIN_REALTIME);
}

bool origin_given(void)
{
	return getenv(ORIGIN);
}

/* On a whole millisecond, as the clocks of TCP's timestamps and timers have it. */
void set_origin(int64_t in)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	in += MILLISECOND - (now + in) % MILLISECOND;
	take_origin(now + in, clock_ns(CLOCK_REALTIME) + in);
}

void take_origin(int64_t since, int64_t date)
{
	origin = since;
	realtime = date;
	to_environment(ORIGIN, origin);
	to_environment(ORIGIN_REALTIME, realtime);
}

int64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC) - origin;
}

int64_t origin_realtime(void)
{
	return realtime;
}

void enter_namespace(const char *name)
{
	char path[256];
	int file;

	snprintf(path, sizeof(path), "/run/netns/%s", name);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0 || setns(file, CLONE_NEWNET))
		die("namespace %s: %s", name, strerror(errno));
	close(file);
}

const char *text_option(int count, char **argument, const char *name, const char *otherwise)
{
	size_t length = strlen(name);

	for (int i = 0; i < count; i++)
		if (!strncmp(argument[i], name, length) && argument[i][length] == '=')
			return argument[i] + length + 1;
	return otherwise;
}

int64_t number_option(int count, char **argument, const char *name, int64_t otherwise)
{
	const char *text = text_option(count, argument, name, NULL);

	return text ? strtoll(text, NULL, 10) : otherwise;
}

const char *need_option(int count, char **argument, const char *name)
{
	const char *text = text_option(count, argument, name, NULL);

	if (!text)
		die("option %s= is missing", name);
	return text;
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *hex_option(int count, char **argument, const char *name)
{
	const char *hex = text_option(count, argument, name, NULL);
	char *text, *next;

	if (!hex)
		return NULL;
	next = text = allocate(strlen(hex) / 2 + 1);
	for (; *hex; hex += 2) {
		if (digit(hex[0]) < 0 || digit(hex[1]) < 0)
			die("option %s= is no hexadecimal text", name);
		*next++ = digit(hex[0]) << 4 | digit(hex[1]);
	}
	return text;
}

void *allocate(size_t size)
{
	void *memory = calloc(1, size);

	if (!memory)
		die("no memory");
	return memory;
}

static struct lines {
	FILE *file;
	const char *path;
} *lines;
static size_t lines_open;

/* What could not be written is missing, which whoever reads the file cannot know. */
static void close_lines(void)
{
	for (size_t i = 0; i < lines_open; i++) {
		bool bad = ferror(lines[i].file);

		if (!fclose(lines[i].file) && !bad)
			continue;
		fprintf(stderr, "guest: %s cannot be written: is the disk full?\n", lines[i].path);
		_exit(1);
	}
}

FILE *open_lines(const char *path)
{
	FILE *file = fopen(path, "we");

	if (!file)
		die("%s: %s", path, strerror(errno));
	setvbuf(file, NULL, _IOLBF, 1 << 16);
	if (!lines_open)
		atexit(close_lines);
	lines = realloc(lines, (lines_open + 1) * sizeof(*lines));
	if (!lines)
		die("no memory");
	lines[lines_open++] = (struct lines){ file, path };
	return file;
}

socklen_t parse_address(const char *text, uint16_t port, struct sockaddr_storage *address)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;

	memset(address, 0, sizeof(*address));
	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		return sizeof(*v4);
	}
	if (inet_pton(AF_INET6, text, &v6->sin6_addr) != 1)
		die("%s is no address", text);
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	return sizeof(*v6);
}

bool reach(struct peer *peer)
{
	if (!peer->bound && peer->source_length &&
	    bind(peer->descriptor, (struct sockaddr *)&peer->source, peer->source_length)) {
		if (errno == EADDRNOTAVAIL)
			return false;
		die("bind: %s", strerror(errno));
	}
	peer->bound = true;
	if (!peer->connected && connect(peer->descriptor, (struct sockaddr *)&peer->remote, peer->remote_length)) {
		if (errno == ENETUNREACH || errno == EHOSTUNREACH || errno == EADDRNOTAVAIL)
			return false;
		die("connect: %s", strerror(errno));
	}
	peer->connected = true;
	return true;
}

socklen_t map_address(struct sockaddr_storage *address)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;

	if (address->ss_family != AF_INET)
		return sizeof(*v6);
	memcpy(&v4, address, sizeof(v4));
	memset(v6, 0, sizeof(*v6));
	v6->sin6_family = AF_INET6;
	v6->sin6_port = v4.sin_port;
	memset(v6->sin6_addr.s6_addr + MAPPED_PREFIX - 2, 0xff, 2);
	memcpy(v6->sin6_addr.s6_addr + MAPPED_PREFIX, &v4.sin_addr, sizeof(v4.sin_addr));
	return sizeof(*v6);
}

void address_text(int family, const void *bytes, char text[INET6_ADDRSTRLEN])
{
	if (family == AF_INET6 && IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)bytes))
		inet_ntop(AF_INET, (const uint8_t *)bytes + MAPPED_PREFIX, text, INET6_ADDRSTRLEN);
	else
		inet_ntop(family, bytes, text, INET6_ADDRSTRLEN);
}

void print_address(FILE *file, const struct sockaddr_storage *address)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
	bool six = address->ss_family == AF_INET6;
	char text[INET6_ADDRSTRLEN] = "-";

	address_text(six ? AF_INET6 : AF_INET, six ? (const void *)&v6->sin6_addr : &v4->sin_addr, text);
	fprintf(file, "%s %u", text, ntohs(six ? v6->sin6_port : v4->sin_port));
}

static void on_signal(int number)
{
	(void)number;
	stopped = true;
}

void stop_on_signal(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	sigset_t term;

	/* delivered only while waiting, so that none is missed */
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	wake_in_time();
}

void wake_in_time(void)
{
	prctl(PR_SET_TIMERSLACK, 1);
}

void wait_for_any(struct pollfd *polled, size_t count, int64_t until)
{
	struct timespec rest = { 0 }, *limit = NULL;
	sigset_t none;

	if (until != NEVER) {
		int64_t left = until - now_ns();

		if (left < 0)
			left = 0;
		rest.tv_sec = left / SECOND;
		rest.tv_nsec = left % SECOND;
		limit = &rest;
	}
	sigemptyset(&none);
	if (ppoll(polled, count, limit, &none) > 0)
		return;
	for (size_t i = 0; i < count; i++)
		polled[i].revents = 0;
}

int wait_for(int descriptor, int events, int64_t until)
{
	struct pollfd polled = { .fd = descriptor, .events = events };

	wait_for_any(&polled, descriptor >= 0, until);
	return polled.revents;
}
