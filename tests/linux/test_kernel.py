"""Preparing the kernel's source, without a kernel: a tree of one file stands for it."""

import base64
import hashlib
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from polypath.engines.base import EngineError
from polypath.engines.linux.kernel import KernelError, cache, find, make, source, wheel
from polypath.engines.linux.kernel.cache import Installed, Recipe
from polypath.engines.linux.kernel.tree import Tree
from polypath.engines.namespaces import programs
from polypath.engines.trusted import Untrusted

PATCH = """why it is changed

--- a/arch/um/Kconfig
+++ b/arch/um/Kconfig
@@ -1,3 +1,3 @@
 config HZ
 \tint
-\tdefault 100
+\tdefault {value}
"""

#: Of a file without content.
EMPTY = hashlib.sha256().hexdigest()


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    folder = tmp_path / "recipe"
    for name, text in {
        "source.toml": "",
        "config.fragment": "CONFIG_NET=y\n",
        "debug.fragment": "CONFIG_KASAN=y\n",
        "conformance.fragment": "CONFIG_TUN=y\n",
        "patches/0001.patch": PATCH.format(value=1000),
        "net/mptcp/lab.c": "int lab;\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return Recipe(folder)


@pytest.fixture
def tarball(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The source of a kernel of two files, for which there is room everywhere."""
    monkeypatch.setattr(source, "_ROOM", 0)
    root = tmp_path / "linux-7"
    (root / "arch/um").mkdir(parents=True)
    (root / "arch/um/Kconfig").write_text("config HZ\n\tint\n\tdefault 100\n")
    (root / "Makefile").write_text("VERSION = 7\n")
    packed = tmp_path / "linux.tar.xz"
    with tarfile.open(packed, "w:xz") as tar:
        tar.add(root, "linux-7")
    return packed


def test_the_tree_follows_the_recipe_and_nothing_else_is_touched(tmp_path: Path, recipe: Recipe, tarball: Path) -> None:
    tree = Tree(tmp_path / "work")
    chosen = source.given(tarball)
    assert tree.prepare(chosen, recipe)
    kconfig, lab, untouched = (tree.path / name for name in ("arch/um/Kconfig", "net/mptcp/lab.c", "Makefile"))
    assert "default 1000" in kconfig.read_text()
    assert lab.read_text() == "int lab;\n"
    before = {path: path.stat().st_mtime_ns for path in (kconfig, lab, untouched)}
    assert not tree.prepare(chosen, recipe)
    assert {path: path.stat().st_mtime_ns for path in before} == before

    (recipe.folder / "patches/0001.patch").write_text(PATCH.format(value=250))
    (recipe.folder / "net/mptcp/lab.c").unlink()
    assert not tree.prepare(chosen, recipe)
    assert "default 250" in kconfig.read_text()
    assert not lab.exists()
    (recipe.folder / "patches/0001.patch").unlink()
    tree.prepare(chosen, recipe)
    assert "default 100\n" in kconfig.read_text()


def test_a_patch_that_does_not_fit_is_named(tmp_path: Path, recipe: Recipe, tarball: Path) -> None:
    (recipe.folder / "patches/0001.patch").write_text(PATCH.format(value=1000).replace("default 100", "default 300"))
    with pytest.raises(KernelError, match=r"0001\.patch does not apply"):
        Tree(tmp_path / "work").prepare(source.given(tarball), recipe)


def test_a_disk_without_room_is_named(
    tmp_path: Path, recipe: Recipe, tarball: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_ROOM", 1 << 62)
    with pytest.raises(KernelError, match=r"need 3 GB in .*work"):
        Tree(tmp_path / "work").prepare(source.given(tarball), recipe)


def test_what_is_no_kernel_source_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no tarball")
    for path in (tmp_path, tmp_path / "file", tmp_path / "missing"):
        with pytest.raises(KernelError, match="kernel source"):
            source.given(path)


def test_the_recipe_s_digest_follows_each_input(recipe: Recipe) -> None:
    digests = {recipe.digest(), *map(recipe.digest, cache.VARIANTS)}
    for name in ("config.fragment", "patches/0001.patch", "net/mptcp/lab.c"):
        path = recipe.folder / name
        path.write_text(path.read_text() + "\n")
        digests.add(recipe.digest())
    assert len(digests) == 6


def test_a_kernel_is_found_while_its_recipe_is_the_present_one(
    tmp_path: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(cache.RECIPE_VARIABLE, str(recipe.folder))
    with pytest.raises(KernelError, match="not built yet; run `polypath kernel build`"):
        find()
    folder = cache.cache() / "0123"
    folder.mkdir(parents=True)
    (folder / "linux").touch()
    Installed(folder, "7.2", "source", recipe.digest(), "", "gcc", "00").save()
    assert find().release == "7.2"
    for variant in cache.VARIANTS:
        with pytest.raises(KernelError, match=f"--{variant}"):
            find(variant)
    (recipe.folder / "config.fragment").write_text("CONFIG_NET=n\n")
    with pytest.raises(KernelError, match="out of date"):
        find()


def test_a_kernel_does_not_tell_who_built_it_nor_how_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBUILD_BUILD_USER", "me")
    monkeypatch.setenv("KBUILD_BUILD_VERSION", "7")
    told = ["USER", "HOST", "VERSION", "TIMESTAMP"]
    (tmp_path / "Makefile").write_text("linux:\n\t@echo " + " ".join(f"$(KBUILD_BUILD_{name})" for name in told))
    make.compile_(tmp_path, tmp_path, 1, lambda what, done, total: None)
    assert "polypath polypath 1 @0\n" in (tmp_path / "build.log").read_text()


def test_apt_gets_a_state_of_its_own(tmp_path: Path) -> None:
    options = source._private_apt(tmp_path, "http://mirror.example/debian", "stable-backports")
    assert "URIs: http://mirror.example/debian\nSuites: stable-backports\n" in (tmp_path / "only.sources").read_text()
    folders = [option.partition("=")[2] for option in options if option.startswith(("Dir::State", "Dir::Cache"))]
    assert len(folders) == 5
    assert all(folder.startswith(str(tmp_path)) for folder in folders)


def test_a_wheel_is_found_where_it_is_installed(
    tmp_path: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an installer does with a wheel: it unpacks it into a folder of sys.path, and its RECORD is right."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(cache.RECIPE_VARIABLE, str(recipe.folder))
    (recipe.folder / "LICENSE").write_text("GPL")
    folder = tmp_path / "built"
    folder.mkdir()
    (folder / "linux").write_bytes(b"a kernel")
    kernel = Installed(
        folder, "7.2.12", "source 1", recipe.digest(), "", "gcc", hashlib.sha256(b"a kernel").hexdigest()
    )
    kernel.save()
    made = wheel.pack(kernel, tmp_path / "dist")
    assert made.read_bytes() == wheel.pack(kernel, tmp_path / "again").read_bytes()
    with pytest.raises(KernelError, match="not built yet"):
        find()
    site = tmp_path / "site"
    with zipfile.ZipFile(made) as packed:
        packed.extractall(site)
        assert packed.getinfo("polypath_linux/linux").external_attr >> 16 & 0o111
    monkeypatch.syspath_prepend(site)
    assert find().binary.read_bytes() == b"a kernel"
    assert (site / "polypath_linux/source/net/mptcp/lab.c").read_text() == "int lab;\n"
    (metadata,) = site.glob("*.dist-info/METADATA")
    assert "License-Expression: GPL-2.0-only" in metadata.read_text()
    for line in (metadata.with_name("RECORD")).read_text().splitlines():
        name, digest, _ = line.split(",")
        content = (site / name).read_bytes()
        expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        assert digest in (f"sha256={expected}", "")
    (recipe.folder / "config.fragment").write_text("CONFIG_NET=n\n")
    with pytest.raises(KernelError, match="out of date"):
        find()


SOURCES = """
[[source]]
package = "linux-source-7.2"
version = "7.2.12-1"
suite = "backports"
sha256 = "00"
[[source]]
package = "linux-source-6.12"
version = "6.12.117-1"
suite = "stable"
sha256 = "11"
"""


def _mirror(monkeypatch: pytest.MonkeyPatch, has: dict[str, str]) -> list[str]:
    """A mirror with one release of each package; what is asked of it."""
    asked: list[str] = []

    def download(folder: Path, pin: cache.Pin, version: str | None, say: source.Say) -> Path:
        asked.append(f"{pin.package} {version}")
        if pin.package not in has or version not in (None, has[pin.package]):
            raise KernelError(f"no {pin.package} {version}")
        folder.mkdir(exist_ok=True)
        path = folder / pin.package
        path.write_text(has[pin.package])
        return path

    monkeypatch.setattr(source, "_download", download)
    monkeypatch.setattr(source, "run", lambda command: Path(command[2]).read_text() + "\n")
    return asked


def test_a_source_that_its_mirror_dropped_has_a_place_taker(
    tmp_path: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    (recipe.folder / "source.toml").write_text(SOURCES)
    pins = recipe.pins()

    def found() -> list[str]:
        return [str(each) for each in source.fetched(pins, tmp_path / "download", lambda what: None)]

    asked = _mirror(monkeypatch, {"linux-source-7.2": "7.2.12-1", "linux-source-6.12": "6.12.117-1"})
    assert next(source.fetched(pins, tmp_path / "download", lambda what: None)).identity == pins[0].identity
    assert asked == ["linux-source-7.2 7.2.12-1"]  # nothing is fetched that is not asked for
    _mirror(monkeypatch, {"linux-source-7.2": "7.2.14-1", "linux-source-6.12": "6.12.117-1"})
    with pytest.raises(KernelError, match=r"no linux-source-7\.2 7\.2\.12-1; give a kernel source with --source"):
        found()
    taken = source.fetched(pins, tmp_path / "download", lambda what: None)
    assert [str(next(taken)), str(next(taken))] == ["linux-source-7.2 7.2.14-1", "linux-source-6.12 6.12.117-1"]
    _mirror(monkeypatch, {"linux-source-6.12": "6.12.120-1"})
    assert str(next(source.fetched(pins, tmp_path / "download", lambda what: None))) == "linux-source-6.12 6.12.120-1"
    _mirror(monkeypatch, {})
    with pytest.raises(KernelError, match=r"no linux-source-7\.2"):
        found()


def test_a_release_that_does_not_do_gives_way_to_the_next_source(
    tmp_path: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(cache.RECIPE_VARIABLE, str(recipe.folder))
    (recipe.folder / "source.toml").write_text(SOURCES)
    monkeypatch.setattr(programs, "build", lambda: None)
    monkeypatch.setattr(make, "require_tools", lambda: None)
    _mirror(monkeypatch, {"linux-source-7.2": "7.2.14-1", "linux-source-6.12": "6.12.117-1"})

    def made(chosen: source.Source, *_: object) -> Installed:
        if "7.2.14" in chosen.identity:
            raise KernelError("0001.patch does not apply")
        folder = cache.cache() / "new"
        folder.mkdir()
        (folder / "linux").touch()
        Installed(folder, "6.12.117", chosen.identity, recipe.digest(), "", "gcc", EMPTY).save()
        return Installed.load(folder)

    monkeypatch.setattr(make, "_made", made)
    warnings: list[str] = []
    kernel, new = make.build(None, "", 1, lambda kernel: None, warn=warnings.append)
    assert (kernel.release, new) == ("6.12.117", True)
    assert warnings == [
        "linux-source-7.2 7.2.12-1 cannot be fetched: linux-source-7.2 7.2.14-1 takes its place",
        "linux-source-7.2 7.2.14-1 does not do: 0001.patch does not apply",
        "linux-source-7.2 7.2.12-1 cannot be fetched: linux-source-6.12 6.12.117-1 takes its place",
    ]
    assert make.build(None, "", 1, lambda kernel: None)[1] is False  # it is there


def test_runs_take_the_kernel_that_was_asked_for_last(
    tmp_path: Path, recipe: Recipe, tarball: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(cache.RECIPE_VARIABLE, str(recipe.folder))
    (recipe.folder / "source.toml").write_text(SOURCES)
    monkeypatch.setattr(programs, "build", lambda: None)
    digest = recipe.digest()
    sources = {"7.2.12": recipe.pins()[0].identity, "7.2.12-own": source.given(tarball).identity}
    for number, (release, identity) in enumerate(sources.items()):
        folder = cache.cache() / f"{number}"
        folder.mkdir(parents=True)
        (folder / "linux").touch()
        Installed(folder, release, identity, digest, "", "gcc", EMPTY).save()
        os.utime(folder / "kernel.json", (number, number))
    assert find().release == "7.2.12-own"
    assert make.build(None, "", 1, lambda kernel: None)[0].release == "7.2.12"
    assert find().release == "7.2.12"
    assert make.build(tarball, "", 1, lambda kernel: None)[0].release == "7.2.12-own"
    assert find().release == "7.2.12-own"


def test_a_kernel_is_kept_once_it_has_passed_its_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cache.cache().mkdir(parents=True)

    def run(command: list[str]) -> str:
        if command[0] == "strip":
            Path(command[2]).touch()
        return command[-1] + "\n"

    monkeypatch.setattr(source, "run", run)

    def trial(kernel: Installed) -> None:
        raise EngineError("ecf with lia brings 5 of 9 bytes")

    folder, about = cache.cache() / "kernel", {"source": "source", "recipe": "digest", "variant": ""}
    with pytest.raises(KernelError, match="fails its trial: ecf with lia brings 5 of 9 bytes"):
        make.install(tmp_path, tmp_path, folder, about, lambda kernel: make.attempt(kernel, trial, lambda *_: None))
    assert not list(cache.cache().iterdir())
    first, again = (make.install(tmp_path, tmp_path, folder, about, lambda kernel: None) for _ in range(2))
    assert first == again
    assert [kernel.folder for kernel in cache.installed()] == list(cache.cache().iterdir()) == [first.folder]
    first.require_own()
    first.executable.require_intact()


def test_a_kernel_that_was_changed_is_built_again(
    tmp_path: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (recipe.folder / "source.toml").write_text(SOURCES)
    folder = cache.cache() / "0123"
    folder.mkdir(parents=True)
    (folder / "linux").touch()
    kernel = Installed(folder, "7.2.12", recipe.pins()[0].identity, recipe.digest(), "", "gcc", EMPTY)
    kernel.save()
    assert make._built(recipe, "", None) == kernel
    (folder / "linux").write_text("planted")
    assert make._built(recipe, "", None) is None


@pytest.mark.parametrize("place", [".", "kernel.json", "linux"])
def test_a_kernel_that_others_can_change_is_not_run(
    tmp_path: Path, recipe: Recipe, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(cache.RECIPE_VARIABLE, str(recipe.folder))
    folder = cache.cache() / "0123"
    folder.mkdir(parents=True)
    (folder / "linux").touch()
    Installed(folder, "7.2", "source", recipe.digest(), "", "gcc", EMPTY).save()
    assert find().release == "7.2"
    (folder / place).chmod(0o777)
    with pytest.raises(Untrusted, match=r"others can write to .*0123.* `chmod go-w ") as caught:
        find()
    assert "\n" not in str(caught.value)


def test_a_limit_of_zero_is_off_where_the_kernel_does_not_have_it() -> None:
    assert make._is_off("CONFIG_LIMIT=0", {"CONFIG_NET=y"})
    assert not make._is_off("CONFIG_LIMIT=0", {"CONFIG_LIMIT=5"})
    assert not make._is_off("CONFIG_LIMIT=y", {"CONFIG_NET=y"})
