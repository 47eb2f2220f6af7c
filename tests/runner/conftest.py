"""A network that answers as it is told, and runners on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.cycles import World
from tests.support.sns_stub import SnsStub


@pytest.fixture
async def sns() -> AsyncIterator[SnsStub]:
    async with SnsStub() as network:
        yield network


@pytest.fixture
def world(sns: SnsStub, tmp_path: Path) -> World:
    return World(sns, tmp_path)
