"""An agent that does what messages say, and writes down outside of the exchange what it has done: what it did twice, it
did twice, whatever the log says.

    [agents.worker]
    agent = "tests.chaos.cluster.agent:worker"
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

from tests.chaos.cluster.hearing import name_of
from tests.support.exchange_world import CommandedAgent, CommandedConversation
from trunkline.core.agent import OpenRequest
from trunkline.core.events import UserMessage

#: The file that all processes append to.
DONE = "CLUSTER_DONE_FILE"


class WorkerAgent(CommandedAgent):
    """One of them."""

    name = "worker"

    def __init__(self) -> None:
        super().__init__()
        self.ran = _Noted()

    async def open(self, request: OpenRequest) -> WorkerConversation:
        return WorkerConversation(self, request)


class WorkerConversation(CommandedConversation):
    """One dialogue."""

    def turn(self, message: UserMessage) -> Any:
        # By what the client calls it: whoever says a message twice under two ids has it run twice.
        note("turn", self._request.session_id, name_of(message.id, message.text))
        return super().turn(message)


class _Noted(Counter[tuple[str, str]]):
    """The tools that were run."""

    def __setitem__(self, key: tuple[str, str], value: int) -> None:
        note("tool", *key)
        super().__setitem__(key, value)


def note(*what: str) -> None:
    """Write a line, which no other process can tear."""
    fd = os.open(os.environ[DONE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(fd, ("\t".join(what) + "\n").encode())
    finally:
        os.close(fd)


def worker() -> WorkerAgent:
    """What the configuration names."""
    return WorkerAgent()
