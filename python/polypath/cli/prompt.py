"""The prompt of `polypath shell`, with commands as in Mininet and minitopo."""

from __future__ import annotations

import cmd
import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from polypath.cli import signals
from polypath.cli.console import printable
from polypath.engines.namespaces.session import Gone, Session, keep
from polypath.errors import PolypathError
from polypath.plan.access import ENDS
from polypath.results import UnknownName
from polypath.scenario import Scenario, ScenarioError
from polypath.units import nearest

#: Requests of `ping`, and seconds of `iperf`, where nobody says.
_PINGS: Final = 4
_SECONDS: Final = "5"
#: The longest duration of a scenario.
_LONGEST_NS: Final = 10**15
#: What `link` changes besides up and down.
_CHANGES: Final = ("rate", "delay", "loss")
_WAYS: Final = ("forward", "backward")


class Refused(PolypathError):
    """A line that makes no sense; the message is one line."""


@dataclass
class _Started:
    """A program in the background."""

    words: str
    host: str
    number: int
    folder: Path


class Prompt(cmd.Cmd):
    """Reads lines and does what they say, until `exit`, Ctrl-D, SIGTERM or the network's end (Gone)."""

    doc_header = "Commands (help COMMAND explains one); HOST PROGRAM [ARGUMENT].. [&] runs a program on a host:"
    undoc_header = ""

    def __init__(self, session: Session, scenario: Scenario, engine: str, *, mptcp: bool, asked: bool) -> None:
        super().__init__()
        self.session = session
        self.scenario = scenario
        self.engine = engine
        self.mptcp = mptcp
        self.prompt = "polypath> " if asked else ""
        nodes = session.plan["nodes"]
        self.hosts = {node["name"]: index for index, node in enumerate(nodes) if node["kind"] == "host"}
        self.events = 0
        self.changed: dict[str, dict[str, str]] = {}
        self.background: dict[int, _Started] = {}
        self.captures: list[tuple[str, int, Path]] = []
        self.pcap_folder = Path()
        self.pcaps = 0

    def run(self) -> None:
        """To the end of what is typed."""
        with signals.heard_while_reading():
            self._run()

    def _run(self) -> None:
        while True:
            try:
                self.cmdloop()
            except KeyboardInterrupt:
                if signals.is_end():
                    raise
                signals.forgive()
                print()
            else:
                return

    def onecmd(self, line: str) -> bool:
        try:
            left = bool(super().onecmd(line))
        except Gone:
            raise
        except PolypathError as error:
            self._say(" ".join(str(error).split()))
            return False
        except OSError as error:
            self._say(f"{error.filename or line}: {error.strerror or error}")
            return False
        except ValueError as error:  # of shlex: a quotation without end
            self._say(f"{line}: {error}")
            return False
        signals.forgive()
        sys.stdout.flush()
        return left

    def emptyline(self) -> bool:
        return False

    def default(self, line: str) -> bool:  # type: ignore[override]
        if line == "EOF":
            print() if self.prompt else None
            return True
        first, *words = shlex.split(line)
        if first in self.hosts:
            self._program(first, words)
            return False
        hint = nearest(first, [*self._commands(), *self.hosts])
        better = f"did you mean '{hint}'?" if hint else "help lists what there is"
        raise Refused(f"unknown command or host '{first}'; {better}")

    def completenames(self, text: str, *ignored: Any) -> list[str]:
        return [name for name in (*self._commands(), *self.hosts) if name.startswith(text)]

    def completedefault(self, text: str, *ignored: Any) -> list[str]:
        names = [*self.hosts, *(link["name"] for link in self.session.plan["links"])]
        return [name for name in names if name.startswith(text)]

    def do_exit(self, given: str) -> bool:
        """exit: leave; the network and all that runs in it are gone then. Ctrl-D does the same."""
        return True

    def do_quit(self, given: str) -> bool:
        """quit: as exit."""
        return True

    def do_link(self, given: str) -> None:
        """link NAME up|down, link NAME [rate 5Mbps] [delay 20ms] [loss 1%] [forward|backward]: change a link."""
        name, *words = self._words(given, 2, "link NAME up|down, or link NAME rate 5Mbps")
        event: dict[str, Any] = {"link": name}
        while words:
            word = words.pop(0)
            if word in ("up", "down"):
                event["up"] = word == "up"
            elif word in _WAYS:
                event["direction"] = word
            elif word in _CHANGES and words:
                event[word] = words.pop(0)
            elif word in _CHANGES:
                raise Refused(f"link: '{word}' needs a value, such as {word} {_example(word)}")
            else:
                raise Refused(f"link: {UnknownName.of('change', word, ('up', 'down', *_CHANGES, *_WAYS))}")
        if set(event) == {"link", "direction"}:
            raise Refused(f"link: nothing changes; give up, down, {', '.join(_CHANGES[:-1])} or {_CHANGES[-1]}")
        self._change(event, f"link {name}")
        told = {key: str(value) for key, value in event.items() if key in _CHANGES}
        if "up" in event:
            told["state"] = "up" if event["up"] else "down"
        self.changed.setdefault(name, {}).update(told)

    def do_interface(self, given: str) -> None:
        """interface HOST:NAME up|down: change a host's interface, which the host is told."""
        name, state = self._words(given, 2, "interface HOST:NAME up|down")[:2]
        if state not in ("up", "down"):
            raise Refused(f"interface: '{state}' is not up or down")
        self._change({"interface": name, "up": state == "up"}, f"interface {name}")

    def do_ping(self, given: str) -> None:
        """ping A B [COUNT]: ICMP echo requests from a host to another's first address, one a second."""
        a, b, *rest = self._words(given, 2, "ping A B [COUNT]")
        count = _number("ping", rest[0]) if rest else _PINGS
        delays = self.session.ping(self._host(a), self._host(b), count)
        for index, delay in enumerate(delays, 1):
            print(f"{index}: {'no answer' if delay is None else f'{delay / 1e6:.3f} ms'}")
        answered = [delay for delay in delays if delay is not None]
        mean = f", {sum(answered) / len(answered) / 1e6:.3f} ms on average" if answered else ""
        print(f"{len(answered)} of {len(delays)} answered{mean}")

    def do_pingall(self, given: str) -> None:
        """pingall: one request from each host to each other."""
        failed = 0
        for a in self.hosts:
            told = []
            for b in self.hosts:
                if a != b:
                    answered = None not in self.session.ping(self.hosts[a], self.hosts[b], 1)
                    told.append(b if answered else "X")
                    failed += not answered
            print(f"{a} -> {' '.join(told)}")
        print(f"{failed} without an answer")

    def do_iperf(self, given: str) -> None:
        """iperf A B [SECONDS]: iperf3 from a host to another, which runs its server as long."""
        a, b, *rest = self._words(given, 2, "iperf A B [SECONDS]")
        server, _ = self.session.start(self._host(b), ["iperf3", "-s"], self.mptcp)
        try:
            seconds = str(_number("iperf", rest[0])) if rest else _SECONDS
            # the server listens a moment later, in real time
            words = ["sh", "-c", f"for i in 1 2 3 4 5; do iperf3 -c {b} -t {seconds} && break; sleep 0.2; done"]
            self.session.program(self._host(a), words, self.mptcp, _print)
        finally:
            self.session.stop(server)

    def do_dump(self, given: str) -> None:
        """dump: hosts, routers and switches with their interfaces and addresses, and links with what was changed."""
        plan = self.session.plan
        for node in plan["nodes"]:
            told = ", ".join(f"{each['name']} {' '.join(each['addresses'])}".strip() for each in node["interfaces"])
            print(f"{node['kind']} {node['name']}: {told}")
        for link in plan["links"]:
            a, b = (
                f"{plan['nodes'][link[end]['node']]['name']}:"
                f"{plan['nodes'][link[end]['node']]['interfaces'][link[end]['interface']]['name']}"
                for end in ENDS
            )
            changed = self.changed.get(link["name"], {})
            told = "".join(f", {key} {value}" for key, value in changed.items() if key != "state")
            print(f"link {link['name']}: {a} - {b}, {changed.get('state', 'up')}{told}")

    def do_pcap(self, given: str) -> None:
        """pcap start [FOLDER], pcap stop: captures at all hosts, HOST.pcapng in the folder (capture, if left out)."""
        what, *rest = self._words(given, 1, "pcap start [FOLDER], or pcap stop")
        if what == "start" and not self.captures:
            self.pcap_folder = Path(rest[0] if rest else "capture")
            for name in (each.file for each in self.session.job.captures):
                if (self.pcap_folder / name).exists():
                    raise Refused(f"{self.pcap_folder / name} exists; name another folder")
            self.pcap_folder.mkdir(parents=True, exist_ok=True)
            self.captures = self.session.capture(self.pcaps)
            self.pcaps += 1
        elif what == "stop" and self.captures:
            started, self.captures = self.captures, []
            for _, number, _ in started:
                self.session.stop(number)
            for name, _, file in started:
                keep(file, self.pcap_folder / name)
                print(self.pcap_folder / name)
        elif what in ("start", "stop"):
            raise Refused("captures are running; pcap stop ends them" if what == "start" else "no captures are running")
        else:
            raise Refused(f"pcap: '{what}' is not start or stop")

    def do_jobs(self, given: str) -> None:
        """jobs: programs in the background, with what they printed so far."""
        for number, each in self.background.items():
            print(f"[{number}] {each.host} {each.words}{self._ended(each)}")
            for name in ("stdout", "stderr"):
                path = each.folder / name
                sys.stdout.write(path.read_text(encoding="utf-8", errors="replace") if path.is_file() else "")

    def do_stop(self, given: str) -> None:
        """stop NUMBER: end a program in the background."""
        number = _number("stop", self._words(given, 1, "stop NUMBER")[0])
        if number not in self.background:
            raise Refused(f"stop: no program in the background has number {number}; jobs lists them")
        self.session.stop(self.background.pop(number).number)

    def do_time(self, given: str) -> None:
        """time: seconds since the network came up, in its own time."""
        print(f"{self.session.now_ns / 1e9:.6f} s")

    def _program(self, host: str, words: list[str]) -> None:
        if not words:
            raise Refused(f"{host}: name a program, such as {host} ip address")
        if Path(words[0]).name == "xterm":
            self._require_display()
            words = ["env", f"DISPLAY={os.environ['DISPLAY']}", f"XAUTHORITY={_authority()}", *words, "&"]
        if words[-1].endswith("&"):
            words[-1] = words[-1].removesuffix("&")
            words = [word for word in words if word]
            number = max(self.background, default=0) + 1
            self.background[number] = _Started(shlex.join(words), host, *self._start(host, words))
            print(f"[{number}] {shlex.join(words)}")
            return
        _require_ping(host, words)
        code = self.session.program(self.hosts[host], words, self.mptcp, _print)
        if code:
            self._say(f"{words[0]}: exit code {code}")

    def _start(self, host: str, words: list[str]) -> tuple[int, Path]:
        if not words:
            raise Refused(f"{host}: name a program before the &")
        _require_ping(host, words)
        return self.session.start(self.hosts[host], words, self.mptcp)

    def _require_display(self) -> None:
        if self.engine != "live":
            raise Refused(f"no window opens from engine {self.engine}, which is cut off; --engine live")
        if not os.environ.get("DISPLAY"):
            raise Refused("xterm needs an X server, and DISPLAY is not set")

    def _change(self, event: dict[str, Any], typed: str) -> None:
        """Has the network change now. Raises ScenarioError, which names what was `typed`, not the event it is."""
        bare = self.scenario.model_copy(update={"duration": _LONGEST_NS, "event": []})
        try:
            made = bare.with_more("event", [{**event, "at": "0 s"}])
        except ScenarioError as error:
            said = re.sub(r"^event 1[.:] ?", f"{typed} ", error.message)
            raise ScenarioError(said, hint=error.hint) from error
        for each in made.plan().view["events"]:
            self.session.change(self.events, {**each, "at_ns": self.session.now_ns})
            self.events += 1

    def _host(self, name: str) -> int:
        if name not in self.hosts:
            raise UnknownName.of("host", name, self.hosts)
        return self.hosts[name]

    def _ended(self, each: _Started) -> str:
        try:
            code = int((each.folder / "end").read_text(encoding="utf-8").split()[2])
        except (OSError, ValueError, IndexError):
            return ""
        return f" (ended, exit code {code})"

    def _words(self, given: str, least: int, usage: str) -> list[str]:
        words = shlex.split(given)
        if len(words) < least:
            raise Refused(f"write {usage}")
        return words

    @staticmethod
    def _commands() -> list[str]:
        return sorted(name.removeprefix("do_") for name in dir(Prompt) if name.startswith("do_"))

    @staticmethod
    def _say(text: str) -> None:
        sys.stdout.flush()
        print(printable(text), file=sys.stderr, flush=True)


def _require_ping(host: str, words: list[str]) -> None:
    if words[0] == "ping" and shutil.which("ping") is None and len(words) > 1:
        raise Refused(f"this machine has no ping (apt-get install iputils-ping); ping {host} {words[-1]} does without")


def _print(printed: bytes) -> None:
    sys.stdout.buffer.write(printed)
    sys.stdout.buffer.flush()


def _number(what: str, text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 10**6:
        raise Refused(f"{what}: '{text}' is no number from 1 on")
    return int(text)


def _example(change: str) -> str:
    return {"rate": "5Mbps", "delay": "20ms", "loss": "1%"}[change]


def _authority() -> str:
    return os.environ.get("XAUTHORITY") or str(Path.home() / ".Xauthority")
