"""Makes a bundle: in a folder beside its place, which gets its name when all of it is there."""

from __future__ import annotations

import os
import platform
import shutil
import stat
import sys
from collections.abc import Callable, Sequence
from compileall import compile_dir
from contextlib import suppress
from importlib import metadata
from py_compile import PycInvalidationMode
from typing import Any

from trunkline.base.extras import missing
from trunkline.base.replacing import draft
from trunkline.base.values import Value
from trunkline.cli.bundling import interpreter, libraries, licences, models, packages, written
from trunkline.cli.bundling.asked import asked
from trunkline.cli.bundling.models import ChosenGraph, ChosenModel
from trunkline.core.faults import ConfigError
from trunkline.core.starting import lacks_package

#: The bundle is for whoever plays, and has nobody's secrets.
_FOLDER_MODE, _PROGRAM_MODE, _FILE_MODE = 0o755, 0o755, 0o644

Report = Callable[[str], None]


class BundlePlan(Value):
    """What goes into a bundle."""

    models: tuple[ChosenModel, ...]
    graphs: tuple[ChosenGraph, ...]
    distributions: dict[str, metadata.Distribution]
    packages: tuple[packages.Package, ...]


def planned(names: Sequence[str], graphs: Sequence[str]) -> BundlePlan:
    """Look at everything that was asked for, before anything is made.

    Raises:
        ConfigError: something is not here, or cannot be given away as it was asked for.
    """
    if sys.platform != "linux" or not platform.libc_ver()[0]:
        raise ConfigError("A bundle is made on Linux with glibc, and for it.")
    if (module := missing("bundle")) is not None:
        raise lacks_package("A bundle", ModuleNotFoundError(name=module), "bundle")
    libraries.patcher()
    files = [models.graph(each) for each in graphs]
    if len({each.name for each in files}) < len(files):
        raise ConfigError("Two of the graphs have the same name: their files would lie in one place.")
    wanted = dict.fromkeys((*names, *(model for each in files for model in each.models)))
    found = [models.chosen(name) for name in wanted]
    extras = models.extras(found)
    distributions = packages.needed(*extras)
    told = [packages.described(each) for each in distributions.values()]
    free = packages.needed(*(each for each in extras if each != "voice-gpl"))
    unasked = [each.name for each in packages.copyleft(map(packages.described, free.values()))]
    if unasked:
        raise ConfigError(f"These packages are under the GPL, and no model needs them: {', '.join(unasked)}.")
    return BundlePlan(tuple(found), tuple(files), distributions, tuple(told))


def build(plan: BundlePlan, place: str, report: Report, *, force: bool = False) -> dict[str, Any]:
    """Make it; gives its list. What was there before is replaced with `force`, if it is a bundle.

    Raises:
        ConfigError: something is in its place, or is lacking, or it cannot be written.
        OSError: what goes into it cannot be read.
    """
    place = os.path.abspath(place)
    check_place(place, force=force)
    root = draft(place)
    try:
        os.makedirs(root, _FOLDER_MODE)
        told = _fill(plan, root, report)
        _open(root)
        _move(root, place)
    except BaseException as error:
        shutil.rmtree(root, ignore_errors=True)
        if isinstance(error, OSError) and (reason := _unwritten(error, root)):
            raise ConfigError(f"The bundle `{place}` cannot be made: {reason}.") from error
        raise
    return told


def _unwritten(error: OSError, root: str) -> str:
    """What the system says of a file in the folder that is being made, whose name nobody knows, or of a folder that
    this one is to be in; else nothing."""
    if isinstance(error, shutil.Error) and isinstance(error.args[0], list):
        # Of many files: where each is, where it should be, and what the system says, with its number and the name.
        _, there, told = error.args[0][0]
        return str(told).rpartition("] ")[2].partition(": ")[0] if str(there).startswith(root) else ""
    places = [each for each in (error.filename, error.filename2) if isinstance(each, str) and each]
    is_there = any(each.startswith(root) or root.startswith(os.path.join(each, "")) for each in places)
    return (error.strerror or "") if is_there else ""


def check_place(place: str, *, force: bool) -> None:
    """Nothing, if a bundle can be made there.

    Raises:
        ConfigError: something is there that is not to be replaced.
    """
    if not os.path.lexists(place) or (os.path.isdir(place) and not os.path.islink(place) and not os.listdir(place)):
        return
    if not written.is_bundle(place) or os.path.islink(place):
        raise ConfigError(f"`{place}` already exists and is not a bundle.", hint="Choose another folder.")
    if not force:
        raise ConfigError(f"There is a bundle in `{place}`.", hint="`--force` replaces it.")


def _fill(plan: BundlePlan, root: str, report: Report) -> dict[str, Any]:
    report("Copying Python.")
    target = interpreter.copy(root)
    report(f"Copying {len(plan.distributions)} packages.")
    for distribution in plan.distributions.values():
        packages.copy(distribution, target)
    report("Copying the libraries that they need.")
    found, glibc = libraries.collect(root)
    for model in plan.models:
        report(f"Copying the model {model.entry.name}.")
        models.copy(model, root)
    for graph in plan.graphs:
        models.copy_graph(graph, root)
    report("Compiling.")
    _compile(root)
    report("Collecting licences.")
    licences.collect(root, plan.distributions, found, plan.models)
    facts = written.Facts(
        metadata.version(packages.OWN),
        platform.python_version(),
        platform.machine(),
        ".".join(map(str, glibc)),
        plan.packages,
        tuple(sorted(found)),
        plan.models,
        plan.graphs,
    )
    written.starter(root, facts)
    report("Trying it.")
    _try(root)
    written.readme(root, facts, _size(root))
    return written.manifest(root, facts)


def _compile(root: str) -> None:
    """So that nothing is compiled, or written, where it runs. Sources are not looked at any more: those of a copy have
    other times."""
    folder = os.path.join(root, interpreter.FOLDER)
    compile_dir(folder, maxlevels=32, quiet=2, stripdir=root, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH)


def _try(root: str) -> None:
    """See whether it starts at all, without anything of this installation.

    Raises:
        ConfigError: it does not.
    """
    code, said = asked("env", "-i", os.path.join(root, written.LAUNCHER), "--help")
    if code or "--exit-with-stdin" not in said:
        raise ConfigError(f"The bundle does not start: {said.strip()[-500:]}")


def _open(root: str) -> None:
    """Let everybody read it: what was copied brought its modes along, and a cache of models is for one user alone."""
    for folder, _, names in os.walk(root):
        os.chmod(folder, _FOLDER_MODE)
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                os.chmod(path, _PROGRAM_MODE if os.stat(path).st_mode & stat.S_IXUSR else _FILE_MODE)


def _size(root: str) -> int:
    return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(root) for name in names)


def _move(root: str, place: str) -> None:
    """Give it its name. What was there goes when the new one has it."""
    if not os.path.lexists(place):
        os.rename(root, place)
        return
    old = draft(place)
    os.rename(place, old)
    try:
        os.rename(root, place)
    except BaseException:
        with suppress(OSError):
            os.rename(old, place)
        raise
    shutil.rmtree(old, ignore_errors=True)
