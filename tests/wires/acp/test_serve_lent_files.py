"""An editor that lends its files: a question about a change shows the file as the editor has it."""

from __future__ import annotations

from typing import Any

from tests.support.acp_world import AcpWorld
from trunkline.core.events import ToolCancelled, ToolRequested, TurnEnded
from trunkline.core.usage import NOTHING_USED

DONE = TurnEnded("success", NOTHING_USED)
EDIT = ToolRequested("c1", "Edit", "edit", {"file_path": "x.py", "old_string": "old", "new_string": "new"})


async def asked_to_read(world: AcpWorld) -> tuple[int, dict[str, Any]]:
    """A prompt of a client that lends its files, and what it is asked when the agent wants to change one."""
    await world.client.ask("initialize", protocolVersion=1, clientCapabilities={"fs": {"readTextFile": True}})
    (world.keeper.folder / "x.py").write_text("saved, and old\n")
    prompt = world.client.prompt(await world.new())
    await world.client.settle()
    world.fake.say(EDIT)
    await world.client.settle()
    (reading,) = (line for line in world.client.lines if line.get("method") == "fs/read_text_file")
    assert reading["params"]["path"] == str(world.keeper.folder / "x.py")
    assert world.client.questions() == []
    return prompt, reading


def old_texts(content: list[dict[str, Any]]) -> list[str]:
    return [each["oldText"] for each in content]


async def test_the_change_is_of_what_the_editor_has_and_told_before_the_question(it: AcpWorld) -> None:
    prompt, reading = await asked_to_read(it)
    it.client.take()
    it.client.send(id=reading["id"], result={"content": "not saved, and old\n"})
    await it.client.settle()
    told, question = it.client.lines
    assert told["params"]["update"]["sessionUpdate"] == "tool_call_update"
    assert old_texts(told["params"]["update"]["content"]) == ["not saved, and old\n"]
    assert question["method"] == "session/request_permission"
    assert old_texts(question["params"]["toolCall"]["content"]) == ["not saved, and old\n"]
    it.client.choose(question, "reject_once")
    await it.client.settle()
    it.fake.say(ToolCancelled("c1", "No."), DONE)
    assert "error" not in await it.client.answer(prompt)
    # A change that was not made is shown as it was asked about.
    assert it.client.updates()[-1]["content"][0]["oldText"] == "not saved, and old\n"


async def test_where_the_editor_cannot_give_the_file_what_is_on_the_disk_is_shown(it: AcpWorld) -> None:
    prompt, reading = await asked_to_read(it)
    it.client.send(id=reading["id"], error={"code": -32002, "message": "No such buffer"})
    await it.client.settle()
    (question,) = it.client.questions()
    assert old_texts(question["params"]["toolCall"]["content"]) == ["saved, and old\n"]
    it.client.choose(question, "allow_once")
    await it.client.settle()
    it.fake.say(DONE)
    assert "error" not in await it.client.answer(prompt)


async def test_who_cancels_while_the_file_is_read_is_not_asked(it: AcpWorld) -> None:
    prompt, reading = await asked_to_read(it)
    it.client.send(method="session/cancel", params={"sessionId": reading["params"]["sessionId"]})
    it.client.send(id=reading["id"], result={"content": "old\n"})
    assert (await it.client.answer(prompt))["result"]["stopReason"] == "cancelled"
    assert it.client.questions() == []
