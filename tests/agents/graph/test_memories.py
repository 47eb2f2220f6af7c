"""Memories of agents, and the files that they share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS
from trunkline.agents.graph.memories import AgentMemory
from trunkline.agents.graph.memory_file import MemoryEntry, MemoryFile
from trunkline.models.embedding_mock import MockEmbedding


async def test_who_waits_for_another_process_to_write_keeps_no_thread_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, let_go = threading.Event(), threading.Event()
    add = MemoryFile.add

    def waits(self: MemoryFile, new: Sequence[MemoryEntry], most: int, name: str) -> Any:
        began.set()
        assert let_go.wait(PATIENCE_SECONDS)
        return add(self, new, most, name)

    monkeypatch.setattr(MemoryFile, "add", waits)
    # All that the others have.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    file = MemoryFile.at(str(tmp_path), "player.jsonl", "player")
    memory = AgentMemory("player", "m", MockEmbedding("m"), file)
    writing = asyncio.create_task(memory.remember(["My name is Ann."], "said", most=10, threshold=0.0))
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not began.is_set():  # noqa: ASYNC110  (it is set by a thread)
                await asyncio.sleep(0.001)
            assert await asyncio.to_thread(lambda: "answered") == "answered"
        assert not writing.done()
    finally:
        let_go.set()
    assert [entry.text for entry in await writing] == ["My name is Ann."]
