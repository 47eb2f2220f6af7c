"""What is wrong with a configuration, for `trunkline config check`: file by file, with places and suggestions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from trunkline.base.config import ConfigFileError, Origin
from trunkline.base.config_file import TomlFile, dotted, read_toml
from trunkline.base.config_problems import Problem, by_place, problems_in
from trunkline.base.config_runner import AGENT
from trunkline.base.config_schema import SERVICES, Keys, check
from trunkline.base.nearest import UNKNOWN_KEY
from trunkline.core.configuration import settled
from trunkline.core.faults import ConfigError
from trunkline.exchange.config_schema import EVERYTHING
from trunkline.runner import slips


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
                return [Problem(path, "does not exist")] if missing else None
            found = [*problems_in(file, EVERYTHING), *_in_rules(file), *_in_hooks(file)]
    except ConfigFileError as error:
        return [Problem.of(error)]
    return sorted(found, key=by_place)


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


def _in_rules(file: TomlFile) -> Iterator[Problem]:
    """Permission rules that cannot be read, and those of tools whose names look like a slip."""
    from trunkline.core.approvals import unknown_tool
    from trunkline.core.rules import KINDS, read_rule

    rules = file.table.get("permissions")
    lists = rules if isinstance(rules, Mapping) else {}
    for kind in KINDS:
        for rule in lists[kind] if isinstance(lists.get(kind), list) else ():
            if not isinstance(rule, str):
                continue
            keys = ("permissions", kind)
            if problem := read_rule(rule)[1]:
                yield Problem.of(file.wrong(f"has the rule `{rule}`, which cannot be read: {problem}", keys))
            elif slip := unknown_tool(rule, more_tools=True, to_allow=""):
                hint = slip.partition(". ")[2]
                yield Problem.of(file.wrong(f"has the rule `{rule}`, which names no known tool", keys), hint)


def _in_hooks(file: TomlFile) -> Iterator[Problem]:
    """Hooks that would not be run as they are written."""
    from trunkline.agents.coder.settings_hooks import read_hook

    hooks = file.table.get("hooks")
    for event, tables in hooks.items() if isinstance(hooks, Mapping) else ():
        for table in tables if isinstance(tables, list) else ():
            _, problems = read_hook(event, table) if isinstance(table, Mapping) else (None, ())
            for problem in problems:
                yield Problem.of(file.wrong(f"has a hook with a mistake: {problem.rstrip('.')}", ("hooks", event)))


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
