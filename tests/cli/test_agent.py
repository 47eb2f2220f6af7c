"""How `trunkline agent` begins to serve."""

from __future__ import annotations

import json
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
    start: Any = SimpleNamespace(begin=opened, named=True, greeted=False, options=SimpleNamespace(max_line=1))
    assert await agent._talk(start, 0, 1) == 0
    assert done == ["open", "freeze", "enable", "serve"]


def test_a_home_that_cannot_be_used_is_told_the_host_without_the_names_of_our_own(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for variable in ("TRUNKLINE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", "relative")
    monkeypatch.setattr(agent, "claim", lambda: (0, 1))
    with pytest.raises(SystemExit) as ended:
        agent.main(["--json-stream", "--agent", "echo"])
    assert ended.value.code == 1
    told = "There is no home directory. Set `HOME` or `TRUNKLINE_HOME` to an absolute path."
    printed = capfd.readouterr()
    assert (json.loads(printed.out)["error"]["message"], printed.err) == (told, f"Error: {told}\n")
