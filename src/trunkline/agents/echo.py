"""The agent that answers with your own words, one delta per word. No model, no tools, nothing to set up.

The deltas joined are exactly the message, white space included; of a message that has only files, their names. What it
used is known: nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator

from trunkline.agents import attachments
from trunkline.core.agent import AddMcpServer, Capabilities, Change, Decision, OpenRequest
from trunkline.core.events import Event, TextDelta, TurnEnded, UserMessage
from trunkline.core.faults import Unsupported
from trunkline.core.usage import NOTHING_USED

#: A word with the white space behind it, or white space that no word comes before.
_PIECE = re.compile(r"\S+\s*|\s+")


class EchoAgent:
    """Opens conversations that echo."""

    name = "echo"
    #: It has no tools, so none of them ever runs unasked; and it remembers nothing, so resuming loses nothing.
    capabilities = Capabilities(approval=True, resume=True)
    checked = True

    async def open(self, request: OpenRequest) -> EchoConversation:
        return EchoConversation(request.workspace)


class EchoConversation:
    """One dialogue with the echo."""

    session_id: str | None = None

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace
        self._cancelled = False

    def turn(self, message: UserMessage) -> AsyncIterator[Event]:
        # Here and not in the generator, which runs later: a `cancel` in between counts.
        self._cancelled = False
        return self._answer(message)

    async def _answer(self, message: UserMessage) -> AsyncIterator[Event]:
        for notice in attachments.notices(message, self._workspace):
            yield notice
        # Who attaches a file without a word is not met with silence.
        said = message.text or "\n".join(os.path.basename(file) for file in message.files)
        for piece in _PIECE.finditer(said):
            if self._cancelled:
                break
            yield TextDelta(piece[0])
        yield TurnEnded("cancelled" if self._cancelled else "success", NOTHING_USED)

    async def decide(self, call_id: str, decision: Decision) -> None:
        """Nothing is ever asked, so there is nothing to decide."""

    async def configure(self, change: Change) -> None:
        # History and model options change nothing in an echo; a tool server would promise tools that never come.
        if isinstance(change, AddMcpServer):
            raise Unsupported("The agent `echo` has no tools, so it cannot use an MCP server.")

    async def cancel(self) -> None:
        self._cancelled = True

    async def close(self) -> None:
        """There is nothing to let go of."""
