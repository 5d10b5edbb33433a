/* shell: does one thing after the other, as files ask/1, ask/2 .. of the run's folder say, whose words end in a NUL each.
 *
 *   run NAMESPACE WORD..     a part of these programs, to its end; a file ask/N.stop has it interrupted, another time killed
 *   start NAMESPACE WORD..   the same beside the others; answers with its process's number
 *   stop PROCESS             ends one that was started; answers with its exit code
 *   do COMMAND               a line for the shell
 * Each answer is a line MARK N ANSWER, the first one of number 0; `hold` is for virtual time: it stands still while there is nothing to do.
 */

#define _GNU_SOURCE
#include "confine.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MARK "\036"
/* Between two looks for a file, while something runs or time is real. */
#define LOOK (SECOND / 100)

static sigset_t child;
static bool hold;

static void answer(int number, long value)
{
	/* what is due at this instant comes first */
	struct timespec moment = { 0, 1000 };

	nanosleep(&moment, NULL);
	printf(MARK "%d %ld %lld\n", number, value, (long long)now_ns());
	fflush(stdout);
}

static pid_t start(char **word)
{
	char *program[] = { "/run/job/guest" };
	const char *namespace = word[0];
	pid_t pid = fork();

	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (pid)
		return pid;
	sigprocmask(SIG_UNBLOCK, &child, NULL);
	if (strcmp(namespace, "-"))
		enter_namespace(namespace);
	word[0] = program[0];
	execv(word[0], word);
	die("%s: %s", word[0], strerror(errno));
}

static int code_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int finish(pid_t pid, int number)
{
	struct timespec rest = { 0, LOOK };
	int stops = 0, status;
	char name[64];

	while (waitpid(pid, &status, WNOHANG) != pid) {
		if (sigtimedwait(&child, NULL, &rest) == SIGCHLD)
			continue;
		snprintf(name, sizeof(name), "ask/%d.stop", number);
		if (!access(name, F_OK) && !unlink(name))
			kill(pid, stops++ ? SIGTERM : SIGINT);
	}
	return code_of(status);
}

static long obey(char **word, int number)
{
	int status;
	pid_t pid;

	if (!strcmp(word[0], "run"))
		return finish(start(word + 1), number);
	if (!strcmp(word[0], "start"))
		return start(word + 1);
	if (!strcmp(word[0], "stop")) {
		pid = atoi(word[1]);
		kill(pid, SIGTERM);
		return waitpid(pid, &status, 0) == pid ? code_of(status) : 1;
	}
	if (!strcmp(word[0], "do"))
		return system(word[1]);
	die("what is %s?", word[0]);
}

int shell_main(int count, char **argument)
{
	struct timespec rest = { 0, LOOK };
	char name[64];

	hold = count > 0 && !strcmp(argument[0], "hold");
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	wake_in_time();
	if (!origin_given())
		set_origin(0);
	while (now_ns() < 0) {
		struct timespec left = { -now_ns() / SECOND, -now_ns() % SECOND };

		nanosleep(&left, NULL);
	}
	answer(0, 0);
	for (int number = 1;; number++) {
		snprintf(name, sizeof(name), "ask/%d", number);
		while (access(name, F_OK)) {
			/* in virtual time, a program that is busy takes none of it */
			if (hold)
				sched_yield();
			else
				nanosleep(&rest, NULL);
		}
		answer(number, obey(read_words(name), number));
	}
}
