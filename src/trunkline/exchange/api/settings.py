"""The settings in force, with who says each of them; and what is wrong with the file, before it is loaded."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Any

from trunkline import __version__
from trunkline.base import shapes
from trunkline.base.config_file import ConfigFileError, dotted, read_toml
from trunkline.base.config_problems import Problem
from trunkline.base.redact import Redactor
from trunkline.exchange import config, config_secrets
from trunkline.exchange.api.endpoint import ApiCall, ApiEndpoint
from trunkline.exchange.api.errors import ApiRefused
from trunkline.exchange.api.schemas import COUNT, FLAG, TEXT, array, maybe, obj
from trunkline.exchange.checking import examine_agent
from trunkline.exchange.config import AskKeyring
from trunkline.exchange.config_agents import own_settings
from trunkline.exchange.config_changes import differences, unchangeable
from trunkline.exchange.config_shown import SettingsView, ShownSetting
from trunkline.exchange.exchange import Exchange
from trunkline.exchange.settings import ExchangeSettings


async def settings(call: ApiCall) -> Mapping[str, Any]:
    """`GET /api/settings`."""
    return await asyncio.to_thread(_shown, call.exchange)


async def check(call: ApiCall) -> Mapping[str, Any]:
    """`POST /api/settings/check`. Nothing is loaded."""
    exchange = call.exchange
    if not exchange.settings.path:
        raise ApiRefused(409, "This exchange has no file that could be checked.")
    disk, found = await asyncio.to_thread(_on_disk, exchange, config_secrets.from_keyring)
    # What only its agents can tell, and what does not keep the rest of it from being loaded.
    warnings = [] if found is None else await _of_agents(found, exchange.redactor)
    told = [exchange.redactor.data(_members(each, "warning")) for each in warnings]
    return {**disk, "problems": [*disk["problems"], *told]}


# What is in force.


def _shown(exchange: Exchange) -> dict[str, Any]:
    own = exchange.settings
    clean = exchange.redactor.data
    rows = [*SettingsView(own, exchange.environ, clean).rows()]
    for entry in exchange.directory.entries:
        # In the environment that agents have: without the exchange's own secrets.
        added = own_settings(entry.settings, entry.options, os.environ, clean)
        section = f"agents.{dotted((entry.name,))}"
        after = max((place for place, row in enumerate(rows) if row.section == section), default=len(rows) - 1)
        rows[after + 1 : after + 1] = added
    return {"about": _about(exchange), "settings": [_row(each) for each in rows], **_on_disk(exchange, _unasked)[0]}


def _about(exchange: Exchange) -> dict[str, Any]:
    own = exchange.settings
    return {
        "version": __version__,
        "home": own.home,
        "address": exchange.address or None,
        "database": "SQLite" if own.cluster is None else "PostgreSQL",
        "cluster": None if own.cluster is None else {"name": own.cluster.name, "node": own.cluster.node},
        "reloads": bool(own.path),
    }


def _row(setting: ShownSetting) -> dict[str, Any]:
    origin = setting.origin
    return {
        "section": setting.section,
        "key": setting.key,
        "value": setting.value,
        "origin": {
            "kind": origin.kind, "name": origin.name or None, "path": origin.path or None, "line": origin.line,
        },
    }  # fmt: skip


# What the file says by now.


def _on_disk(exchange: Exchange, keyring: AskKeyring) -> tuple[dict[str, Any], ExchangeSettings | None]:
    """How the file is by now, as it is told; and what it says, if that can be used."""
    own, clean = exchange.settings, exchange.redactor.data
    if not own.path or own.file is None:
        return _told(None, "none"), None
    try:
        disk = read_toml(own.path)
    except ConfigFileError as error:
        problem = Problem.of(error)
        return _told(own.path, "unreadable", [clean(_members(problem))], problem=clean(str(problem))), None
    if disk is None:
        return _told(own.path, "gone", [_members(Problem(own.path, "does not exist"))]), None
    found = config.checked(disk, exchange.environ, keyring)
    problems = list(unchangeable(own, found)) if isinstance(found, ExchangeSettings) else found
    changed = [shapes.encode(each) for each in differences(own.file, disk, clean)]
    # What has mistakes is not in force, whether or not it says anything else than before.
    state = "wrong" if problems else "changed" if changed else "loaded"
    told = _told(own.path, state, [clean(_members(each)) for each in problems], changed)
    return told, found if isinstance(found, ExchangeSettings) else None


def _told(
    path: str | None,
    state: str,
    problems: Sequence[Mapping[str, Any]] = (),
    changed: Sequence[Any] = (),
    *,
    problem: str | None = None,
) -> dict[str, Any]:
    file = {"path": path, "state": state, "problem": problem}
    return {"file": file, "problems": list(problems), "differences": list(changed)}


def _unasked(entry: str) -> str:
    """The keyring may take long: whoever only looks does not wait for it."""
    return ""


async def _of_agents(found: ExchangeSettings, redactor: Redactor) -> list[Problem]:
    """What would keep agents of a file from working: a graph that is not there, for one."""
    agents, file = list(found.agents.values()), found.file
    told = await asyncio.gather(*(examine_agent(each, redactor) for each in agents))
    return [
        Problem.of(file.wrong(f"would not work: {each.told.rstrip('.')}", ("agents", agent.name)), each.mend or None)
        for agent, each in zip(agents, told, strict=True)
        if file is not None and not each.ok
    ]


def _members(problem: Problem, severity: str = "problem") -> dict[str, Any]:
    return {
        "severity": severity,
        "path": problem.file,
        "line": problem.line,
        "column": problem.column,
        "key": problem.key,
        "problem": problem.problem,
        "hint": problem.hint,
    }


_ANY: Mapping[str, Any] = {}
_ORIGIN = obj(
    kind={"enum": ["file", "default", "environment", "keyring", "found"]}, name=maybe(TEXT), path=maybe(TEXT),
    line=maybe(COUNT),
)  # fmt: skip
_PROBLEM = obj(
    severity={"enum": ["problem", "warning"], "description": "A warning does not keep the file from being loaded."},
    path=TEXT, line=maybe(COUNT), column=maybe(COUNT), key=maybe(TEXT), problem=TEXT, hint=maybe(TEXT),
)  # fmt: skip
_DISK = {
    "file": obj(
        path=maybe(TEXT), state={"enum": ["none", "loaded", "changed", "wrong", "gone", "unreadable"]},
        problem=maybe(TEXT),
    ),
    "problems": array(_PROBLEM),
    "differences": array(obj(key=TEXT, loaded=_ANY, disk=_ANY, line=maybe(COUNT))),
}  # fmt: skip
_SETTINGS = obj(
    about=obj(
        version=TEXT, home=TEXT, address=maybe(TEXT), database=TEXT, cluster=maybe(obj(name=TEXT, node=TEXT)),
        reloads=FLAG,
    ),
    settings=array(obj(section=TEXT, key=TEXT, value=_ANY, origin=_ORIGIN)),
    **_DISK,
)  # fmt: skip

ENDPOINTS = (
    ApiEndpoint(
        "GET", "/api/settings", settings, "admin", "The settings in force, with who says each of them",
        answer=_SETTINGS,
    ),
    ApiEndpoint(
        "POST", "/api/settings/check", check, "admin", "What is wrong with the file as it is on disk",
        answer=obj(**_DISK), statuses=(409,),
    ),
)  # fmt: skip
