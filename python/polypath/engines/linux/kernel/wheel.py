"""A built kernel as a separate Python package, `polypath_linux`, under the kernel's licence."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

from polypath.engines.linux.kernel.cache import PACKAGE, Installed, KernelError, Recipe, recipe

_TAG = "py3-none-linux_x86_64"
#: The earliest that a zip file can tell; the same kernel so gives the same wheel.
_DATE = (1980, 1, 1, 0, 0, 0)

_METADATA = """Metadata-Version: 2.4
Name: polypath-linux
Version: {version}
Summary: The Linux kernel (User Mode Linux, x86-64) that engine linux of Polypath boots
License-Expression: GPL-2.0-only
License-File: LICENSE
Requires-Python: >=3.11
Classifier: Operating System :: POSIX :: Linux
Description-Content-Type: text/plain

Linux {release}, built as User Mode Linux. Its source is {source} of Debian,
and what `polypath_linux/source` in this package holds: configuration, patches and files of its own. Polypath's
`polypath kernel build` makes the same binary of them. It finds this package by itself.
"""


def pack(kernel: Installed, into: Path) -> Path:
    """Writes the wheel of a kernel of the present recipe and returns its path. Raises KernelError, and Untrusted where
    the kernel is not what was installed."""
    kernel.executable.require_intact()
    wanted = recipe()
    if wanted is None:
        raise KernelError(
            "this installation has no kernel recipe, which a wheel must have; use a clone of the repository"
        )
    version = f"{kernel.release}+{kernel.variant and f'{kernel.variant}.'}{kernel.recipe[:12]}"
    info = f"{PACKAGE}-{version}.dist-info"
    files: dict[str, bytes] = {
        f"{PACKAGE}/__init__.py": b'"""The kernel of Polypath\'s engine linux; see source/README.md."""\n',
        f"{PACKAGE}/linux": kernel.binary.read_bytes(),
        f"{PACKAGE}/kernel.json": kernel.description.read_bytes(),
        **{f"{PACKAGE}/source/{name}": content for name, content in _sources(wanted)},
        f"{info}/licenses/LICENSE": (wanted.folder / "LICENSE").read_bytes(),
        f"{info}/METADATA": _METADATA.format(version=version, release=kernel.release, source=kernel.source).encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: polypath\nRoot-Is-Purelib: false\nTag: {_TAG}\n".encode(),
    }
    files[f"{info}/RECORD"] = "".join(_recorded(name, content) for name, content in files.items()).encode() + (
        f"{info}/RECORD,,\n".encode()
    )
    path = into / f"{PACKAGE}-{version}-{_TAG}.whl"
    try:
        into.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
            for name, content in files.items():
                entry = zipfile.ZipInfo(name, _DATE)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = (0o100755 if name.endswith("/linux") else 0o100644) << 16
                wheel.writestr(entry, content)
    except OSError as error:
        raise KernelError(f"cannot write {path}: {error.strerror or error}") from error
    return path


def _sources(wanted: Recipe) -> list[tuple[str, bytes]]:
    paths = sorted(path for path in wanted.folder.rglob("*") if path.is_file())
    return [(str(path.relative_to(wanted.folder)), path.read_bytes()) for path in paths]


def _recorded(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"
