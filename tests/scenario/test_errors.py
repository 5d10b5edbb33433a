"""Every way to get a scenario wrong ends in one line that says what and where."""

import os
from pathlib import Path

import pytest

from polypath.scenario import Scenario, ScenarioError


def complaint(text: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(text, "lab.toml")
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('rate = "20 Mbps"', "rate = 20", '19: link.path0.rate: 20 has no unit; write for example "20 Mbps"'),
        ('rate = "20 Mbps"', 'rate = "20 ms"', "19: link.path0.rate: '20 ms' is a time, not a rate"),
        ('rate = "20 Mbps"', 'rate = "0 Mbps"', "19: link.path0.rate: a rate must be greater than zero: '0 Mbps'"),
        ('delay = "20 ms"', 'delay = "-1 ms"', "20: link.path0.delay: a time cannot be negative: '-1 ms'"),
        ('rate = "20 Mbps"', 'raet = "20 Mbps"', "19: unknown key 'raet' in link.path0; did you mean 'rate'?"),
        ("[router.r]", "[routers.r]", "15: unknown key 'routers'; did you mean 'router'?"),
        (
            '"roundrobin"',
            '"rondrobin"',
            "8: host.client.scheduler: unknown scheduler 'rondrobin'; did you mean 'roundrobin'?",
        ),
        (
            '"roundrobin"',
            '{ kind = "roundrobin", num_segment = 2 }',
            "8: host.client.scheduler: scheduler 'roundrobin' has no parameter 'num_segment'; "
            "did you mean 'num_segments'?",
        ),
        (
            '"roundrobin"',
            '{ kind = "roundrobin", num_segments = 0 }',
            "8: host.client.scheduler: parameter 'num_segments' of scheduler 'roundrobin' is at least 1, not 0",
        ),
        (
            '"roundrobin"',
            '{ kind = "roundrobin", cwnd_limited = 1 }',
            "8: host.client.scheduler: parameter 'cwnd_limited' of scheduler 'roundrobin' takes true or false, not 1",
        ),
        (
            '"roundrobin"',
            "7",
            '8: host.client.scheduler: expected a name such as "default", or a table with its kind and parameters',
        ),
        (
            'loss = "1 %"',
            'middlebox = { box = "nat" }',
            '27: link.path1.middlebox: expected a name such as "nat", or a table with its kind and parameters',
        ),
        (
            '"roundrobin"',
            '"mine.py"',
            "8: host.client.scheduler: 'mine.py' is a file; name its class, too, as 'mine.py:CLASS'",
        ),
        ('"mptcp.org"', '"mptcp"', "5: defaults.profile: unknown profile 'mptcp'; did you mean 'mptcp.org'?"),
        ('["r", "server"]', '["q", "srever"]', "30: unknown host, router or switch 'q'; there is client, server, r"),
        ('["r", "server"]', '["r"]', "30: link.server.ends: a link has two ends, not 1"),
        ('["r", "server"]', '["r:x", "r:y"]', "30: link 'server' joins 'r' with itself"),
        ('["r", "server"]', '["r", "client"]', "13: host 'server' is disconnected: no link ends at it"),
        (
            '["r", "server"]',
            '["r", "server"]\n[link.x]\nends = ["client:eth0", "server"]',
            "32: interface client:eth0 has a link already, 'path0'",
        ),
        ('["client", "r"]', '["client:wlan0", "r"]', "10: no link ends at client:eth1; name it in the link's ends"),
        ('kind = "bulk"', 'kind = "blk"', "34: application 1: unknown kind 'blk'; did you mean 'bulk'?"),
        ('kind = "bulk"', "", "32: application 1: 'kind' is missing"),
        ('kind = "bulk"', 'kind = "fetch"', "32: application 1: 'size' is missing"),
        ('kind = "bulk"', 'kind = "bulk"\nclient = "cleint"', "35: unknown host 'cleint'; did you mean 'client'?"),
        ('kind = "bulk"', 'kind = "bulk"\nclient = "r"', "35: unknown host 'r'; there is client, server"),
        (
            'kind = "bulk"',
            'kind = "bulk"\ntransport = "mtcp"',
            "35: application 1.transport: 'mtcp' is not mptcp, tcp, mpquic or quic; did you mean 'mptcp'?",
        ),
        (
            'kind = "bulk"',
            'kind = "bulk"\nstart = "30 s"',
            "35: it starts at 30 s, but the run ends at 30 s; give an earlier time or a longer 'duration'",
        ),
        (
            'link = "path0"\nloss = "100 %"',
            'interface = "eth0"\nup = true',
            "39: 'eth0' is no interface of a host, such as 'client:eth0'",
        ),
        (
            'queue = "80 packets"',
            "queue = true",
            "21: link.path0.queue: expected a length, such as '80 packets' or '213 kB', or a table",
        ),
        (
            "[host.server]",
            "[host.server]\nack_frequency = true",
            "14: host.server.ack_frequency: expected a number of packets, such as 10, or a table",
        ),
        ('kind = "bulk"', 'kind = "bulk"\nserver = "client"', "32: client and server are the same host, 'client'"),
        (
            'kind = "bulk"',
            'kind = "bulk"\nreverse = "no"',
            "35: application 1.reverse: expected true or false, not 'no'",
        ),
        (
            'kind = "bulk"',
            'kind = "bulk"\nsource = "10.9.9.9"',
            "35: 10.9.9.9 is no address of 'client', which has 10.0.0.1, 10.0.1.1",
        ),
        (
            "backup = true",
            'address = "2001:db8::1"\n[host.client.interface.eth0]\naddress = "2001:db8::2"',
            "34: 'client' and 'server' have no addresses of one IP version that fit application 'iperf'",
        ),
        ('link = "path0"', 'link = "path9"', "39: unknown link 'path9'; did you mean 'path1'?"),
        ('link = "path0"', 'interface = "client:eth5"', "40: 'loss' is nothing that changes of an interface"),
        ('link = "path0"', "", "37: an event is of either a 'link', an 'interface', a 'host' or a 'switch'"),
        ('loss = "100 %"', "", "37: the event changes nothing; give one of rate, delay, loss, queue, up"),
        ('loss = "1 %"', 'loss = "200 %"', "27: link.path1.loss: a share cannot be more than 100 %: '200 %'"),
        (
            'loss = "1 %"',
            'loss = { kind = "gilbert-eliott" }',
            "27: link.path1.loss: unknown kind 'gilbert-eliott'; did you mean 'gilbert-elliott'?",
        ),
        (
            'queue = "80 packets"',
            'queue = { kind = "red", min = "50 packets", max = "25 packets" }',
            "21: link.path0.queue: 'max' of red must be greater than 'min'",
        ),
        (
            'queue = "80 packets"',
            "queue = 80",
            "21: link.path0.queue: expected a length with its unit, such as '80 packets' or '213 kB', not 80",
        ),
        (
            'queue = "80 packets"',
            'queue = { kind = "fq_codel" }',
            "21: link.path0.queue: unknown kind 'fq_codel'; did you mean 'fq-codel'?",
        ),
        (
            'queue = "80 packets"',
            'queue = { kind = "drr", quantum = "255 B" }',
            "21: link.path0.queue.quantum: must be at least 256 B, not 255 B",
        ),
        (
            'queue = "80 packets"',
            'queue = { kind = "fq-codel", flows = 0 }',
            "21: link.path0.queue.flows: must be at least 1, not 0",
        ),
        (
            'queue = "80 packets"',
            'queue = { kind = "pie", beta = -1 }',
            "21: link.path0.queue.beta: must be at least 0.0, not -1",
        ),
        (
            'loss = "1 %"',
            'queue_at = "host-netem"\nqueue = { kind = "fq-codel" }',
            "28: link.path1: a queue at the host is one for all flows; 'drr', 'fq-codel' and 'fq-pie' are at the link",
        ),
        (
            'queue = "80 packets"',
            'queue = "80 pakets"',
            "21: link.path0.queue: unknown unit 'pakets' in '80 pakets'; did you mean 'packets'?",
        ),
        (
            'loss = "1 %"',
            'burst = "1 kB"',
            "27: link.path1: a bucket of 1 kB never holds a packet of 1514 bytes ('mtu' and 'overhead');"
            " did you mean '1514 B'?",
        ),
        (
            'loss = "1 %"',
            'mtu = 1400\noverhead = 38\nforward.burst = "1437 B"',
            "29: link.path1.forward: a bucket of 1437 B never holds a packet of 1438 bytes ('mtu' and 'overhead');"
            " did you mean '1438 B'?",
        ),
        (
            '["r", "server"]',
            '["r", "server"]\nburst = "15 kB"',
            "31: link.server: 'burst' is about a rate, and there is none",
        ),
        ('loss = "1 %"', "mtu = 100", "27: link.path1.mtu: must be at least 576, not 100"),
        (
            'loss = "1 %"',
            "icmp = false",
            "27: link.path1: 'icmp' is about packets longer than 'mtu', and there is none",
        ),
        (
            'loss = "1 %"',
            'bypass = "200 B"\nqueue_at = "host-netem"',
            "27: link.path1: 'bypass' is of links with a rate of their own, whose queue is at the link",
        ),
        ('loss = "1 %"', "bypass = 200", '27: link.path1.bypass: 200 has no unit; write for example "1 MB"'),
        (
            'loss = "1 %"',
            'queue_at = "hosts"',
            "27: link.path1.queue_at: 'hosts' is not link, host-netem or host-tbf; did you mean 'host-tbf'?",
        ),
        (
            '["r", "server"]',
            '["r", "server"]\nrate = "1 Mbps"\nforward.queue_at = "host-netem"',
            "32: link.server.forward: the queue cannot be at the host: 'r' is none",
        ),
        (
            '["r", "server"]',
            '["r", "server"]\nqueue_at = "host-netem"',
            "31: link.server: 'queue_at' is about a queue, and without 'rate' there is none",
        ),
        (
            'loss = "1 %"',
            'queue_at = "host-tbf"\nburst = "15 kB"',
            "27: link.path1: a host's tbf is drop-tail without burst, duplicates and reordering",
        ),
        (
            "[router.r]",
            '[router.r]\nrouting = "ecmp"',
            "16: unknown key 'routing' in router.r; of the whole scenario it stands above the first [table]",
        ),
        (
            'kind = "bulk"',
            'kind = "command"\ncommand = ["ls", 1]',
            "35: application 1.command: expected a line for sh, or a list of a program and its arguments, each a text",
        ),
        (
            'kind = "bulk"',
            'kind = "page"\nobjects = [{ name = "a", size = "1 kB", path = "a b" }]',
            "35: application 1.objects 1.path: 'a b' is no path, such as '/index.html'; a space is written as %20",
        ),
        (
            'kind = "bulk"',
            'kind = "page"\nobjects = [{ name = "", size = "1 kB" }]',
            "35: application 1.objects 1.name: the text is empty",
        ),
        (
            'kind = "bulk"',
            f'kind = "video"\nrates = {[f"{n} kbps" for n in range(1, 102)]}',
            "35: application 1.rates: there are 101, and 100 at most are taken",
        ),
        (
            "[router.r]",
            '[controller]\napp = "mine"\n[router.r]',
            "16: controller.app: 'mine' is no Python file, such as 'my_app.py'",
        ),
        ("[[application]]", "[application]", "32: application: expected a list, not a table; write [[application]]"),
        ("[router.r]", "[[vary]]\n[router.r]", "15: vary: expected a table, not a list; write [vary]"),
        ("[router.r]", "[[router.r]]", "15: router.r: expected a table, not a list; write [router.r]"),
        ("[router.r]", "[[router]]\nname = 'r'", "15: router: expected a table, not a list; write [router.NAME]"),
        ("[router.r]", "[host.r]\n[router.r]", "16: duplicate name: 'r' is a host already"),
        ("[router.r]", "[router.r]\n[router.r]", "16: duplicate name: router.r is declared already"),
        (
            "[[event]]",
            '[[application]]\nname = "iperf"\nkind = "bulk"\n[[event]]',
            "38: duplicate name: there is an application 'iperf' already",
        ),
        (
            "backup = true",
            'address = "10.0.0.300"',
            "11: host.client.interface.eth1.address: '10.0.0.300' is no IPv4 or IPv6 address",
        ),
        *(
            (
                "backup = true",
                f'address = "{address}"',
                f"11: host.client.interface.eth1.address: '{address}' cannot be the address of an interface",
            )
            for address in ("0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", "::1", "ff02::1", "fe80::1%eth0")
        ),
        (
            '["r", "server"]',
            '["r:eth2:0", "server"]',
            "30: 'eth2:0' has a character that no interface name has: white space, '/', ':', or one that cannot be "
            "printed",
        ),
        (
            "backup = true",
            'address = ["10.1.1.1", "10.1.1.1"]',
            "11: duplicate address: 10.1.1.1 belongs to client:eth1 already",
        ),
        (
            'name = "two-paths"',
            'name = "two paths"',
            "1: name: 'two paths' is no name: letters, digits, '_' and '-', at most 63 of them",
        ),
        ('duration = "30 s"', "duration = ", "2: invalid TOML: invalid value"),
        (
            'duration = "30 s"',
            "duration = 30 s  # long",
            '2: invalid TOML: a text stands in quotes: duration = "30 s"',
        ),
        ('duration = "30 s"', "duration = long", '2: invalid TOML: a text stands in quotes: duration = "long"'),
        ('duration = "30 s"', "capture = True", "2: invalid TOML: write capture = true"),
        ('duration = "30 s"', 'duration = "30 s', "2: invalid TOML: illegal character '\\n'"),
        ('duration = "30 s"', "duration = “30 s”", '2: invalid TOML: a text stands in quotes: duration = "30 s"'),
        ('duration = "30 s"', "duration = null", "2: invalid TOML: there is no null; leave the key out"),
        ('duration = "30 s"', "duration = '30 s", "2: invalid TOML: a text begins with ' and does not end"),
        ('duration = "30 s"', 'description = """30 s', '2: invalid TOML: a text begins with """ and does not end'),
        ('duration = "30 s"', "seed = " + "1" * 5000, "2: invalid TOML: a number of too many digits"),
        ('name = "two-paths"', 'duration = "1 s"', "2: duplicate name: duration is given already"),
        ('["r", "server"]', '["r", server]', '30: invalid TOML: a text stands in quotes: "server"'),
        ('["r", "server"]', '["r", True]', "30: invalid TOML: write true"),
        ('duration = "30 s"', "seed = -1", "2: seed: must be at least 0, not -1"),
        ('duration = "30 s"', "seed = 1.5", "2: seed: expected a whole number, not 1.5"),
        ('duration = "30 s"', "host = 3", "7: invalid TOML: cannot overwrite a value"),
    ],
)
def test_one_line_with_place_and_hint(two_paths: str, old: str, new: str, message: str) -> None:
    assert old in two_paths
    found = complaint(two_paths.replace(old, new, 1))
    assert found == f"lab.toml:{message}"


