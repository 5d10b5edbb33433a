#!/bin/sh
# The first program of a run's namespaces: the run's folder appears at /run/job, and nothing outlives this script.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH
{ mount -t tmpfs tmpfs /run && mkdir /run/job /run/netns && mount -c --bind . /run/job && cd /run/job && sh -e ./setup.sh; } || {
	echo 'setup failed'
	exit 1
}
carrier=
if [ -e carry.sh ]; then
	sh ./carry.sh &
	carrier=$!
	# told of the run's end
	export POLYPATH_CARRIER=$carrier
	until [ -e origin ]; do
		kill -0 "$carrier" 2>/dev/null || exit 1
		sleep 0.02
	done
	. ./origin
fi
[ ! -e ask ] || exec ./guest shell
./guest run job
outcome=$?
if [ "$carrier" ]; then
	kill -TERM "$carrier"
	wait "$carrier" || outcome=$?
fi
echo "$outcome" >outcome
