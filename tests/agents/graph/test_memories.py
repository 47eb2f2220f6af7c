"""Memories of agents, and the files that they share."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.loop import until
from tests.support.patience import PATIENCE_SECONDS
from trunkline.agents.graph.memories import WRITING_THREADS, AgentMemory, _queues
from trunkline.agents.graph.memory_file import WAIT_SECONDS, MemoryEntry, MemoryFile
from trunkline.models.embedding_mock import MockEmbedding


class Locked:
    """Another process that has locked some files."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.waiting: list[str] = []
        """The files that somebody waits for, or has waited for."""
        self.deadlines: list[float] = []

    def instead_of(self, add: Callable[..., Any], *names: str) -> Callable[..., Any]:
        """What waits for it before it writes into files that are called so."""

        def waits(file: MemoryFile, new: tuple[MemoryEntry, ...], most: int, name: str, deadline: float) -> Any:
            if Path(file.path).name in names:
                self.waiting.append(file.path)
                self.deadlines.append(deadline)
                assert self.let_go.wait(PATIENCE_SECONDS)
            return add(file, new, most, name, deadline)

        return waits


def memory_in(folder: Path, name: str) -> AgentMemory:
    return AgentMemory("player", "m", MockEmbedding("m"), MemoryFile.at(str(folder), name, "player"))


async def written(memory: AgentMemory, text: str) -> list[str]:
    return [entry.text for entry in await memory.remember([text], "said", most=100, threshold=0.0)]


async def test_who_waits_for_another_process_to_write_keeps_no_thread_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = Locked()
    monkeypatch.setattr(MemoryFile, "add", locked.instead_of(MemoryFile.add, "player.jsonl"))
    # All that the others have.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    writing = asyncio.create_task(written(memory_in(tmp_path, "player.jsonl"), "My name is Ann."))
    try:
        await until(lambda: locked.waiting)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await asyncio.to_thread(lambda: "answered") == "answered"
        assert not writing.done()
    finally:
        locked.let_go.set()
    assert await writing == ["My name is Ann."]


async def test_however_many_wait_for_one_file_they_keep_one_thread_and_none_from_other_memories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = Locked()
    monkeypatch.setattr(MemoryFile, "add", locked.instead_of(MemoryFile.add, "player.jsonl"))
    texts = [f"I have {count} coins." for count in range(WRITING_THREADS + 4)]
    tasks = [asyncio.create_task(written(memory_in(tmp_path, "player.jsonl"), text)) for text in texts]
    try:
        await until(lambda: locked.waiting)
        queue = _queues()._waiting[locked.waiting[0]]
        await until(lambda: len(queue) == len(texts) - 1)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await written(memory_in(tmp_path, "other.jsonl"), "My name is Bea.") == ["My name is Bea."]
        assert len(locked.waiting) == 1
        # Who is gone takes no thread with it, and the one that waits for the file still does.
        tasks.pop(0).cancel()
        assert await written(memory_in(tmp_path, "other.jsonl"), "I am a smith.") == ["I am a smith."]
        assert len(locked.waiting) == 1
        before = time.monotonic()
    finally:
        locked.let_go.set()
    assert [text for told in await asyncio.gather(*tasks) for text in told] == texts[1:]
    file = MemoryFile.at(str(tmp_path), "player.jsonl", "player")
    assert sorted(entry.text for entry in file.read("player")) == sorted(texts)
    # Each waits for the other process from when it came, and not anew when the one before it has given up.
    assert all(deadline <= before + WAIT_SECONDS for deadline in locked.deadlines)


async def test_several_files_that_are_locked_keep_no_thread_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked, names = Locked(), [f"{number}.jsonl" for number in range(4)]
    monkeypatch.setattr(MemoryFile, "add", locked.instead_of(MemoryFile.add, *names))
    tasks = [asyncio.create_task(written(memory_in(tmp_path, name), "My name is Ann.")) for name in names]
    try:
        await until(lambda: len(locked.waiting) == len(names))
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await written(memory_in(tmp_path, "other.jsonl"), "My name is Bea.") == ["My name is Bea."]
    finally:
        locked.let_go.set()
    assert await asyncio.gather(*tasks) == [["My name is Ann."]] * len(names)