def test_all_errors_are_collected_by_line(two_paths: str) -> None:
    text = two_paths.replace('"10 Mbps"', '"10"').replace('"20 ms"', '"20 Mbps"').replace("backup", "backpu")
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(text, "lab.toml")
    assert [error.line for error in caught.value.errors] == [11, 20, 25]
    assert caught.value.errors[0] is caught.value
    assert (caught.value.file, caught.value.hint) == ("lab.toml", "backup")


@pytest.mark.parametrize(
    ("place", "queue", "message"),
    [
        (
            "host-netem",
            '{ kind = "fq-codel" }',
            "a queue at the host is one for all flows; 'drr', 'fq-codel' and 'fq-pie' are at",
        ),
        ("host-tbf", '{ kind = "codel" }', "a host's tbf is drop-tail without burst, duplicates and reordering"),
    ],
)
def test_an_event_changes_a_queue_at_the_host_into_what_it_can_be(
    two_paths: str, place: str, queue: str, message: str
) -> None:
    text = two_paths.replace('queue = "80 packets"', f'queue_at = "{place}"', 1)
    change = f"queue = {queue}"
    found = complaint(text.replace('loss = "100 %"', change))
    assert found.startswith(f"lab.toml:40: link.path0: {message}")
    Scenario.parse(text.replace('loss = "100 %"', f'{change}\ndirection = "backward"'), "lab.toml")


