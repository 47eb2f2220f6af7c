"""What is written into a bundle by hand: how it starts, what it is, and a list of all that is in it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from typing import Any

from trunkline.base.sizes import size_text
from trunkline.base.values import Value
from trunkline.cli.bundling import interpreter
from trunkline.cli.bundling.models import GRAPHS, MODELS, ChosenGraph, ChosenModel
from trunkline.cli.bundling.packages import Package
from trunkline.cli.tryll_bundled import PROGRAM

LAUNCHER, CONFIG, README, MANIFEST = PROGRAM, "tryll.toml", "README.txt", "manifest.json"
#: What the list calls its own form. Counted up when a reader would have to know.
FORMAT = 1

#: What its Python runs.
_START = "trunkline.cli.tryll_bundled"

_LAUNCHER = """#!/bin/sh
# Starts the Tryll server of this folder, wherever the folder lies.
PATH=${{PATH:-/usr/bin:/bin}}
here=$(dirname -- "$(readlink -f -- "$0")") || exit 1
exec "$here/python/bin/{python}" -I -B -X utf8 -m {start} "$@"
"""

_CONFIG = """# What the server of this folder does. All keys: `[tryll]` in the documentation of Trunkline.
# Flags of `tryll-server`, and variables such as TRUNKLINE_TRYLL_TOKEN, come before this file.
[tryll]
"""

_README = """A Tryll server: graph agents on local models, for games
======================================================

Trunkline {version}, with CPython {python}. {size}.

Needs: Linux on {machine}, with glibc {glibc} or newer. Nothing has to be installed.

    ./tryll-server                                              serve on 127.0.0.1:9100
    ./tryll-server --listen 127.0.0.1:0 --exit-with-stdin --json  as a game starts it
    ./tryll-server --help                                       everything else

The folder can be moved, copied and be read-only. The server writes nothing outside of it, and inside of it only into
`state`: vectors of texts that clients embed, which cost time to make again, and sessions if you ask for them with
`--sessions`. Set TRUNKLINE_BUNDLE_STATE to a folder to have these elsewhere.

{models}
{graphs}
`tryll.toml` configures the server. `manifest.json` lists all files with their sizes and SHA-256.
`LICENSES` has the licences of all parts, and a list of them: `LICENSES/LIST.txt`.
{copyleft}"""

_COPYLEFT = """
These parts are under the GPL: {names}. If you pass this folder on, you must offer their
source code under the same licence; see `LICENSES`. They run in processes of their own.
"""


#: Of a bundle that can only pretend.
NO_MODELS = (
    "No model is in it: clients can use the engine Mock alone. To add one, make the bundle again with `--model NAME`\n"
    "and `--force`; `trunkline models list` shows which there are."
)


class Facts(Value):
    """What is told of a bundle."""

    version: str
    python: str
    machine: str
    glibc: str
    packages: tuple[Package, ...]
    libraries: tuple[str, ...]
    models: tuple[ChosenModel, ...]
    graphs: tuple[ChosenGraph, ...]

    @property
    def copyleft(self) -> tuple[str, ...]:
        """What of it is under the GPL."""
        found = [each.name for each in self.packages if each.copyleft]
        return tuple(found + [each.entry.name for each in self.models if "GPL" in each.entry.licence])


def starter(root: str, facts: Facts) -> None:
    """How it starts."""
    path = os.path.join(root, LAUNCHER)
    with open(path, "w", encoding="utf-8") as file:
        file.write(_LAUNCHER.format(python=interpreter.name(), start=_START))
    os.chmod(path, 0o755)  # noqa: S103  # whoever has the bundle may run it
    settings = ""
    if any(each.loose for each in facts.models):
        settings += f'models_dir = "{MODELS}"\n'
    if facts.graphs:
        settings += f'storage_root = "{GRAPHS}"\n'
    with open(os.path.join(root, CONFIG), "w", encoding="utf-8") as file:
        file.write(_CONFIG + settings)


def readme(root: str, facts: Facts, size: int) -> None:
    """What people read first."""
    models = "".join(f"    {each.entry.name}: {each.entry.licence or 'licence not stated'}\n" for each in facts.models)
    graphs = "".join(f"    {GRAPHS}/{each.name}\n" for each in facts.graphs)
    text = _README.format(
        version=facts.version,
        python=facts.python,
        machine=facts.machine,
        glibc=facts.glibc,
        size=size_text(size),
        models=f"Models:\n{models}" if models else f"{NO_MODELS}\n",
        graphs=f"Graphs:\n{graphs}" if graphs else "",
        copyleft=_COPYLEFT.format(names=", ".join(facts.copyleft)) if facts.copyleft else "",
    )
    with open(os.path.join(root, README), "w", encoding="utf-8") as file:
        file.write(text)


def manifest(root: str, facts: Facts) -> dict[str, Any]:
    """List everything; gives the list."""
    files = {name: _told(os.path.join(root, name)) for name in sorted(_files(root))}
    told: dict[str, Any] = {
        "format": FORMAT,
        "name": "trunkline-tryll-server",
        "version": facts.version,
        "system": "linux",
        "machine": facts.machine,
        "glibc": facts.glibc,
        "python": facts.python,
        "packages": [{"name": each.name, "version": each.version, "licence": each.licence} for each in facts.packages],
        "libraries": list(facts.libraries),
        "models": [{"name": each.entry.name, "kind": each.entry.kind, "licence": each.entry.licence}
                   for each in facts.models],
        "graphs": [f"{GRAPHS}/{each.name}" for each in facts.graphs],
        "gpl": list(facts.copyleft),
        "bytes": sum(each["bytes"] for each in files.values()),
        "files": files,
    }  # fmt: skip
    with open(os.path.join(root, MANIFEST), "w", encoding="utf-8") as file:
        json.dump(told, file, indent=1)
        file.write("\n")
    return told


def is_bundle(folder: str) -> bool:
    """Whether one was made there."""
    try:
        with open(os.path.join(folder, MANIFEST), encoding="utf-8") as file:
            return bool(json.load(file).get("name") == "trunkline-tryll-server")
    except (OSError, ValueError, AttributeError):
        return False


def _files(root: str) -> Iterable[str]:
    return (os.path.relpath(os.path.join(folder, name), root) for folder, _, names in os.walk(root) for name in names)


def _told(path: str) -> dict[str, Any]:
    with open(path, "rb") as file:
        return {"bytes": os.path.getsize(path), "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
