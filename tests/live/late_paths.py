"""A path manager in user space that hears of a connection once that is over.

late_paths.py GUEST FOLDER, in namespaces of its own.
"""

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

MPTCP = 262
ESTABLISHED = "2"


def connect(listener: socket.socket) -> None:
    """Opens a connection and closes it; the kernel has forgotten it afterwards."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP) as client:
        # a reset leaves nothing that waits
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))
        client.connect(listener.getsockname())
        listener.accept()[0].close()


def established(log: Path) -> int:
    return sum(line.split()[2] == ESTABLISHED for line in log.read_text().splitlines()) if log.exists() else 0


def main() -> None:
    guest, folder = sys.argv[1:]
    log = Path(folder, "paths")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for name, value in (("path_manager", "userspace"), ("pm_type", "1")):
        setting = Path("/proc/sys/net/mptcp", name)
        if setting.exists():
            setting.write_text(value)
            break
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    options = [f"log={log}", "subflows=4", "own=127.0.0.1@lo"]
    with subprocess.Popen([guest, "paths", *options]) as process:
        while not established(log):
            connect(listener)
            time.sleep(0.05)
        process.send_signal(signal.SIGSTOP)
        heard = established(log)
        connect(listener)
        process.send_signal(signal.SIGCONT)
        while established(log) == heard:
            time.sleep(0.05)
        process.terminate()


main()