@pytest.mark.parametrize(
    "link",
    [
        'queue_at = "host-netem"\nrate = "9 Mbps"\nbackward = { queue = { kind = "fq-codel" } }',
        'queue_at = "host-netem"\nforward.rate = "9 Mbps"',
        'queue_at = "host-netem"\nrate = "9 Mbps"\nbackward = { bypass = "200 B" }',
        'queue_at = "host-tbf"\nrate = "9 Mbps"\nbackward = { burst = "15 kB", reorder = "1 %" }',
        'queue_at = "host-netem"\nrate = "9 Mbps"\nbackward = { rate = { trace = "way" } }',
        'queue_at = "host-netem"\nconditions = { csv = "rates.csv" }',
    ],
)
def test_a_queue_at_the_host_is_about_the_direction_that_begins_there(
    two_paths: str, tmp_path: Path, link: str
) -> None:
    (tmp_path / "way").write_text("1\n")
    (tmp_path / "rates.csv").write_text("time_s,rate_mbps\n1,10\n")
    file = tmp_path / "lab.toml"
    file.write_text(two_paths.replace('rate = "10 Mbps"', link))
    planned = Scenario.load(file).plan().data["links"][1]
    assert "queue_at" in planned["forward"]
    assert "queue_at" not in planned["backward"]


