"""What most tests of the chat side begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.chat_bridge import Stage
from trunkline.chat.delivery.store import ChatStore


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A bridge in memory, and what survives its restart."""
    return Stage(tmp_path)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChatStore]:
    """A store of its own."""
    store = ChatStore(str(tmp_path / "chat.db"))
    yield store
    store.close()
