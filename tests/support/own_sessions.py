"""Whoever keeps sessions, for tests of what stands on that: a user's own, with agents on strings or of the registry.

    async with own_sessions("fake", "echo") as keeper:
        seat = await keeper.open("fake")
        keeper.fake.say(TextDelta("Hello"), TurnEnded("success"))

Their logs are in the test's own `TRUNKLINE_HOME`. A second keeper finds them there, as the next process would.
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.support.fake_agent import FakeAgent
from tests.support.keeper import FAKE
from trunkline.agents import registry
from trunkline.cli import agent_options
from trunkline.cli.arguments import Parser
from trunkline.cli.own_sessions import OwnSessions
from trunkline.core.agent import Agent


class KeptSessions(OwnSessions):
    """With the agents on strings that were made, one for each session that was opened."""

    def __init__(self, *agents: str, models: bool = False, **options: Any) -> None:
        super().__init__(given(**options), agents or (FAKE,), models=models, make=self._made)
        self.fakes: list[FakeAgent] = []

    @property
    def fake(self) -> FakeAgent:
        """The one that was made last."""
        return self.fakes[-1]

    def _made(self, name: str, workspace: str) -> Agent:
        if name == FAKE:
            self.fakes.append(FakeAgent())
            return self.fake
        return registry.make(name, {"workspace": workspace, "script": None})


def given(**options: Any) -> argparse.Namespace:
    """The options of `trunkline agent`, of which only these were said."""
    parser = Parser(prog="test")
    agent_options.add_agent_options(parser)
    agent_options.add_session_options(parser)
    return argparse.Namespace(**{**vars(parser.parse_args([])), **options})


@asynccontextmanager
async def own_sessions(*agents: str, models: bool = False, **options: Any) -> AsyncIterator[KeptSessions]:
    """Keep sessions with these agents for the duration of the block."""
    keeper = KeptSessions(*agents, models=models, **options)
    try:
        yield keeper
    finally:
        await keeper.close()
