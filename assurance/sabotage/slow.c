/* A slow disk: each call that changes one takes up to 50 ms longer. Preloaded. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void pause_for_disk(void)
{
	static uint64_t state;
	struct timespec wait = { 0, 0 };

	if (!state)
		state = (uint64_t)getpid() * 0x9e3779b97f4a7c15ULL;
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	wait.tv_nsec = (long)((state >> 33) % 50000000);
	nanosleep(&wait, NULL);
}

#define SLOWED(result, name, parameters, arguments) \
	result name parameters \
	{ \
		static result (*next) parameters; \
\
		if (!next) \
			next = (result(*) parameters)dlsym(RTLD_NEXT, #name); \
		pause_for_disk(); \
		return next arguments; \
	}

SLOWED(int, fsync, (int descriptor), (descriptor))
SLOWED(int, fdatasync, (int descriptor), (descriptor))
SLOWED(int, rename, (const char *from, const char *to), (from, to))
SLOWED(int, renameat, (int from, const char *old, int to, const char *new), (from, old, to, new))
SLOWED(int, unlink, (const char *path), (path))
SLOWED(int, mkdir, (const char *path, mode_t mode), (path, mode))

ssize_t write(int descriptor, const void *bytes, size_t length)
{
	static ssize_t (*next)(int, const void *, size_t);
	struct stat told;

	if (!next)
		next = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
	if (!fstat(descriptor, &told) && S_ISREG(told.st_mode))
		pause_for_disk();
	return next(descriptor, bytes, length);
}
