"""The hooks about no tool: what is not seen in a whole process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.loop import until
from trunkline.agents.coder import conversation_hooks
from trunkline.agents.coder.conversation_hooks import ConversationHooks
from trunkline.agents.coder.hooks import Hooks
from trunkline.agents.coder.settings_hooks import Hook
from trunkline.core.events import Event, Notice


async def test_hooks_of_the_end_that_take_too_long_are_ended_and_the_log_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(conversation_hooks, "END_SECONDS", 0.0)
    hooks = ConversationHooks(Hooks({"session_end": (Hook("sleep 600"),)}, workspace=str(tmp_path)))
    hooks.begin()
    await hooks.end()
    assert "hooks of the session's end were ended" in caplog.text


async def test_a_turn_that_is_stopped_meanwhile_leaves_the_hooks_of_the_start_to_the_next_one(tmp_path: Path) -> None:
    slow = """touch began; while ! test -e go; do sleep 0.01; done; echo '{"context": "It is Friday."}'"""
    hooks = ConversationHooks(Hooks({"session_start": (Hook(slow),)}, workspace=str(tmp_path)))
    said: list[Event] = []

    async def say(event: Event) -> None:
        said.append(event)

    hooks.begin()
    stopped = asyncio.ensure_future(hooks.begun(say))
    await until((tmp_path / "began").exists)
    stopped.cancel()
    await asyncio.wait({stopped})
    (tmp_path / "go").touch()
    await hooks.begun(say)
    assert ["It is Friday." in told.text for told in await hooks.received("Hello.", say)] == [True]
    assert said == []
    await hooks.end()


async def test_hooks_of_the_start_that_fail_in_a_way_nobody_expects_fail_no_turn_and_no_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*args: Any, **more: Any) -> None:
        raise RuntimeError("out of luck")

    said: list[Event] = []

    async def say(event: Event) -> None:
        said.append(event)

    monkeypatch.setattr("trunkline.agents.coder.hooks.run_hook", fail)
    hooks = ConversationHooks(Hooks({"session_start": (Hook("true"),)}, workspace=str(tmp_path)))
    for _ in range(2):
        hooks.begin()
        await hooks.begun(say)
    assert said == [Notice("The hooks of the session's start failed: RuntimeError: out of luck")] * 2
    hooks.begin()
    await hooks.end()
