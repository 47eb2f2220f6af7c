"""The settings in force, with who says each of them; and what is wrong with the file, before it is loaded."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

from trunkline import __version__
from trunkline.base import shapes
from trunkline.base.config_file import ConfigFileError, TomlFile, dotted, read_toml
from trunkline.base.config_problems import Problem
from trunkline.exchange import config
from trunkline.exchange.api.endpoint import ApiCall, ApiEndpoint
from trunkline.exchange.api.errors import ApiRefused
from trunkline.exchange.api.schemas import COUNT, FLAG, TEXT, array, maybe, obj
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
    problems = await asyncio.to_thread(_problems, exchange.settings, exchange.environ)
    return {"problems": [exchange.redactor.data(_members(each)) for each in problems]}


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
    state, problem, disk = _on_disk(own)
    changed = [] if disk is None else differences(own.file, disk, clean)
    return {
        "about": _about(exchange),
        "file": {"path": own.path or None, "state": "changed" if changed else state, "problem": clean(problem) or None},
        "settings": [_row(each) for each in rows],
        "differences": [shapes.encode(each) for each in changed],
    }


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


def _on_disk(own: ExchangeSettings) -> tuple[str, str, TomlFile | None]:
    """How the file is by now: its state, what is wrong with it, and what it says."""
    if not own.path or own.file is None:
        return "none", "", None
    try:
        found = read_toml(own.path)
    except ConfigFileError as error:
        return "unreadable", str(Problem.of(error)), None
    return ("gone", "", None) if found is None else ("loaded", "", found)


# What is wrong.


def _problems(own: ExchangeSettings, environ: Mapping[str, str]) -> list[Problem]:
    try:
        found = config.read(own.path, environ)
    except config.WrongFile as wrong:
        return list(wrong.problems)
    return list(unchangeable(own, found))


def _members(problem: Problem) -> dict[str, Any]:
    return {
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
_SETTINGS = obj(
    about=obj(
        version=TEXT, home=TEXT, address=maybe(TEXT), database=TEXT, cluster=maybe(obj(name=TEXT, node=TEXT)),
        reloads=FLAG,
    ),
    file=obj(
        path=maybe(TEXT), state={"enum": ["none", "loaded", "changed", "gone", "unreadable"]}, problem=maybe(TEXT)
    ),
    settings=array(obj(section=TEXT, key=TEXT, value=_ANY, origin=_ORIGIN)),
    differences=array(obj(key=TEXT, loaded=_ANY, disk=_ANY, line=maybe(COUNT))),
)  # fmt: skip
_PROBLEM = obj(
    path=TEXT, line=maybe(COUNT), column=maybe(COUNT), key=maybe(TEXT), problem=TEXT, hint=maybe(TEXT),
)  # fmt: skip

ENDPOINTS = (
    ApiEndpoint(
        "GET", "/api/settings", settings, "admin", "The settings in force, with who says each of them",
        answer=_SETTINGS,
    ),
    ApiEndpoint(
        "POST", "/api/settings/check", check, "admin", "What is wrong with the file as it is on disk",
        answer=obj(problems=array(_PROBLEM)), statuses=(409,),
    ),
)  # fmt: skip