def test_a_queue_at_the_host_may_get_its_rate_from_an_event(two_paths: str) -> None:
    text = two_paths.replace('rate = "10 Mbps"', 'queue_at = "host-netem"')
    event = '\n[[event]]\nat = "1 s"\nlink = "path1"\nrate = "5 Mbps"\n'
    Scenario.parse(text + event, "lab.toml")
    assert "without 'rate' there is none" in complaint(text + event + 'direction = "backward"\n')


def test_a_burst_is_about_a_rate_that_an_event_gives(two_paths: str) -> None:
    text = two_paths.replace('["r", "server"]', '["r", "server"]\nburst = "15 kB"', 1)
    event = '\n[[event]]\nat = "1 s"\nlink = "server"\nrate = "5 Mbps"\n'
    assert Scenario.parse(text + event, "lab.toml").link["server"].burst == 15_000
    one_way = f'{event}direction = "forward"\n'
    assert "'burst' is about a rate, and there is none" in complaint(text + one_way)
    Scenario.parse(text.replace('burst = "15 kB"', 'forward.burst = "15 kB"') + one_way, "lab.toml")


def test_disconnected_halves_are_found(two_paths: str) -> None:
    text = two_paths.replace('["r", "server"]', '["s", "server"]').replace("[router.r]", "[router.r]\n[router.s]")
    wanted = "host 'server' is disconnected from 'client', the client of 'iperf': no links lead there"
    assert complaint(text) == f"lab.toml:33: {wanted}"


