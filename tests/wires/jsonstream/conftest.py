"""A fresh server, and what its host has seen."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.served import Served, served


@pytest.fixture
async def it() -> AsyncIterator[Served]:
    """A server whose host has seen `ready`. The tests that use it run on virtual time."""
    async with served() as made:
        assert made.host.types() == ["ready"]
        yield made
