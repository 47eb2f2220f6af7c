"""A world of sessions in memory, with one client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.acp_world import AcpWorld, acp_world


@pytest.fixture
async def it(tmp_path: Path) -> AsyncIterator[AcpWorld]:
    """Sessions of this client alone."""
    async with acp_world(tmp_path) as world:
        yield world


@pytest.fixture
async def shared(tmp_path: Path) -> AsyncIterator[AcpWorld]:
    """Sessions that several clients may be in."""
    async with acp_world(tmp_path, shared=True) as world:
        yield world
