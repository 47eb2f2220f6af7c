"""What is wrong with a configuration, for `trunkline config check`: file by file, with places and suggestions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from trunkline.base.config import ConfigFileError, Origin
from trunkline.base.config_file import TomlFile, dotted, read_toml
from trunkline.base.config_runner import AGENT
from trunkline.base.config_schema import SCHEMA, SERVICES, Keys, Schema, check
from trunkline.base.config_services import SECTIONS
from trunkline.base.nearest import UNKNOWN_KEY, about_key, nearest
from trunkline.base.printable import printable_line
from trunkline.base.values import Value
from trunkline.core.configuration import settled
from trunkline.core.faults import ConfigError
from trunkline.runner import slips

#: Everything that a file of ours may say.
EVERYTHING: Schema = {**SCHEMA, **SECTIONS}


class Problem(Value):
    """What is wrong, and where."""

    file: str
    """Or a variable."""
    problem: str
    key: str | None = None
    line: int | None = None
    column: int | None = None
    hint: str | None = None
    """What was probably meant by a key that is not known."""

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        problem = about_key(self.key, self.problem) if self.key else self.problem
        hint = f" {self.hint}" if self.hint else ""
        return printable_line(f"{place}: {problem}.{hint}")


def problems_of(path: str, *, missing: bool) -> list[Problem] | None:
    """What is wrong with a file; None if there is none, and nobody has asked for it.

    One whose name ends in `.json` is what an agent of the runner's is told.
    """
    try:
        if path.endswith(".json"):
            found = list(_in_json(path))
        else:
            file = read_toml(path)
            if file is None:
                return [Problem(path, "is not there")] if missing else None
            found = list(_in_toml(file))
    except ConfigFileError as error:
        return [_problem(error)]
    return sorted(found, key=lambda problem: (problem.line or 0, problem.column or 0))


def wrong_variables(workspace: str, environ: Mapping[str, str] = os.environ) -> Iterator[Problem]:
    """The variables of services that cannot be understood; of each service the first."""
    for service in SERVICES:
        try:
            settled(service, None, environ, workspace)
        except ConfigError as error:
            variable, _, problem = error.message.rstrip(".").partition(": ")
            yield Problem(variable, problem)


def not_followed(
    workspace: str, file: str | None = None, environ: Mapping[str, str] = os.environ
) -> tuple[tuple[Origin, ...], str]:
    """What the files of a workspace say in vain, or that one file of it, and what to do about it.

    Nothing where something is wrong that keeps the configuration from being used: that comes first.
    """
    from trunkline.cli.config_show import gather

    try:
        found = gather(workspace, environ)
    except ConfigError:
        return (), ""
    if file is None:
        return found.not_followed, found.advice
    of_file = (each for each in found.not_followed if os.path.realpath(each.file) == os.path.realpath(file))
    return tuple(each.replace(file=file) for each in of_file), found.advice


def _in_toml(file: TomlFile) -> Iterator[Problem]:
    checked = check(file.table, EVERYTHING)
    for keys, problem in checked.wrong:
        yield _problem(file.wrong(problem, keys))
    for keys, known in checked.unknown:
        meant = nearest(keys[-1], known)
        hint = f"Did you mean `{dotted((*keys[:-1], meant))}`?" if meant else None
        yield _problem(file.wrong(UNKNOWN_KEY, keys)).replace(hint=hint)


def _problem(error: ConfigFileError) -> Problem:
    return Problem(error.file, error.problem, error.key, error.line, error.column)


def _in_json(path: str) -> Iterator[Problem]:
    """Names that are like none of ours are left alone there, as the runner does."""
    from trunkline.base.document import DocumentError, Part, read

    def problem(part: Part, keys: Keys, text: str, hint: str | None = None) -> Problem:
        place = part.at(*keys).place
        return Problem(path, text, dotted(keys), place.line if place else None, place.column if place else None, hint)

    try:
        part = read(path, "the configuration")
        given = part.object()
    except OSError as error:
        yield Problem(path, f"cannot be read: {error.strerror or error}")
        return
    except DocumentError as error:
        yield Problem(path, error.problem.rstrip("."), None, error.line, error.column)
        return
    checked = check(_without_null(given), AGENT)
    for keys, text in checked.wrong:
        yield problem(part, keys, text)
    for keys, known in checked.unknown:
        if (hint := slips.hint(keys, known)) is not None:
            yield problem(part, keys, UNKNOWN_KEY, hint)


def _without_null(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {key: _without_null(inner) for key, inner in value.items() if inner is not None}
