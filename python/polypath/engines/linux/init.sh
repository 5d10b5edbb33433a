#!/bin/sh
# The guest's first program: the host's files are there read-only, the run's folder at /run/job is not.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH
# before the guest has a /proc of its own this is the host's, where the kernel is a process in the run's folder
folder=$(readlink /proc/self/cwd)
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mkdir /run/job /run/netns
# warnings too: the command line's `quiet` keeps them from the console, where they are looked for
echo 5 >/proc/sys/kernel/printk
mount -t hostfs none /run/job -o "$folder"
# what a namespace of its own may choose: by itself the kernel grants only some
(cd /proc/sys/net/ipv4 && cat tcp_available_congestion_control >tcp_allowed_congestion_control)
# one pool for all namespaces, as large as the memory
echo 1000000 1000000 1000000 >/proc/sys/net/ipv4/tcp_mem
echo 1000000 >/proc/sys/net/core/netdev_max_backlog
cd /run/job || exit
if sh -e ./setup.sh; then
	[ ! -e ask ] || exec ./guest shell hold
	./guest run job
	echo "$?" >outcome
else
	echo 'setup failed'
fi
exec ./guest halt
