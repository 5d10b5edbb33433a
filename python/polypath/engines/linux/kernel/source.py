"""The kernel's source: a pinned package fetched by apt, or the user's own."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from polypath.engines import owned
from polypath.engines.linux.kernel.cache import KernelError, Pin

Say = Callable[[str], None]

#: Of the folder in which a source is until it is whole.
_PARTIAL = "source-"
#: The size of Debian's source package and of what comes out of it, roughly, in bytes.
_ROOM = 3 * 1024**3
#: Debian's own keys; where the file is missing, those that apt trusts anyway. The package's hash is pinned besides.
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


@dataclass(frozen=True)
class Source:
    """Where a source tree comes from; `identity` tells it from others."""

    identity: str
    path: Path
    #: The tarball's path inside a Debian package; None: `path` is a tree or a tarball itself.
    member: str | None = None

    def __str__(self) -> str:
        return self.identity.rpartition(" ")[0]

    def unpack(self, to: Path) -> None:
        """Leaves the source tree at `to`. Raises KernelError."""
        to.parent.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(to.parent).free < _ROOM:
            raise KernelError(f"the kernel's source and objects need 3 GB in {to.parent}")
        owned.clear(to.parent, _PARTIAL)
        with owned.made(to.parent, _PARTIAL) as place:
            partial = place / "tree"
            partial.mkdir()
            if self.path.is_dir():
                run(["cp", "-a", "--reflink=auto", f"{self.path}/.", str(partial)])
            elif self.member is None:
                run(["tar", "-xf", str(self.path), "-C", str(partial), "--strip-components=1"])
            else:
                pipeline = 'dpkg-deb --fsys-tarfile "$1" | tar -xO "./$2" | tar -xJ -C "$3" --strip-components=1'
                run(["sh", "-c", pipeline, "sh", str(self.path), self.member, str(partial)])
            if not (partial / "arch" / "um").is_dir():
                raise KernelError(f"{self.path} is no kernel source with arch/um")
            owned.replace(partial, to, place)


def given(path: Path) -> Source:
    """A tree or a tarball of the person's own. Raises KernelError."""
    if path.is_dir():
        sample = [path / "Makefile", *sorted((path / "net" / "mptcp").glob("*.[ch]"))]
        if not sample[0].is_file():
            raise KernelError(f"{path} is no kernel source tree")
        return Source("tree " + _sum(iter([file.read_bytes() for file in sample])), path.resolve())
    if not path.is_file() or not tarfile.is_tarfile(path):
        raise KernelError(f"{path} is neither a kernel source tree nor a tarball")
    return Source("tarball " + file_sum(path), path.resolve())


def fetched(pins: Sequence[Pin], folder: Path, say: Say) -> Iterator[Source]:
    """The available sources, best first, each downloaded when requested: each pinned package, otherwise the newest of
    its series in its suite. Raises KernelError when there are no more.
    """
    reasons: list[str] = []
    for pin in pins:
        try:
            package = _downloaded(folder, pin) or _download(folder, pin, pin.version, say)
        except KernelError as error:
            reasons.append(str(error))
        else:
            yield Source(pin.identity, package, pin.tarball)
            continue
        with suppress(KernelError):
            package = _download(folder, pin, None, say)
            version = run(["dpkg-deb", "-f", str(package), "Version"]).strip()
            yield Source(f"{pin.package} {version} {file_sum(package)}", package, pin.tarball)
    if reasons:
        raise KernelError(f"{reasons[0]}; give a kernel source with --source")


def _downloaded(folder: Path, pin: Pin) -> Path | None:
    for path in sorted(folder.glob(f"{pin.package}_*.deb")):
        if file_sum(path) == pin.sha256:
            return path
    return None


def _download(folder: Path, pin: Pin, version: str | None, say: Say) -> Path:
    """The package of that version, which must have the pin's hash; None: the newest, as apt's keys vouch for it."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise KernelError(f"the kernel's source comes as Debian's package {pin.package}, and there is no apt here")
    folder.mkdir(parents=True, exist_ok=True)
    wanted = f"{pin.package} {version or 'of any release'}"
    reasons = []
    for uri in _mirrors():
        say(f"asking {uri} for {wanted}")
        with TemporaryDirectory(dir=folder) as name:
            options = _private_apt(Path(name) / "apt", uri, pin.suite)
            try:
                run(["apt-get", *options, "-q", "update"])
                run(
                    ["apt-get", *options, "-q", "download", pin.package + (f"={version}" if version else "")],
                    Path(name),
                )
            except KernelError as error:
                reasons.append(str(error))
                continue
            (package,) = Path(name).glob("*.deb")
            if version is not None and file_sum(package) != pin.sha256:
                raise KernelError(f"{wanted} from {uri} has not the hash in source.toml")
            return package.replace(folder / package.name)
    why = reasons[0] if reasons else "apt has no package source"
    raise KernelError(f"cannot fetch {wanted} ({why})")


def _mirrors() -> list[str]:
    """The repositories that this machine's apt has, Debian's first."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    found = dict.fromkeys(line.strip() for line in run(command).splitlines() if line.strip())
    return sorted(found, key=lambda uri: not uri.rstrip("/").endswith("/debian"))


def _private_apt(folder: Path, uri: str, suite: str) -> list[str]:
    """Options that give apt a source list and a state of its own, so that the system's stay as they are."""
    (folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (folder / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    signed = f"Signed-By: {_KEYRING}\n" if _KEYRING.is_file() else ""
    listed = f"Types: deb\nURIs: {uri}\nSuites: {suite}\nComponents: main\n{signed}"
    (folder / "only.sources").write_text(listed, encoding="utf-8")
    settings = {
        "Dir::Etc::sourcelist": folder / "only.sources",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferences": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::State": folder,
        "Dir::State::lists": folder / "lists",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder,
        "Dir::Cache::archives": folder / "archives",
        "Dir::Log": folder,
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
    }
    return [argument for name, value in settings.items() for argument in ("-o", f"{name}={value}")]


def run(command: list[str], folder: Path | None = None) -> str:
    """Runs a command and returns its output; raises KernelError with the last line that it said."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise KernelError(f"cannot run {command[0]}: {error.strerror or error}") from error
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise KernelError(f"{command[0]} failed: {said[-1] if said else f'exit code {done.returncode}'}")
    return done.stdout


def file_sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sum(contents: Iterator[bytes]) -> str:
    total = hashlib.sha256()
    for content in contents:
        total.update(hashlib.sha256(content).digest())
    return total.hexdigest()