def test_hosts_do_not_forward(two_paths: str) -> None:
    text = two_paths.replace("[router.r]", "[host.r]").replace('name = "iperf"', 'name = "iperf"\nclient = "client"')
    assert "disconnected from 'client'" in complaint(text)


def test_ipv6_needs_1280_bytes_where_it_can_be() -> None:
    text = """\
[host.client.interface]
eth0.address = "2001:db8::1"
eth1.address = "10.0.1.1"
[host.server.interface]
eth0.address = "2001:db8:1::1"
eth1.address = "10.0.2.1"
[host.other]
[router]
a = {}
b = {}
c = {}
[link]
first = { ends = ["client:eth0", "a"] }
second = { ends = ["a", "b"] }
third = { ends = ["b", "server:eth0"] }
side = { ends = ["b", "other"], mtu = 600 }
old = { ends = ["client:eth1", "c"], mtu = 600 }
way = { ends = ["c", "server:eth1"], mtu = 600 }
"""
    Scenario.parse(text, "lab.toml").resolved()
    for link, line in (("first", 13), ("second", 14), ("third", 15)):
        wanted = f"lab.toml:{line}: link.{link}: IPv6 needs an 'mtu' of at least 1280, not 1279 (RFC 8200 section 5)"
        for direction in ("", "backward = {", "forward = {"):
            mtu = f"{direction} mtu = 1279 {'}' if direction else ''}"
            changed = [
                line.replace(" }", f", {mtu} }}") if line.startswith(link) else line for line in text.splitlines()
            ]
            assert complaint("\n".join(changed)) == f"{wanted}; did you mean '1280'?"


