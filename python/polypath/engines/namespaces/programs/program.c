/* program: runs a program of the machine on a host, and keeps what it printed and how it ended.
 *
 * Options: folder= (of the run's folder: words and environment, each ended by a NUL; stdout, stderr and files appear there), name= (the
 * host's), mptcp=0|1, console=1 (its output is this process's), work= (a working folder that others share, whose files are not kept).
 * The program sees the machine's files read-only. Its working folder is in memory, so that the times of files are the run's; files is
 * copied there first, and it is copied to files afterwards. At SIGTERM the program is sent SIGTERM, and SIGKILL after GRACE; SIGINT is
 * handed on. The line of folder/end is
 *   time, "exited", "killed" or "ended" (by the run), exit code or 128 + signal
 */

#define _GNU_SOURCE
#include "confine.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* From SIGTERM to SIGKILL. */
#define GRACE SECOND
/* In memory, with a working folder for each program. */
#define PROGRAMS "/run/programs"

static const char *within(const char *folder, const char *name)
{
	char *path;

	if (asprintf(&path, "%s/%s", folder, name) < 0)
		die("no memory");
	return path;
}

static int opened(const char *path)
{
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (file < 0)
		die("%s: %s", path, strerror(errno));
	return file;
}

static void copy(const char *from, const char *to)
{
	char *command;

	if (asprintf(&command, "cp -RP %s/. %s", from, to) < 0 || system(command))
		die("%s cannot be copied to %s", from, to);
	free(command);
}

/* What may be in a file system that everybody writes to; the names are this program's own. */
static void make_folder(const char *path)
{
	if (mkdir(path, 0755) && errno != EEXIST)
		die("%s: %s", path, strerror(errno));
}

static pid_t start(const char *folder, const char *work, const char *host, bool mptcp, bool console)
{
	char **word = read_words(within(folder, "words"));
	char **variable = read_words(within(folder, "environment"));
	pid_t pid;

	if (!*word)
		die("%s has no words", folder);
	pid = fork();
	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (!pid) {
		/* opened while these mounts can be written */
		int in = opened("/dev/null");
		int out = console ? STDOUT_FILENO : opened(within(folder, "stdout"));
		int error = console ? STDOUT_FILENO : opened(within(folder, "stderr"));
		sigset_t none;

		setsid();
		confine(host, work);
		seal();
		dup2(in, STDIN_FILENO);
		dup2(out, STDOUT_FILENO);
		dup2(error, STDERR_FILENO);
		set_environment(mptcp, variable);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		execvp(word[0], word);
		dprintf(STDERR_FILENO, "polypath: %s: %s\n", word[0], strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
	return pid;
}

/* Collects what has ended; true once the program has. */
static bool ended(pid_t program, int *status)
{
	bool found = false;
	pid_t pid;
	int how;

	while ((pid = waitpid(-1, &how, WNOHANG)) > 0) {
		if (pid != program)
			continue;
		*status = how;
		found = true;
	}
	return found;
}

int program_main(int count, char **argument)
{
	const char *folder = need_option(count, argument, "folder");
	const char *shared = text_option(count, argument, "work", NULL);
	const char *files = within(folder, "files"), *last = strrchr(folder, '/');
	const char *work = within(PROGRAMS, shared ? shared : last ? last + 1 : folder);
	int64_t kill_at = NEVER;
	bool told = false;
	int status = 0;
	sigset_t set;
	FILE *log;
	pid_t pid;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	make_folder(PROGRAMS);
	make_folder(work);
	if (!shared) {
		make_folder(files);
		copy(files, work);
	}
	pid = start(folder, work, need_option(count, argument, "name"), number_option(count, argument, "mptcp", 0),
		    number_option(count, argument, "console", 0));
	while (!ended(pid, &status)) {
		int64_t left = kill_at == NEVER ? 3600 * SECOND : kill_at - now_ns();
		struct timespec rest = { left > 0 ? left / SECOND : 0, left > 0 ? left % SECOND : 0 };

		int got = sigtimedwait(&set, NULL, &rest);

		if (got == SIGINT) {
			kill(-pid, SIGINT);
		} else if (got == SIGTERM && !told) {
			told = true;
			kill_at = now_ns() + GRACE;
			kill(-pid, SIGTERM);
		} else if (now_ns() >= kill_at) {
			kill(-pid, SIGKILL);
			kill_at = NEVER;
		}
	}
	kill(-pid, SIGKILL);
	if (!shared)
		copy(work, files);
	log = open_lines(within(folder, "end"));
	fprintf(log, "%lld %s %d\n", (long long)now_ns(), told ? "ended" : WIFEXITED(status) ? "exited" : "killed",
		WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	return 0;
}
