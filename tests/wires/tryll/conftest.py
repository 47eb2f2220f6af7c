"""A server in this process, on a real socket, and clients of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.tryll_served import Peer, Served, served
from tests.wires.tryll.foreign_client import Foreigner, foreigner


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path) as made:
        yield made


@pytest.fixture
async def peer(server: Served) -> AsyncIterator[Peer]:
    """A client that speaks with our codec."""
    async with server.peer() as made:
        yield made


@pytest.fixture
async def client(server: Served) -> AsyncIterator[Foreigner]:
    """A client that has nothing of ours."""
    async with foreigner(server) as made:
        yield made
