"""The licences of all that is in a bundle, collected in one folder: the texts, and a list of what is under which."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from importlib import metadata

from trunkline.base.values import Value
from trunkline.cli.bundling import packages
from trunkline.cli.bundling.asked import asked
from trunkline.cli.bundling.models import ChosenModel

FOLDER = "LICENSES"
#: Where Debian has the texts that many packages are under: theirs only name these.
COMMON = "/usr/share/common-licenses"
#: For those under it that bring no text.
_GPL = "GPL-3"


class LicensedPart(Value):
    """One thing in the bundle, and what it is under."""

    kind: str
    name: str
    licence: str
    texts: int
    """How many files say so."""


def collect(
    root: str,
    distributions: Mapping[str, metadata.Distribution],
    libraries: Mapping[str, str],
    models: Iterable[ChosenModel],
) -> list[LicensedPart]:
    """Copy the texts; gives the list, which is written, too. `libraries`: by name, where each came from."""
    parts = [_python(root)]
    for distribution in distributions.values():
        told = packages.described(distribution)
        found = packages.texts(distribution)
        if told.copyleft and not found and os.path.isfile(os.path.join(COMMON, _GPL)):
            found = [(_GPL, os.path.join(COMMON, _GPL))]
        _copied(root, os.path.join("packages", f"{told.name}-{told.version}"), found)
        parts.append(LicensedPart("package", f"{told.name} {told.version}", told.licence, len(found)))
    for name, source in sorted(libraries.items()):
        owner, path = _owner(source)
        _copied(root, os.path.join("libraries", name), [("copyright", path)] if path else [])
        parts.append(
            LicensedPart("library", name, f"see the text of {owner}" if path else "not known here", int(bool(path)))
        )
    parts += [LicensedPart("model", each.entry.name, each.entry.licence or "not stated", 0) for each in models]
    lines = [f"{each.kind}: {each.name}: {each.licence}{'' if each.texts else ' (no text of it is here)'}\n"
             for each in parts]  # fmt: skip
    if os.path.isdir(os.path.join(root, FOLDER, os.path.basename(COMMON))):
        lines.append(f"\nWhere a text names a file in `{COMMON}`, that is in `{os.path.basename(COMMON)}` here.\n")
    with open(os.path.join(root, FOLDER, "LIST.txt"), "w", encoding="utf-8") as file:
        file.writelines(lines)
    return parts


def _python(root: str) -> LicensedPart:
    """CPython has its own beside its library; a system that took it out has it elsewhere."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    places = (os.path.join(os.path.dirname(os.__file__), "LICENSE.txt"), f"/usr/share/doc/{name}/copyright")
    found = [("LICENSE.txt", path) for path in places if os.path.isfile(path)][:1]
    _copied(root, "python", found)
    return LicensedPart("interpreter", f"CPython {sys.version.split()[0]}", "PSF-2.0", len(found))


def _copied(root: str, inside: str, found: Iterable[tuple[str, str]]) -> None:
    for name, path in found:
        _copy(path, os.path.join(root, FOLDER, inside, name))
        with open(path, encoding="utf-8", errors="replace") as file:
            names = set(re.findall(re.escape(COMMON) + r"/([A-Za-z0-9]+(?:[.-][A-Za-z0-9]+)*)", file.read()))
        # It says that the text is in a folder of this system, which the other machine may not have.
        for each in names:
            if os.path.isfile(common := os.path.join(COMMON, each)):
                _copy(common, os.path.join(root, FOLDER, os.path.basename(COMMON), each))


def _copy(source: str, there: str) -> None:
    os.makedirs(os.path.dirname(there), exist_ok=True)
    shutil.copyfile(source, there)


def _owner(source: str) -> tuple[str, str]:
    """The package of the system that a library is from, and the file with its licence; empty where nobody knows."""
    path = os.path.realpath(source)
    # Where `/lib` is a link, some systems list a file under the one name and some under the other.
    for each in (path, path.removeprefix("/usr")):
        code, said = asked("dpkg-query", "-S", each)
        name = said.partition(":")[0]
        text = f"/usr/share/doc/{name}/copyright"
        if not code and os.path.isfile(text):
            return name, text
    code, said = asked("rpm", "-qf", "--queryformat", "%{NAME}", path)
    folder = f"/usr/share/licenses/{said.strip()}"
    if not code and os.path.isdir(folder):
        texts = sorted(os.path.join(folder, each) for each in os.listdir(folder))
        return said.strip(), texts[0] if texts else ""
    beside = os.path.join(os.path.dirname(os.__file__), "LICENSE.txt")
    if os.path.basename(path).startswith("libpython") and os.path.isfile(beside):
        return "CPython", beside
    return "", ""
