"""Damaged or malicious files, given to the command that reads such files.

Each call ends with 0, 1 or 2, within its limits of time and memory. It prints no traceback and no control character,
names the file in a refusal, and changes and leaves nothing.
"""

from __future__ import annotations

import json
import random
import resource
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from polypath import labs

from .registry import Lost, sabotage
from .sweeps import COMMAND, SCENARIO

ROOT = Path(__file__).resolve().parents[2]
#: Of a call: its seconds on the wall, and bytes of its address space.
LIMIT_S, LIMIT_BYTES = 120, 8 << 30
EXITS = (0, 1, 2)
INTERRUPTED = 130
#: A tab and a line's end are none.
CONTROLS = frozenset(map(chr, (*range(9), *range(11, 32), 127, *range(128, 160))))

WORDS = (
    "0", "-1", "1e308", "nan", "inf", "9223372036854775807", "18446744073709551616", '""', "[]", "{}", "true",
    '"1 Pbps"', '"0 ms"', '"-5 ms"', '"1 ns"', '"1000 years"', '"100 %"', '"101 %"', '"\\u001b[31m"',
    '"../../etc/passwd"', '"/dev/zero"', '"/dev/stdin"', '"\\u0000"', '"client"', '"a\\nb"', "1979-05-27", "[[[[1]]]]",
    '"' + "x" * 5000 + '"',
)  # fmt: skip


def lines_changed(text: str, draw: random.Random) -> str:
    """A text file after a few changes that keep it close to what it was."""
    lines = text.splitlines(keepends=True) or ["\n"]
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        at = draw.randrange(len(lines))
        match draw.choice(("drop", "twice", "swap", "value", "value", "character", "key", "move")):
            case "drop" if len(lines) > 1:
                del lines[at]
            case "twice":
                lines.insert(at, lines[at])
            case "swap":
                other = draw.randrange(len(lines))
                lines[at], lines[other] = lines[other], lines[at]
            case "value" if "=" in lines[at]:
                lines[at] = f"{lines[at].partition('=')[0]}= {draw.choice(WORDS)}\n"
            case "key" if "=" in lines[at]:
                key, _, value = lines[at].partition("=")
                lines[at] = f"{key.strip()[:-1] or 'x'} ={value}"
            case "move":
                lines.insert(draw.randrange(len(lines)), lines.pop(at))
            case _:
                place = draw.randrange(len(lines[at]) + 1)
                mark = draw.choice(("\x1b[2J", "\x00", "{", "]", '"', "\u202e", "é", ",", "-", "9", "#", "=", "."))
                lines[at] = lines[at][:place] + mark + lines[at][place:]
    return "".join(lines)


