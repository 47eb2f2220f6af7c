"""What a shell offers for values: sessions, approvals and agents of the exchange that runs here, and models by kind.

What cannot be had is not offered; nobody waits longer for it than `SECONDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import click
from click.shell_completion import CompletionItem

from trunkline.base.printable import printable, printable_line

#: Somebody has pressed a key, and looks at the line.
SECONDS = 2.0
#: The sessions that were used last: more than anybody reads of a list.
MOST_SESSIONS = 100

Completing: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def sessions(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids of sessions of the exchange, the one used last first."""
    found = _asked(f"/api/sessions?limit={MOST_SESSIONS}", "sessions")
    return beginning((str(each["id"]) for each in found), incomplete)


def approvals(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids of what waits for an answer in the exchange, and what each is for."""
    found = _asked("/api/approvals?state=pending", "approvals")
    about = {str(each["id"]): printable_line(f"{each['agent']}: {each['tool']}") for each in found}
    return [CompletionItem(item.value, help=about[item.value]) for item in beginning(about, incomplete)]


def agents(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of agents of the exchange."""
    return beginning(exchange_agents(), incomplete)


def exchange_agents() -> list[str]:
    """Names of agents: as the exchange that runs here says, else as the file in this directory does."""
    from trunkline.base.config_file import ConfigFileError, read_toml
    from trunkline.base.exchange_home import FILE
    from trunkline.core.faults import Fault

    try:
        return [str(each["name"]) for each in _asked("/api/agents", "agents")]
    except Fault:
        try:
            file = read_toml(FILE)
        except ConfigFileError:
            return []
    named = None if file is None else file.table.get("agents")
    return list(named) if isinstance(named, Mapping) else []


def models(kind: str, *others: str) -> Completing:
    """Names of models of a kind that can run on this machine, and others that need no file."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from trunkline.models import catalog

        known = (entry.name for entry in catalog.entries() if entry.kind == kind)
        return beginning([*known, *others], incomplete)

    return complete


def beginning(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """Those that begin so, as far as they can be typed."""
    return [CompletionItem(name) for name in names if name.startswith(incomplete) and name == printable(name)]


def _asked(path: str, key: str) -> list[dict[str, Any]]:
    from trunkline.cli import local_exchange

    found: list[dict[str, Any]] = local_exchange.request("GET", path, seconds=SECONDS)[key]
    return found
