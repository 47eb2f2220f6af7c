"""What an agent's own configuration adds to its settings in the exchange: files of the user and of its workspace, and
variables. Only the coding agent has one that the exchange can read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trunkline.base.config_file import dotted
from trunkline.base.config_settled import ValueSource
from trunkline.core.faults import ConfigError
from trunkline.exchange.config_shown import DEFAULT, Clean, ShownOrigin, ShownSetting, shown
from trunkline.exchange.settings import AgentSettings

#: The agent that has one.
CODER = "coder"
#: Its sections that say how it works. The others are about providers, servers and programs, and full of secrets.
_SECTIONS = ("default", "tools", "permissions", "compact", "session")


def own_settings(
    agent: AgentSettings, options: Mapping[str, Any], environ: Mapping[str, str], clean: Clean
) -> Iterator[ShownSetting]:
    """What its own configuration says, and the model that comes of everything together.

    Args:
        options: what it is created with, with what was found for it.
        environ: what it is created in.
        clean: takes secrets out of a value.
    """
    if agent.kind != CODER:
        return
    from trunkline.agents.coder.settings import load_config, resolve
    from trunkline.agents.coder.settings_shown import shown as said

    section = f"agents.{dotted((agent.name,))}, its own configuration"
    try:
        config = load_config(agent.workspace, environ)
        found = resolve({name: value for name, value in options.items() if name != "workspace"}, agent.workspace,
                        environ, config)  # fmt: skip
    except ConfigError as error:
        yield ShownSetting(section, "problem", clean(error.message), DEFAULT)
        return
    for name in ("provider", "model"):
        if name not in agent.options:
            origin = ShownOrigin("found") if name in options else DEFAULT
            yield ShownSetting(section, f"{name} in use", clean(getattr(found.model, name)), origin)
    for path, (value, source) in said(config, environ).items():
        if path[0] in _SECTIONS:
            yield ShownSetting(section, dotted(path), clean(shown(path, value)), _origin(source))


def _origin(source: ValueSource) -> ShownOrigin:
    if source.kind == "file":
        return ShownOrigin("file", path=source.name, line=source.line)
    return ShownOrigin("environment", source.name) if source.kind == "variable" else DEFAULT