def bytes_changed(whole: bytes, draw: random.Random) -> bytes:
    """A binary file after one kind of damage."""
    if not whole:
        return draw.randbytes(20)
    at, other = sorted(draw.randrange(len(whole)) for _ in range(2))
    match draw.choice(("cut", "removed", "repeated", "zeroed", "noise", "flipped", "flipped")):
        case "cut":
            return whole[:at]
        case "removed":
            return whole[:at] + whole[other:]
        case "repeated":
            return whole[:other] + whole[at:]
        case "zeroed":
            return whole[:at] + bytes(min(other - at, 3000)) + whole[min(other, at + 3000) :]
        case "noise":
            return whole[:at] + draw.randbytes(draw.randrange(1, 400)) + whole[other:]
        case _:
            changed = bytearray(whole)
            for _ in range(draw.randrange(1, 60)):
                changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
            return bytes(changed)


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def offered(folder: Path, *arguments: str, named: Sequence[str], exits: Sequence[int] = EXITS) -> None:
    """Runs a command over hostile files in its folder, after which it ends with one of these codes. Raises Lost."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    try:
        done = subprocess.run(
            [COMMAND, *arguments],
            cwd=folder,
            capture_output=True,
            check=False,
            timeout=LIMIT_S,
            preexec_fn=_limited,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise Lost(f"{' '.join(arguments)} takes longer than {LIMIT_S} s") from None
    said, printed = done.stderr.decode(errors="replace"), done.stdout.decode(errors="replace")
    if done.returncode not in exits:
        raise Lost(f"{' '.join(arguments)} ended with {done.returncode}: {said[-500:]}")
    if "Traceback" in said or "panicked" in said:
        raise Lost(f"{' '.join(arguments)}: {said[-800:]}")
    if found := CONTROLS & set(said + printed):
        raise Lost(f"{' '.join(arguments)} prints control characters: {sorted(map(ord, found))}")
    if done.returncode == 2 and not any(name in said for name in named):
        raise Lost(f"{' '.join(arguments)} does not say which file is wrong: {said[-500:]}")
    if {path: path.read_bytes() for path in before} != before:
        raise Lost(f"{' '.join(arguments)} changed what it read")


@cache
def _scenarios() -> list[tuple[Path, str]]:
    """Those of the labs and of the examples, with the folder that other files of theirs are in."""
    found = [lab.folder / "scenario.toml" for lab in labs.catalogue().values()]
    found += sorted((ROOT / "examples").glob("*.toml"))
    return [(path.parent, path.read_text(encoding="utf-8")) for path in found if path.exists()]


@sabotage("hostile-scenario", "files", "changed scenarios of labs and examples: lines, keys, values, characters")
def scenario(draw: random.Random, folder: Path) -> int:
    beside, text = draw.choice(_scenarios())
    shutil.copytree(beside, folder, dirs_exist_ok=True)
    (folder / "hostile.toml").write_text(lines_changed(text, draw), encoding="utf-8")
    offered(folder, "validate", "hostile.toml", named=["hostile.toml"])
    return 1


LINKED = SCENARIO.partition("[vary]")[0].replace('"20 s"', '"500 ms"')


def _trace(draw: random.Random, folder: Path, kind: str, name: str, use: str) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([COMMAND, "new-trace", kind, name], cwd=folder, check=True, capture_output=True)
    text = (folder / name).read_text(encoding="utf-8")
    (folder / name).write_text(lines_changed(text, draw), encoding="utf-8")
    (folder / "linked.toml").write_text(LINKED.replace('rate = "20 Mbps"', use))
    offered(folder, "run", "linked.toml", named=[name, "linked.toml"])
    return 1


@sabotage("hostile-trace", "files", "changed Mahimahi traces behind a link")
def mahimahi(draw: random.Random, folder: Path) -> int:
    return _trace(draw, folder, "lte", "lte.up", 'rate = { trace = "lte.up" }')


@sabotage("hostile-conditions", "files", "changed CSV files of a link's rate, delay and loss")
def conditions(draw: random.Random, folder: Path) -> int:
    return _trace(draw, folder, "satellite", "sky.csv", 'rate = "20 Mbps"\nconditions = { csv = "sky.csv" }')


PAGE = LINKED.partition("[[application]]")[0] + '[[application]]\nname = "p"\nkind = "page"\ntransport = "tcp"\n'


@sabotage("hostile-page", "files", "changed HAR and CSV files of a web page")
def page(draw: random.Random, folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    urls = [f"http://example.org/{number}" for number in range(6)]
    entries = [
        {
            "request": {"url": url},
            "response": {"status": 200, "bodySize": draw.randrange(50_000), "content": {"size": 10}},
            "_initiator": {"type": "parser", "url": draw.choice(urls[: number or 1])},
        }
        for number, url in enumerate(urls)
    ]
    if draw.random() < 0.5:
        text, name = json.dumps({"log": {"version": "1.2", "entries": entries}}, indent=1), "page.har"
    else:
        rows = [f"o{number},{draw.randrange(9000)},{f'o{number - 1}' if number else ''},5" for number in range(6)]
        text, name = "\n".join(["object,size_bytes,after,think_ms", *rows]) + "\n", "page.csv"
    (folder / name).write_text(lines_changed(text, draw), encoding="utf-8")
    (folder / "page.toml").write_text(f'{PAGE}{name.rpartition(".")[2]} = "{name}"\n')
    offered(folder, "run", "page.toml", named=[name, "page.toml"])
    return 1


@cache
def _captures() -> list[bytes]:
    """Captures of a short run, of both hosts."""
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "linked.toml").write_text(LINKED)
        command = [str(COMMAND), "run", "linked.toml", "--out", "out", "--pcap", "hosts"]
        subprocess.run(command, cwd=place, check=True, capture_output=True)
        return [path.read_bytes() for path in sorted(Path(place).rglob("*.pcapng"))]


@sabotage("hostile-capture", "files", "damaged captures: cut, removed, repeated, zeroed, flipped, noise")
def capture(draw: random.Random, folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hostile.pcapng").write_bytes(bytes_changed(draw.choice(_captures()), draw))
    offered(folder, "trace", "hostile.pcapng", named=["hostile.pcapng"])
    return 1


@cache
def _result() -> Path:
    import atexit
    import tempfile

    place = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    (place / "linked.toml").write_text(LINKED)
    subprocess.run([COMMAND, "run", "linked.toml", "--out", "out"], cwd=place, check=True, capture_output=True)
    return place / "out"


@sabotage("hostile-result", "files", "a stored result with a damaged file, shown and reported")
def result(draw: random.Random, folder: Path) -> int:
    shutil.copytree(_result(), folder / "out", dirs_exist_ok=True)
    path = draw.choice(sorted(path for path in (folder / "out").rglob("*") if path.is_file()))
    if path.suffix in (".json", ".toml") and draw.random() < 0.7:
        path.write_text(lines_changed(path.read_text(encoding="utf-8"), draw), encoding="utf-8")
    else:
        path.write_bytes(bytes_changed(path.read_bytes(), draw))
    command = draw.choice((["show", "out"], ["report", "out", "--out", "page.html"]))
    offered(folder, *command, named=["out"])
    return 1


#: It is Ctrl-C by another name.
INTERRUPTS = "raise KeyboardInterrupt"
BEHAVIOURS = (
    "return 'no number'", "return 10 ** 30", "return -1", "raise SystemExit(0)", INTERRUPTS,
    "raise MemoryError", "raise RecursionError", "return self.select(view)",
    "view.paths.clear()", "return view", "del view.paths", "import sys; sys.exit(1)", "return True", "return 0.0",
    "raise Exception('\\x1b[2Jcleared')", "return [0]", "return float('nan')", "yield 0",
)  # fmt: skip


@sabotage("hostile-scheduler", "files", "schedulers in Python with forbidden results, exceptions or calls")
def scheduler(draw: random.Random, folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    when, behaviour = draw.randrange(200), draw.choice(BEHAVIOURS)
    (folder / "own.py").write_text(
        "class Own:\n    calls = 0\n\n    def select(self, view):\n        self.calls += 1\n"
        f"        if self.calls > {when}:\n            {behaviour}\n"
        "        return next((path.index for path in view.paths if path.ready), None)\n"
    )
    (folder / "linked.toml").write_text(LINKED + '\n[defaults]\nscheduler = "own.py:Own"\n')
    exits = (0, INTERRUPTED) if behaviour == INTERRUPTS else EXITS
    offered(folder, "run", "linked.toml", named=["own.py", "Own", "linked.toml"], exits=exits)
    return 1


CONTROLLED = """
name = "controlled"
duration = "500 ms"

