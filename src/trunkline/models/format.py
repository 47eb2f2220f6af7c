"""What the formats share when they write requests: what a profile says of them, and what need not be written again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_not
from typing import Any

from trunkline.models.encoding import Compat, ToolShape, to_bytes, tool
from trunkline.models.messages import Message
from trunkline.models.model import Request, ToolSpec
from trunkline.models.outgoing import RequestWriter


class Format:
    """Writes requests. One per model: it remembers the bytes of what it has written. The formats fill in the rest.

    Args:
        compat: how the provider differs from the usual, by the names in `models.encoding`.
        shape: how the format describes tools.
        thinks: whether a model is asked to think, unless the profile says otherwise.
    """

    def __init__(self, compat: Mapping[str, Any], *, shape: ToolShape, thinks: bool) -> None:
        self._profile = profile = Compat(compat)
        self._thinks = profile.flag("supports_thinking", thinks)
        self._tries = profile.flag("supports_effort", False) if "supports_effort" in compat else None
        self._effort_levels = profile.texts("effort_levels")
        self._images = profile.images
        self._strip = profile.texts("strip_patterns")
        self._shape = profile.shape(shape)
        self._sanitize = profile.flag("sanitize_schema", False)
        self._tools = profile.flag("emit_tools", True)
        self._max_tools = profile.number("max_tool_count")
        self._outgoing = RequestWriter(self._message)
        self._written_preamble: tuple[str, tuple[ToolSpec, ...], bytes] | None = None

    def _message(self, message: Message) -> bytes:
        """The bytes of a message; see `RequestWriter`."""
        raise NotImplementedError

    def _preamble(self, system: str, tools: Sequence[ToolSpec]) -> bytes:
        """The bytes of the system prompt and the tools."""
        raise NotImplementedError

    def _preamble_of(self, request: Request) -> bytes:
        """The system prompt and the tools, which are the same from one request to the next."""
        if self._written_preamble is not None:
            system, tools, written = self._written_preamble
            same = system == request.system and len(tools) == len(request.tools)
            if same and not any(map(is_not, tools, request.tools)):
                return written
        tools = tuple(request.tools)
        written = self._preamble(request.system, tools)
        self._written_preamble = (request.system, tools, written)
        return written

    def _described(self, tools: Sequence[ToolSpec]) -> list[bytes]:
        """The tools that are shown to the model, one by one."""
        tools = tools[: self._max_tools] if self._tools else ()
        return [to_bytes(tool(spec, self._shape, sanitize=self._sanitize)) for spec in tools]

    def _effort(self, request: Request, known: bool) -> str | None:
        """How hard to try, if that is asked for in a word that the provider knows.

        `known`: whether the model is known to take one. What the profile says of it counts more.
        """
        if not (known if self._tries is None else self._tries):
            return None
        return request.effort if not self._effort_levels or request.effort in self._effort_levels else None

    def _stripped(self, text: str) -> str:
        for pattern in self._strip:
            text = text.replace(pattern, "")
        return text