def test_ports_are_taken_once(two_paths: str) -> None:
    one = '[[application]]\nname = "{}"\nkind = "bulk"\nport = 80\n'
    text = two_paths.replace("[[event]]", one.format("a") + one.format("b") + "[[event]]")
    assert complaint(text) == "lab.toml:44: port 80 of 'server' belongs to application 'a' already"


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ("port = 65530\ncount = 10\n", 35),
        ('size = "1 kB"\narrivals = 10\nport = 65500\n', 37),
    ],
)
def test_ports_end(two_paths: str, more: str, line: int) -> None:
    text = two_paths.replace('duration = "10 s"\n', more)
    wanted = "its connections need ports beyond 65535; give a lower 'port', or let there be fewer"
    with pytest.raises(ScenarioError) as caught:
        Scenario.parse(text, "lab.toml")
    assert [str(error) for error in caught.value.errors] == [f"lab.toml:{line}: {wanted}"]


def test_deep_nesting_is_refused() -> None:
    assert complaint("a = " + "[" * 100_000) == "lab.toml: invalid TOML: nested too deeply"


def test_a_key_of_a_thousand_steps_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "lab.toml"
    path.write_text(".".join("a" * 1000) + " = 1\n")
    with pytest.raises(ScenarioError) as caught:
        Scenario.load(path)
    assert str(caught.value) == f"{path}:1: invalid TOML: the key has more than 64 parts"


class TestFiles:
    def refused(self, path: Path) -> str:
        with pytest.raises(ScenarioError) as caught:
            Scenario.load(path)
        return str(caught.value)

    def test_missing(self, tmp_path: Path) -> None:
        assert self.refused(tmp_path / "x.toml") == f"{tmp_path}/x.toml: no such file"

    def test_directory(self, tmp_path: Path) -> None:
        assert self.refused(tmp_path) == f"{tmp_path}: this is a directory, not a scenario"

    def test_zero_bytes_are_binary(self, tmp_path: Path) -> None:
        path = tmp_path / "x.toml"
        path.write_bytes(b"seed = 1\n\0\0\0")
        assert self.refused(path) == f"{path}:2: this is binary data, not a scenario"

    @pytest.mark.parametrize("junk", [b"\x89PNG\r\n\xff\xfe", 'description = "é"'.encode("latin-1")])
    def test_not_utf8(self, tmp_path: Path, junk: bytes) -> None:
        path = tmp_path / "x.toml"
        path.write_bytes(b"seed = 1\n" + junk)
        assert self.refused(path) == f"{path}:2: not a scenario: the file is not UTF-8 text"

    def test_a_hundred_megabytes_are_refused_before_reading(self, tmp_path: Path) -> None:
        path = tmp_path / "x.toml"
        with path.open("wb") as file:
            file.truncate(100_000_000)
        assert self.refused(path) == f"{path}: the file has 100.0 MB; a scenario has at most 10 MB"

    def test_a_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        path = tmp_path / "x.toml"
        os.mkfifo(path)
        assert self.refused(path) == f"{path}: this is not a plain file, so no scenario"

    def test_a_name_too_long(self, tmp_path: Path) -> None:
        assert self.refused(tmp_path / ("x" * 300)).endswith(": cannot be read: File name too long")

    def test_the_file_gives_the_name(self, tmp_path: Path) -> None:
        path = tmp_path / "my lab.toml"
        path.write_text("[host.a]\n[host.b]\n[link.l]\nends = ['a', 'b']\n")
        assert Scenario.load(path).name == "my-lab"