[host.a]
[host.b]

[switch.s]

[link.left]
ends = ["a", "s"]
rate = "10 Mbps"
delay = "1 ms"

[link.right]
ends = ["s", "b"]
rate = "10 Mbps"
delay = "1 ms"

[controller]
app = "own.py"

[[application]]
name = "transfer"
kind = "bulk"
start = "100 ms"
transport = "tcp"
client = "a"
server = "b"
"""


#: Put before a line of an application that works.
RUDE = (
    "raise SystemExit(0)", "raise KeyboardInterrupt", "import os; os._exit(3)", "import os; os.kill(os.getpid(), 9)",
    "raise Exception('\\x1b[2Jcleared')", "self.switches = None", "event.msg.datapath.socket.close()",
    "event.msg.datapath.socket.send(b'\\xff' * 64)",
    "event.msg.datapath.socket.send(b'\\x04\\x0e\\x00\\x08\\0\\0\\0\\0' * 99)",
    "event.msg.data = b''", "return", "import time; time.sleep(10 ** 9)", "undefined",
)  # fmt: skip


@sabotage(
    "hostile-controller", "files", "applications of os-ken that raise, exit, are killed, or send invalid OpenFlow"
)
def controller(draw: random.Random, folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    lines = (ROOT / "examples" / "learning_switch.py").read_text(encoding="utf-8").splitlines(keepends=True)
    inside = [number for number, line in enumerate(lines) if line.startswith("        ") and "event" in line]
    at = draw.choice(inside)
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    lines.insert(at, f"{indent}{draw.choice(RUDE)}\n")
    (folder / "own.py").write_text("".join(lines), encoding="utf-8")
    (folder / "controlled.toml").write_text(CONTROLLED)
    offered(folder, "run", "controlled.toml", named=["own.py", "controlled.toml"])
    return 1
