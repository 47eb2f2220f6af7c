"""The packages that a bundle needs: exactly those that are installed here, in their versions, copied file by file."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from email.message import Message
from importlib import metadata
from typing import cast

from trunkline.base.extras import adding
from trunkline.base.values import Value
from trunkline.core.faults import ConfigError

OWN = "trunkline"

#: Licences that ask of whoever ships a program that its source is given along.
_COPYLEFT = re.compile(r"(?<![A-Za-z])(?:A?GPL|GNU (?:Affero )?General Public)", re.IGNORECASE)

#: What some packages do not say of themselves.
_UNSTATED = {"espeakng-loader": "GPL-3.0-or-later"}


class Package(Value):
    """One that is installed here."""

    name: str
    version: str
    licence: str
    copyleft: bool
    """Whether its licence is the GPL, or one like it."""


def needed(*extras: str) -> dict[str, metadata.Distribution]:
    """Our own package with these extras, and all that they need, by name.

    Raises:
        ConfigError: one is not installed.
    """
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    found: dict[str, metadata.Distribution] = {}
    seen: set[tuple[str, str]] = set()
    rest = [(OWN, extra) for extra in ("", *extras)]
    while rest:
        name, extra = rest.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        try:
            found[name] = distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            raise ConfigError(f"The package `{name}` is not installed.", hint=adding(*extras)) from None
        for line in distribution.requires or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                needs = canonicalize_name(requirement.name)
                rest += [(needs, each) for each in ("", *sorted(requirement.extras))]
    return dict(sorted(found.items()))


def described(distribution: metadata.Distribution) -> Package:
    """What a bundle says of it."""
    told = cast(Message, distribution.metadata)
    classifiers = [
        each.rpartition(" :: ")[2] for each in told.get_all("Classifier") or () if each.startswith("License ::")
    ]
    written = told.get("License") or ""
    # Some have the whole text there.
    written = written.strip().partition("\n")[0][:80]
    licence = told.get("License-Expression") or "; ".join(classifiers) or written or "not stated"
    licence = _UNSTATED.get(str(told["Name"]), licence)
    return Package(str(told["Name"]), distribution.version, licence, _COPYLEFT.search(licence) is not None)


def copy(distribution: metadata.Distribution, folder: str) -> None:
    """Copy its files; what it has outside of the folder of packages, such as commands, stays behind.

    Raises:
        ConfigError: it does not say which files it has.
    """
    if distribution.metadata["Name"] == OWN:
        _copy_own(distribution, folder)
        return
    if distribution.files is None:
        raise ConfigError(f"The package `{distribution.metadata['Name']}` does not say which files it has.")
    for file in distribution.files:
        if file.parts[0] == os.pardir or file.is_absolute() or "__pycache__" in file.parts:
            continue
        source = str(distribution.locate_file(file))
        if os.path.isfile(source):
            there = os.path.join(folder, *file.parts)
            os.makedirs(os.path.dirname(there), exist_ok=True)
            shutil.copyfile(source, there)


def _copy_own(distribution: metadata.Distribution, folder: str) -> None:
    """Ours may be run from its sources, which no list of files names."""
    import trunkline

    source = os.path.dirname(os.path.abspath(trunkline.__file__))
    shutil.copytree(source, os.path.join(folder, OWN), ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    info = os.path.join(folder, f"{OWN}-{distribution.version}.dist-info")
    os.makedirs(info)
    for name in ("METADATA", "entry_points.txt"):
        if (text := distribution.read_text(name)) is not None:
            with open(os.path.join(info, name), "w", encoding="utf-8") as file:
                file.write(text)


def texts(distribution: metadata.Distribution) -> list[tuple[str, str]]:
    """The files of it that say under which licence it is: names and paths."""
    if distribution.metadata["Name"] == OWN:
        return _own_texts(distribution)
    listed = cast(Message, distribution.metadata).get_all("License-File") or ()
    found = []
    for file in distribution.files or ():
        path = str(distribution.locate_file(file))
        told = file.parts[0].endswith(".dist-info")
        inside = file.parts[1:] if told else file.parts
        # Where a package tells of itself, it says which; elsewhere the name has to do.
        says = (told and (inside[0] == "licenses" or "/".join(inside) in listed)) or _is_licence(file.name)
        if says and file.suffix not in (".py", ".pyc") and os.path.isfile(path):
            found.append(("_".join(part for part in inside if part not in ("licenses", os.pardir)), path))
    return found


def _own_texts(distribution: metadata.Distribution) -> list[tuple[str, str]]:
    import trunkline

    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(trunkline.__file__))))
    listed = [str(distribution.locate_file(file)) for file in distribution.files or () if _is_licence(file.name)]
    return [("LICENSE", path) for path in (*listed, os.path.join(root, "LICENSE")) if os.path.isfile(path)][:1]


def _is_licence(name: str) -> bool:
    return re.match(r"(?:licen[cs]e|copying|notice|copyright|authors|thirdparty)", name, re.IGNORECASE) is not None


def copyleft(found: Iterable[Package]) -> list[Package]:
    """Those under the GPL, or a licence like it."""
    return [each for each in found if each.copyleft]
