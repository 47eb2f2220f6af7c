"""Agents that do as they are told, and a client of a server that has them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.agents.graph.fake_agents import FakeAgents, stage
from tests.support.tryll_served import Peer


@pytest.fixture
def fakes() -> FakeAgents:
    return FakeAgents()


@pytest.fixture
async def peer(tmp_path: Path, fakes: FakeAgents) -> AsyncIterator[Peer]:
    async with stage(tmp_path, fakes) as made:
        yield made
