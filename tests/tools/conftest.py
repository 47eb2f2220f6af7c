"""What the tests of the file tools share, and those of MCP servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.mcp_client import Watched, watched
from tests.tools.calling import Box
from trunkline.tools.mcp import server


@pytest.fixture
def box(tmp_path: Path) -> Box:
    """The file tools in an empty directory."""
    return Box(tmp_path)


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Watched]:
    """A client of MCP servers, which are watched."""
    async with watched(tmp_path) as made:
        yield made


@pytest.fixture
def quick_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "FIRST_WAIT_SECONDS", 0.01)
