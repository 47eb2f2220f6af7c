"""What extends a conversation, for the conversation: made when the first message comes, or somebody asks for commands.

An agent's start is short, and a host waits for it; what users have put on the disk is read after that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from trunkline.agents.coder.conversation_tools import ConversationTools
from trunkline.base.redact import Redactor
from trunkline.core.events import ToolRequested

if TYPE_CHECKING:
    from trunkline.agents.coder.commands import TypedCommand
    from trunkline.agents.coder.extending.extensions import Extensions
    from trunkline.agents.coder.extending.own_agents import OwnAgents
    from trunkline.agents.coder.extending.typed import TypedExtensions


class Extending:
    """Holds the `Extensions` of one conversation, and lends it their tool."""

    def __init__(
        self,
        tools: ConversationTools,
        environ: Mapping[str, str],
        redactor: Redactor,
        *,
        trusted: bool,
        style: str | None,
        on_style: Callable[[str], None] = lambda name: None,
    ) -> None:
        """`on_style` hears of the output style that somebody chooses."""
        self._tools = tools
        self._environ = environ
        self._redactor = redactor
        self._trusted = trusted
        self._style = style
        self._on_style = on_style
        self._made: tuple[Extensions, TypedExtensions] | None = None

    async def refresh(self) -> list[str]:
        """Look at the disk before a message is answered; gives what people should be told."""
        found, _ = self._extensions()
        found.begin_turn()
        await found.refresh()
        return self._looked(found)

    def look(self) -> None:
        """The same at once, for somebody who asks for the commands. Blocks for as long as the disk needs."""
        found, _ = self._extensions()
        found.look()

    def commands(self) -> Mapping[str, TypedCommand]:
        """What can be typed, as it was found last."""
        return self._extensions()[1].offered()

    def sections(self, tools: Collection[str]) -> Mapping[str, str]:
        """What the system prompt says of it, to a model that has these tools, by what it is."""
        return {} if self._made is None else self._made[0].sections(tools)

    def allows(self, request: ToolRequested) -> bool:
        """See `Extensions.allows`."""
        return self._made is not None and self._made[0].allows(request)

    def agents(self) -> OwnAgents:
        """The sub-agents that users and workspaces define, not looked for yet."""
        from trunkline.agents.coder.extending.own_agents import OwnAgents

        return OwnAgents(self._tools.workspace.root, self._environ, trusted=self._trusted)

    def _looked(self, found: Extensions) -> list[str]:
        self._tools.lend(found.tool, useful=found.has_skills)
        notes, found.notes = found.notes, []
        return notes

    def _extensions(self) -> tuple[Extensions, TypedExtensions]:
        if self._made is None:
            from trunkline.agents.coder.extending.extensions import Extensions
            from trunkline.agents.coder.extending.typed import TypedExtensions

            found = Extensions(
                self._tools.workspace, self._environ, self._redactor, trusted=self._trusted, style=self._style
            )
            self._made = found, TypedExtensions(found, self._redactor, self._on_style)
        return self._made
