/* What the guest's programs share. Times are nanoseconds since the origin, which the runner sets. */
#ifndef POLYPATH_GUEST_H
#define POLYPATH_GUEST_H

#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#define SECOND 1000000000LL
#define MILLISECOND 1000000LL
#define NEVER INT64_MAX

/* How a client's process exits whose connection failed. */
#define FAILED 3

/* The program's parts, chosen by its first argument. */
int run_main(int count, char **argument);
int app_main(int count, char **argument);
int iperf3_main(int count, char **argument);
int datagram_main(int count, char **argument);
int ping_main(int count, char **argument);
int links_main(int count, char **argument);
int bridge_main(int count, char **argument);
int capture_main(int count, char **argument);
int paths_main(int count, char **argument);
int offload_main(int count, char **argument);
int taps_main(int count, char **argument);
int program_main(int count, char **argument);
int shell_main(int count, char **argument);

/* Ends the process with a line on standard error. */
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);

/* CLOCK_MONOTONIC since the origin. */
int64_t now_ns(void);
/* CLOCK_REALTIME at the origin. */
int64_t origin_realtime(void);
/* Takes the origin from the environment. */
void load_origin(void);
/* Whether the environment had one. */
bool origin_given(void);
/* Puts the origin so far ahead, for this process and those that it starts. */
void set_origin(int64_t in);
/* The same with a time of CLOCK_MONOTONIC and of CLOCK_REALTIME. */
void take_origin(int64_t since, int64_t date);
/* Agrees on the origin with the guests of other kernels (bridge.c). */
void meet(void);

/* Moves the process to the network namespace of that name. */
void enter_namespace(const char *name);

/* The value of `name=value` among the arguments, or `otherwise`. */
const char *text_option(int count, char **argument, const char *name, const char *otherwise);
int64_t number_option(int count, char **argument, const char *name, int64_t otherwise);
/* Ends the process where the option is missing. */
const char *need_option(int count, char **argument, const char *name);
/* A text that is written in hexadecimal digits; NULL where the option is missing. */
char *hex_option(int count, char **argument, const char *name);

/* Memory, or the process ends. */
void *allocate(size_t size);

/* Opens a file for lines that appear at once; it stays open. The exit code is 1 where some could not be written. */
FILE *open_lines(const char *path);

/* An IPv4 or IPv6 address in text with a port; returns its length. */
socklen_t parse_address(const char *text, uint16_t port, struct sockaddr_storage *address);

/* Where datagrams go; the host may have no route there yet. */
struct peer {
	int descriptor;
	struct sockaddr_storage source, remote;
	/* 0: whatever source the route has */
	socklen_t source_length, remote_length;
	bool bound, connected;
};

/* Binds and connects once the host has the source's address and a route. False: not yet. */
bool reach(struct peer *peer);
/* Address and port in text, separated by a blank. */
#define MAPPED_PREFIX 12
/* An address of IPv4 becomes its mapped one: a prefix of 12 bytes, ::ffff:0:0, and the address. */
socklen_t map_address(struct sockaddr_storage *address);
/* A mapped address reads as the IPv4 address that it stands for. */
void address_text(int family, const void *bytes, char text[INET6_ADDRSTRLEN]);
void print_address(FILE *file, const struct sockaddr_storage *address);

/* Set by SIGTERM: the run is over. */
extern volatile bool stopped;
void stop_on_signal(void);
/* Timers of this program and its children fire when they are due, not up to 50 us later. */
void wake_in_time(void);

/* Waits for one of `count` descriptors' events until `until`. */
void wait_for_any(struct pollfd *polled, size_t count, int64_t until);
/* Waits for events on `descriptor` (-1: for time alone) until `until`; returns what poll reports. */
int wait_for(int descriptor, int events, int64_t until);

/* The bytes of a stream from an offset on, as the simulator has them. */
void payload_fill(uint64_t stream, uint64_t offset, uint8_t *out, size_t length);

/* What one end of a connection sends: messages one after the other. Each begins with its head, all else is payload. */
struct content {
	uint64_t stream;
	/* where the messages so far end */
	uint64_t end;
	/* messages whose heads are not passed */
	struct message *first, *last;
	/* a head that each `period` bytes begin with; 0: there is none */
	uint64_t period;
	char *head;
};

void content_set(struct content *content, uint64_t stream);
/* Another message: its head, and so many bytes behind that. */
void content_message(struct content *content, const char *head, uint64_t body);
/* Messages without an end, all with the same head and length. */
void content_repeat(struct content *content, char *head, uint64_t period);
/* Offsets do not go back to heads that an earlier call passed. */
void content_fill(struct content *content, uint64_t offset, uint8_t *out, size_t length);
bool content_check(struct content *content, uint64_t offset, const uint8_t *bytes, size_t length);

#endif
