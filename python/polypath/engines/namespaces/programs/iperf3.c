/* iperf3: one end of an application that iperf3 itself plays; this part watches its data connection and logs as app.c does.
 *
 * Options: side=client|server transport=tcp|mptcp destination= port= log= sample= and at the client source= duration= rate= block=
 * reverse= congestion= nodelay= mptcp= (its flag for Multipath TCP; none: mptcp.so is loaded into it). Bytes count as received when
 * the kernel has handed them over; first and last byte are told to LOOK nanoseconds. What iperf3 prints goes to the log's name and .json.
 */

#define _GNU_SOURCE
#include "sample.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK (SECOND / 100)
#define MAX_WORDS 40
#define MAX_DESCRIPTORS 32
/* What an iperf3 client sends on each data connection before anything else. */
#define COOKIE 37

static FILE *app_log;
static bool mptcp;
static int64_t first_byte = -1, last_byte = -1;
static uint64_t received;

static char *format(const char *text, int64_t value)
{
	char *made;

	if (asprintf(&made, text, value) < 0)
		die("no memory");
	return made;
}

static void add(char **word, const char *one)
{
	int count = 0;

	while (word[count])
		if (++count >= MAX_WORDS - 1)
			die("too many words for iperf3");
	word[count] = (char *)one;
}

static void add_option(char **word, const char *flag, const char *value)
{
	if (!value)
		return;
	add(word, flag);
	add(word, value);
}

static void client_words(char **word, int count, char **argument)
{
	add_option(word, "-c", need_option(count, argument, "destination"));
	add_option(word, "-B", text_option(count, argument, "source", NULL));
	add_option(word, "-C", text_option(count, argument, "congestion", NULL));
	add_option(word, "-b", text_option(count, argument, "rate", NULL));
	add_option(word, "-l", text_option(count, argument, "block", NULL));
	add_option(word, "-t", format("%" PRId64, number_option(count, argument, "duration", 0) / SECOND));
	if (number_option(count, argument, "reverse", 0))
		add(word, "-R");
	if (number_option(count, argument, "nodelay", 0))
		add(word, "-N");
	if (mptcp && text_option(count, argument, "mptcp", NULL))
		add(word, text_option(count, argument, "mptcp", NULL));
}

static pid_t start(bool server, int count, char **argument)
{
	char *word[MAX_WORDS] = { "iperf3", "--json", "--forceflush", NULL };
	const char *flag = text_option(count, argument, "mptcp", NULL);
	pid_t pid;

	add_option(word, "-p", need_option(count, argument, "port"));
	add(word, strchr(need_option(count, argument, "destination"), ':') ? "-6" : "-4");
	if (server) {
		add(word, "-s");
		add(word, "-1");
		if (mptcp && flag)
			add(word, flag);
	} else {
		client_words(word, count, argument);
	}
	pid = fork();
	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (!pid) {
		char printed[256];
		sigset_t none;
		int file;

		snprintf(printed, sizeof(printed), "%s.json", need_option(count, argument, "log"));
		file = open(printed, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		dup2(file, STDOUT_FILENO);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		/* it keeps its buffers in files there */
		setenv("TMPDIR", "/run", 1);
		if (mptcp && !flag)
			setenv("LD_PRELOAD", "/run/job/mptcp.so", 1);
		execvp(word[0], word);
		die("iperf3: %s", strerror(errno));
	}
	return pid;
}

/* A copy of a process's descriptor where it is a connected stream socket; -1 otherwise. */
static int copy_of(int process, int descriptor)
{
	struct sockaddr_storage peer;
	socklen_t length = sizeof(peer);
	int copy = syscall(SYS_pidfd_getfd, process, descriptor, 0), type = 0;
	socklen_t size = sizeof(type);

	if (copy < 0)
		return -1;
	if (getsockopt(copy, SOL_SOCKET, SO_TYPE, &type, &size) || type != SOCK_STREAM ||
	    getpeername(copy, (struct sockaddr *)&peer, &length)) {
		close(copy);
		return -1;
	}
	return copy;
}

/* The data connection comes after the one for control; -1 while there are not two. */
static int data_connection(int process)
{
	int control = -1, data = -1;

	for (int descriptor = 3; descriptor < MAX_DESCRIPTORS; descriptor++) {
		int found = copy_of(process, descriptor);

		if (found < 0)
			continue;
		if (control < 0) {
			control = found;
			continue;
		}
		if (data >= 0)
			close(data);
		data = found;
	}
	if (control >= 0)
		close(control);
	return data;
}

static bool ended(pid_t pid, int *status)
{
	return waitpid(pid, status, WNOHANG) == pid;
}

static void look(int descriptor, bool server, int64_t now)
{
	uint64_t had = received;
	uint64_t all = received_bytes(descriptor, mptcp);

	received = server && all > COOKIE ? all - COOKIE : server ? 0 : all;
	if (received == had)
		return;
	if (first_byte < 0)
		first_byte = now;
	last_byte = now;
}

__attribute__((noreturn)) static void over(const char *state, bool failed)
{
	fprintf(app_log, "P %lld %lld %llu\nX %lld %s\n", (long long)first_byte, (long long)last_byte,
		(unsigned long long)received, (long long)now_ns(), state);
	exit(failed ? FAILED : 0);
}

int iperf3_main(int count, char **argument)
{
	bool server = !strcmp(need_option(count, argument, "side"), "server");
	int64_t interval = number_option(count, argument, "sample", SECOND / 10), next = 0;
	int64_t begins = number_option(count, argument, "start", 0);
	int process, descriptor = -1, status = 0;
	pid_t pid;

	stop_on_signal();
	mptcp = !strcmp(need_option(count, argument, "transport"), "mptcp");
	app_log = open_lines(need_option(count, argument, "log"));
	pid = start(server, count, argument);
	process = syscall(SYS_pidfd_open, pid, 0);
	if (process < 0)
		die("pidfd_open: %s", strerror(errno));
	while (!ended(pid, &status) && !stopped) {
		int64_t now = now_ns();

		if (descriptor < 0 && now >= begins) {
			descriptor = data_connection(process);
			if (descriptor >= 0) {
				fprintf(app_log, "O %lld %s\n", (long long)now, transport_name(descriptor, mptcp));
				next = now;
			}
		}
		if (descriptor >= 0) {
			look(descriptor, server, now);
			if (now >= next) {
				sample_socket(app_log, descriptor, mptcp, now, received, NULL);
				next = (now / interval + 1) * interval;
			}
		}
		wait_for(-1, 0, now < begins ? begins : now + (descriptor < 0 ? LOOK / 10 : LOOK));
	}
	if (descriptor >= 0) {
		look(descriptor, server, now_ns());
		sample_socket(app_log, descriptor, mptcp, now_ns(), received, NULL);
	}
	if (stopped) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		over("open", false);
	}
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		over("finished", false);
	over(descriptor < 0 ? "unreachable" : "reset", !server);
}
