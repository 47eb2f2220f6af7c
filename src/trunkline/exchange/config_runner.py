"""What is wrong with `[wires.runner.agents.NAME]`, besides what the kinds of its values tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from trunkline.base.nearest import suggestion
from trunkline.exchange.config_schema import LITERAL
from trunkline.runner import config_parts


class RunnerSlip(NamedTuple):
    """One thing that is wrong, with the keys of the table that lead to it."""

    keys: tuple[str, ...]
    problem: str
    hint: str | None = None


def slips(table: Mapping[str, Any], agents: Mapping[str, Any], environ: Mapping[str, str]) -> Iterator[RunnerSlip]:
    """All that is wrong with one of them. `agents`: those of the exchange."""
    for keys, _ in config_parts.places(config_parts.secret(table)):
        yield RunnerSlip(keys, f'{LITERAL}: write `{{ env = "NAME" }}`')
    for keys, member in config_parts.places(table):
        variable = config_parts.variable_of(member)
        if variable is not None and not environ.get(variable):
            hint = f"Set it before the exchange is started: `export {variable}=...`."
            yield RunnerSlip(keys, f"names `{variable}`, which is not set", hint)
    for key in ("agentId", "runnerToken"):
        if not table.get(key):
            yield RunnerSlip((), f"needs `{key}`")
    brain = config_parts.table(table, "brain")
    name = brain.get("name")
    if brain.get("kind") == "agent" and isinstance(name, str) and name not in agents:
        hint = suggestion(name, agents).strip() or "Name one of `[agents]`."
        yield RunnerSlip(("brain", "name"), f"names `{name}`, and there is no such agent here", hint)
