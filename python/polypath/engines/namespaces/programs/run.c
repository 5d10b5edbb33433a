/* run JOB: starts programs and changes the network when a job file says so.
 *
 * Lines of the job, in the order of their times:
 *   helper TIME NAMESPACE WORD..   a program that runs until the end
 *   app TIME NAMESPACE WORD..      a program that the run waits for
 *   event TIME COMMAND             a command for the shell
 *   bridge TIME NAMESPACE WORD..   an app, to which SIGUSR1 says that all others have ended; the origin is the common one
 * The first line is
 *   end TIME APPS                  the run ends then at the latest, or when so many apps have ended
 * A server (side=server log=) is not waited for once its client, whose log is named alike, has failed.
 * TIME is in nanoseconds since the origin; programs of a negative time are started before it. Progress goes to
 * standard output. At the end a process POLYPATH_CARRIER of the environment gets SIGUSR1. The exit code is 0 where no program and no
 * event failed.
 */

#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_WORDS 128
#define MAX_CHILDREN 4096
#define REPORTS 100
/* From the runner's start to the origin: programs get ready, which takes no time in virtual time. */
#define LEAD SECOND

static struct {
	pid_t pid;
	bool app;
	/* of a server: its client's log */
	char *client;
	/* which part of the programs it is */
	char *part;
} child[MAX_CHILDREN];
static int children;
/* The bridge to other guests, until it knows that the applications are over. */
static pid_t bridge;
/* Whether a program or an event failed. */
static bool failed;
/* Whether the run has ended its programs. */
static bool over;
/* Apps that have not ended, not yet started ones included. */
static long apps;

static char *client_of(int count, char **word)
{
	const char *log = text_option(count, word, "log", NULL);
	char *name;

	if (!log || strcmp(text_option(count, word, "side", ""), "server"))
		return NULL;
	if (asprintf(&name, "%.*sclient", (int)(strlen(log) - strlen("server")), log) < 0)
		die("no memory");
	return name;
}

static void start(char *line, bool app)
{
	char *word[MAX_WORDS + 2] = { "/run/job/guest" };
	const char *namespace = strtok(line, " ");
	int count = 1;
	pid_t pid;

	while (count < MAX_WORDS && (word[count] = strtok(NULL, " ")))
		count++;
	word[count] = NULL;
	pid = fork();
	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (!pid) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		if (strcmp(namespace, "-"))
			enter_namespace(namespace);
		execv(word[0], word);
		die("%s: %s", word[0], strerror(errno));
	}
	if (children == MAX_CHILDREN)
		die("more than %d programs", MAX_CHILDREN);
	child[children].pid = pid;
	child[children].app = app;
	child[children].part = strdup(word[1] ? word[1] : "-");
	child[children++].client = client_of(count, word);
}

/* Says of a program that it did not end well; one that the run ends may have no handler for SIGTERM yet. */
static void judge(const char *part, int status)
{
	if (WIFEXITED(status) ? !WEXITSTATUS(status) || WEXITSTATUS(status) == FAILED : over && WTERMSIG(status) == SIGTERM)
		return;
	failed = true;
	if (WIFEXITED(status))
		fprintf(stderr, "guest: program '%s' of the run ended with exit code %d\n", part, WEXITSTATUS(status));
	else
		fprintf(stderr, "guest: program '%s' of the run was killed by signal %d\n", part, WTERMSIG(status));
}

static void forget(pid_t pid, int status)
{
	for (int i = 0; i < children; i++) {
		if (child[i].pid != pid)
			continue;
		judge(child[i].part, status);
		apps -= child[i].app;
		free(child[i].client);
		free(child[i].part);
		child[i] = child[--children];
		return;
	}
}

/* Whether the last line of a client's log says so. */
static bool has_failed(const char *log)
{
	char line[128] = "", state[16] = "";
	FILE *file = fopen(log, "re");

	if (!file)
		return false;
	fseek(file, 0, SEEK_END);
	fseek(file, ftell(file) > 64 ? -64 : -ftell(file), SEEK_CUR);
	while (fgets(line, sizeof(line), file))
		;
	fclose(file);
	return sscanf(line, "X %*d %15s", state) == 1 && strcmp(state, "finished") && strcmp(state, "open");
}

/* As in the simulator, an application is over once its client has failed; its server goes on without being waited for. */
static void release_servers(void)
{
	for (int i = 0; i < children; i++) {
		if (!child[i].app || !child[i].client || !has_failed(child[i].client))
			continue;
		child[i].app = false;
		apps--;
	}
}

static void reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		forget(pid, status);
		if (WIFEXITED(status) && WEXITSTATUS(status) == FAILED)
			release_servers();
	}
}

/* Waits for a child's end or until a time, telling progress on the way. */
static void wait_until(int64_t until, int64_t end)
{
	static int64_t reported;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (;;) {
		int64_t now = now_ns(), next = reported + end / REPORTS, left;
		struct timespec rest;

		if (now >= until)
			return;
		left = (next > now && next < until ? next : until) - now;
		rest.tv_sec = left / SECOND;
		rest.tv_nsec = left % SECOND;
		if (sigtimedwait(&set, NULL, &rest) == SIGCHLD) {
			reap();
			if (bridge && apps == 1) {
				kill(bridge, SIGUSR1);
				bridge = 0;
			}
			return;
		}
		if (now_ns() >= next) {
			reported = now_ns();
			printf("progress %lld\n", (long long)reported);
			fflush(stdout);
		}
	}
}

static void shell(const char *command)
{
	int status = system(command);

	if (status) {
		failed = true;
		fprintf(stderr, "guest: status %#x: %s\n", status, command);
	}
}

static void finish(void)
{
	int64_t end = now_ns();
	const char *carrier = getenv("POLYPATH_CARRIER");
	FILE *file = open_lines("/run/job/out/end");
	int status;
	pid_t pid;

	if (carrier)
		kill(atoi(carrier), SIGUSR1);
	fprintf(file, "%lld\n", (long long)end);
	/* counters of the run, before the end of its programs counts */
	shell("sh -e ./collect.sh");
	over = true;
	for (int i = 0; i < children; i++)
		kill(child[i].pid, SIGTERM);
	while ((pid = waitpid(-1, &status, 0)) > 0 || errno == EINTR)
		if (pid > 0)
			forget(pid, status);
}

/* The lines of the job that are due in the order of their times. */
int run_main(int count, char **argument)
{
	char line[1 << 14];
	int64_t end = NEVER;
	sigset_t set;
	FILE *job;

	if (count != 1)
		die("run JOB");
	job = fopen(argument[0], "re");
	if (!job)
		die("%s: %s", argument[0], strerror(errno));
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (!fgets(line, sizeof(line), job) || sscanf(line, "end %" SCNd64 " %ld", &end, &apps) != 2)
		die("%s does not begin with end", argument[0]);

	wake_in_time();
	if (!access("peers", R_OK))
		meet();
	else if (!origin_given())
		set_origin(LEAD);
	while (fgets(line, sizeof(line), job)) {
		char *kind = strtok(line, " "), *time = strtok(NULL, " "), *rest = strtok(NULL, "\n");
		int64_t at = strtoll(time, NULL, 10);

		while (apps && now_ns() < at)
			wait_until(at, end);
		if (!apps || at >= end)
			break;
		if (!strcmp(kind, "event"))
			shell(rest);
		else
			start(rest, strcmp(kind, "helper"));
		if (!strcmp(kind, "bridge"))
			bridge = child[children - 1].pid;
	}
	while (apps && now_ns() < end)
		wait_until(end, end);
	finish();
	return failed;
}
