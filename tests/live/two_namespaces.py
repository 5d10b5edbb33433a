"""A server in one network namespace, a client in another, two links between them; one goes down in mid-transfer.

    unshare -Urn python two_namespaces.py SETTINGS.json

The settings: the command of the `server` and of the `client`, the file `out` that the client writes, which `link` goes
down, `after` how many bytes of the file, and whether the server `ends` by itself. It has one address, 10.7.0.1; the
client has 10.7.0.2 and 10.7.1.2, each on a link. Prints what both said, and how long the file was once the link was
down, as JSON. Everything made here is gone when the process ends.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

#: A wait that takes longer has failed, however slow the machine is.
LIMIT_S = 120
#: Slow enough that a transfer is not over at once.
SHAPE = ["rate", "80mbit", "burst", "64kb", "latency", "50ms"]


def run(*words: str) -> None:
    subprocess.run(words, check=True)


def connect(holder: int) -> None:
    inside = ["nsenter", f"--target={holder}", "--net"]
    for link in ("0", "1"):
        run("ip", "link", "add", f"a{link}", "type", "veth", "peer", "name", f"b{link}", "netns", str(holder))
        run("ip", "address", "add", f"10.7.{link}.2/24", "dev", f"a{link}")
        run(*inside, "ip", "address", "add", f"10.7.{link}.1/24", "dev", f"b{link}")
        for words in ([], inside):
            device = f"{'b' if words else 'a'}{link}"
            run(*words, "tc", "qdisc", "add", "dev", device, "root", "tbf", *SHAPE)
            run(*words, "ip", "link", "set", device, "up")
    # what the second address sends takes the second link
    run("ip", "rule", "add", "from", "10.7.1.2", "table", "101")
    run("ip", "route", "add", "10.7.0.1", "via", "10.7.1.1", "table", "101")
    run("ip", "link", "set", "lo", "up")


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def main() -> None:
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    out = Path(settings["out"])
    with subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        own = Path("/proc/self/ns/net").readlink()
        end = time.monotonic() + LIMIT_S
        while Path(f"/proc/{holder.pid}/ns/net").readlink() == own:
            assert time.monotonic() < end, "no namespace"
            time.sleep(0.005)
        connect(holder.pid)
        inside = ["nsenter", f"--target={holder.pid}", "--net"]
        with subprocess.Popen([*inside, *settings["server"]], stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            assert server.stdout.readline().startswith("listening at ")
            with subprocess.Popen(settings["client"], stdout=subprocess.PIPE, text=True) as client:
                while size(out) < settings["after"]:
                    assert client.poll() is None, "the client ended early"
                    assert time.monotonic() < end, "too little came"
                    time.sleep(0.002)
                run("ip", "link", "set", f"a{settings['link']}", "down")
                down_at = size(out)
                client_said, _ = client.communicate(timeout=LIMIT_S)
            if not settings["ends"]:
                server.terminate()
            server_said, _ = server.communicate(timeout=LIMIT_S)
        assert holder.stdin is not None
        holder.stdin.close()
    found = {"client": client_said, "code": client.returncode, "server": server_said, "down_at": down_at}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
