# Runs one script in the guest of engine linux, with packetdrill's own sockets and TUN device. Sourced by the guest's
# first program, in the run's folder; `arguments` and `gtests` come from guest.py, `out` is where it looks.
set -u
mount -t devtmpfs none /dev
[ -c /dev/net/tun ] || { echo 'guest: this kernel has no TUN device'; exit 1; }
mount -t tmpfs none /tmp
cp -r gtests /tmp/gtests
chmod -R a+rx /tmp/gtests
ip link set lo up
job=$PWD
. ./arguments
cd "/tmp/gtests/$folder"
code=0
timeout "$limit" env LD_PRELOAD="$job/times.so" "$job/packetdrill" "$@" >/tmp/said 2>&1 </dev/null || code=$?
cd "$job"
cp /tmp/said out/said
echo "$code" >out/code
echo 0 >outcome
exec ./guest halt
