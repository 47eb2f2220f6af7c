"""How `trunkline agent` begins to serve."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from trunkline.cli import agent
from trunkline.wires.jsonstream import stdio


async def test_garbage_is_looked_for_again_when_all_is_loaded_and_not_among_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []

    class Server:
        def __init__(self, *_: Any, **__: Any) -> None:
            pass

        async def run(self, *, greeted: bool) -> int:
            done.append("serve")
            return 0

    async def opened() -> object:
        done.append("open")
        return object()

    collector = SimpleNamespace(freeze=lambda: done.append("freeze"), enable=lambda: done.append("enable"))
    monkeypatch.setattr(agent, "gc", collector)
    monkeypatch.setattr(stdio, "StdioServer", Server)
    start: Any = SimpleNamespace(open=opened, named=True, greeted=False, options=SimpleNamespace(max_line=1))
    assert await agent._talk(start, 0, 1) == 0
    assert done == ["open", "freeze", "enable", "serve"]
