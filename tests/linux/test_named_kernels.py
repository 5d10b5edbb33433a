"""Kernels by name: what they are built of, what a host's name finds, and two kernels in one run."""

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from polypath.engines import EngineError, get
from polypath.engines.linux import several
from polypath.engines.linux.engine import translate
from polypath.engines.linux.kernel import KernelError, cache, make, named, source
from polypath.engines.linux.kernel.cache import Installed, Recipe
from polypath.engines.linux.kernel.follow import Followed
from polypath.engines.linux.kernel.tree import Tree
from polypath.engines.linux.several.cut import Cut, lookahead
from polypath.engines.namespaces import programs, translation
from polypath.engines.namespaces.kernel import Kernel
from polypath.results import Recording
from polypath.scenario import Plan, Scenario, ScenarioError

PATCH = """--- a/net/a.c
+++ b/net/a.c
@@ -1 +1 @@
-int a;
+int changed;
--- /dev/null
+++ b/net/new.c
@@ -0,0 +1 @@
+int new;
"""
FILES = {"Makefile": "VERSION = 7\n", "arch/um/Kconfig": "config HZ\n", "net/a.c": "int a;\n", "net/b.c": "int b;\n"}


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """A recipe without patches, in a cache of its own; nothing is compiled, and everything else is done."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "recipe"
    _write(folder, {"source.toml": "", "config.fragment": "CONFIG_NET=y\n", "kasan.fragment": "CONFIG_KASAN=y\n"})
    _write(folder, {f"{variant}.fragment": "" for variant in cache.VARIANTS})
    monkeypatch.setenv(cache.RECIPE_VARIABLE, str(folder))
    monkeypatch.setattr(source, "_ROOM", 0)
    monkeypatch.setattr(make, "require_tools", lambda: None)
    monkeypatch.setattr(programs, "build", lambda: None)

    def compile_(tree: Path, objects: Path, jobs: int, progress: object) -> None:
        (objects / "linux").write_text("".join(path.read_text() for path in sorted((tree / "net").glob("*.c"))))

    def run(command: list[str], folder: Path | None = None) -> str:
        if command[0] == "strip":
            Path(command[2]).write_bytes(Path(command[3]).read_bytes())
            return ""
        if "kernelrelease" in command:
            return "7.2.12\n"
        return "gcc\n" if command[0] == "gcc" else real(command, folder)

    def configure(tree: Path, objects: Path, wanted: Recipe, variant: str) -> None:
        objects.mkdir(parents=True, exist_ok=True)
        (objects / "asked").write_text("".join(path.read_text() for path in wanted.fragments(variant)))

    real = source.run
    monkeypatch.setattr(source, "run", run)
    monkeypatch.setattr(make, "compile_", compile_)
    monkeypatch.setattr(make, "configure", configure)
    return Recipe(folder)


def _build(name: str, **request: Any) -> Installed:
    return named.build(name, named.Request(**request), 1, None)


def test_a_kernel_is_made_of_a_tree_with_patches_and_more_configuration(tmp_path: Path, recipe: Recipe) -> None:
    tree = tmp_path / "mine"
    _write(tree, FILES)
    patch = tmp_path / "slower.patch"
    patch.write_text(PATCH)
    kernel = _build("mine", source=str(tree), patches=(str(patch),), fragment="kasan")
    assert kernel.binary.read_text() == "int changed;\nint b;\nint new;\n"
    assert (tree / "net/a.c").read_text() == "int a;\n"
    assert not (tree / "net/new.c").exists()
    assert "CONFIG_KASAN=y" in (kernel.folder.parent / "build" / "asked").read_text()
    assert "slower.patch" in kernel.provenance
    assert named.find("mine") == kernel
    assert cache.installed() == []  # runs without a name do not take it


def test_a_second_build_copies_what_changed_and_nothing_else(tmp_path: Path, recipe: Recipe) -> None:
    tree = tmp_path / "mine"
    _write(tree, FILES)
    first = _build("mine", source=str(tree))
    copy = first.folder.parent / "source"
    before = {name: (copy / name).stat().st_mtime_ns for name in FILES}
    (tree / "net/b.c").write_text("int c;\n")
    os.utime(tree / "net/b.c", (1, 1))  # older than its object, as an earlier commit may be
    (tree / "net/a.c").unlink()
    again = named.build("mine", named.Request(), 1, None)
    assert again.binary.read_text() == "int c;\n"
    assert again.sha256 != first.sha256
    assert not (copy / "net/a.c").exists()
    assert (copy / "Makefile").stat().st_mtime_ns == before["Makefile"]
    assert (copy / "net/b.c").stat().st_mtime_ns > before["net/b.c"]


def test_without_a_source_it_is_the_shipped_one_whose_files_stay(tmp_path: Path, recipe: Recipe) -> None:
    with pytest.raises(KernelError, match="run `polypath kernel build`, or give --source"):
        _build("mine", fragment="kasan")
    tree = tmp_path / "shipped"
    _write(tree, FILES)
    Tree(cache.cache()).prepare(source.given(tree), recipe)
    patch = tmp_path / "slower.patch"
    patch.write_text(PATCH)
    kernel = _build("mine", patches=(str(patch),))
    assert "int changed;" in kernel.binary.read_text()
    assert (cache.cache() / "source/net/a.c").read_text() == "int a;\n"
    shared = kernel.folder.parent / "source/net/b.c"
    assert shared.stat().st_ino == (cache.cache() / "source/net/b.c").stat().st_ino


@pytest.mark.parametrize(
    ("name", "request_", "says"),
    [
        ("7.3", {"fragment": "kasan"}, "the name '7.3' does not do"),
        ("debug", {"fragment": "kasan"}, "'debug' is taken by a kernel of the recipe"),
        ("mine", {}, "what is the kernel 'mine' made of"),
        ("mine", {"fragment": "kasam"}, "no fragment 'kasam'; did you mean 'kasan'"),
        ("mine", {"patches": ("/none.patch",)}, "there is no file /none.patch"),
        ("mine", {"source": "/none"}, "neither a kernel source tree nor a tarball"),
    ],
)
def test_what_cannot_be_built_is_told_in_a_line(recipe: Recipe, name: str, request_: dict[str, Any], says: str) -> None:
    with pytest.raises(KernelError, match=says):
        _build(name, **request_)


def test_a_tree_that_is_no_kernel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match="no kernel source with arch/um"):
        Followed(Tree(tmp_path / "work"), tmp_path).update()


def _installed(folder: Path, release: str, sha256: str, **more: str) -> Installed:
    folder.mkdir(parents=True)
    (folder / "linux").touch()
    kernel = Installed(folder, release, "source", more.pop("recipe", "r"), "", "gcc", sha256, **more)
    kernel.save()
    return kernel


def test_names_find_the_shipped_kernel_and_ones_own(recipe: Recipe) -> None:
    shipped = _installed(cache.cache() / "0123", "7.2.12", "00", recipe=recipe.digest())
    mine = _installed(cache.cache() / "named/mine/kernel", "7.2.12", "11", name="mine", base=recipe.digest())
    assert named.names() == {"7.2": shipped, "mine": mine}
    assert named.find("7.2") == named.find("7.2.12") == shipped
    assert json.loads(shipped.description.read_text()).keys().isdisjoint(("name", "base", "provenance"))
    with pytest.raises(KernelError, match=r"did you mean 'mine'\? `polypath kernel build --name mien --source PATH`"):
        named.find("mien")
    with pytest.raises(KernelError, match=r"no kernel 6\.9 is built"):
        named.find("6.9")
    with pytest.raises(KernelError, match="run `polypath kernel build --conformance`"):
        named.find("conformance")
    (recipe.folder / "config.fragment").write_text("CONFIG_NET=n\n")
    with pytest.raises(KernelError, match="out of date; run `polypath kernel build --name mine`"):
        named.find("mine")


def test_a_scenario_names_kernels_of_hosts_and_a_plan_without_them_stays(scenario: Callable[..., Scenario]) -> None:
    assert "kernels" not in scenario("pair").plan().view
    chosen = scenario("pair", "host.server.kernel=7.2")
    assert chosen.plan().view["kernels"] == {"server": "7.2"}
    assert Scenario.from_data(chosen.to_data()) == chosen
    with pytest.raises(ScenarioError, match="is no kernel's name"):
        scenario("pair", "host.server.kernel=a/b")


@pytest.mark.parametrize("engine", ["sim", "live"])
def test_other_engines_refuse_a_kernel(scenario: Callable[..., Scenario], engine: str) -> None:
    with pytest.raises(EngineError, match=r"host 'server' has the kernel 'mine', which .* --engine linux does"):
        get(engine).run(scenario("pair", "host.server.kernel=mine").plan())


def _parts(plan: Plan, kernels: dict[str | None, Installed]) -> list[several.Part]:
    return several.parts(plan.view, kernels.__getitem__)


def test_hosts_of_the_same_kernel_share_a_guest(scenario: Callable[..., Scenario], tmp_path: Path) -> None:
    usual, mine = _installed(tmp_path / "a", "7.2.12", "00"), _installed(tmp_path / "b", "7.2.12", "11")
    kernels = {None: usual, "7.2": usual, "mine": mine}
    both = scenario("pair", "host.server.kernel=mine", "host.client.kernel=mine").plan()
    assert [part.kernel for part in _parts(both, kernels)] == [mine]
    assert [part.kernel for part in _parts(scenario("pair", "host.server.kernel=7.2").plan(), kernels)] == [usual]
    split = _parts(scenario("pair", "host.server.kernel=mine").plan(), kernels)
    assert [part.kernel for part in split] == [usual, mine]
    assert sorted(node for part in split for node in part.nodes) == list(range(len(both.view["nodes"])))


def _cut(plan: Plan) -> list[dict[str, str]]:
    """The files of the guests of the first host and of all other nodes."""
    data = plan.data
    groups = [frozenset({0}), frozenset(range(1, len(data["nodes"])))]  # the client; server and router
    ahead = lookahead(translate(data)[0].network, groups)
    return [
        translation.translate(data, "hosts", partial(Cut, nodes=group, lookahead_ns=ahead), Kernel())[1]
        for group in groups
    ]


def test_each_direction_is_shaped_once_and_the_bridge_has_its_part_of_the_delay(
    scenario: Callable[..., Scenario],
) -> None:
    whole = translate(scenario("pair").plan().data)[1]["shape.batch"]
    first, second = _cut(scenario("pair").plan())
    shaped = sorted(
        line.split()[3] for files in (first, second) for line in files["shape.batch"].splitlines() if "root" in line
    )
    assert shaped == sorted(line.split()[3] for line in whole.splitlines() if "root" in line)
    for files in (first, second):
        assert "bridge -500000000 x bridge lookahead=" in files["job"]
        assert "offload checksums" in files["setup.sh"]
    assert " n0 app side=client" in first["job"]
    assert " n0 " not in second["job"]


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("link.path0.delay=100 us", "takes a delay of 200 us at least"),
        ("link.path0.jitter=9 ms", "4 times the jitter more"),
        ("link.path0.reorder=1 %", "reorders packets"),
    ],
)
def test_links_that_do_not_join_two_kernels_are_refused(
    scenario: Callable[..., Scenario], setting: str, says: str
) -> None:
    with pytest.raises(EngineError, match=says):
        _cut(scenario("pair", setting).plan())


def _other(tmp_path: Path) -> Installed:
    """The built kernel once more, with bytes behind its end: another binary of the same rules."""
    from polypath.engines.linux.kernel import find

    usual = find()
    folder = tmp_path / "kernel"
    folder.mkdir(mode=0o755)
    (folder / "linux").write_bytes(usual.binary.read_bytes() + b"\0")
    (folder / "linux").chmod(0o755)
    sha256 = source.file_sum(folder / "linux")
    kernel = Installed(folder, usual.release, usual.source, usual.recipe, "", usual.compiler, sha256, "mine", "", "x")
    kernel.save()
    return kernel


@pytest.fixture
def two(linux: Callable[..., Recording], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Recording]:
    """Runs a scenario whose server has another binary."""
    other = _other(tmp_path)
    monkeypatch.setattr(named, "find", lambda name: other)
    return lambda name, *settings: linux(name, "host.server.kernel=mine", *settings)


def test_two_kernels_of_the_same_rules_give_what_one_gives(
    linux: Callable[..., Recording], two: Callable[..., Recording]
) -> None:
    one, both = linux("pair"), two("pair")
    assert both.metadata.recording_sha256 == two("pair").metadata.recording_sha256
    ends = [each.table("connection_ends").row(0, named=True) for each in (one, both)]
    assert ends[0]["server_received_bytes"] == ends[1]["server_received_bytes"] > 0
    durations = [each["last_byte_ns"] - each["start_ns"] for each in ends]
    assert durations[1] == pytest.approx(durations[0], rel=0.05)
    assert both.metadata.kernels["server"].startswith("mine: ")
    assert one.metadata.kernels == {}
