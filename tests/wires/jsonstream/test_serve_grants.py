"""What `always` covers, inside the workspace and outside of it, and what a mode that is left no longer allows."""

from __future__ import annotations

import pytest

from tests.support.served import Served, served
from trunkline.core.agent import Approve
from trunkline.core.events import Event, ToolRequested

pytestmark = pytest.mark.virtual_time

WRITE = ToolRequested("t1", "Write", "edit", {"file_path": "a"})
BASH = ToolRequested("t2", "Bash", "exec", {"command": "ls"})
EDIT = ToolRequested("t3", "Edit", "edit", {"file_path": "a"})
AWAY = ToolRequested("t6", "Read", "info", {"file_path": "/etc/hosts"}, outside=True)


async def ask(it: Served, *events: Event) -> None:
    """Begin a message and let the agent say something; the lines up to here are taken."""
    it.host.message("m1")
    await it.settle()
    it.fake.say(*events)
    await it.settle()
    it.host.take()


async def test_what_begins_in_yolo_asks_again_when_the_mode_is_left() -> None:
    async with served(mode="yolo") as it:
        await ask(it, BASH)
        assert it.fake.decisions == [("t2", Approve())]
        it.host.send(type="set_mode", mode="default")
        it.fake.say(WRITE)
        await it.settle()
        assert it.host.types() == ["info", "config_changed", "tool_request t1"]


async def test_always_that_was_said_outside_the_workspace_covers_what_is_there_too() -> None:
    async with served() as it:
        await ask(it, AWAY, AWAY.replace(call_id="t7", name="Grep"))
        it.host.send(type="tool_approve", call_id="t6", scope="always")
        await it.settle()
        it.fake.say(AWAY.replace(call_id="t8"), AWAY.replace(call_id="t9", name="Look", outside=False))
        await it.settle()
        assert [call for call, _ in it.fake.decisions] == ["t6", "t7", "t8", "t9"]
        it.fake.say(WRITE.replace(outside=True))
        await it.settle()
        assert [request.call_id for request in it.session.waiting] == ["t1"]


async def test_always_that_was_said_inside_the_workspace_does_not_reach_out_of_it() -> None:
    async with served() as it:
        await ask(it, WRITE)
        it.host.send(type="tool_approve", call_id="t1", scope="always")
        it.fake.say(EDIT, WRITE.replace(call_id="t7", outside=True))
        await it.settle()
        assert [call for call, _ in it.fake.decisions] == ["t1", "t3"]
        assert [request.call_id for request in it.session.waiting] == ["t7"]
