"""One connection between our endpoint on a TUN interface and the machine's own kernel, in namespaces of their own.

    unshare -Urn python namespace.py SETTINGS.json

The settings are those of the driver (crates/live), under `driver`, with its binary under `binary`; `kernel` says what
the other side is to do: its `addresses`, the bytes to `send`, the commands of `ip mptcp` under `path_manager`. It sends
its first bytes at once; the rest, and the end of the stream, wait until the counters in `awaits` have these values.
Prints both sides' outcome as JSON. Everything made here is gone when the process ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TUNSETIFF = 0x400454CA
IFF_TUN = 0x0001
IFF_NO_PI = 0x1000
IPPROTO_MPTCP = 262
INTERFACE = "poly0"
#: Bytes that the kernel sends at once: they confirm the handshake.
OPENING = 1000
#: A wait that takes longer has failed, however slow the machine is.
LIMIT_S = 120
MASK = (1 << 64) - 1
#: Four bits of each byte choose a letter, a to p.
BITS = int.from_bytes(b"\x0f" * 8)
LETTERS = int.from_bytes(b"a" * 8)


def stream(number: int, length: int) -> bytes:
    """The first bytes of a stream as our endpoints send and check them (crates/wire, payload)."""

    def words() -> Iterator[bytes]:
        for index in range(-(-length // 8)):
            yield struct.pack("<Q", mix(number, index))

    return b"".join(words())[:length]


def mix(number: int, index: int) -> int:
    z = (number ^ index * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return ((z ^ (z >> 31)) & BITS) + LETTERS


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def interface(addresses: list[str]) -> int:
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", INTERFACE.encode(), IFF_TUN | IFF_NO_PI))
    ip("link", "set", "lo", "up")
    ip("link", "set", INTERFACE, "up", "mtu", "1500")
    for address in addresses:
        ip("address", "add", f"{address}/24", "dev", INTERFACE)
    return tun


def counters() -> dict[str, int]:
    """MPTCP's counters of this network namespace."""
    lines = Path("/proc/net/netstat").read_text().splitlines()
    rows = [line.split() for line in lines if line.startswith("MPTcpExt:")]
    return dict(zip(rows[0][1:], map(int, rows[1][1:]), strict=True))


def reach(values: dict[str, int]) -> None:
    """Returns when each counter has reached its value."""
    end = time.monotonic() + LIMIT_S
    while any(counters()[name] < value for name, value in values.items()):
        if time.monotonic() > end:
            raise TimeoutError(f"the counters never reached {values}")
        time.sleep(0.005)


class Kernel:
    """The kernel's side of the stream, in a thread: sends its bytes, reads to the end."""

    def __init__(self, settings: dict[str, Any], connects: bool) -> None:
        self.settings = settings
        self.received = b""
        self.error = ""
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
        self.socket.settimeout(LIMIT_S)
        self.connects = connects
        if not connects:
            self.socket.bind((settings["addresses"][0], settings["port"]))
            self.socket.listen()
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        try:
            if self.connects:
                self.socket.connect((self.settings["peer"], self.settings["port"]))
                connection = self.socket
            else:
                connection, _ = self.socket.accept()
                connection.settimeout(LIMIT_S)
            number = 1 if self.connects else 2
            sender = threading.Thread(target=self.send, args=(connection, stream(number, self.settings["send"])))
            sender.start()
            while data := connection.recv(65536):
                self.received += data
            sender.join()
            connection.close()
        except OSError as error:
            self.error = str(error)

    def send(self, connection: socket.socket, data: bytes) -> None:
        try:
            connection.sendall(data[:OPENING])
            reach(self.settings["awaits"])
            connection.sendall(data[OPENING:])
            connection.shutdown(socket.SHUT_WR)
        except OSError as error:
            self.error = str(error)


def main() -> None:
    settings = json.loads(Path(sys.argv[1]).read_text())
    kernel, driver = settings["kernel"], settings["driver"]
    tun = interface(kernel["addresses"])
    for words in kernel.get("path_manager", []):
        ip("mptcp", *words)
    other = Kernel(kernel, connects=driver["role"] == "accept")
    if not other.connects:
        other.thread.start()
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(driver, file)
        file.flush()
        ours = subprocess.Popen([settings["binary"], file.name], stdin=tun, stdout=subprocess.PIPE, text=True)
        if other.connects:
            other.thread.start()
        printed, _ = ours.communicate()
    other.thread.join()
    expected = stream(1 if driver["role"] == "connect" else 2, driver["send"] + driver["held"])
    print(
        json.dumps(
            {
                "ours": json.loads(printed) if printed else None,
                "kernel": {
                    "received": len(other.received),
                    "whole": other.received == expected,
                    "error": other.error,
                    "counters": {name: value for name, value in counters().items() if value},
                },
            }
        )
    )


if __name__ == "__main__":
    main()
