"""What the tools of MCP servers are called: names that every model's service takes, no two alike."""

from __future__ import annotations

import re
from collections.abc import Iterable
from zlib import crc32

#: The longest name that every service takes.
MAX_CHARS = 64

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


class Names:
    """Gives each tool of each server a name, and always the same one.

    A tool keeps its own name where that is free; otherwise it is `mcp__SERVER__TOOL`.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._given: dict[tuple[str, str], str] = {}

    def of(self, server: str, tool: str) -> str:
        """The name of a tool."""
        key = (server, tool)
        if key not in self._given:
            name = next(name for name in _candidates(server, tool) if name not in self._taken)
            self._taken.add(name)
            self._given[key] = name
        return self._given[key]


def rule_name(server: str, tool: str) -> str:
    """What permission rules call a tool, whatever models call it."""
    return _UNSAFE.sub("_", f"mcp__{server}__{tool}")


def _candidates(server: str, tool: str) -> Iterable[str]:
    own = _UNSAFE.sub("_", tool)
    if 0 < len(own) <= MAX_CHARS:
        yield own
    long = rule_name(server, tool)
    if len(long) <= MAX_CHARS:
        yield long
    number = crc32(f"{server}\0{tool}".encode("utf-8", "surrogatepass"))
    while True:
        # The same in every session, so that a resumed history still names the tool.
        suffix = f"_{number:08x}"
        yield long[: MAX_CHARS - len(suffix)] + suffix
        number = (number + 1) & 0xFFFFFFFF
