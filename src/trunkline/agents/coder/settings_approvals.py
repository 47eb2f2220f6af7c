"""What the configuration files say about what may be done unasked."""

from __future__ import annotations

from trunkline.base.config import Config
from trunkline.base.values import Value
from trunkline.core.approvals import unknown_tool


class Unasked(Value):
    """What `[tools]` says, narrowed by a workspace that nobody trusts."""

    auto_approve: bool
    allow: tuple[str, ...] | None
    """None: what is allowed by default."""
    allow_outside: bool
    warnings: tuple[str, ...]


def approvals(config: Config, *, more_tools: bool) -> Unasked:
    """Read it. `more_tools`: there are MCP servers, whose tools are not known yet."""
    allow = config.narrowed(config.get("tools", "allow_list"), "tools", "allow_list")
    slips = (unknown_tool(name, more_tools=more_tools) for name in allow or ())
    return Unasked(
        config.narrowed(config.get("tools", "auto_approve", default=False), "tools", "auto_approve"),
        None if allow is None else tuple(allow),
        config.narrowed(config.get("tools", "allow_outside", default=False), "tools", "allow_outside"),
        tuple(filter(None, slips)),
    )
