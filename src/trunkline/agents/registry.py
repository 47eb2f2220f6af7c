"""The agents there are, by name. Each is imported when it is made, and costs nothing before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trunkline.core.agent import Agent
from trunkline.core.faults import ConfigError


def names() -> tuple[str, ...]:
    """The names that `make` knows."""
    return tuple(_FACTORIES)


def make(name: str, options: Mapping[str, Any]) -> Agent:
    """The agent of that name. Options that are of no use to it are ignored.

    Raises:
        ConfigError: there is none, or it lacks what it needs.
    """
    factory = _FACTORIES.get(name)
    if factory is None:
        from trunkline.agents.script_source import listed, suggestion

        hint = suggestion(name, _FACTORIES)
        raise ConfigError(f"There is no agent `{name}`.{hint} The agents are {listed(_FACTORIES)}.")
    return factory(options)


def _echo(options: Mapping[str, Any]) -> Agent:
    from trunkline.agents.echo import EchoAgent

    return EchoAgent()


def _scripted(options: Mapping[str, Any]) -> Agent:
    from trunkline.agents import script
    from trunkline.agents.script_source import listed
    from trunkline.agents.scripted import ScriptedAgent

    spec = options.get("script")
    if not spec:
        raise ConfigError(
            "The agent `scripted` needs a script.",
            hint=f"Add `--script FILE`, or `--script NAME` with one of {listed(script.bundled())}.",
        )
    return ScriptedAgent(script.load(str(spec)))


_FACTORIES: dict[str, Callable[[Mapping[str, Any]], Agent]] = {"echo": _echo, "scripted": _scripted}
