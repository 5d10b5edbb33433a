/* A program of the machine sees the machine's files, read-only, with the run's names of hosts. */

#define _GNU_SOURCE
#include "confine.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORK "/run/work"
#define TEMPORARY "/run/tmp"
#define JOB "/run/job"

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

/* Linux, include/uapi/linux/mount.h */
struct attributes {
	uint64_t set, clear, propagation, user_namespace;
};
#define READ_ONLY 1

char **read_words(const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	struct stat about;
	char **word, *text;
	size_t count = 0;

	if (file < 0 || fstat(file, &about))
		die("%s: %s", path, strerror(errno));
	text = malloc(about.st_size + 1);
	word = calloc(about.st_size + 1, sizeof(*word));
	if (!text || !word || read(file, text, about.st_size) != about.st_size)
		die("%s cannot be read", path);
	close(file);
	text[about.st_size] = 0;
	for (off_t at = 0; at < about.st_size; at += strlen(text + at) + 1)
		word[count++] = text + at;
	return word;
}

static void replace(const char *by, const char *path)
{
	/* what the machine does not have needs no replacement */
	if (mount(by, path, NULL, MS_BIND, NULL) && errno != ENOENT)
		die("%s: %s", path, strerror(errno));
}

static void allow_writing(const char *path, bool allowed, bool below)
{
	struct attributes change = { .set = allowed ? 0 : READ_ONLY, .clear = allowed ? READ_ONLY : 0 };

	if (syscall(SYS_mount_setattr, AT_FDCWD, path, below ? 0x8000 /* AT_RECURSIVE */ : 0, &change, sizeof(change)))
		die("mount_setattr %s: %s", path, strerror(errno));
}

void confine(const char *host, const char *work)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		die("mount namespace: %s", strerror(errno));
	/* engine linux's kernel has one host name for all */
	if (!unshare(CLONE_NEWUTS) && sethostname(host, strlen(host)))
		die("host name %s: %s", host, strerror(errno));
	mkdir(WORK, 0755);
	mkdir(TEMPORARY, 0755);
	replace(work, WORK);
	if (mount("tmpfs", TEMPORARY, "tmpfs", 0, NULL))
		die(TEMPORARY ": %s", strerror(errno));
	replace(JOB "/hosts", "/etc/hosts");
	replace(JOB "/nsswitch.conf", "/etc/nsswitch.conf");
	replace(JOB "/resolv.conf", "/etc/resolv.conf");
}

void seal(void)
{
	allow_writing("/", false, true);
	allow_writing(WORK, true, false);
	allow_writing(TEMPORARY, true, false);
	if (chdir(WORK))
		die(WORK ": %s", strerror(errno));
}

void set_environment(bool mptcp, char **variable)
{
	clearenv();
	setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	setenv("HOME", WORK, 1);
	setenv("PWD", WORK, 1);
	setenv("TMPDIR", TEMPORARY, 1);
	setenv("LANG", "C.UTF-8", 1);
	setenv("TZ", "UTC", 1);
	if (mptcp) {
		/* Go's programs make their system calls themselves */
		setenv("LD_PRELOAD", JOB "/mptcp.so", 1);
		setenv("GODEBUG", "multipathtcp=1", 1);
	}
	for (; *variable; variable++)
		putenv(*variable);
}
